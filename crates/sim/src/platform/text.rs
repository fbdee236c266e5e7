//! Platforms as TOML files.
//!
//! Every quantity is a table under its name (`home.units` is the key `units` of the table `[home]`). The table has
//! `value`, `origin` and, if no source gives the value, `range = [lowest, highest]`. There are no silent defaults: a
//! missing key, an unknown key and a missing unit are errors. Only parts that a machine can lack may be left out, such
//! as a bus, or quantities that otherwise equal another one.

use super::{is_machine_wide, Agents, Cores, Framing, Layer, Link, Platform, Row, Translation};
use super::{Cache, HomeCache, JedecDram, Memory, MemoryKind, Standard};
use super::{AGENTS, TABLE};
use cohkit_platform::{
    both_names_error, find, former_name_warning, read_document, DeTable, DeValue, QuantityKind,
    Reader, Spanned, FORMER_LOWER, LOWER,
};
use cohkit_units::Quantity;

pub use cohkit_platform::PlatformError;

/// Reads a platform.
///
/// # Errors
/// All errors, in the order of the file.
pub fn read(text: &str) -> Result<Platform, Vec<PlatformError>> {
    read_document(text, Row::layer_requirement, |file, table| {
        PlatformReader { file }.read_platform(table)
    })
}

/// Origin of a page policy that a file gives as a word, which has no origin of its own.
const PAGE_POLICY_ORIGIN: &str = "the platform file states no origin: `page_policy` is a word";

/// Reader of a platform.
struct PlatformReader<'r> {
    /// Reader of the file.
    file: &'r mut Reader,
}

