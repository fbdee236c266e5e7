//! Timelines agree with the statistics. The trace is decoded here from the wire format alone, as by a tool that knows
//! only the fields. The tests of the Python package read it with Perfetto's own descriptor.

mod common;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{draw_while, explain_while, run, HostSpace, RunError, Setup};
use cohkit_sim::spaces::Side;
use cohkit_sim::statistics::Statistics;
use cohkit_sim::timeline::writer::{Pieces, UNIT};
use cohkit_sim::timeline::{Filter, Recorded};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};

/// A field of a message: its number, and its value or bytes.
type Field<'b> = (u64, u64, &'b [u8]);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Returns the fields of a message.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let (value, length) = match tag & 7 {
            0 => (varint(&mut bytes), 0),
            1 => (u64::from_le_bytes(bytes[..8].try_into().unwrap()), 8),
            2 => (0, varint(&mut bytes) as usize),
            wire => panic!("a field of wire type {wire}"),
        };
        fields.push((tag >> 3, value, &bytes[..length]));
        bytes = &bytes[length..];
    }
    fields
}

fn number(fields: &[Field], field: u64) -> Option<u64> {
    let found = fields.iter().find(|(number, ..)| *number == field);
    found.map(|(_, value, _)| *value)
}

fn inner<'b>(fields: &[Field<'b>], field: u64) -> Option<&'b [u8]> {
    let found = fields.iter().find(|(number, ..)| *number == field);
    found.map(|(.., bytes)| *bytes)
}

#[derive(Debug)]
struct Event {
    time: u64,
    kind: u64,
    track: u64,
    name: String,
    line: Option<u64>,
    sends: Option<u64>,
    takes: Option<u64>,
    value: Option<f64>,
}

/// Returns the names of tracks by their numbers, and all events, in time order on each track.
fn read(recorded: &Recorded) -> (BTreeMap<u64, String>, Vec<Event>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("a text");
    let (mut tracks, mut names, mut events) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for (field, _, packet) in fields(&recorded.rest) {
        assert_eq!(field, 1);
        let packet = fields(packet);
        if let Some(interned) = inner(&packet, 12) {
            for (_, _, name) in fields(interned).iter().filter(|(field, ..)| *field == 2) {
                let name = fields(name);
                let (number, name) = (number(&name, 1).unwrap(), inner(&name, 2).unwrap());
                assert!(names.insert(number, text(name)).is_none());
            }
        }
        if let Some(track) = inner(&packet, 60) {
            let track = fields(track);
            let name = text(inner(&track, 2).unwrap());
            assert!(tracks.insert(number(&track, 1).unwrap(), name).is_none());
        }
        if let Some(event) = inner(&packet, 11) {
            let event = fields(event);
            let notes = event.iter().filter(|(field, ..)| *field == 4);
            let mut notes = notes.map(|(.., note)| fields(note));
            let line = notes.find(|note| number(note, 1) == Some(1));
            let name = number(&event, 10).map(|number| names[&number].clone());
            events.push(Event {
                time: number(&packet, 8).unwrap(),
                kind: number(&event, 9).unwrap(),
                track: number(&event, 11).unwrap(),
                name: name.unwrap_or_default(),
                line: line.and_then(|note| number(&note, 3)),
                sends: number(&event, 47),
                takes: number(&event, 48),
                value: number(&event, 44).map(f64::from_bits),
            });
        }
    }
    assert!(events.iter().all(|event| tracks.contains_key(&event.track)));
    (tracks, events)
}

/// A slice: its name, begin, end and nesting depth.
type Slice = (String, u64, u64, usize);

/// Returns the slices of each track. Each starts after the end of its predecessor, and ends before its parent.
fn slices(events: &[Event]) -> BTreeMap<u64, Vec<Slice>> {
    let mut open: BTreeMap<u64, (u64, Vec<(String, u64)>)> = BTreeMap::new();
    let mut slices: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind <= 2) {
        let (last, open) = open.entry(event.track).or_default();
        assert!(event.time >= *last, "{event:?}");
        *last = event.time;
        if event.kind == 1 {
            open.push((event.name.clone(), event.time));
        } else {
            let (name, begin) = open.pop().expect("it has begun");
            let slices = slices.entry(event.track).or_default();
            slices.push((name, begin, event.time, open.len()));
        }
    }
    assert!(open.values().all(|(_, open)| open.is_empty()));
    slices
}

fn setup(name: &str, seed: u64) -> Setup {
    common::torture(common::protocol(name), 3, seed).unwrap()
}

