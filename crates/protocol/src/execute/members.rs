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

/// A set of remotes while a rule is executed. It needs no list where one word is enough.
#[derive(PartialEq)]
pub(super) struct Members {
    pub(super) first: u16,
    pub(super) others: Vec<u16>,
}

impl Members {
    pub(super) fn none(remotes: u16) -> Members {
        let (first, others) = (0, vec![0; words(remotes) - 1]);
        Members { first, others }
    }

    pub(super) fn words(&self) -> impl Iterator<Item = u16> + '_ {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// Puts the set into the slots of a variable.
    pub(super) fn put(&self, slots: &mut [u16]) {
        if let [first, others @ ..] = slots {
            *first = self.first;
            others.copy_from_slice(&self.others);
        }
    }

    pub(super) fn add(&mut self, remote: u16) {
        let word = match usize::from(remote / WORD) {
            0 => &mut self.first,
            word => &mut self.others[word - 1],
        };
        *word |= 1 << (remote % WORD);
    }

    pub(super) fn count(&self) -> u32 {
        self.first.count_ones() + ones(&self.others)
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

    /// What an operation on words makes of two sets.
    pub(super) fn with(mut self, other: &Members, operation: impl Fn(u16, u16) -> u16) -> Members {
        self.first = operation(self.first, other.first);
        for (word, other) in self.others.iter_mut().zip(&other.others) {
            *word = operation(*word, *other);
        }
        self
    }
}
