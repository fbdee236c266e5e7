//! The event kernel: a queue of events ordered by time, and among equal times by insertion.
//!
//! Time is in picoseconds. Near events lie in a wheel of buckets, each an intrusive list with the newest
//! event first; a bucket is sorted when the clock reaches it. Far events lie in a heap and move to
//! the wheel as soon as it reaches that far, before anything can be inserted beside them.
//! Nothing is allocated per event once the pools have grown to the largest number of events at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A moment or a duration in picoseconds.
pub type Time = u64;

/// Picoseconds in a nanosecond.
pub const NANOSECOND: Time = 1_000;
/// Picoseconds in a second.
pub const SECOND: Time = 1_000_000_000_000;

/// A bucket spans `1 << SPAN` picoseconds: about as long as machines have between two events.
const SPAN: u32 = 9;
/// Buckets in the wheel, a power of two of at most 4096: the bitmap has one word of summary.
const BUCKETS: u64 = 4096;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node<E> {
    event: E,
    /// Picoseconds from the begin of its bucket.
    offset: u32,
    /// The node that was inserted into the same bucket before it, or the next free node.
    next: u32,
}

/// A far event, ordered by time and then insertion.
struct Far<E> {
    time: Time,
    number: u64,
    event: E,
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.number) == (other.time, other.number)
    }
}
impl<E> Eq for Far<E> {}
impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

/// A deterministic event queue.
pub struct Queue<E> {
    now: Time,
    /// Number of the bucket being emptied, counted from time 0 and never wrapped.
    cursor: u64,
    /// Events of the bucket at the cursor, the next one last.
    current: Vec<(Time, E)>,
    /// The newest node of each bucket.
    buckets: Box<[u32; BUCKETS as usize]>,
    occupied: [u64; (BUCKETS / 64) as usize],
    summary: u64,
    nodes: Vec<Node<E>>,
    free: u32,
    far: BinaryHeap<Reverse<Far<E>>>,
    /// Time of the earliest far event, so that the heap is looked at only when it matters.
    far_first: Time,
    inserted: u64,
}

impl<E: Copy> Default for Queue<E> {
    fn default() -> Self {
        Queue::new()
    }
}

impl<E: Copy> Queue<E> {
    /// An empty queue at time 0.
    pub fn new() -> Self {
        Queue {
            now: 0,
            cursor: 0,
            current: Vec::new(),
            buckets: Box::new([NONE; BUCKETS as usize]),
            occupied: [0; (BUCKETS / 64) as usize],
            summary: 0,
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            far_first: Time::MAX,
            inserted: 0,
        }
    }

    /// The time of the event taken last, in picoseconds.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of events that lie in the queue. It is counted when asked for.
    pub fn len(&self) -> usize {
        let mut near = self.nodes.len();
        let mut free = self.free;
        while free != NONE {
            near -= 1;
            free = self.nodes[free as usize].next;
        }
        self.current.len() + near + self.far.len()
    }

    /// Whether no event lies in the queue.
    pub fn is_empty(&self) -> bool {
        self.current.is_empty() && self.summary == 0 && self.far.is_empty()
    }

