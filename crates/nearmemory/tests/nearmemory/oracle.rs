//! The scratchpad against an independent implementation of its rules: a plain array of lines, and lists of held
//! requests.

use cohkit_nearmemory::{HostResponse, Kind, Notice, Scratchpad, LINE};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Number of lines: few, so that requests to the same line are frequent.
const LINES: usize = 3;
/// Kinds of requests, each with its own lock per line.
const KINDS: [Kind; 2] = [Kind::Read, Kind::WriteBack];

/// A step of host or core; the first value is the line.
#[derive(Clone, Debug)]
enum Step {
    /// The host reads the line.
    Read(usize),
    /// The host writes the line back, filled with this byte.
    WriteBack(usize, u8),
    /// The core fills the line with this byte.
    Core(usize, u8),
    /// The core locks the line for requests of this kind, which are then held.
    Lock(usize, Kind),
    /// The core releases the oldest held request of this kind.
    Release(usize, Kind),
    /// The core removes the lock, which releases all held requests of this kind.
    Unlock(usize, Kind),
}

/// Sequences of up to 200 steps.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (line, kind) = (0..LINES, prop::sample::select(&KINDS[..]));
    let line_and_kind = (line.clone(), kind);
    let step = prop_oneof![
        line.clone().prop_map(Step::Read),
        (line.clone(), any::<u8>()).prop_map(|(line, byte)| Step::WriteBack(line, byte)),
        (line, any::<u8>()).prop_map(|(line, byte)| Step::Core(line, byte)),
        line_and_kind
            .clone()
            .prop_map(|(line, kind)| Step::Lock(line, kind)),
        line_and_kind
            .clone()
            .prop_map(|(line, kind)| Step::Release(line, kind)),
        line_and_kind.prop_map(|(line, kind)| Step::Unlock(line, kind)),
    ];
    prop::collection::vec(step, 0..200)
}

/// Reference model; one byte represents a line.
#[derive(Default)]
struct Oracle {
    /// Byte of each line.
    memory: [u8; LINES],
    /// Times of the last read and of the last write-back of each line.
    stamps: [(u64, u64); LINES],
    /// True if the line is locked for the kind of request.
    locked: [[bool; 2]; LINES],
    /// Held requests in the order of arrival, with the byte of a write-back.
    held: Vec<(usize, Kind, u64, u8)>,
    /// Reads that wait until earlier write-backs are stored.
    delayed_reads: Vec<(usize, u64)>,
    /// Answers: number of the request and, for a read, the byte.
    answers: Vec<(u64, Option<u8>)>,
    /// Notices not yet taken, oldest first.
    notices: VecDeque<Notice>,
}

impl Oracle {
    /// Index of the oldest held request of this kind to a line.
    fn first_held(&self, line: usize, kind: Kind) -> Option<usize> {
        let mut held = self.held.iter();
        held.position(|held| (held.0, held.1) == (line, kind))
    }

    /// True if a write-back that precedes this read is not stored yet, because an earlier one is held.
    fn is_late(&self, line: usize, read: u64) -> bool {
        let held = self.held.iter();
        let write_backs = held.filter(|held| (held.0, held.1) == (line, Kind::WriteBack));
        write_backs.skip(1).any(|held| held.2 < read)
    }

    /// Handles a request of the host at the time `now`; `byte` is the data of a write-back.
    fn handle_request(&mut self, line: usize, kind: Kind, request: u64, byte: u8, now: u64) {
        if kind == Kind::Read && self.is_late(line, request) {
            self.delayed_reads.push((line, request));
            return;
        }
        let is_locked = self.locked[line][kind as usize];
        if kind == Kind::WriteBack && self.first_held(line, kind).is_none() {
            self.memory[line] = byte;
            self.stamps[line].1 = now;
        }
        if is_locked {
            // A write-back causes a notice once it is stored.
            if kind == Kind::Read || self.first_held(line, kind).is_none() {
                self.notices.push_back(Notice { line, kind });
            }
            self.held.push((line, kind, request, byte));
        } else {
            self.answer(line, kind, request, now);
        }
    }

    /// Answers a request, and stamps the line if it is a read.
    fn answer(&mut self, line: usize, kind: Kind, request: u64, now: u64) {
        let byte = (kind == Kind::Read).then_some(self.memory[line]);
        if byte.is_some() {
            self.stamps[line].0 = now;
        }
        self.answers.push((request, byte));
    }

    /// Releases the oldest held request. Returns false if there is none.
    fn release(&mut self, line: usize, kind: Kind, now: u64) -> bool {
        let Some(index) = self.first_held(line, kind) else {
            return false;
        };
        let (_, _, request, _) = self.held.remove(index);
        self.answer(line, kind, request, now);
        if let (Kind::WriteBack, Some(next)) = (kind, self.first_held(line, kind)) {
            self.memory[line] = self.held[next].3;
            self.stamps[line].1 = now;
            self.notices.push_back(Notice { line, kind });
        }
        for (line, request) in std::mem::take(&mut self.delayed_reads) {
            self.handle_request(line, Kind::Read, request, 0, now);
        }
        true
    }
}

