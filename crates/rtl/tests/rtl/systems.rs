//! Coherent systems: lockstep with the rows, seeded faults, lint, and refused constructs.

use crate::agents::{root, yosys, Printed};
use cohkit_protocol::controller::Event;
use cohkit_rtl::agents::package::package;
use cohkit_rtl::agents::step::step;
use cohkit_rtl::lockstep::build::BuildError;
use cohkit_rtl::systems::build::{build, units, Bench, File, Options, MSHRS};
use cohkit_rtl::systems::directory::{Directory, Entries};
use cohkit_rtl::systems::lockstep::run::{run, Report, Run, RunError};
use cohkit_rtl::systems::operations::row_without_atomics;
use cohkit_rtl::systems::sizes::{check_parameters, Replacement, Sizes};
use cohkit_rtl::systems::{check, file_list, top};
use cohkit_testing::require::require;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// Number of messages of a run.
const MESSAGES: u64 = 50_000;

/// Systems that are compared in every test: the name of the protocol, and the number of caches.
const COMPARED: &[(&str, &[u16])] = &[
    ("msi", &[3]),
    ("mesi", &[3]),
    ("moesi", &[3]),
    ("write-through", &[3]),
    ("ccix", &[1, 2]),
    ("chi", &[3]),
    ("tilelink", &[3]),
    ("msi-policy", &[2]),
];

/// Systems of a protocol: its name, and the numbers of caches of a small and of a large system.
type Systems = (&'static str, [&'static [u16]; 2]);

/// Protocols that print, with homes that are written as rows, and one with a small constructed home.
const SMALL: &[Systems] = &[
    ("ccix", [&[1, 1], &[2, 2]]),
    ("chi", [&[2], &[4]]),
    ("mesi", [&[2], &[4]]),
    ("mesi-l1", [&[2], &[4]]),
    ("moesi", [&[2], &[4]]),
    ("msi", [&[2], &[4]]),
    ("msi-policy", [&[2], &[4]]),
    ("tilelink", [&[2], &[4]]),
    ("token-recall", [&[2], &[4]]),
    ("write-through", [&[2], &[4]]),
    ("write-through-two-step", [&[2], &[4]]),
];

/// Protocols that print, with large constructed homes.
const LARGE: &[Systems] = &[
    ("back-invalidate", [&[1], &[2]]),
    ("eci", [&[1], &[2]]),
    ("eci-near", [&[1, 1], &[1, 2]]),
];

/// Folder of built programs.
fn build_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("systems");
    std::fs::create_dir_all(&folder).expect("writable folder");
    folder
}

/// Printed files of a system: package, step functions and top.
pub fn printed_files(printed: &Printed, directory: Directory) -> Vec<File> {
    let agents = printed.agents().expect("every row has hardware");
    let name = &printed.protocol.name;
    let origin = printed.origin();
    let mut files = vec![(format!("{name}_agents_pkg.sv"), package(&agents, &origin))];
    for agent in &agents.agents {
        let file = format!("{name}_{}_step.sv", agent.name);
        files.push((file, step(&agents, agent, &origin)));
    }
    files.push((
        format!("{name}_system.sv"),
        top(&agents, &origin, directory).expect("a directory"),
    ));
    files
}

/// Builds the program of a system and a test bench.
pub fn program(printed: &Printed, units: &[File], files: &[File], options: Options) -> PathBuf {
    let agents = printed.agents().expect("every row has hardware");
    let stop = AtomicBool::new(false);
    match build(&build_folder(), &agents, (units, files), options, &stop) {
        Ok(program) => program,
        Err(BuildError::Failed(output)) => panic!("{output}"),
        Err(error) => panic!("{error:?}"),
    }
}

/// Lockstep without waveforms, with a full directory.
const LOCKSTEP: Options = Options {
    bench: Bench::Lockstep,
    directory: Directory::Full,
    entries: Entries {
        set_width: 0,
        ways: 2,
    },
    sizes: Sizes::DEFAULT,
    waveforms: false,
};

/// Runs a program with a fault; 0 for none.
fn run_with(printed: &Printed, program: &Path, seed: u64, fault: u32) -> Result<Report, RunError> {
    let agents = printed.agents().expect("every row has hardware");
    let options = Run {
        seed,
        messages: MESSAGES,
        waveform: None,
        directory: Directory::Full,
        entries: Entries::default(),
        sizes: Sizes::DEFAULT,
        fault,
    };
    run(program, &agents, options, &AtomicBool::new(false))
}

/// Command that repeats a run.
fn command(name: &str, caches: &[u16], seed: u64) -> String {
    let caches: Vec<String> = caches.iter().map(u16::to_string).collect();
    format!(
        "cohkit rtl test protocols/{name}.coh --system {} --messages {MESSAGES} --seed {seed} --seeds 1",
        caches.join(",")
    )
}

/// Every step of these systems is that of the rows, with all variables, messages, bytes and operations of memory.
#[test]
fn systems_follow_the_rows_in_lockstep() {
    if !require("verilator") {
        return;
    }
    for (name, caches) in COMPARED {
        let printed = Printed::shipped(name, caches);
        let agents = printed.agents().expect("every row has hardware");
        assert!(check(&agents).is_ok(), "{name}");
        let files = printed_files(&printed, Directory::Full);
        let program = program(&printed, &units(), &files, LOCKSTEP);
        let seed = 51;
        match run_with(&printed, &program, seed, 0) {
            Ok(report) => {
                assert!(report.messages >= MESSAGES, "{name}: {report:?}");
                // Accesses pass earlier ones of their port.
                assert!(report.overtaking > MESSAGES / 50, "{name}: {report:?}");
                let [fences, flushes] = report.finished;
                assert!(fences > 0 && flushes > 0, "{name}: {report:?}");
                // Some of the compare-and-swaps find another word.
                let [atomics, unchanged] = report.atomics;
                let home_stores = agents.agents[1..]
                    .iter()
                    .all(|agent| row_without_atomics(&agents, agent).is_some());
                assert_eq!(atomics == 0, home_stores, "{name}: {report:?}");
                assert!(
                    home_stores || (1..atomics / 2).contains(&unchanged),
                    "{name}: {report:?}"
                );
                println!(
                    "{name}: {} accesses pass earlier ones, {atomics} atomic operations, {flushes} flushes",
                    report.overtaking
                );
            }
            Err(error) => panic!("{name}: {error:?}\n{}", command(name, caches, seed)),
        }
    }
}

