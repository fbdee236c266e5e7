//! The event kernel: a queue of events ordered by time, and among equal times by insertion.
//!
//! Time is in picoseconds. Near events are in a wheel of buckets, each an intrusive list in order of time. Most
//! events are later than all others in their bucket and are appended. The others are inserted by a search from the
//! start of the list.
//!
//! Far events are in a heap. They move to the wheel as soon as it covers their time, before any other event of that
//! time can be inserted. No event causes an allocation once the pools have grown to the maximum number of events at
//! a time.

use cohkit_base::memory::prefetch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time of the kernel, and its scales.
pub use cohkit_units::{Time, NANOSECOND, SECOND};

/// Logarithm of the time that a bucket spans: 512 ps, about the time between two events of most machines. Queues
/// for many events have smaller buckets.
const SPAN: u32 = 9;
/// Logarithm of the time that the wheel spans: about 2.1 us.
const WHEEL: u32 = 21;
/// Number of events at a time below which buckets have their full span.
const SPARSE_EVENTS: u64 = 1024;
/// Look-ahead of the three prefetch stages of [`Queue::announce_next`]: the maximum number of events, and of buckets,
/// ahead of the next one.
const LOOK_AHEAD: [u64; 3] = [48, 24, 8];
/// Index that stands for no node.
const NONE: u32 = u32::MAX;

/// A near event, or a free node, whose event is stale.
#[derive(Clone, Copy)]
struct Node<E> {
    /// The event.
    event: E,
    /// Next node of its bucket, or of the free list.
    next: u32,
    /// Picoseconds from the start of its bucket.
    offset: u16,
    /// Stages of [`Queue::announce_next`] that have reported the event, one bit each.
    announced: u8,
}

/// A list of nodes. `last` is undefined if the list is empty.
#[derive(Clone, Copy)]
struct Bucket {
    /// Earliest node, or [`NONE`] if the bucket is empty.
    first: u32,
    /// Latest node.
    last: u32,
    /// The node that was last inserted before others, or [`NONE`] once it has been taken.
    inserted: u32,
}

/// A far event, ordered by time and then insertion.
struct FarEvent<E> {
    /// Time of the event, in picoseconds.
    time: Time,
    /// Number in the order of insertion.
    number: u64,
    /// The event.
    event: E,
}

impl<E> PartialEq for FarEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.number) == (other.time, other.number)
    }
}
impl<E> Eq for FarEvent<E> {}
impl<E> PartialOrd for FarEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for FarEvent<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

/// A deterministic event queue.
pub struct Queue<E> {
    /// Time of the last event taken, in picoseconds.
    now: Time,
    /// A bucket spans `1 << span` picoseconds.
    span: u32,
    /// Number of the first bucket of the wheel, counted from time 0 without wrapping. `now` lies in it.
    cursor: u64,
    /// The wheel. Its length is a power of two.
    buckets: Box<[Bucket]>,
    /// One bit for each bucket, set if it contains an event.
    occupied: Box<[u64]>,
    /// Nodes of all buckets, and free nodes.
    nodes: Vec<Node<E>>,
    /// First free node, or [`NONE`].
    free: u32,
    /// Events beyond the wheel, the earliest first.
    far: BinaryHeap<Reverse<FarEvent<E>>>,
    /// Number of the bucket of the earliest far event, `u64::MAX` if there is none. Avoids accesses to the heap.
    far_bucket: u64,
    /// Number of far events inserted so far.
    inserted: u64,
    /// Progress of each stage of [`Queue::announce_next`].
    announced: [Announced; LOOK_AHEAD.len()],
}

/// Progress of a stage of [`Queue::announce_next`].
#[derive(Clone, Copy, Default)]
struct Announced {
    /// Number of reported events that are still in the queue.
    events: u64,
    /// Node of the last reported event. All other reported events precede it. Undefined if `events` is 0.
    last: u32,
    /// Number of the bucket of that event.
    bucket: u64,
}

impl<E: Copy> Default for Queue<E> {
    fn default() -> Self {
        Queue::new()
    }
}

impl<E: Copy> Queue<E> {
    /// Creates an empty queue at time 0.
    pub fn new() -> Self {
        Queue::for_events(0)
    }

    /// Creates an empty queue at time 0 for about `events` events at a time. More events have smaller buckets.
    pub fn for_events(events: u64) -> Self {
        let span = SPAN
            - (events / SPARSE_EVENTS)
                .checked_ilog2()
                .map_or(0, |bits| (bits + 1).min(SPAN));
        let empty = Bucket {
            first: NONE,
            last: NONE,
            inserted: NONE,
        };
        let buckets = 1 << (WHEEL - span);
        Queue {
            now: 0,
            span,
            cursor: 0,
            buckets: vec![empty; buckets].into(),
            occupied: vec![0; buckets / 64].into(),
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            far_bucket: u64::MAX,
            inserted: 0,
            announced: [Announced::default(); LOOK_AHEAD.len()],
        }
    }

    /// Number of the wheel's buckets.
    #[inline(always)]
    fn bucket_count(&self) -> u64 {
        self.buckets.len() as u64
    }

