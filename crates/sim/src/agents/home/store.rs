//! Bytes of non-caching writes at the home, and their performance at memory.

use std::ops::Range;

use super::*;
use crate::message::Agent;
use crate::oracle::Breach;
use crate::simulation::{Pending, Purpose};

/// Bytes of a non-caching write, from the acceptance of its request until memory accepts them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    /// Line that is written.
    pub line: Line,
    /// Bytes. If only a part is written, the value is in word 0. The store is a holder of this content.
    copy: Copy,
    /// First word written, if only a part is written.
    word: u16,
    /// Number of words written, if only a part is written.
    words: u16,
    /// Cache that has sent the bytes.
    from: Agent,
    /// Flight number of its message.
    flight: u32,
    /// True if the message carries a whole line.
    pub is_whole_line: bool,
}

impl Store {
    /// Returns the bytes that a message carries for a store.
    pub fn from_message(message: &Message, is_whole_line: bool) -> Store {
        Store {
            line: message.line,
            copy: message.copy,
            word: message.word,
            words: message.words.max(1),
            from: message.from,
            flight: message.flight,
            is_whole_line,
        }
    }

    /// Performs the write at memory. Returns the words if only a part is written.
    pub fn perform(self, env: &mut HomeEnvironment, is_whole_line: bool) -> Option<Range<u16>> {
        let (store_key, flight) = ((self.from, self.line), self.flight);
        let words = self.write(env, is_whole_line);
        let context = &mut env.context;
        let oracle = &mut context.contents.oracle;
        if let Err(breach) = oracle.record_store_performed(store_key, flight) {
            let property = oracle.store_property();
            let name = context.agent_name(store_key.0);
            let (kind, text) = match breach {
                Breach::Twice => (
                    property,
                    format!("a store of {name} is performed twice, or after it was cancelled"),
                ),
                Breach::Overtakes => (
                    FailureKind::ProgramOrder,
                    format!("a store of {name} is performed before an earlier one to the line"),
                ),
            };
            context.fail(kind, store_key.1, text);
        }
        words
    }

    /// Writes the bytes to memory. Returns the words if only a part is written and the bytes were those of the
    /// message.
    fn write(self, env: &mut HomeEnvironment, is_whole_line: bool) -> Option<Range<u16>> {
        let (line, context) = (self.line, &mut env.context);
        if context.local.locks.permission(line) > Permission::None {
            let name = context.agent_name(self.from);
            let text = format!("a store of {name} reaches memory under the device's lock");
            context.fail(FailureKind::SingleWriter, line, text);
        }
        let pending_store = self.outstanding_access(env);
        let context = &mut env.context;
        // The values of these writes are taken from their source, not from the bytes that arrived.
        let uses_source_value = |access: &Pending| {
            matches!(
                access.purpose,
                Purpose::Drain | Purpose::Port | Purpose::Atomic
            )
        };
        let source_access = pending_store.filter(uses_source_value);
        let value = context.contents.data.word(line, self.copy, 0);
        if is_whole_line && source_access.is_none() {
            let words = 0..context.contents.data.words();
            let version = context.contents.oracle.write(line, words.clone(), value);
            if let Some(pending_store) = &pending_store {
                (env.frontend).record_write(context, pending_store, words, version);
            }
            let data = &mut context.contents.data;
            data.stamp(self.copy, version);
            env.memory.set_copy(data, line, self.copy);
            return None;
        }
        let is_port_access = |access: &Pending| access.purpose == Purpose::Port;
        let old_copy = match &source_access {
            // The bytes of a port have a value of their own in each word.
            Some(access) if is_whole_line && is_port_access(access) => self.copy,
            _ => {
                let copy = env.memory.copy(line);
                context.check_memory(line, copy, "is written in part");
                copy
            }
        };
        let old_copy = context.contents.data.share(old_copy);
        let words = self.word..self.word + self.words;
        let new_copy = match &source_access {
            Some(access) if access.purpose == Purpose::Atomic => {
                let old_value = context.contents.data.word(line, old_copy, access.word);
                env.caches.record_old_value(context, access, old_value);
                (env.frontend).write_atomic(context, access, old_copy, old_value)
            }
            // The contents of a sent write-buffer entry do not change until it has been performed.
            Some(access) => env.frontend.write(context, access, old_copy),
            None => {
                let (copy, version) = context.write_words(line, old_copy, words.clone(), value);
                if let Some(pending_store) = &pending_store {
                    (env.frontend).record_write(context, pending_store, words.clone(), version);
                }
                copy
            }
        };
        let data = &mut context.contents.data;
        env.memory.set_copy(data, line, new_copy);
        data.release(self.copy);
        source_access.is_none().then_some(words)
    }

    /// Records that the write becomes visible. Returns the access that sent it, if that access is outstanding.
    fn outstanding_access(&self, env: &mut HomeEnvironment) -> Option<Pending> {
        let (cache, context) = (self.from, &mut env.context);
        let cores = &mut env.frontend.cores;
        if let Some(issued) = cores.posted_stores.remove(&(cache, self.flight)) {
            context.record_visible_stores(&issued);
        }
        let access = (env.caches).outstanding_write(context, cache, self.line, self.flight)?;
        env.frontend.record_visible(context, &access);
        Some(access)
    }
}