fn drawn(setup: &Setup, filter: &Filter) -> Recorded {
    let mut statistics = draw_while(setup, filter, &mut |_| true).expect("it runs");
    *statistics.timeline.take().expect("it was asked for")
}

/// Every access is a slice of its measured latency that contains its steps in order, and recording changes no result.
#[test]
fn timeline_slices_match_measured_latencies() {
    for (name, seed) in [("eci", 1), ("mesi", 2), ("cxl-mem", 4), ("token", 10)] {
        let setup = setup(name, seed);
        let plain = run(&setup).unwrap();
        let mut ended = draw_while(&setup, &Filter::default(), &mut |_| true).unwrap();
        let recorded = ended.timeline.take().unwrap();
        ended.explanation = None;
        assert_eq!(format!("{ended:?}"), format!("{plain:?}"), "{name}");
        let explained = explain_while(&setup, true, &mut |_| true).unwrap();
        let explanation = explained.explanation.unwrap();
        let (tracks, events) = read(&recorded);
        let slices = slices(&events);
        let all = slices.values().flatten();
        let mut accesses: Vec<(String, u64, u64)> = all
            .filter(|slice| slice.3 == 0)
            .map(|(name, begin, end, _)| (name.clone(), *begin, *end))
            .collect();
        let transactions = explanation.transactions.iter();
        let mut expected: Vec<(String, u64, u64)> = transactions
            .map(|of| {
                let name = of.access.name().to_string();
                (name, of.issued / UNIT, of.done / UNIT)
            })
            .collect();
        accesses.sort();
        expected.sort();
        assert_eq!(accesses, expected, "{name}");
        assert_eq!(recorded.accesses, explanation.accesses, "{name}");
        let spent: u64 = slices
            .values()
            .flatten()
            .filter(|slice| slice.3 == 1)
            .map(|(_, begin, end, _)| end - begin)
            .sum();
        // Steps fill their accesses, however times are rounded.
        let whole: u64 = accesses.iter().map(|(_, begin, end)| end - begin).sum();
        assert_eq!(spent, whole, "{name}");
        // Each message that is taken was sent before, by another event.
        let sent: BTreeSet<u64> = events.iter().filter_map(|event| event.sends).collect();
        let taken: BTreeSet<u64> = events.iter().filter_map(|event| event.takes).collect();
        let messages: u64 = plain.messages.iter().map(|(_, count)| count).sum();
        assert_eq!(sent.len() as u64, messages, "{name}");
        assert!(taken.is_subset(&sent), "{name}");
        // States have the names of the protocol.
        let text = common::source(name);
        let agents: Vec<&String> = tracks.values().collect();
        assert!(agents
            .iter()
            .any(|name| name.contains("accesses in flight")));
        let states = events.iter().filter(|event| event.kind == 3);
        let states = states.filter(|event| event.sends.is_none() && event.takes.is_none());
        let states: BTreeSet<&str> = states.map(|event| event.name.as_str()).collect();
        assert!(states.len() > 3, "{name}: {states:?}");
        for state in states {
            let word = state.split([' ', ':', '(']).next().unwrap_or(state);
            assert!(text.contains(word), "{name}: {state}");
        }
    }
}

/// A filter selects lines, agents and times, and the size is bounded.
#[test]
fn timeline_filter_selects_events() {
    let setup = setup("mesi", 2);
    let all = drawn(&setup, &Filter::default());
    let lines: BTreeSet<_> = read(&all).1.iter().filter_map(|event| event.line).collect();
    assert!(lines.len() > 1);
    let line = Filter {
        line: Some(1),
        ..Filter::default()
    };
    let (tracks, events) = read(&drawn(&setup, &line));
    assert!(events
        .iter()
        .all(|event| event.line.is_none_or(|line| line == 1)));
    // The states of one line are consecutive slices.
    let states: Vec<u64> = tracks
        .iter()
        .filter(|(_, name)| name.ends_with(": line 1"))
        .map(|(&number, _)| number)
        .collect();
    assert_eq!(states.len(), 4);
    let slices = slices(&events);
    for track in states {
        let mut last = 0;
        for (name, begin, end, around) in &slices[&track] {
            assert!(*begin >= last && end >= begin && *around == 0, "{name}");
            last = *end;
        }
    }
    let window = Filter {
        window: 1_000_000..2_000_000,
        ..Filter::default()
    };
    let (_, events) = read(&drawn(&setup, &window));
    let moments = events.iter().filter(|event| event.kind == 3);
    assert!(moments.clone().count() > 10);
    for event in moments {
        let time = event.time * UNIT;
        assert!(window.window.contains(&time), "{event:?}");
    }
    let small = Filter {
        bytes: 20_000,
        ..Filter::default()
    };
    let part = drawn(&setup, &small);
    assert!(part.length < all.length / 2 && part.full.is_some());
    assert!(part.accesses > 0 && part.accesses < all.accesses);
    assert_eq!(all.full, None);
    let agent = |name: &str| Filter {
        agent: Some(name.into()),
        ..Filter::default()
    };
    let names: Vec<String> = read(&all).0.into_values().collect();
    let cache = names
        .iter()
        .find(|name| name.contains("[1]") || name.ends_with('1'));
    let one = drawn(&setup, &agent(cache.expect("there are several")));
    assert!(one.accesses > 0 && one.accesses < all.accesses);
    match draw_while(&setup, &agent("nobody"), &mut |_| true) {
        Err(RunError::Setup(what)) => assert!(what.contains("no agent `nobody`"), "{what}"),
        other => panic!("{other:?}"),
    }
}