    /// Index of a bucket in the wheel.
    #[inline(always)]
    fn wheel_index(&self, bucket: u64) -> usize {
        bucket as usize & (self.buckets.len() - 1)
    }

    /// Time of the last event taken, in picoseconds.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of events in the queue. Takes time linear in the number of free nodes.
    pub fn len(&self) -> usize {
        let mut near = self.nodes.len();
        let mut free = self.free;
        while free != NONE {
            near -= 1;
            free = self.nodes[free as usize].next;
        }
        near + self.far.len()
    }

    /// True if the queue contains no event.
    pub fn is_empty(&self) -> bool {
        self.far.is_empty() && self.occupied.iter().all(|&word| word == 0)
    }

    /// Inserts an event. A time before [`Queue::now`] is treated as now.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        let time = time.max(self.now);
        let is_near = (time >> self.span) - self.cursor < self.bucket_count();
        let index = self.free;
        let place = self.wheel_index(time >> self.span);
        let offset = time as u16 & ((1 << self.span) - 1);
        let node = match self.nodes.get_mut(index as usize) {
            Some(node) if is_near => node,
            _ => return self.push_far(time, event),
        };
        self.free = node.next;
        *node = Node {
            event,
            next: NONE,
            offset,
            announced: 0,
        };
        let bucket = &mut self.buckets[place];
        if bucket.first == NONE {
            bucket.first = index;
            bucket.last = index;
            self.occupied[place / 64] |= 1 << (place % 64);
            return;
        }
        let last = &mut self.nodes[bucket.last as usize];
        if last.offset <= offset {
            last.next = index;
            bucket.last = index;
        } else {
            self.insert(place, index, offset);
        }
    }

    /// Inserts an event beyond the wheel, or one for which there is no free node.
    #[cold]
    fn push_far(&mut self, time: Time, event: E) {
        if (time >> self.span) - self.cursor < self.bucket_count() {
            self.free = self.nodes.len() as u32;
            self.nodes.push(Node {
                event,
                next: NONE,
                offset: 0,
                announced: 0,
            });
            return self.push(time, event);
        }
        self.inserted += 1;
        self.far_bucket = self.far_bucket.min(time >> self.span);
        self.far.push(Reverse(FarEvent {
            time,
            number: self.inserted,
            event,
        }));
    }

    /// Removes the earliest event, and among equal times the one inserted first. Returns it with its time, in
    /// picoseconds, which becomes the current time; `None` if the queue is empty.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        // The next event is usually a few buckets ahead, in the same word of bits.
        let occupied_bits = self.occupied[self.wheel_index(self.cursor) / 64] >> (self.cursor % 64);
        self.cursor = match occupied_bits {
            0 => self.next_occupied()?,
            _ => self.cursor + u64::from(occupied_bits.trailing_zeros()),
        };
        if self.far_bucket < self.cursor + self.bucket_count() {
            // Events in the wheel precede all far events, so the cursor remains correct.
            self.move_far_events();
        }
        let place = self.wheel_index(self.cursor);
        let index = self.buckets[place].first;
        let node = &mut self.nodes[index as usize];
        self.now = (self.cursor << self.span) + Time::from(node.offset);
        if node.next == NONE {
            self.occupied[place / 64] &= !(1 << (place % 64));
        }
        if node.announced > 0 {
            for (stage, progress) in self.announced.iter_mut().enumerate() {
                progress.events -= u64::from(node.announced >> stage & 1);
            }
        }
        let bucket = &mut self.buckets[place];
        if bucket.inserted == index {
            bucket.inserted = NONE;
        }
        bucket.first = std::mem::replace(&mut node.next, self.free);
        self.free = index;
        Some((self.now, node.event))
    }

    /// Time of the earliest event, in picoseconds, if there is one.
    pub fn next(&self) -> Option<Time> {
        let occupied_bits = self.occupied[self.wheel_index(self.cursor) / 64] >> (self.cursor % 64);
        let bucket = match occupied_bits {
            0 => self.next_occupied()?,
            _ => self.cursor + u64::from(occupied_bits.trailing_zeros()),
        };
        let first = self.buckets[self.wheel_index(bucket)].first;
        match (first, self.far.peek()) {
            // All far events are later than those in the wheel.
            (NONE, far) => far.map(|Reverse(far)| far.time),
            (first, _) => {
                Some((bucket << self.span) + Time::from(self.nodes[first as usize].offset))
            }
        }
    }

    /// Reports the next events, so that the memory they need can be prefetched. Stages 0, 1 and 2 look ahead less and
    /// less: each can prefetch state whose address depends on data that the previous stage has fetched.
    ///
    /// Each stage reports an event at most once. An event inserted before the last reported one may be missed.
    #[inline]
    pub fn announce_next(&mut self, stage: usize, mut announce: impl FnMut(&E)) {
        while self.announced[stage].events < LOOK_AHEAD[stage] {
            let Some((bucket, index)) = self.next_unannounced(stage) else {
                return;
            };
            let node = &mut self.nodes[index as usize];
            node.announced |= 1 << stage;
            announce(&node.event);
            // The next node is the next one to be reported.
            let next = node.next;
            prefetch(self.nodes.as_ptr().wrapping_add(next as usize));
            let progress = &mut self.announced[stage];
            *progress = Announced {
                events: progress.events + 1,
                last: index,
                bucket,
            };
        }
    }

    /// Returns the first event that a stage has not reported, with its bucket, if it lies within the look-ahead.
    #[inline(always)]
    fn next_unannounced(&self, stage: usize) -> Option<(u64, u32)> {
        let Announced {
            events,
            last,
            bucket,
        } = self.announced[stage];
        let mut bucket = match events {
            0 => self.cursor,
            _ => match self.nodes[last as usize].next {
                NONE => bucket + 1,
                next => return Some((bucket, next)),
            },
        };
        let end = self.cursor + LOOK_AHEAD[stage];
        while bucket < end {
            let bits = self.occupied[self.wheel_index(bucket) / 64] >> (bucket % 64);
            if bits != 0 {
                bucket += u64::from(bits.trailing_zeros());
                let first = || (bucket, self.buckets[self.wheel_index(bucket)].first);
                return (bucket < end).then(first);
            }
            bucket += 64 - bucket % 64;
        }
        None
    }

    /// Inserts a node before the last node of its bucket, which is not empty.
    #[inline(never)]
    fn insert(&mut self, place: usize, index: u32, offset: u16) {
        let mut previous = NONE;
        let mut following = self.buckets[place].first;
        // Events of one time are often inserted consecutively.
        let inserted = self.buckets[place].inserted;
        if inserted != NONE && self.nodes[inserted as usize].offset <= offset {
            previous = inserted;
            following = self.nodes[inserted as usize].next;
        }
        while self.nodes[following as usize].offset <= offset {
            previous = following;
            following = self.nodes[following as usize].next;
        }
        self.nodes[index as usize].next = following;
        match previous {
            NONE => self.buckets[place].first = index,
            previous => self.nodes[previous as usize].next = index,
        }
        self.buckets[place].inserted = index;
    }

    /// Moves far events that the wheel now covers into it, in order.
    #[cold]
    fn move_far_events(&mut self) {
        while let Some(Reverse(first)) = self.far.peek() {
            self.far_bucket = first.time >> self.span;
            if self.far_bucket >= self.cursor + self.bucket_count() {
                return;
            }
            if let Some(Reverse(far)) = self.far.pop() {
                self.push(far.time, far.event);
            }
        }
        self.far_bucket = u64::MAX;
    }

    /// Returns the first occupied bucket beyond the cursor's word of bits, or the bucket of the first far event.
    fn next_occupied(&self) -> Option<u64> {
        let word = self.cursor / 64;
        // Goes once around the wheel. The last word holds the buckets before the cursor in the cursor's own word.
        for ahead in word + 1..=word + self.bucket_count() / 64 {
            let bits = self.occupied[self.wheel_index(ahead * 64) / 64];
            if bits != 0 {
                return Some(ahead * 64 + u64::from(bits.trailing_zeros()));
            }
        }
        (!self.far.is_empty()).then_some(self.far_bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        /// Any mixture of near and far insertions and removals gives the same events as a sorted map.
        #[test]
        fn event_queue_matches_a_sorted_map(events in 0u64..20_000, steps in prop::collection::vec(
            prop_oneof![
                (0u64..3_000).prop_map(Some),
                (0u64..40).prop_map(|n| Some(n * 131_072)),
                (0u64..20_000_000).prop_map(Some),
                Just(None),
                Just(None),
            ], 0..600)) {
            let mut queue = Queue::for_events(events);
            let mut map = BTreeMap::new();
            let mut announced = LOOK_AHEAD.map(|_| BTreeSet::new());
            let mut pop = |queue: &mut Queue<usize>, map: &mut BTreeMap<(Time, usize), ()>| {
                let expected = map.pop_first().map(|(key, ())| key);
                prop_assert_eq!(queue.next(), expected.map(|(time, _)| time));
                prop_assert_eq!(queue.pop(), expected);
                for (stage, announced) in announced.iter_mut().enumerate() {
                    let mut newly_announced = Vec::new();
                    queue.announce_next(stage, |&number| newly_announced.push(number));
                    for number in newly_announced {
                        prop_assert!(announced.insert(number), "{} is told twice", number);
                        let (due, _) = *map.keys().find(|key| key.1 == number).expect("it is in the queue");
                        prop_assert!(due - queue.now() <= LOOK_AHEAD[stage] << SPAN);
                    }
                    let waiting = map.keys().filter(|key| announced.contains(&key.1));
                    prop_assert!(waiting.count() as u64 <= LOOK_AHEAD[stage]);
                }
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
    fn past_events_are_scheduled_now() {
        let mut queue = Queue::new();
        queue.push(5_000, 'a');
        assert_eq!(queue.pop(), Some((5_000, 'a')));
        queue.push(10, 'b');
        assert_eq!(queue.pop(), Some((5_000, 'b')));
    }
}
