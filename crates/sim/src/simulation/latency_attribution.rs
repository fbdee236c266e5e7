//! Records for the latency breakdown and the timeline. This module does not affect simulated behaviour.

use super::*;
use crate::agents::home::{unit_of, Work};
use crate::agents::program::ConfigurationId;
use crate::attribution::{Contended, Explanation, MessageRecord, Step, Transaction};
use crate::spaces::Side;
use crate::timeline::{Count, Filter, Recorded, Timeline};

impl Simulation {
    /// Enables the latency breakdown, from the start of the run; with each access if `all`.
    pub(crate) fn attribute(&mut self, all: bool) {
        self.watched = true;
        self.attribution = Some(Box::new(Attribution::new(
            self.units.len(),
            self.groups.cores().into(),
            all,
        )));
    }

    /// Enables the latency breakdown and the timeline, from the start of the run. `side` names the space if there are
    /// two.
    ///
    /// # Errors
    /// The filter names an agent that does not exist.
    pub(crate) fn draw(&mut self, filter: &Filter, side: Option<Side>) -> Result<(), String> {
        let cores = self.groups.cores().into();
        let agents = self.local_lifelines();
        let messages: Vec<String> = self.message_names().collect();
        let timeline = Timeline::new(filter, &agents, &messages, cores, side)?;
        self.attribute(false);
        if let Some(of) = &mut self.attribution {
            of.timeline = Some(Box::new(timeline));
        }
        Ok(())
    }

    /// Adds the breakdown and the timeline to the statistics.
    pub(crate) fn add_breakdown(&mut self, statistics: &mut Statistics) {
        statistics.timeline = self.drawn().map(Box::new);
        statistics.explanation = Some(Box::new(self.explanation()));
    }

    fn drawn(&mut self) -> Option<Recorded> {
        let links = self.network.up.iter().map(|links| links.links() as u64);
        let links = links.sum();
        let timeline = self.attribution.as_mut()?.timeline.take()?;
        Some(timeline.recorded(self.counters.end, links))
    }

    /// Records the state of a line in an agent after it has consumed a message or other work.
    #[inline(never)]
    pub(crate) fn note_state(&mut self, agent: Agent, line: Line, configuration: ConfigurationId) {
        let (now, number) = (self.now, self.number(agent, line));
        // The description of a configuration is cached. A configuration excludes registers, so descriptions with
        // registers are not.
        let kept = self.registers_of(agent, line).is_empty();
        let key = kept.then_some((agent == HOME, configuration));
        let mut attribution = self.attribution.take();
        if let Some(timeline) = attribution.as_mut().and_then(|of| of.timeline.as_mut()) {
            let words = || self.state_text(agent, line, configuration);
            timeline.record_state(number, line, key, words, now);
        }
        self.attribution = attribution;
        if self.traced(line) {
            let state = self.state_text(agent, line, configuration);
            self.note(agent, line, Action::Becomes { state });
        }
    }

    /// Discards cached state descriptions, because numbers of configurations are being reused.
    pub(super) fn note_sweep(&mut self) {
        let attribution = self.attribution.as_mut();
        if let Some(timeline) = attribution.and_then(|of| of.timeline.as_mut()) {
            timeline.forget_states();
        }
    }

    /// Records that an access has reached its cache, for the first time or again.
    #[inline(never)]
    pub(crate) fn note_reached(&mut self, index: u32) {
        let (now, event) = (self.now, self.counters.events);
        let Some(of) = &mut self.attribution else {
            return;
        };
        let access = &self.accesses[index];
        let translated = self.translations.as_ref();
        let translated = translated.is_some_and(|of| of.has_virtual_address(index, access.cache));
        let request = self.groups.of_cache(access.cache).request;
        let known = of.accesses.get(index);
        let mut begun = known.unwrap_or_else(|| of.issued(access.issued));
        of.end_contention(begun.contends.take(), now);
        if begun.reached {
            let step = match begun.begun {
                Some(_) if begun.because == Step::LineAtCache => Step::Again,
                _ => begun.because,
            };
            begun.chain = of.go_on(begun.chain, now, step, None);
        } else {
            let before = match known {
                Some(begun) => begun.because,
                None if translated => Step::Translation,
                None => Step::IssueSlot,
            };
            begun.chain = of.go_on(begun.chain, now - request.min(now), before, None);
            begun.chain = of.go_on(begun.chain, now, Step::ToCache, None);
        }
        begun.reached = true;
        begun.because = Step::LineAtCache;
        of.accesses.insert(index, begun);
        of.because(event, begun.chain, false);
    }

