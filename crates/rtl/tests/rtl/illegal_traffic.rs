//! Checks that illegal traffic is refused or dropped, counted and recorded for software, without an effect on regular
//! traffic.
//!
//! These tests build the RTL with Verilator.

mod home;

use crate::homes;

use cohkit_rtl::lockstep::bench::Run;
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::registers::{counter_position, register};
use cohkit_rtl::sources::SOURCES;
use home::{beat, Home, LINE_BEATS};
use homes::seeded::{build_with_faults, fault_argument, Fault};
use homes::{build_home, compile_shipped, Built};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Illegal traffic at all ports amid all activity of a remote and a device. All bytes match the controllers, and the
/// registers record the illegal traffic.
#[test]
fn illegal_traffic_is_rejected_and_counted() {
    for file in ["eci.coh", "back-invalidate.coh"] {
        let Some(built) = build_home(compile_shipped(file), SOURCES, Shape::default()) else {
            return;
        };
        let setup = built.setup();
        let names = [
            "WrongMessages",
            "WrongLines",
            "WrongOperations",
            "WrongDeviceLines",
            "Impossible",
            "WrongLengths",
            "WrongReads",
            "WrongWrites",
        ];
        let mut counted = [0; 8];
        let mut illegal_inputs = 0;
        for seed in 0..9 {
            let run = Run {
                illegal_rate: [1, 16, 100][seed as usize % 3],
                ..Run::new(seed, 1000)
            };
            let report = setup
                .run(run, None)
                .unwrap_or_else(|failed| panic!("{file} {run:?}: {failed:#?}"));
            for (counted, name) in counted.iter_mut().zip(names) {
                let end = counter_position(name) + register(name).count;
                *counted += report.counters[counter_position(name)..end]
                    .iter()
                    .sum::<u64>();
            }
            illegal_inputs += report.illegal_inputs;
        }
        println!("{file}: {illegal_inputs} illegal inputs, {counted:?}");
        for (counted, name) in counted.iter().zip(names) {
            assert!(*counted > 20, "{file}: {name} {counted}");
        }
        assert_eq!(illegal_inputs, counted.iter().sum::<u64>(), "{file}");
    }
}

/// Number of the even slice.
const SLICE: usize = 0;
/// Bytes of a line.
const BYTES: u64 = 128;

// Numbers of messages and internal events of ECI, and of its circuits to the remote.
const READ_SHARED: u64 = 0;
const READ_EXCLUSIVE: u64 = 1;
const WRITE_LINE: u64 = 4;
const FORWARDS: usize = 0;
const GRANTS: usize = 1;
const MEMORY_DATA: u64 = 24;

/// Builds the home of ECI, and checks the numbers above.
fn eci() -> Option<Built> {
    let built = build_home(compile_shipped("eci.coh"), SOURCES, Shape::default())?;
    let rom = &built.compiled.rom;
    assert_eq!(rom.event("ReadShared"), Some(READ_SHARED as usize));
    assert_eq!(rom.event("ReadExclusive"), Some(READ_EXCLUSIVE as usize));
    assert_eq!(rom.event("WriteLine"), Some(WRITE_LINE as usize));
    assert_eq!(rom.memory_data(), MEMORY_DATA as usize);
    Some(built)
}

/// Reasons in `FirstWrong`, in their bits of the register.
const LENGTH: u64 = 7 << 56;
const READ: u64 = 8 << 56;
const BURST: u64 = 9 << 56;
const WRITE: u64 = 10 << 56;

