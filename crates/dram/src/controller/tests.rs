//! Tests of the DRAM against rules and formulas on paper.
//!
//! [`violations`] judges a trace of commands by the rules of JEDEC alone. It shares no code with [`Banks`].

use super::banks::{Banks, Command};
use super::*;
use crate::jedec::Standard;
use proptest::prelude::*;
use Command::{Activate, Precharge, Read, Write};

/// State of a bank in a trace: its open row since the last activate, and the end of its last precharge.
#[derive(Clone, Copy, Default)]
struct Row {
    open: bool,
    activated: Option<Clock>,
    last_read: Option<Clock>,
    last_write: Option<Clock>,
    precharged: Option<Clock>,
}

/// A minimum distance between two commands, and its name.
type Rule = (&'static str, Option<Clock>, Clock);

/// Returns the rules of a trace that a command breaks: each is a clock from which it is legal.
fn broken(now: Clock, rules: &[Rule]) -> Vec<String> {
    let late = rules.iter().filter_map(|&(name, since, distance)| {
        let earliest = since? + distance;
        (now < earliest).then(|| format!("{name} at {now}, legal from {earliest}"))
    });
    late.collect()
}

/// Judge of a trace.
struct Judge<'t> {
    timing: &'t Timing,
    groups: usize,
    rows: Vec<Row>,
    activates: Vec<(Clock, usize)>,
    /// Reads and writes: clock, bank group, and whether it writes.
    columns: Vec<(Clock, usize, bool)>,
    refreshed: Option<Clock>,
    found: Vec<String>,
}

impl Judge<'_> {
    fn activate(&mut self, now: Clock, bank: usize) {
        let (timing, group) = (self.timing, bank % self.groups);
        let row = self.rows[bank];
        if row.open {
            self.found
                .push(format!("activate of an open bank at {now}"));
        }
        let last_of = |wanted: &dyn Fn(usize) -> bool| {
            let mut activates = self.activates.iter().rev();
            activates
                .find(|(_, bank)| wanted(*bank))
                .map(|(clock, _)| *clock)
        };
        let fourth = self.activates.iter().rev().nth(3).map(|(clock, _)| *clock);
        let found = broken(
            now,
            &[
                ("tRC", row.activated, timing.ras + timing.rp),
                ("tRP", row.precharged, timing.rp),
                (
                    "tRRD_L",
                    last_of(&|bank| bank % self.groups == group),
                    timing.rrd_l,
                ),
                ("tRRD_S", last_of(&|_| true), timing.rrd_s),
                ("tFAW", fourth, timing.faw),
                ("tRFC", self.refreshed, timing.rfc),
            ],
        );
        self.found.extend(found);
        self.activates.push((now, bank));
        self.rows[bank] = Row {
            open: true,
            activated: Some(now),
            ..Row::default()
        };
    }

    fn precharge(&mut self, now: Clock, bank: usize) {
        let (timing, row) = (self.timing, self.rows[bank]);
        let data = timing.cwl + timing.burst;
        let found = broken(
            now,
            &[
                ("tRAS", row.activated, timing.ras),
                ("tRTP", row.last_read, timing.rtp),
                ("tWR", row.last_write, data + timing.wr),
            ],
        );
        self.found.extend(found);
        self.rows[bank].open = false;
        self.rows[bank].precharged = Some(now);
    }

    fn column(&mut self, now: Clock, bank: usize, write: bool) {
        let (timing, group, row) = (self.timing, bank % self.groups, self.rows[bank]);
        if !row.open {
            self.found
                .push(format!("column command of a closed bank at {now}"));
        }
        let last = |of_group: bool, writes: bool| {
            let mut columns = self.columns.iter().rev();
            let column = columns.find(|&&(_, other_group, other_writes)| {
                other_writes == writes && (!of_group || other_group == group)
            });
            column.map(|&(clock, ..)| clock)
        };
        let data = timing.cwl + timing.burst;
        let rules = match write {
            false => [
                ("tRCD", row.activated, timing.rcd),
                ("tCCD_S", last(false, false), timing.ccd_s),
                ("tCCD_L", last(true, false), timing.ccd_l),
                ("tWTR_S", last(false, true), data + timing.wtr_s),
                ("tWTR_L", last(true, true), data + timing.wtr_l),
            ],
            true => [
                ("tRCD", row.activated, timing.rcd),
                ("tCCD_S", last(false, true), timing.ccd_s),
                ("tCCD_L_WR", last(true, true), timing.ccd_l_wr),
                ("tRTW", last(false, false), timing.rtw),
                (
                    "data bus",
                    last(false, false),
                    timing.cl + timing.burst - timing.cwl.min(timing.cl),
                ),
            ],
        };
        self.found.extend(broken(now, &rules));
        self.columns.push((now, group, write));
        match write {
            false => self.rows[bank].last_read = Some(now),
            true => self.rows[bank].last_write = Some(now),
        }
    }

    /// Closes a bank after a column command with auto-precharge, at the first legal clock.
    fn close(&mut self, bank: usize) {
        let (timing, row) = (self.timing, self.rows[bank]);
        let data = timing.cwl + timing.burst;
        let earliest = [
            row.activated.map(|clock| clock + timing.ras),
            row.last_read.map(|clock| clock + timing.rtp),
            row.last_write.map(|clock| clock + data + timing.wr),
        ];
        self.rows[bank].open = false;
        self.rows[bank].precharged = earliest.into_iter().flatten().max();
    }

    fn refresh(&mut self, now: Clock) {
        if self.rows.iter().any(|row| row.open) {
            self.found
                .push(format!("refresh with an open bank at {now}"));
        }
        for row in self.rows.clone() {
            self.found
                .extend(broken(now, &[("tRP", row.precharged, self.timing.rp)]));
        }
        self.found
            .extend(broken(now, &[("tRFC", self.refreshed, self.timing.rfc)]));
        self.refreshed = Some(now);
    }
}