    /// Records that an access waits at its core, behind the write buffer.
    #[inline(never)]
    pub(crate) fn note_waits_at_core(&mut self, index: u32) {
        let now = self.now;
        let Some(of) = &mut self.attribution else {
            return;
        };
        if of.accesses.get(index).is_none() {
            let mut begun = of.issued(self.accesses[index].issued);
            begun.chain = of.go_on(begun.chain, now, Step::IssueSlot, None);
            of.accesses.insert(index, begun);
        }
    }

    /// Records that an access has found its set full.
    #[inline(never)]
    pub(crate) fn note_waiting_for_way(&mut self, index: u32) {
        let (now, cache) = (self.now, self.accesses[index].cache);
        let Some(of) = &mut self.attribution else {
            return;
        };
        let ways = Contended::Ways(cache);
        of.contends(ways, now);
        if let Some(begun) = of.accesses.get_mut(index) {
            (begun.because, begun.contends) = (Step::Ways, Some(ways));
        }
    }

    /// Records the start of a transaction. A second start in the same configuration means that the first was in vain.
    #[inline(never)]
    pub(crate) fn note_begun(&mut self, index: u32, from: ConfigurationId) {
        let (now, event) = (self.now, self.counters.events);
        let Some(of) = &mut self.attribution else {
            return;
        };
        let Some(mut begun) = of.accesses.get(index) else {
            return;
        };
        if begun.begun == Some(from) {
            begun.chain = of.go_on(begun.chain, now, Step::Again, None);
            of.because(event, begun.chain, false);
        }
        begun.begun = Some(from);
        of.accesses.insert(index, begun);
    }

    /// Records a sent message, which is ready at a time that is not in the past.
    #[inline(never)]
    pub(super) fn note_sent(&mut self, message: &Message, ready: Time) {
        let (now, event) = (self.now, self.counters.events);
        let forwards = self.kinds[message.kind.index()].class == Some(Class::Forward);
        let unit = unit_of(&self.units, message.line);
        let sender = self.number(message.from, message.sender_line());
        let Some(of) = &mut self.attribution else {
            return;
        };
        let (chain, answers) = of.current(event, now);
        let kind = Some(message.kind.0);
        let last_operation = of.last_operation.filter(|(its, _)| *its == event);
        let last_operation = last_operation.filter(|(_, chain)| chain.end == ready && ready > now);
        let chain = match (message.from, last_operation) {
            (HOME, Some((_, last_operation))) => last_operation,
            (HOME, None) => of.go_on(chain, ready, Step::Handling, kind),
            (_, _) => of.go_on(chain, ready, Step::ToCache, kind),
        };
        let forward = forwards || answers && message.from != HOME;
        let under = MessageRecord {
            chain,
            forward,
            because: None,
            contends: None,
        };
        of.messages.insert(message.flight, under);
        if let Some(timeline) = &mut of.timeline {
            timeline.sent(sender, message, now);
        }
        if forwards && message.from == HOME {
            let (open, since) = &mut of.forwards[unit];
            if *open == 0 {
                *since = now;
            }
            *open += 1;
        }
    }

    /// Records that a message has received a credit, and is ready at `ready`.
    #[inline(never)]
    pub(super) fn note_credit(&mut self, index: u32, ready: Time) {
        let (now, message) = (self.now, self.messages[index]);
        let Some(of) = &mut self.attribution else {
            return;
        };
        if let Some(mut under) = of.messages.get(message.flight) {
            let kind = Some(message.kind.0);
            under.chain = of.go_on(under.chain, ready.max(now), Step::Room, kind);
            of.messages.insert(message.flight, under);
        }
    }

