//! Capacity of the input queues of networks.

use super::Resolver;
use crate::controller::{Controller, Effect, Event, Rule, Statement, Target};
use crate::protocol as p;
use crate::protocol::ChannelId;
use crate::text::diagnostic::{Code, Diagnostic};

impl Resolver<'_, '_> {
    /// Reports accesses that send more messages to the home than its input queue can hold: they could never start. A
    /// row that takes a message and has no room is a deadlock, which the checker finds.
    ///
    /// Only messages outside of conditions and loops are counted.
    pub(super) fn check_input_queues(
        &mut self,
        remote: &Controller,
        networks: &[p::Network],
        orders: &[Vec<ChannelId>],
    ) {
        for network in networks {
            let Some(capacity) = network.capacity else {
                continue;
            };
            for row in &remote.rules {
                let sent = self.messages_to_home(row, &orders[network.order]);
                if !matches!(row.event, Event::Message(_)) && sent > usize::from(capacity) {
                    let text = format!(
                        "this access sends {sent} messages to one input queue of `{}`",
                        network.name
                    );
                    let diagnostic = Diagnostic::new(Code::OutOfRange, row.span, text)
                        .label(format!("the queue has room for {capacity}"))
                        .note("raise the capacity, or send the messages in several rows")
                        .note_at(network.span, "its capacity is stated here");
                    self.sink.push(diagnostic);
                }
            }
        }
    }

    /// Returns the number of messages on these channels that a row always sends to the home.
    fn messages_to_home(&self, row: &Rule, channels: &[ChannelId]) -> usize {
        let Effect::Take { body, .. } = &row.effect else {
            return 0;
        };
        let is_counted = |statement: &&Statement| match statement {
            Statement::Send { message, to, .. } => {
                *to == Target::Home && channels.contains(&self.messages[message.index()].channel)
            }
            _ => false,
        };
        body.iter().filter(is_counted).count()
    }
}