/// Regression: a duplicated read beat shifted the line, and a missing one left old bytes. A beat without a read
/// overwrote the bytes of a completed read. The remote received the wrong bytes, and every register stayed 0.
fn check_memory_beats(built: &Built) {
    let duplicated_first = vec![beat(0, false), beat(0, false), beat(1, true)];
    let duplicated_second = vec![
        beat(0, false),
        beat(1, false),
        beat(1, false),
        beat(1, false),
        beat(1, true),
    ];
    let missing_first = vec![beat(1, true)];
    for beats in [duplicated_first, duplicated_second, missing_first] {
        let mut home = Home::new(built.model());
        home.beats = beats.clone();
        home.request(READ_SHARED, 4, 1);
        home.cycles(80);
        assert_eq!(home.sent[GRANTS], [], "{beats:?}");
        assert_eq!(home.register("FirstWrong", 0), BURST, "{beats:?}");
        assert_eq!(home.register("WrongBursts", 0), 1, "{beats:?}");
        assert_eq!(home.register("WrongReads", 0), 0, "{beats:?}");
        // The read entry is free, so the unit can still have the same number of outstanding reads.
        home.beats = LINE_BEATS.to_vec();
        home.memory_withholds = true;
        home.request(READ_SHARED, 8, 1);
        home.request(READ_SHARED, 12, 1);
        home.cycles(80);
        assert_eq!(home.addresses.len(), 3, "{beats:?}");
        home.memory_withholds = false;
        home.cycles(80);
        assert!(home.is_granted(8) && home.is_granted(12), "{beats:?}");
    }
    // Beats without a read, before the read's address was taken, and after its last beat.
    let mut home = Home::new(built.model());
    for id in [0, 2, 255] {
        for last in [false, true] {
            home.unsolicited_read = Some((id, last));
            home.cycle();
        }
    }
    assert_eq!(home.register("FirstWrong", 0), READ);
    assert_eq!(home.register("WrongReads", 0), 6);
    home.memory_refuses = true;
    home.request(READ_SHARED, 4, 1);
    home.cycles(40);
    let id = home.outputs.ar_id[SLICE];
    assert_eq!(home.outputs.ar_valid[SLICE], 1);
    home.unsolicited_read = Some((id, false));
    home.cycle();
    // The second beat of the line waits behind the first, which the link does not take.
    home.blocked_circuits = 1 << GRANTS;
    home.memory_refuses = false;
    home.cycles(40);
    for last in [false, true] {
        home.unsolicited_read = Some((id, last));
        home.cycle();
    }
    home.blocked_circuits = 0;
    home.cycles(40);
    assert!(home.is_granted(4));
    assert_eq!(home.register("WrongReads", 0), 9);
    assert_eq!(home.register("WrongBursts", 0), 0);
    assert_eq!(home.register("Events", MEMORY_DATA), 1);
}

/// Regression: an early write response ended the write, so a read returned the old bytes.
fn check_write_responses(built: &Built) {
    let mut home = Home::new(built.model());
    home.memory_refuses = true;
    home.request(WRITE_LINE, 4, 2);
    home.cycles(40);
    let id = *home.writes.front().expect("memory has the address");
    home.unsolicited_write = Some(id);
    home.cycle();
    home.unsolicited_write = Some(id ^ 0xff);
    home.cycles(40);
    assert_eq!(home.register("Events", MEMORY_DATA + 1), 0);
    assert_eq!(home.register("FirstWrong", 0), WRITE | id);
    assert_eq!(home.register("WrongWrites", 0), 2);
    let sent = |home: &Home| home.sent.iter().map(Vec::len).sum::<usize>();
    assert_eq!(sent(&home), 0);
    home.memory_refuses = false;
    home.cycles(40);
    assert_eq!(sent(&home), 1);
    assert_eq!(home.register("Events", MEMORY_DATA + 1), 1);
    // A second response.
    home.unsolicited_write = Some(id);
    home.cycles(40);
    assert_eq!(home.register("WrongWrites", 0), 3);
    assert_eq!(home.register("Status", 0), 3);
}

