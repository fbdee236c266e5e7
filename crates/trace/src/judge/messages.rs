//! Messages in flight: sending, receiving, and the order of channels.

use super::{CheckResult, Line, TraceChecker};
use crate::line_data::{Version, Write};
use crate::table::SentMessage;
use cohkit_base::sequence::Action;
use cohkit_protocol::protocol::{Carries, MessageId};

/// A message in flight.
#[derive(Clone, Debug)]
pub(super) struct InFlightMessage {
    /// Number of the message in the trace, unique among the messages in flight.
    pub(super) number: u32,
    /// Line of the message, or the number of its home for a message about no line.
    pub(super) line: u32,
    /// Message type, receiver and fields.
    pub(super) sent: SentMessage,
    /// Sending remote; `None` if a home sent it.
    pub(super) from: Option<usize>,
    /// Lifelines of sender and receiver.
    pub(super) endpoints: [usize; 2],
    /// Data, as versions.
    pub(super) data: MessageData,
    /// Numbers of the messages that this one must not overtake. Numbers of messages received since remain in the list.
    pub(super) earlier_flights: Vec<u32>,
}

/// Data of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum MessageData {
    /// No data.
    Nothing,
    /// A copy of the line.
    Line(Version),
    /// The bytes of a write that the home performs.
    Write(Write),
}

/// A send that the trace reports.
struct ReportedSend<'j> {
    /// Message as the trace spells it: its type, with or without fields.
    message: &'j str,
    /// Number of the message in the trace.
    number: u32,
}

impl<'j> TraceChecker<'j> {
    /// Removes a message from those in flight, and checks its agents, its line and its order. `number` is that of the
    /// trace.
    pub(super) fn receive_message(
        &mut self,
        message_text: &str,
        from: usize,
        number: u32,
    ) -> CheckResult<InFlightMessage> {
        let receiver_lifeline = self.sequence.steps[self.position].agent;
        let mut flights = self.flights.iter();
        let index = flights.position(|flight| flight.number == number);
        let index =
            index.ok_or_else(|| format!("{message_text} is received, but is not in flight"))?;
        let flight = self.flights.remove(index);
        if flight.endpoints != [from, receiver_lifeline] {
            let [sender, receiver] = flight.endpoints.map(|agent| &self.sequence.agents[agent]);
            return Err(format!(
                "{message_text} is in flight from {sender} to {receiver}"
            ));
        }
        self.check_message_name(&flight.sent, message_text)?;
        let about_line = self.protocol.message(flight.sent.message).about_line;
        match self.reported_line {
            Some(_) if !about_line => return Err(format!("{message_text} is about no line")),
            line if about_line && line.unwrap_or(0) != flight.line => {
                return Err(format!("{message_text} is about line {}", flight.line));
            }
            _ => {}
        }
        let mut flights = self.flights.iter();
        if let Some(earlier) = flights.find(|other| flight.earlier_flights.contains(&other.number))
        {
            let earlier = &self.protocol.message(earlier.sent.message).name;
            return Err(format!("{message_text} overtakes {earlier}"));
        }
        // Later sends may reuse the number, and are not the message that these had to follow.
        for later in &mut self.flights {
            later.earlier_flights.retain(|earlier| *earlier != number);
        }
        Ok(flight)
    }

    /// Checks that the next step reports a message that the current row sends, and adds it to the messages in flight.
    /// `from` is the sending remote, `None` for the home, and `copy` the version that a message with a line carries.
    pub(super) fn check_send(
        &mut self,
        line: &mut Line,
        from: Option<usize>,
        sent: SentMessage,
        copy: Option<Version>,
    ) -> CheckResult {
        let about_line = self.protocol.message(sent.message).about_line;
        let message_line = self.line_number_of(&sent, about_line, from.is_some())?;
        let home_number = message_line as usize % usize::from(self.protocol.homes);
        let home_lifeline = self.remote_table.kinds.len() + home_number;
        let endpoints = [self.lifeline(from), sent.to.unwrap_or(home_lifeline)];
        let reported = self.reported_send(&sent, endpoints)?;
        let data = self.message_data(line, from, &reported, sent.message, copy)?;
        let must_precede = |earlier: &&InFlightMessage| {
            let same_line = earlier.line == message_line;
            earlier.endpoints == endpoints
                && self.must_not_overtake(sent.message, earlier.sent.message, same_line)
        };
        let earlier_flights = self.flights.iter().filter(must_precede);
        let earlier_flights = earlier_flights.map(|earlier| earlier.number).collect();
        self.flights.push(InFlightMessage {
            number: reported.number,
            line: message_line,
            sent,
            from,
            endpoints,
            data,
            earlier_flights,
        });
        self.position += 1;
        self.summary.messages += 1;
        Ok(())
    }

