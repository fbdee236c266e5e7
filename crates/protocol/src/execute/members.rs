//! Sets of remotes, as words of bits.

/// Remotes of one slot of a set.
pub(super) const WORD: u16 = u16::BITS as u16;

/// Slots that a set of so many remotes takes, at least one.
pub(super) fn words(remotes: u16) -> usize {
    usize::from(remotes.div_ceil(WORD)).max(1)
}

/// How many bits are set. Sets of many remotes are mostly empty, so most words are only looked at together.
pub(super) fn ones(words: &[u16]) -> u32 {
    let together = words.chunks(32);
    let some = together.filter(|words| words.iter().fold(0, |all, word| all | word) != 0);
    some.flatten().map(|word| word.count_ones()).sum()
}

/// Whether a remote is in the set that these slots hold.
pub(super) fn is_in(words: &[u16], remote: u16) -> bool {
    let word = words.get(usize::from(remote / WORD));
    word.is_some_and(|word| word >> (remote % WORD) & 1 != 0)
}

/// Words that are there without a list of their own: with so many members at most, as with none, a set costs the same.
const FEW: usize = 32;

/// A set of remotes or homes while a rule is executed.
pub(super) struct Members {
    few: [u16; FEW],
    /// The words after those, as far as there are any.
    others: Vec<u16>,
}

impl Members {
    pub(super) fn none() -> Members {
        Members {
            few: [0; FEW],
            others: Vec::new(),
        }
    }

    /// The set that these words hold.
    pub(super) fn of(words: &[u16]) -> Members {
        let mut members = Members::none();
        let few = words.len().min(FEW);
        members.few[..few].copy_from_slice(&words[..few]);
        members.others.extend_from_slice(&words[few..]);
        members
    }

    /// The only word of a set of no more than [`WORD`].
    pub(super) fn first(&self) -> u16 {
        self.few[0]
    }

    pub(super) fn words(&self) -> impl Iterator<Item = u16> + '_ {
        self.few.iter().chain(&self.others).copied()
    }

    /// Puts the set into the slots of a variable.
    pub(super) fn put(&self, slots: &mut [u16]) {
        let few = slots.len().min(FEW);
        let (first, rest) = slots.split_at_mut(few);
        first.copy_from_slice(&self.few[..few]);
        let (there, none) = rest.split_at_mut(self.others.len().min(rest.len()));
        there.copy_from_slice(&self.others[..there.len()]);
        none.fill(0);
    }

    pub(super) fn add(&mut self, member: u16) {
        let word = usize::from(member / WORD);
        let word = match word.checked_sub(FEW) {
            None => &mut self.few[word],
            Some(other) => {
                if other >= self.others.len() {
                    self.others.resize(other + 1, 0);
                }
                &mut self.others[other]
            }
        };
        *word |= 1 << (member % WORD);
    }

    pub(super) fn count(&self) -> u32 {
        ones(&self.few) + ones(&self.others)
    }

    /// The numbers of its members, in order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        let words = self.words().zip((0..).step_by(WORD.into()));
        words.flat_map(|(mut word, first): (u16, u16)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as u16)?;
                word &= word - 1;
                Some(first + bit)
            })
        })
    }

    /// Returns the first number after this one that is a member where this one is none, or the other way round.
    pub(super) fn next_change(&self, from: u16) -> Option<u16> {
        let first_word = from / WORD;
        let mut words = self.words().zip((0..).step_by(WORD.into()));
        let (word, first): (u16, u16) = words.nth(first_word.into())?;
        let same = match word >> (from % WORD) & 1 {
            0 => 0,
            _ => u16::MAX,
        };
        let rest = (word ^ same) >> (from % WORD) << (from % WORD);
        let words = std::iter::once((rest ^ same, first)).chain(words);
        words
            .map(|(word, first)| (word ^ same, first))
            .find(|(differ, _)| *differ != 0)
            .map(|(differ, first)| first + differ.trailing_zeros() as u16)
    }

    /// What an operation on words makes of two sets; of none it makes none.
    pub(super) fn with(mut self, other: &Members, operation: impl Fn(u16, u16) -> u16) -> Members {
        for (word, other) in self.few.iter_mut().zip(&other.few) {
            *word = operation(*word, *other);
        }
        if self.others.len() < other.others.len() {
            self.others.resize(other.others.len(), 0);
        }
        let others = other.others.iter().chain(std::iter::repeat(&0));
        for (word, other) in self.others.iter_mut().zip(others) {
            *word = operation(*word, *other);
        }
        self
    }

    /// Whether both have the same members.
    pub(super) fn is(self, other: &Members) -> bool {
        self.with(other, |a, b| a ^ b).count() == 0
    }
}
