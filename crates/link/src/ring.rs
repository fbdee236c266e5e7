//! What is under way, in places that are used again.

/// A queue whose places stay where they are with what they hold, so that nothing is moved and what has room of its own keeps
/// it.
pub struct Ring<T> {
    /// As many as a power of two.
    places: Vec<T>,
    first: usize,
    count: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring {
            places: Vec::new(),
            first: 0,
            count: 0,
        }
    }
}

impl<T: Default> Ring<T> {
    /// The place behind all others, whatever it held before, if `make` fills it.
    #[inline]
    pub fn push_with(&mut self, make: impl FnOnce(&mut T)) {
        if self.count == self.places.len() {
            self.grow();
        }
        let place = (self.first + self.count) & (self.places.len() - 1);
        if let Some(place) = self.places.get_mut(place) {
            make(place);
            self.count += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.places.rotate_left(self.first);
        self.first = 0;
        let places = (2 * self.count).max(8);
        self.places.resize_with(places, T::default);
    }
}

impl<T> Ring<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The one behind so many others.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        match place < self.count {
            true => self
                .places
                .get((self.first + place) & (self.places.len() - 1)),
            false => None,
        }
    }

    /// The first of all.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The first of all.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        let there = self.count > 0;
        self.places.get_mut(self.first).filter(|_| there)
    }

    /// The first of all goes, if there is one.
    #[inline]
    pub fn drop_front(&mut self) {
        if self.count > 0 {
            self.first = (self.first + 1) & (self.places.len() - 1);
            self.count -= 1;
        }
    }

    /// The last of all goes, if there is one.
    pub fn drop_back(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// All go.
    pub fn clear(&mut self) {
        (self.first, self.count) = (0, 0);
    }

    /// Those go that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.places.rotate_left(self.first);
        self.first = 0;
        let mut kept = 0;
        for place in 0..self.count {
            if keep(&self.places[place]) {
                self.places.swap(kept, place);
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// All, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (begin, end) = self.places.split_at(self.first);
        let before = self.count.min(end.len());
        end[..before].iter().chain(&begin[..self.count - before])
    }

    /// All, in order.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        let (begin, end) = self.places.split_at_mut(self.first);
        let before = self.count.min(end.len());
        let begin = &mut begin[..self.count - before];
        end[..before].iter_mut().chain(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn it_holds_what_a_queue_holds() {
        let mut chance = crate::chance::Chance::new(5);
        let (mut ring, mut queue) = (Ring::default(), VecDeque::new());
        for number in 0..20_000u64 {
            match chance.below(64) {
                0 => {
                    ring.drop_back();
                    queue.pop_back();
                }
                1 => {
                    ring.retain(|number| number % 3 > 0);
                    queue.retain(|number| number % 3 > 0);
                }
                2 if chance.below(20) == 0 => {
                    ring.clear();
                    queue.clear();
                }
                draw if draw % 2 == 0 => {
                    ring.push_with(|place| *place = number);
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
