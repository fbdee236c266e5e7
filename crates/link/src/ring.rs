//! Queue of units in flight with reused slots.

/// A queue whose elements never move. A removed element keeps its slot and its allocations until the slot is reused.
pub struct Ring<T> {
    /// Slots; their number is a power of two.
    slots: Vec<T>,
    /// Index of the first element.
    first: usize,
    /// Number of elements.
    count: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring {
            slots: Vec::new(),
            first: 0,
            count: 0,
        }
    }
}

impl<T: Default> Ring<T> {
    /// Appends the next slot, with its stale contents, after `write` has overwritten it.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut T)) {
        if self.count == self.slots.len() {
            self.grow();
        }
        let index = (self.first + self.count) & (self.slots.len() - 1);
        if let Some(slot) = self.slots.get_mut(index) {
            write(slot);
            self.count += 1;
        }
    }

    /// Doubles the number of slots, at least to 8.
    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.first);
        self.first = 0;
        let slot_count = (2 * self.count).max(8);
        self.slots.resize_with(slot_count, T::default);
    }
}

impl<T> Ring<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Element at a position counted from the front, if it exists.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match index < self.count {
            true => self
                .slots
                .get((self.first + index) & (self.slots.len() - 1)),
            false => None,
        }
    }

    /// First element, if any.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// First element, if any.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        let is_occupied = self.count > 0;
        self.slots.get_mut(self.first).filter(|_| is_occupied)
    }

    /// Removes the first element, if any.
    #[inline]
    pub fn drop_front(&mut self) {
        if self.count > 0 {
            self.first = (self.first + 1) & (self.slots.len() - 1);
            self.count -= 1;
        }
    }

    /// Removes the last element, if any.
    pub fn drop_back(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        (self.first, self.count) = (0, 0);
    }

    /// Removes all elements for which `keep` returns false.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.slots.rotate_left(self.first);
        self.first = 0;
        let mut kept_count = 0;
        for index in 0..self.count {
            if keep(&self.slots[index]) {
                self.slots.swap(kept_count, index);
                kept_count += 1;
            }
        }
        self.count = kept_count;
    }

    /// All elements, front to back.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (head, tail) = self.slots.split_at(self.first);
        let tail_count = self.count.min(tail.len());
        tail[..tail_count]
            .iter()
            .chain(&head[..self.count - tail_count])
    }

    /// All elements, front to back.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        let (head, tail) = self.slots.split_at_mut(self.first);
        let tail_count = self.count.min(tail.len());
        let head = &mut head[..self.count - tail_count];
        tail[..tail_count].iter_mut().chain(head)
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use std::collections::VecDeque;

    #[test]
    fn ring_matches_vecdeque() {
        let mut random = cohkit_base::random::SplitMix64::new(5);
        let (mut ring, mut queue) = (Ring::default(), VecDeque::new());
        for number in 0..20_000u64 {
            match random.modulo(64) {
                0 => {
                    ring.drop_back();
                    queue.pop_back();
                }
                1 => {
                    ring.retain(|number| number % 3 > 0);
                    queue.retain(|number| number % 3 > 0);
                }
                2 if random.modulo(20) == 0 => {
                    ring.clear();
                    queue.clear();
                }
                draw if draw % 2 == 0 => {
                    ring.push_with(|slot| *slot = number);
                    queue.push_back(number);
                }
                _ => {
                    ring.drop_front();
                    queue.pop_front();
                }
            }
            assert_eq!(
                (ring.len(), ring.is_empty()),
                (queue.len(), queue.is_empty())
            );
            assert_eq!(
                (ring.front(), ring.iter().next_back()),
                (queue.front(), queue.back())
            );
            assert!(ring.iter().eq(&queue));
            assert!(ring.iter_mut().rev().eq(queue.iter_mut().rev()));
        }
    }
}
