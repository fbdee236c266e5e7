//! Memory traces as workloads: both forms are equivalent, errors have their place, and a workload recorded as a trace
//! behaves like the workload.

use cohkit_testing::setups;

use std::io::Write;
use std::sync::Arc;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::recorded::{
    read, Format, ReadError, ReadOptions, Recorded, ACCESSES, MAGIC,
};
use cohkit_sim::components::traffic::{Pattern, Traffic, Workload};
use cohkit_sim::data::mix;
use cohkit_sim::message::CoreId;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{run, Setup};
use cohkit_sim::statistics::Statistics;
use flate2::write::GzEncoder;
use flate2::Compression;
use proptest::prelude::*;
use setups::protocol;

/// Options for traces of lines of 128 bytes in a memory of 128 MiB.
const OPTIONS: ReadOptions = ReadOptions {
    format: Format::Cohkit,
    line: 128,
    lines: 1 << 20,
    packed: false,
    max_accesses: u64::MAX,
};

/// One access: core, kind by number, address, and the time since the access before in picoseconds.
type TracedAccess = (u16, u8, u64, u32);

/// Writes accesses in the text form, one per line.
fn as_text(accesses: &[TracedAccess]) -> Vec<u8> {
    let line = |&(core, kind, address, gap): &TracedAccess| {
        let name = ACCESSES[usize::from(kind)].name();
        format!("{core} {name} {address:#x} {gap}ps\n")
    };
    accesses.iter().map(line).collect::<String>().into_bytes()
}

/// Encodes accesses in the binary form: 16 bytes each, in little-endian order, after the magic number.
fn as_binary(accesses: &[TracedAccess]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for &(core, kind, address, gap) in accesses {
        bytes.extend(address.to_le_bytes());
        bytes.extend(gap.to_le_bytes());
        bytes.extend(core.to_le_bytes());
        bytes.extend([kind, 0]);
    }
    bytes
}

/// Compresses a trace with gzip.
fn compress(bytes: &[u8]) -> Vec<u8> {
    // In two members, as in files that were appended to.
    let mut packed = Vec::new();
    for half in [&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(half).unwrap();
        packed.extend(encoder.finish().unwrap());
    }
    packed
}

/// Reads a trace with [`OPTIONS`].
fn read_text(text: &str) -> Result<Recorded, ReadError> {
    read(text.as_bytes(), &OPTIONS)
}

proptest! {
    #[test]
    fn text_and_binary_traces_agree(
        accesses in prop::collection::vec((0u16..9, 0u8..8, 0u64..1 << 27, any::<u32>()), 1..200)
    ) {
        let recorded = read(&as_text(&accesses)[..], &OPTIONS).unwrap();
        prop_assert_eq!(recorded.accesses(), accesses.len() as u64);
        for (core, kind, address, gap) in &accesses {
            let is_recorded = recorded.of_core((*core).into()).iter().any(|entry| {
                u64::from(entry.line) == address / 128
                    && u64::from(entry.word) == address % 128 / 8
                    && entry.gap == *gap
                    && entry.access == ACCESSES[usize::from(*kind)]
            });
            prop_assert!(is_recorded);
        }
        prop_assert_eq!(&read(&as_binary(&accesses)[..], &OPTIONS).unwrap(), &recorded);
        prop_assert_eq!(&read(&compress(&as_text(&accesses))[..], &OPTIONS).unwrap(), &recorded);
        prop_assert_eq!(&read(&compress(&as_binary(&accesses))[..], &OPTIONS).unwrap(), &recorded);
    }

    #[test]
    fn foreign_trace_readers_accept_any_bytes(
        bytes in prop::collection::vec(prop::sample::select(&b"0123456789abcdefxrwuRWLSMILDTEAP:,=# \n\xff"[..]), 0..200),
        format in 0..Format::FOREIGN.len(),
    ) {
        let options = ReadOptions { format: Format::FOREIGN[format], packed: true, ..OPTIONS };
        let _ = read(&bytes[..], &options);
    }

    #[test]
    fn trace_reader_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0usize..4) {
        let prefix: &[u8] = [&b""[..], &MAGIC[..], &[0x1f, 0x8b, 8, 0][..], &b"0 load "[..]][kind];
        let _ = read(&[prefix, &bytes[..]].concat()[..], &OPTIONS);
    }
}

