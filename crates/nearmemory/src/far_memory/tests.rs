//! Times of far memory with DRAM of a JEDEC standard and with a memory-side cache: sums on paper, and the numbers of
//! the DRAM's own controller.

use super::*;
use cohkit_dram::{Controller, Finished, JedecDram, Memory, Scheduler, Standard};

/// Quantities of the machines in these tests.
fn platform(dram: Option<JedecDram>, cache_bytes: u64) -> Platform {
    let mut platform = Platform::enzian();
    if let Some(dram) = dram {
        platform.memory = Memory::Jedec(Box::new(dram));
    }
    platform.cache_bytes.value = cache_bytes;
    platform
}

/// Performs accesses to lines, each at its time, and returns the end of each. Turns of the DRAM are taken in order of
/// time.
fn ends(far: &mut FarMemory, accesses: &[(Time, u64, AccessKind)]) -> Vec<Time> {
    let mut ends = vec![0; accesses.len()];
    let mut turns = std::collections::BTreeSet::new();
    let mut waiting = accesses.iter().enumerate().peekable();
    loop {
        let turn = turns.first().copied();
        match waiting.peek() {
            Some((_, (time, ..))) if turn.is_none_or(|turn| *time <= turn) => {
                let (i, (time, line, kind)) = waiting.next().expect("an access");
                let completion = Completion::Copy(i, 0, Box::new([0; LINE]));
                far.access(*time, FAR + line * LINE as u64, *kind, completion);
            }
            _ => match turns.pop_first() {
                Some(turn) => far.take_turn(turn),
                None => return ends,
            },
        }
        while let Some((end, Completion::Copy(i, ..))) = far.next_end() {
            ends[i] = end;
        }
        turns.extend(far.request_turn());
    }
}

/// All standards with both schedulers, without refresh.
fn drams() -> impl Iterator<Item = JedecDram> {
    let schedulers = Scheduler::ALL.iter().map(|(_, scheduler)| *scheduler);
    let drams = schedulers.flat_map(|scheduler| {
        Standard::ALL.iter().map(move |(_, standard)| JedecDram {
            scheduler,
            ..JedecDram::new(*standard)
        })
    });
    drams.map(|mut dram| {
        dram.timing.t_refi.value = 0;
        dram.controller_latency.value = 50_000;
        dram
    })
}

/// A single read takes the controller's latency, the activation, the column access and the transfer. Each burst of the
/// line is in a bank group of its own, and the rows of these are opened one after the other. The read waits for
/// clock edges in addition.
#[test]
fn single_access_takes_the_sum_of_its_parts() {
    for dram in drams() {
        let parts = dram.read_latency(LINE as u32);
        let bursts = LINE as u64 / dram.burst_bytes.value;
        let transfer = dram
            .clocks(dram.timing.t_ccd_s.value)
            .max(dram.burst_clocks.value);
        let activate = dram.clocks(dram.timing.t_rrd_s.value);
        // Group machines issue commands at clocks of the controller only: the activate and the column command wait.
        let (activate, waits) = match dram.scheduler {
            Scheduler::FirstReady => (activate, 1),
            Scheduler::GroupMachines => {
                let clocks = dram.controller_clocks.value;
                (activate.next_multiple_of(clocks), 2 * clocks)
            }
        };
        let activates = (bursts - 1) * activate.saturating_sub(transfer) * dram.clock_period.value;
        let sum: Time = parts.iter().map(|(_, time)| time).sum::<Time>() + activates;
        let waits = waits * dram.clock_period.value;
        let mut far = FarMemory::new(&platform(Some(dram), 0));
        let [end] = ends(&mut far, &[(0, 5, AccessKind::ReadLine)])[..] else {
            panic!("one access has one end");
        };
        assert!((sum..=sum + waits).contains(&end), "{end} {sum} {parts:?}");
        assert_eq!(far.row_hits_and_misses(), (0, 1));
    }
}

