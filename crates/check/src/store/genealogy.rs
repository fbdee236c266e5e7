//! Who found whom, in a quarter of a byte per state.

/// Parents of all states. States are numbered in the order in which their parents are expanded,
/// so a bit per parent and a bit per child say it all: a one goes on to the next parent, a zero is a child.
#[derive(Default)]
pub(crate) struct Genealogy {
    bits: Vec<u64>,
    len: usize,
    parent: u64,
}

impl Genealogy {
    /// Bytes that it takes.
    pub fn memory(&self) -> u64 {
        self.bits.len() as u64 * 8
    }

    fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.bits.push(0);
        }
        self.bits[self.len / 64] |= (bit as u64) << (self.len % 64);
        self.len += 1;
    }

    /// The next child has this parent: 0 for start states, else the parent's number plus one.
    pub fn birth(&mut self, parent: u64) {
        while self.parent < parent {
            self.push(true);
            self.parent += 1;
        }
        self.push(false);
    }

    /// The parent of a state; `None` for a start state.
    pub fn parent(&self, state: usize) -> Option<usize> {
        let mut zeros = 0;
        for (i, &word) in self.bits.iter().enumerate() {
            let here = word.count_zeros() as usize;
            if zeros + here <= state {
                zeros += here;
                continue;
            }
            // The state's zero is in this word; ones before it count its parent.
            let mut rest = word;
            for bit in 0..64 {
                if rest & 1 == 0 {
                    if zeros == state {
                        let ones = i * 64 + bit - state;
                        return ones.checked_sub(1);
                    }
                    zeros += 1;
                }
                rest >>= 1;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genealogy_remembers_every_parent() {
        let mut genealogy = Genealogy::default();
        let parents: Vec<u64> = (0..1000u64)
            .map(|i| if i < 3 { 0 } else { i * i / 1500 + 1 })
            .collect();
        parents.iter().for_each(|&p| genealogy.birth(p));
        for (child, &parent) in parents.iter().enumerate() {
            assert_eq!(genealogy.parent(child), (parent as usize).checked_sub(1));
        }
    }
}