/// Streamed pieces and the remainder are equal to an unstreamed trace, even if buffers are reused.
#[test]
fn streamed_pieces_equal_the_whole_trace() {
    let mut setup = setup("mesi", 5);
    setup.workload.accesses *= 20;
    let whole = drawn(&setup, &Filter::default());
    let (count, part) = in_pieces(&setup);
    assert!(count > 2, "{count} pieces of {} bytes", whole.length);
    assert!(part.rest == whole.rest);
    assert_eq!((part.length, part.accesses), (whole.length, whole.accesses));
}

/// Returns the number of streamed pieces, and the pieces with the remainder.
fn in_pieces(setup: &Setup) -> (usize, Recorded) {
    let (full, pieces) = sync_channel::<Vec<u8>>(2);
    let (back, empty) = channel();
    let all = std::thread::spawn(move || {
        let mut all = Vec::new();
        for piece in pieces.into_iter().take_while(|piece| !piece.is_empty()) {
            all.push(piece.clone());
            back.send(piece).expect("it is waited for");
        }
        all
    });
    let filter = Filter {
        pieces: Some(Pieces {
            full: full.clone(),
            empty: Arc::new(Mutex::new(empty)),
        }),
        ..Filter::default()
    };
    let part = drawn(setup, &filter);
    full.send(Vec::new()).expect("it is taken");
    let mut all = all.join().expect("it ends");
    let count = all.len();
    all.push(part.rest);
    let rest = all.concat();
    (count, Recorded { rest, ..part })
}

