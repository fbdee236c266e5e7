//! Platforms as TOML files.
//!
//! Every quantity is a table under its name (`home.units` is the key `units` of the table `[home]`). The table has
//! `value`, `origin` and, if no source gives the value, `range = [lowest, highest]`. There are no silent defaults: a
//! missing key, an unknown key and a missing unit are errors. Only parts that a machine can lack may be left out, such
//! as a bus, or quantities that otherwise equal another one.

use super::former_names::{former_name, former_name_warning, FORMER_LOWER};
use super::jedec::named;
use super::{is_machine_wide, Agents, Cores, Framing, Layer, Link, Platform, Row, Translation};
use super::{Cache, HomeCache, JedecDram, Memory, MemoryKind, Standard};
use super::{AGENTS, LOWER, TABLE};
use cohkit_base::words::{counted, nearest};
use cohkit_units::{self as units, Quantity, Unit};
use std::ops::{Range, RangeInclusive};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// An error in a platform file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlatformError {
    /// Description, with the key concerned.
    pub message: String,
    /// Location in the file, in bytes. For a missing key, this is the table that lacks it, or the end of the file.
    pub span: Range<usize>,
}

/// Reads a platform.
///
/// # Errors
/// All errors, in the order of the file.
pub fn read(text: &str) -> Result<Platform, Vec<PlatformError>> {
    read_document(text, Reader::read_platform)
}

/// A quantity to be read.
#[derive(Clone, Copy)]
pub struct Kind<'a> {
    /// Full name.
    pub name: &'a str,
    /// Unit of the value.
    pub unit: Unit,
    /// Check of a value in the base unit. Its error is a sentence that begins with the name.
    pub check: &'a dyn Fn(u64) -> Result<(), String>,
}

/// Reads a machine other than the simulator's: its name, and exactly these quantities.
///
/// # Errors
/// All errors, in the order of the file.
pub fn quantities(
    text: &str,
    kinds: &[Kind],
) -> Result<(String, Vec<Quantity>), Vec<PlatformError>> {
    read_document(text, |reader, table| {
        let name = reader.read_string(table, "name");
        let mut quantities = Vec::new();
        let mut known = Vec::new();
        for kind in kinds {
            match reader.find_quantity(table, kind.name, &mut known) {
                Some(value) => quantities.push(reader.read_quantity(*kind, value)),
                None => reader.report_missing(table, kind.name),
            }
        }
        let former_names = known.iter().map(String::as_str);
        let known = std::iter::once("name").chain(kinds.iter().map(|kind| kind.name));
        reader.report_unknown_keys(table, "", &known.chain(former_names).collect::<Vec<_>>());
        Some((name?, quantities.into_iter().collect::<Option<_>>()?))
    })
}

/// Parses a file and applies `read_table` to it. Returns the result if there are no errors.
fn read_document<T>(
    text: &str,
    read_table: impl FnOnce(&mut Reader, &DeTable) -> Option<T>,
) -> Result<T, Vec<PlatformError>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let end = text.len()..text.len();
    let mut reader = Reader {
        end: end.clone(),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    // After a syntax error, the rest may be misread. Therefore, only syntax errors are reported.
    let result = if errors.is_empty() {
        read_table(&mut reader, document.get_ref())
    } else {
        let omitted = errors.len().saturating_sub(MAX_SYNTAX_ERRORS);
        for error in errors.into_iter().take(MAX_SYNTAX_ERRORS) {
            let message = error.message().to_string();
            reader.report(error.span().unwrap_or(end.clone()), message);
        }
        if omitted > 0 {
            let omitted = counted(omitted as u64, "more syntax error");
            reader.report(end, format!("{omitted} in the TOML file"));
        }
        None
    };
    match result {
        Some(result) if reader.errors.is_empty() => Ok(result),
        _ => {
            reader.errors.sort_by_key(|error| error.span.start);
            Err(reader.errors)
        }
    }
}

/// Origin of a page policy that a file gives as a word, which has no origin of its own.
const PAGE_POLICY_ORIGIN: &str = "the platform file states no origin: `page_policy` is a word";

/// Returns the error of a file with the former and the current name of a quantity.
fn both_names_error(former: &str, name: &str) -> String {
    format!("`{former}` is the former name of `{name}`, which is given, too: remove one of them")
}