    /// Records the arrival of a message at its receiver or at the switch.
    #[inline(never)]
    pub(super) fn note_arrived(&mut self, index: u32, last: bool) {
        let (now, message) = (self.now, self.messages[index]);
        let (switch, switched) = (self.times.switch, self.network.is_switched());
        let here = message.from == HOME && message.to == HOME && !switched;
        // Without a switch all homes are at one place.
        if self.attribution.is_none() || here {
            return;
        }
        let direction = match last {
            true => self.network.links_to_receiver(&message),
            false => self.network.leaving(&message),
        };
        let (bytes, way) = direction.alone(message.kind);
        let random = direction.is_random();
        let Some(of) = &mut self.attribution else {
            return;
        };
        let Some(mut under) = of.messages.get(message.flight) else {
            return;
        };
        let kind = Some(message.kind.0);
        let (serialise, wire) = match under.forward {
            true => (Step::ForwardSerialise, Step::ForwardWire),
            false => (Step::Serialise, Step::Wire),
        };
        let all = now - under.chain.end.min(now);
        // Random delays count as wire latency.
        let waits = all.saturating_sub(bytes + way) * u64::from(!random);
        let way = match random {
            true => all.saturating_sub(bytes),
            false => way.min(all),
        };
        let begins = under.chain.end + waits;
        // Links of caches are counted; with a switch there are others.
        let counts = match (message.from, message.to) {
            (HOME, HOME) => None,
            (HOME, _) => last.then_some(Count::ToCaches),
            _ if switched && last && message.to != HOME => Some(Count::ToCaches),
            _ => (!switched || !last).then_some(Count::FromCaches),
        };
        if let (Some(timeline), Some(what)) = (&mut of.timeline, counts) {
            timeline.counts(what, begins, now - way);
        }
        under.chain = of.go_on(under.chain, begins, Step::LinkFree, kind);
        under.chain = of.go_on(under.chain, now - way, serialise, kind);
        under.chain = of.go_on(under.chain, now, wire, kind);
        if !last {
            let through = match under.forward {
                true => Step::ForwardWire,
                false => Step::Switch,
            };
            under.chain = of.go_on(under.chain, now + switch, through, kind);
        }
        of.messages.insert(message.flight, under);
    }

    /// Records that a message waits outside its queue at its receiver, or returns to the queue.
    #[inline(never)]
    pub(crate) fn note_deferred(&mut self, index: u32, step: Step) {
        let (now, message) = (self.now, self.messages[index]);
        let Some(of) = &mut self.attribution else {
            return;
        };
        if let Some(mut under) = of.messages.get(message.flight) {
            let before = under.because.unwrap_or(Step::Unit);
            under.chain = of.go_on(under.chain, now, before, Some(message.kind.0));
            under.because = Some(step);
            of.end_contention(under.contends.take(), now);
            if matches!(step, Step::LineAtHome | Step::LineAtCache) {
                let line = Contended::Line(message.line);
                of.contends(line, now);
                under.contends = Some(line);
            }
            of.messages.insert(message.flight, under);
        }
    }

    /// Records that the home takes an input.
    #[inline(never)]
    pub(crate) fn note_taken_at_home(&mut self, work: Work, line: Line, message: Option<&Message>) {
        let (now, event) = (self.now, self.counters.events);
        let unit = unit_of(&self.units, line);
        let home = self.number(HOME, line);
        let waits = match self.clocked {
            Some(_) => Step::Clocked,
            None => Step::Unit,
        };
        let Some(of) = &mut self.attribution else {
            return;
        };
        let (chain, kind, step) = match (work, message) {
            (_, Some(message)) => {
                let under = of.messages.remove(message.flight);
                if let Some(timeline) = &mut of.timeline {
                    timeline.taken(home, message, now);
                }
                of.end_contention(under.and_then(|under| under.contends), now);
                if self.kinds[message.kind.index()].class == Some(Class::Answer) {
                    let (open, since) = &mut of.forwards[unit];
                    if *open == 1 {
                        of.slots[unit][2] += now - *since;
                    }
                    *open = open.saturating_sub(1);
                }
                let step = under.and_then(|under| under.because).unwrap_or(waits);
                (under.map(|under| under.chain), Some(message.kind.0), step)
            }
            (Work::Read(_), _) => (of.take_operation(line, false), None, waits),
            (Work::Written(_), _) => (of.take_operation(line, true), None, waits),
            _ => (None, None, waits),
        };
        let chain = chain.unwrap_or_else(|| of.begin(now));
        let chain = of.go_on(chain, now, step, kind);
        of.because(event, chain, false);
    }

