//! Checks that violations of the input streams' rules by the home's environment are detected and reported by name.
//!
//! These tests build the RTL with Verilator. Without it, they report that and do nothing.

use crate::homes;

use cohkit_rtl::lockstep::model::{Inputs, Model, Outputs};
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::sources::SOURCES;
use homes::{build_home, compile_shipped, Built};

/// Number of the even slice.
const SLICE: usize = 0;

// Numbers of ECI messages, all on circuit 0; the second one carries a line, in two beats.
const READ_SHARED: u64 = 0;
const WRITE_LINE: u64 = 4;

/// Builds the home of ECI, and checks the numbers above.
fn eci() -> Option<Built> {
    let built = build_home(compile_shipped("eci.coh"), SOURCES, Shape::default())?;
    let rom = &built.compiled.rom;
    assert_eq!(rom.event("ReadShared"), Some(READ_SHARED as usize));
    assert_eq!(rom.event("WriteLine"), Some(WRITE_LINE as usize));
    Some(built)
}

/// A home after reset with its ports: at first no input is valid and no output is accepted.
struct Ports {
    /// The home in RTL.
    model: Model,
    /// Input pins of the next cycle.
    inputs: Inputs,
    /// Output pins of the last cycle.
    outputs: Outputs,
}

impl Ports {
    fn new(built: &Built) -> Ports {
        let mut ports = Ports {
            model: built.model(),
            inputs: Inputs::default(),
            outputs: Outputs::default(),
        };
        ports.inputs.reset = 1;
        ports.step();
        ports.inputs.reset = 0;
        for _ in 0..50 {
            ports.step();
        }
        ports
    }

    /// Executes a cycle in which no assertion may fail.
    fn step(&mut self) {
        let assertions = self.model.step(&self.inputs, &mut self.outputs);
        assertions.expect("cycle without failed assertions");
    }

    /// Executes up to four cycles with the same inputs and returns the first assertion messages.
    fn first_assertion(&mut self) -> String {
        let mut step = |_| self.model.step(&self.inputs, &mut self.outputs).err();
        (0..4).find_map(&mut step).unwrap_or_default()
    }
}

/// An input stream of the home.
struct Stream {
    /// Prefix of the stream's port names.
    name: &'static str,
    /// Pin that offers a beat.
    valid: fn(&mut Inputs) -> &mut u64,
    /// Pin by which the home accepts a beat, in bit 0.
    ready: fn(&Outputs) -> u64,
    /// Drives the beat with the given number; the home eventually lets one wait.
    drive_beat: fn(&mut Inputs, u64),
    /// Changes the beat.
    change_beat: fn(&mut Inputs),
    /// Part of the home's error message.
    message: &'static str,
}

impl Stream {
    /// Offers beats until one has waited so long that the home's state no longer changes.
    fn wait(&self, ports: &mut Ports) {
        let (mut number, mut cycles) = (0, 0);
        *(self.valid)(&mut ports.inputs) = 1;
        while cycles < 100 {
            (self.drive_beat)(&mut ports.inputs, number);
            ports.step();
            if (self.ready)(&ports.outputs) & 1 == 0 {
                cycles += 1;
            } else {
                (number, cycles) = (number + 1, 0);
                assert!(number < 100, "nothing waits at {}", self.name);
            }
        }
    }
}

/// Header (`header_t` of `home_pkg.sv`) with all mask bits set.
fn header(message: u64, line: u64) -> u64 {
    0xffff << 48 | message << 40 | line
}

/// Requests for consecutive lines of one unit, all of which need memory, which does not answer.
fn drive_reads(inputs: &mut Inputs, number: u64) {
    inputs.rx_header[SLICE][0] = header(READ_SHARED, 4 * number);
    inputs.rx_last[SLICE] = 1;
}

/// Writes with data. The beat that finally waits is the second one of a message, for which no slot is free.
fn drive_writes(inputs: &mut Inputs, number: u64) {
    inputs.rx_header[SLICE][0] = header(WRITE_LINE, 4 * (number / 2));
    inputs.rx_data[SLICE][0][7] = number;
    inputs.rx_last[SLICE] = number % 2;
}