/// Maximum number of syntax errors reported one by one. A file that is not TOML has one in every line.
const MAX_SYNTAX_ERRORS: usize = 5;

/// State while a file is read. Reading continues after an error, so that all errors are reported at once.
struct Reader {
    /// End of the file, as an empty range.
    end: Range<usize>,
    /// Errors found so far, in any order.
    errors: Vec<PlatformError>,
    /// Warnings about former names, one sentence each.
    warnings: Vec<String>,
}

impl Reader {
    /// Records an error at a range of the file, in bytes.
    fn report(&mut self, span: Range<usize>, message: impl Into<String>) {
        let message = message.into();
        self.errors.push(PlatformError { message, span });
    }

    /// Reads a complete platform. The result is only valid if no errors were reported.
    fn read_platform(&mut self, table: &DeTable) -> Option<Platform> {
        let name = self.read_string(table, "name");
        let remotes = self.read_count(table, "remotes", 1..=Platform::MAX_AGENTS.into());
        let lines = self.read_count(table, "lines", 1..=Platform::MAX_LINES);
        let protocol = match table.contains_key("protocol") {
            true => Some(self.read_string(table, "protocol")?),
            false => None,
        };
        let known = ["name", "protocol", "remotes", "lines"];
        let mut known: Vec<String> = known.map(String::from).into();
        let has_parts = ["bus", "switch", "hosts", "uplink"].map(|part| table.contains_key(part));
        if let ([_, false, true, _], Some(hosts)) = (has_parts, table.get("hosts")) {
            self.report(
                hosts.span(),
                "`switch` is missing: a switch connects the hosts",
            );
        }
        if let ([_, _, false, true], Some(uplink)) = (has_parts, table.get("uplink")) {
            self.report(
                uplink.span(),
                "`hosts` is missing: two levels of switches connect hosts",
            );
        }
        let mut platform = self.read_level(table, "", has_parts, &mut known)?;
        if let Some(prefix) = self.lower_prefix(table, &mut known) {
            let mut below = self.read_level(table, prefix, [false; 4], &mut known)?;
            known.push(format!("{prefix}remotes"));
            let remotes = self.read_count(
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
        self.report_unknown_keys(table, "", &known);
        platform.implausible = std::mem::take(&mut self.warnings);
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
            self.report(former.span(), message);
            known.push("below".to_string());
            return Some(LOWER);
        }
        self.warnings.push(former_name_warning("below", "lower"));
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
                self.report(self.end.clone(), message);
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
            match self.find_quantity(table, &name, known) {
                Some(value) => self.read_into(quantity, row, &name, value),
                None if row.remove_from(&mut platform) => {}
                None if row.name == "dram.closed_page" && has_page_policy => {}
                None => self.report_missing(table, &name),
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
        let count = self.read_count(table, &remotes, 0..=Platform::MAX_AGENTS.into());
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
            match self.find_quantity(table, &name, known) {
                Some(value) => self.read_into(quantity, row, &name, value),
                None if row.remove_from_agents(&mut agents) => {}
                None => self.report_missing(table, &name),
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
        let text = self.read_choice(table, &name)?;
        let standard = named(&name, &text, &Standard::ALL);
        match standard {
            Ok(standard) => Some(MemoryKind::Jedec(standard)),
            Err(error) => {
                self.report(
                    find(table, &name).map_or(self.end.clone(), Spanned::span),
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
                    self.report(former.span(), both_names_error(&name, &current));
                }
                self.warnings.push(former_name_warning(&name, &current));
            }
            if let Some(text) = self.read_choice(table, &name) {
                if let Err(error) = dram.set_choice(&name, &text, PAGE_POLICY_ORIGIN) {
                    self.report(
                        find(table, &name).map_or(self.end.clone(), Spanned::span),
                        error,
                    );
                }
            }
            known.push(name);
        }
    }

    /// Reads the text under a dotted name.
    fn read_choice(&mut self, table: &DeTable, name: &str) -> Option<String> {
        match find(table, name).map(|value| (value.get_ref(), value.span())) {
            Some((DeValue::String(text), _)) => Some(text.to_string()),
            Some((_, span)) => {
                self.report(span, format!("`{name}` must be a string"));
                None
            }
            None => {
                self.report_missing(table, name);
                None
            }
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
                Err(error) => self.report(value.span(), error),
            }
        }
        known.push(name);
    }

    /// Returns the value of a quantity, under its name or its former name, and adds a former name to the known ones.
    /// A file with both names has an error.
    fn find_quantity<'t, 'd>(
        &mut self,
        table: &'t DeTable<'d>,
        name: &str,
        known: &mut Vec<String>,
    ) -> Option<&'t Spanned<DeValue<'d>>> {
        let value = find(table, name);
        let former = former_name(name).and_then(|former| Some((find(table, &former)?, former)));
        let Some((former_value, former)) = former else {
            return value;
        };
        if value.is_some() {
            self.report(former_value.span(), both_names_error(&former, name));
        }
        self.warnings.push(former_name_warning(&former, name));
        known.push(former);
        value.or(Some(former_value))
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
        if let Some(read) = self.read_quantity(Kind { name, unit, check }, value) {
            *quantity = read;
        }
    }

    /// Reports a missing key, at its table, or at the end of the file if the table is missing, too.
    fn report_missing(&mut self, table: &DeTable, name: &str) {
        let parent = name
            .rsplit_once('.')
            .and_then(|(parent, _)| find(table, parent));
        let place = parent.map_or(self.end.clone(), Spanned::span);
        self.report(place, format!("`{name}` is missing"));
    }

    /// Reports all keys of a table, and of the tables in it, that are not in `known`. `known` has full names;
    /// `prefix` is that of the table's keys.
    fn report_unknown_keys(&mut self, table: &DeTable, prefix: &str, known: &[&str]) {
        for (key, value) in table.iter() {
            let name = format!("{prefix}{}", key.get_ref());
            if known.contains(&name.as_str()) {
                continue;
            }
            let child_prefix = format!("{name}.");
            match value.get_ref() {
                DeValue::Table(table)
                    if known.iter().any(|known| known.starts_with(&child_prefix)) =>
                {
                    self.report_unknown_keys(table, &child_prefix, known);
                }
                _ => {
                    let siblings = known.iter().filter(|known| known.starts_with(prefix));
                    let siblings: Vec<&str> = siblings.copied().collect();
                    // Compare without the prefix: all names share it, so it says nothing about the intended one.
                    let own_names = siblings
                        .iter()
                        .filter_map(|known| known.strip_prefix(prefix));
                    let suggestion = nearest(key.get_ref(), own_names);
                    let suggestion = suggestion
                        .map(|suggestion| format!("did you mean `{prefix}{suggestion}`? "));
                    let suggestion = suggestion.unwrap_or_default();
                    let siblings = siblings.join(", ");
                    let message = match Row::layer_requirement(&name) {
                        Some(requirement) => format!("unknown key `{name}`: it {requirement}"),
                        None => format!("unknown key `{name}`; {suggestion}there are {siblings}"),
                    };
                    self.report(key.span(), message);
                }
            }
        }
    }

    /// Reads a quantity from its table: value, origin and optional range. Returns `None` after an error, which is
    /// reported.
    fn read_quantity(&mut self, kind: Kind, value: &Spanned<DeValue>) -> Option<Quantity> {
        let Kind { name, unit, .. } = kind;
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!("`{name}` is a table: {{ value = ..., origin = \"...\" }}");
            self.report(value.span(), message);
            return None;
        };
        self.report_unknown_keys(
            table,
            &format!("{name}."),
            &quantity_keys(name).each_ref().map(String::as_str),
        );
        let origin = match table.get("origin").map(|o| (o.get_ref(), o.span())) {
            Some((DeValue::String(origin), _)) if !origin.trim().is_empty() => {
                Some(origin.to_string())
            }
            Some((_, span)) => {
                let message =
                    format!("`{name}.origin` must be a string that names the source of the value");
                self.report(span, message);
                None
            }
            None => {
                self.report(value.span(), format!("`{name}` has no origin"));
                None
            }
        };
        let number = match table.get("value") {
            Some(number) => self.read_amount(kind, number),
            None => {
                self.report(value.span(), format!("`{name}` has no value"));
                None
            }
        };
        let Some(range) = table.get("range") else {
            return Some(Quantity::given(number?, &origin?));
        };
        let ends = match range.get_ref() {
            DeValue::Array(ends) if ends.len() == 2 => ends,
            _ => {
                self.report(
                    range.span(),
                    format!("`{name}.range` is `[lowest, highest]`"),
                );
                return None;
            }
        };
        let lowest = self.read_amount(kind, &ends[0]);
        let highest = self.read_amount(kind, &ends[1]);
        let (number, lowest, highest) = (number?, lowest?, highest?);
        if !(lowest..=highest).contains(&number) {
            let [number, lowest, highest] = [number, lowest, highest].map(|n| units::show(n, unit));
            let message = format!(
                "`{name}` is {number}, outside its range {lowest} to {highest}; widen the range of plausible values if the value is correct"
            );
            self.report(range.span(), message);
            return None;
        }
        Some(Quantity::assumed(number, (lowest, highest), &origin?))
    }

    /// Reads a number with its unit, and checks it. Whole numbers need no quotes.
    fn read_amount(&mut self, kind: Kind, value: &Spanned<DeValue>) -> Option<u64> {
        let number = self.parse_number(kind.name, kind.unit, value)?;
        match (kind.check)(number) {
            Ok(()) => Some(number),
            Err(error) => {
                self.report(value.span(), error);
                None
            }
        }
    }

    /// Parses a number with the unit of the quantity, without a check of its limits. Reports an error.
    fn parse_number(&mut self, name: &str, unit: Unit, value: &Spanned<DeValue>) -> Option<u64> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
            DeValue::Float(number) => number.as_str().to_string(),
            _ => {
                self.report(
                    value.span(),
                    format!("`{name}` must be a number, or a string with a unit"),
                );
                return None;
            }
        };
        match units::parse(&text, unit) {
            Ok(number) => Some(number),
            Err(error) => {
                self.report(value.span(), format!("`{name}` {error}"));
                None
            }
        }
    }

    /// Reads a string that is not empty. Reports an error.
    fn read_string(&mut self, table: &DeTable, key: &str) -> Option<String> {
        match table.get(key).map(|value| (value.get_ref(), value.span())) {
            Some((DeValue::String(text), _)) if !text.is_empty() => Some(text.to_string()),
            Some((_, span)) => {
                self.report(span, format!("`{key}` must be a string"));
                None
            }
            None => {
                self.report_missing(table, key);
                None
            }
        }
    }

    /// Reads a whole number within `range`. Reports an error.
    fn read_count(
        &mut self,
        table: &DeTable,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let Some(value) = find(table, key) else {
            self.report_missing(table, key);
            return None;
        };
        let number = self.parse_number(key, Unit::Count, value)?;
        if range.contains(&number) {
            return Some(number);
        }
        let (low, high) = range.into_inner();
        self.report(
            value.span(),
            format!("{key} must be {low} to {high}, not {number}"),
        );
        None
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

/// Keys of a quantity's table.
fn quantity_keys(name: &str) -> [String; 3] {
    ["value", "range", "origin"].map(|part| format!("{name}.{part}"))
}

/// Returns translation quantities to be filled, if the file has a table of them.
fn blank_translation(table: &DeTable, prefix: &str) -> Option<Translation> {
    find(table, &format!("{prefix}translation")).map(|_| Translation::new())
}

/// Returns the value under a dotted name.
fn find<'t, 'd>(table: &'t DeTable<'d>, name: &str) -> Option<&'t Spanned<DeValue<'d>>> {
    match name.split_once('.') {
        None => table.get(name),
        Some((first, rest)) => match table.get(first)?.get_ref() {
            DeValue::Table(inner) => find(inner, rest),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// A file that is not TOML has an error in every line, of which only the first are reported.
    #[test]
    fn syntax_errors_are_reported_up_to_a_limit() {
        for (lines, reported) in [
            (1, 1),
            (MAX_SYNTAX_ERRORS, MAX_SYNTAX_ERRORS),
            (90, MAX_SYNTAX_ERRORS + 1),
        ] {
            let errors = read(&"no toml\n".repeat(lines)).unwrap_err();
            assert_eq!(errors.len(), reported, "{lines}");
            assert_eq!(errors[0].message, "key with no value, expected `=`");
        }
        let errors = read(&"no toml\n".repeat(90)).unwrap_err();
        let last = errors.last().expect("there are some");
        assert_eq!(last.message, "85 more syntax errors in the TOML file");
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