/// Returns all violations of a trace: rules that it breaks, and clocks with two commands.
fn violations(
    timing: &Timing,
    groups: usize,
    banks: usize,
    trace: &[(Clock, Command)],
) -> Vec<String> {
    let mut judge = Judge {
        timing,
        groups,
        rows: vec![Row::default(); banks],
        activates: Vec::new(),
        columns: Vec::new(),
        refreshed: None,
        found: Vec::new(),
    };
    let mut sorted = trace.to_vec();
    sorted.sort_by_key(|(clock, _)| *clock);
    for (index, &(now, command)) in sorted.iter().enumerate() {
        if index > 0 && sorted[index - 1].0 == now {
            judge.found.push(format!("two commands at {now}"));
        }
        match command {
            Activate { bank, .. } => judge.activate(now, bank),
            Precharge { bank } => judge.precharge(now, bank),
            Command::PrechargeAll => {
                for bank in 0..banks {
                    if judge.rows[bank].open {
                        judge.precharge(now, bank);
                    }
                }
            }
            Read { bank, closes } | Write { bank, closes } => {
                judge.column(now, bank, matches!(command, Write { .. }));
                if closes {
                    judge.close(bank);
                }
            }
            Command::Refresh => judge.refresh(now),
        }
    }
    judge.found
}

/// Returns a DRAM without latency of the controller and with room for many bursts.
fn dram(standard: Standard, scheduler: Scheduler) -> JedecDram {
    let mut dram = JedecDram::new(standard);
    dram.scheduler = scheduler;
    dram.queue_entries.value = 64;
    dram
}

/// Number of a burst's line, for lines of one burst and one channel.
fn line_of(dram: &JedecDram, (group, bank): (u64, u64), row: u64, column: u64) -> Line {
    let bursts_per_row = dram.row_bytes.value / dram.burst_bytes.value;
    let (low, high) = (bank % 2, bank / 2);
    let place = (row * (dram.banks_per_group.value / 2) + high) * bursts_per_row + column;
    ((place * 2 + low) * dram.bank_groups.value + group) as Line
}

/// Result of a run.
struct Outcome {
    /// End of each operation, in clocks.
    ends: Vec<Clock>,
    trace: Vec<(Clock, Command)>,
    timing: Timing,
    dram: JedecDram,
}

impl Outcome {
    /// Mean number of clocks between the ends of operations, from the second quarter on.
    fn interval(&self) -> f64 {
        let mut ends = self.ends.clone();
        ends.sort_unstable();
        let first = ends.len() / 4;
        (ends[ends.len() - 1] - ends[first]) as f64 / (ends.len() - 1 - first) as f64
    }
}

/// Runs operations, each a burst with the clock of its arrival, and checks the trace.
fn run_at(dram: &JedecDram, accesses: &[(Clock, Line, bool)]) -> Outcome {
    let burst_bytes = dram.burst_bytes.value as u32;
    let mut controller = Controller::new(dram, burst_bytes);
    controller.channels[0].banks.trace = Some(Vec::new());
    let period = dram.clock_period.value;
    let mut ends = vec![0; accesses.len()];
    let mut finished = Vec::new();
    for (&(clock, line, write), number) in accesses.iter().zip(0..) {
        controller.submit(clock * period, (line, 0..burst_bytes), write, number);
    }
    while let Some(next) = controller.next() {
        controller.advance(next, &mut finished);
        for operation in finished.drain(..) {
            assert_eq!(ends[operation.number as usize], 0, "an operation ends once");
            ends[operation.number as usize] = operation.end / period;
        }
    }
    assert!(ends.iter().all(|&end| end > 0), "every operation ends");
    let trace = controller.channels[0].banks.trace.take().unwrap();
    let timing = Timing::new(dram);
    let (groups, banks) = (dram.bank_groups.value as usize, controller.counts().1);
    assert_eq!(
        violations(&timing, groups, banks, &trace),
        Vec::<String>::new()
    );
    Outcome {
        ends,
        trace,
        timing,
        dram: dram.clone(),
    }
}