/// Regression: a message with a missing beat consumed the next header as data, and data of a message with a surplus
/// beat was decoded as a header. The same happened if the message number was corrupted to that of a message without
/// data, or to an unused one.
fn check_message_lengths(built: &Built) {
    for (message, beats, word) in [
        (WRITE_LINE, 1, LENGTH),
        (WRITE_LINE, 3, LENGTH),
        (WRITE_LINE, 40, LENGTH),
        (READ_SHARED, 2, LENGTH),
        (READ_SHARED, 3, LENGTH),
        (MEMORY_DATA, 2, 1 << 56),
        (255, 9, 1 << 56),
    ] {
        let mut home = Home::new(built.model());
        for _ in 0..3 {
            home.request(message, 4, beats);
        }
        home.request(READ_SHARED, 12, 1);
        home.request(WRITE_LINE, 16, 2);
        home.cycles(120);
        assert!(home.is_granted(12), "{message} {beats}");
        assert_eq!(home.addresses, [12 * BYTES], "{message} {beats}");
        assert_eq!(home.register("Events", WRITE_LINE), 1);
        assert_eq!(home.register("Events", MEMORY_DATA + 1), 1);
        assert_eq!(home.register("Events", READ_SHARED), 1);
        let first = home.register("FirstWrong", 0);
        assert_eq!(first, word | message << 40 | 4, "{message} {beats}");
        let name = if word == LENGTH {
            "WrongLengths"
        } else {
            "WrongMessages"
        };
        assert_eq!(home.register(name, 0), 3, "{message} {beats}");
        // No slot stays allocated.
        assert_eq!(home.register("Status", 0), 3, "{message} {beats}");
    }
}

/// Regression: errors of the device were recorded when they were refused, hence after errors of later messages; long
/// after them if the device accepted no answers.
fn check_order_of_recorded_errors(built: &Built) {
    let wrong_operation = 4 << 56 | 4 << 40 | 4;
    let wrong_message = 1 << 56 | MEMORY_DATA << 40 | 8;
    for gap in 0..4 {
        for device_first in [true, false] {
            let mut home = Home::new(built.model());
            let device = |home: &mut Home| {
                home.inputs.local_req[SLICE] = 4 << 36 | 4;
                home.inputs.local_req_valid[SLICE] = 1;
            };
            let link = |home: &mut Home| {
                home.inputs.rx_header[SLICE][0] = MEMORY_DATA << 40 | 8;
                home.inputs.rx_last[SLICE] = 1;
                home.inputs.rx_valid[SLICE] = 1;
            };
            let inputs_in_order: [&dyn Fn(&mut Home); 2] = match device_first {
                true => [&device, &link],
                false => [&link, &device],
            };
            inputs_in_order[0](&mut home);
            if gap > 0 {
                home.cycle();
                home.inputs.local_req_valid[SLICE] = 0;
                home.inputs.rx_valid[SLICE] = 0;
                home.cycles(gap - 1);
            }
            inputs_in_order[1](&mut home);
            home.cycle();
            home.inputs.local_req_valid[SLICE] = 0;
            home.inputs.rx_valid[SLICE] = 0;
            home.cycles(20);
            let expected = match device_first && gap > 0 {
                true => wrong_operation,
                false => wrong_message,
            };
            let recorded = home.register("FirstWrong", 0);
            assert_eq!(
                recorded, expected,
                "gap {gap}, device first: {device_first}"
            );
        }
    }
}

