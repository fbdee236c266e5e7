//! Combination of several scenarios on one home. Each scenario has its own range of lines, threads, registers and words
//! of the host's memory. It numbers them from 0, and is unaware of the others.

use cohkit_application::interface::{
    Action, Actions, Application, Contents, Event, Line, Operation, PageFault, Placement, Step,
    Table,
};
use cohkit_protocol::controller::Access;
use std::ops::Range;
use std::sync::Arc;

use crate::scenario::{Playable, ScenarioRun};

/// Maximum number of combined scenarios. Their ranges of words and of private lines, 2^26 each, then fit into 32-bit
/// numbers.
const MAX_SCENARIOS: usize = 16;

/// Number of words that each scenario has of a host's memory that only the bus reaches.
const BUS_WORDS: u32 = 1 << 26;

/// Scenarios that run together, in the order of their lines and threads.
pub struct CombinedScenario {
    /// The scenarios.
    parts: Vec<Arc<dyn Playable>>,
}

/// Resources of one scenario.
#[derive(Clone)]
struct Share {
    /// Its lines of the home.
    lines: Range<Line>,
    /// Lines that its application serves; empty if the application is not between the home and memory.
    served: Range<Line>,
    /// Its threads.
    threads: Range<usize>,
    /// First 8-byte word of its range of the host's memory.
    word: u32,
}

/// First line that belongs to no home. From there, each scenario has [`PRIVATE_LINES_PER_SCENARIO`] lines of private
/// memory.
const FIRST_PRIVATE_LINE: Line = 1 << 31;
/// Number of lines of private memory that each scenario has.
const PRIVATE_LINES_PER_SCENARIO: Line = 1 << 26;

impl Share {
    /// Converts a line of the home to the common numbering. A line that the scenario does not use becomes
    /// [`Line::MAX`].
    fn to_common_line(&self, line: Line) -> Line {
        match line < self.lines.len() as Line {
            true => self.lines.start + line,
            false => Line::MAX,
        }
    }

    /// Converts the first of `lines` lines of the application's memory to the common numbering. Lines that the scenario
    /// uses belong to the home, further ones are private. [`Line::MAX`] if the range is neither.
    fn to_common_memory(&self, part: usize, line: Line, lines: Line) -> Line {
        let homed = self.lines.len() as Line;
        let end = u64::from(line) + u64::from(lines);
        if end <= homed.into() {
            self.lines.start + line
        } else if line >= homed && end <= u64::from(homed + PRIVATE_LINES_PER_SCENARIO) {
            FIRST_PRIVATE_LINE + part as Line * PRIVATE_LINES_PER_SCENARIO + (line - homed)
        } else {
            Line::MAX
        }
    }

    /// Converts a line of memory back to the scenario's numbering: the inverse of [`Share::to_common_memory`].
    fn to_scenario_line(&self, part: usize, line: Line) -> Line {
        match line.checked_sub(FIRST_PRIVATE_LINE + part as Line * PRIVATE_LINES_PER_SCENARIO) {
            Some(line) => line + self.lines.len() as Line,
            None => line - self.lines.start,
        }
    }
}

impl CombinedScenario {
    /// Combines scenarios. Their lines and threads are numbered in the given order.
    ///
    /// # Errors
    /// A sentence: the reason why the scenarios cannot be combined. A scenario has engines, there are too many
    /// scenarios, or they use more lines or words than there are.
    pub fn new(parts: Vec<Arc<dyn Playable>>) -> Result<CombinedScenario, String> {
        for part in &parts {
            let mut run = part.begin();
            let name = run.application().name().to_string();
            if part.threads_only() {
                return Err(format!(
                    "{name} has engines instead of an application, and cannot be combined with another"
                ));
            }
        }
        let lines: u64 = parts.iter().map(|part| u64::from(part.line_count())).sum();
        let words: u64 = parts.iter().map(|part| part.host_words()).sum();
        if lines > Line::MAX.into()
            || words > u64::from(u32::MAX / 2)
            || parts.len() > MAX_SCENARIOS
        {
            let parts = parts.len();
            return Err(format!(
                "{parts} applications use {lines} lines and {words} words of the host's memory, more than there are; at most {MAX_SCENARIOS} applications can be combined"
            ));
        }
        Ok(CombinedScenario { parts })
    }
}

impl Playable for CombinedScenario {
    fn line_count(&self) -> Line {
        self.parts.iter().map(|part| part.line_count()).sum()
    }

    fn words_used(&self) -> u64 {
        let words = self.parts.iter().map(|part| part.words_used());
        words.max().unwrap_or(0)
    }

    fn has_end(&self) -> bool {
        self.parts.iter().all(|part| part.has_end())
    }

    fn operation_requirements(&self) -> Vec<(Operation, bool)> {
        self.parts
            .iter()
            .flat_map(|part| part.operation_requirements())
            .collect()
    }

    fn observes_changes(&self) -> bool {
        self.parts.iter().any(|part| part.observes_changes())
    }

    fn host_words(&self) -> u64 {
        self.parts.iter().map(|part| part.host_words()).sum()
    }

