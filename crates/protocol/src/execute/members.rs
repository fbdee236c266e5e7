//! Sets of remotes or homes, as bit masks. A member is the index of a remote, or the number of a home.

/// Members per slot of a set.
pub(super) const WORD_BITS: u16 = u16::BITS as u16;

/// Number of slots of a set of up to this many remotes, at least one.
pub(super) fn words(remotes: u16) -> usize {
    usize::from(remotes.div_ceil(WORD_BITS)).max(1)
}

/// Number of set bits. Sets of many remotes are mostly empty, so words are first tested in blocks of 32.
pub(super) fn ones(words: &[u16]) -> u32 {
    let blocks = words.chunks(32);
    let nonzero = blocks.filter(|words| words.iter().fold(0, |all, word| all | word) != 0);
    nonzero.flatten().map(|word| word.count_ones()).sum()
}

/// Returns true if a remote is in the set stored in these slots.
pub(super) fn is_in(words: &[u16], remote: u16) -> bool {
    let word = words.get(usize::from(remote / WORD_BITS));
    word.is_some_and(|word| word >> (remote % WORD_BITS) & 1 != 0)
}

/// Words stored inline, without allocation: 512 members.
const INLINE_WORDS: usize = 32;

/// A set of remotes or homes during the execution of a rule.
pub(super) struct Members {
    /// Words of the members 0 to 511: bit B of word W is member 16 W + B.
    inline_words: [u16; INLINE_WORDS],
    /// Words after the inline ones, if any.
    overflow_words: Vec<u16>,
}

impl Members {
    /// Creates the empty set.
    pub(super) fn empty() -> Members {
        Members {
            inline_words: [0; INLINE_WORDS],
            overflow_words: Vec::new(),
        }
    }

    /// Creates the set stored in these words.
    pub(super) fn from_words(words: &[u16]) -> Members {
        let mut members = Members::empty();
        let inline_words = words.len().min(INLINE_WORDS);
        members.inline_words[..inline_words].copy_from_slice(&words[..inline_words]);
        members
            .overflow_words
            .extend_from_slice(&words[inline_words..]);
        members
    }

    /// The only word of a set of at most [`WORD_BITS`] members.
    pub(super) fn first(&self) -> u16 {
        self.inline_words[0]
    }

    /// All words, from the lowest members up: at least the inline ones.
    pub(super) fn words(&self) -> impl Iterator<Item = u16> + '_ {
        self.inline_words
            .iter()
            .chain(&self.overflow_words)
            .copied()
    }

    /// Stores the set in the slots of a variable.
    pub(super) fn write_to(&self, slots: &mut [u16]) {
        let inline_words = slots.len().min(INLINE_WORDS);
        let (first, rest) = slots.split_at_mut(inline_words);
        first.copy_from_slice(&self.inline_words[..inline_words]);
        let (stored, unused) = rest.split_at_mut(self.overflow_words.len().min(rest.len()));
        stored.copy_from_slice(&self.overflow_words[..stored.len()]);
        unused.fill(0);
    }

    /// Adds a member; no effect if it is in the set.
    pub(super) fn add(&mut self, member: u16) {
        let word = usize::from(member / WORD_BITS);
        let word = match word.checked_sub(INLINE_WORDS) {
            None => &mut self.inline_words[word],
            Some(index) => {
                if index >= self.overflow_words.len() {
                    self.overflow_words.resize(index + 1, 0);
                }
                &mut self.overflow_words[index]
            }
        };
        *word |= 1 << (member % WORD_BITS);
    }

    /// Number of members.
    pub(super) fn count(&self) -> u32 {
        ones(&self.inline_words) + ones(&self.overflow_words)
    }

    /// Numbers of the members, in ascending order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        let words = self.words().zip((0..).step_by(WORD_BITS.into()));
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
        let first_word = from / WORD_BITS;
        let mut words = self.words().zip((0..).step_by(WORD_BITS.into()));
        let (word, first): (u16, u16) = words.nth(first_word.into())?;
        let starting_word = match word >> (from % WORD_BITS) & 1 {
            0 => 0,
            _ => u16::MAX,
        };
        let rest = (word ^ starting_word) >> (from % WORD_BITS) << (from % WORD_BITS);
        let words = std::iter::once((rest ^ starting_word, first)).chain(words);
        words
            .map(|(word, first)| (word ^ starting_word, first))
            .find(|(differ, _)| *differ != 0)
            .map(|(differ, first)| first + differ.trailing_zeros() as u16)
    }

    /// Combines two sets word by word. `operation` must return 0 for two zeros.
    pub(super) fn combine(
        mut self,
        other: &Members,
        operation: impl Fn(u16, u16) -> u16,
    ) -> Members {
        for (word, other) in self.inline_words.iter_mut().zip(&other.inline_words) {
            *word = operation(*word, *other);
        }
        if self.overflow_words.len() < other.overflow_words.len() {
            self.overflow_words.resize(other.overflow_words.len(), 0);
        }
        let other_words = other.overflow_words.iter().chain(std::iter::repeat(&0));
        for (word, other) in self.overflow_words.iter_mut().zip(other_words) {
            *word = operation(*word, *other);
        }
        self
    }

    /// Returns true if both sets have the same members.
    pub(super) fn equals(self, other: &Members) -> bool {
        self.combine(other, |a, b| a ^ b).count() == 0
    }
}