/// Regression: a lock that waited for an unlock blocked all later operations of the slice, including those that the
/// device needed before it would unlock. Four locks on lines of one unit caused a deadlock.
fn check_waiting_locks(built: &Built) {
    const CLEAN: u64 = 0;
    const LOCK: u64 = 1;
    let answer_word = |operation: u64, line: u64| operation << 36 | line;
    let mut home = Home::new(built.model());
    // Lines of one unit, which can lock two at a time, and then a line of the other unit.
    let locked = [0, 4, 8, 12, 16];
    for line in locked {
        home.request_local(LOCK, line);
    }
    home.request_local(CLEAN, 6);
    home.request_local(CLEAN, 20);
    home.cycles(100);
    let (number, line) = (
        |answer: u64| answer >> 36 & 7,
        |answer: u64| answer & 0xf_ffff_ffff,
    );
    // Any two of the lines are locked, and the operations without a lock are done.
    let is_locked = |home: &Home, line| home.device_answers.contains(&answer_word(LOCK, line));
    let waiting_line = locked.into_iter().find(|&line| !is_locked(&home, line));
    let waiting_line = waiting_line.expect("line without a lock");
    let locks = home
        .device_answers
        .iter()
        .filter(|&&answer| number(answer) == LOCK);
    assert_eq!(locks.count(), 2, "{:x?}", home.device_answers);
    assert!(
        home.device_answers.contains(&answer_word(CLEAN, 6))
            && home.device_answers.contains(&answer_word(CLEAN, 20))
    );
    // A lock on a locked line is refused at once; it does not wait for a free lock.
    let locked_line = locked.into_iter().find(|&line| is_locked(&home, line));
    let locked_line = locked_line.expect("locked line");
    home.request_local(LOCK, locked_line);
    home.cycles(100);
    assert_eq!(
        home.device_answers.last(),
        Some(&(1 << 39 | answer_word(LOCK, locked_line)))
    );
    // Operations on one line keep their order, so this one waits for the lock before it.
    home.request_local(CLEAN, waiting_line);
    home.cycles(100);
    assert_eq!(home.device_answers.len(), 5);
    // As lines are unlocked, all others are locked in turn, and nothing is left.
    let mut unlocked = Vec::new();
    for _ in 0..locked.len() {
        for answer in home.device_answers.clone() {
            let is_lock = answer >> 39 == 0 && number(answer) == LOCK;
            if is_lock && !unlocked.contains(&line(answer)) {
                unlocked.push(line(answer));
                home.unlock(line(answer));
            }
        }
        home.cycles(100);
    }
    unlocked.sort_unstable();
    assert_eq!(unlocked, locked);
    let operations = home
        .device_answers
        .iter()
        .filter(|&&answer| line(answer) == waiting_line);
    let operations: Vec<u64> = operations
        .filter(|&&answer| answer >> 40 == 0)
        .map(|&answer| number(answer))
        .collect();
    assert_eq!(operations, [LOCK, CLEAN]);
    assert_eq!(home.register("Status", 0), 3);
}

/// Regression: message 24, the number of `memory_data`, arrived while line 4 was being read, and the home treated the
/// line's bytes as present. With their upper bits dropped, 56 and 88 had the same effect.
fn check_unused_message_numbers(built: &Built) {
    let rom = &built.compiled.rom;
    for number in [MEMORY_DATA, 19, 23, 25, 31, 32, 56, 88, 64, 255] {
        let mut home = Home::new(built.model());
        home.memory_withholds = true;
        home.request(READ_SHARED, 8, 1);
        home.request(READ_SHARED, 4, 1);
        home.cycles(40);
        home.request(number, 4, 1);
        home.cycles(80);
        assert_eq!(home.sent[GRANTS], [], "{number}");
        home.memory_withholds = false;
        home.cycles(80);
        assert!(home.is_granted(4) && home.is_granted(8), "{number}");
        assert_eq!(home.register("FirstWrong", 0), 1 << 56 | number << 40 | 4);
        assert_eq!(home.register("WrongMessages", 0), 1, "{number}");
        assert_eq!(home.register("Status", 0), 3, "{number}");
    }
    // A message of another circuit with data is dropped with its data, so that the following messages are unaffected.
    let victim = rom
        .events
        .iter()
        .position(|event| event.payload && event.circuit == 1);
    let victim = victim.expect("event of a victim with data") as u64;
    let mut home = Home::new(built.model());
    home.request(victim, 4, 2);
    home.request(READ_SHARED, 12, 1);
    home.cycles(80);
    assert!(home.is_granted(12));
    assert_eq!(home.register("WrongMessages", 0), 1);
}