/// Runs operations that all arrive at the beginning.
fn run(dram: &JedecDram, accesses: impl Iterator<Item = (Line, bool)>) -> Outcome {
    let accesses: Vec<_> = accesses.map(|(line, write)| (0, line, write)).collect();
    run_at(dram, &accesses)
}

#[track_caller]
fn assert_near(measured: f64, formula: f64, label: &str) {
    let deviation = measured / formula - 1.0;
    assert!(
        deviation.abs() < 0.1,
        "{label}: {measured:.3}, by formula {formula:.3}"
    );
}

/// JEDEC's example values of each standard, in clocks: CL, tRCD, tRP, tRAS, tCCD_L, tRRD_L, tFAW, tWR, tWTR_L, tRFC.
#[test]
fn standards_have_the_clocks_of_their_speed_bins() {
    let expected = [
        (Standard::Ddr4_2133, [15, 15, 15, 36, 6, 6, 23, 16, 8, 374]),
        (Standard::Ddr4_2400, [17, 17, 17, 39, 6, 6, 26, 18, 9, 421]),
        (Standard::Ddr4_3200, [22, 22, 22, 52, 8, 8, 34, 24, 12, 560]),
        (
            Standard::Ddr5_4800,
            [40, 39, 39, 77, 12, 12, 32, 72, 24, 708],
        ),
        (Standard::Hbm2, [14, 14, 14, 34, 4, 6, 30, 16, 8, 260]),
    ];
    for (standard, clocks) in expected {
        let t = Timing::new(&JedecDram::new(standard));
        let measured = [
            t.cl, t.rcd, t.rp, t.ras, t.ccd_l, t.rrd_l, t.faw, t.wr, t.wtr_l, t.rfc,
        ];
        assert_eq!(measured, clocks, "{standard:?}");
    }
    // One bank of DDR4-2400 cycles in 56 clocks of 0.833 ns, or 46.7 ns.
    assert_eq!(Timing::new(&JedecDram::new(Standard::Ddr4_2400)).rc(), 56);
}

/// A pair of commands with a minimum distance: set-up commands with clocks, the last command without, and the distance
/// from the last clock of the set-up.
struct Pair {
    name: &'static str,
    before: Vec<(Clock, Command)>,
    after: Command,
    earliest: Clock,
}

/// Opens rows of banks long before the other commands, so that only those count.
fn opened(banks: &[usize]) -> Vec<(Clock, Command)> {
    let banks = banks.iter().zip(0..);
    let open = banks.map(|(&bank, number)| (number * 100, Activate { bank, row: 1 }));
    open.collect()
}

/// Appends commands to a list.
fn with(mut list: Vec<(Clock, Command)>, more: &[(Clock, Command)]) -> Vec<(Clock, Command)> {
    list.extend_from_slice(more);
    list
}

fn read(bank: usize) -> Command {
    Read {
        bank,
        closes: false,
    }
}

fn write(bank: usize) -> Command {
    Write {
        bank,
        closes: false,
    }
}

fn pair(
    name: &'static str,
    before: Vec<(Clock, Command)>,
    after: Command,
    earliest: Clock,
) -> Pair {
    Pair {
        name,
        before,
        after,
        earliest,
    }
}

/// Returns a pair for each parameter of a bank and of activates. Bank 0 and bank 4 are in bank group 0, banks 1 to 3 in
/// others.
fn pairs_of_banks(t: &Timing) -> Vec<Pair> {
    let act = |bank| Activate { bank, row: 1 };
    let pre = |bank| Precharge { bank };
    let open = opened;
    let data = t.cwl + t.burst;
    vec![
        pair("tRCD of a read", open(&[0]), read(0), t.rcd),
        pair("tRCD of a write", open(&[0]), write(0), t.rcd),
        pair("tRAS", open(&[0]), pre(0), t.ras),
        pair(
            "tRP",
            with(open(&[0]), &[(500, pre(0))]),
            act(0),
            500 + t.rp,
        ),
        pair(
            "tRC",
            with(open(&[0]), &[(t.ras, pre(0))]),
            act(0),
            t.ras + t.rp,
        ),
        pair(
            "tRTP",
            with(open(&[0]), &[(500, read(0))]),
            pre(0),
            500 + t.rtp,
        ),
        pair(
            "tWR",
            with(open(&[0]), &[(500, write(0))]),
            pre(0),
            500 + data + t.wr,
        ),
        pair("tRRD_S", vec![(0, act(0))], act(1), t.rrd_s),
        pair("tRRD_L", vec![(0, act(0))], act(4), t.rrd_l),
    ]
}