#[test]
fn trace_lines_may_omit_core_and_time() {
    let recorded =
        read_text("# a comment\n\n  load 0x80 # and another\r\n3 store 1032 1.5ns").unwrap();
    assert_eq!(recorded.cores(), 4);
    assert_eq!(recorded.lines(), 9);
    let [load] = recorded.of_core(0) else {
        panic!()
    };
    assert_eq!((load.line, load.word, load.gap), (1, 0, 0));
    let [store] = recorded.of_core(3) else {
        panic!()
    };
    assert_eq!((store.line, store.word, store.gap), (8, 1, 1500));
    assert_eq!(recorded.of_core(1), []);
    let first_only = ReadOptions {
        max_accesses: 1,
        ..OPTIONS
    };
    let recorded = read(&b"load 0\nload 1\nnonsense"[..], &first_only).unwrap();
    assert_eq!(recorded.accesses(), 1);
}

#[test]
fn pages_are_packed_in_access_order() {
    let options = ReadOptions {
        packed: true,
        lines: 64,
        ..OPTIONS
    };
    let distant = &b"load 0x7fff12345f80\nload 0x1008\nload 0x7fff12345000"[..];
    let recorded = read(distant, &options).unwrap();
    let places: Vec<_> = recorded
        .of_core(0)
        .iter()
        .map(|entry| (entry.line, entry.word))
        .collect();
    assert_eq!(places, [(31, 0), (32, 1), (0, 0)]);
    let error = read(&b"load 0x1000\nload 0x2000\nload 0x3000"[..], &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3, column 6: 2 pages of 4 KiB are already in use, but the memory has only 8KiB"
    );
}