/// Requests without data until the unit accepts no more, then some with data. The beat that finally waits is the first
/// one of a message.
fn drive_reads_then_writes(inputs: &mut Inputs, number: u64) {
    match number.checked_sub(3) {
        None => drive_reads(inputs, number),
        Some(beat) => drive_writes(inputs, beat + 6),
    }
}

fn rx_valid(inputs: &mut Inputs) -> &mut u64 {
    &mut inputs.rx_valid[SLICE]
}

fn rx_ready(outputs: &Outputs) -> u64 {
    outputs.rx_ready[SLICE]
}

fn change_header(inputs: &mut Inputs) {
    inputs.rx_header[SLICE][0] ^= 4;
}

fn change_last(inputs: &mut Inputs) {
    inputs.rx_last[SLICE] ^= 1;
}

fn change_data(inputs: &mut Inputs) {
    inputs.rx_data[SLICE][0][7] ^= 1 << 63;
}

const RX: Stream = Stream {
    name: "rx",
    valid: rx_valid,
    ready: rx_ready,
    drive_beat: drive_reads,
    change_beat: change_header,
    message: "dcs: the header on circuit 0 was not stable until it was taken",
};

/// Streams whose beats can wait, each with the change that the home must detect.
const STREAMS: &[Stream] = &[
    RX,
    Stream {
        drive_beat: drive_reads_then_writes,
        ..RX
    },
    Stream {
        drive_beat: drive_reads_then_writes,
        change_beat: change_data,
        message: "dcs: the bytes on circuit 0 were not stable until they were taken",
        ..RX
    },
    Stream {
        drive_beat: drive_writes,
        change_beat: change_data,
        message: "dcs: the bytes on circuit 0 were not stable until they were taken",
        ..RX
    },
    Stream {
        change_beat: change_last,
        message: "dcs: the mark of the last beat on circuit 0 was not stable until it was taken",
        ..RX
    },
    Stream {
        name: "local_req",
        valid: |inputs| &mut inputs.local_req_valid[SLICE],
        ready: |outputs| outputs.local_req_ready[SLICE],
        drive_beat: |inputs, number| inputs.local_req[SLICE] = 4 * number,
        change_beat: |inputs| inputs.local_req[SLICE] ^= 1 << 37,
        message: "dcs: a local operation was not stable until it was taken",
    },
    Stream {
        name: "unlock",
        valid: |inputs| &mut inputs.unlock_valid[SLICE],
        ready: |outputs| outputs.unlock_ready[SLICE],
        drive_beat: |inputs, number| inputs.unlock_line[SLICE] = 4 * number,
        change_beat: |inputs| inputs.unlock_line[SLICE] ^= 4,
        message: "dcs: an unlock was not stable until it was taken",
    },
    Stream {
        name: "cfg_aw",
        valid: |inputs| &mut inputs.cfg_aw_valid[SLICE],
        ready: |outputs| outputs.cfg_aw_ready[SLICE],
        drive_beat: |inputs, number| inputs.cfg_aw_addr[SLICE] = 8 * number,
        change_beat: |inputs| inputs.cfg_aw_addr[SLICE] ^= 8,
        message: "dcs: the registers' write address was not stable until it was taken",
    },
    Stream {
        name: "cfg_w",
        valid: |inputs| &mut inputs.cfg_w_valid[SLICE],
        ready: |outputs| outputs.cfg_w_ready[SLICE],
        drive_beat: |inputs, number| inputs.cfg_w_data[SLICE] = number,
        change_beat: |inputs| inputs.cfg_w_strb[SLICE] ^= 1,
        message: "dcs: the registers' write data was not stable until it was taken",
    },
    Stream {
        name: "cfg_ar",
        valid: |inputs| &mut inputs.cfg_ar_valid[SLICE],
        ready: |outputs| outputs.cfg_ar_ready[SLICE],
        drive_beat: |inputs, number| inputs.cfg_ar_addr[SLICE] = 8 * number,
        change_beat: |inputs| inputs.cfg_ar_addr[SLICE] ^= 8,
        message: "dcs: the registers' read address was not stable until it was taken",
    },
];

/// Streams that the home always accepts, so that no beat waits.
const NEVER_WAIT: &[&str] = &["axi_b", "axi_r"];

