//! Reads and writes of accesses at the time when a cache or the home performs them.

use super::*;
use crate::data::Copy;
use crate::message::CoreId;

impl Frontend {
    /// Gives the bytes that an access has read to its requester. `in_place`: they are a copy of the access's own cache.
    #[inline(always)]
    pub fn read(&mut self, context: &mut Context, access: &Pending, copy: Copy, in_place: bool) {
        if access.purpose == Purpose::Port {
            if let Some(port) = &mut self.port {
                port.read(context, access, copy, in_place);
            }
        } else if self.threads.is_some() {
            let value = context.contents.data.word(access.line, copy, access.word);
            self.set_thread_result(access.core, value);
        }
    }

    /// Performs a store, or all stores that the access stands for, in a copy of the line. Returns the new copy,
    /// which replaces the given one.
    pub fn write(&mut self, context: &mut Context, access: &Pending, copy: Copy) -> Copy {
        match access.purpose {
            Purpose::Drain => return self.cores.perform_buffered_stores(context, access, copy),
            Purpose::Port => return self.write_by_port(context, access, copy),
            Purpose::Core | Purpose::Posted | Purpose::Atomic | Purpose::Hint => {}
        }
        let Pending {
            line,
            word,
            words,
            mut value,
            ..
        } = *access;
        if access.purpose == Purpose::Atomic {
            self.check_load(context, access, copy);
            let old = context.contents.data.word(line, copy, word);
            self.set_thread_result(access.core, old);
            match self.updated_value(access.core, old) {
                Some(new) => value = new,
                None => return copy,
            }
        }
        self.write_words(context, access, copy, (word, words), value)
    }

    /// Performs a write of the whole line, which replaces a copy of it.
    pub fn write_full_line(&mut self, context: &mut Context, access: &Pending, old: Copy) -> Copy {
        if access.purpose == Purpose::Port {
            return self.write_by_port(context, access, old);
        }
        let words = 0..context.contents.data.words();
        let oracle = &mut context.contents.oracle;
        let version = oracle.write(access.line, words.clone(), access.value);
        self.record_write(context, access, words, version);
        let data = &mut context.contents.data;
        let copy = data.filled(access.value);
        data.stamp(copy, version);
        data.release(old);
        copy
    }

    /// Performs the atomic access that a cache has sent to the home, on a copy of memory's bytes whose word is `old`.
    pub fn write_atomic(
        &mut self,
        context: &mut Context,
        access: &Pending,
        copy: Copy,
        old: u64,
    ) -> Copy {
        match self.updated_value(access.core, old) {
            Some(new) => self.write_words(context, access, copy, (access.word, 1), new),
            None => copy,
        }
    }

    /// Writes `value` to `count` words from `first` on, in a copy of the line. Returns the new copy.
    fn write_words(
        &mut self,
        context: &mut Context,
        access: &Pending,
        copy: Copy,
        (first, count): (u16, u16),
        value: u64,
    ) -> Copy {
        let words = first..first + count;
        let (copy, version) = context.write_words(access.line, copy, words.clone(), value);
        self.record_write(context, access, words, version);
        copy
    }

    /// Performs a write of another space in a copy of the line.
    pub fn write_by_port(&mut self, context: &mut Context, access: &Pending, copy: Copy) -> Copy {
        match &mut self.port {
            Some(port) => port.write(context, access, copy),
            None => copy,
        }
    }

    /// Returns the bytes of a write that a cache sends to the home: those of each word of a port's write, or one value in
    /// every word.
    pub fn bytes_to_send(&mut self, context: &mut Context, access: &Pending) -> Copy {
        match (&mut self.port, access.purpose) {
            (Some(port), Purpose::Port) => port.bytes_to_send(context, access),
            _ => context.contents.data.filled(access.value),
        }
    }

    /// Records that the home performs the store of an outstanding access, which becomes visible.
    pub fn record_visible(&mut self, context: &mut Context, access: &Pending) {
        match access.purpose {
            Purpose::Drain => self.cores.record_visible_buffer(context, access),
            _ if access.is_store() => context.record_visible_stores(&[access.issued]),
            _ => {}
        }
    }

    /// Completes an atomic access that the home has performed. `answered_value` is the word in the answer.
    pub fn complete_home_atomic(
        &mut self,
        context: &mut Context,
        access: &Pending,
        answered_value: u64,
    ) {
        if answered_value != access.value {
            let text = format!(
                "an atomic access of {} found {:#x} and is answered with {answered_value:#x}",
                context.agent_name(access.cache),
                access.value
            );
            context.fail(FailureKind::DataValue, access.line, text);
        }
        self.set_thread_result(access.core, answered_value);
    }

    /// Checks a load that is performed with these bytes now.
    #[inline(always)]
    pub fn check_load(&self, context: &mut Context, access: &Pending, copy: Copy) {
        context.check_load(access, copy, self.threads.as_deref());
    }

    /// Records a performed write of a core, for models in which copies may be stale.
    #[inline(always)]
    pub fn record_write(
        &self,
        context: &mut Context,
        access: &Pending,
        words: std::ops::Range<u16>,
        version: u32,
    ) {
        let oracle = &mut context.contents.oracle;
        if oracle.may_be_stale() {
            let threads = self.threads.as_ref();
            let is_release = threads.is_some_and(|threads| threads.is_release(access.core));
            let writer = (access.core, is_release);
            oracle.record_observed_write(writer, access.line, words, version);
        }
    }

    /// Returns the new value that an atomic access of a core's thread writes; `None` if the access only reads.
    fn updated_value(&self, core: CoreId, old: u64) -> Option<u64> {
        self.threads.as_ref()?.updated_value(core, old)
    }
}
