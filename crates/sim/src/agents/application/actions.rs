//! Actions of the application: answers to the home, local operations, its memory, the host, and measurements.

use std::ops::Range;

use cohkit_application::interface::Update;

use super::super::thread::MAX_REQUESTED_TIME;
use super::*;

/// Maximum number of lines in one burst. More are reported as an error of the application, because each line is an
/// event.
const MAX_LINES: Line = 1 << 16;

impl Application {
    /// Carries out one action of the application.
    pub(super) fn execute_action(&mut self, env: &mut ApplicationEnvironment, action: Action) {
        let now = env.context.now();
        let Some(threads) = &mut env.frontend.threads else {
            return;
        };
        let scenario = &mut threads.scenario;
        if self.is_hardware && !is_measurement(&action) {
            let name = &scenario.name;
            let text = format!("{name} is in hardware, but its software model acts too");
            return env.context.fail(FailureKind::Contract, 0, text);
        }
        if let Err(breach) = scenario.contract.check_action(&action) {
            let text = format!("{} {}", scenario.name, breach.description);
            return env.context.fail(FailureKind::Contract, breach.line, text);
        }
        match action {
            Action::Answer { line, words } => {
                self.write_homed_line(env, line, &words);
                let arrival = now + env.context.tables.times.path.1;
                env.context.schedule(arrival, KernelEvent::Read(line));
            }
            Action::Accept { line } => {
                let arrival = now + env.context.tables.times.path.1;
                env.context.schedule(arrival, KernelEvent::Written(line));
            }
            Action::Local {
                line,
                operation,
                lock,
            } => self.request_local(env, line, operation, lock),
            Action::Unlock { line } => {
                let times = &env.context.tables.times;
                let arrival = self.unlock_ports.enter(line, now, times.local_interval);
                let arrival = arrival + times.local.0;
                (env.context).schedule(arrival, KernelEvent::LocalUnlock(line));
            }
            Action::Wake { tag, delay } => self.wake(env, tag, delay),
            // Only the contract needs this action.
            Action::Abandon { .. } => {}
            Action::Begin { tag } => drop(self.measurement_starts.insert(tag, now)),
            Action::End { tag, name } => {
                if let Some(since) = self.measurement_starts.remove(&tag) {
                    scenario.record_duration(name, since, now);
                }
            }
            Action::Count { name, by } => scenario.add_count(name, by, now),
            action => self.access(env, action),
        }
    }

    /// Carries out an access of the application to its memory or to the host.
    fn access(&mut self, env: &mut ApplicationEnvironment, action: Action) {
        match action {
            Action::Fetch { tag, first, lines } => self.read_burst(env, tag, first, (lines, 1)),
            Action::Store { tag, line, words } => self.store_memory_line(env, tag, line, words),
            Action::ReadWords {
                tag,
                line,
                word,
                words,
            } => {
                let word_range = usize::from(word)..usize::from(word + words);
                let words = self.memory_words(env, line)[word_range.clone()].into();
                self.end_word_access(env, line, word_range, Event::ReadCompletion { tag, words });
            }
            Action::WriteWords {
                tag,
                line,
                word,
                words,
            } => {
                let word_range = usize::from(word)..usize::from(word) + words.len();
                let mut line_words = self.memory_words(env, line);
                line_words[word_range.clone()].copy_from_slice(&words);
                self.set_memory_words(env, line, line_words);
                self.end_word_access(env, line, word_range, Event::StoreCompletion { tag });
            }
            Action::UpdateWord {
                tag,
                line,
                word,
                update,
            } => self.update_memory_word(env, tag, (line, word.into()), update),
            action => {
                let (host, mut host_env) =
                    self.host_and_environment(&mut env.context, env.frontend);
                host.execute_action(&mut host_env, action);
            }
        }
    }

    /// Requests a local operation of the home.
    fn request_local(
        &mut self,
        env: &mut ApplicationEnvironment,
        line: Line,
        operation: Operation,
        lock: bool,
    ) {
        let context = &mut env.context;
        let name = scenario_name(env.frontend);
        let operations = &self.operations[usize::from(operation == Operation::CleanInvalidate)];
        let Some(operation_index) = operations[usize::from(lock)] else {
            let text = describe_missing_operation(name, operation, lock);
            return context.fail(FailureKind::Incompatible, line, text);
        };
        if line >= context.tables.platform.lines {
            let text = format!("{name} cleans a line outside the memory of the home");
            return context.fail(FailureKind::Contract, line, text);
        }
        let (now, times) = (context.now(), &context.tables.times);
        self.pending_operations.insert(line, (now, false));
        // The operation may concern a line whose unlock still waits at the other port. It must not overtake that
        // unlock.
        let interval = times.local_interval;
        // The device gives local operations to all slices through one port.
        let departure = now.max(self.next_issue);
        self.next_issue = departure + times.issue;
        let ready = departure.max(self.unlock_ports.last_accepted(line, interval));
        let arrival = self.local_ports.enter(line, ready, interval) + times.local.0;
        context.schedule(arrival, KernelEvent::Local(line, operation_index));
    }

    /// Schedules a wake-up that the application requests after `delay` picoseconds.
    fn wake(&mut self, env: &mut ApplicationEnvironment, tag: u32, delay: Time) {
        let wake_time = env.context.now().checked_add(delay);
        let Some(wake_time) = wake_time.filter(|wake_time| *wake_time < MAX_REQUESTED_TIME) else {
            let text = format!(
                "{} requests a wake-up after {delay} ps, which is beyond the end of simulated time",
                scenario_name(env.frontend)
            );
            return env.context.fail(FailureKind::Contract, 0, text);
        };
        let event = Event::Timer { tag };
        self.events.schedule(&mut env.context, wake_time, event);
    }
}