/// A fault: a description, a file, its text, and the text with the fault, which is active where `FAULT` holds.
pub type Fault = (&'static str, &'static str, &'static str, &'static str);

/// Seeds faults into files, numbered from 1.
pub fn seed_faults(faults: &[Fault], files: &mut [File], units: &mut [File]) {
    for (number, (description, file, original, fault)) in faults.iter().enumerate() {
        let fault = fault.replace("FAULT", &format!("(monitor_pkg::fault == {})", number + 1));
        let mut texts = files.iter_mut().chain(units.iter_mut());
        let (_, text) = texts
            .find(|(name, _)| name == file)
            .expect("file of the system");
        assert!(text.contains(original), "{description}: {original}");
        *text = text.replacen(original, &fault, 1);
    }
}

/// Faults that lockstep finds.
const FAULTS: &[Fault] = &[
    (
        "wrong state",
        "msi_cache_step.sv",
        "state_o = msi_cache_IS_D;",
        "state_o = FAULT ? msi_cache_IM_AD : msi_cache_IS_D;",
    ),
    (
        "lost assignment of a variable",
        "msi_cache_step.sv",
        "v.early = ",
        "if (!FAULT) v.early = ",
    ),
    (
        "wrong guard",
        "msi_home_step.sv",
        "if (msi_count(v.sharers) == 2'd0) begin",
        "if ((msi_count(v.sharers) == 2'd0) != FAULT) begin",
    ),
    (
        "lost send",
        "cohkit_outbox.sv",
        "receivers_q[slot] <= receivers_i[slot];",
        "receivers_q[slot] <= FAULT && slot == 1 ? '0 : receivers_i[slot];",
    ),
    (
        "swapped messages of an order",
        "cohkit_channel.sv",
        "assign rotate    = !Ordered && stall_i",
        "assign rotate    = (!Ordered || FAULT) && (stall_i || FAULT)",
    ),
    (
        "queue that always has room",
        "cohkit_channel.sv",
        "assign room_o    = count_q",
        "assign room_o    = FAULT || count_q",
    ),
    (
        "access of another line",
        "cohkit_cache.sv",
        "entry.line : access.line;",
        "entry.line : FAULT ? access.line ^ line_t'(2) : access.line;",
    ),
    (
        "value without room",
        "msi_system.sv",
        "assign unexpected_o[Home] = unexpected || step && fault;",
        "assign unexpected_o[Home] = unexpected || step && (fault || FAULT);",
    ),
    (
        "port that is never ready",
        "cohkit_cache.sv",
        "assign req_ready_o = valid_q != '1;",
        "assign req_ready_o = valid_q != '1 && !FAULT;",
    ),
    (
        "early memory answer",
        "cohkit_home.sv",
        "phase_q == Read ? mem_done_i :",
        "phase_q == Read ? mem_done_i || FAULT :",
    ),
    (
        "lost write to memory",
        "cohkit_home.sv",
        "if (execute && writes) phase_q <= Write;",
        "if (execute && writes && !FAULT) phase_q <= Write;",
    ),
    (
        "wrong sender",
        "cohkit_cache.sv",
        "sender:  self_i,",
        "sender:  FAULT ? remote_t'(1) : self_i,",
    ),
    (
        "ignored byte enable",
        "cohkit_cache.sv",
        "if (strobe[i] && !(Atomics",
        "if ((strobe[i] || FAULT && i == 3) && !(Atomics",
    ),
    (
        "stale data in a cache",
        "cohkit_cache.sv",
        "write_entry && step_copy_i == Received;",
        "write_entry && step_copy_i == Received && !FAULT;",
    ),
    (
        "entry written into all ways",
        "cohkit_cache.sv",
        "write_entry && way == way_t'(i)",
        "write_entry && (way == way_t'(i) || FAULT)",
    ),
    (
        "data of another way",
        "cohkit_cache.sv",
        "WordBits'(set) << WayBits | WordBits'(way);",
        "WordBits'(set) << WayBits | (FAULT ? '0 : WordBits'(way));",
    ),
    (
        "entries of another set",
        "cohkit_cache.sv",
        "({access_set, message_set})",
        "(FAULT ? {message_set, message_set} : {access_set, message_set})",
    ),
    (
        "entry that stays used",
        "cohkit_cache.sv",
        "used_q[set][way] <= step_state_i != initial_state_i",
        "used_q[set][way] <= FAULT || step_state_i != initial_state_i",
    ),
    (
        "hit without permission",
        "cohkit_cache.sv",
        "(access.write ? access_writes_i : access_reads_i)",
        "(access.write && !FAULT ? access_writes_i : access_reads_i)",
    ),
    (
        "victim without an eviction",
        "cohkit_cache.sv",
        "assign occupied    = access_hits == '0",
        "assign occupied    = !FAULT && access_hits == '0",
    ),
    (
        "answer with the tag of another access",
        "cohkit_cache.sv",
        "assign rsp_tag_o   = tags_q[served];",
        "assign rsp_tag_o   = tags_q[FAULT ? mshr_t'(served + 1'b1) : served];",
    ),
    (
        "accesses to one line out of order",
        "cohkit_cache.sv",
        "heads[i]     = valid_q[i] && after_q[i] == '0;",
        "heads[i]     = valid_q[i] && (FAULT || after_q[i] == '0);",
    ),
    (
        "bytes of another access",
        "cohkit_cache.sv",
        ".read_address_i (served),",
        ".read_address_i (FAULT ? mshr_t'(served ^ 1'b1) : served),",
    ),
    (
        "answered access stays outstanding",
        "cohkit_cache.sv",
        "if (rsp_valid_o) valid_q[served] <= 1'b0;",
        "if (rsp_valid_o && !FAULT) valid_q[served] <= 1'b0;",
    ),
    (
        "access that does not wake",
        "cohkit_cache.sv",
        "if (take && (SetWidth == 0 ||",
        "if (take && !FAULT && (SetWidth == 0 ||",
    ),
    (
        "access that waits for one that has ended",
        "cohkit_cache.sv",
        "after_q[free]     <= rsp_valid_o ? earlier & ~(Mshrs'(1) << served) : earlier;",
        "after_q[free]     <= rsp_valid_o && !FAULT ? earlier & ~(Mshrs'(1) << served) : earlier;",
    ),
    (
        "access in the place of another",
        "cohkit_cache.sv",
        "assign free     = lowest_mshr(~valid_q);",
        "assign free     = FAULT ? '0 : lowest_mshr(~valid_q);",
    ),
    (
        "sum without the former word",
        "cohkit_cache.sv",
        "copy[WordWidth*i +: WordWidth] + store[",
        "(FAULT ? '0 : copy[WordWidth*i +: WordWidth]) + store[",
    ),
    (
        "compare-and-swap that always stores",
        "cohkit_cache.sv",
        "!= compare) equal = 1'b0;",
        "!= compare && !FAULT) equal = 1'b0;",
    ),
    (
        "fence that does not wait for earlier accesses",
        "cohkit_cache.sv",
        "|| req_op_i == Fence);",
        "|| req_op_i == Fence && !FAULT);",
    ),
    (
        "access that passes a fence",
        "cohkit_cache.sv",
        "|| accesses_q[i].op == Fence ||",
        "|| accesses_q[i].op == Fence && !FAULT ||",
    ),
    (
        "flush that ends before the line has left",
        "cohkit_cache.sv",
        "is_flush && access_hits == '0);",
        "is_flush && (access_hits == '0 || FAULT));",
    ),
    (
        "refused atomic operation",
        "cohkit_cache.sv",
        "error: atomic && !Atomics ||",
        "error: atomic && (!Atomics || FAULT) ||",
    ),
    (
        "stalled message is dropped",
        "cohkit_cache.sv",
        "in_take_o[index]  = take && source == Message",
        "in_take_o[index]  = (take || FAULT && step_effect_i == Stall) && source == Message",
    ),
    (
        "message taken twice",
        "cohkit_home.sv",
        "in_take_o[index]  = execute && from_message",
        "in_take_o[index]  = execute && from_message && !(FAULT && reads)",
    ),
];