    /// Inserts an event. A time before [`Queue::now`] counts as now.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        let bucket = time >> SPAN;
        // Wraps to a large number for the bucket at hand and all before it.
        if bucket.wrapping_sub(self.cursor + 1) < BUCKETS - 1 {
            self.append(time, event);
        } else {
            self.push_elsewhere(time, event);
        }
    }

    /// Inserts an event that does not belong into the wheel.
    fn push_elsewhere(&mut self, time: Time, event: E) {
        let time = time.max(self.now);
        if time >> SPAN <= self.cursor {
            // Into what is left of the bucket at hand, behind all that is not later.
            let mut place = self.current.len();
            while place > 0 && self.current[place - 1].0 <= time {
                place -= 1;
            }
            self.current.insert(place, (time, event));
        } else {
            self.inserted += 1;
            self.far_first = self.far_first.min(time);
            self.far.push(Reverse(Far {
                time,
                number: self.inserted,
                event,
            }));
        }
    }

    /// Takes the earliest event; among equal times the one inserted first.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let (time, event) = match self.current.pop() {
            Some(next) => next,
            None => self.advance()?,
        };
        self.now = time;
        Some((time, event))
    }

    /// Inserts an event into the wheel.
    #[inline]
    fn append(&mut self, time: Time, event: E) {
        let place = (time >> SPAN) as usize % BUCKETS as usize;
        let node = Node {
            event,
            offset: time as u32 & ((1 << SPAN) - 1),
            next: self.buckets[place],
        };
        let index = self.free;
        match self.nodes.get_mut(index as usize) {
            Some(free) => {
                self.free = free.next;
                *free = node;
                self.buckets[place] = index;
            }
            None => {
                self.buckets[place] = self.nodes.len() as u32;
                self.nodes.push(node);
            }
        }
        self.occupied[place / 64] |= 1 << (place % 64);
        self.summary |= 1 << (place / 64);
    }

    /// Moves to the next bucket that holds an event, and takes its first.
    #[inline]
    fn advance(&mut self) -> Option<(Time, E)> {
        self.cursor = match self.next_occupied() {
            Some(bucket) => bucket,
            None if self.far.is_empty() => return None,
            None => self.far_first >> SPAN,
        };
        if self.far_first >> SPAN < self.cursor + BUCKETS {
            // What lies in the wheel is earlier than all that is far, so the cursor stays right.
            self.bring_near();
        }
        let place = self.cursor as usize % BUCKETS as usize;
        let first = std::mem::replace(&mut self.buckets[place], NONE);
        let word = &mut self.occupied[place / 64];
        *word &= !(1 << (place % 64));
        if *word == 0 {
            self.summary &= !(1 << (place / 64));
        }
        let node = &mut self.nodes[first as usize];
        if node.next != NONE {
            self.sort(first);
            return self.current.pop();
        }
        // Alone, as most are.
        node.next = self.free;
        self.free = first;
        Some(((self.cursor << SPAN) + Time::from(node.offset), node.event))
    }

    /// Brings the list of the bucket at the cursor into order.
    fn sort(&mut self, mut index: u32) {
        while index != NONE {
            let node = &mut self.nodes[index as usize];
            let next = std::mem::replace(&mut node.next, self.free);
            let time = (self.cursor << SPAN) + Time::from(node.offset);
            let event = (time, node.event);
            self.free = index;
            index = next;
            // Insertion sort: buckets are short and nearly in order. An older event comes before
            // the newer ones of its time, which are there already.
            let mut place = self.current.len();
            self.current.push(event);
            while place > 0 && self.current[place - 1].0 < time {
                self.current[place] = self.current[place - 1];
                place -= 1;
            }
            self.current[place] = event;
        }
    }

    /// Moves far events that the wheel reaches by now into it, in order.
    fn bring_near(&mut self) {
        while let Some(Reverse(first)) = self.far.peek() {
            if first.time >> SPAN >= self.cursor + BUCKETS {
                break;
            }
            if let Some(Reverse(far)) = self.far.pop() {
                self.append(far.time, far.event);
            }
        }
        self.far_first = self
            .far
            .peek()
            .map_or(Time::MAX, |Reverse(first)| first.time);
    }

    /// The first occupied bucket after the cursor.
    #[inline]
    fn next_occupied(&self) -> Option<u64> {
        let next = self.cursor + 1;
        let word = (next / 64) as usize % 64;
        let here = self.occupied[word] >> (next % 64);
        if here != 0 {
            return Some(next + u64::from(here.trailing_zeros()));
        }
        if self.summary == 0 {
            return None;
        }
        // Ahead around the wheel; the word at hand, of which only the part before the start is left, comes last.
        let ahead = (word as u32 + 1) % 64;
        let words = self.summary.rotate_right(ahead).trailing_zeros();
        let found = self.occupied[(ahead + words) as usize % 64];
        let begin = next / 64 * 64 + 64 + u64::from(words) * 64;
        Some(begin + u64::from(found.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Any mixture of insertions, near and far, and removals gives what a sorted map gives.
        #[test]
        fn as_a_sorted_map(steps in prop::collection::vec(
            prop_oneof![
                (0u64..3_000).prop_map(Some),
                (0u64..40).prop_map(|n| Some(n * 131_072)),
                (0u64..20_000_000).prop_map(Some),
                Just(None),
                Just(None),
            ], 0..600)) {
            let mut queue = Queue::new();
            let mut map = BTreeMap::new();
            let pop = |queue: &mut Queue<usize>, map: &mut BTreeMap<(Time, usize), ()>| {
                let expected = map.pop_first().map(|(key, ())| key);
                prop_assert_eq!(queue.pop(), expected);
                Ok(())
            };
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some(delay) => {
                        let time = queue.now() + delay;
                        queue.push(time, number);
                        map.insert((time, number), ());
                    }
                    None => pop(&mut queue, &mut map)?,
                }
                prop_assert_eq!(queue.len(), map.len());
            }
            while !map.is_empty() {
                pop(&mut queue, &mut map)?;
            }
            prop_assert!(queue.is_empty() && queue.pop().is_none());
        }
    }

    #[test]
    fn the_past_counts_as_now() {
        let mut queue = Queue::new();
        queue.push(5_000, 'a');
        assert_eq!(queue.pop(), Some((5_000, 'a')));
        queue.push(10, 'b');
        assert_eq!(queue.pop(), Some((5_000, 'b')));
    }
}
