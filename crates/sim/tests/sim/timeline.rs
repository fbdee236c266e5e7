//! Timelines agree with the statistics. The trace is decoded here from the wire format alone, as by a tool that knows
//! only the fields. The tests of the Python package read it with Perfetto's own descriptor.

use cohkit_testing::setups;

use cohkit_protocol::controller::Access;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::{draw_while, explain_while, run, HostSpace, RunError, Setup};
use cohkit_sim::statistics::Statistics;
use cohkit_timeline::writer::{Pieces, UNIT};
use cohkit_timeline::{Filter, Recorded, Side};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};

/// A field of a message: its number, and its value or bytes.
type Field<'b> = (u64, u64, &'b [u8]);

/// Removes a variable-length number from the start of the bytes, and returns it.
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

/// Returns the value of a field by its number.
fn field_value(fields: &[Field], field: u64) -> Option<u64> {
    let entry = fields.iter().find(|(number, ..)| *number == field);
    entry.map(|(_, value, _)| *value)
}

/// Returns the bytes of a field by its number.
fn field_bytes<'b>(fields: &[Field<'b>], field: u64) -> Option<&'b [u8]> {
    let entry = fields.iter().find(|(number, ..)| *number == field);
    entry.map(|(.., bytes)| *bytes)
}

/// An event of a track, decoded.
#[derive(Debug)]
struct Event {
    /// Time in nanoseconds.
    time: u64,
    /// Kind in Perfetto's format: 1 begins a slice, 2 ends one, 3 is an instant, and 4 is a value of a counter.
    kind: u64,
    /// Number of the track.
    track: u64,
    /// Name; empty if the event has none.
    name: String,
    /// Number of the line, if the event is about one.
    line: Option<u64>,
    /// Number of the flow that begins at the event: a message is sent.
    sends: Option<u64>,
    /// Number of the flow that ends at the event: a message is received.
    takes: Option<u64>,
    /// Value of a counter.
    value: Option<f64>,
}

