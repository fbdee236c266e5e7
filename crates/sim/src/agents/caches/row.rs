//! Effects of a cache's row on the cache's copy, its messages and its accesses, for [`agent::remote`].
//!
//! [`agent::remote`]: cohkit_system::agent::remote

use cohkit_protocol::controller::Access;
use cohkit_system::agent::{Bytes, OutgoingMessage, RemoteContext, RowContext, RowProblem};
use std::convert::Infallible;
use std::ops::Range;

use super::super::program::{number_of, Act};
use super::*;
use crate::message::FIELDS;
use crate::oracle::Level;
use crate::simulation::Pending;

/// Execution context of a cache's row. Problems fail the run, and the row is still applied to its end.
pub(super) struct CacheRow<'r, 'c> {
    /// All caches.
    pub caches: &'r mut Caches,
    /// Parts of the machine that the row changes.
    pub env: &'r mut CacheEnvironment<'c>,
    /// The cache that executes the row.
    pub cache: Agent,
    /// Line of the row.
    pub line: Line,
    /// The line's entry. Its copy is that before the row, until the row has been applied.
    pub entry: &'r mut Entry,
    /// Numbers of the row's acts in the program, of those that have not been executed.
    pub acts: Range<u32>,
    /// The access that starts with the row, if any.
    pub access: Option<u32>,
    /// Copy that the cache held before the row, if any.
    pub own_copy: Option<Copy>,
    /// True if the current message carries a copy of the line.
    pub carries_line: bool,
}

impl RowContext for CacheRow<'_, '_> {
    type Copy = Option<Copy>;
    type Fields = [u16; FIELDS];
    type Error = Infallible;

    #[inline(always)]
    fn next_act(&mut self) -> Option<Act> {
        let act = self.acts.next()?;
        Some(self.caches.executor.program.act(act))
    }

    #[inline(always)]
    fn is_current(&self, copy: &Option<Copy>) -> bool {
        copy.is_none_or(|copy| self.env.context.is_current(self.line, copy))
    }

    #[inline(always)]
    fn share(&mut self, copy: &Option<Copy>) -> Option<Copy> {
        copy.map(|copy| self.env.context.contents.data.share(copy))
    }

    #[inline(always)]
    fn release(&mut self, copy: Option<Copy>) {
        if let Some(copy) = copy {
            self.env.context.contents.data.release(copy);
        }
    }

    #[cold]
    fn report(&mut self, problem: RowProblem<Option<Copy>>) -> Result<(), Infallible> {
        let (cache, line) = (self.cache, self.line);
        match problem {
            RowProblem::StaleSingleUse(message, Some(copy)) => {
                (self.env.context).report_stale_single_use(line, message, *copy);
            }
            RowProblem::StalePartialWrite(Some(copy)) => {
                self.env.context.report_stale_write(cache, line, *copy);
            }
            // A read checks its value itself.
            RowProblem::StaleRead(_) => {}
            RowProblem::AmbiguousCompletion => {
                self.report_unsupported("`done` does not identify its access");
            }
            _ => self.report_unsupported("an action of a home"),
        }
        Ok(())
    }

    #[inline(always)]
    fn send(
        &mut self,
        outgoing: OutgoingMessage<Option<Copy>, [u16; FIELDS]>,
    ) -> Result<(), Infallible> {
        let OutgoingMessage {
            message: kind,
            to,
            fields,
            bytes,
        } = outgoing;
        let (copy, word, words) = match bytes {
            Bytes::None => (Copy::UNTOUCHED, 0, 0),
            Bytes::Line(Some(copy)) => (copy, 0, 0),
            Bytes::Line(None) => {
                self.report_missing_line();
                return Ok(());
            }
            Bytes::Write => self.bytes_to_send(),
        };
        let message = Message {
            line: self.env.context.tables.line_of(kind, self.line, to),
            copy,
            kind,
            from: self.cache,
            to: number_of(to),
            word,
            words,
            fields,
            credit: false,
            flight: 0,
        };
        self.caches.send(self.env, message);
        Ok(())
    }
}

impl RemoteContext for CacheRow<'_, '_> {
    fn write(&mut self, copy: Option<Copy>) -> Result<Option<Copy>, Infallible> {
        let Some(access) = self.pending_access() else {
            return Ok(copy);
        };
        let (frontend, context) = (&mut self.env.frontend, &mut self.env.context);
        let new_copy = match copy {
            Some(copy) => Some(match access.kind {
                Access::WriteLine => frontend.write_full_line(context, &access, copy),
                _ => frontend.write(context, &access, copy),
            }),
            None => {
                self.report_unsupported("`done` without data");
                None
            }
        };
        self.complete(&access);
        Ok(new_copy)
    }

    /// Leaves the copy as it is: the write is performed once the row's new permission has been checked and recorded.
    #[inline(always)]
    fn write_in_place(&mut self, copy: Option<Copy>) -> Result<Option<Copy>, Infallible> {
        Ok(copy)
    }

    fn read(&mut self, copy: &Option<Copy>) -> Result<(), Infallible> {
        let Some(access) = self.pending_access() else {
            return Ok(());
        };
        match *copy {
            Some(copy) => complete_read(self.env, &access, copy, !self.carries_line),
            None => self.report_unsupported("`done` without data"),
        }
        self.complete(&access);
        Ok(())
    }

