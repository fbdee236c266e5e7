//! Checks that the rows equal the controllers' rows, and that unsupported controllers are rejected.

use cohkit_protocol::construct::construct;
use cohkit_protocol::controller::{Controller, Effect, Event, Statement};
use cohkit_protocol::execute::{Act, Machine, Outcome, Trigger};
use cohkit_protocol::protocol::{Class, Home, Protocol};
use cohkit_protocol::text;
use cohkit_rtl::print::{image, package, Origin};
use cohkit_rtl::rom::{Refusal, Rom};
use cohkit_rtl::sources::SOURCES;
use expect_test::{expect, expect_file};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .ancestors()
        .nth(2)
        .expect("the crate lies two folders below the root")
        .to_path_buf()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("the file can be read")
}

/// Compiles a protocol, its home for one remote, and the ROM.
fn compile(text: &str) -> (Protocol, Controller, Result<Rom, Refusal>) {
    let protocol = text::parse(text).expect("protocol without errors");
    let (home, rom) = match &protocol.home {
        Home::Controller(home) => (home.clone(), Rom::new(&protocol, home)),
        Home::Policy(_) => {
            let construction = construct(&protocol).expect("protocol with a home");
            let home = construction.flat(true);
            let permissions = construction.flat_permissions(true);
            let rom =
                Rom::new(&protocol, &home).map(|rom| rom.with_permissions(&home, &permissions));
            (home, rom)
        }
    };
    (protocol, home, rom)
}

/// Returns the words of an image by address, as `$readmemh` reads them.
fn words(image: &str) -> Vec<(usize, u64)> {
    let rows = image.lines().filter_map(|line| line.strip_prefix('@'));
    rows.map(|row| {
        let mut parts = row.split_whitespace();
        let mut number = || parts.next().expect("address and word");
        let address = usize::from_str_radix(number(), 16).expect("hexadecimal");
        (
            address,
            u64::from_str_radix(number(), 16).expect("hexadecimal"),
        )
    })
    .collect()
}

/// Decodes the fields of a word, starting with the last one.
struct Fields(u64);

impl Fields {
    /// Takes the lowest bits.
    fn take(&mut self, bits: u32) -> u64 {
        let value = self.0 & ((1 << bits) - 1);
        self.0 >>= bits;
        value
    }
}

/// Returns the reaction of a controller to an event as the fields of a row: effect, memory, acknowledge, grant,
/// forward, next.
fn expected_fields(
    protocol: &Protocol,
    rom: &Rom,
    machine: &Machine,
    home: &Controller,
    state: usize,
    event: Event,
) -> [u64; 6] {
    let mut configuration = machine.initial();
    configuration.state = state as u16;
    let trigger = Trigger {
        home: 0,
        event,
        sender: Some(0),
        executing_remote: None,
        fields: &[],
    };
    let outcome = machine
        .step(&mut configuration, trigger, &mut { home })
        .expect("rows of a flat home can be executed");
    let unchanged = state as u64;
    let acts = match outcome {
        Outcome::Unexpected => return [0, 0, 0, 0, 0, 0],
        Outcome::Stall => return [1, 0, 0, 0, 0, unchanged],
        Outcome::Refuse => return [2, 0, 0, 0, 0, unchanged],
        Outcome::Taken { acts, .. } => acts,
    };
    let mut expected_fields = [3, 0, 0, 0, 0, u64::from(configuration.state)];
    for act in acts {
        match act {
            Act::Send { message, .. } => {
                let field = if protocol.class(message) == Some(Class::Forward) {
                    4
                } else {
                    3
                };
                let number = rom
                    .sends
                    .iter()
                    .position(|sent| sent.message == message)
                    .expect("message number in the table");
                expected_fields[field] = 1 << rom.send_bits() | number as u64;
            }
            Act::StartRead => expected_fields[1] = 1,
            Act::StartWrite | Act::StartStore { .. } => expected_fields[1] = 2,
            Act::Acknowledge(_) | Act::AcknowledgeUnlock => expected_fields[2] = 1,
            other => panic!("{other:?} has no place in a row"),
        }
    }
    expected_fields
}

