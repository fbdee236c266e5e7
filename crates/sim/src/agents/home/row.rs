//! Effects of a home's row on memory, messages and the device, for [`agent::home`].
//!
//! [`agent::home`]: cohkit_system::agent::home

use cohkit_system::agent::{Bytes, HomeContext, MemoryOp, OutgoingMessage, RowContext, RowProblem};
use std::convert::Infallible;
use std::ops::Range;

use super::super::program::number_of;
use super::*;
use crate::message::FIELDS;

/// An input that the home takes, and the transition of its row.
#[derive(Clone, Copy)]
pub(crate) struct TakenInput<'m> {
    /// Input that the home takes.
    pub work: Work,
    /// Line that the input concerns.
    pub line: Line,
    /// The message, if the input is one.
    pub message: Option<&'m Message>,
    /// Configuration of the line before the row.
    pub before: ConfigurationId,
    /// Transition of the row.
    pub transition: &'m Transition,
}

/// Execution context of a home's row. Problems fail the run, and the row is still applied to its end.
pub(super) struct HomeRow<'r, 'c> {
    /// All homes.
    pub home: &'r mut Home,
    /// Parts of the machine that the row changes.
    pub env: &'r mut HomeEnvironment<'c>,
    /// The input, and the transition of its row.
    pub input: &'r TakenInput<'r>,
    /// Numbers of the row's acts in the program, of those that have not been executed.
    pub acts: Range<u32>,
    /// Time at which messages and memory operations of the row are ready, in picoseconds.
    pub ready: Time,
}

impl RowContext for HomeRow<'_, '_> {
    type Copy = Copy;
    type Fields = [u16; FIELDS];
    type Error = Infallible;

    #[inline(always)]
    fn next_act(&mut self) -> Option<Act> {
        let act = self.acts.next()?;
        Some(self.home.executor.program.act(act))
    }

    #[inline(always)]
    fn is_current(&self, copy: &Copy) -> bool {
        self.env.context.is_current(self.input.line, *copy)
    }

    #[inline(always)]
    fn share(&mut self, copy: &Copy) -> Copy {
        self.env.context.contents.data.share(*copy)
    }

    #[inline(always)]
    fn release(&mut self, copy: Copy) {
        self.env.context.contents.data.release(copy);
    }

    #[cold]
    fn report(&mut self, problem: RowProblem<Copy>) -> Result<(), Infallible> {
        let (line, context) = (self.input.line, &mut self.env.context);
        let text = match problem {
            RowProblem::StaleSingleUse(message, copy) => {
                context.report_stale_single_use(line, message, *copy);
                return Ok(());
            }
            RowProblem::ReadUnderLock => {
                context.report_read_under_lock(line);
                return Ok(());
            }
            RowProblem::NoLineToWrite => "the home writes memory without data",
            RowProblem::NoStoreToDefer => "the home defers a store, but its message carries none",
            _ => "the home executes an action that only a cache can execute",
        };
        context.fail(FailureKind::Meaningless, line, text.into());
        Ok(())
    }

    /// Sends a message, at once or, with a clocked home, when the message leaves the RTL.
    #[inline(always)]
    fn send(&mut self, outgoing: OutgoingMessage<Copy, [u16; FIELDS]>) -> Result<(), Infallible> {
        let OutgoingMessage {
            message: kind,
            to,
            fields,
            bytes,
        } = outgoing;
        let (line, tables) = (self.input.line, self.env.context.tables);
        let copy = match bytes {
            Bytes::Line(copy) => Some(copy),
            Bytes::None | Bytes::Write => None,
        };
        let class = tables.kinds[kind.index()].class;
        if class == Some(Class::Forward) && tables.declares_responses {
            let unit = &mut self.home.units[tables.unit_of(line)];
            unit.unanswered_forwards += 1;
            unit.forwarded_line = line;
        }
        let message = Message {
            line: tables.line_of(kind, line, to),
            copy: copy.unwrap_or(Copy::UNTOUCHED),
            kind,
            from: HOME,
            to: number_of(to),
            // The sending home, for messages between homes.
            word: tables.home_of(line) as u16,
            words: 0,
            fields,
            credit: false,
            flight: 0,
        };
        let number = self.home.delayed.next_number();
        // Memory is accessed without a delay in the controller's terms. Its latency is added here.
        let ready = match copy.is_some() && !matches!(self.input.work, Work::Read(_)) {
            true => {
                let context = &mut self.env.context;
                (self.env.memory).start_for_message(context, self.ready, line, number)
            }
            false => Some(self.ready),
        };
        if let Some(message) = self.home.hold_message(message) {
            (self.home).send_in_order(self.env, message, number, ready);
        }
        Ok(())
    }
}

impl HomeContext for HomeRow<'_, '_> {
    /// Contents carry the number of the write that created them, so comparison with the last write shows that they are
    /// stale.
    #[inline(always)]
    fn mark_stale(&self, copy: &Copy) -> Copy {
        *copy
    }