#[test]
fn input_errors_name_their_position() {
    for (text, expected) in [
        ("load 0\nlod 0x10", "line 2, column 1: `lod` is no access; did you mean `load`? there are load, store, read_once, write_line, write_partial, clean, evict, demote"),
        ("0 fence", "line 1, column 3: `fence` is an access that only threads of programs make; a trace has load, store, read_once, write_line, write_partial, clean, evict, demote"),
        ("4096 load 0", "line 1, column 1: `4096` is no core; cores are numbered 0 to 4095"),
        ("3", "line 1, column 2: an access is missing: load, store, read_once, write_line, write_partial, clean, evict, demote"),
        ("1 load  # where?", "line 1, column 7: an address is missing, such as 0x1f80 or 8064"),
        ("load x80", "line 1, column 6: `x80` is no address; write it like 0x1f80 or 8064"),
        ("load +8", "line 1, column 6: `+8` is no address; write it like 0x1f80 or 8064"),
        ("load 0x10000000000000000", "line 1, column 6: `0x10000000000000000` is no address; write it like 0x1f80 or 8064"),
        ("load 0x8000000", "line 1, column 6: address 0x8000000 is beyond the memory of 128MiB; the workload `packed-trace` packs pages one after another"),
        ("load 0 5", "line 1, column 8: the time since the previous access, `5`, has no unit: write it like `70ns` (units: ps, ns, us, ms, s)"),
        ("load 0 1s", "line 1, column 8: at most 4294967.295ns lie between two accesses, not 1s"),
        ("load 0 1ns 2", "line 1, column 12: expected the end of the line after core, access, address and time since the previous access"),
        ("", "it contains no access"),
        ("# nothing", "it contains no access"),
        ("COHKTRC1", "it contains no access"),
        ("COHKTRC1abc", "record 1: it has 3 of 16 bytes"),
    ] {
        assert_eq!(read_text(text).unwrap_err().to_string(), expected, "{text}");
    }
    let long = "9".repeat(5000);
    let error = read_text(&format!("load 0\n{long}"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "line 2, column 1: this line is longer than 4096 bytes; each has one access"
    );
    let error = read(&b"load 0\n\xff\xfe"[..], &OPTIONS)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "line 2, column 1: this is not text; a binary trace begins with `COHKTRC1`"
    );
    for (access, expected) in [
        ((4096, 0, 0, 0), "record 2: core 4096; cores are 0 to 4095"),
        ((0, 8, 0, 0), "record 2: there is no access 8; they are 0 to 7: load, store, read_once, write_line, write_partial, clean, evict, demote"),
        ((0, 0, 1 << 27, 0), "record 2: address 0x8000000 is beyond the memory of 128MiB; the workload `packed-trace` packs pages one after another"),
    ] {
        let error = read(&as_binary(&[(0, 0, 0, 0), access])[..], &OPTIONS).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let mut bytes = as_binary(&[(0, 0, 0, 0)]);
    *bytes.last_mut().unwrap() = 7;
    let error = read(&bytes[..], &OPTIONS).unwrap_err().to_string();
    assert_eq!(error, "record 1: its last byte is 7, but must be 0");
    let truncated = &compress(&as_text(&[(0, 0, 0, 0)]))[..15];
    assert!(matches!(read(truncated, &OPTIONS), Err(ReadError::Io(_))));
}

/// Returns the accesses of a foreign trace: true for a store, the address, and the time since the access before in
/// nanoseconds.
fn read_foreign(format: Format, bytes: &[u8]) -> Vec<(bool, u64, u32)> {
    let options = ReadOptions { format, ..OPTIONS };
    let recorded = read(bytes, &options).unwrap_or_else(|error| panic!("{format:?}: {error}"));
    let entries = recorded.of_core(0).iter();
    let accesses = entries.map(|entry| {
        let address = u64::from(entry.line) * 128 + u64::from(entry.word) * 8;
        (entry.access == Access::Store, address, entry.gap / 1000)
    });
    accesses.collect()
}

/// Returns an instruction of a ChampSim trace with these load and store addresses.
fn instruction(loads: [u64; 4], stores: [u64; 2]) -> Vec<u8> {
    let mut bytes = 0x40_1000_u64.to_le_bytes().to_vec();
    bytes.extend([1, 0, 6, 0, 6, 0, 0, 0]);
    bytes.extend(stores.iter().flat_map(|address| address.to_le_bytes()));
    bytes.extend(loads.iter().flat_map(|address| address.to_le_bytes()));
    bytes
}

#[test]
fn traces_of_other_tools_are_read_by_their_formats() {
    let (load, store) = (false, true);
    for (format, text, expected) in [
        (
            Format::Gem5,
            "r,128,64,0,1000\nu,64,64,0,1500\nw,264,4,16,5000\n7,r,0,8,256,9000,4198400\nr,8,8,10000\n",
            vec![(load, 128, 0), (store, 264, 4), (load, 0, 4), (load, 8, 1)],
        ),
        (
            Format::Ramulator,
            "0x80 R\n0x108 W\n3 256\n12 384 0\nLD 0x200\nST 520\n",
            vec![
                (load, 128, 0),
                (store, 264, 0),
                (load, 256, 0),
                (load, 384, 0),
                (store, 0, 0),
                (load, 512, 0),
                (store, 520, 0),
            ],
        ),
        (
            Format::Dramsim3,
            "0x80 READ 0\n108 WRITE 12\r\n\n",
            vec![(load, 128, 0), (store, 264, 0)],
        ),
        (
            Format::Lackey,
            "==71== Lackey, an example tool\nI  04016b80,3\n L 00000080,8\n S 0000017c,8\n M 00000108,4\n",
            // The store extends into the next line.
            vec![
                (load, 128, 0),
                (store, 376, 0),
                (store, 384, 0),
                (load, 264, 0),
                (store, 264, 0),
            ],
        ),
        (
            Format::Dinero,
            "2 0\n0 80 a comment\n1 108\nr 200 8\nw 208 4\ni 0 4\nc 0 128\n",
            vec![
                (load, 128, 0),
                (store, 264, 0),
                (load, 512, 0),
                (store, 520, 0),
            ],
        ),
        (
            Format::Pin,
            "#\n# a comment\n0x401000: R 0x80\n0x401004: W       0x108  8  0x2a\n#eof\n",
            vec![(load, 128, 0), (store, 264, 0)],
        ),
    ] {
        assert_eq!(read_foreign(format, text.as_bytes()), expected, "{format:?}");
        assert_eq!(read_foreign(format, &compress(text.as_bytes())), expected, "{format:?}");
        // Without a format, the error suggests formats that may fit.
        let error = read_text(text).unwrap_err().to_string();
        assert!(
            [Format::Lackey, Format::Dinero].contains(&format) || error.contains(format.title()),
            "{error}"
        );
    }
    let bytes = [
        instruction([128, 0, 256, 0], [0, 264]),
        instruction([0; 4], [0; 2]),
        instruction([0, 0, 0, 512], [0; 2]),
    ]
    .concat();
    let expected = [
        (load, 128, 0),
        (load, 256, 0),
        (store, 264, 0),
        (load, 512, 0),
    ];
    assert_eq!(read_foreign(Format::Champsim, &bytes), expected);
}

#[test]
fn malformed_foreign_traces_are_rejected() {
    for (format, text, expected) in [
        (Format::Gem5, "r,128,64,0,1000\nx,128,64,0,2000", "line 2, column 1: `x` is no command; there are r, w and u: read as a trace of gem5, with accesses like `r,8064,64,0,1500`"),
        (Format::Gem5, "r,128,64", "line 1, column 9: a tick is missing: read as a trace of gem5"),
        (Format::Gem5, "r,12z,64,0,5", "line 1, column 3: `12z` is no address: "),
        (Format::Gem5, "r,0,64,0,9\nr,0,64,0,5", "line 2, column 1: it begins before the previous access: "),
        (Format::Gem5, "r,0,64,0,9,1,2", "line 1, column 14: expected the end of the line: "),
        (Format::Gem5, "r,0,99999999,0,9", "line 1, column 1: an access has at most 65536 bytes, not 99999999: "),
        (Format::Ramulator, "0x80 R\n0x80 Q", "line 2, column 6: `Q` is no address: "),
        (Format::Ramulator, "0x80", "line 1, column 5: R, W, or an address is missing: read as a trace of Ramulator, with accesses like `0x1f80 R`"),
        (Format::Dramsim3, "0x80 READ", "line 1, column 10: a cycle is missing: read as a trace of DRAMsim3, with accesses like `0x1f80 READ 12`"),
        (Format::Dramsim3, "0x80 FLUSH 1", "line 1, column 6: `FLUSH` is no request; there are READ and WRITE: "),
        (Format::Lackey, " L 80,8\n X 80,8", "line 2, column 2: `X` is no access; there are I, L, S and M: read as a trace of Valgrind's lackey, with accesses like ` L 1f80,8`"),
        (Format::Lackey, " L 80", "line 1, column 6: a size is missing: "),
        (Format::Lackey, " L ffffffffffffffff,8", "line 1, column 1: it extends beyond the last address: "),
        (Format::Dinero, "9 80", "line 1, column 1: `9` is no label; there are 0 to 4, or r, w, i, m, v and c: read as a trace of Dinero, with accesses like `0 1f80`"),
        (Format::Dinero, "r 80", "line 1, column 5: a size is missing: "),
        (Format::Pin, "0x401000 R 0x80", "line 1, column 1: `0x401000` is no address of an instruction followed by a colon: read as a trace of Pin's pinatrace, with accesses like `0x401000: R 0x1f80`"),
        (Format::Pin, "0x401000: R", "line 1, column 12: an address is missing: "),
        (Format::Pin, "#eof", "it contains no access"),
    ] {
        let error = read(text.as_bytes(), &ReadOptions { format, ..OPTIONS }).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{format:?}: {error}");
    }
    let options = ReadOptions {
        format: Format::Champsim,
        ..OPTIONS
    };
    let error = read(&instruction([128; 4], [0; 2])[..63], &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 1: it has 63 of 64 bytes: read as a trace of ChampSim, with accesses like `instructions of 64 bytes`"
    );
    let error = read(&[b'7'; 64][..], &options).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "record 1: its bytes 8 and 9 (branch flags) must be 0 or 1, not 55 and 55"
        ),
        "{error}"
    );
    let error = read(&b"\xfd7zXZ\0\0\0"[..], &options)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "it is compressed by xz; decompress it with `unxz`, or compress it with gzip"
    );
}

