//! The event kernel: a queue of events ordered by time, and among equal times by insertion.
//!
//! Time is in picoseconds. Near events lie in a wheel of buckets, each an intrusive list in insertion
//! order; a bucket is sorted (stably) when the clock reaches it. Far events lie in a heap and move to
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
    time: Time,
    event: E,
    next: u32,
}

#[derive(Clone, Copy)]
struct Bucket {
    first: u32,
    last: u32,
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
    /// Events of the bucket at the cursor, in order; those before `head` are gone.
    current: Vec<(Time, E)>,
    head: usize,
    buckets: Vec<Bucket>,
    occupied: [u64; (BUCKETS / 64) as usize],
    summary: u64,
    nodes: Vec<Node<E>>,
    free: u32,
    far: BinaryHeap<Reverse<Far<E>>>,
    /// Time of the earliest far event, so that the heap is looked at only when it matters.
    far_first: Time,
    inserted: u64,
    length: usize,
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
            head: 0,
            buckets: vec![
                Bucket {
                    first: NONE,
                    last: NONE
                };
                BUCKETS as usize
            ],
            occupied: [0; (BUCKETS / 64) as usize],
            summary: 0,
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            far_first: Time::MAX,
            inserted: 0,
            length: 0,
        }
    }

    /// The time of the event taken last, in picoseconds.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of events that lie in the queue.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether no event lies in the queue.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Inserts an event. A time before [`Queue::now`] counts as now.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        let time = time.max(self.now);
        self.length += 1;
        let bucket = time >> SPAN;
        if bucket <= self.cursor {
            // Into what is left of the bucket at hand, behind all that is not later.
            let mut place = self.current.len();
            while place > self.head && self.current[place - 1].0 > time {
                place -= 1;
            }
            self.current.insert(place, (time, event));
        } else if bucket - self.cursor < BUCKETS {
            self.append(bucket, time, event);
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
        let (time, event) = match self.current.get(self.head) {
            Some(&next) => {
                self.head += 1;
                next
            }
            None => self.advance()?,
        };
        self.length -= 1;
        self.now = time;
        Some((time, event))
    }

    fn append(&mut self, bucket: u64, time: Time, event: E) {
        let node = Node {
            time,
            event,
            next: NONE,
        };
        let index = match self.free {
            NONE => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
            index => {
                self.free = self.nodes[index as usize].next;
                self.nodes[index as usize] = node;
                index
            }
        };
        let place = (bucket % BUCKETS) as usize;
        let list = &mut self.buckets[place];
        if list.first == NONE {
            list.first = index;
            self.occupied[place / 64] |= 1 << (place % 64);
            self.summary |= 1 << (place / 64);
        } else {
            self.nodes[list.last as usize].next = index;
        }
        list.last = index;
    }

    /// Moves to the next bucket that holds an event, and takes its first.
    fn advance(&mut self) -> Option<(Time, E)> {
        if self.length == 0 {
            return None;
        }
        self.cursor = match self.next_occupied() {
            Some(bucket) => bucket,
            None => self.far_first >> SPAN,
        };
        if self.far_first >> SPAN < self.cursor + BUCKETS {
            // What lies in the wheel is earlier than all that is far, so the cursor stays right.
            self.bring_near();
        }
        let place = (self.cursor % BUCKETS) as usize;
        let first = self.buckets[place].first;
        self.buckets[place].first = NONE;
        let word = &mut self.occupied[place / 64];
        *word &= !(1 << (place % 64));
        if *word == 0 {
            self.summary &= !(1 << (place / 64));
        }
        self.current.clear();
        self.head = 0;
        let node = self.nodes[first as usize];
        if node.next != NONE {
            return Some(self.sort(first));
        }
        // Alone, as most are.
        self.nodes[first as usize].next = self.free;
        self.free = first;
        Some((node.time, node.event))
    }

    /// Brings the list of a bucket into order, and takes its first.
    fn sort(&mut self, mut index: u32) -> (Time, E) {
        while index != NONE {
            let node = self.nodes[index as usize];
            self.nodes[index as usize].next = self.free;
            self.free = index;
            index = node.next;
            // Insertion sort: buckets are short and nearly in order. Strict, so equal times keep their order.
            let mut place = self.current.len();
            while place > 0 && self.current[place - 1].0 > node.time {
                place -= 1;
            }
            self.current.insert(place, (node.time, node.event));
        }
        self.head = 1;
        self.current[0]
    }

    /// Moves far events that the wheel reaches by now into it, in order.
    fn bring_near(&mut self) {
        while let Some(Reverse(first)) = self.far.peek() {
            if first.time >> SPAN >= self.cursor + BUCKETS {
                break;
            }
            if let Some(Reverse(far)) = self.far.pop() {
                self.append(far.time >> SPAN, far.time, far.event);
            }
        }
        self.far_first = self
            .far
            .peek()
            .map_or(Time::MAX, |Reverse(first)| first.time);
    }

    /// The first occupied bucket after the cursor.
    fn next_occupied(&self) -> Option<u64> {
        if self.summary == 0 {
            return None;
        }
        let start = ((self.cursor + 1) % BUCKETS) as usize;
        let (word, bit) = (start / 64, start % 64);
        let here = self.occupied[word] & (u64::MAX << bit);
        let place = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            let above = match word {
                63 => 0,
                _ => self.summary & (u64::MAX << (word + 1)),
            };
            // Nothing above: around the end, to the lowest word that holds anything.
            let word = match above {
                0 => self.summary.trailing_zeros(),
                words => words.trailing_zeros(),
            } as usize;
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        let distance = (place as u64 + BUCKETS - start as u64) % BUCKETS;
        Some(self.cursor + 1 + distance)
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
