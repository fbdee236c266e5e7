//! Protocol ROM: the reaction of the hardware to each event in each state of a line.
//!
//! A row holds the effect on the event, the next state and the operations of a unit: at most one memory operation, one
//! grant, one forward and one acknowledgement to the device. A controller fits the hardware if each of its rules is
//! such a row, and if a unit never needs more resources for pending operations than it has. Module `compiler`
//! translates the rules, and `pending_operations` follows the pending memory operation and local operation of a line
//! from the initial state. The hardware relies on both without checks.

mod compiler;
mod pending_operations;

pub(crate) use compiler::evicting_operation;

use cohkit_diagnostics::Span;
use cohkit_protocol::construct::permissions::KnownPermissions;
use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::execute::Machine;
use cohkit_protocol::protocol::{MessageId, Permission, Protocol};

/// Maximum number of states of a ROM.
pub const MAX_STATES: usize = 256;
/// Maximum number of events of a ROM.
pub const MAX_EVENTS: usize = 64;
/// Maximum number of message types that the home sends.
pub const MAX_SENDS: usize = 16;
/// Maximum number of circuits in each direction.
pub const MAX_CIRCUITS: usize = 4;
/// Maximum number of local operations.
pub const MAX_LOCALS: usize = 8;

/// A home in the form that the hardware executes.
#[derive(Clone, Debug)]
pub struct Rom {
    /// Names of the states. The first is the initial one, which all lines have that the directory does not hold.
    pub states: Vec<String>,
    /// Events: messages to the home in the order of the protocol file, then local operations, then `unlock`,
    /// `memory_data` and `memory_done`.
    pub events: Vec<RomEvent>,
    /// Number of events that are messages.
    pub messages: usize,
    /// Messages that the home sends, in the order of the protocol file.
    pub sends: Vec<SentMessage>,
    /// Circuits to the home.
    pub rx: Vec<Circuit>,
    /// Circuits to the remote.
    pub tx: Vec<Circuit>,
    /// For each local operation, true if it locks the line.
    pub locking: Vec<bool>,
    /// Local operation by which the directory evicts a line.
    pub evict: u8,
    /// Upper bound of the remote's permission in each state.
    pub permissions: Vec<Permission>,
    /// Rows by state, then by event.
    rows: Vec<Vec<Row>>,
    /// Rule of the controller that each row implements, as an index, by state and event.
    rules: Vec<Vec<Option<usize>>>,
}

/// A row of the ROM. Its word has the layout of `row_t` in the printed package.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Effect on the event.
    pub effect: Effect,
    /// Memory operation that the row starts.
    pub memory: Memory,
    /// True if the row acknowledges the pending local operation or the unlock being handled.
    pub acknowledge: bool,
    /// Grant or response that the row sends, as an index into [`Rom::sends`].
    pub grant: Option<u16>,
    /// Forward that the row sends, as an index into [`Rom::sends`].
    pub forward: Option<u16>,
    /// Upper bound of the remote's permission before and after the row.
    pub permission_bounds: PermissionBounds,
    /// Next state; the present one unless the event is consumed.
    pub next: u16,
}

/// Effect of a row on its event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effect {
    /// No row: the event cannot occur in the state.
    #[default]
    Never,
    /// The event stalls until the line's state has changed.
    Stall,
    /// The event is consumed and reported as refused.
    Refuse,
    /// The event is consumed, and the row is executed.
    Take,
}

impl Effect {
    /// Returns the number of the effect in a row and in a reported step (`effect_e` of `home_pkg.sv`).
    pub fn encode(self) -> u64 {
        match self {
            Effect::Never => 0,
            Effect::Stall => 1,
            Effect::Refuse => 2,
            Effect::Take => 3,
        }
    }

    /// Returns the effect with a number of two bits; higher bits are ignored.
    pub fn decode(number: u64) -> Effect {
        match number & 3 {
            0 => Effect::Never,
            1 => Effect::Stall,
            2 => Effect::Refuse,
            _ => Effect::Take,
        }
    }

    /// True if the event leaves its queue: it is refused, or the row is executed.
    pub fn consumes_event(self) -> bool {
        matches!(self, Effect::Refuse | Effect::Take)
    }
}

/// Memory operation that a row starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Memory {
    /// None.
    #[default]
    None,
    /// Read the line.
    Read,
    /// Write the bytes that arrived with the event.
    Write,
}

/// Upper bound of the remote's permission for a line, as known to the home, including grants in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PermissionBounds {
    /// Bound before the row.
    pub old_permission: Permission,
    /// Bound after the row.
    pub new_permission: Permission,
}

impl Default for PermissionBounds {
    fn default() -> PermissionBounds {
        PermissionBounds {
            old_permission: Permission::None,
            new_permission: Permission::None,
        }
    }
}

/// A circuit between remote and home: a channel, or the channels that share one order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circuit {
    /// Names of its channels, joined by `_`.
    pub name: String,
    /// True if some of its messages carry bytes.
    pub payload: bool,
    /// True if its messages may stall.
    pub can_stall: bool,
}