/// Performs the steps on both, and compares answers, lines, stamps and notices after each step.
fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (mut oracle, mut scratchpad) = (Oracle::default(), Scratchpad::new(LINES));
    let mut answers = Vec::new();
    for (i, step) in steps.into_iter().enumerate() {
        let (request, now) = (i as u64, 10 * i as u64);
        let new_answers: Vec<HostResponse> = match step {
            Step::Read(line) => {
                oracle.handle_request(line, Kind::Read, request, 0, now);
                scratchpad
                    .read(line, request, now)
                    .unwrap()
                    .into_iter()
                    .collect()
            }
            Step::WriteBack(line, byte) => {
                oracle.handle_request(line, Kind::WriteBack, request, byte, now);
                let answer = scratchpad.write_back(line, request, &[byte; LINE], now);
                answer.unwrap().into_iter().collect()
            }
            Step::Core(line, byte) => {
                oracle.memory[line] = byte;
                scratchpad.line_mut(line).unwrap().fill(byte);
                vec![]
            }
            Step::Lock(line, kind) => {
                oracle.locked[line][kind as usize] = true;
                scratchpad.lock(line, kind).unwrap();
                vec![]
            }
            Step::Release(line, kind) => {
                oracle.release(line, kind, now);
                scratchpad.release(line, kind, now).unwrap()
            }
            Step::Unlock(line, kind) => {
                oracle.locked[line][kind as usize] = false;
                while oracle.release(line, kind, now) {}
                let withdrawn = Notice { line, kind };
                oracle.notices.retain(|notice| *notice != withdrawn);
                scratchpad.unlock(line, kind, now).unwrap()
            }
        };
        answers.extend(new_answers.into_iter().map(|answer| match answer {
            HostResponse::Read { request, data } => {
                assert!(data.iter().all(|byte| *byte == data[0]));
                (request, Some(data[0]))
            }
            HostResponse::Written { request } => (request, None),
        }));
        prop_assert_eq!(&answers, &oracle.answers);
        for line in 0..LINES {
            prop_assert_eq!(scratchpad.line(line).unwrap(), &[oracle.memory[line]; LINE]);
            let stamps = scratchpad.stamps(line).unwrap();
            prop_assert_eq!((stamps.read, stamps.write), oracle.stamps[line]);
        }
        // Every third step, the core takes a notice.
        if i % 3 == 0 {
            prop_assert_eq!(scratchpad.take_notice(), oracle.notices.pop_front());
        }
    }
    while let Some(notice) = oracle.notices.pop_front() {
        prop_assert_eq!(scratchpad.take_notice(), Some(notice));
    }
    prop_assert_eq!(scratchpad.take_notice(), None);
    Ok(())
}

proptest! {
    #[test]
    fn scratchpad_matches_the_reference_rules(steps in steps()) {
        run(steps)?;
    }
}

/// A read waits for write-backs that precede it but are not stored yet, and then returns the last of them.
#[test]
fn read_returns_an_earlier_write_back() {
    let mut scratchpad = Scratchpad::new(1);
    let kind = Kind::WriteBack;
    scratchpad.lock(0, kind).unwrap();
    scratchpad.write_back(0, 1, &[1; LINE], 5).unwrap();
    let read = |request, byte| HostResponse::Read {
        request,
        data: Box::new([byte; LINE]),
    };
    assert_eq!(scratchpad.read(0, 2, 6), Ok(Some(read(2, 1))));
    scratchpad.write_back(0, 3, &[3; LINE], 7).unwrap();
    assert_eq!(scratchpad.read(0, 4, 8), Ok(None));
    scratchpad.write_back(0, 5, &[5; LINE], 9).unwrap();
    assert_eq!(scratchpad.read(0, 6, 10), Ok(None));
    let written = |request| HostResponse::Written { request };
    let answers = scratchpad.release(0, kind, 11);
    assert_eq!(answers, Ok(vec![written(1), read(4, 3)]));
    let answers = scratchpad.unlock(0, kind, 12);
    assert_eq!(answers, Ok(vec![written(3), read(6, 5), written(5)]));
}

/// A write-back to a line with a held one is stored, stamped and announced only after the first one's release.
#[test]
fn second_write_back_applies_after_the_release() {
    let mut scratchpad = Scratchpad::new(1);
    let kind = Kind::WriteBack;
    scratchpad.lock(0, kind).unwrap();
    assert_eq!(scratchpad.write_back(0, 1, &[1; LINE], 5), Ok(None));
    assert_eq!(scratchpad.write_back(0, 2, &[2; LINE], 6), Ok(None));
    assert_eq!(
        scratchpad.line(0),
        Some(&[1; LINE]),
        "it is stored before it is released"
    );
    // The stored write-back has a notice; the second one gets its notice when it is stored.
    assert_eq!(scratchpad.take_notice(), Some(Notice { line: 0, kind }));
    assert_eq!(scratchpad.take_notice(), None);
    let answer = scratchpad.release(0, kind, 7);
    assert_eq!(answer, Ok(vec![HostResponse::Written { request: 1 }]));
    assert_eq!(scratchpad.line(0), Some(&[2; LINE]));
    assert_eq!(scratchpad.stamps(0).unwrap().write, 7);
    assert_eq!(scratchpad.take_notice(), Some(Notice { line: 0, kind }));
    let answers = scratchpad.unlock(0, kind, 8);
    assert_eq!(answers, Ok(vec![HostResponse::Written { request: 2 }]));
}