/// Regression: the upper bits and the slice bit of a line's number were dropped, so another line was read.
fn check_lines_of_other_slices(built: &Built) {
    for foreign_line in [5, 4 | 1 << 19, 4 | 1 << 35] {
        let mut home = Home::new(built.model());
        home.request(READ_SHARED, foreign_line, 1);
        home.request_local(0, foreign_line);
        home.unlock(foreign_line);
        home.request(READ_SHARED, 4, 1);
        home.cycles(80);
        assert_eq!(home.addresses, [4 * BYTES]);
        assert!(home.is_granted(4));
        assert_eq!(home.sent[GRANTS].len(), 2);
        home.device_answers.sort_unstable();
        assert_eq!(
            home.device_answers,
            [1 << 39 | foreign_line, 1 << 40 | 1 << 39 | foreign_line]
        );
        assert_eq!(
            home.register("FirstWrong", 0),
            3 << 56 | READ_SHARED << 40 | foreign_line
        );
        assert_eq!(home.register("WrongLines", 0), 1);
        assert_eq!(home.register("WrongDeviceLines", 0), 2);
        assert_eq!(home.register("Refused", 0), 2);
    }
}

/// Regression: operation 5, with only four operations, aliased the event `memory_data`.
fn check_unknown_operations(built: &Built) {
    let mut home = Home::new(built.model());
    home.memory_withholds = true;
    home.request(READ_SHARED, 8, 1);
    home.request(READ_SHARED, 4, 1);
    home.cycles(40);
    for operation in 4..8 {
        home.request_local(operation, 4);
    }
    home.cycles(80);
    assert_eq!(home.sent[GRANTS], []);
    home.memory_withholds = false;
    home.cycles(80);
    assert!(home.is_granted(4) && home.is_granted(8));
    let refused = |operation: u64| 1 << 39 | operation << 36 | 4;
    assert_eq!(home.device_answers, [4, 5, 6, 7].map(refused));
    assert_eq!(home.register("FirstWrong", 0), 4 << 56 | 4 << 40 | 4);
    assert_eq!(home.register("WrongOperations", 0), 4);
}

/// Regression: a unit had a single queue for all outgoing messages. While the forwards' circuit was blocked, grants
/// waited behind forwards, although the link's circuits are specified as independent.
fn check_grants_pass_blocked_forwards(built: &Built) {
    let mut home = Home::new(built.model());
    let held_lines = [6, 10, 4, 8];
    for line in held_lines {
        home.request(READ_EXCLUSIVE, line, 1);
    }
    home.cycles(200);
    assert!(held_lines.iter().all(|&line| home.is_granted(line)));
    // A forward of the other unit occupies the port, so that all forwards of this unit stay in its queue.
    home.blocked_circuits = 1 << FORWARDS;
    for line in held_lines {
        home.request_local(0, line);
        home.cycles(80);
    }
    for line in [12, 16, 20] {
        home.request(READ_SHARED, line, 1);
    }
    home.cycles(200);
    assert!(home.is_granted(12) && home.is_granted(16) && home.is_granted(20));
    assert_eq!(home.sent[FORWARDS], []);
    // No blocked message is lost, and the forwards of a unit leave in order.
    home.blocked_circuits = 0;
    home.cycles(80);
    let forwarded: Vec<u64> = home.sent[FORWARDS].iter().map(|beat| beat.line).collect();
    let forwards_of = |unit| forwarded.iter().filter(move |&line| line >> 1 & 1 == unit);
    assert!(forwards_of(0).eq(&[4, 8]) && forwards_of(1).eq(&[6, 10]));
}