/// Returns the names of tracks by their numbers, and all events, in time order on each track.
fn read(recorded: &Recorded) -> (BTreeMap<u64, String>, Vec<Event>) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8 text");
    let (mut tracks, mut names, mut events) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for (field, _, packet) in fields(&recorded.rest) {
        assert_eq!(field, 1);
        let packet = fields(packet);
        if let Some(interned) = field_bytes(&packet, 12) {
            for (_, _, name) in fields(interned).iter().filter(|(field, ..)| *field == 2) {
                let name = fields(name);
                let (number, name) = (
                    field_value(&name, 1).unwrap(),
                    field_bytes(&name, 2).unwrap(),
                );
                assert!(names.insert(number, text(name)).is_none());
            }
        }
        if let Some(track) = field_bytes(&packet, 60) {
            let track = fields(track);
            let name = text(field_bytes(&track, 2).unwrap());
            assert!(tracks
                .insert(field_value(&track, 1).unwrap(), name)
                .is_none());
        }
        if let Some(event) = field_bytes(&packet, 11) {
            let event = fields(event);
            let notes = event.iter().filter(|(field, ..)| *field == 4);
            let mut notes = notes.map(|(.., note)| fields(note));
            let line = notes.find(|note| field_value(note, 1) == Some(1));
            let name = field_value(&event, 10).map(|number| names[&number].clone());
            events.push(Event {
                time: field_value(&packet, 8).unwrap(),
                kind: field_value(&event, 9).unwrap(),
                track: field_value(&event, 11).unwrap(),
                name: name.unwrap_or_default(),
                line: line.and_then(|note| field_value(&note, 3)),
                sends: field_value(&event, 47),
                takes: field_value(&event, 48),
                value: field_value(&event, 44).map(f64::from_bits),
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
            let (name, begin) = open.pop().expect("slice that began");
            let slices = slices.entry(event.track).or_default();
            slices.push((name, begin, event.time, open.len()));
        }
    }
    assert!(open.values().all(|(_, open)| open.is_empty()));
    slices
}

/// Returns a short stress run of a shipped protocol on three caches.
fn setup(name: &str, seed: u64) -> Setup {
    setups::torture(setups::protocol(name), 3, seed).unwrap()
}

/// Returns the timeline of a run.
fn record(setup: &Setup, filter: &Filter) -> Recorded {
    let mut statistics = draw_while(setup, filter, &mut |_| true).expect("run without violation");
    *statistics
        .timeline
        .take()
        .expect("recording enabled in the run")
}

/// Every access is a slice of its measured latency that contains its steps in order, and recording changes no result.
#[test]
fn timeline_slices_match_measured_latencies() {
    for (name, seed) in [("eci", 1), ("mesi", 2), ("cxl-mem", 4), ("token", 10)] {
        let setup = setup(name, seed);
        let plain = run(&setup).unwrap();
        let mut statistics = draw_while(&setup, &Filter::default(), &mut |_| true).unwrap();
        let recorded = statistics.timeline.take().unwrap();
        statistics.explanation = None;
        assert_eq!(format!("{statistics:?}"), format!("{plain:?}"), "{name}");
        let explained = explain_while(&setup, true, &mut |_| true).unwrap();
        let explanation = explained.explanation.unwrap();
        let (tracks, events) = read(&recorded);
        let slices = slices(&events);
        let all_slices = slices.values().flatten();
        let mut accesses: Vec<(String, u64, u64)> = all_slices
            .filter(|slice| slice.3 == 0)
            .map(|(name, begin, end, _)| (name.clone(), *begin, *end))
            .collect();
        let transactions = explanation.transactions.iter();
        let mut expected: Vec<(String, u64, u64)> = transactions
            .map(|transaction| {
                let name = transaction.access.name().to_string();
                (name, transaction.issued / UNIT, transaction.done / UNIT)
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
        let total: u64 = accesses.iter().map(|(_, begin, end)| end - begin).sum();
        assert_eq!(spent, total, "{name}");
        // Each received message was sent before, by another event.
        let sent: BTreeSet<u64> = events.iter().filter_map(|event| event.sends).collect();
        let taken: BTreeSet<u64> = events.iter().filter_map(|event| event.takes).collect();
        let messages: u64 = plain.messages.iter().map(|(_, count)| count).sum();
        assert_eq!(sent.len() as u64, messages, "{name}");
        assert!(taken.is_subset(&sent), "{name}");
        // States have the names of the protocol.
        let text = setups::source(name);
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
    let unfiltered = record(&setup, &Filter::default());
    let lines: BTreeSet<_> = read(&unfiltered)
        .1
        .iter()
        .filter_map(|event| event.line)
        .collect();
    assert!(lines.len() > 1);
    let line = Filter {
        line: Some(1),
        ..Filter::default()
    };
    let (tracks, events) = read(&record(&setup, &line));
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
        let mut last_end = 0;
        for (name, begin, end, depth) in &slices[&track] {
            assert!(*begin >= last_end && end >= begin && *depth == 0, "{name}");
            last_end = *end;
        }
    }
    let window = Filter {
        window: 1_000_000..2_000_000,
        ..Filter::default()
    };
    let (_, events) = read(&record(&setup, &window));
    let instants = events.iter().filter(|event| event.kind == 3);
    assert!(instants.clone().count() > 10);
    for event in instants {
        let time = event.time * UNIT;
        assert!(window.window.contains(&time), "{event:?}");
    }
    let small_filter = Filter {
        bytes: 20_000,
        ..Filter::default()
    };
    let truncated = record(&setup, &small_filter);
    assert!(truncated.length < unfiltered.length / 2 && truncated.full.is_some());
    assert!(truncated.accesses > 0 && truncated.accesses < unfiltered.accesses);
    assert_eq!(unfiltered.full, None);
    let agent = |name: &str| Filter {
        agent: Some(name.into()),
        ..Filter::default()
    };
    let names: Vec<String> = read(&unfiltered).0.into_values().collect();
    let cache = names
        .iter()
        .find(|name| name.contains("[1]") || name.ends_with('1'));
    let of_one_agent = record(&setup, &agent(cache.expect("track of a numbered cache")));
    assert!(of_one_agent.accesses > 0 && of_one_agent.accesses < unfiltered.accesses);
    match draw_while(&setup, &agent("nobody"), &mut |_| true) {
        Err(RunError::Setup(error)) => assert!(error.contains("no agent `nobody`"), "{error}"),
        other => panic!("{other:?}"),
    }
}

/// Streamed pieces and the remainder are equal to an unstreamed trace, even if buffers are reused.
#[test]
fn streamed_pieces_equal_the_whole_trace() {
    let mut setup = setup("mesi", 5);
    setup.workload.accesses *= 20;
    let unstreamed = record(&setup, &Filter::default());
    let (count, streamed) = record_in_pieces(&setup);
    assert!(count > 2, "{count} pieces of {} bytes", unstreamed.length);
    assert!(streamed.rest == unstreamed.rest);
    assert_eq!(
        (streamed.length, streamed.accesses),
        (unstreamed.length, unstreamed.accesses)
    );
}

/// Returns the number of streamed pieces, and the pieces with the remainder.
fn record_in_pieces(setup: &Setup) -> (usize, Recorded) {
    let (full, pieces) = sync_channel::<Vec<u8>>(2);
    let (emptied, empty) = channel();
    let pieces_received = std::thread::spawn(move || {
        let mut pieces_received = Vec::new();
        for piece in pieces.into_iter().take_while(|piece| !piece.is_empty()) {
            pieces_received.push(piece.clone());
            emptied.send(piece).expect("message that a state waits for");
        }
        pieces_received
    });
    let filter = Filter {
        pieces: Some(Pieces {
            full: full.clone(),
            empty: Arc::new(Mutex::new(empty)),
        }),
        ..Filter::default()
    };
    let recorded = record(setup, &filter);
    full.send(Vec::new()).expect("reader of pieces still runs");
    let mut pieces_received = pieces_received.join().expect("thread that reads pieces");
    let count = pieces_received.len();
    pieces_received.push(recorded.rest);
    let rest = pieces_received.concat();
    (count, Recorded { rest, ..recorded })
}

/// Two spaces are one trace: each access of both is a slice, a flow belongs to one message, and pieces of both may
/// alternate.
#[test]
fn both_spaces_are_in_one_trace() {
    let [device, host] =
        ["enzian-dc-ddr", "enzian-cpu-home"].map(|name| Platform::shipped(name).unwrap());
    let platform = device.with_host(host).unwrap();
    let work = |access, cores| Workload::pass(Pattern::Random, access, 2000, cores, 2);
    let mut host = HostSpace::new(setups::protocol("eci-near"), &platform).unwrap();
    host.workloads = [work(Access::Store, 4), work(Access::Load, 1)];
    let eci = setups::protocol("eci");
    let mut setup = Setup::new(eci, platform, work(Access::Load, 4)).unwrap();
    setup.host = Some(Box::new(host));

    let by_space = |mut statistics: Statistics| {
        let host = statistics.host.take().expect("host space");
        [statistics, *host]
    };
    let expected = by_space(explain_while(&setup, false, &mut |_| true).unwrap());
    let mut statistics = draw_while(&setup, &Filter::default(), &mut |_| true).unwrap();
    let combined = *statistics
        .timeline
        .take()
        .expect("recording enabled in the run");
    assert_eq!(
        format!("{:?}", by_space(statistics)),
        format!("{expected:?}")
    );
    let get = |statistics: &Statistics, name| statistics.get(name).unwrap();
    let counts = (expected.each_ref()).map(|statistics| get(statistics, "accesses") as u64);
    assert_eq!(counts, [2000, 4000]);
    assert_eq!((combined.accesses, combined.full), (6000, None));

    let (tracks, events) = read(&combined);
    for prefix in ["device", "host"].map(|side| format!("the {side}'s memory: ")) {
        let groups = ["cores", "agents", "machine"];
        let groups = groups.map(|group| format!("{prefix}{group}"));
        let tracks_found: Vec<_> = tracks
            .values()
            .filter(|name| groups.contains(name))
            .collect();
        assert_eq!(tracks_found, groups.each_ref(), "{prefix}");
    }
    let slices = slices(&events);
    let outer = slices.values().flatten().filter(|slice| slice.3 == 0);
    let total_duration: u64 = outer.map(|(_, begin, end, _)| end - begin).sum();
    let latency = expected.each_ref().map(|statistics| {
        let explanation = statistics
            .explanation
            .as_ref()
            .expect("recording enabled in the run");
        explanation.latency
    });
    // Each access is rounded by less than a nanosecond.
    let rounded = u128::from(total_duration * UNIT).abs_diff(latency.iter().sum::<u128>());
    assert!(rounded < u128::from(combined.accesses * UNIT), "{rounded}");
    let sends: Vec<u64> = events.iter().filter_map(|event| event.sends).collect();
    let flows: BTreeSet<u64> = sends.iter().copied().collect();
    assert_eq!(flows.len(), sends.len());
    assert!(events
        .iter()
        .filter_map(|event| event.takes)
        .all(|flow| flows.contains(&flow)));

    let (count, streamed) = record_in_pieces(&setup);
    assert!(count > 2, "{count} pieces of {} bytes", combined.length);
    let by_track = |recorded: &Recorded| {
        let (tracks, mut events) = read(recorded);
        events.sort_by_key(|event| event.track);
        (tracks, format!("{events:?}"))
    };
    assert!(by_track(&streamed) == by_track(&combined));
    assert_eq!(
        (streamed.length, streamed.accesses),
        (combined.length, combined.accesses)
    );

    // A timeline of one space equals its part of the timeline of both.
    let side_filter = |side| Filter {
        side: Some(side),
        ..Filter::default()
    };
    let sides = [Side::Device, Side::Host].map(|side| record(&setup, &side_filter(side)));
    assert_eq!(sides.each_ref().map(|recorded| recorded.accesses), counts);
    assert!(sides.map(|recorded| recorded.rest).concat() == combined.rest);
    let agent = |name: &str, side| Filter {
        agent: Some(name.into()),
        side,
        ..Filter::default()
    };
    let llc = record(&setup, &agent("llc", None));
    assert_eq!(llc.accesses, 2000);
    for (side, expected_names) in [
        (None, "there are cpu, home, llc, device, home"),
        (Some(Side::Host), "there are llc, device, home"),
    ] {
        match draw_while(&setup, &agent("nobody", side), &mut |_| true) {
            Err(RunError::Setup(error)) => assert!(error.contains(expected_names), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    setup.host = None;
    match draw_while(&setup, &side_filter(Side::Host), &mut |_| true) {
        Err(RunError::Setup(error)) => {
            assert!(error.contains("no second address space for the host's memory"))
        }
        other => panic!("{other:?}"),
    }
}

/// The mean number of accesses in flight follows from latencies and time, and the use of links equals the statistics.
#[test]
fn timeline_counters_match_the_statistics() {
    let mut workload = Workload::pass(Pattern::Random, Access::Load, 1 << 16, 64, 2);
    workload.accesses = 20_000;
    let platform = Platform::shipped("hosts-8x8").unwrap();
    let setup = Setup::new(setups::protocol("mesi"), platform, workload).unwrap();
    let statistics = run(&setup).unwrap();
    let (tracks, events) = read(&record(&setup, &Filter::default()));
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
        let (track, _) = tracks
            .iter()
            .find(|(_, track_name)| *track_name == name)
            .unwrap();
        let counter_events: Vec<&Event> = events
            .iter()
            .filter(|event| event.track == *track)
            .collect();
        let width = ((counter_events[1].time - counter_events[0].time) * UNIT) as f64;
        let measured: f64 = counter_events
            .iter()
            .filter_map(|event| event.value)
            .sum::<f64>()
            * width;
        let count = counter_events.len();
        assert!(count > 100 && count <= 1024, "{name}: {count}");
        assert!(
            (measured / expected - 1.0).abs() < 0.001,
            "{name}: {measured} {expected}"
        );
    }
}