/// Returns a pair for each parameter of column commands, with the same banks.
fn pairs_of_columns(t: &Timing) -> Vec<Pair> {
    let open = opened;
    let data = t.cwl + t.burst;
    vec![
        pair(
            "tCCD_S",
            with(open(&[0, 1]), &[(500, read(0))]),
            read(1),
            500 + t.ccd_s,
        ),
        pair(
            "tCCD_L",
            with(open(&[0, 4]), &[(500, read(0))]),
            read(4),
            500 + t.ccd_l,
        ),
        pair(
            "tCCD_S of writes",
            with(open(&[0, 1]), &[(500, write(0))]),
            write(1),
            500 + t.ccd_s,
        ),
        pair(
            "tCCD_L_WR",
            with(open(&[0, 4]), &[(500, write(0))]),
            write(4),
            500 + t.ccd_l_wr,
        ),
        pair(
            "tWTR_S",
            with(open(&[0, 1]), &[(500, write(0))]),
            read(1),
            500 + data + t.wtr_s,
        ),
        pair(
            "tWTR_L",
            with(open(&[0, 4]), &[(500, write(0))]),
            read(4),
            500 + data + t.wtr_l,
        ),
        pair(
            "tRTW",
            with(open(&[0, 1]), &[(500, read(0))]),
            write(1),
            500 + t.rtw,
        ),
    ]
}

/// Applies commands to banks.
fn apply(banks: &mut Banks, commands: &[(Clock, Command)]) {
    for &(clock, command) in commands {
        match command {
            Activate { bank, row } => banks.activate(clock, bank, row),
            Precharge { bank } => banks.precharge(clock, bank),
            Command::PrechargeAll => banks.precharge_all(clock),
            Read { bank, closes } => {
                banks.column(clock, bank, false, closes);
            }
            Write { bank, closes } => {
                banks.column(clock, bank, true, closes);
            }
            Command::Refresh => banks.refresh(clock),
        }
    }
}

/// Each parameter permits a command after n clocks, and forbids it after n - 1: for the banks and for the judge.
#[test]
fn parameters_are_exact_to_the_clock() {
    for (_, standard) in Standard::ALL {
        let dram = JedecDram::new(standard);
        let timing = Timing::new(&dram);
        let (groups, per_group) = (
            dram.bank_groups.value as usize,
            dram.banks_per_group.value as usize,
        );
        for mut pair in pairs_of_banks(&timing)
            .into_iter()
            .chain(pairs_of_columns(&timing))
        {
            // Bank 4 of the list is the second bank of group 0.
            let map = |command| match command {
                Activate { bank: 4, row } => Activate { bank: groups, row },
                Precharge { bank: 4 } => Precharge { bank: groups },
                Read { bank: 4, closes } => Read {
                    bank: groups,
                    closes,
                },
                Write { bank: 4, closes } => Write {
                    bank: groups,
                    closes,
                },
                other => other,
            };
            pair.before
                .iter_mut()
                .for_each(|entry| entry.1 = map(entry.1));
            let after = map(pair.after);
            let mut banks = Banks::new(timing.clone(), groups, per_group);
            apply(&mut banks, &pair.before);
            let measured = match after {
                Activate { bank, .. } => banks.activate_from(bank),
                Precharge { bank } => banks.precharge_from(bank),
                Read { bank, .. } => banks.column_from(bank, false),
                Write { bank, .. } => banks.column_from(bank, true),
                _ => unreachable!("no such pair"),
            };
            let label = format!("{standard:?}: {}", pair.name);
            assert_eq!(measured, pair.earliest, "{label}");
            for (clock, is_legal) in [(pair.earliest, true), (pair.earliest - 1, false)] {
                let mut trace = pair.before.clone();
                trace.push((clock, after));
                let found = violations(&timing, groups, groups * per_group, &trace);
                assert_eq!(found.is_empty(), is_legal, "{label} at {clock}: {found:?}");
            }
        }
    }
}

