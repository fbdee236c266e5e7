//! The remote: its accesses, its messages, and the execution of its rows.

use super::context::Context;
use super::error::{line_failure, BenchError, Checked};
use super::line::{Bytes, Direction, Message, REMOTE};
use super::link::Link;
use super::units::Units;
use crate::lockstep::random::RandomGenerator;
use crate::lockstep::reachability::within_bounds;
use crate::lockstep::setup::Check;
use cohkit_base::sequence::Action;
use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::execute::{Act, Configuration, Outcome, Receiver, Trigger};
use cohkit_protocol::protocol::{Carries, Permission};
use cohkit_protocol::terms::StateId;
use cohkit_system::agent::{
    self, Bytes as Sent, OutgoingMessage, RemoteContext, RowContext, RowProblem,
};
use cohkit_system::data::Extent;

/// Number of accesses that the remote attempts: the first ones of [`Access::ALL`]. The others order accesses to several
/// lines, but the bench simulates each line separately.
const ACCESSES: u64 = 8;

/// The remote, with the link on which it sends and the limits of its requests.
pub(super) struct Remote<'b, 'a> {
    /// Time, lines and report of the run.
    pub context: &'b mut Context<'a>,
    /// Circuits on which the remote sends.
    pub link: &'b mut Link,
    /// Resources of the home's units, which limit the outstanding requests.
    pub units: &'b mut Units,
}

/// Execution context of the remote's rows.
struct RemoteRow<'b, 'a> {
    /// Time, lines and report of the run.
    context: &'b mut Context<'a>,
    /// Circuits on which the remote sends.
    link: &'b mut Link,
    /// Line of the row, as an index into the context's lines.
    line_index: usize,
    /// Acts of the row.
    acts: std::vec::IntoIter<Act>,
    /// Extent of the current write within the line.
    extent: Extent,
    /// The access that starts, if the row is that of an access.
    access: Option<Access>,
}

impl RowContext for RemoteRow<'_, '_> {
    type Copy = Bytes;
    type Fields = Vec<u16>;
    type Error = BenchError;

    fn next_act(&mut self) -> Option<Act> {
        self.acts.next()
    }

    fn report(&mut self, problem: RowProblem<Bytes>) -> Checked {
        Err(problem.violation(self.context.reference.protocol).into())
    }

    fn is_current(&self, copy: &Bytes) -> bool {
        self.context.is_current(self.line_index, copy)
    }

    fn send(&mut self, outgoing: OutgoingMessage<Bytes>) -> Checked {
        let (context, line_index) = (&mut *self.context, self.line_index);
        let OutgoingMessage {
            message: kind,
            to: Receiver::Home,
            bytes,
            ..
        } = outgoing
        else {
            return line_failure(line_index, "the remote sends to another remote".into());
        };
        let carries = context.reference.protocol.message(kind).carries;
        let mask = |random: &mut RandomGenerator| random.below(1 << 16) as u16;
        let random = &mut context.random;
        let (bytes, mask) = match (bytes, carries) {
            (Sent::None, _) => (None, u16::MAX),
            (Sent::Line(copy), _) => (Some(copy), u16::MAX),
            (Sent::Write, Carries::PartialStore) => (Some(random.bytes()), mask(random)),
            (Sent::Write, _) => (Some(random.bytes()), u16::MAX),
        };
        context.count_message_in_flight(line_index, kind)?;
        let flight = context.record_send(line_index, Direction::ToHome, kind);
        let message = Message {
            kind,
            bytes,
            mask,
            flight,
        };
        self.link
            .send(context, line_index, Direction::ToHome, message);
        Ok(())
    }
}

impl RemoteContext for RemoteRow<'_, '_> {
    fn write(&mut self, old_copy: Bytes) -> Checked<Bytes> {
        let (context, line_index) = (&mut *self.context, self.line_index);
        let value: Bytes = context.random.bytes();
        let word = context.random.below(context.reference.words as u64) as usize;
        let mut new_copy = old_copy;
        for copy in [&mut new_copy, &mut context.lines[line_index].latest] {
            match self.extent {
                Extent::Whole => *copy = value,
                Extent::Part => copy[word] = value[word],
            }
        }
        if let (Some(access), Extent::Part) = (self.access, self.extent) {
            context.record_word(line_index, access, word, value[word]);
        }
        Ok(new_copy)
    }

    // The contents of messages were compared with the last write when memory was read for them.
    fn read(&mut self, _copy: &Bytes) -> Checked {
        Ok(())
    }

    // The write is performed when the home starts to write it.
    fn complete_sent_write(&mut self, _found: Option<&Bytes>) -> Checked {
        Ok(())
    }

    fn abandon_write(&mut self) {}

    // Goals concern a single line, so no protocol with a constructed home has such a row.
    fn bulk_transition(&mut self, from: StateId, to: StateId) -> Checked {
        let states = &self.context.reference.protocol.remote.states;
        let [from, to] = [from, to].map(|state| &states[state.index()].name);
        Err(BenchError {
            check: Check::Comparison,
            description: format!("`every {from} becomes {to}` changes all lines, but the bench simulates each line separately"),
            line: Some(self.line_index),
        })
    }
}

