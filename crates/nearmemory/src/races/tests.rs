//! Tests of the race detector with two cores, driven by calls in the order in which a machine makes them.

use super::*;
use crate::events::{CoreCounts, CoreId};

/// Address of the line in far memory that both cores copy, to line 0 of their scratchpads.
const LINE: u64 = 0x1000;

/// A detector for this number of hosts with a core each, and two near-memory cores.
fn detector(hosts: usize) -> RaceDetector {
    RaceDetector::new(CoreCounts {
        hosts,
        host_cores: 1,
        mccs: 2,
    })
}

/// Fetches or stores the line by the copy engine of one of two cores, completes at once, and observes completion.
fn copy(races: &mut RaceDetector, mcc: usize, pc: u64, stores: bool) {
    let core_id = CoreId::Mcc(mcc);
    races.start_transfer(Site { core_id, pc }, (0, LINE, 1), stores);
    races.copy_line(mcc, (LINE, stores), 0, true);
    races.complete_line_copy(mcc, 0);
    races.load_stamp(mcc, 0, stores);
}

/// Stores to these bytes of the line in a core's scratchpad, word by word.
fn change_bytes(races: &mut RaceDetector, mcc: usize, bytes: std::ops::Range<u64>) {
    let core_id = CoreId::Mcc(mcc);
    for address in bytes.step_by(8) {
        races.core_store(Site { core_id, pc: 7 }, 0, address, 8);
    }
}

/// Sends a word from one core to the other.
fn send_word_between(races: &mut RaceDetector, from: usize, to: usize) {
    races.synchronisation.send_word(from, to, 4);
    races.synchronisation.deliver_word(from, to);
    races
        .synchronisation
        .acquire_from_channel(CoreId::Mcc(to), SyncChannel::Fifo(from, to));
}

/// A race on the line; each access is given by the number of its core and its program counter.
fn race(kind: RaceKind, second: (usize, u64), first: (usize, u64)) -> Race {
    let [second, first] = [second, first].map(|(mcc, pc)| Site {
        core_id: CoreId::Mcc(mcc),
        pc,
    });
    Race {
        kind,
        second,
        first,
        line: LINE,
    }
}

/// Two cores copy and change one line. A race is reported unless the second core's store is ordered after the first
/// one's and replaces the whole line on purpose, or it has fetched after that store.
#[test]
fn stored_bytes_are_compared_with_fetched_bytes() {
    use RaceKind::{Overwritten, UnorderedRead, UnorderedStores};
    // The second core fetches before the first one stores (and the first one knows of that), or after. It may receive a
    // word about the stores, may load its data, and changes the given number of bytes.
    for (early, receives, loads, bytes, expected) in [
        (true, false, false, 8, Some((Overwritten, (1, 5), (0, 4)))),
        (true, true, false, 120, Some((Overwritten, (1, 5), (0, 4)))),
        (
            true,
            false,
            false,
            128,
            Some((UnorderedStores, (1, 5), (0, 4))),
        ),
        (true, false, true, 128, Some((Overwritten, (1, 5), (0, 4)))),
        (true, true, true, 128, Some((Overwritten, (1, 5), (0, 4)))),
        (true, true, false, 128, None),
        (false, false, true, 8, Some((UnorderedRead, (1, 2), (0, 4)))),
        (false, true, true, 8, None),
    ] {
        let mut races = detector(0);
        copy(&mut races, 0, 1, false);
        if early {
            copy(&mut races, 1, 2, false);
            send_word_between(&mut races, 1, 0);
        }
        change_bytes(&mut races, 0, 0..8);
        copy(&mut races, 0, 3, true);
        // The core's second store has the bytes of its first store, and these bytes.
        change_bytes(&mut races, 0, 8..16);
        copy(&mut races, 0, 4, true);
        if receives {
            send_word_between(&mut races, 0, 1);
        }
        if !early {
            copy(&mut races, 1, 2, false);
        }
        let core_id = CoreId::Mcc(1);
        if loads {
            races.core_load(Site { core_id, pc: 6 }, 0, 120, 8);
        }
        change_bytes(&mut races, 1, 0..bytes);
        copy(&mut races, 1, 5, true);
        let expected = expected.map(|(kind, second, first)| race(kind, second, first));
        let expected = Vec::from_iter(expected);
        assert_eq!(
            races.log.new_races, expected,
            "{early} {receives} {loads} {bytes}"
        );
    }
}

