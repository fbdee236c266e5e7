//! Sets of remotes or homes, as bit masks.

/// Members per slot of a set.
pub(super) const WORD: u16 = u16::BITS as u16;

/// Number of slots of a set of up to this many remotes, at least one.
pub(super) fn words(remotes: u16) -> usize {
    usize::from(remotes.div_ceil(WORD)).max(1)
}

/// Number of set bits. Sets of many remotes are mostly empty, so words are first tested in blocks of 32.
pub(super) fn ones(words: &[u16]) -> u32 {
    let together = words.chunks(32);
    let some = together.filter(|words| words.iter().fold(0, |all, word| all | word) != 0);
    some.flatten().map(|word| word.count_ones()).sum()
}

/// Returns true if a remote is in the set stored in these slots.
pub(super) fn is_in(words: &[u16], remote: u16) -> bool {
    let word = words.get(usize::from(remote / WORD));
    word.is_some_and(|word| word >> (remote % WORD) & 1 != 0)
}

/// Words stored inline, without allocation: 512 members.
const INLINE_WORDS: usize = 32;

/// A set of remotes or homes during the execution of a rule.
pub(super) struct Members {
    inline_words: [u16; INLINE_WORDS],
    /// Words after the inline ones, if any.
    others: Vec<u16>,
}

impl Members {
    pub(super) fn none() -> Members {
        Members {
            inline_words: [0; INLINE_WORDS],
            others: Vec::new(),
        }
    }

    /// Creates the set stored in these words.
    pub(super) fn of(words: &[u16]) -> Members {
        let mut members = Members::none();
        let inline_words = words.len().min(INLINE_WORDS);
        members.inline_words[..inline_words].copy_from_slice(&words[..inline_words]);
        members.others.extend_from_slice(&words[inline_words..]);
        members
    }

    /// The only word of a set of at most [`WORD`] members.
    pub(super) fn first(&self) -> u16 {
        self.inline_words[0]
    }

    pub(super) fn words(&self) -> impl Iterator<Item = u16> + '_ {
        self.inline_words.iter().chain(&self.others).copied()
    }

    /// Stores the set in the slots of a variable.
    pub(super) fn put(&self, slots: &mut [u16]) {
        let inline_words = slots.len().min(INLINE_WORDS);
        let (first, rest) = slots.split_at_mut(inline_words);
        first.copy_from_slice(&self.inline_words[..inline_words]);
        let (there, none) = rest.split_at_mut(self.others.len().min(rest.len()));
        there.copy_from_slice(&self.others[..there.len()]);
        none.fill(0);
    }

    pub(super) fn add(&mut self, member: u16) {
        let word = usize::from(member / WORD);
        let word = match word.checked_sub(INLINE_WORDS) {
            None => &mut self.inline_words[word],
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
        ones(&self.inline_words) + ones(&self.others)
    }

    /// Numbers of the members, in ascending order.
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

    /// Returns the first number after `from` whose membership differs from that of `from`.
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

    /// Combines two sets word by word. `operation` must return 0 for two zeros.
    pub(super) fn with(mut self, other: &Members, operation: impl Fn(u16, u16) -> u16) -> Members {
        for (word, other) in self.inline_words.iter_mut().zip(&other.inline_words) {
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

    /// Returns true if both sets have the same members.
    pub(super) fn is(self, other: &Members) -> bool {
        self.with(other, |a, b| a ^ b).count() == 0
    }
}