    /// Records that a cache takes a message.
    #[inline(never)]
    pub(crate) fn note_taken_by_cache(&mut self, message: &Message) {
        let (now, event) = (self.now, self.counters.events);
        let receiver = self.number(message.to, message.line);
        if let Some(of) = &mut self.attribution {
            if let Some(timeline) = &mut of.timeline {
                timeline.taken(receiver, message, now);
            }
            if let Some(under) = of.messages.remove(message.flight) {
                of.end_contention(under.contends, now);
                let kind = Some(message.kind.0);
                let chain = of.go_on(under.chain, now, Step::LineAtCache, kind);
                of.because(event, chain, under.forward);
            }
        }
        if self.traced(message.line) {
            self.note_receive(message);
        }
    }

    /// Performs a memory operation on a line for a unit, and records its components.
    #[inline(never)]
    pub(crate) fn operate_watched(&mut self, ready: Time, line: Line) -> Time {
        let (there, back) = self.times.path;
        let homes = self.memories.len();
        let number = line as usize & (homes - 1);
        let alone = self.memories[number].alone(ready + there, line >> homes.trailing_zeros());
        let end = self.memory(ready + there, line);
        let (now, event) = (self.now, self.counters.events);
        if let Some(of) = &mut self.attribution {
            let (chain, _) = of.current(event, now);
            let chain = of.go_on(chain, ready, Step::Handling, None);
            let chain = of.go_on(chain, ready + there, Step::Path, None);
            let waits = end.saturating_sub(alone.end);
            let chain = of.go_on(chain, chain.end + waits, Step::MemoryBusy, None);
            let chain = of.go_on(chain, end, Step::Memory, None);
            let chain = of.go_on(chain, end + back, Step::Path, None);
            of.last_operation = Some((event, chain));
            for &(what, place, time) in alone.uses() {
                *of.memory.entry((number, what, place)).or_default() += time;
            }
        }
        end + back
    }

    /// Records the memory operation that has just started, for the unit that receives its completion.
    #[inline(never)]
    pub(crate) fn note_operation(&mut self, line: Line, write: bool) {
        let (now, event) = (self.now, self.counters.events);
        let unit = unit_of(&self.units, line);
        let Some(of) = &mut self.attribution else {
            return;
        };
        if let Some((_, chain)) = of.last_operation.filter(|(its, _)| *its == event) {
            of.operation(line, write, chain);
            of.slots[unit][usize::from(write)] += chain.end - now;
        }
    }

    /// Records an access that is performed in front of its cache.
    #[inline(never)]
    pub(crate) fn note_done_at_core(&mut self, index: u32, access: &Pending, done: Time) {
        let now = self.now;
        let Some(of) = &mut self.attribution else {
            return;
        };
        let chain = match of.accesses.remove(index) {
            Some(begun) => of.go_on(begun.chain, now, begun.because, None),
            None => {
                let chain = of.begin(access.issued);
                of.go_on(chain, now, Step::IssueSlot, None)
            }
        };
        let chain = of.go_on(chain, done, Step::AtCore, None);
        of.performed(access.cache, chain, chain, transaction(access, done));
    }

    /// Records an access that has completed at its cache, or that the protocol does not have.
    #[inline(never)]
    pub(crate) fn note_finished(
        &mut self,
        index: u32,
        access: &Pending,
        hit: bool,
        performed: bool,
    ) {
        let (now, event) = (self.now, self.counters.events);
        let group = self.groups.of_cache(access.cache);
        let done = now + if hit { group.hit } else { group.fill };
        let Some(of) = &mut self.attribution else {
            return;
        };
        let Some(begun) = of.accesses.remove(index) else {
            return;
        };
        of.end_contention(begun.contends, now);
        let counts = matches!(
            access.purpose,
            Purpose::Core | Purpose::Atomic | Purpose::Port
        ) && performed;
        if counts {
            let (chain, _) = of.current(event, now);
            let end = of.go_on(chain, done, Step::FromCache, None);
            of.performed(access.cache, end, begun.chain, transaction(access, done));
        }
    }

    /// Evaluates the records of the run.
    fn explanation(&mut self) -> Explanation {
        let resources = self.resources();
        let limit = self.limit(&resources);
        let of = self.attribution.take();
        let of = of.map_or_else(|| Attribution::new(0, 0, false), |of| *of);
        of.explanation(resources, limit)
    }
}

/// Creates the record of an access without its segments.
fn transaction(access: &Pending, done: Time) -> Transaction {
    Transaction {
        core: access.core,
        line: access.line,
        access: access.kind,
        issued: access.issued,
        done,
        segments: Vec::new(),
    }
}
