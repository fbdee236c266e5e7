//! The reference of a run: the checked controllers, the ROM, and the home's parameters.

use super::line::Line;
use crate::lockstep::model::SLICES;
use crate::lockstep::setup::Setup;
use crate::lockstep::shapes::Shape;
use crate::rom::Rom;
use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::execute::{Act, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::{Class, MessageId, Permission, Protocol};
use cohkit_system::plan::{Plan, ProtocolFacts};

/// The checked controllers, with the parameters of the home that follows them.
pub(super) struct Reference<'a> {
    /// Protocol of remote and home.
    pub protocol: &'a Protocol,
    /// ROM that the home executes.
    pub rom: &'a Rom,
    /// Controller of the home.
    pub home: &'a Controller,
    /// Interpreter of the home's controller, for one remote.
    pub home_machine: Machine<'a>,
    /// Interpreter of the remote's controller.
    pub remote_machine: Machine<'a>,
    /// Static analysis of all rows.
    pub facts: ProtocolFacts,
    /// Static analysis of each row of the remote, by the index of its rule.
    pub plans: Vec<Plan>,
    /// Parameters of the built home.
    pub shape: Shape,
    /// Number of beats per line.
    pub beats: usize,
    /// Number of 64-bit words per beat.
    pub words_per_beat: usize,
    /// Number of 64-bit words per line.
    pub words: usize,
}

impl<'a> Reference<'a> {
    /// Creates the reference of a built home.
    pub fn new(setup: &Setup<'a>) -> Reference<'a> {
        let Setup {
            protocol,
            home,
            rom,
            shape,
            ..
        } = *setup;
        let facts = ProtocolFacts::new(protocol, home);
        let words = protocol.line_bytes as usize / 8;
        let words_per_beat = shape.payload / 64;
        Reference {
            protocol,
            rom,
            home,
            home_machine: Machine::new(home, 1),
            remote_machine: Machine::new(&protocol.remote, 1),
            plans: Plan::of(&protocol.remote, Some(&facts.accesses)),
            facts,
            shape,
            beats: words / words_per_beat,
            words_per_beat,
            words,
        }
    }

    /// Number of units, over all slices.
    pub fn units(&self) -> usize {
        SLICES * self.shape.units
    }

    /// Returns the unit of a line's number, over all slices.
    pub fn unit(&self, number: u64) -> usize {
        number as usize % self.units()
    }

    /// True if a message is a request. The other messages to the home are responses.
    pub fn is_request(&self, message: MessageId) -> bool {
        self.protocol.class(message) == Some(Class::Request)
    }

    /// Number of a message's event in the ROM; `None` for a message to the remote.
    pub fn event_number(&self, message: MessageId) -> Option<usize> {
        let mut events = self.rom.events.iter();
        events.position(|event| event.event == Event::Message(message))
    }

    /// Circuit of a message to the home.
    pub fn input_circuit(&self, message: MessageId) -> usize {
        let number = self.event_number(message);
        number.map_or(0, |number| self.rom.events[number].circuit)
    }

    /// Returns the remote's permission for a line.
    pub fn permission(&self, line: &Line) -> Permission {
        self.protocol.remote.states[usize::from(line.remote.state)].permission
    }

    /// Executes an event in the home's controller. Returns the new configuration, and the outcome. The line
    /// is unchanged.
    pub fn step_home(&self, line: &Line, event: Event) -> HomeStep {
        let trigger = Trigger {
            home: 0,
            event,
            sender: Some(0),
            executing_remote: None,
            fields: &[],
        };
        let mut home = line.home.clone();
        let outcome = (self.home_machine).step(&mut home, trigger, &mut { self.home });
        (
            home,
            outcome.map_err(|stopped| format!("{:?}", stopped.fault)),
        )
    }

    /// Returns the permission that the remote receives with the line being read; `None` for an uncached read.
    pub fn read_permission(&self, line: &Line) -> Permission {
        let before = self.rom.permissions[usize::from(line.home.state)];
        let (home, outcome) = self.step_home(line, Event::MemoryData(0));
        let granted = self.rom.permissions[usize::from(home.state)];
        match outcome {
            Ok(Outcome::Taken { .. }) if granted > before => granted,
            _ => Permission::None,
        }
    }

    /// True if some action sends a request.
    pub fn sends_request(&self, acts: &[Act]) -> bool {
        let is_request =
            |act: &Act| matches!(act, Act::Send { message, .. } if self.is_request(*message));
        acts.iter().any(is_request)
    }
}

/// Configuration of the home after an event, and the outcome or the fault.
type HomeStep = (
    cohkit_protocol::execute::Configuration,
    Result<Outcome, String>,
);