/// A core stores a line that another has fetched, with or without a word that says that the fetch is complete.
#[test]
fn store_before_another_cores_read_ends_is_a_race() {
    for waits in [true, false] {
        let mut races = detector(0);
        copy(&mut races, 1, 1, false);
        if waits {
            send_word_between(&mut races, 1, 0);
        }
        copy(&mut races, 0, 2, true);
        let read = race(RaceKind::UnorderedRead, (0, 2), (1, 1));
        assert_eq!(
            races.log.new_races,
            Vec::from_iter((!waits).then_some(read))
        );
    }
}

/// A sender that finds space in a full FIFO is ordered after the receiver's accesses before it took the word.
#[test]
fn fifo_space_orders_only_earlier_reads() {
    // With two places in the FIFO, the third word reuses the first place and the fourth word the second.
    for (words, races_found) in [(3, 1), (4, 0)] {
        let mut races = detector(0);
        for _ in 0..2 {
            races.synchronisation.send_word(0, 1, 2);
            races.synchronisation.deliver_word(0, 1);
        }
        races
            .synchronisation
            .acquire_from_channel(CoreId::Mcc(1), SyncChannel::Fifo(0, 1));
        races.synchronisation.pop_word(0, 1);
        copy(&mut races, 1, 1, false);
        races.synchronisation.pop_word(0, 1);
        for _ in 2..words {
            races.synchronisation.send_word(0, 1, 2);
        }
        copy(&mut races, 0, 2, true);
        assert_eq!(races.log.new_races.len(), races_found, "{words}");
    }
}

/// A line of the scratchpad that the host has written no longer has fetched contents, so its store loses nothing.
#[test]
fn host_written_scratchpad_line_ends_the_copy_dependency() {
    for writes in [true, false] {
        let mut races = detector(1);
        copy(&mut races, 1, 1, false);
        send_word_between(&mut races, 1, 0);
        copy(&mut races, 0, 2, true);
        send_word_between(&mut races, 0, 1);
        if writes {
            races.receive_request(9, SyncChannel::Line(1, 0));
        }
        copy(&mut races, 1, 3, true);
        let stale = race(RaceKind::Overwritten, (1, 3), (0, 2));
        assert_eq!(
            races.log.new_races,
            Vec::from_iter((!writes).then_some(stale))
        );
    }
}

/// One core of a host receives a core's notice of a store, and another one loads. The host is one agent: its copy from
/// before the store is stale for all of its cores, and a load that the store precedes is no race.
#[test]
fn notice_to_a_host_counts_for_all_its_cores() {
    for (is_old, receives, expected) in [
        (true, true, Some(RaceKind::StaleLoad)),
        (false, true, None),
        (false, false, Some(RaceKind::UnorderedRead)),
    ] {
        let mut races = RaceDetector::new(CoreCounts {
            hosts: 1,
            host_cores: 2,
            mccs: 1,
        });
        let host_cores = [0, 1].map(|core| CoreId::Host { host: 0, core });
        let channel = SyncChannel::Register(0, 0);
        if is_old {
            races.fetch_line(0, LINE);
        }
        change_bytes(&mut races, 0, 0..8);
        copy(&mut races, 0, 1, true);
        let synchronisation = &mut races.synchronisation;
        synchronisation.release_to_channel(CoreId::Mcc(0), channel);
        if receives {
            synchronisation.acquire_from_channel(host_cores[0], channel);
        }
        if !is_old {
            races.fetch_line(0, LINE);
        }
        let core_id = host_cores[1];
        races.host_load(Site { core_id, pc: 2 }, LINE, true, true);
        let kinds: Vec<RaceKind> = races.log.new_races.iter().map(|race| race.kind).collect();
        assert_eq!(kinds, Vec::from_iter(expected), "{is_old} {receives}");
    }
}