    fn complete_sent_write(
        &mut self,
        returned_copy: Option<&Option<Copy>>,
    ) -> Result<(), Infallible> {
        if let Some(access) = self.pending_access() {
            let source = returned_copy.copied().unwrap_or(self.own_copy);
            self.complete_performed_write(&access, source);
            self.complete(&access);
        }
        Ok(())
    }

    /// Checks that the row does not cancel a store that the home has performed.
    #[inline(always)]
    fn abandon_write(&mut self) {
        let context = &mut self.env.context;
        let first_access = self.entry.first_access;
        let is_performed = first_access != NONE && context.local.accesses[first_access].performed;
        let oracle = &context.contents.oracle;
        if is_performed && oracle.level > Level::Off {
            let (property, name) = (oracle.store_property(), context.agent_name(self.cache));
            let text = format!("a store of {name} is cancelled although the home has performed it");
            context.fail(property, self.line, text);
        }
    }

    fn bulk_transition(&mut self, from: StateId, to: StateId) -> Result<(), Infallible> {
        self.caches.bulk_transitions.push((from, to));
        Ok(())
    }
}

impl CacheRow<'_, '_> {
    /// Returns the bytes of the outstanding write for a message to the home: copy, first word and number of words.
    fn bytes_to_send(&mut self) -> (Copy, u16, u16) {
        let first_access = self.entry.first_access;
        let index = self
            .access
            .or((first_access != NONE).then_some(first_access));
        let pending = index.map(|index| self.env.context.local.accesses[index]);
        let (Some(index), Some(access)) = (index, pending.filter(|access| access.kind.writes()))
        else {
            self.report_unsupported("its row sends the data of a write without a pending write");
            return (Copy::UNTOUCHED, 0, 0);
        };
        if access.purpose == Purpose::Atomic && access.kind != Access::Atomic {
            let reason = "an atomic access needs the line, but its row sends the data to the home";
            self.report_unsupported(reason);
        }
        let context = &mut self.env.context;
        // The next message to be sent gets this flight number.
        let flight = context.local.flights.wrapping_add(1);
        let cache_line = (self.cache, self.line);
        (context.contents.oracle).record_store_sent(cache_line, flight, access.sent);
        let pending_access = &mut context.local.accesses[index];
        (pending_access.sent, pending_access.flight) = (true, flight);
        let copy = self.env.frontend.bytes_to_send(context, &access);
        (copy, access.word, access.words)
    }

    /// Returns the access that `done` completes.
    fn pending_access(&mut self) -> Option<Pending> {
        if self.entry.first_access == NONE {
            self.report_unsupported("`done` without an access");
            return None;
        }
        Some(self.env.context.local.accesses[self.entry.first_access])
    }

    /// Removes the completed access from the line's queue, and notifies the core.
    fn complete(&mut self, access: &Pending) {
        let index = std::mem::replace(&mut self.entry.first_access, access.next);
        (self.caches).complete_access(self.env, index, false, true);
    }

    /// Completes a write that the home has performed. `source` has the old value of an atomic access.
    fn complete_performed_write(&mut self, access: &Pending, source: Option<Copy>) {
        let Pending { cache, line, .. } = *access;
        let context = &mut self.env.context;
        if !access.performed {
            let name = context.agent_name(cache);
            let text = format!("{name} completes a write that the home has not performed");
            let property = context.contents.oracle.store_property();
            return context.fail(property, line, text);
        }
        if access.purpose != Purpose::Atomic || access.kind != Access::Atomic {
            return;
        }
        let data = &context.contents.data;
        let old_value = source.map(|copy| data.word(line, copy, access.word));
        match old_value.or(access.found) {
            Some(old_value) => (self.env.frontend).complete_home_atomic(context, access, old_value),
            None => self.report_unsupported("`done` without the old value of an atomic access"),
        }
    }

    /// Fails the run because the row sends a line that the cache does not have.
    #[cold]
    fn report_missing_line(&mut self) {
        let context = &mut self.env.context;
        let name = context.agent_name(self.cache);
        let text = format!("{name} sends a line it does not have");
        context.fail(FailureKind::Meaningless, self.line, text);
    }

    /// Fails the run because of a problem of the row.
    #[cold]
    fn report_unsupported(&mut self, problem: &str) {
        let configuration = self.entry.configuration;
        (self.caches).report_unsupported(self.env, self.cache, self.line, configuration, problem);
    }
}

/// Completes a read with the bytes of a message, or of the cache's own copy if `in_place`.
fn complete_read(env: &mut CacheEnvironment, access: &Pending, copy: Copy, in_place: bool) {
    let context = &mut env.context;
    // The bytes of a message were checked when it was sent, which may have been before the read started.
    context.check_own_stores(access, copy);
    if in_place || context.contents.oracle.may_be_stale() {
        env.frontend.check_load(context, access, copy);
    } else if context.contents.data.version(copy) < access.since {
        let (name, since) = (context.agent_name(access.cache), access.since);
        let text = format!("{name} completes a read with data that were stale before write {since}, although the read started later");
        context.fail(FailureKind::DataValue, access.line, text);
    }
    env.frontend.read(context, access, copy, in_place);
}