/// Checks that every row of the printed image equals the controller's reaction, and that there are no further rows.
/// Returns the number of rows.
fn verify(text: &str) -> usize {
    let (protocol, home, rom) = compile(text);
    let rom = rom.unwrap_or_else(|refusal| panic!("{}: {}", protocol.name, refusal.feature));
    let origin = Origin {
        file: "a.coh",
        text,
        version: "0",
    };
    let words = words(&image(&protocol, &home, &rom, &origin));
    let machine = Machine::new(&home, 1);
    let mut rest = words.iter().copied().peekable();
    for state in 0..rom.states.len() {
        for (event, occurrence) in rom.events.iter().enumerate() {
            let expected =
                expected_fields(&protocol, &rom, &machine, &home, state, occurrence.event);
            let address = rom.address(state, event);
            let word = rest.next_if(|row| row.0 == address).map_or(0, |row| row.1);
            let mut fields = Fields(word);
            let next = fields.take(rom.state_bits());
            let known = [fields.take(2), fields.take(2)];
            // A row that does not consume its event leaves the home's knowledge unchanged and reports nothing.
            let permission_in = |state: usize| match expected[0] {
                3 => rom.permissions[state] as u64,
                _ => 0,
            };
            assert_eq!(
                known,
                [permission_in(next as usize), permission_in(state)],
                "{}",
                occurrence.name
            );
            let forward = fields.take(rom.send_bits() + 1);
            let grant = fields.take(rom.send_bits() + 1);
            let acknowledge = fields.take(1);
            let memory = fields.take(2);
            let actual = [fields.take(2), memory, acknowledge, grant, forward, next];
            assert_eq!(
                actual, expected,
                "{}: {} on {}",
                protocol.name, rom.states[state], occurrence.name
            );
        }
    }
    assert_eq!(rest.next(), None, "a row of no state and event");
    words.len()
}