    /// Reads the next step, which must report this message between these lifelines, with an unused number. The input
    /// queue of the receiver must have room for it.
    fn reported_send(
        &self,
        sent: &SentMessage,
        [sender, receiver]: [usize; 2],
    ) -> CheckResult<ReportedSend<'j>> {
        let message_type = self.protocol.message(sent.message);
        let next_step = self.sequence.steps.get(self.position).filter(|step| {
            let belongs_to_line = if message_type.about_line {
                self.belongs_to_row(step)
            } else {
                step.line.is_none()
            };
            step.agent == sender && belongs_to_line
        });
        let receiver_name = &self.sequence.agents[receiver];
        let Some(Action::Send {
            message,
            to: reported_receiver,
            flight: number,
        }) = next_step.map(|step| &step.action)
        else {
            let name = &message_type.name;
            let sender_name = &self.sequence.agents[sender];
            return Err(format!(
                "{sender_name} has to send {name} to {receiver_name} now"
            ));
        };
        self.check_message_name(sent, message)?;
        if *reported_receiver != receiver {
            let reported_receiver = self.sequence.agents.get(*reported_receiver);
            return Err(format!(
                "{message} goes to {reported_receiver:?}; its row sends it to {receiver_name}"
            ));
        }
        if self.flights.iter().any(|other| other.number == *number) {
            return Err(format!("{message} has the number of another one in flight"));
        }
        if let Some(network) = self.full_network(sent.message, receiver) {
            return Err(format!(
                "{message} finds no room in network {network} at {receiver_name}"
            ));
        }
        Ok(ReportedSend {
            message,
            number: *number,
        })
    }

    /// Data that a sent message carries: the sender's `copy`, or a new write, which is recorded for its line and for
    /// the outstanding access of the remote `from`.
    fn message_data(
        &self,
        line: &mut Line,
        from: Option<usize>,
        reported: &ReportedSend,
        message: MessageId,
        copy: Option<Version>,
    ) -> CheckResult<MessageData> {
        let carries = self.protocol.message(message).carries;
        Ok(match carries {
            Carries::Nothing => MessageData::Nothing,
            Carries::Line | Carries::DirtyLine => MessageData::Line(copy.ok_or_else(|| {
                let message = reported.message;
                format!("{message} carries a line that the sender does not have")
            })?),
            Carries::Store | Carries::PartialStore => {
                let whole_line = carries == Carries::Store;
                let serial = line.data.record_sent_write();
                if let Some(pending_access) =
                    from.and_then(|from| line.remotes[from].pending_access.as_mut())
                {
                    pending_access.sent_serial = Some(serial);
                }
                MessageData::Write(Write { serial, whole_line })
            }
        })
    }

    /// Line of a message. For a message about no line: the number of the home that receives it or sends it to a remote,
    /// or 0 between remotes.
    fn line_number_of(
        &self,
        sent: &SentMessage,
        about_line: bool,
        from_remote: bool,
    ) -> CheckResult<u32> {
        let homes = self.protocol.homes;
        match sent.home {
            _ if about_line => Ok(self.line_number),
            Some(home) if home < homes.into() => Ok(home as u32),
            Some(home) => Err(format!("there is no home {home}")),
            None if from_remote && sent.to.is_some() => Ok(0),
            None => Ok(self.home_number() as u32),
        }
    }

    /// The network of a message, if the input queue of its receiver has no room for one more.
    fn full_network(&self, message: MessageId, to: usize) -> Option<&str> {
        let protocol = self.protocol;
        let order = |message| protocol.order_of(protocol.message(message).channel);
        let network = protocol.network_of(order(message)?)?;
        let shares_queue = |flight: &&InFlightMessage| {
            flight.endpoints[1] == to && order(flight.sent.message) == Some(network.order)
        };
        let in_flight = self.flights.iter().filter(shares_queue).count();
        (!network.has_room(in_flight)).then_some(&network.name)
    }

    /// True if a message must not overtake an earlier one between the same agents. An order over all lines can only be
    /// checked if the trace covers all of them.
    fn must_not_overtake(&self, message: MessageId, earlier: MessageId, same_line: bool) -> bool {
        let protocol = self.protocol;
        let order = |message| protocol.order_of(protocol.message(message).channel);
        let orders_all_lines =
            |order: usize| !protocol.per_line[order] && protocol.joins_lines().is_some();
        let mut point_orders = protocol.point_orders.iter();
        order(message).is_some_and(|order_id| {
            order(earlier) == Some(order_id) && (same_line || orders_all_lines(order_id))
        }) || same_line
            && point_orders.any(|rule| rule.message == message && rule.earlier.contains(&earlier))
    }
}