/// Parameters of a system with their values.
type Parameters = &'static [(&'static str, u64)];

/// Systems of other sizes than those of the test bench: a file, its caches, and its parameters.
const SIZES: &[(&str, &[u16], Parameters)] = &[
    (
        "protocols/msi.coh",
        &[2],
        &[
            ("SetWidth", 0),
            ("Ways", 3),
            ("Mshrs", 3),
            ("Depth", 5),
            ("Replacement", 1),
        ],
    ),
    (
        "protocols/mesi.coh",
        &[3],
        &[("SetWidth", 0), ("Ways", 4), ("Replacement", 1)],
    ),
    (
        "protocols/moesi.coh",
        &[3],
        &[("Mshrs", 1), ("Replacement", 2)],
    ),
    (
        "protocols/chi.coh",
        &[2],
        &[
            ("SetWidth", 0),
            ("Ways", 3),
            ("Mshrs", 6),
            ("Replacement", 2),
        ],
    ),
    (
        "docs/first-protocol/8-goals.coh",
        &[2],
        &[("SetWidth", 0), ("Ways", 1), ("Mshrs", 3), ("Depth", 8)],
    ),
];

/// Parameters with names of their own.
fn named(parameters: &[(&str, u64)]) -> Vec<(String, u64)> {
    let parameters = parameters.iter();
    parameters
        .map(|(name, value)| (name.to_string(), *value))
        .collect()
}

/// Builds a system of these sizes with faults, and returns the result of a run with one of them; 0 for none.
fn run_sizes<'p>(
    printed: &'p Printed,
    sizes: Sizes,
    faults: &[Fault],
) -> impl Fn(u32) -> Result<Report, RunError> + 'p {
    let (mut files, mut units) = (printed_files(printed, Directory::Full), units());
    seed_faults(faults, &mut files, &mut units);
    let options = Options { sizes, ..LOCKSTEP };
    let program = program(printed, &units, &files, options);
    move |fault| {
        let agents = printed.agents().expect("every row has hardware");
        let options = Run {
            seed: 51,
            messages: MESSAGES,
            waveform: None,
            directory: Directory::Full,
            entries: Entries::default(),
            sizes,
            fault,
        };
        run(&program, &agents, options, &AtomicBool::new(false))
    }
}