/// Each row of the ROM equals the rule of the controller, for ECI and the protocols of `tests/construction`.
#[test]
fn rom_rows_match_the_controller() {
    assert_eq!(verify(&read("protocols/eci.coh")), 1556);
    let mut checked = 0;
    let mut names: Vec<_> = std::fs::read_dir(root().join("tests/construction"))
        .expect("folder of constructions")
        .map(|entry| entry.expect("readable folder entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "coh"))
        .collect();
    names.sort();
    for path in names {
        // The directory evicts by an operation without a lock, which these protocols lack. The test makes the lock
        // optional.
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let text = text.replace(
            "local clean_invalidate lock",
            "local clean_invalidate [lock]",
        );
        let protocol = text::parse(&text).expect("protocol without errors");
        if construct(&protocol).is_err() {
            continue;
        }
        match compile(&text).2 {
            Ok(_) => {
                verify(&text);
                checked += 1;
            }
            Err(refusal) => eprintln!("{}: {}", path.display(), refusal.feature),
        }
    }
    assert!(
        checked >= 5,
        "only {checked} texts of tests/construction have a home that fits"
    );
}

/// Version in the golden files. It is no released version, so that a release does not change the files.
const VERSION: &str = "9.9.9";

/// A home with other messages, circuits and line size than ECI's.
#[test]
fn package_of_a_home_with_other_circuits_is_unchanged() {
    let text = read("protocols/back-invalidate.coh");
    assert_eq!(verify(&text), 196);
    let (protocol, _, rom) = compile(&text);
    let rom = rom.expect("ROM within the hardware limits");
    let origin = Origin {
        file: "back-invalidate.coh",
        text: &text,
        version: VERSION,
    };
    expect_file!["../golden/back_invalidate_pkg.sv"].assert_eq(&package(&protocol, &rom, &origin));
}

/// Golden files show the effect of a change of the printer on the shipped hardware.
#[test]
fn package_of_eci_is_unchanged() {
    let text = read("protocols/eci.coh");
    let (protocol, home, rom) = compile(&text);
    let rom = rom.expect("ROM within the hardware limits");
    let origin = Origin {
        file: "eci.coh",
        text: &text,
        version: VERSION,
    };
    expect_file!["../golden/eci_pkg.sv"].assert_eq(&package(&protocol, &rom, &origin));
    let image = image(&protocol, &home, &rom, &origin);
    let beginning: String = image
        .lines()
        .take(24)
        .flat_map(|line| [line, "\n"])
        .collect();
    expect![[r#"
        // The protocol ROM of the home of eci: 4096 rows of 24 bits, addressed by state (7 bits) and event (5 bits).
        //
        // Generated from eci.coh by `cohkit rtl emit eci.coh --out .`, Cohkit 9.9.9; do not edit.

        // Rows that are not named are 0: the event cannot happen in the state.

        // I
        @0000 d00001  // eci.coh:81: ReadShared: read memory -> I:ReadShared.rd
        @0001 d00002  // eci.coh:82: ReadExclusive: read memory -> I:ReadExclusive.rd
        @0003 d00003  // eci.coh:84: ReadOnce: read memory -> I:ReadOnce.rd
        @0004 e00004  // eci.coh:85: WriteLine: store line -> I:WriteLine.st
        @0005 e00004  // eci.coh:86: WritePartial: store part of line -> I:WriteLine.st
        @0013 c80000  // eci.coh:88: clean: acknowledge clean -> I
        @0014 c80005  // eci.coh:88: clean_lock: acknowledge clean_lock -> I.lock
        @0015 c80000  // eci.coh:89: clean_invalidate: acknowledge clean_invalidate -> I
        @0016 c80005  // eci.coh:89: clean_invalidate_lock: acknowledge clean_invalidate_lock -> I.lock
        @0017 800000  // eci.coh:80: unlock: refuse

        // I:ReadShared.rd
        @0033 c00006  // eci.coh:88: clean -> I:ReadShared.rd.clean
        @0034 c00007  // eci.coh:88: clean_lock -> I:ReadShared.rd.clean_lock
        @0035 c00008  // eci.coh:89: clean_invalidate -> I:ReadShared.rd.clean_invalidate
        @0036 c00009  // eci.coh:89: clean_invalidate_lock -> I:ReadShared.rd.clean_invalidate_lock
        @0037 800001  // eci.coh:81: unlock: refuse
    "#]].assert_eq(&beginning);
}

/// Returns the reason for which a protocol's home is rejected.
fn refusal(text: &str) -> String {
    let (_, _, rom) = compile(text);
    rom.err()
        .map_or_else(|| "it fits".into(), |refusal| refusal.feature)
}

/// Shipped protocols whose homes the hardware does not support.
const REFUSED: [&str; 10] = [
    "protocols/msi.coh",
    "protocols/msi-policy.coh",
    "protocols/ccix.coh",
    "protocols/cxl-bias.coh",
    "protocols/cxl-cache.coh",
    "protocols/cxl-mem.coh",
    "protocols/token.coh",
    "protocols/eci-near.coh",
    "protocols/write-through.coh",
    "protocols/write-through-two-step.coh",
];

/// The reason for each shipped protocol that the hardware refuses, and for variants of ECI and back-invalidate that
/// each violate one further limit.
#[test]
fn protocols_beyond_hardware_limits_are_rejected() {
    let mut reasons = String::new();
    for path in REFUSED {
        reasons += &format!("{path}: {}\n", refusal(&read(path)));
    }
    let one_order = read("protocols/msi-policy.coh").replace(
        "  reach S with Downgrade",
        "  local clean_invalidate { ensure all == I }\n  reach S with Downgrade",
    );
    let store_with_request = read("protocols/eci.coh")
        .replace(
            "ReadOnce, WriteLine (store)",
            "ReadOnce, Ask, WriteLine (store)",
        )
        .replace("WriteDone\n}", "WriteDone, Go\n}")
        .replace("    IW  waits", "    IA  waits Go\n    IW  waits")
        .replace("| send WriteLine            | IW", "| send Ask | IA")
        .replace("IR IW IP", "IR IA IW IP")
        .replace(
            "  IW IP                | WriteDone",
            "  IA | Go | send WriteLine | IW\n  IW IP | WriteDone",
        )
        .replace(
            "  on WriteLine(r)",
            "  on Ask(r) { ensure others(r) == I; answer r with Go }\n  on WriteLine(r)",
        );
    reasons += &format!(
        "a store that asks first: {}\n",
        refusal(&store_with_request)
    );
    reasons += &format!(
        "requests and victims in one order: {}\n",
        refusal(&one_order)
    );
    let back_invalidate = read("protocols/back-invalidate.coh");
    let two_channels = back_invalidate
        .replace(
            "  s2m_rsp    as",
            "  s2m_drs as grant home -> remote\n  s2m_rsp    as",
        )
        .replace(
            "CmpE, MemDataCur (line), Cmp",
            "CmpE, Cmp\n  s2m_drs: MemDataCur (line)",
        );
    reasons += &format!("lines on two circuits: {}\n", refusal(&two_channels));
    let eci = read("protocols/eci.coh");
    let without_eviction = eci.replace(
        "local clean_invalidate [lock]",
        "local clean_invalidate lock",
    );
    reasons += &format!("no eviction: {}\n", refusal(&without_eviction));
    let ambiguous = eci.replace("AckShared,\n", "AckShared, I,\n");
    reasons += &format!(
        "a message called like a state: {}\n",
        match text::parse(&ambiguous) {
            Ok(_) => refusal(&ambiguous),
            Err(errors) => errors[0].message.clone(),
        }
    );
    expect![[r#"
        protocols/msi.coh: the hardware does not support the home's variable `owner`
        protocols/msi-policy.coh: the directory cannot evict: no local operation takes a line from every remote without a lock
        protocols/ccix.coh: `device` is a second kind of remotes
        protocols/cxl-bias.coh: the hardware does not support the home's variable `hosts`
        protocols/cxl-cache.coh: `device` is a second kind of remotes
        protocols/cxl-mem.coh: `BIConflictAck` stays behind other messages
        protocols/token.coh: the hardware does not support the home's variable `held`
        protocols/eci-near.coh: `device` is a second kind of remotes
        protocols/write-through.coh: the hardware does not support the home's variable `readers`
        protocols/write-through-two-step.coh: the hardware does not support the home's variable `readers`
        a store that asks first: the remote sends the request `WriteLine` when a message comes; the hardware supports requests only if they begin an access
        requests and victims in one order: `victim` is ordered with requests, which may stall; the hardware stalls only requests
        lines on two circuits: two circuits to the remote carry lines; the hardware reads them from one place
        no eviction: the directory cannot evict: no local operation takes a line from every remote without a lock
        a message called like a state: no agent sends `I`
    "#]].assert_eq(&reasons);
}

/// Checks that all names which the package defines itself are rejected.
#[test]
fn names_of_the_package_are_rejected() {
    let eci = read("protocols/eci.coh");
    let (protocol, _, rom) = compile(&eci);
    let origin = Origin {
        file: "eci.coh",
        text: &eci,
        version: "0",
    };
    let package = package(
        &protocol,
        &rom.expect("ROM within the hardware limits"),
        &origin,
    );
    let declared = package.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = match words.next()? {
            "package" | "}" => words.next(),
            "localparam" => words.nth(1),
            _ => None,
        };
        Some(name?.trim_end_matches(';'))
    });
    let mut names: Vec<&str> = declared.collect();
    assert_eq!(
        names,
        ["eci_pkg", "state_e", "event_e", "send_e", "row_t", "Protocol"]
    );
    // The package refers to another package, whose name is reserved too.
    assert!(package.contains("home_pkg::"));
    names.push("home_pkg");
    for name in names {
        let expected = format!("the generated package uses the name `{name}` itself");
        // A request, a message to the remote, and a state.
        for name_in_text in ["ReadOnce", "DataShared", "S"] {
            assert_eq!(
                refusal(&renamed(&eci, name_in_text, name)),
                expected,
                "{name_in_text}"
            );
        }
    }
}

/// Returns the protocol with a name replaced by another, in whole words only.
fn renamed(text: &str, from: &str, to: &str) -> String {
    let is_of_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let length = match rest.find(|sign| !is_of_name(sign)) {
            Some(0) => sign.len_utf8(),
            Some(length) => length,
            None => rest.len(),
        };
        let (word, remainder) = rest.split_at(length);
        replaced += if word == from { to } else { word };
        rest = remainder;
    }
    replaced
}

/// A protocol called like a package of the hardware would replace it.
#[test]
fn reserved_package_names_are_rejected() {
    let eci = read("protocols/eci.coh");
    let package_name = |(file, _): &(&'static str, _)| file.strip_suffix("_pkg.sv");
    let names: Vec<&str> = SOURCES.iter().filter_map(package_name).collect();
    assert!(names.contains(&"registers"), "{names:?}");
    for name in names {
        let text = renamed(&eci, "eci", name);
        let reason = match text::parse(&text) {
            Ok(_) => refusal(&text),
            Err(errors) => errors[0].message.clone(),
        };
        let expected = match name {
            "home" => "`home` is a keyword".to_string(),
            _ => format!("the package of the protocol `{name}` would be named `{name}_pkg`, the name of a package of the hardware"),
        };
        assert_eq!(reason, expected);
    }
}

/// Each row for a response gets a read of memory added; all of them must be rejected.
#[test]
fn response_that_starts_a_read_is_rejected() {
    let (protocol, home, _) = compile(&read("protocols/eci.coh"));
    let mut refused = 0;
    for index in 0..home.rules.len() {
        let mut changed_home = home.clone();
        let rule = &mut changed_home.rules[index];
        let (Event::Message(message), Effect::Take { body, .. }) = (rule.event, &mut rule.effect)
        else {
            continue;
        };
        if protocol.class(message) == Some(Class::Request) {
            continue;
        }
        body.push(Statement::StartRead);
        let reason = match Rom::new(&protocol, &changed_home) {
            Ok(_) => panic!("rule {index} fits"),
            Err(refusal) => refusal.feature,
        };
        refused += usize::from(reason.contains("memory is read for a response"));
    }
    // The other rules already have a memory operation in progress.
    assert!(refused > 100, "{refused}");
}