/// Two spaces are one trace: each access of both is a slice, a flow belongs to one message, and pieces of both may
/// alternate.
#[test]
fn two_spaces_are_one_trace() {
    let [device, host] =
        ["enzian-dc-ddr", "enzian-cpu-home"].map(|name| Platform::shipped(name).unwrap());
    let platform = device.beside(host).unwrap();
    let work = |access, cores| Workload::pass(Pattern::Random, access, 2000, cores, 2);
    let mut host = HostSpace::new(common::protocol("eci-near"), &platform).unwrap();
    host.workloads = [work(Access::Store, 4), work(Access::Load, 1)];
    let eci = common::protocol("eci");
    let mut setup = Setup::new(eci, platform, work(Access::Load, 4)).unwrap();
    setup.host = Some(Box::new(host));

    let apart = |mut ended: Statistics| {
        let host = ended.host.take().expect("there are two spaces");
        [ended, *host]
    };
    let explained = apart(explain_while(&setup, false, &mut |_| true).unwrap());
    let mut ended = draw_while(&setup, &Filter::default(), &mut |_| true).unwrap();
    let whole = *ended.timeline.take().expect("it was asked for");
    assert_eq!(format!("{:?}", apart(ended)), format!("{explained:?}"));
    let get = |of: &Statistics, name| of.get(name).unwrap();
    let counts = (explained.each_ref()).map(|of| get(of, "accesses") as u64);
    assert_eq!(counts, [2000, 4000]);
    assert_eq!((whole.accesses, whole.full), (6000, None));

    let (tracks, events) = read(&whole);
    for of in ["device", "host"].map(|side| format!("the {side}'s memory: ")) {
        let groups = ["cores", "agents", "machine"];
        let groups = groups.map(|group| format!("{of}{group}"));
        let there: Vec<_> = tracks
            .values()
            .filter(|name| groups.contains(name))
            .collect();
        assert_eq!(there, groups.each_ref(), "{of}");
    }
    let slices = slices(&events);
    let outer = slices.values().flatten().filter(|slice| slice.3 == 0);
    let long: u64 = outer.map(|(_, begin, end, _)| end - begin).sum();
    let latency = explained.each_ref().map(|of| {
        let of = of.explanation.as_ref().expect("it was asked for");
        of.latency
    });
    // Each access is rounded by less than a nanosecond.
    let rounded = u128::from(long * UNIT).abs_diff(latency.iter().sum::<u128>());
    assert!(rounded < u128::from(whole.accesses * UNIT), "{rounded}");
    let sends: Vec<u64> = events.iter().filter_map(|event| event.sends).collect();
    let flows: BTreeSet<u64> = sends.iter().copied().collect();
    assert_eq!(flows.len(), sends.len());
    assert!(events
        .iter()
        .filter_map(|event| event.takes)
        .all(|flow| flows.contains(&flow)));

    let (count, part) = in_pieces(&setup);
    assert!(count > 2, "{count} pieces of {} bytes", whole.length);
    let by_track = |recorded: &Recorded| {
        let (tracks, mut events) = read(recorded);
        events.sort_by_key(|event| event.track);
        (tracks, format!("{events:?}"))
    };
    assert!(by_track(&part) == by_track(&whole));
    assert_eq!((part.length, part.accesses), (whole.length, whole.accesses));

    // A timeline of one space equals its part of the timeline of both.
    let of = |side| Filter {
        side: Some(side),
        ..Filter::default()
    };
    let sides = [Side::Device, Side::Host].map(|side| drawn(&setup, &of(side)));
    assert_eq!(sides.each_ref().map(|its| its.accesses), counts);
    assert!(sides.map(|its| its.rest).concat() == whole.rest);
    let agent = |name: &str, side| Filter {
        agent: Some(name.into()),
        side,
        ..Filter::default()
    };
    let llc = drawn(&setup, &agent("llc", None));
    assert_eq!(llc.accesses, 2000);
    for (side, there) in [
        (None, "there are cpu, home, llc, device, home"),
        (Some(Side::Host), "there are llc, device, home"),
    ] {
        match draw_while(&setup, &agent("nobody", side), &mut |_| true) {
            Err(RunError::Setup(what)) => assert!(what.contains(there), "{what}"),
            other => panic!("{other:?}"),
        }
    }
    setup.host = None;
    match draw_while(&setup, &of(Side::Host), &mut |_| true) {
        Err(RunError::Setup(what)) => assert!(what.contains("no space of the host's memory")),
        other => panic!("{other:?}"),
    }
}

/// The mean number of accesses in flight follows from latencies and time, and the use of links equals the statistics.
#[test]
fn timeline_counters_match_the_statistics() {
    let mut workload = Workload::pass(Pattern::Random, Access::Load, 1 << 16, 64, 2);
    workload.accesses = 20_000;
    let platform = Platform::shipped("hosts-8x8").unwrap();
    let setup = Setup::new(common::protocol("mesi"), platform, workload).unwrap();
    let statistics = run(&setup).unwrap();
    let (tracks, events) = read(&drawn(&setup, &Filter::default()));
    let get = |name: &str| statistics.get(name).unwrap();
    let time = get("time_ns") * 1000.0;
    let links = 8.0 * time;
    let expected = [
        (
            "links from caches in use",
            100.0 * get("link_occupancy_to_home") * links / 8.0,
        ),
        (
            "links to caches in use",
            100.0 * get("link_occupancy_from_home") * links / 8.0,
        ),
        (
            "accesses in flight",
            get("accesses") * get("latency_mean_ns") * 1000.0,
        ),
    ];
    for (name, expected) in expected {
        let (track, _) = tracks.iter().find(|(_, its)| *its == name).unwrap();
        let its: Vec<&Event> = events
            .iter()
            .filter(|event| event.track == *track)
            .collect();
        let width = ((its[1].time - its[0].time) * UNIT) as f64;
        let ours: f64 = its.iter().filter_map(|event| event.value).sum::<f64>() * width;
        let count = its.len();
        assert!(count > 100 && count <= 1024, "{name}: {count}");
        assert!(
            (ours / expected - 1.0).abs() < 0.001,
            "{name}: {ours} {expected}"
        );
    }
}