/// A beat that changes while it waits is an error of the sender; the assertion must name its stream.
#[test]
fn changed_stalled_beat_is_reported_by_name() {
    let Some(built) = eci() else {
        return;
    };
    for stream in STREAMS {
        let mut ports = Ports::new(&built);
        stream.wait(&mut ports);
        (stream.change_beat)(&mut ports.inputs);
        let assertion = ports.first_assertion();
        assert!(
            assertion.contains(stream.message),
            "{}: {assertion}",
            stream.name
        );
    }
}

/// A beat that is withdrawn while it waits is an error of the sender; the assertion must name its stream.
#[test]
fn withdrawn_beat_is_reported_by_name() {
    let Some(built) = eci() else {
        return;
    };
    // Withdrawing `valid` also withdraws the header, which is reported first.
    let reports_header =
        |stream: &&Stream| !stream.message.contains("bytes") && !stream.message.contains("last");
    for stream in STREAMS.iter().filter(reports_header) {
        let mut ports = Ports::new(&built);
        stream.wait(&mut ports);
        *(stream.valid)(&mut ports.inputs) = 0;
        let assertion = ports.first_assertion();
        assert!(
            assertion.contains(stream.message),
            "{}: {assertion}",
            stream.name
        );
    }
}

/// Data of a message without payload, and the header of a second beat, have no meaning and may change.
#[test]
fn unused_beat_fields_may_change() {
    let Some(built) = eci() else {
        return;
    };
    let unused_data = Stream {
        change_beat: change_data,
        ..RX
    };
    let header_of_second_beat = Stream {
        drive_beat: drive_writes,
        ..RX
    };
    for stream in [unused_data, header_of_second_beat] {
        let mut ports = Ports::new(&built);
        stream.wait(&mut ports);
        (stream.change_beat)(&mut ports.inputs);
        assert_eq!(ports.first_assertion(), "");
    }
}

/// Responses of memory to no request, too early, too late and too short.
#[test]
fn unsolicited_memory_response_is_reported_by_name() {
    let Some(built) = eci() else {
        return;
    };
    let not_read = "dcs: memory answered a read that is not in flight";
    let not_written = "dcs: memory answered a write that is not in flight";
    let assert_reports = |ports: &mut Ports, message: &str| {
        let assertion = ports.first_assertion();
        assert!(assertion.contains(message), "{message}: {assertion}");
    };

    // At rest, with any ID.
    for id in [0, 1, 2, 255] {
        let mut ports = Ports::new(&built);
        (ports.inputs.r_valid[SLICE], ports.inputs.r_id[SLICE]) = (1, id);
        assert_reports(&mut ports, not_read);
        let mut ports = Ports::new(&built);
        (ports.inputs.b_valid[SLICE], ports.inputs.b_id[SLICE]) = (1, id);
        assert_reports(&mut ports, not_written);
    }

    // A read response before memory has accepted the address, and another one after the end of the read.
    let reads = || {
        let mut ports = Ports::new(&built);
        drive_reads(&mut ports.inputs, 0);
        ports.inputs.rx_valid[SLICE] = 1;
        ports.step();
        ports.inputs.rx_valid[SLICE] = 0;
        while ports.outputs.ar_valid[SLICE] == 0 {
            ports.step();
        }
        ports.inputs.r_id[SLICE] = ports.outputs.ar_id[SLICE];
        ports
    };
    let mut ports = reads();
    ports.inputs.r_valid[SLICE] = 1;
    assert_reports(&mut ports, not_read);
    let mut ports = reads();
    ports.inputs.ar_ready[SLICE] = 1;
    ports.step();
    ports.inputs.r_valid[SLICE] = 1;
    ports.step();
    ports.inputs.r_last[SLICE] = 1;
    ports.step();
    ports.inputs.r_last[SLICE] = 0;
    assert_reports(&mut ports, not_read);
    // A read response that ends too soon.
    let mut ports = reads();
    ports.inputs.ar_ready[SLICE] = 1;
    ports.step();
    (ports.inputs.r_valid[SLICE], ports.inputs.r_last[SLICE]) = (1, 1);
    assert_reports(
        &mut ports,
        "dcs: memory answered a read with another number of beats than 2",
    );

    // A write response before memory has accepted the address or the data, and a second one.
    let writes = |address: u64, bytes: u64| {
        let mut ports = Ports::new(&built);
        ports.inputs.tx_ready[SLICE] = 3;
        for beat in 0..2 {
            drive_writes(&mut ports.inputs, beat);
            ports.inputs.rx_valid[SLICE] = 1;
            ports.step();
        }
        ports.inputs.rx_valid[SLICE] = 0;
        while ports.outputs.aw_valid[SLICE] == 0 || ports.outputs.w_valid[SLICE] == 0 {
            ports.step();
        }
        ports.inputs.b_id[SLICE] = ports.outputs.aw_id[SLICE];
        (ports.inputs.aw_ready[SLICE], ports.inputs.w_ready[SLICE]) = (address, bytes);
        for _ in 0..4 {
            ports.step();
        }
        ports.inputs.b_valid[SLICE] = 1;
        ports
    };
    assert_reports(&mut writes(0, 1), not_written);
    assert_reports(&mut writes(1, 0), not_written);
    let mut ports = writes(1, 1);
    ports.step();
    assert_reports(&mut ports, not_written);
}