/// At most four activates lie in a window of tFAW, and none within tRFC after a refresh.
#[test]
fn activate_window_and_refresh_are_exact_to_the_clock() {
    for (_, standard) in Standard::ALL {
        let dram = JedecDram::new(standard);
        let timing = Timing::new(&dram);
        let groups = dram.bank_groups.value as usize;
        let act = |bank| Activate { bank, row: 1 };
        let mut banks = Banks::new(timing.clone(), groups, 4);
        let before: Vec<_> = (0..4)
            .map(|bank| (bank as Clock * timing.rrd_s, act(bank)))
            .collect();
        apply(&mut banks, &before);
        // The fifth activate is in the bank group of the first.
        let earliest = timing.faw.max(4 * timing.rrd_s);
        assert_eq!(banks.activate_from(groups), earliest, "{standard:?}");
        for (clock, is_legal) in [(earliest, true), (earliest - 1, false)] {
            let mut trace = before.clone();
            trace.push((clock, act(groups)));
            let found = violations(&timing, groups, 4 * groups, &trace);
            assert_eq!(found.is_empty(), is_legal, "{standard:?}: {found:?}");
        }
        let mut banks = Banks::new(timing.clone(), groups, 4);
        apply(&mut banks, &[(10, Command::Refresh)]);
        assert_eq!(banks.activate_from(0), 10 + timing.rfc);
        let early = [(10, Command::Refresh), (9 + timing.rfc, act(0))];
        assert_eq!(violations(&timing, groups, 4 * groups, &early).len(), 1);
        // A refresh waits for tRP after the last precharge.
        let mut banks = Banks::new(timing.clone(), groups, 4);
        apply(&mut banks, &[(0, act(0))]);
        assert_eq!(banks.next_for_refresh(), (true, timing.ras));
        apply(&mut banks, &[(timing.ras, Command::PrechargeAll)]);
        assert_eq!(banks.next_for_refresh(), (false, timing.ras + timing.rp));
    }
}

const SCHEDULERS: [Scheduler; 2] = [Scheduler::FirstReady, Scheduler::GroupMachines];

/// Share of the time in which a channel is not refreshed.
fn share_without_refresh(timing: &Timing) -> f64 {
    1.0 - (timing.rfc + timing.rp) as f64 / timing.refi as f64
}

/// Sequential reads and writes have the rate of the data bus, less refreshes.
#[test]
fn sequential_accesses_fill_the_data_bus() {
    for (_, standard) in Standard::ALL {
        for scheduler in SCHEDULERS {
            for write in [false, true] {
                let dram = dram(standard, scheduler);
                let outcome = run(&dram, (0..12_000).map(|line| (line, write)));
                // A controller clock transfers at most one burst.
                let controller_clock = match scheduler {
                    Scheduler::FirstReady => 0,
                    Scheduler::GroupMachines => dram.controller_clocks.value,
                };
                let burst = outcome
                    .timing
                    .burst
                    .max(controller_clock)
                    .max(outcome.timing.ccd_s);
                let formula = burst as f64 / share_without_refresh(&outcome.timing);
                let label = format!("{standard:?}, {scheduler:?}, write {write}");
                assert_near(outcome.interval(), formula, &label);
            }
        }
    }
}

/// Returns a clock from which commands of this scheduler may be issued after `clocks`.
fn aligned(dram: &JedecDram, clocks: Clock) -> Clock {
    match dram.scheduler {
        Scheduler::FirstReady => clocks,
        Scheduler::GroupMachines => clocks.next_multiple_of(dram.controller_clocks.value),
    }
}

/// Runs a pattern of DDR4-2400 and DDR5-4800 with each scheduler, and compares the interval with a formula.
fn check_pattern(
    name: &str,
    access: impl Fn(&JedecDram, u64) -> (Line, bool),
    formula: impl Fn(&JedecDram, &Timing) -> f64,
) {
    for standard in [Standard::Ddr4_2400, Standard::Ddr5_4800] {
        for scheduler in SCHEDULERS {
            let dram = dram(standard, scheduler);
            let outcome = run(&dram, (0..1_000).map(|number| access(&dram, number)));
            let formula = formula(&dram, &outcome.timing) / share_without_refresh(&outcome.timing);
            let label = format!("{name}, {standard:?}, {scheduler:?}");
            assert_near(outcome.interval(), formula, &label);
        }
    }
}

/// Reads of other rows of one bank: tRC. With group machines, each command waits for its slot.
#[test]
fn row_misses_of_one_bank_take_trc() {
    check_pattern(
        "row misses",
        |dram, number| (line_of(dram, (0, 0), number, 0), false),
        |dram, t| aligned(dram, t.rc()) as f64,
    );
    // 46.7 ns for DDR4-2400 by FR-FCFS, exactly but for the refreshes.
    let mut dram = dram(Standard::Ddr4_2400, Scheduler::FirstReady);
    dram.timing.t_refi.value = 0;
    let outcome = run(
        &dram,
        (0..100).map(|row| (line_of(&dram, (0, 0), row, 0), false)),
    );
    assert_eq!(outcome.interval(), 56.0);
}