impl PlatformReader<'_> {
    /// Reads a complete platform. The result is only valid if no errors were reported.
    fn read_platform(&mut self, table: &DeTable) -> Option<Platform> {
        let name = self.file.read_string(table, "name");
        let remotes = self
            .file
            .read_count(table, "remotes", 1..=Platform::MAX_AGENTS.into());
        let lines = self
            .file
            .read_count(table, "lines", 1..=Platform::MAX_LINES);
        let protocol = match table.contains_key("protocol") {
            true => Some(self.file.read_string(table, "protocol")?),
            false => None,
        };
        let known = ["name", "protocol", "remotes", "lines"];
        let mut known: Vec<String> = known.map(String::from).into();
        let has_parts = ["bus", "switch", "hosts", "uplink"].map(|part| table.contains_key(part));
        if let ([_, false, true, _], Some(hosts)) = (has_parts, table.get("hosts")) {
            self.file.report(
                hosts.span(),
                "`switch` is missing: a switch connects the hosts",
            );
        }
        if let ([_, _, false, true], Some(uplink)) = (has_parts, table.get("uplink")) {
            self.file.report(
                uplink.span(),
                "`hosts` is missing: two levels of switches connect hosts",
            );
        }
        let mut platform = self.read_level(table, "", has_parts, &mut known)?;
        if let Some(prefix) = self.lower_prefix(table, &mut known) {
            let mut below = self.read_level(table, prefix, [false; 4], &mut known)?;
            known.push(format!("{prefix}remotes"));
            let remotes = self.file.read_count(
                table,
                &format!("{prefix}remotes"),
                1..=Platform::MAX_AGENTS.into(),
            );
            below.remotes = u16::try_from(remotes?).ok()?;
            platform.below = Some(Box::new(below));
        }
        for kind in agent_kinds(table) {
            let agents = self.read_agents(table, &kind, &platform, &mut known);
            platform.agents.extend(agents);
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        self.file.report_unknown_keys(table, "", &known);
        platform.implausible = std::mem::take(&mut self.file.warnings);
        platform.name = name?;
        platform.protocol = protocol;
        platform.remotes = u16::try_from(remotes?).ok()?;
        platform.lines = u32::try_from(lines?).ok()?;
        Some(platform)
    }

    /// Returns the prefix of the lower level's quantities in the file, if there are two levels: the current or the
    /// former one.
    fn lower_prefix(&mut self, table: &DeTable, known: &mut Vec<String>) -> Option<&'static str> {
        let has_current_name = table.contains_key("lower");
        let Some(former) = table.get("below") else {
            return has_current_name.then_some(LOWER);
        };
        if has_current_name {
            let message =
                "`below` is the former name of `lower`, which is given, too: remove one of them";
            self.file.report(former.span(), message);
            known.push("below".to_string());
            return Some(LOWER);
        }
        self.file
            .warnings
            .push(former_name_warning("below", "lower"));
        Some(FORMER_LOWER)
    }

    /// Reads the quantities of a level. Their names begin with `prefix`. `parts` says if the level has a bus, a
    /// switch, hosts and uplinks. Adds the names of all keys that the level may have to `known`. Returns `None` if
    /// the type of memory is not clear.
    fn read_level(
        &mut self,
        table: &DeTable,
        prefix: &str,
        parts: [bool; 4],
        known: &mut Vec<String>,
    ) -> Option<Platform> {
        let has_memory = |memory: &str| find(table, &format!("{prefix}{memory}")).is_some();
        let memory = match (has_memory("dram"), has_memory("bram")) {
            (true, false) => self.read_dram_kind(table, prefix, known)?,
            (false, true) => MemoryKind::Bram,
            _ => {
                let message = match prefix {
                    "" => "a platform needs exactly one of the tables `[dram]` and `[bram]`".to_string(),
                    _ => format!("the lower level of a platform needs exactly one of the tables `[{prefix}dram]` and `[{prefix}bram]`"),
                };
                self.file.report(self.file.end.clone(), message);
                return None;
            }
        };
        let mut platform = Platform::placeholder(memory, parts);
        if let Memory::Jedec(dram) = &mut platform.memory {
            self.read_dram_choices(table, prefix, dram, known);
        }
        self.read_layer(table, prefix, &mut platform.link, known);
        platform.cache.translation = blank_translation(table, prefix);
        let has_llc = ["sets", "ways", "latency"]
            .iter()
            .any(|part| find(table, &format!("{prefix}home.llc_{part}")).is_some());
        platform.home.llc = has_llc.then(HomeCache::unset);
        let has_page_policy = find(table, &format!("{prefix}dram.page_policy")).is_some();
        for row in TABLE {
            let is_shared = !prefix.is_empty() && is_machine_wide(row.name);
            let Some(quantity) = row.quantity_of(&mut platform).filter(|_| !is_shared) else {
                continue;
            };
            let name = format!("{prefix}{}", row.name);
            match self.file.find_quantity(table, &name, known) {
                Some(value) => self.read_into(quantity, row, &name, value),
                None if row.remove_from(&mut platform) => {}
                None if row.name == "dram.closed_page" && has_page_policy => {}
                None => self.file.report_missing(table, &name),
            }
            known.push(name);
        }
        Some(platform)
    }

    /// Reads agents of a further kind, from the table of its name. Missing quantities are reported and keep the
    /// values of the first kind.
    fn read_agents(
        &mut self,
        table: &DeTable,
        kind: &str,
        platform: &Platform,
        known: &mut Vec<String>,
    ) -> Option<Agents> {
        let prefix = format!("{AGENTS}{kind}.");
        let remotes = format!("{prefix}remotes");
        let count = self
            .file
            .read_count(table, &remotes, 0..=Platform::MAX_AGENTS.into());
        known.push(remotes);
        let mut agents = Agents {
            kind: kind.to_string(),
            remotes: u16::try_from(count.unwrap_or(0)).unwrap_or(0),
            cores: Cores {
                issue_interval: Some(platform.watchdog_timeout.clone()),
                max_posted_stores: Some(platform.watchdog_timeout.clone()),
                ..platform.cores.clone()
            },
            cache: Cache {
                store_hit_latency: Some(platform.watchdog_timeout.clone()),
                ..platform.cache.clone()
            },
            link: platform.link.clone(),
        };
        agents.link.layer = None;
        self.read_layer(table, &prefix, &mut agents.link, known);
        agents.cache.translation = blank_translation(table, &prefix);
        for row in TABLE {
            let Some(quantity) = row.of_agents(&mut agents) else {
                continue;
            };
            let name = format!("{prefix}{}", row.name);
            match self.file.find_quantity(table, &name, known) {
                Some(value) => self.read_into(quantity, row, &name, value),
                None if row.remove_from_agents(&mut agents) => {}
                None => self.file.report_missing(table, &name),
            }
            known.push(name);
        }
        Some(agents)
    }

    /// Reads the standard of a DRAM, if the file has one.
    fn read_dram_kind(
        &mut self,
        table: &DeTable,
        prefix: &str,
        known: &mut Vec<String>,
    ) -> Option<MemoryKind> {
        let name = format!("{prefix}dram.standard");
        known.push(name.clone());
        if find(table, &name).is_none() {
            return Some(MemoryKind::Dram);
        }
        let text = self.file.read_choice(table, &name)?;
        let standard = Standard::named(&name, &text);
        match standard {
            Ok(standard) => Some(MemoryKind::Jedec(standard)),
            Err(error) => {
                self.file.report(
                    find(table, &name).map_or(self.file.end.clone(), Spanned::span),
                    error,
                );
                None
            }
        }
    }

    /// Reads the scheduler and the page policy of a DRAM with a standard.
    fn read_dram_choices(
        &mut self,
        table: &DeTable,
        prefix: &str,
        dram: &mut JedecDram,
        known: &mut Vec<String>,
    ) {
        // The page policy is a word in files of earlier versions: `dram.closed_page` now.
        for choice in ["scheduler", "page_policy"] {
            let name = format!("{prefix}dram.{choice}");
            if choice == "page_policy" {
                let Some(former) = find(table, &name) else {
                    continue;
                };
                let current = format!("{prefix}dram.closed_page");
                if find(table, &current).is_some() {
                    self.file
                        .report(former.span(), both_names_error(&name, &current));
                }
                self.file
                    .warnings
                    .push(former_name_warning(&name, &current));
            }
            if let Some(text) = self.file.read_choice(table, &name) {
                if let Err(error) = dram.set_choice(&name, &text, PAGE_POLICY_ORIGIN) {
                    self.file.report(
                        find(table, &name).map_or(self.file.end.clone(), Spanned::span),
                        error,
                    );
                }
            }
            known.push(name);
        }
    }

    /// Reads the framing of a link, if the file has one.
    fn read_layer(
        &mut self,
        table: &DeTable,
        prefix: &str,
        link: &mut Link,
        known: &mut Vec<String>,
    ) {
        let name = format!("{prefix}link.layer");
        if let Some(value) = find(table, &name) {
            let framing = match value.get_ref() {
                DeValue::String(framing) => Framing::named(framing),
                _ => Err(format!("`{name}` must be a string")),
            };
            match framing {
                Ok(framing) => link.layer = Some(Layer::new(framing)),
                Err(error) => self.file.report(value.span(), error),
            }
        }
        known.push(name);
    }

    /// Reads a quantity from `value`. An invalid one is reported and leaves `quantity` unchanged.
    fn read_into(
        &mut self,
        quantity: &mut Quantity,
        row: &Row,
        name: &str,
        value: &Spanned<DeValue>,
    ) {
        let check = |value| row.check(name, value);
        let unit = row.unit;
        let check = &check;
        if let Some(read) = self
            .file
            .read_quantity(QuantityKind { name, unit, check }, value)
        {
            *quantity = read;
        }
    }
}