/// Systems of other sizes follow the rows too, and evict the victims of their replacement policies. A cache with one
/// outstanding access answers in order.
#[test]
fn other_sizes_follow_the_rows_in_lockstep() {
    if !require("verilator") {
        return;
    }
    for (file, caches, parameters) in SIZES {
        let printed = Printed::read(file, caches);
        let agents = printed.agents().expect("every row has hardware");
        let sizes = Sizes::new(&agents, Directory::Full, &named(parameters));
        let sizes = sizes.expect("parameters within their limits");
        let report = match run_sizes(&printed, sizes, &[])(0) {
            Ok(report) => report,
            Err(error) => panic!("{file} {caches:?} {parameters:?}: {error:?}"),
        };
        println!(
            "{file} {parameters:?}: {} evictions, {} accesses pass earlier ones",
            report.evictions, report.overtaking
        );
        assert!(report.evictions > MESSAGES / 50, "{file}: {report:?}");
        let is_in_order = sizes.mshrs == Some(1);
        assert_eq!(report.overtaking == 0, is_in_order, "{file}: {report:?}");
    }
}

/// Faults of replacement policies, each with the policy that it concerns.
const REPLACEMENT_FAULTS: &[(Fault, Replacement)] = &[
    (
        (
            "uses that do not turn a node",
            "cohkit_replacement.sv",
            "if (use_i) upper_q",
            "if (use_i && !(FAULT && level == 1)) upper_q",
        ),
        Replacement::PseudoLru,
    ),
    (
        (
            "eviction from a set with a free way",
            "cohkit_cache.sv",
            "assign occupied    = access_hits == '0 && access_free == '0;",
            "assign occupied    = access_hits == '0 && (access_free == '0 || FAULT && access_free != '1);",
        ),
        Replacement::PseudoLru,
    ),
    (
        (
            "another sequence of random victims",
            "cohkit_replacement.sv",
            "register_q[15] ^ register_q[13]",
            "register_q[FAULT ? 14 : 15] ^ register_q[13]",
        ),
        Replacement::Random,
    ),
    (
        (
            "victim that is always the first way",
            "cohkit_replacement.sv",
            "assign victim_o = victims_q[set_i];",
            "assign victim_o = FAULT ? '0 : victims_q[set_i];",
        ),
        Replacement::RoundRobin,
    ),
];

/// A victim that is not that of the policy is found.
#[test]
fn wrong_victims_are_found() {
    if !require("verilator") {
        return;
    }
    let faults: Vec<Fault> = REPLACEMENT_FAULTS.iter().map(|(fault, _)| *fault).collect();
    let printed = Printed::shipped("msi", &[2]);
    for policy in [
        Replacement::RoundRobin,
        Replacement::PseudoLru,
        Replacement::Random,
    ] {
        let sizes = Sizes {
            set_width: Some(0),
            ways: Some(4),
            replacement: policy,
            ..Sizes::DEFAULT
        };
        let run = run_sizes(&printed, sizes, &faults);
        let control = run(0);
        assert!(control.is_ok(), "{control:?}");
        for (number, ((description, ..), of)) in (1..).zip(REPLACEMENT_FAULTS) {
            if *of != policy {
                continue;
            }
            match run(number) {
                Err(RunError::Difference(record, text)) => {
                    println!("{description}: {record}: {text}");
                }
                other => panic!("{description} is not found: {other:?}"),
            }
        }
    }
}

/// Parameters outside their limits are rejected with their value and the limits, and others are not.
#[test]
fn parameters_outside_their_limits_are_rejected() {
    let msi = Printed::shipped("msi", &[3]);
    let goals = Printed::read("docs/first-protocol/8-goals.coh", &[3]);
    let check = |printed: &Printed, parameters: &[(&str, u64)]| {
        let agents = printed.agents().expect("every row has hardware");
        check_parameters(&agents, Directory::Full, &named(parameters))
    };
    let limits = |name: &str, value: u64, range: &str| {
        Err(format!(
            "parameter `{name}` is {value}, but must be from {range}"
        ))
    };
    for (name, value, range) in [
        ("Ways", 0, "1 to 4096"),
        ("Mshrs", 0, "1 to 4096"),
        ("Replacement", 3, "0 to 2"),
        ("TagWidth", 0, "1 to 30"),
        ("LineWidth", 31, "1 to 30"),
        ("SetWidth", 9, "0 to 8"),
        ("Depth", 1, "2 to 2147483647"),
    ] {
        assert_eq!(check(&msi, &[(name, value)]), limits(name, value, range));
    }
    assert_eq!(
        check(
            &msi,
            &[("SetWidth", 0), ("Ways", 3), ("Depth", 5), ("Mshrs", 1)]
        ),
        Ok(())
    );
    // The queues of a constructed home grow with the outstanding accesses.
    let depth = |mshrs, depth| check(&goals, &[("Mshrs", mshrs), ("Depth", depth)]);
    assert_eq!(depth(1, 5), Ok(()));
    assert_eq!(depth(3, 11), Ok(()));
    assert_eq!(depth(3, 10), limits("Depth", 10, "11 to 2147483647"));
    assert_eq!(
        check(&msi, &[("LineWidth", 1)]),
        Err("parameter `LineWidth` is 1, but must be at least `SetWidth`, which is 2".to_string())
    );
    assert!(check(&msi, &[("DataWidth", 96)]).is_err());
    assert!(check(&msi, &[("Ways", 2), ("Ways", 2)]).is_err());
    assert!(check(&msi, &[("DirectoryWays", 2)]).is_err());
}

/// Returns the smallest number of messages of each queue that a printed system accepts, with caches of the default size.
fn smallest_queues(files: &[File]) -> usize {
    let (_, top) = files.last().expect("the top");
    let limit = top.split("// messages in each queue, at least ").nth(1);
    let limit = limit.and_then(|rest| rest.lines().next());
    let number = |text: &str| text.parse::<usize>().expect("a number");
    match limit.expect("a limit").split_once(" * Mshrs + ") {
        Some((caches, others)) => number(caches) * MSHRS + number(others),
        None => number(limit.expect("a limit")),
    }
}

/// Changes the queues of a printed system to this number of messages.
fn set_queues(files: &mut [File], depth: usize) {
    let (_, top) = files.last_mut().expect("the top");
    let start = "  parameter int unsigned Depth     = ";
    let line = top.lines().find(|line| line.starts_with(start));
    let line = line.expect("the parameter").to_string();
    *top = top.replace(&line, &format!("{start}{depth},"));
}