    fn begin(&self) -> Box<dyn ScenarioRun> {
        let mut parts: Vec<Box<dyn ScenarioRun>> =
            self.parts.iter().map(|part| part.begin()).collect();
        let (mut line, mut thread) = (0, 0);
        // The words that only the bus reaches follow the coherent ones.
        let mut coherent_word = 0;
        let mut bus_word = self.host_words() as u32;
        let mut names = Vec::new();
        let shares = self.parts.iter().zip(&mut parts).map(|(part, run)| {
            let application = run.application();
            names.push(application.name().to_string());
            let served = match application.placement() {
                Placement::MemoryPath(lines) => line + lines.start..line + lines.end,
                Placement::Observer | Placement::MemoryPathRanges(_) => line..line,
            };
            let uses_bus = part.host_words() == 0;
            let word = if uses_bus {
                &mut bus_word
            } else {
                &mut coherent_word
            };
            let first_word = *word;
            *word += if uses_bus {
                BUS_WORDS
            } else {
                part.host_words() as u32
            };
            let share = Share {
                lines: line..line + part.line_count(),
                served,
                threads: thread..thread + run.threads(),
                word: first_word,
            };
            (line, thread) = (share.lines.end, share.threads.end);
            share
        });
        Box::new(CombinedRun {
            shares: shares.collect(),
            parts,
            name: names.join(" and "),
            tags: Vec::new(),
        })
    }
}

/// State of all scenarios in a run.
struct CombinedRun {
    /// States of the scenarios.
    parts: Vec<Box<dyn ScenarioRun>>,
    /// Resources of each scenario, in the same order.
    shares: Vec<Share>,
    /// Names of the applications, joined by `and`.
    name: String,
    /// Scenario and its own tag, by common tag.
    tags: Vec<(usize, u32)>,
}

impl CombinedRun {
    /// Returns the common tag for the tag of one scenario.
    fn tag(&mut self, part: usize, tag: u32) -> u32 {
        let known = self.tags.iter().position(|&known| known == (part, tag));
        let index = known.unwrap_or_else(|| {
            self.tags.push((part, tag));
            self.tags.len() - 1
        });
        index as u32
    }

    /// Returns the index of the scenario with a line; `None` if no scenario has it.
    fn part_of_line(&self, line: Line) -> Option<usize> {
        let mut shares = self.shares.iter();
        shares.position(|share| share.lines.contains(&line))
    }

    /// Returns the index of the scenario with a thread; `None` if no scenario has it.
    fn part_of_thread(&self, thread: usize) -> Option<usize> {
        let mut shares = self.shares.iter();
        shares.position(|share| share.threads.contains(&thread))
    }

    /// Converts an event to the numbering of its receiver, and returns the index of the receiver. `None`: the event
    /// is for all.
    fn to_scenario_event(&self, event: &mut Event) -> Option<usize> {
        match event {
            Event::Start { .. } | Event::Stop => None,
            Event::Read { line, .. }
            | Event::Write { line, .. }
            | Event::PermissionChange { line, .. }
            | Event::LocalCompletion { line, .. } => {
                let part = self.part_of_line(*line)?;
                *line -= self.shares[part].lines.start;
                Some(part)
            }
            Event::FetchCompletion { tag, line, .. } => {
                let (part, scenario_tag) = self.tags[*tag as usize];
                *tag = scenario_tag;
                *line = self.shares[part].to_scenario_line(part, *line);
                Some(part)
            }
            Event::StoreCompletion { tag }
            | Event::ReadCompletion { tag, .. }
            | Event::Timer { tag }
            | Event::HostFetchCompletion { tag, .. }
            | Event::CoherentLoadCompletion { tag, .. }
            | Event::CoherentStoreCompletion { tag } => {
                let (part, scenario_tag) = self.tags[*tag as usize];
                *tag = scenario_tag;
                Some(part)
            }
            Event::PageFault { tag, word, .. } => {
                let (part, scenario_tag) = self.tags[*tag as usize];
                *tag = scenario_tag;
                *word -= self.shares[part].word;
                Some(part)
            }
            Event::RegisterRead { register, thread } => {
                let part = self.part_of_thread(*thread as usize)?;
                *register /= self.shares.len() as u32;
                *thread -= self.shares[part].threads.start as u32;
                Some(part)
            }
            Event::RegisterWrite { register, .. } => {
                let parts = self.shares.len() as u32;
                let part = *register % parts;
                *register /= parts;
                Some(part as usize)
            }
        }
    }