/// Kinds of agents in addition to the first, in the order of the file.
fn agent_kinds(table: &DeTable) -> Vec<String> {
    let Some(DeValue::Table(agents)) = table.get("agents").map(Spanned::get_ref) else {
        return Vec::new();
    };
    let tables = (agents.iter()).filter(|(_, value)| matches!(value.get_ref(), DeValue::Table(_)));
    let mut kinds: Vec<_> = tables
        .map(|(key, _)| (key.span().start, key.get_ref()))
        .collect();
    kinds.sort_unstable();
    kinds
        .into_iter()
        .map(|(_, kind)| kind.to_string())
        .collect()
}

/// Returns translation quantities to be filled, if the file has a table of them.
fn blank_translation(table: &DeTable, prefix: &str) -> Option<Translation> {
    find(table, &format!("{prefix}translation")).map(|_| Translation::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohkit_units as units;

    /// Valid file, of which the tests change parts.
    const TEXT: &str = include_str!("../../../../platforms/enzian-dc-bram.toml");

    /// Returns the messages after one change of a valid file, each with the part of the file that it points to.
    fn errors_after_change(from: &str, to: &str) -> Vec<(String, String)> {
        assert_eq!(TEXT.matches(from).count(), 1, "{from}");
        let text = TEXT.replace(from, to);
        let errors = read(&text).unwrap_err();
        let errors = errors.into_iter();
        errors
            .map(|error| (error.message, text[error.span].to_string()))
            .collect()
    }

    #[test]
    fn platform_file_errors_name_their_position() {
        let origin = ", origin = \"CCKit, section 4: two links of 12 lanes\" }";
        let links = format!("count = {{ value = 2{origin}");
        let links_as = |value: &str| format!("count = {{ value = {value}{origin}");
        for (from, to, message, place) in [
            ("ports =", "spare = 1\nports =", "unknown key `bram.spare`; there are bram.ports, bram.bandwidth, bram.latency", "spare"),
            (&links, "", "`link.count` is missing", "[link]"),
            ("remotes = 1", "", "`remotes` is missing", ""),
            ("remotes = 1", "remotes = 4097", "remotes must be 1 to 4096, not 4097", "4097"),
            ("lines = 268435456", "lines = 0", "lines must be 1 to 2147483647, not 0", "0"),
            ("name = \"enzian-dc-bram\"", "name = 7", "`name` must be a string", "7"),
            (&links, "count = 2", "`link.count` is a table: { value = ..., origin = \"...\" }", "2"),
            (&links, &links_as("0"), "link.count must be 1 to 64, not 0", "0"),
            (&links, &links_as("-1"), "`link.count` is a count: `-1` is not a whole number without a unit", "-1"),
            (&links, &links_as("0x2"), "`link.count` must be a number, or a string with a unit", "0x2"),
            (&links, &links_as("2, rnage = [1, 3]"), "unknown key `link.count.rnage`; did you mean `link.count.range`? there are link.count.value, link.count.range, link.count.origin", "rnage"),
            (&links, &links_as("2, range = [3, 4]"), "`link.count` is 2, outside its range 3 to 4; widen the range of plausible values if the value is correct", "[3, 4]"),
            (&links, &links_as("2, range = 3"), "`link.count.range` is `[lowest, highest]`", "3"),
            (&links, "count = { value = 2 }", "`link.count` has no origin", "{ value = 2 }"),
            (&links, "count = { origin = \"x\" }", "`link.count` has no value", "{ origin = \"x\" }"),
            (&links, "count = { value = 2, origin = \" \" }", "`link.count.origin` must be a string that names the source of the value", "\" \""),
            ("value = 8192", "value = 8191", "cache.sets must be a power of two, not 8191", "8191"),
            ("\"3.1ns\"", "3.1", "`bram.latency` has no unit: write it like `70ns` (units: ps, ns, us, ms, s)", "3.1"),
            ("\"3.1ns\"", "\"3.1 m\"", "`bram.latency` has the unknown unit `m` (units: ps, ns, us, ms, s)", "\"3.1 m\""),
            ("\"3.1ns\"", "\"2ms\"", "bram.latency must be 0ps to 1ms, not 2ms", "\"2ms\""),
            ("\"19.2GiB/s\"", "\"0GiB/s\"", "bram.bandwidth must be 1MB/s to 1000000GB/s, not 0B/s", "\"0GiB/s\""),
            ("\"8B\"", "\"1GiB\"", "link.header_bytes must be 0B to 4KiB, not 1GiB", "\"1GiB\""),
        ] {
            assert_eq!(errors_after_change(from, to), [(message.to_string(), place.to_string())]);
        }
    }

    #[test]
    fn lower_level_errors_use_full_names() {
        let text = include_str!("../../../../platforms/clusters-4x4.toml");
        let errors_after_change_of_lower = |from: &str, to: &str| {
            let (upper, lower) = text.split_once("\n[lower]\n").expect("it has two levels");
            let text = format!("{upper}\n[lower]\n{}", lower.replacen(from, to, 1));
            let errors = read(&text).unwrap_err();
            errors.into_iter().map(|e| e.message).collect::<Vec<_>>()
        };
        for (from, to, expected) in [
            ("ways =", "wasy =", "`lower.cache.ways` is missing"),
            ("remotes = 4", "", "`lower.remotes` is missing"),
            ("remotes = 4", "remotes = 0", "lower.remotes must be 1 to 4096, not 0"),
            ("value = 64,", "value = 63,", "lower.cache.sets must be a power of two, not 63"),
            ("[lower.bram]", "[lower.barm]", "the lower level of a platform needs exactly one of the tables `[lower.dram]` and `[lower.bram]`"),
        ] {
            assert_eq!(errors_after_change_of_lower(from, to)[0], expected);
        }
        let cores =
            errors_after_change_of_lower("[lower.link]", "[lower.cores]\ncount = 1\n[lower.link]");
        assert!(
            cores[0].starts_with("unknown key `lower.cores`"),
            "{cores:?}"
        );
    }

    #[test]
    fn links_may_be_framed() {
        let text_with = |line: &str| TEXT.replacen("[link]\n", &format!("[link]\n{line}\n"), 1);
        let lanes = "lanes = { value = 8, origin = \"a test\" }\nlane_rate = { value = \"1GB/s\", origin = \"a test\" }\nbit_errors_per_1e15 = { value = 0, origin = \"a test\" }\nmean_uptime = { value = \"0ns\", origin = \"a test\" }\nretrain_time = { value = \"0ns\", origin = \"a test\" }\ndegraded_lanes = { value = 8, origin = \"a test\" }";
        let join = "merge_latency = { value = \"3ns\", origin = \"a test\" }\nmerge_latency_back = { value = \"0ns\", origin = \"a test\" }";
        let platform = read(&text_with(&format!("layer = \"eci\"\n{lanes}\n{join}"))).unwrap();
        let layer = platform.link.layer.unwrap();
        assert_eq!(
            (layer.framing, layer.lanes.value, layer.merge_latency.value),
            (Framing::Eci, 8, 3000)
        );
        let errors_with = |line: &str| -> Vec<String> {
            let errors = read(&text_with(line)).unwrap_err().into_iter();
            errors.map(|error| error.message).collect()
        };
        let missing = [
            "lanes",
            "lane_rate",
            "bit_errors_per_1e15",
            "mean_uptime",
            "retrain_time",
            "degraded_lanes",
            "merge_latency",
            "merge_latency_back",
        ]
        .map(|name| format!("`link.{name}` is missing"));
        assert_eq!(errors_with("layer = \"eci\""), missing);
        assert_eq!(
            errors_with("layer = \"usb\""),
            ["`link.layer` is eci, ccix, cxl-68, cxl-256, cxl-cache-68 or none, not `usb`"]
        );
        assert_eq!(
            errors_with(lanes)[0],
            "unknown key `link.lanes`: it needs a layer of the link: `link.layer` is one of eci, ccix, cxl-68, cxl-256, cxl-cache-68"
        );
    }

    #[test]
    fn all_errors_are_reported_in_order() {
        let text = TEXT
            .replace("remotes = 1", "remotes = 0")
            .replace("\"3.1ns\"", "\"3.1\"")
            .replace("\nways =", "\nwasy =");
        let messages: Vec<String> = read(&text)
            .unwrap_err()
            .into_iter()
            .map(|error| error.message.chars().take(24).collect())
            .collect();
        let expected = [
            "remotes must be 1 to 409",
            "`cache.ways` is missing",
            "unknown key `cache.wasy`",
            "`bram.latency` has no un",
        ];
        assert_eq!(messages, expected);
    }

    /// A DRAM with a standard has the parameters of the standard, unless the file replaces one.
    #[test]
    fn standard_of_a_dram_gives_its_parameters() {
        const DRAM: &str = include_str!("../../../../platforms/enzian-dc-ddr.toml");
        let value = |text: &str, name: &str| {
            let mut platform = read(text).expect("valid file");
            platform.quantity(name).map(|(_, quantity)| quantity.value)
        };
        assert_eq!(value(DRAM, "dram.clock_period"), Some(833));
        assert_eq!(value(DRAM, "dram.bandwidth"), None);
        let replaced = DRAM.replace(
            "closed_page",
            "t_rp = { value = \"20ns\", origin = \"a test\" }\nclosed_page",
        );
        assert_eq!(value(&replaced, "dram.t_rp"), Some(20_000));
        let error = |from: &str, to: &str| {
            let text = DRAM.replace(from, to);
            read(&text).expect_err("invalid file").remove(0).message
        };
        assert_eq!(
            error("\"ddr4-2400\"", "\"ddr4-2401\""),
            "`dram.standard` is one of ddr4-2133, ddr4-2400, ddr4-3200, ddr5-4800, hbm2, not `ddr4-2401`"
        );
        assert_eq!(
            error("\"group-machines\"", "\"fcfs\""),
            "`dram.scheduler` is one of fr-fcfs, group-machines, not `fcfs`"
        );
        let policy = DRAM
            .split_inclusive('\n')
            .find(|line| line.starts_with("closed_page"))
            .expect("the file has a page policy");
        assert_eq!(error(policy, ""), "`dram.closed_page` is missing");
        // The former word has the same meaning.
        let word =
            |policy_word: &str| DRAM.replace(policy, &format!("page_policy = \"{policy_word}\"\n"));
        assert_eq!(value(&word("closed"), "dram.closed_page"), Some(1));
        assert_eq!(value(&word("open"), "dram.closed_page"), Some(0));
        let warning = "`dram.page_policy` is now `dram.closed_page`; the former name is accepted until version 0.3.0";
        let mut platform = read(&word("closed")).expect("valid file");
        assert_eq!(platform.implausible, [warning]);
        let (_, closed_page) = platform.quantity("dram.closed_page").expect("it exists");
        assert_eq!(closed_page.origin, PAGE_POLICY_ORIGIN);
        // With both names, or an unknown word, there is an error.
        assert_eq!(
            error(policy, &format!("{policy}page_policy = \"closed\"\n")),
            "`dram.page_policy` is the former name of `dram.closed_page`, which is given, too: remove one of them"
        );
        let mut platform = read(DRAM).expect("valid file");
        platform
            .set("dram.page_policy", "closed")
            .expect("known word");
        assert_eq!(platform.implausible, [warning]);
        let (_, closed_page) = platform.quantity("dram.closed_page").expect("it exists");
        assert_eq!(
            (closed_page.value, &closed_page.origin[..]),
            (1, "set for this run")
        );
        let mut platform = read(DRAM).expect("valid file");
        platform
            .set("dram.standard", "ddr4-3200")
            .expect("known standard");
        let clock = platform
            .quantity("dram.clock_period")
            .map(|(_, quantity)| quantity.value);
        assert_eq!(clock, Some(625));
        assert!(platform.set("dram.page_policy", "half").is_err());
        let mut platform = read(TEXT).expect("valid file");
        assert_eq!(
            platform.set("dram.scheduler", "fr-fcfs"),
            Err("`dram.scheduler` needs a DRAM with a `dram.standard`".to_string())
        );
    }

    #[test]
    fn a_text_without_memory_or_with_two_is_refused() {
        let message = "a platform needs exactly one of the tables `[dram]` and `[bram]`";
        assert_eq!(errors_after_change("[bram]", "[rbam]")[0].0, message);
        assert_eq!(
            errors_after_change("[home]", "[dram]\n[home]")[0].0,
            message
        );
        assert!(read("").unwrap_err().len() > 3);
    }

    #[test]
    fn invalid_toml_is_rejected_with_its_position() {
        let errors = read("name = \n[cache").unwrap_err();
        assert_eq!(errors.len(), 2);
        assert!(errors[0].span.start <= 7, "{errors:?}");
    }

    #[test]
    fn no_truncation_of_a_text_panics() {
        for length in 0..TEXT.len() {
            if let (Some(part), true) = (TEXT.get(..length), length + 2 < TEXT.len()) {
                let errors = read(part).unwrap_err();
                assert!(
                    errors.iter().all(|error| error.span.end <= length),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn shipped_platforms_are_read_under_their_names() {
        for name in Platform::shipped_names() {
            let platform = Platform::shipped(name).unwrap();
            assert_eq!(platform.name, name);
            for (name, unit, quantity) in platform.all_quantities() {
                let text = units::show(quantity.value, unit);
                assert_eq!(units::parse(&text, unit), Ok(quantity.value), "{name}");
            }
        }
        assert!(Platform::shipped("enzian").is_none());
    }

    #[test]
    fn quantities_are_set_by_name() {
        let mut platform = Platform::shipped("enzian-dc-bram").unwrap();
        assert_eq!(platform.set("link.latency", "1.5us"), Ok(()));
        assert_eq!(
            platform.link.latency,
            Quantity::given(1_500_000, "set for this run")
        );
        assert_eq!(platform.set("lines", "100"), Ok(()));
        assert_eq!(platform.lines, 100);
        assert_eq!(platform.set("remotes", "4"), Ok(()));
        assert_eq!(platform.remotes, 4);
        for (name, value, expected) in [
            ("link.latency", "1", "`link.latency` has no unit: "),
            (
                "home.units",
                "3",
                "home.units must be a power of two, not 3",
            ),
            ("lines", "0", "lines must be 1 to 2147483647, not 0"),
            ("remotes", "4097", "remotes must be 1 to 4096, not 4097"),
            (
                "dram.banks",
                "4",
                "there is no `dram.banks` in this platform; there are cores.count, ",
            ),
        ] {
            let error = platform.set(name, value).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