/// Each of these faults, in printed and hand-written parts, is found in a run of the regular length.
#[test]
fn seeded_faults_are_found() {
    if !require("verilator") {
        return;
    }
    let printed = Printed::shipped("msi", &[3]);
    let (mut files, mut units) = (printed_files(&printed, Directory::Full), units());
    let smallest = smallest_queues(&files);
    set_queues(&mut files, smallest);
    seed_faults(FAULTS, &mut files, &mut units);
    let program = program(&printed, &units, &files, LOCKSTEP);
    let control = run_with(&printed, &program, 0, 0);
    assert!(control.is_ok(), "{control:?}");
    for (number, (description, ..)) in FAULTS.iter().enumerate() {
        match run_with(&printed, &program, 0, number as u32 + 1) {
            Err(RunError::Difference(record, text)) => println!("{description}: {record}: {text}"),
            other => panic!("{description} is not found: {other:?}"),
        }
    }
}

/// Faults of a directory with recalls.
const DIRECTORY_FAULTS: &[Fault] = &[
    (
        "entry of another line is overwritten",
        "cohkit_home.sv",
        "assign full      = allocates && used == '1;",
        "assign full      = allocates && used == '1 && !FAULT;",
    ),
    (
        "recall that does not end",
        "cohkit_home.sv",
        "if (execute && step_acknowledge_i) recalling_q",
        "if (execute && step_acknowledge_i && !FAULT) recalling_q",
    ),
    (
        "tag that is not compared",
        "cohkit_home.sv",
        "IsFull || tags[i]",
        "IsFull || FAULT || tags[i]",
    ),
    (
        "recall of another line than the victim",
        "cohkit_home.sv",
        "current.line    = recall_line_q;",
        "current.line    = FAULT ? recall_line_q ^ line_t'(Sets) : recall_line_q;",
    ),
    (
        "victim of another set",
        "cohkit_home.sv",
        "recall_line_q <= tags[victim_q];",
        "recall_line_q <= FAULT ? tags[victim_q] + line_t'(1) : tags[victim_q];",
    ),
    (
        "recall while the set has a free entry",
        "cohkit_home.sv",
        "from_message && taken && full && !recall_q",
        "from_message && taken && (full || FAULT && allocates) && !recall_q",
    ),
    (
        "kept entry is given to another line",
        "cohkit_home.sv",
        "assign kept      = allocates && waiting_q",
        "assign kept      = allocates && waiting_q && !FAULT",
    ),
    (
        "entry is kept for the line of a later message",
        "cohkit_home.sv",
        "taken && full && !waiting_q;",
        "taken && full && (!waiting_q || FAULT);",
    ),
    (
        "no entry is kept",
        "cohkit_home.sv",
        "assign waits   = Recalls",
        "assign waits   = !FAULT && Recalls",
    ),
    (
        "entry is kept for a line that has one",
        "cohkit_home.sv",
        "end else if (execute && allocates && current.line == waiting_line_q) begin",
        "end else if (execute && allocates && current.line == waiting_line_q && !FAULT) begin",
    ),
    (
        "dirty data of a recalled line is lost",
        "cohkit_home.sv",
        "if (execute && (writes || starts)) begin",
        "if (execute && (writes || starts && !(FAULT && recalling_q && step_memory_i.start_write))) begin",
    ),
];

/// Cycles that no access exceeds while lines are recalled all the time. Accesses wait for recalls of several lines,
/// with queues that delay a message for up to 120 cycles.
const LONGEST_ACCESS: u64 = 6_000;

/// Small directories: a protocol, its caches, and the entries.
const DIRECTORIES: &[(&str, &[u16], Entries)] = &[
    ("docs/first-protocol/8-goals.coh", &[2], entries(1, 2)),
    ("docs/first-protocol/8-goals.coh", &[3], entries(1, 1)),
    ("protocols/back-invalidate.coh", &[1], entries(0, 2)),
];

/// Size of a directory.
const fn entries(set_width: u32, ways: u32) -> Entries {
    Entries { set_width, ways }
}

/// Compares a system with a small directory with its rows. Returns the report.
fn run_directory(
    printed: &Printed,
    program: &Path,
    entries: Entries,
    fault: u32,
) -> Result<Report, RunError> {
    let agents = printed.agents().expect("every row has hardware");
    let options = Run {
        seed: 51,
        messages: MESSAGES,
        waveform: None,
        directory: Directory::SetAssociative,
        entries,
        sizes: Sizes::DEFAULT,
        fault,
    };
    run(program, &agents, options, &AtomicBool::new(false))
}