    /// Converts an action of one scenario to the common numbering.
    fn renumber_action(&mut self, part: usize, mut action: Action) -> Action {
        let share = self.shares[part].clone();
        let first_word = share.word;
        match &mut action {
            Action::Answer { line, .. }
            | Action::Accept { line }
            | Action::Local { line, .. }
            | Action::Unlock { line } => *line = share.to_common_line(*line),
            Action::Fetch {
                tag,
                first: line,
                lines,
            } => {
                *tag = self.tag(part, *tag);
                *line = share.to_common_memory(part, *line, *lines);
            }
            Action::Store { tag, line, .. }
            | Action::ReadWords { tag, line, .. }
            | Action::WriteWords { tag, line, .. }
            | Action::UpdateWord { tag, line, .. } => {
                *tag = self.tag(part, *tag);
                *line = share.to_common_memory(part, *line, 1);
            }
            Action::Wake { tag, .. }
            | Action::Abandon { tag }
            | Action::Begin { tag }
            | Action::End { tag, .. } => {
                *tag = self.tag(part, *tag);
            }
            Action::HostFetch { tag, first, .. }
            | Action::CoherentLoad { tag, first, .. }
            | Action::CoherentStore { tag, first, .. }
            | Action::CoherentUpdate {
                tag, word: first, ..
            } => {
                *tag = self.tag(part, *tag);
                *first = first.saturating_add(first_word);
            }
            Action::HostStore { first, .. } => *first = first.saturating_add(first_word),
            Action::Reply { thread, .. } | Action::Interrupt { thread } => {
                *thread += share.threads.start as u32
            }
            Action::Count { .. } => {}
        }
        action
    }

    /// Converts a step of a scenario's thread to the common numbering.
    fn to_common_step(&self, part: usize, mut step: Step) -> Step {
        let (share, parts) = (&self.shares[part], self.shares.len() as u32);
        match &mut step {
            Step::Load { line, .. }
            | Step::LoadExclusive { line, .. }
            | Step::Store { line, .. }
            | Step::StoreWords { line, .. }
            | Step::Acquire { line, .. }
            | Step::Release { line, .. }
            | Step::Update { line, .. }
            | Step::Prefetch { line }
            | Step::PrefetchExclusive { line } => *line = share.to_common_line(*line),
            Step::ReadRegister { register } | Step::WriteRegister { register, .. } => {
                *register = register.saturating_mul(parts).saturating_add(part as u32);
            }
            Step::LoadHost { word } | Step::StoreHost { word, .. } => {
                *word = word.saturating_add(share.word);
            }
            Step::Work(_)
            | Step::AwaitInterrupt
            | Step::Fence
            | Step::Count { .. }
            | Step::Begin
            | Step::End { .. }
            | Step::Stop => {}
        }
        step
    }
}

impl Application for CombinedRun {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        let served = self.shares.iter().map(|share| share.served.clone());
        let served: Vec<Range<Line>> = served.filter(|lines| !lines.is_empty()).collect();
        match served.is_empty() {
            true => Placement::Observer,
            false => Placement::MemoryPathRanges(served.into()),
        }
    }

    fn handle(&mut self, mut event: Event, actions: &mut Actions) {
        let parts = match self.to_scenario_event(&mut event) {
            Some(part) => part..part + 1,
            None => 0..self.parts.len(),
        };
        for part in parts {
            let mut scenario_actions = Actions::new();
            self.parts[part]
                .application()
                .handle(event.clone(), &mut scenario_actions);
            for action in scenario_actions.take() {
                let action = self.renumber_action(part, action);
                actions.push(action);
            }
        }
    }
}

impl ScenarioRun for CombinedRun {
    fn application(&mut self) -> &mut dyn Application {
        self
    }

    fn write_access(&self, thread: usize) -> Option<Access> {
        let part = self.part_of_thread(thread)?;
        self.parts[part].write_access(thread - self.shares[part].threads.start)
    }

    fn threads(&self) -> usize {
        self.shares.last().map_or(0, |share| share.threads.end)
    }

    fn step(&mut self, thread: usize, result: u64) -> Step {
        let Some(part) = self.part_of_thread(thread) else {
            return Step::Stop;
        };
        let step = self.parts[part].step(thread - self.shares[part].threads.start, result);
        self.to_common_step(part, step)
    }

    fn handle_page_fault(&mut self, thread: usize, reason: PageFault) -> Option<Step> {
        let part = self.part_of_thread(thread)?;
        let scenario_thread = thread - self.shares[part].threads.start;
        let step = self.parts[part].handle_page_fault(scenario_thread, reason)?;
        Some(self.to_common_step(part, step))
    }

    fn verify(&self, contents: &dyn Contents) -> Result<(), String> {
        let mut parts = self.parts.iter().zip(&self.shares);
        parts.try_for_each(|(part, share)| part.verify(&ScenarioContents { contents, share }))
    }

    fn tables(&self) -> Vec<Table> {
        self.parts.iter().flat_map(|part| part.tables()).collect()
    }
}

/// Contents of lines and words in the numbering of one scenario.
struct ScenarioContents<'c> {
    /// Contents in the common numbering.
    contents: &'c dyn Contents,
    /// Resources of the scenario.
    share: &'c Share,
}

impl Contents for ScenarioContents<'_> {
    fn word(&self, line: Line, word: u16) -> u64 {
        self.contents.word(self.share.lines.start + line, word)
    }

    fn initial(&self, line: Line, word: u16) -> u64 {
        self.contents.initial(self.share.lines.start + line, word)
    }

    fn host(&self, word: u32) -> Option<u64> {
        self.contents.host(self.share.word + word)
    }
}