/// Memory of the application.
impl Application {
    /// Reads a burst from the application's memory: a number of lines, and the distance between consecutive ones.
    pub(super) fn read_burst(
        &mut self,
        env: &mut ApplicationEnvironment,
        tag: u32,
        first: Line,
        (lines, step): (Line, Line),
    ) {
        let burst_end = lines.min(MAX_LINES).checked_mul(step);
        let burst_end = burst_end.and_then(|length| first.checked_add(length));
        let Some(end) = burst_end.filter(|_| lines <= MAX_LINES) else {
            let name = scenario_name(env.frontend);
            let text = format!("{name} reads {lines} lines at once; {MAX_LINES} is the most");
            return env.context.fail(FailureKind::Contract, first, text);
        };
        let mut reads = Vec::new();
        for line in (first..end).step_by(step as usize) {
            let words = self.memory_words(env, line);
            let event = Event::FetchCompletion { tag, line, words };
            reads.push((line, self.events.add(event)));
        }
        env.memory.start_burst(&mut env.context, &reads);
    }

    /// True if the application has a line of its own, or serves it. Memory has the contents of all others.
    fn has_own_contents(&self, context: &Context, line: Line) -> bool {
        line >= context.tables.platform.lines || self.serves(line)
    }

    /// Returns the words of a line of the application's memory.
    pub(super) fn memory_words(&self, env: &ApplicationEnvironment, line: Line) -> Words {
        if let Some(words) = self.line_contents.get(&line) {
            return words.clone();
        }
        // Lines that the application has never written keep their initial contents, or those that the home has written.
        let copy = match self.has_own_contents(&env.context, line) {
            true => Copy::UNTOUCHED,
            false => env.memory.copy(line),
        };
        copy_words(&env.context.contents.data, line, copy)
    }

    /// Updates a word of the application's memory atomically and returns the old value. The read and the write of the
    /// word occupy the memory back to back.
    fn update_memory_word(
        &mut self,
        env: &mut ApplicationEnvironment,
        tag: u32,
        (line, word): (Line, usize),
        update: Update,
    ) {
        let mut line_words = self.memory_words(env, line);
        let old_value = line_words[word];
        line_words[word] = update.apply(old_value);
        let words = [old_value].into();
        let event = self.events.add(Event::ReadCompletion { tag, words });
        let words = (line, Some(word..word + 1));
        (env.memory).start(&mut env.context, words.clone(), false, Some(event));
        if line_words[word] != old_value {
            self.set_memory_words(env, line, line_words);
            env.memory.start(&mut env.context, words, true, None);
        }
    }

    /// Occupies the memory for an operation on words of a line, after which the application receives `event`.
    fn end_word_access(
        &mut self,
        env: &mut ApplicationEnvironment,
        line: Line,
        words: Range<usize>,
        event: Event,
    ) {
        let write = matches!(event, Event::StoreCompletion { .. });
        let event = self.events.add(event);
        (env.memory).start(&mut env.context, (line, Some(words)), write, Some(event));
    }

    /// Sets the contents of a line of the application's memory.
    fn set_memory_words(&mut self, env: &mut ApplicationEnvironment, line: Line, words: Words) {
        match self.has_own_contents(&env.context, line) {
            true => drop(self.line_contents.insert(line, words)),
            false => self.write_homed_line(env, line, &words),
        }
    }

    /// Writes a line of the application's memory.
    pub(super) fn store_memory_line(
        &mut self,
        env: &mut ApplicationEnvironment,
        tag: u32,
        line: Line,
        words: Words,
    ) {
        self.set_memory_words(env, line, words);
        let event = self.events.add(Event::StoreCompletion { tag });
        (env.memory).start(&mut env.context, (line, None), true, Some(event));
    }

    /// Sets the words of a line homed here. The oracle records a write, performed now, for each word that changes.
    pub(super) fn write_homed_line(
        &self,
        env: &mut ApplicationEnvironment,
        line: Line,
        words: &Words,
    ) {
        let (context, name) = (&mut env.context, scenario_name(env.frontend));
        let old_copy = env.memory.copy(line);
        let old_words = copy_words(&context.contents.data, line, old_copy);
        if words.len() != old_words.len() {
            let (word_count, expected_count) = (words.len(), old_words.len());
            let text =
                format!("{name} gives a line of {word_count} words; lines have {expected_count}");
            return context.fail(FailureKind::Contract, line, text);
        }
        let differs = |word: &usize| words[*word] != old_words[*word];
        let changed_words: Vec<usize> = (0..words.len()).filter(differs).collect();
        if changed_words.is_empty() {
            return;
        }
        context.check_memory(line, old_copy, "is written by the application");
        for cache in env.caches.agents() {
            if env.caches.permission(cache, line) > Permission::None {
                let cache = context.agent_name(cache);
                let text = format!("{name} changes a line of which {cache} has a copy");
                return context.fail(FailureKind::Contract, line, text);
            }
        }
        let mut copy = context.contents.data.share(old_copy);
        for word in changed_words {
            let (value, word) = (words[word], word as u16);
            (copy, _) = context.write_words(line, copy, word..word + 1, value);
        }
        env.memory.set_copy(&mut context.contents.data, line, copy);
    }
}

/// Returns the name of the application.
fn scenario_name(frontend: &Frontend) -> &str {
    let threads = frontend.threads.as_ref();
    threads.map_or("", |threads| &threads.scenario.name)
}