/// Homes with fewer directory entries than lines recall lines by the rows of their operation. More lines of a set never
/// have entries than there are, a recalled line is the chosen one, and memory has its data afterwards. The first line
/// that waits for an entry gets the next free one. No access waits for ever, and each of the faults is found in the first
/// system.
#[test]
fn small_directories_recall_lines() {
    if !require("verilator") {
        return;
    }
    for (number, (file, caches, entries)) in DIRECTORIES.iter().enumerate() {
        let printed = Printed::read(file, caches);
        let agents = printed.agents().expect("every row has hardware");
        let directory = Directory::SetAssociative;
        let (mut files, mut units) = (printed_files(&printed, directory), units());
        seed_faults(DIRECTORY_FAULTS, &mut files, &mut units);
        let options = Options {
            directory,
            entries: *entries,
            ..LOCKSTEP
        };
        let program = program(&printed, &units, &files, options);
        let report = match run_directory(&printed, &program, *entries, 0) {
            Ok(report) => report,
            Err(error) => panic!("{file} {caches:?} {entries:?}: {error:?}"),
        };
        let recall = directory.recall(&agents).expect("the home recalls lines");
        let rows = printed.home().rules.iter().zip(&report.covered[1]);
        let mut recalls = rows.filter(|(row, covered)| Some(row.event) == recall && **covered);
        assert!(recalls.next().is_some(), "{report:?}");
        println!(
            "{file}: {} recalls, {} reads compared, longest access {} cycles",
            report.recalls, report.reads, report.longest_access
        );
        // Runs without pressure on the directory, or without compared reads, show nothing.
        assert!(report.recalls > MESSAGES / 50, "{file}: {report:?}");
        assert!(report.reads > MESSAGES / 50, "{file}: {report:?}");
        assert!(report.longest_access < LONGEST_ACCESS, "{file}: {report:?}");
        if number > 0 {
            continue;
        }
        for (number, (description, ..)) in (1..).zip(DIRECTORY_FAULTS) {
            match run_directory(&printed, &program, *entries, number) {
                Err(RunError::Difference(record, text)) => {
                    println!("{description}: {record}: {text}");
                }
                other => panic!("{description} is not found: {other:?}"),
            }
        }
    }
}

/// Number of caches of the system that once stopped: the ends of memory operations waited for places in queues.
const MANY_CACHES: u16 = 6;

/// A constructed home of six caches with the smallest queues that its top accepts makes progress.
#[test]
fn constructed_homes_with_the_smallest_queues_make_progress() {
    if !require("verilator") {
        return;
    }
    let printed = Printed::read("docs/first-protocol/8-goals.coh", &[MANY_CACHES]);
    let (mut files, units) = (printed_files(&printed, Directory::Full), units());
    let smallest = smallest_queues(&files);
    assert_eq!(smallest, usize::from(MANY_CACHES) * MSHRS + 2);
    set_queues(&mut files, smallest);
    let program = program(&printed, &units, &files, LOCKSTEP);
    for seed in 0..2 {
        let report = run_with(&printed, &program, seed, 0);
        assert!(report.is_ok(), "seed {seed}: {report:?}");
    }
    // One place less is rejected.
    assert_depth_is_rejected(&printed, smallest - 1);
}

/// Sets the free places that a step of the printed home needs, and the number of messages of each queue, without the
/// minimum of the latter.
fn set_home_places(files: &mut [File], places: usize, depth: usize) {
    set_queues(files, depth);
    let (_, top) = files.last_mut().expect("the top");
    let line = top.lines().find(|line| line.contains(" HomeRoom  = "));
    let line = line.expect("the places of the home").to_string();
    let changed = format!("  localparam int unsigned HomeRoom  = {places};");
    assert_ne!(line, changed);
    *top = top
        .replace(&line, &changed)
        .replace("Depth < ", "Depth + 100 < ");
}