/// A message or operation with the hardware's numbering.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RomEvent {
    /// Name of the event.
    pub name: String,
    /// The controller's event.
    pub event: Event,
    /// Circuit on which it arrives; 0 if it is no message.
    pub circuit: usize,
    /// True if it carries bytes.
    pub payload: bool,
    /// True if it is a request.
    pub request: bool,
    /// Highest permission that the request may be granted; `Permission::None` for all other events.
    pub permission: Permission,
}

/// A message type that the home sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentMessage {
    /// Name of the message.
    pub name: String,
    /// Identifier of the message type.
    pub message: MessageId,
    /// Circuit on which it departs.
    pub circuit: usize,
    /// True if it carries the line.
    pub payload: bool,
}

/// Reason for which a home cannot be implemented by the hardware.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The unsupported feature.
    pub feature: String,
    /// Its position in the protocol file.
    pub span: Span,
    /// Suggested remedy, if any.
    pub help: Option<String>,
}

impl Rom {
    /// Compiles a home for one remote from a controller of plain rows.
    ///
    /// # Errors
    /// The first feature that the hardware does not support.
    pub fn new(protocol: &Protocol, home: &Controller) -> Result<Rom, Refusal> {
        compiler::compile(protocol, home)
    }

    /// Adds the home's knowledge of permissions, from which the home reports changes to the device. `permissions` comes
    /// from the construction of the controller `home`.
    #[must_use]
    pub fn with_permissions(mut self, home: &Controller, permissions: &KnownPermissions) -> Rom {
        let mut configuration = Machine::new(home, 1).initial();
        for state in 0..self.states.len() {
            configuration.state = state as u16;
            self.permissions[state] = permissions.highest(home, 1, &configuration);
        }
        for (state, rows) in self.rows.iter_mut().enumerate() {
            for row in rows.iter_mut().filter(|row| row.effect == Effect::Take) {
                row.permission_bounds = PermissionBounds {
                    old_permission: self.permissions[state],
                    new_permission: self.permissions[usize::from(row.next)],
                };
            }
        }
        self
    }

    /// Returns the row for an event in a state; the default row if the controller has no rule for them.
    ///
    /// # Panics
    /// State or event is not a number of this ROM.
    pub fn row(&self, state: usize, event: usize) -> Row {
        self.rows[state][event]
    }

    /// Returns the controller's rule that a row implements, as an index into its `rules`; `None` if the event cannot
    /// occur.
    pub fn rule(&self, state: usize, event: usize) -> Option<usize> {
        self.rules[state][event]
    }

    /// Returns state and event of every row with a rule, in order.
    pub fn used(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let rows = self.rules.iter().enumerate();
        rows.flat_map(|(state, rules)| {
            let used = rules.iter().enumerate().filter(|(_, rule)| rule.is_some());
            used.map(move |(event, _)| (state, event))
        })
    }

    /// Returns the number of the event with this name.
    pub fn event(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|event| event.name == name)
    }

    /// Returns the number of the event that requests local operation `local`, an index into [`Rom::locking`].
    pub fn local(&self, local: u8) -> usize {
        self.messages + usize::from(local)
    }

    /// Returns the number of the event `unlock`, by which the device releases a lock.
    pub fn unlock(&self) -> usize {
        self.messages + self.locking.len()
    }

    /// Returns the number of the event `memory_data`; `memory_done` follows it.
    pub fn memory_data(&self) -> usize {
        self.unlock() + 1
    }

    /// Returns the width of a state, in bits.
    pub fn state_bits(&self) -> u32 {
        bits(self.states.len())
    }

    /// Returns the width of an event, in bits.
    pub fn event_bits(&self) -> u32 {
        bits(self.events.len())
    }

    /// Returns the width of a message number to the remote, in bits.
    pub fn send_bits(&self) -> u32 {
        bits(self.sends.len())
    }

    /// Returns the width of a row, in bits.
    pub fn row_bits(&self) -> u32 {
        // Effect 2, memory 2, acknowledge 1, valid bits of grant and forward 2, and two permissions of 2 bits each.
        11 + 2 * self.send_bits() + self.state_bits()
    }

    /// Returns the address of a row in the image: the state, followed by the event in the low bits.
    pub fn address(&self, state: usize, event: usize) -> usize {
        state << self.event_bits() | event
    }

    /// Encodes a row as in the image, with the fields in the order of `row_t` in the printed package.
    pub fn word(&self, row: Row) -> u64 {
        let memory = match row.memory {
            Memory::None => 0,
            Memory::Read => 1,
            Memory::Write => 2,
        };
        let mut word = row.effect.encode() << 2 | memory;
        word = word << 1 | u64::from(row.acknowledge);
        for send in [row.grant, row.forward] {
            word = word << 1 | u64::from(send.is_some());
            word = word << self.send_bits() | u64::from(send.unwrap_or(0));
        }
        for permission in [
            row.permission_bounds.old_permission,
            row.permission_bounds.new_permission,
        ] {
            word = word << 2 | permission as u64;
        }
        word << self.state_bits() | u64::from(row.next)
    }
}

/// Returns the number of bits that encode `values` different values, at least one.
fn bits(values: usize) -> u32 {
    values.saturating_sub(1).max(1).ilog2() + 1
}

/// Returns the refusal of a home because of a feature at this position in the protocol file.
pub(crate) fn refuse<T>(span: Span, feature: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        feature: feature.into(),
        span,
        help: None,
    })
}