/// A change of the inputs, and part of the home's error message.
type Violation = (fn(&mut Inputs), &'static str);

/// Headers and operations that no protocol with these numbers sends.
#[test]
fn unknown_port_traffic_is_reported_by_name() {
    let Some(built) = eci() else {
        return;
    };
    let message: [Violation; 6] = [
        (
            |inputs| {
                inputs.rx_header[SLICE][0] = header(READ_SHARED, 0);
                inputs.rx_last[SLICE] = 0;
            },
            "dcs: message 0 on circuit 0 has a wrong number of beats",
        ),
        (
            |inputs| inputs.rx_header[SLICE][0] = header(WRITE_LINE, 0),
            "dcs: message 4 on circuit 0 has a wrong number of beats",
        ),
        (
            |inputs| inputs.rx_header[SLICE][0] = header(6, 0),
            "dcs: message 6 does not come by circuit 0",
        ),
        (
            |inputs| inputs.rx_header[SLICE][0] = header(READ_SHARED, 0) | 1 << 36,
            "dcs: there is no remote 1",
        ),
        (
            |inputs| inputs.rx_header[SLICE][0] = header(READ_SHARED, 1),
            "dcs: line 1 belongs to the other slice",
        ),
        (
            |inputs| inputs.rx_header[SLICE][0] = header(READ_SHARED, 1 << 35),
            "lies outside the home's range",
        ),
    ];
    let device: [Violation; 3] = [
        (
            |inputs| (inputs.local_req_valid[SLICE], inputs.local_req[SLICE]) = (1, 4 << 36),
            "dcs: there is no local operation 4",
        ),
        (
            |inputs| (inputs.local_req_valid[SLICE], inputs.local_req[SLICE]) = (1, 1),
            "dcs: line 1 of a local operation lies outside the range of slice 0",
        ),
        (
            |inputs| (inputs.unlock_valid[SLICE], inputs.unlock_line[SLICE]) = (1, 1),
            "dcs: line 1 of an unlock lies outside the range of slice 0",
        ),
    ];
    for (of_message, cases) in [(1, &message[..]), (0, &device[..])] {
        for (drive_inputs, expected) in cases {
            let mut ports = Ports::new(&built);
            ports.inputs.rx_last[SLICE] = 1;
            drive_inputs(&mut ports.inputs);
            ports.inputs.rx_valid[SLICE] = of_message;
            let assertion = ports.first_assertion();
            assert!(assertion.contains(expected), "{expected}: {assertion}");
        }
    }
}

/// A new input stream of the home must be added to the lists above.
#[test]
fn every_input_stream_of_the_home_is_tested() {
    let home = cohkit_rtl::proof::rtl_source("home.sv");
    let inputs: Vec<&str> = home
        .lines()
        .filter(|line| line.trim().starts_with("input "))
        .filter_map(|line| line.trim_end_matches(',').rsplit(' ').next())
        .filter_map(|port| port.strip_suffix("_valid_i"))
        .collect();
    let mut tested: Vec<&str> = STREAMS.iter().map(|stream| stream.name).collect();
    tested.dedup();
    tested.extend(NEVER_WAIT);
    tested.sort_unstable();
    let mut sorted = inputs.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, tested);
}