/// A home that recalls lines makes progress with the smallest queues. Without the places that its other rows leave for
/// the end of a memory operation, which waits for none, this end finds no place.
#[test]
fn recalls_need_the_places_for_ends_of_memory_operations() {
    if !require("verilator") {
        return;
    }
    let printed = Printed::read("docs/first-protocol/8-goals.coh", &[MANY_CACHES]);
    let options = Options {
        directory: Directory::SetAssociative,
        ..LOCKSTEP
    };
    let (mut files, units) = (printed_files(&printed, options.directory), units());
    let (mut changed, smallest) = (files.clone(), smallest_queues(&files));
    set_queues(&mut files, smallest);
    let control = program(&printed, &units, &files, options);
    let report = run_directory(&printed, &control, options.entries, 0).expect("no difference");
    assert!(report.recalls > MESSAGES / 50, "{report:?}");
    // The places of one step, in queues of as many messages.
    set_home_places(&mut changed, 2, 2);
    let changed = program(&printed, &units, &changed, options);
    match run_directory(&printed, &changed, options.entries, 0) {
        Err(RunError::Difference(_, text)) => {
            assert!(text.contains("a message has no room"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// Checks that elaboration rejects queues of this number of messages.
fn assert_depth_is_rejected(printed: &Printed, depth: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = write_system(printed, Directory::Full, folder.path());
    let name = &printed.protocol.name;
    let mut command = Command::new("verilator");
    command.args(["--lint-only", "--top-module", &format!("{name}_system")]);
    command.arg(format!("-GDepth={depth}"));
    let output = command.args(files).current_dir(folder.path()).output();
    let output = output.expect("Verilator starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("Depth must be at least"),
        "{text}"
    );
}

/// Changes after which an invalidated cache requests the line in another way than an initial one, so that the home
/// keeps knowledge of it after a recall.
const KEEPS_ENTRY: [Change; 5] = [
    ("    I\n", "    I\n    J\n"),
    ("  request: GetS, GetM\n", "  request: GetS, GetM, GetJ\n"),
    (
        "  I       | load      | send GetS       | R\n",
        "  I       | load      | send GetS       | R\n  J       | load      | send GetJ       | R\n",
    ),
    (
        "  M       | Inv       | send PutInvalid | I\n",
        "  M       | Inv       | send PutInvalid | J\n  J       | Share Inv | send Ack        | stay\n",
    ),
    (
        "  on GetS(r)",
        "  on GetJ(r) { ensure others(r) <= S; grant r S with DataS }\n  on GetS(r)",
    ),
];

/// An operation that leaves the home in another configuration than the initial one is rejected, with its line, for any
/// number of caches.
#[test]
fn recalls_that_keep_their_entry_are_rejected() {
    let file = "docs/first-protocol/8-goals.coh";
    let text = std::fs::read_to_string(root().join(file)).expect("readable file");
    let changed = KEEPS_ENTRY
        .iter()
        .fold(text.clone(), |text, (original, changed)| {
            assert!(text.contains(original), "{original}");
            text.replace(original, changed)
        });
    for caches in [1, 2, 3] {
        let recall = |text: &str| {
            let printed = Printed::new("8-goals.coh", text, &[caches]);
            let agents = printed.agents().expect("every row has hardware");
            Directory::SetAssociative.recall(&agents)
        };
        assert!(matches!(recall(&text), Ok(Some(Event::Local(_)))));
        let refusal = recall(&changed).expect_err("a recall that keeps its entry");
        assert_eq!(
            refusal.feature,
            "`clean_invalidate` does not end in the initial state of the home"
        );
        let line = changed[..refusal.span.start as usize].lines().count();
        let words = changed.lines().nth(line - 1).expect("a line");
        assert!(words.contains("local clean_invalidate"), "{words}");
    }
}

/// A request in an order of each line, or in an order of a directory with recalls, is rejected for every number of
/// caches.
#[test]
fn ordered_requests_are_rejected_for_every_number_of_caches() {
    let file = "docs/first-protocol/8-goals.coh";
    let text = std::fs::read_to_string(root().join(file)).expect("readable file");
    let ordered = "  ordered forward, grant\n";
    assert!(text.contains(ordered));
    for caches in [1, 2, 3] {
        let per_line = text.replace(ordered, &format!("{ordered}  ordered request per line\n"));
        let printed = Printed::new("8-goals.coh", &per_line, &[caches]);
        let agents = printed.agents().expect("every row has hardware");
        let refusal = check(&agents).expect_err("an order of each line");
        assert_eq!(
            refusal.feature,
            "`GetS` stalls in an order `per line` or `behind` messages"
        );
        let all = text.replace(ordered, &format!("{ordered}  ordered request\n"));
        let printed = Printed::new("8-goals.coh", &all, &[caches]);
        let agents = printed.agents().expect("every row has hardware");
        assert!(check(&agents).is_ok());
        let refusal = Directory::SetAssociative
            .recall(&agents)
            .expect_err("an order");
        assert_eq!(
            refusal.feature,
            "a message in an order may wait for a directory entry"
        );
        // Answers in an order find the entry of their line.
        let answers = text.replace(ordered, &format!("{ordered}  ordered answer\n"));
        let printed = Printed::new("8-goals.coh", &answers, &[caches]);
        let agents = printed.agents().expect("every row has hardware");
        assert!(check(&agents).is_ok());
        let recall = Directory::SetAssociative.recall(&agents);
        assert!(
            recall.is_ok(),
            "{:?}",
            recall.map_err(|refusal| refusal.feature)
        );
    }
}

/// A home that cannot recall a line is rejected with the operation that it lacks.
#[test]
fn homes_without_a_recall_have_no_small_directory() {
    for name in ["msi", "msi-policy"] {
        let printed = Printed::shipped(name, &[2]);
        let agents = printed.agents().expect("every row has hardware");
        let refusal = Directory::SetAssociative.recall(&agents).expect_err(name);
        assert!(refusal
            .feature
            .contains("no local operation takes a line from every remote"));
        assert!(refusal
            .help
            .expect("a help")
            .contains("local clean_invalidate"));
    }
    let printed = Printed::shipped("back-invalidate", &[1]);
    let agents = printed.agents().expect("every row has hardware");
    let recall = Directory::SetAssociative.recall(&agents);
    assert!(matches!(recall, Ok(Some(Event::Local(_)))));
}

/// The waveform of a run with a difference is complete: the header of the file has the end time, which is written last.
#[test]
fn waveform_of_a_failing_run_is_complete() {
    if !require("verilator") {
        return;
    }
    let printed = Printed::shipped("msi", &[2]);
    let agents = printed.agents().expect("every row has hardware");
    let (mut files, mut units) = (printed_files(&printed, Directory::Full), units());
    seed_faults(&FAULTS[..1], &mut files, &mut units);
    let stop = AtomicBool::new(false);
    let files = (&units[..], &files[..]);
    let program = build(
        &build_folder(),
        &agents,
        files,
        Options {
            waveforms: true,
            ..LOCKSTEP
        },
        &stop,
    );
    let program = program.expect("the program is built");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let waveform = folder.path().join("run.fst");
    let options = Run {
        seed: 0,
        messages: MESSAGES,
        waveform: Some(&waveform),
        directory: Directory::Full,
        entries: Entries::default(),
        sizes: Sizes::DEFAULT,
        fault: 1,
    };
    let result = run(&program, &agents, options, &stop);
    assert!(
        matches!(result, Err(RunError::Difference(..))),
        "{result:?}"
    );
    // FST: block type 0 (header), its length, first and last time as big-endian numbers of 64 bits.
    let bytes = std::fs::read(&waveform).expect("readable file");
    let end = u64::from_be_bytes(bytes[17..25].try_into().expect("8 bytes"));
    assert_eq!(bytes[0], 0);
    assert!(end > 10, "{end}");
}

/// Writes all files of a system into a folder. Returns their names in the order of the file list.
fn write_system(printed: &Printed, directory: Directory, folder: &Path) -> Vec<String> {
    for (name, text) in printed_files(printed, directory).into_iter().chain(units()) {
        std::fs::write(folder.join(name), text).expect("writable file");
    }
    let agents = printed.agents().expect("every row has hardware");
    file_list(&agents).lines().map(str::to_string).collect()
}

/// Lints systems with Verilator. Warnings are errors.
fn lint(systems: &[Systems]) {
    for (name, caches) in systems
        .iter()
        .flat_map(|(name, all)| all.iter().map(move |c| (name, c)))
    {
        let printed = Printed::shipped(name, caches);
        let agents = printed.agents().expect("every row has hardware");
        if let Err(refusal) = check(&agents) {
            panic!("{name}: {}", refusal.feature);
        }
        // One is the smallest cache.
        let parameters: &[&str] = match *name {
            "msi" => &["-GSetWidth=0", "-GWays=1"],
            _ => &[],
        };
        lint_system(&printed, Directory::Full, parameters);
    }
}

/// Lints a system with these parameters.
fn lint_system(printed: &Printed, directory: Directory, parameters: &[&str]) {
    let name = &printed.protocol.name;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = write_system(printed, directory, folder.path());
    let mut command = Command::new("verilator");
    command.args(["--lint-only", "-Wall", "--top-module"]);
    command.arg(format!("{name}_system")).args(parameters);
    let output = command.args(files).current_dir(folder.path()).output();
    let output = output.expect("Verilator starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.is_empty(), "{name}: {text}");
}

/// Elaborates the small systems with slang in Yosys. Warnings and latches are errors.
fn elaborate(systems: &[Systems]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut files, mut tops): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (name, [caches, _]) in systems {
        let printed = Printed::shipped(name, caches);
        for file in write_system(&printed, Directory::Full, folder.path()) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        tops.push(format!("--top {}_system", printed.protocol.name));
    }
    let script = format!(
        "read_slang --threads 1 -G LineWidth=3 -G DataWidth=64 {} {}\nproc\n\
         select -assert-none t:$dlatch* t:$adlatch*\n",
        tops.join(" "),
        files.join(" ")
    );
    let output = yosys(folder.path(), &script);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(
        output.status.success() && !text.contains("warning:"),
        "{text}"
    );
}

/// Verilator has no warning about these systems.
#[test]
fn systems_have_no_lint_warnings() {
    if require("verilator") {
        lint(SMALL);
        let printed = Printed::shipped("back-invalidate", &[1]);
        for parameters in [&[][..], &["-GDirectorySetWidth=0", "-GDirectoryWays=1"]] {
            lint_system(&printed, Directory::SetAssociative, parameters);
        }
    }
}

/// Slang has no warning about these systems, and Yosys infers no latch.
#[test]
fn systems_elaborate_in_yosys_without_latches() {
    if require("yosys") {
        elaborate(SMALL);
    }
}

/// The same for large constructed homes.
#[test]
#[ignore = "minutes of Verilator and Yosys"]
fn large_constructed_homes_have_neither_warnings_nor_latches() {
    if require("verilator") && require("yosys") {
        lint(LARGE);
        elaborate(LARGE);
    }
}

/// Change of a protocol file: a text of the file, and its replacement.
type Change = (&'static str, &'static str);

/// Constructs that the units cannot serve: a file, changes of its text, the reason, and the row of the feature list.
const REFUSED: &[(&str, &[Change], &str, &str)] = &[
    (
        "cxl-bias",
        &[],
        "`MemRdS` stalls in an order `per line` or `behind` messages",
        "messages that stall in an order `per line` or `behind` messages",
    ),
    (
        "cxl-cache",
        &[],
        "`SnpInv` stalls in an order `per line` or `behind` messages",
        "messages that stall in an order `per line` or `behind` messages",
    ),
    (
        "cxl-mem",
        &[],
        "`BIConflictAck` stalls in an order `per line` or `behind` messages",
        "messages that stall in an order `per line` or `behind` messages",
    ),
    (
        "token",
        &[],
        "`FwdData` may bring a line that the cache has not requested",
        "a message that brings a line which the cache has not requested",
    ),
    (
        "self-invalidate",
        &[],
        "a row that changes every line of a cache",
        "rows that change every line of a cache",
    ),
    (
        "write-through",
        &[("line 64 bytes", "line 64 bytes\nguarantee none")],
        "`guarantee none`",
        "`guarantee none`",
    ),
    (
        "write-through",
        &[("  V           | evict               |                | I        # silent\n", "")],
        "`V` has no row for `evict`",
        "states without a row for `evict`",
    ),
    (
        "msi",
        &[("  I              | store                   | send GetM                                      | IM_AD\n", "")],
        "`I` has no row for `store`",
        "initial states without a row for an access of the port",
    ),
    (
        "write-through",
        &[
            ("  I           | read_once           | send ReadOnce  | IR\n", ""),
            ("| read_once           |                | stay", "| read_once           | send ReadOnce  | IR"),
        ],
        "`I` has no row for `read_once`",
        "initial states without a row for an access of the port",
    ),
    (
        "write-through",
        &[("| read_once           |                | stay", "| read_once           | retry          | I")],
        "a row with `retry`",
        "rows with `retry`",
    ),
    (
        "write-through",
        &[(
            "  W       | Read ReadOnce Write WriteLine ",
            "  W | Write | write deferred, send Ack to writer | R\n  W | Read ReadOnce WriteLine ",
        )],
        "`write deferred` without `write` in a row whose message carries a store",
        "rows with `write deferred` and without `write` whose message carries a store",
    ),
];

/// Each construct is refused with its reason, and `docs/features.md` lists it.
#[test]
fn constructs_without_systems_are_refused_and_listed() {
    let page = std::fs::read_to_string(root().join("docs/features.md")).expect("readable page");
    for (name, changes, reason, listed) in REFUSED {
        let file = format!("{name}.coh");
        let text = std::fs::read_to_string(root().join("protocols").join(&file));
        let text =
            changes
                .iter()
                .fold(text.expect("readable file"), |text, (original, changed)| {
                    assert!(text.contains(original), "{name}: {original}");
                    text.replace(original, changed)
                });
        let caches: &[u16] = if *name == "cxl-cache" { &[1, 1] } else { &[2] };
        let printed = Printed::new(&file, &text, caches);
        let agents = printed.agents().expect("every row has hardware");
        let refusal = check(&agents).expect_err(reason);
        assert_eq!(refusal.feature, *reason);
        assert!(
            page.contains(&format!("| {listed} |")),
            "`docs/features.md` lacks {listed}"
        );
    }
}