/// Writes of other rows of one bank: from activate to the end of the data, write recovery and precharge.
#[test]
fn write_misses_of_one_bank_take_write_recovery() {
    check_pattern(
        "write misses",
        |dram, number| (line_of(dram, (0, 0), number, 0), true),
        |dram, t| aligned(dram, t.rcd + t.cwl + t.burst + t.wr + t.rp) as f64,
    );
}

/// Reads of one row: tCCD_L, since they are in one bank group.
#[test]
fn row_hits_of_one_bank_take_tccd_l() {
    check_pattern(
        "row hits",
        |dram, number| (line_of(dram, (0, 0), 0, number % 32), false),
        |dram, t| aligned(dram, t.ccd_l) as f64,
    );
}

/// Reads of two banks of one bank group: tCCD_L, too.
#[test]
fn one_bank_group_takes_tccd_l() {
    check_pattern(
        "bank group",
        |dram, number| (line_of(dram, (1, number % 2), 0, number / 2 % 32), false),
        |dram, t| aligned(dram, t.ccd_l) as f64,
    );
}

/// Writes of one bank group: tCCD_L_WR.
#[test]
fn writes_of_one_bank_group_take_tccd_l_wr() {
    check_pattern(
        "writes of a bank group",
        |dram, number| (line_of(dram, (1, number % 2), 0, number / 2 % 32), true),
        |dram, t| aligned(dram, t.ccd_l_wr) as f64,
    );
}

/// Row misses of the four banks of one group: a quarter of tRC, or tRRD_L. The first stage of a group machine prepares
/// one burst at a time: it precharges, waits for tRP, and activates.
#[test]
fn row_misses_of_one_bank_group_share_trc() {
    check_pattern(
        "misses of a bank group",
        |dram, number| (line_of(dram, (2, number % 4), number / 4, 0), false),
        |dram, t| {
            let preparation = match dram.scheduler {
                Scheduler::FirstReady => t.rrd_l,
                Scheduler::GroupMachines => aligned(dram, t.rp + 1),
            };
            (aligned(dram, t.rc()) as f64 / 4.0).max(preparation as f64)
        },
    );
}

/// Alternating reads and writes of one bank with one operation at a time in order: both turnarounds.
#[test]
fn alternating_accesses_in_order_take_both_turnarounds() {
    let dram = dram(Standard::Ddr4_2400, Scheduler::GroupMachines);
    let accesses =
        (0..4_000).map(|number| (line_of(&dram, (0, 0), 0, number % 32), number % 2 == 1));
    let outcome = run(&dram, accesses);
    let t = &outcome.timing;
    let turns = aligned(&dram, t.rtw) + aligned(&dram, t.cwl + t.burst + t.wtr_l);
    assert_near(
        outcome.interval(),
        turns as f64 / 2.0 / share_without_refresh(t),
        "alternating",
    );
}

/// FR-FCFS serves reads and writes of open rows in runs of one direction, so that turnarounds are rare: with half of
/// the queue in each direction, a run has at least a quarter of the queue.
#[test]
fn first_ready_scheduler_forms_runs_of_one_direction() {
    let dram = dram(Standard::Ddr4_2400, Scheduler::FirstReady);
    let outcome = run(&dram, (0..8_000).map(|number| (number, number % 2 == 1)));
    let is_write = |command: &Command| match command {
        Read { .. } => Some(false),
        Write { .. } => Some(true),
        _ => None,
    };
    let directions: Vec<bool> = outcome
        .trace
        .iter()
        .filter_map(|(_, c)| is_write(c))
        .collect();
    let turns = directions
        .windows(2)
        .filter(|pair| pair[0] != pair[1])
        .count();
    let run_length = directions.len() as f64 / turns as f64;
    assert!(run_length >= 16.0, "{run_length}");
    let t = &outcome.timing;
    let per_run = (t.rtw + t.cwl + t.burst + t.wtr_s) as f64 / 2.0 - t.ccd_s as f64;
    let formula = (t.burst as f64 + per_run / run_length) / share_without_refresh(t);
    assert_near(outcome.interval(), formula, "runs");
}

/// Random rows of all banks: four activates in each tFAW.
#[test]
fn random_accesses_are_bound_by_the_activate_window() {
    for standard in [
        Standard::Ddr4_2133,
        Standard::Ddr4_2400,
        Standard::Ddr4_3200,
        Standard::Hbm2,
    ] {
        let dram = dram(standard, Scheduler::FirstReady);
        let lines = (0..6_000u64).map(|number| {
            let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
            ((random >> 8) as Line & 0xFF_FFFF, false)
        });
        let outcome = run(&dram, lines);
        let t = &outcome.timing;
        let bound = (t.faw as f64 / 4.0).max(t.rrd_s as f64);
        let formula = bound / share_without_refresh(t);
        assert_near(outcome.interval(), formula, &format!("{standard:?}"));
    }
}