    #[inline(always)]
    fn memory(&mut self) -> Copy {
        let copy = self.env.memory.copy(self.input.line);
        self.env.context.contents.data.share(copy)
    }

    /// A read that memory has completed was checked when it began.
    #[inline(always)]
    fn may_read_memory(&self) -> bool {
        let locks = &self.env.context.local.locks;
        matches!(self.input.work, Work::Read(_))
            || locks.permission(self.input.line) != Permission::Write
    }

    fn set_memory(&mut self, copy: Copy) -> Result<(), Infallible> {
        self.start_posted_write();
        self.write_back(copy);
        Ok(())
    }

    fn store(&mut self, whole_line: bool) -> Result<(), Infallible> {
        self.start_posted_write();
        if let Some(message) = self.input.message {
            let store = Store::from_message(message, whole_line);
            self.home.perform_store(self.env, store, whole_line);
        }
        Ok(())
    }

    fn defer_write(&mut self, whole_line: bool) -> Result<(), Infallible> {
        let line = self.input.line;
        let store = (self.input.message).map(|message| Store::from_message(message, whole_line));
        let stores = &mut self.home.units[self.env.context.tables.unit_of(line)].deferred_stores;
        match store {
            Some(store) if stores.iter().all(|store| store.line != line) => stores.push(store),
            _ => {
                let text = "the home defers a store without a free slot".to_string();
                (self.env.context).fail(FailureKind::Meaningless, line, text);
            }
        }
        Ok(())
    }

    fn commit_deferred(&mut self) -> Result<(), Infallible> {
        self.start_posted_write();
        if let Some(store) = self.take_deferred_store() {
            self.home
                .perform_store(self.env, store, store.is_whole_line);
        }
        Ok(())
    }

    #[inline(always)]
    fn start(&mut self, operation: MemoryOp<Copy>) -> Result<(), Infallible> {
        match operation {
            MemoryOp::Read => self.start_read(),
            MemoryOp::Write(copy) => {
                self.write_back(copy);
                self.start_write(None);
            }
            MemoryOp::Store { whole } => {
                let store = self.take_deferred_store();
                let words = store.and_then(|store| self.home.perform_store(self.env, store, whole));
                self.start_write(words);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn acknowledge(&mut self, local: u8) -> Result<(), Infallible> {
        let line = self.input.line;
        if !self.home.take_directory_eviction(line) {
            self.home.complete_local_operation(self.env, line, local);
        }
        Ok(())
    }

    #[inline(always)]
    fn acknowledge_unlock(&mut self) {
        match &mut self.home.upper_level {
            Some(above) => above.end_unlock(self.input.line),
            None if self.env.application.is_some() => {}
            None => self.env.device.end_operation(&mut self.env.context),
        }
    }
}

impl HomeRow<'_, '_> {
    /// Removes the bytes that the line's unit has kept of a write.
    fn take_deferred_store(&mut self) -> Option<Store> {
        let (line, context) = (self.input.line, &mut self.env.context);
        let stores = &mut self.home.units[context.tables.unit_of(line)].deferred_stores;
        let position = stores.iter().position(|store| store.line == line);
        if position.is_none() {
            let text = "the home commits a deferred store that it does not have".to_string();
            context.fail(FailureKind::Meaningless, line, text);
        }
        position.map(|position| stores.remove(position))
    }

    /// Starts a memory write that the home does not wait for.
    fn start_posted_write(&mut self) {
        let context = &mut self.env.context;
        (self.env.memory).start_posted_write(context, self.ready, self.input.line);
    }

    /// Starts the memory read of the row, or defers it until the RTL requests it.
    #[inline(always)]
    fn start_read(&mut self) {
        let TakenInput {
            line, transition, ..
        } = *self.input;
        if !self.home.defer_memory_read(line, transition) {
            self.home.units[self.env.context.tables.unit_of(line)].reads_in_flight += 1;
            (self.home).read_memory(self.env, self.ready, line, transition);
        }
    }

    /// Starts the memory write of the row, or defers it until the RTL requests it. `words` are the only words written;
    /// `None` means all.
    fn start_write(&mut self, words: Option<Range<u16>>) {
        let (line, next) = (self.input.line, self.input.transition.next);
        let context = &self.env.context;
        if !self.home.defer_memory_write(context, line, next, words) {
            self.home.units[context.tables.unit_of(line)].writes_in_flight += 1;
            self.home.write_memory(self.env, self.ready, line, next);
        }
    }

    /// Replaces memory's content by one that a cache has written back.
    fn write_back(&mut self, copy: Copy) {
        let (line, env) = (self.input.line, &mut *self.env);
        env.memory
            .set_copy(&mut env.context.contents.data, line, copy);
        if let Some(above) = &mut self.home.upper_level {
            above.notify_written(line);
        }
        if let Some(application) = &mut env.application {
            application.record_write_back(line);
        }
    }
}