/// Returns a run of a workload with ECI on the shipped Enzian platform.
fn setup(workload: Workload) -> Setup {
    let protocol = protocol("eci");
    let platform = Platform::shipped("enzian-dc-bram").unwrap();
    Setup::new(protocol, platform, workload).unwrap()
}

/// Returns the accesses that a workload issues, as a trace.
fn record(workload: &Workload, seed: u64) -> Vec<u8> {
    let mut traffic = Traffic::new(&[workload], mix(seed));
    let mut accesses = Vec::new();
    for core in 0..workload.cores as u16 {
        while let Some(next) = traffic.next_access(CoreId(core), 0) {
            let kind = ACCESSES.iter().position(|&access| access == next.access);
            let address = u64::from(next.line) * 128 + u64::from(next.word % 16) * 8;
            accesses.push((core, kind.unwrap() as u8, address, 0));
        }
    }
    as_text(&accesses)
}

#[test]
fn recorded_workload_round_trips() {
    for (pattern, access) in [
        (Pattern::Random, Access::Load),
        (Pattern::Chunked, Access::Store),
        (Pattern::Random, Access::ReadOnce),
    ] {
        let mut workload = Workload::pass(pattern, access, 4096, 5, 3);
        workload.accesses = 3000;
        let recorded = read(&record(&workload, 0)[..], &OPTIONS).unwrap();
        let replayed = Workload::recorded(Arc::new(recorded), 1, 3);
        assert_eq!(replayed.cores, 5);
        let [first, second] = [workload, replayed].map(|workload| run(&setup(workload)).unwrap());
        let values = |statistics: &Statistics| {
            let values = statistics.values.iter();
            values
                .map(|(definition, value)| (definition.name, value.number()))
                .collect::<Vec<_>>()
        };
        assert_eq!(values(&first), values(&second));
        assert_eq!(first.messages, second.messages);
    }
}