/// A single operation takes tRCD, CL and the burst; a hit CL and the burst; a conflict tRP in addition.
#[test]
fn latencies_of_an_idle_dram_are_sums() {
    for (_, standard) in Standard::ALL {
        for scheduler in SCHEDULERS {
            let mut dram = dram(standard, scheduler);
            dram.timing.t_refi.value = 0;
            let at = |row, column| line_of(&dram, (0, 0), row, column);
            let accesses = [
                (0, at(0, 0), false),
                (1_000, at(0, 1), false),
                (2_000, at(1, 0), false),
            ];
            let outcome = run_at(&dram, &accesses);
            let t = &outcome.timing;
            let read = t.cl + t.burst;
            let sums = [t.rcd + read, read, t.rp + t.rcd + read];
            // With group machines, each command waits for its slot.
            let waits = match scheduler {
                Scheduler::FirstReady => [0; 3],
                Scheduler::GroupMachines => [2, 0, 3].map(|c| c * dram.controller_clocks.value),
            };
            for (number, (sum, wait)) in sums.into_iter().zip(waits).enumerate() {
                let latency = outcome.ends[number] - 1_000 * number as Clock;
                let label = format!("{standard:?}, {scheduler:?}, {number}: {latency}");
                assert!((sum..=sum + wait).contains(&latency), "{label}");
            }
        }
    }
}

/// With closed rows, the next row of a bank needs no precharge after a pause.
#[test]
fn closed_policy_closes_rows_without_hits() {
    for scheduler in SCHEDULERS {
        let mut dram = dram(Standard::Ddr4_2400, scheduler);
        dram.closed_page.value = 1;
        dram.timing.t_refi.value = 0;
        let at = |row, column| line_of(&dram, (0, 0), row, column);
        let accesses = [
            (0, at(0, 0), false),
            (0, at(0, 1), false),
            (400, at(1, 0), false),
        ];
        let outcome = run_at(&dram, &accesses);
        let activates = outcome
            .trace
            .iter()
            .filter(|(_, c)| matches!(c, Activate { .. }));
        assert_eq!(
            activates.count(),
            2,
            "the second burst hits the row: {scheduler:?}"
        );
        let precharges = outcome
            .trace
            .iter()
            .filter(|(_, c)| matches!(c, Precharge { .. }));
        assert_eq!(precharges.count(), 0);
        let t = &outcome.timing;
        let slots = if scheduler == Scheduler::FirstReady {
            0
        } else {
            4
        };
        let latency = outcome.ends[2] - 400;
        let sum = t.rcd + t.cl + t.burst;
        assert!((sum..=sum + slots).contains(&latency), "{latency}");
    }
}

/// Opens row 0 of bank 0, and then submits a miss of bank 1 and a hit of that row.
fn miss_before_hit(scheduler: Scheduler) -> Outcome {
    let mut dram = dram(Standard::Ddr4_2400, scheduler);
    dram.timing.t_refi.value = 0;
    let at = |bank, row, column| line_of(&dram, (0, bank), row, column);
    let accesses = [
        (0, at(0, 0, 0), false),
        (400, at(1, 7, 0), false),
        (400, at(0, 0, 1), false),
    ];
    run_at(&dram, &accesses)
}

/// The head of a group machine blocks row hits behind it; FR-FCFS serves them first.
#[test]
fn group_machines_are_in_order_and_first_ready_is_not() {
    for scheduler in SCHEDULERS {
        let ends = miss_before_hit(scheduler).ends;
        match scheduler {
            Scheduler::FirstReady => assert!(ends[2] < ends[1], "{ends:?}"),
            Scheduler::GroupMachines => assert!(ends[2] > ends[1], "{ends:?}"),
        }
    }
}

/// An activate does not let its group machine close the row that the next burst hits.
#[test]
fn row_hit_behind_an_activate_stays_open() {
    for scheduler in SCHEDULERS {
        let trace = miss_before_hit(scheduler).trace;
        let is_precharge = |(_, command): &(Clock, Command)| matches!(command, Precharge { .. });
        assert!(!trace.iter().any(is_precharge), "{trace:?}");
    }
}

/// A late bank does not delay bursts of other banks that are ready.
#[test]
fn late_bank_does_not_block_the_bus() {
    let mut dram = dram(Standard::Ddr4_2400, Scheduler::FirstReady);
    dram.timing.t_refi.value = 0;
    let at = |group, row, column| line_of(&dram, (group, 0), row, column);
    let mut accesses = vec![(0, at(0, 0, 0), false), (0, at(1, 0, 0), false)];
    accesses.push((30, at(0, 1, 0), false));
    accesses.extend((1..7).map(|column| (31, at(1, 0, column), false)));
    let outcome = run_at(&dram, &accesses);
    let (late, hits) = (outcome.ends[2], &outcome.ends[3..]);
    assert!(hits.iter().all(|&end| end < late), "{:?}", outcome.ends);
}

