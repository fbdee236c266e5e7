//! Machine descriptions: the shipped one is valid, and each error of a description is reported with its key.

use cohkit_nearmemory::platform::ENZIAN;
use cohkit_nearmemory::Platform;
use cohkit_sim::platform::Platform as Machine;
use std::fs;

/// Each assumed or fitted quantity has a range. Each quantity appears in the shipped file and has a meaning.
#[test]
fn assumed_and_fitted_quantities_have_ranges() {
    let platform = Platform::read(ENZIAN).expect("the shipped description is valid");
    assert_eq!(platform.name, "enzian");
    for (name, _, quantity, meaning) in platform.quantities() {
        let is_guessed = ["assumed", "fitted"]
            .iter()
            .any(|word| quantity.origin.starts_with(word));
        let has_range = quantity.range.0 < quantity.range.1;
        assert!(!is_guessed || has_range, "{name}: {}", quantity.origin);
        assert!(meaning.ends_with('.'), "{name}");
        assert!(
            ENZIAN.contains(name.split_once('.').expect("a table").1),
            "{name}"
        );
    }
}

/// Values of quantities by name, in their base units.
type Values = Vec<(String, u64)>;

/// Returns the quantity and the machine that an origin refers to at the first `as in MACHINE`, for the quantity of the
/// same name, or `as QUANTITY in MACHINE`.
fn reference<'a>(
    origin: &'a str,
    name: &'a str,
    machines: &[&'a str],
) -> Option<(&'a str, &'a str)> {
    let is_end = |character: char| !(character.is_alphanumeric() || "-._".contains(character));
    let words = origin.split(is_end).map(|word| word.trim_matches('.'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let machine_at = |index: usize| {
        let word = words.get(index)?;
        machines.iter().copied().find(|machine| machine == word)
    };
    (0..words.len())
        // The value of a part is not that of the whole: `three stages, each as in MACHINE`.
        .filter(|index| words[*index] == "as" && (*index == 0 || words[*index - 1] != "each"))
        .find_map(|index| match (words.get(index + 1), words.get(index + 2)) {
            (Some(&"in"), _) => Some((name, machine_at(index + 2)?)),
            (Some(&quantity), Some(&"in")) => Some((quantity, machine_at(index + 3)?)),
            _ => None,
        })
}

/// An origin `as in MACHINE` is true: the machine has this value. No comment of a file says so of a whole table,
/// where the test could not check it.
#[test]
fn origins_that_refer_to_another_machine_have_its_value() {
    let machines: Vec<&str> = Machine::shipped_names().collect();
    let values_of = |name: &str| -> Values {
        let machine = Machine::shipped(name).expect("a shipped machine");
        let quantities = machine.all_quantities().into_iter();
        quantities
            .map(|(name, _, quantity)| (name, quantity.value))
            .collect()
    };
    let mut origins: Vec<(String, u64, String)> = Vec::new();
    for (name, _, quantity, _) in Platform::enzian().quantities() {
        origins.push((
            name.to_string(),
            quantity.value,
            quantity.origin.to_string(),
        ));
    }
    for name in &machines {
        let machine = Machine::shipped(name).expect("a shipped machine");
        for (name, _, quantity) in machine.all_quantities() {
            origins.push((name, quantity.value, quantity.origin.to_string()));
        }
    }
    let mut references = 0;
    for (name, value, origin) in &origins {
        let Some((other_name, machine)) = reference(origin, name, &machines) else {
            continue;
        };
        let values = values_of(machine);
        let other = values.iter().find(|(name, _)| name == other_name);
        let expected = other.map(|(_, value)| *value);
        assert_eq!(Some(*value), expected, "{name}: {origin}");
        references += 1;
    }
    assert!(references >= 3, "{references}");
    let folder = format!("{}/../../platforms", env!("CARGO_MANIFEST_DIR"));
    let files = fs::read_dir(folder).expect("the folder of platforms");
    let mut texts: Vec<String> = files
        .map(|file| fs::read_to_string(file.expect("a file").path()).expect("a text"))
        .collect();
    texts.push(ENZIAN.to_string());
    for comment in texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.starts_with('#'))
    {
        let comment = comment.to_lowercase();
        assert_eq!(reference(&comment, "", &machines), None, "{comment}");
    }
}

/// Each case replaces a text that occurs once by an invalid one, and has the expected message and the text that the
/// message marks.
#[test]
fn platform_errors_name_their_position() {
    let line = "line = { value = \"7300ps\"";
    let cases = [
        ("[copy]", "[copier]", "unknown key `copier`", "copier"),
        (
            "[copy]\n",
            "[copy]\nspeed = 3\n",
            "unknown key `copy.speed`",
            "speed",
        ),
        (
            line,
            "line = { value = \"6667\"",
            "`copy.line` has no unit",
            "\"6667\"",
        ),
        (
            line,
            "line = { value = \"7000us\"",
            "`copy.line` must be 1ps to 1ms",
            "\"7000us\"",
        ),
        (
            line,
            "line = { value = \"1ns\"",
            "`copy.line` is 1ns, outside its range 6.667ns to 13.334ns; ",
            "[\"6667ps\"",
        ),
        (
            line,
            "line = { worth = 3, value = \"7ns\"",
            "unknown key `copy.line.worth`; there are copy.line.value, ",
            "worth",
        ),
        (
            line,
            "line = { valu = \"7ns\"",
            "`copy.line` has no value",
            "{ valu",
        ),
        ("name = \"enzian\"", "", "`name` is missing", ""),
        ("banks = {", "bank = {", "`dram.banks` is missing", ""),
        // A quantity of the simulator's framed links is not one of this machine.
        (
            "header_bytes = {",
            "lanes = {",
            "unknown key `link.lanes`; ",
            "lanes",
        ),
        (
            "row_bytes = { value = \"8KiB\"",
            "row_bytes = { value = \"9KiB\"",
            "`dram.row_bytes` must be a power of two",
            "\"9KiB\"",
        ),
        (
            "page = { value = \"2MiB\"",
            "page = { value = \"96KiB\"",
            "`host.page` must be a power of two, not 96KiB",
            "\"96KiB\"",
        ),
        (
            "banks = { value = 16",
            "banks = { value = true",
            "`dram.banks` must be a number",
            "true",
        ),
        (
            "banks = { value = 16, origin = \"DDR4: 16 banks\" }",
            "banks = 16",
            "`dram.banks` is a table",
            "16",
        ),
        (
            "origin = \"DDR4: 16 banks\"",
            "origin = \"\"",
            "`dram.banks.origin` must be a string",
            "\"\"",
        ),
        ("[dram]", "[dram", "", ""),
    ];
    for (original, changed, message, error_text) in cases {
        assert_eq!(ENZIAN.matches(original).count(), 1, "{original}");
        let text = ENZIAN.replace(original, changed);
        let errors = Platform::read(&text).expect_err(changed);
        let error = errors.iter().find(|error| error.message.contains(message));
        let error = error.unwrap_or_else(|| panic!("{message} in {errors:?}"));
        assert!(
            text[error.span.start..].starts_with(error_text),
            "{message} at {:?}",
            error.span
        );
    }
    // A text that is not TOML has an error in every line; five of them are reported, plus their number.
    let errors = Platform::read(&"no toml\n".repeat(90)).expect_err("invalid TOML");
    assert_eq!(errors.len(), 6);
    let last_error = errors.last().expect("at least one error");
    assert_eq!(last_error.message, "85 more syntax errors in the TOML file");
    let mut platform = Platform::enzian();
    platform
        .set("link.latency", "120ns")
        .expect("a valid value");
    assert_eq!(platform.link_latency.value, 120_000);
}

/// Text of the shipped machine with another table of DRAM.
fn with_dram(table: &str) -> String {
    let (rest, _) = ENZIAN.split_once("[dram]").expect("a table");
    format!("{rest}[dram]{table}")
}

/// DRAM with and without a standard has the names, values and limits of the simulator's platforms.
#[test]
fn dram_has_the_quantities_of_the_simulators_platforms() {
    let folder = format!("{}/../../platforms", env!("CARGO_MANIFEST_DIR"));
    let mut kinds = [0; 2];
    for name in Machine::shipped_names() {
        let text = fs::read_to_string(format!("{folder}/{name}.toml")).expect("a platform");
        let mut machine = Machine::shipped(name).expect("a shipped machine");
        // The table ends with the file or at the next table.
        let Some((_, table)) = text.split_once("\n[dram]") else {
            continue;
        };
        let (table, _) = table.split_once("\n[").unwrap_or((table, ""));
        let has_standard = table.contains("standard =");
        kinds[usize::from(has_standard)] += 1;
        let errors = |errors| panic!("{name}: {errors:?}");
        let mut platform = Platform::read(&with_dram(table)).unwrap_or_else(errors);
        let ours: Values = platform
            .quantities()
            .into_iter()
            .filter(|(name, ..)| name.starts_with("dram."))
            .map(|(name, _, quantity, _)| (name.to_string(), quantity.value))
            .collect();
        let theirs: Values = machine
            .all_quantities()
            .into_iter()
            .filter(|(name, ..)| name.starts_with("dram."))
            .map(|(name, _, quantity)| (name, quantity.value))
            .collect();
        assert_eq!(ours, theirs, "{name}");
        for (quantity, _) in ours {
            // Values of all units that are too small, too large, or no power of two.
            for value in [
                "0", "3", "5000", "0B", "48B", "1TiB", "100TiB", "2s", "1B/s", "9PB/s",
            ] {
                let result = machine.set(&quantity, value);
                let expected = result.map_err(|error| error.replace('`', ""));
                let result = platform.set(&quantity, value);
                let result = result.map_err(|error| error.replace('`', ""));
                assert_eq!(result, expected, "{name}: {quantity}={value}");
            }
        }
    }
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
}

/// Names that only the other kind of DRAM has, unknown choices, and contradictions are reported.
#[test]
fn kinds_of_dram_do_not_mix() {
    let standard = "\nstandard = \"ddr4-2400\"\nscheduler = \"fr-fcfs\"\n";
    let message = |text: &str| {
        let errors = Platform::read(text).expect_err("an invalid machine");
        let messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
        messages.join("; ")
    };
    let unknown = message(&with_dram("\nstandard = \"ddr3\"\n"));
    assert!(
        unknown.starts_with("`dram.standard` is one of ddr4-2133, "),
        "{unknown}"
    );
    let scheduler = message(&with_dram(&standard.replace("fr-fcfs", "fifo")));
    assert!(
        scheduler.contains("`dram.scheduler` is one of fr-fcfs, "),
        "{scheduler}"
    );
    let banks = message(&with_dram(&format!(
        "{standard}banks = {{ value = 16, origin = \"x\" }}\n"
    )));
    assert!(banks.contains("`dram.channels` is missing"), "{banks}");
    let expected = "unknown key `dram.banks`: it needs DRAM without a `dram.standard`";
    assert!(banks.contains(expected), "{banks}");
    assert!(!banks.contains("`dram.t_cl` is missing"), "{banks}");
    let (_, simple) = ENZIAN.split_once("[dram]").expect("a table");
    let refresh = message(&with_dram(&format!("{simple}\nscheduler = \"fr-fcfs\"\n")));
    let expected = "unknown key `dram.scheduler`: it needs DRAM with a `dram.standard`";
    assert_eq!(refresh, expected);
    let mut platform = Platform::enzian();
    for name in ["dram.standard", "dram.scheduler", "dram.t_ras"] {
        let error = platform.set(name, "ddr4-2400").expect_err("another kind");
        let expected =
            "needs DRAM with a standard, which this machine has not: `standard` and `scheduler` belong in the table \
             `[dram]` of a machine file";
        assert_eq!(error, format!("`{name}` {expected}"));
    }
    platform.set("dram.row_bytes", "64B").expect("a size");
    let expected = "dram.row_bytes is 64 bytes, less than a line of 128 bytes";
    assert_eq!(platform.check(), Err(expected.to_string()));
    let short_rows = message(&with_dram(&simple.replace("\"8KiB\"", "\"64B\"")));
    assert_eq!(short_rows, expected);
    platform.set("dram.row_bytes", "128B").expect("a size");
    assert_eq!(platform.check(), Ok(()));
    platform.set("memory_cache.size", "1KiB").expect("a size");
    platform.set("memory_cache.line", "4KiB").expect("a line");
    assert!(platform
        .check()
        .is_err_and(|error| error.contains("memory_cache.line")));
    platform.set("memory_cache.line", "1KiB").expect("a line");
    assert_eq!(platform.check(), Ok(()));
    let error = platform
        .set("memory_cache.size", "96KiB")
        .expect_err("no power of two");
    assert_eq!(
        error,
        "`memory_cache.size` must be 0 or a power of two, not 96KiB"
    );
}