#[test]
fn trace_gaps_delay_accesses() {
    // The accesses are so far apart that none overlaps another: the last one starts after all gaps, and takes as long
    // as a single access.
    let time_of = |text: &str| {
        let recorded = read(text.as_bytes(), &OPTIONS).unwrap();
        let statistics = run(&setup(Workload::recorded(Arc::new(recorded), 1, 4))).unwrap();
        (statistics.get("time_ns").unwrap() * 1000.0).round()
    };
    let single = time_of("load 0x80");
    assert_eq!(time_of("load 0x80 4ms"), single + 4e9);
    let long_gaps: String = (0..10)
        .map(|line| format!("load {} 1ms\n", line * 128))
        .collect();
    assert_eq!(time_of(&long_gaps), single + 10e9);
    // The time is between issues: accesses that take longer do not add to it.
    let short_gaps: String = (0..10)
        .map(|line| format!("load {} 1ns\n", line * 128))
        .collect();
    assert!(time_of(&short_gaps) < 10.0 * single);
}

#[test]
fn recorded_traces_are_coherent_on_every_protocol() {
    for name in setups::protocols() {
        for seed in setups::seeds(3) {
            let mut setup = setups::torture(protocol(&name), 2, seed).unwrap();
            let kinds: Vec<u8> = (0u8..)
                .zip(ACCESSES)
                .filter(|&(_, access)| setup.workload.has(access))
                .map(|(kind, _)| kind)
                .collect();
            let line = u64::from(setup.protocol.line_bytes);
            let lines = u64::from(setup.workload.lines);
            let mut state = seed;
            let mut draw_below = |bound: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % bound
            };
            let accesses: Vec<TracedAccess> = (0..1000)
                .map(|_| {
                    let kind = kinds[draw_below(kinds.len() as u64) as usize];
                    (
                        draw_below(setup.workload.cores.into()) as u16,
                        kind,
                        draw_below(lines * line),
                        draw_below(2000) as u32,
                    )
                })
                .collect();
            let options = ReadOptions {
                line: line as u32,
                lines: setup.workload.lines,
                ..OPTIONS
            };
            let recorded = read(&as_text(&accesses)[..], &options).unwrap();
            setup.workload = Workload {
                write_prefetches: setup.workload.write_prefetches,
                ..Workload::recorded(
                    Arc::new(recorded),
                    setup.workload.cores,
                    setup.workload.outstanding,
                )
            };
            let statistics = run(&setup).unwrap_or_else(|failure| {
                panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim recorded_traces:: # {name}\n{failure}")
            });
            let performed =
                statistics.get("accesses").unwrap() + statistics.get("accesses_skipped").unwrap();
            assert_eq!(performed, 1000.0, "{name}");
        }
    }
}