/// A burst that others overtake is served after the maximum wait.
#[test]
fn overdue_burst_comes_first() {
    let mut dram = dram(Standard::Ddr4_2400, Scheduler::FirstReady);
    dram.max_wait.value = 200 * dram.clock_period.value;
    let at = |row, column| line_of(&dram, (0, 0), row, column);
    let mut accesses = vec![(0, at(0, 0), false), (10, at(1, 0), false)];
    accesses.extend((0..400).map(|number| (11 + 5 * number, at(0, number % 64), false)));
    let outcome = run_at(&dram, &accesses);
    let t = &outcome.timing;
    let limit = 10 + 200 + t.rc() + t.rp + t.rcd + t.cl + t.burst;
    assert!(
        (200..limit).contains(&outcome.ends[1]),
        "{}",
        outcome.ends[1]
    );
}

/// Three and six channels share lines evenly, and each line has a place of its own.
#[test]
fn any_number_of_channels_shares_lines() {
    for channels in [1, 2, 3, 4, 6, 8] {
        let mut dram = dram(Standard::Ddr4_2400, Scheduler::FirstReady);
        dram.channels.value = channels;
        let map = AddressMap::new(&dram, 64);
        let mut places = std::collections::HashSet::new();
        let mut counts = vec![0; channels as usize];
        let lines = 6 * 4 * 4 * 128;
        for line in 0..lines {
            let channel = map.channel(line);
            counts[channel] += 1;
            let column = u64::from(line) / channels / 8 % 128;
            assert!(
                places.insert((channel, map.locate(line, 0), column)),
                "line {line}"
            );
        }
        assert!(
            counts.iter().all(|&count| count == lines / channels as u32),
            "{counts:?}"
        );
    }
}

/// Hashes keep the numbers of channel and bank in their ranges, and give each burst a place of its own.
#[test]
fn hashed_addresses_are_a_permutation() {
    let mut dram = dram(Standard::Ddr4_2133, Scheduler::FirstReady);
    dram.channels.value = 4;
    dram.channel_hash.value = 1;
    dram.bank_hash.value = 1;
    let map = AddressMap::new(&dram, 128);
    let mut places = std::collections::HashSet::new();
    for line in 0..1 << 16 {
        for burst in 0..2 {
            let column = (u64::from(line) / 4 * 2 + burst) / 8 % 128;
            let place = (map.channel(line), map.locate(line, burst), column);
            assert!(place.0 < 4 && place.1.bank < 16);
            assert!(places.insert(place), "line {line}");
        }
    }
}

proptest! {
    /// Random traffic of each standard, scheduler and policy keeps every rule, and every operation ends.
    #[test]
    fn random_traffic_keeps_every_rule(
        standard in 0..5usize,
        in_order: bool,
        closed: bool,
        entries in 1..40u64,
        accesses in prop::collection::vec((0..60u64, 0..4u64, 0..4u64, 0..3u64, 0..8u64, any::<bool>()), 1..300),
    ) {
        let mut dram = dram(Standard::ALL[standard].1, SCHEDULERS[usize::from(in_order)]);
        dram.queue_entries.value = entries;
        // Refreshes are frequent, so that short runs contain several.
        dram.timing.t_refi.value = 2_000 * dram.clock_period.value;
        if closed {
            dram.closed_page.value = 1;
        }
        let mut clock = 0;
        let accesses: Vec<_> = accesses.into_iter().map(|(gap, group, bank, row, column, write)| {
            clock += gap * gap / 8;
            (clock, line_of(&dram, (group, bank), row, column), write)
        }).collect();
        let outcome = run_at(&dram, &accesses);
        let columns = outcome.trace.iter().filter(|(_, c)| matches!(c, Read { .. } | Write { .. }));
        prop_assert_eq!(columns.count(), accesses.len());
        // Data come at the earliest after an activate at the arrival, or a hit.
        for (&end, &(arrival, _, write)) in outcome.ends.iter().zip(&accesses) {
            let t = &outcome.timing;
            let latency = if write { t.cwl } else { t.cl };
            prop_assert!(end >= arrival + latency + t.burst);
        }
        // Each refresh interval that has begun before the last command is observed, but for one that is due.
        let last = outcome.trace.iter().map(|(clock, _)| *clock).max().unwrap_or(0);
        let refreshes = outcome.trace.iter().filter(|(_, c)| matches!(c, Command::Refresh)).count() as u64;
        prop_assert!(refreshes <= last / outcome.timing.refi + 1);
        prop_assert_eq!(outcome.dram.queue_entries.value, entries);
    }
}
