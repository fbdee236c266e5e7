//! The copies of a line in caches, memory and messages: each has a bit that is true if it is current.

use cohkit_engine::build::assert;
use cohkit_engine::model::{Expr, Stmt, Violation};
use cohkit_protocol::controller::Access;
use cohkit_system::agent::STALE_RESPONSE_IN_FLIGHT;
use std::rc::Rc;

use super::channels::Channels;
use super::context::Context;
use super::frame::Frame;
use super::memory::Memory;
use super::stores::PendingStores;

/// All copies of the lines.
pub(super) struct Copies<'p> {
    /// Fixed parts of the system.
    frame: Rc<Frame<'p>>,
    /// Messages in flight, some with copies.
    channels: Rc<Channels<'p>>,
    /// Pending stores, for the copies that atomic accesses have read.
    stores: Rc<PendingStores<'p>>,
    /// State variables of the copies in caches and memory.
    pub memory: Memory,
}

impl<'p> Copies<'p> {
    /// Creates the copies from the components that hold them.
    pub fn new(
        channels: &Rc<Channels<'p>>,
        stores: &Rc<PendingStores<'p>>,
        memory: Memory,
    ) -> Copies<'p> {
        Copies {
            frame: channels.frame.clone(),
            channels: channels.clone(),
            stores: stores.clone(),
            memory,
        }
    }

    /// Returns the effects of a write on the copies of a line: all become stale, that of memory only if
    /// `includes_memory`. The caller then makes the written copy current. Empty without the coherence guarantee, as
    /// the bits are not read there.
    pub fn mark_stale(&self, line: &Expr, includes_memory: bool) -> Vec<Stmt> {
        if !self.frame.facts.coherent {
            return Vec::new();
        }
        let mut out = vec![self.memory.copies.at(line).clear()];
        out.extend(self.stores.outdate_atomic_reads(line));
        if includes_memory {
            out.push(self.memory.current.at(line).set(false));
        }
        if let Some(slot) = self.memory.slot {
            out.push(slot.current.at(line).set(false));
        }
        out.extend(self.channels.mark_copies_stale(line));
        out
    }

    /// True if a copy of the line other than that of `remote` (`None`: memory) is current.
    pub fn has_other_current(&self, line: &Expr, remote: Option<&Expr>) -> Expr {
        if !self.frame.facts.coherent {
            return Expr::Bool(false);
        }
        let copies = self.memory.copies.at(line);
        let mut exists = match remote {
            Some(_) if self.frame.remotes == 1 => Expr::Bool(false),
            _ => self.frame.any_remote(|holder| {
                let is_other = remote.map_or(Expr::Bool(true), |remote| holder.is_not(remote));
                is_other.and(copies.at(holder))
            }),
        };
        if remote.is_some() {
            exists = exists.or(self.memory.current.at(line));
        }
        exists = exists.or(self.stores.has_last_value_read(line));
        if let Some(slot) = self.memory.slot {
            exists = exists.or(slot.current.at(line));
        }
        let in_messages = self.channels.current_copies(line);
        in_messages.into_iter().fold(exists, Expr::or)
    }

    /// Asserts that no response to the read that begins is in flight with a copy that is already stale.
    pub fn assert_no_stale_response(&self, context: &Context, read: Access) -> Vec<Stmt> {
        let responses = self.frame.facts.answers(read);
        let stale = self.channels.stale_in_flight(responses, context);
        let violation = || Violation::new("data value", STALE_RESPONSE_IN_FLIGHT);
        let asserts = stale
            .into_iter()
            .map(|is_stale| assert(violation(), !is_stale));
        asserts.collect()
    }
}