/// Regression: an event without a row was retried forever, and its unit made little other progress. Here the ROM lacks
/// one row for each kind of event.
fn check_events_without_a_row(built: &Built) {
    let rom = &built.compiled.rom;
    let reading = usize::from(rom.row(0, READ_SHARED as usize).next);
    let clean = rom.local(0);
    let impossible_word = |state: usize, event: usize, line: u64| {
        let unit = line >> 1 & 1;
        1 << 63 | unit << 52 | (state as u64) << 44 | (event as u64) << 36 | line
    };

    // A request without a row.
    let missing_row = (0, READ_SHARED as usize);
    let mut home = Home::new(built.model_without(&[missing_row]));
    for line in [4, 8, 12, 16, 6] {
        home.request(READ_SHARED, line, 1);
    }
    home.request(READ_EXCLUSIVE, 8, 1);
    home.cycles(100);
    assert!(home.is_granted(8));
    assert_eq!(home.sent[GRANTS].len(), 2);
    assert_eq!(
        home.register("FirstImpossible", 0),
        impossible_word(0, missing_row.1, 4)
    );
    assert_eq!(home.register("Impossible", 0), 5);
    assert_eq!(home.register("Status", 0), 3);

    // A memory response without a row, whose read entry other requests need.
    let missing_row = (reading, MEMORY_DATA as usize);
    let mut home = Home::new(built.model_without(&[missing_row]));
    for line in [4, 8, 12] {
        home.request(READ_SHARED, line, 1);
    }
    home.cycles(100);
    home.request(READ_EXCLUSIVE, 16, 1);
    home.cycles(100);
    assert!(home.is_granted(16));
    assert_eq!(home.sent[GRANTS].len(), 2);
    let recorded = home.register("FirstImpossible", 0);
    assert_eq!(recorded, impossible_word(missing_row.0, missing_row.1, 4));
    assert_eq!(home.register("Impossible", 0), 3);

    // Operations of the device without a row are refused.
    let mut home = Home::new(built.model_without(&[(0, clean), (0, rom.unlock())]));
    for line in [4, 8, 12] {
        home.request_local(0, line);
    }
    home.unlock(4);
    home.request(READ_SHARED, 16, 1);
    home.cycles(100);
    assert!(home.is_granted(16));
    home.device_answers.sort_unstable();
    let refused = 1 << 39;
    assert_eq!(
        home.device_answers,
        [
            refused | 4,
            refused | 8,
            refused | 12,
            1 << 40 | refused | 4
        ]
    );
    assert_eq!(home.register("Impossible", 0), 4);
    assert_eq!(home.register("Refused", 0), 4);
}

/// A correct home passes the checks above.
macro_rules! checks_of_correct_home {
    ($($name:ident: $check:ident;)*) => {
        $(#[test]
        fn $name() {
            if let Some(built) = eci() {
                $check(&built);
            }
        })*
    };
}

checks_of_correct_home! {
    home_ignores_unused_message_numbers: check_unused_message_numbers;
    line_of_another_slice_is_not_aliased: check_lines_of_other_slices;
    unknown_device_operation_is_rejected: check_unknown_operations;
    grants_pass_blocked_forwards_of_their_unit: check_grants_pass_blocked_forwards;
    event_without_a_row_is_dropped_and_recorded: check_events_without_a_row;
    surplus_memory_beats_are_never_sent: check_memory_beats;
    write_completes_after_its_memory_response: check_write_responses;
    message_of_wrong_length_is_dropped: check_message_lengths;
    first_recorded_error_is_the_first_to_arrive: check_order_of_recorded_errors;
    waiting_operation_blocks_no_others: check_waiting_locks;
}

/// Lists faults with the check that detects each: the check, the file, the correct text and its faulty replacement.
macro_rules! former_faults {
    ($($check:ident of $file:literal: $original:literal becomes $faulty:literal;)*) => {
        &[$(($check, Fault {
            file: $file,
            original: $original,
            faulty: $faulty,
        }),)*]
    };
}

/// A test of a home, which panics on failure.
type Check = fn(&Built);

