//! Cores as traffic: which line is accessed next, and how.

use cohkit_protocol::controller::Access;

use crate::data::Random;
use crate::message::Line;

/// The order of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Each line of the region once, in address order, the cores taking turns.
    Sequential,
    /// Lines drawn uniformly from the region, with repetition.
    Random,
}

/// What the cores do.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The order of lines.
    pub pattern: Pattern,
    /// Accesses to choose from, each with a weight.
    pub mix: Vec<(Access, u32)>,
    /// The region, in lines, from line 0.
    pub lines: Line,
    /// Number of accesses in total; with [`Pattern::Sequential`] one pass is `lines`.
    pub accesses: u64,
    /// Number of cores, spread over the caches.
    pub cores: u32,
    /// Most accesses of one core in flight.
    pub outstanding: u32,
    /// Lines that a core asks for ahead of each sequential access by a hint; 0 for none.
    pub prefetch: u32,
    /// Extra hints to write a random line, per thousand accesses.
    pub write_hints: u32,
}

impl Workload {
    /// One access to every line of a region.
    pub fn pass(
        pattern: Pattern,
        access: Access,
        lines: Line,
        cores: u32,
        outstanding: u32,
    ) -> Self {
        Workload {
            pattern,
            mix: vec![(access, 1)],
            lines,
            accesses: u64::from(lines),
            cores,
            outstanding,
            prefetch: 0,
            write_hints: 0,
        }
    }
}

/// The state of all cores.
pub struct Traffic {
    workload: Workload,
    weights: u64,
    /// Accesses given out so far.
    pub issued: u64,
    random: Random,
}

/// One access to make.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// Which line.
    pub line: Line,
    /// Which access.
    pub access: Access,
    /// Which word of the line, as a random number to reduce.
    pub word: u16,
}

impl Traffic {
    /// Nothing given out yet.
    pub fn new(workload: &Workload, seed: u64) -> Traffic {
        Traffic {
            weights: workload
                .mix
                .iter()
                .map(|&(_, weight)| u64::from(weight))
                .sum(),
            workload: workload.clone(),
            issued: 0,
            random: Random::new(seed),
        }
    }

    /// What is accessed next, by whichever core asks; `None` when all is given out.
    #[inline]
    pub fn draw(&mut self) -> Option<Next> {
        if self.issued == self.workload.accesses {
            return None;
        }
        let line = match self.workload.pattern {
            Pattern::Sequential => (self.issued % u64::from(self.workload.lines)) as Line,
            Pattern::Random => self.random.below(u64::from(self.workload.lines)) as Line,
        };
        self.issued += 1;
        let (access, word) = if let [(access, _)] = self.workload.mix[..] {
            (access, self.issued as u16)
        } else {
            let mut draw = self.random.below(self.weights);
            let mut mix = self.workload.mix.iter();
            let drawn = mix.find(|&&(_, weight)| {
                let hit = draw < u64::from(weight);
                draw = draw.wrapping_sub(u64::from(weight));
                hit
            });
            let access = drawn.map_or(Access::Load, |&(access, _)| access);
            (access, self.random.below(1 << 16) as u16)
        };
        Some(Next { line, access, word })
    }

    /// The line of an extra hint to write, if one comes now.
    pub fn write_hint(&mut self) -> Option<Line> {
        let hints = u64::from(self.workload.write_hints);
        let now = hints > 0 && self.random.below(1000) < hints;
        now.then(|| self.random.below(u64::from(self.workload.lines)) as Line)
    }

    /// The line that is given out `ahead` accesses from now, if that is known.
    pub fn ahead(&self, ahead: u32) -> Option<Line> {
        let number = self.issued + u64::from(ahead);
        let known = self.workload.pattern == Pattern::Sequential && number < self.workload.accesses;
        known.then(|| (number % u64::from(self.workload.lines)) as Line)
    }
}