impl<'a> Remote<'_, 'a> {
    /// Attempts up to three random accesses to lines that are not directed. An access that is impossible now is
    /// skipped.
    pub fn attempt_accesses(&mut self) -> Checked {
        for _ in 0..self.context.random.below(4) {
            let line_index = self.context.random_line();
            let access = Access::ALL[self.context.random.below(ACCESSES) as usize].0;
            if !self.context.lines[line_index].steering.is_directed {
                self.start_access(line_index, access)?;
            }
        }
        Ok(())
    }

    /// Starts an access if it is possible now; otherwise does nothing. An access is possible if it does not stall, and
    /// exceeds neither a bound of the protocol nor the limit of a unit's outstanding requests.
    pub fn start_access(&mut self, line_index: usize, access: Access) -> Checked {
        let reference = self.context.reference.clone();
        let permission = self.context.permission(line_index);
        let mut remote = self.context.lines[line_index].remote.clone();
        let outcome = self.step_controller(line_index, &mut remote, Event::Access(access))?;
        if let Outcome::Taken { acts, .. } = &outcome {
            let in_flight = &self.context.lines[line_index].messages.in_flight;
            if !within_bounds(reference.protocol, in_flight, acts) {
                return Ok(());
            }
            let unit = self.context.unit(line_index);
            if reference.sends_request(acts) && !self.units.begin_request(unit) {
                return Ok(());
            }
        }
        let line = &mut self.context.lines[line_index];
        if line.remote != remote {
            self.context.last_advance = self.context.cycle;
        }
        line.remote = remote;
        let row = match outcome {
            Outcome::Taken { rule, acts } => Some((rule, acts)),
            // Performed in place, without a row.
            Outcome::Unexpected
                if access.is_performed_in_place() && permission >= access.needs() =>
            {
                None
            }
            _ => return Ok(()),
        };
        let is_read =
            matches!(access, Access::Load | Access::ReadOnce) && permission >= Permission::Read;
        if is_read && !line.is_current(&line.copy, reference.words) {
            let message = format!("the remote reads stale data of line {}", line.number);
            return line_failure(line_index, message);
        }
        let what = access.name().into();
        self.context
            .record_action(line_index, REMOTE, Action::Does { what });
        if is_read {
            let word = self.context.cycle as usize % reference.words;
            let value = self.context.lines[line_index].copy[word];
            self.context.record_word(line_index, access, word, value);
        }
        match row {
            Some(row) => self.apply_row(line_index, row, None, Some(access))?,
            None if access.writes() => {
                let copy = self.context.lines[line_index].copy;
                let mut row = self.row(line_index, Vec::new(), Extent::Part, Some(access));
                let copy = row.write_in_place(copy)?;
                self.context.lines[line_index].copy = copy;
            }
            None => {}
        }
        self.context.record_remote_state(line_index);
        Ok(())
    }

    /// Execution context of a row, or of an access without one.
    fn row(
        &mut self,
        line_index: usize,
        acts: Vec<Act>,
        extent: Extent,
        access: Option<Access>,
    ) -> RemoteRow<'_, 'a> {
        RemoteRow {
            context: &mut *self.context,
            link: &mut *self.link,
            line_index,
            acts: acts.into_iter(),
            extent,
            access,
        }
    }

    /// Executes an event in the remote's controller, which updates the configuration.
    fn step_controller(
        &self,
        line_index: usize,
        remote: &mut Configuration,
        event: Event,
    ) -> Checked<Outcome> {
        let trigger = Trigger {
            home: 0,
            event,
            sender: None,
            executing_remote: Some(0),
            fields: &[],
        };
        let reference = &self.context.reference;
        let stepped = reference
            .remote_machine
            .step(remote, trigger, &mut { &reference.protocol.remote });
        stepped.or_else(|stopped| line_failure(line_index, format!("{:?}", stopped.fault)))
    }

    /// Applies a row of the remote, given by its rule and its actions. `received_bytes` is the copy in the current
    /// message, `access` the access that starts the row.
    fn apply_row(
        &mut self,
        line_index: usize,
        (rule, acts): (usize, Vec<Act>),
        received_bytes: Option<Bytes>,
        access: Option<Access>,
    ) -> Checked {
        let reference = self.context.reference.clone();
        let plan = &reference.plans[rule];
        let own_copy = self.context.lines[line_index].copy;
        // A write that completes without the previous contents covers the whole line.
        let extent = match access {
            Some(Access::WriteLine) => Extent::Whole,
            None if !plan.effects.is_partial_write => Extent::Whole,
            _ => Extent::Part,
        };
        let new_copy = agent::remote(
            &reference.facts,
            &plan.effects,
            own_copy,
            received_bytes,
            &mut self.row(line_index, acts, extent, access),
        );
        let new_copy = new_copy.map_err(|error| error.on_line(line_index))?;
        self.context.lines[line_index].copy = new_copy;
        Ok(())
    }

    /// Delivers a message to the remote, or delays it if the remote stalls.
    pub fn deliver(&mut self, line_index: usize, message: Message) -> Checked {
        let mut remote = self.context.lines[line_index].remote.clone();
        let event = Event::Message(message.kind);
        let row = match self.step_controller(line_index, &mut remote, event)? {
            Outcome::Taken { rule, acts } => (rule, acts),
            Outcome::Stall => {
                self.link
                    .send(self.context, line_index, Direction::ToRemote, message);
                return Ok(());
            }
            _ => {
                let name = &self.context.reference.protocol.message(message.kind).name;
                return line_failure(line_index, format!("the remote has no row for {name}"));
            }
        };
        let line = &mut self.context.lines[line_index];
        if line.remote.state != remote.state {
            self.context.last_advance = self.context.cycle;
        }
        line.remote = remote;
        let Message {
            kind,
            bytes,
            flight,
            ..
        } = message;
        (self.context).record_receive(line_index, Direction::ToRemote, kind, flight);
        self.context.consume_message(line_index, kind);
        let carries = self.context.reference.protocol.message(kind).carries;
        let received_bytes = bytes.filter(|_| carries.line());
        self.apply_row(line_index, row, received_bytes, None)?;
        self.context.record_remote_state(line_index);
        Ok(())
    }
}