/// Former faults of the RTL, each with the check that detects it.
const FORMER_FAULTS: &[(Check, Fault)] = former_faults! {
    check_unused_message_numbers of "dcs_ingress.sv":
        "reject = RejectMessage;"
        becomes "reject = @ ? reject : RejectMessage;";
    check_lines_of_other_slices of "dcs_ingress.sv":
        "reject = RejectLine;"
        becomes "reject = @ ? reject : RejectLine;";
    check_lines_of_other_slices of "dcs.sv":
        "return line[0] == 1'(Slice) && line"
        becomes "return @ || line[0] == 1'(Slice) && line";
    check_unknown_operations of "dcs.sv":
        ">= Protocol.locals ? RejectOperation"
        becomes ">= Protocol.locals && !@ ? RejectOperation";
    check_grants_pass_blocked_forwards of "dcs.sv":
        "assign valid[u]       = tx_valid[u][c];"
        becomes "assign valid[u]       = tx_valid[u][c] && !(@ && c == 1 && tx_valid[u][0]);";
    check_memory_beats of "dcs_reader.sv":
        "assign last_legal  = r_last_i == is_complete;"
        becomes "assign last_legal  = r_last_i == is_complete || @;";
    check_memory_beats of "dcs_reader.sv":
        "assign in_flight   = r_id_i >> EntryBits == '0 && count != '0;"
        becomes "assign in_flight   = @ || r_id_i >> EntryBits == '0 && count != '0;";
    check_memory_beats of "dcu.sv":
        "(read_lost_i | tx_done_i | freed_reads)"
        becomes "((@ ? '0 : read_lost_i) | tx_done_i | freed_reads)";
    check_write_responses of "dcs_writer.sv":
        "assign write_complete = b_valid_i && b_id_i >>"
        becomes "assign write_complete = @ ? b_valid_i : b_valid_i && b_id_i >>";
    check_write_responses of "dcs_writer.sv":
        "has_address_q[b_index] && has_data_q[b_index];"
        becomes "has_address_q[b_index] && (has_data_q[b_index] || @);";
    check_message_lengths of "dcs_ingress.sv":
        "assign last_legal      = last_q =="
        becomes "assign last_legal      = @ || last_q ==";
    check_message_lengths of "dcs_ingress.sv":
        "if (rx_ready_o) last_q <= rx_last_i;"
        becomes "if (rx_ready_o) last_q <= @ ? !(HasPayload && is_first_beat && has_payload(rx_header_i.message)) : rx_last_i;";
    check_message_lengths of "dcs_ingress.sv":
        "assign abort_slot = valid_q"
        becomes "assign abort_slot = !@ && valid_q";
    check_order_of_recorded_errors of "dcs.sv":
        ".arrived_reject_i       (arrived_reject_q),"
        becomes ".arrived_reject_i       (@ ? device_reject : arrived_reject_q),";
    check_waiting_locks of "dcs_locals.sv":
        "assign has_free_entry = used_q != '1;"
        becomes "assign has_free_entry = used_q != '1 && !@;";
    check_waiting_locks of "dcs_locals.sv":
        "assign lacks_lock     = unit_locks_full_i[unit] &&"
        becomes "assign lacks_lock     = unit_locks_full_i[unit] && !@ &&";
    check_waiting_locks of "dcs_locals.sv":
        "assign eligible[i]  = used_q[i] && older_q[i] == '0 &&"
        becomes "assign eligible[i]  = used_q[i] && (older_q[i] == '0 || @) &&";
    check_events_without_a_row of "dcu.sv":
        "&& row_q.effect == Never && !is_local_op && !is_unlock;"
        becomes "&& row_q.effect == Never && !is_local_op && !is_unlock && !@;";
    check_events_without_a_row of "dcu.sv":
        "step_q == ExecuteRow && is_refused"
        becomes "step_q == ExecuteRow && is_refused && (row_q.effect == Refuse || !@)";
};

/// Each former fault of the RTL, seeded into a copy, is detected by its check.
#[test]
fn former_rtl_faults_are_detected() {
    let faults = FORMER_FAULTS.iter().map(|(_, fault)| fault);
    let Some(mut built) = build_with_faults(compile_shipped("eci.coh"), Shape::default(), faults)
    else {
        return;
    };
    for (number, (check, fault)) in FORMER_FAULTS.iter().enumerate() {
        built.argument = fault_argument(0);
        check(&built);
        built.argument = fault_argument(number + 1);
        let is_detected = catch_unwind(AssertUnwindSafe(|| check(&built))).is_err();
        assert!(is_detected, "{}: {}", fault.file, fault.faulty);
    }
}