/// Sequential and scattered accesses end exactly when the DRAM's own controller ends the same operations.
#[test]
fn accesses_end_when_the_controller_says() {
    for dram in drams() {
        for stride in [1, 37] {
            let accesses: Vec<(Time, u64, AccessKind)> = (0..400)
                .map(|i| match i % 5 {
                    0 => (i * 3_000, i * stride, AccessKind::WriteLine),
                    1 => (i * 3_000, i * stride, AccessKind::ReadWord(Size::Double)),
                    _ => (i * 3_000, i * stride, AccessKind::ReadLine),
                })
                .collect();
            let mut controller = Controller::new(&dram, LINE as u32);
            for (i, (time, line, kind)) in accesses.iter().enumerate() {
                let bytes = kind.word_size().map_or(LINE as u32, |size| size as u32);
                let place = (*line as Line, 0..bytes);
                controller.submit(*time, place, kind.writes(), i as u32);
            }
            let mut finished: Vec<Finished> = Vec::new();
            while let Some(now) = controller.next() {
                controller.advance(now, &mut finished);
            }
            let mut expected = vec![0; accesses.len()];
            for operation in &finished {
                expected[operation.number as usize] = operation.end;
            }
            let mut far = FarMemory::new(&platform(Some(dram.clone()), 0));
            assert_eq!(ends(&mut far, &accesses), expected, "{stride} {dram:?}");
            let missed = finished.iter().filter(|one| one.missed).count() as u64;
            assert_eq!(far.row_hits_and_misses(), (400 - missed, missed));
            assert!(far.is_read_only());
        }
    }
}

/// Sequential reads that are all waiting use the data bus at the rate of its bursts: their lines come at the interval
/// of column commands of different bank groups.
#[test]
fn waiting_sequential_reads_fill_the_data_bus() {
    const LINES: u64 = 2_000;
    for (_, standard) in Standard::ALL {
        let mut dram = JedecDram::new(standard);
        dram.timing.t_refi.value = 0;
        let bursts = LINE as u64 / dram.burst_bytes.value;
        let clocks = dram
            .clocks(dram.timing.t_ccd_s.value)
            .max(dram.burst_clocks.value);
        let interval = bursts * clocks * dram.clock_period.value;
        let accesses: Vec<_> = (0..LINES).map(|i| (0, i, AccessKind::ReadLine)).collect();
        let latency: Time = dram
            .read_latency(LINE as u32)
            .iter()
            .map(|(_, time)| time)
            .sum();
        let mut far = FarMemory::new(&platform(Some(dram), 0));
        let last = ends(&mut far, &accesses)
            .into_iter()
            .max()
            .expect("an access");
        let least = (LINES - 1) * interval;
        // The DRAM's own tests hold the share of the bus that each standard reaches; no standard loses a tenth.
        let range = least..=least + least / 10 + latency;
        assert!(range.contains(&last), "{standard:?}: {last} {range:?}");
    }
}

/// A hit takes the latency of a look-up. A miss takes DRAM's time in addition, and a write of a whole line needs none.
#[test]
fn hit_and_miss_take_their_formulas() {
    let jedec = JedecDram::new(Standard::Ddr4_2400);
    for dram in [None, Some(jedec)] {
        let plain = platform(dram.clone(), 0);
        let read = AccessKind::ReadLine;
        let [uncached] = ends(&mut FarMemory::new(&plain), &[(0, 9, read)])[..] else {
            panic!("one access has one end");
        };
        let mut cached = platform(dram, 1 << 16);
        // A look-up of whole clocks of the DRAM does not shift its clock edges.
        cached.cache_hit.value = 10 * 833;
        let hit = cached.cache_hit.value;
        let mut far = FarMemory::new(&cached);
        let accesses = [
            (0, 9, read),
            (10_000_000, 9, read),
            (20_000_000, 10, AccessKind::WriteLine),
            (30_000_000, 10, AccessKind::ReadWord(Size::Byte)),
        ];
        let times = ends(&mut far, &accesses);
        let latencies: Vec<Time> = times
            .iter()
            .zip(&accesses)
            .map(|(end, access)| end - access.0)
            .collect();
        assert_eq!(latencies, [uncached + hit, hit, hit, hit]);
        let counters = far.cache_counters().expect("a cache");
        assert_eq!(
            (counters.hits, counters.misses, counters.write_backs),
            (2, 2, 0)
        );
        assert_eq!(far.row_hits_and_misses(), (0, 1));
    }
}

/// Changed lines of a cache that is too small reach DRAM once for each time that they are replaced.
#[test]
fn replaced_changed_lines_are_written_to_dram() {
    for dram in [None, Some(JedecDram::new(Standard::Ddr4_2400))] {
        let mut platform = platform(dram, 8 * LINE as u64);
        platform.cache_ways.value = 1;
        let mut far = FarMemory::new(&platform);
        let accesses: Vec<_> = (0..32)
            .map(|i| (i * 1_000_000, i, AccessKind::WriteLine))
            .collect();
        ends(&mut far, &accesses);
        let counters = far.cache_counters().expect("a cache");
        // All but the last eight lines are replaced; none is read.
        assert_eq!((counters.misses, counters.write_backs), (32, 24));
        let (hits, misses) = far.row_hits_and_misses();
        assert_eq!(hits + misses, 24);
    }
}
