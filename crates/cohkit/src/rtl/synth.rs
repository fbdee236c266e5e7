//! `cohkit rtl synth`: size of the home or of a system, and depth of its logic.

use super::agents::{home, rejected, remotes};
use super::systems::{printed, supported};
use super::{build_failure, compile, file_name, origin};
use crate::console::Console;
use crate::interrupt::CleanupGuard;
use crate::options::Synth;
use crate::progress::StatusLine;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_rtl::lockstep::build::BuildError;
use cohkit_rtl::print::{image, package};
use cohkit_rtl::synth::levels::{paths, Path, Start};
use cohkit_rtl::synth::netlist::{ModuleSize, Netlist, Size};
use cohkit_rtl::synth::system;
use cohkit_rtl::synth::yosys::{find, Slice, Yosys, TOP};
use cohkit_rtl::systems::build::{units, File};
use cohkit_rtl::systems::directory::Directory;
use cohkit_rtl::systems::sizes::check_parameters;
use serde_json::json;
use std::fmt::Write;

/// Number of sets of each unit's directory, as a power of two.
const SET_BITS: u32 = 7;
/// Number of ways of a set.
const WAYS: usize = 16;
/// Size of the address range in bytes, as a power of two.
const RANGE_BITS: u32 = 36;
/// Number of paths to print.
const MAX_PATHS: usize = 5;

/// Resources of the FPGA to which the home is compared, a VU9P.
const VU9P: Size = Size {
    lut: 1_182_240,
    ff: 2_364_480,
    bram18: 2 * 2_160,
    uram: 960,
};
/// Number of units of the home whose share is published.
const PUBLISHED_UNITS: usize = 64;
/// Published shares of a VU9P for the home with its directory, in percent of LUTs and of BRAM36: `enzian.resources.dc`
/// of experiments/published.toml.
const PUBLISHED: [f64; 2] = [6.86, 5.93];

/// Result for one configuration.
struct Configuration {
    /// Name for users, such as `64 units` or `4 caches`.
    name: String,
    /// Number of slices of a home: 1 for a single unit, otherwise 2. `None` for a system.
    slices: Option<usize>,
    /// True for the home whose share is published.
    is_published: bool,
    /// Resources of the whole design.
    size: Size,
    /// Module types other than the top.
    modules: Vec<MappedModule>,
    /// Longest paths of one slice or of the system, from register or memory.
    paths: Vec<Path>,
}

/// A module type in a mapped configuration.
struct MappedModule {
    /// Instances and resources in the whole design.
    size: ModuleSize,
    /// Levels of the longest path that ends in the module; 0 if there is none.
    depth: u32,
}

impl Configuration {
    /// Returns the configuration of a home with `units` units, from the netlist of one slice.
    ///
    /// # Errors
    /// The netlist has a cell or a loop that cannot be handled, with the reason.
    fn of_home(units: usize, netlist: &Netlist) -> Result<Configuration, String> {
        let slices = slice_count(units);
        let configuration = Configuration::new(counted(units as u64, "unit"), netlist, TOP, slices);
        configuration.map(|configuration| Configuration {
            slices: Some(slices),
            is_published: units == PUBLISHED_UNITS,
            ..configuration
        })
    }

    /// Returns the configuration of `copies` designs with this top.
    ///
    /// # Errors
    /// The netlist has a cell or a loop that cannot be handled, with the reason.
    fn new(
        name: String,
        netlist: &Netlist,
        top: &str,
        copies: usize,
    ) -> Result<Configuration, String> {
        let paths = paths(netlist)?;
        let depth = |module: &str| {
            let module_paths = paths.iter().filter(|path| path.module == module);
            module_paths.map(|path| path.levels).max().unwrap_or(0)
        };
        let modules = netlist.modules().into_iter();
        let modules = modules
            .filter(|module| module.module != top)
            .map(|module| MappedModule {
                depth: depth(&module.module),
                size: ModuleSize {
                    instances: module.instances * copies as u64,
                    size: module.size.times(copies as u64),
                    module: module.module,
                },
            })
            .collect();
        Ok(Configuration {
            name,
            slices: None,
            is_published: false,
            size: netlist.size().times(copies as u64),
            modules,
            paths,
        })
    }

    /// Levels of the longest path that starts at a register or at a memory; 0 if there is none.
    fn depth(&self, start: Start) -> u32 {
        let paths = self.paths.iter().filter(|path| path.start == start);
        paths.map(|path| path.levels).max().unwrap_or(0)
    }

    /// Longest paths from registers or from memories, at most [`MAX_PATHS`], the longest first.
    fn longest_paths(&self, start: Start) -> impl Iterator<Item = &Path> {
        let paths = self.paths.iter().filter(move |path| path.start == start);
        paths.take(MAX_PATHS)
    }
}

/// Maps each configuration with Yosys, and prints its resources and longest paths.
///
/// # Errors
/// The home has no RTL, or Yosys is missing or fails.
pub(super) fn synth(options: &Synth, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let configure = match options.system.is_empty() {
        true => map_homes,
        false => map_system,
    };
    let (configurations, yosys) = configure(options, &source, console)?;
    let result = match options.form.json {
        true => {
            let list = configurations
                .iter()
                .map(|configuration| json(configuration, options, &source, &yosys));
            options
                .form
                .format_output(serde_json::Value::Array(list.collect()), console)
        }
        false => configurations
            .iter()
            .map(|configuration| text(configuration, &source))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    console.print(&result)?;
    Ok(ExitStatus::Success)
}

/// Maps the home with each number of units.
fn map_homes(
    options: &Synth,
    source: &Source,
    console: &Console,
) -> Result<(Vec<Configuration>, Yosys), Failure> {
    let (home, rom) = compile(source, console)?;
    let yosys = find().map_err(build_failure)?;
    let file = file_name(&options.file);
    let origin = origin(source, &file);
    let package = package(&source.protocol, &rom, &origin);
    let image = image(&source.protocol, &home, &rom, &origin);
    let protocol = &source.protocol.name;
    let mut configurations = Vec::new();
    for &units in &options.units {
        let name = counted(units as u64, "unit");
        let slice = slice(units, source.protocol.line_bytes);
        let map = |folder: &std::path::Path| {
            let folder = folder.join(format!("{protocol}-{units}"));
            let stop = console.interrupted;
            yosys.map(&folder, protocol, &package, &image, slice, stop)
        };
        let json = with_folder(options, (protocol, &name), console, map)?;
        let netlist = Netlist::read(&json, TOP);
        let configuration = netlist.and_then(|netlist| Configuration::of_home(units, &netlist));
        configurations.push(configuration.map_err(unreadable)?);
    }
    Ok((configurations, yosys))
}

/// Maps a coherent memory system.
fn map_system(
    options: &Synth,
    source: &Source,
    console: &Console,
) -> Result<(Vec<Configuration>, Yosys), Failure> {
    let remotes = remotes(source, "--system", &options.system)?;
    let home = home(source, remotes, &console.terminal)?;
    let reject = |refusal| rejected(source, "system", &refusal, &console.terminal);
    let agents = supported(source, &home, remotes, &console.terminal)?;
    let file = file_name(&options.file);
    let printed = printed(&agents, &origin(source, &file), options.directory).map_err(reject)?;
    let bad_input = |reason| Failure::new(ExitStatus::BadInput, format!("error: {reason}"));
    check_parameters(&agents, options.directory, &options.parameters).map_err(bad_input)?;
    // The units need the package, and the top needs the units.
    let (top, others) = printed.split_last().expect("a top is printed");
    let files: Vec<File> = [others, &units(), std::slice::from_ref(top)].concat();
    let yosys = find().map_err(build_failure)?;
    let protocol = &source.protocol.name;
    let name = match options.directory {
        Directory::Full => counted(agents.total(), "cache"),
        directory => format!(
            "{}, {} directory",
            counted(agents.total(), "cache"),
            directory.name()
        ),
    };
    let parameters = options.parameters.iter();
    let parameters: Vec<String> = parameters
        .map(|(name, value)| format!(", {name} {value}"))
        .collect();
    let name = name + &parameters.concat();
    let map = |folder: &std::path::Path| {
        let configuration = name.replace(", ", "-").replace(' ', "-");
        let folder = folder.join(format!("{protocol}-{configuration}"));
        let stop = console.interrupted;
        system::map(&yosys, &folder, &agents, &files, &options.parameters, stop)
    };
    let json = with_folder(options, (protocol, &name), console, map)?;
    let top = system::top(&agents);
    let netlist = Netlist::read(&json, &top);
    let configuration = netlist.and_then(|netlist| Configuration::new(name, &netlist, &top, 1));
    Ok((vec![configuration.map_err(unreadable)?], yosys))
}

/// Failure for a netlist that cannot be read, for this reason.
fn unreadable(reason: String) -> Failure {
    let message = format!("error: the netlist of Yosys cannot be read: {reason}");
    Failure::new(ExitStatus::CouldNotRun, message)
}

/// Calls `map` with the folder of the user, or with a temporary one. Shows `protocol` and `configuration` meanwhile.
fn with_folder(
    options: &Synth,
    (protocol, configuration): (&str, &str),
    console: &Console,
    map: impl FnOnce(&std::path::Path) -> Result<String, BuildError>,
) -> Result<String, Failure> {
    if let Some(folder) = &options.build_folder {
        files::make_folder(folder)?;
    }
    let _cleanup_guard = CleanupGuard::new();
    let temporary =
        tempfile::tempdir().map_err(|error| files::cannot_write(&std::env::temp_dir(), &error))?;
    let folder = options.build_folder.as_deref().unwrap_or(temporary.path());
    let status = format!("{protocol}: mapping {configuration} with Yosys");
    let _status_line = StatusLine::new(status, &console.terminal);
    map(folder).map_err(build_failure)
}

/// Number of slices of a home with `units` units.
fn slice_count(units: usize) -> usize {
    if units == 1 {
        1
    } else {
        2
    }
}

/// Parameters of one slice of a home with `units` units in all slices.
fn slice(units: usize, line_bytes: u32) -> Slice {
    let units_per_slice = units / slice_count(units);
    let line_bits = RANGE_BITS - line_bytes.trailing_zeros();
    Slice {
        units: units_per_slice,
        set_bits: SET_BITS,
        // The lowest bit of a line's number selects the slice, the next ones the unit and the set.
        tag_bits: line_bits - 1 - units_per_slice.trailing_zeros() - SET_BITS,
        ways: WAYS,
    }
}

/// Share of a total, in percent.
fn percent(part: f64, total: f64) -> f64 {
    100.0 * part / total
}

/// Result of one configuration as text.
fn text(configuration: &Configuration, source: &Source) -> String {
    let Size { lut, ff, uram, .. } = configuration.size;
    let bram36 = configuration.size.bram36();
    let slices = configuration.slices.map_or(String::new(), |slices| {
        format!(" in {}", counted(slices as u64, "slice"))
    });
    let mut text = format!(
        "{}: {}{slices}: {lut} LUT, {ff} FF, {bram36} BRAM36, {uram} URAM; levels {}, after memory {}\n",
        source.protocol.name,
        configuration.name,
        configuration.depth(Start::Register),
        configuration.depth(Start::Memory),
    );
    let _ = write!(
        text,
        "  of a VU9P: {:.2}% of LUT, {:.2}% of BRAM36",
        percent(lut as f64, VU9P.lut as f64),
        percent(bram36, VU9P.bram36())
    );
    if configuration.is_published {
        let _ = write!(
            text,
            "; published: {:.2}% and {:.2}%",
            PUBLISHED[0], PUBLISHED[1]
        );
    }
    text += "\n\n";
    write_modules(&mut text, &configuration.modules);
    for (start, title) in [
        (Start::Register, "longest paths from registers"),
        (Start::Memory, "longest paths from memory blocks"),
    ] {
        if configuration.depth(start) > 0 {
            let _ = writeln!(text, "\n  {title}:");
        }
        for path in configuration.longest_paths(start) {
            let _ = writeln!(
                text,
                "  {:4}  {} -> {}\n        {}",
                path.levels,
                path.from,
                path.to,
                path.through.join(" ")
            );
        }
    }
    text
}

/// Writes a table of the module types: instances, resources in all instances, and levels of the longest path.
fn write_modules(text: &mut String, modules: &[MappedModule]) {
    let names = modules.iter().map(|module| module.size.module.len());
    let width = names.max().unwrap_or(0);
    let _ = writeln!(
        text,
        "  {:width$}     n     LUT      FF  BRAM36  URAM  levels",
        "module"
    );
    for MappedModule {
        size: module,
        depth,
    } in modules
    {
        let Size { lut, ff, uram, .. } = module.size;
        let _ = writeln!(
            text,
            "  {:width$}  {:4}  {lut:6}  {ff:6}  {:6}  {uram:4}  {depth:6}",
            module.module,
            module.instances,
            module.size.bram36()
        );
    }
}

/// Result of one configuration as JSON, described in `docs/output.md`.
fn json(
    configuration: &Configuration,
    options: &Synth,
    source: &Source,
    yosys: &Yosys,
) -> serde_json::Value {
    let path = |path: &Path| json!({ "levels": path.levels, "from": path.from, "to": path.to, "module": path.module, "through": path.through });
    let longest_paths = |start| {
        let paths = configuration.longest_paths(start);
        paths.map(path).collect::<Vec<_>>()
    };
    let size = |size: Size| json!({ "lut": size.lut, "ff": size.ff, "bram36": size.bram36(), "uram": size.uram });
    let mut value = size(configuration.size);
    let details = json!({
        "protocol": source.protocol.name,
        "configuration": configuration.name,
        "slices": configuration.slices,
        "depth": configuration.depth(Start::Register),
        "depth_after_memory": configuration.depth(Start::Memory),
        "paths": longest_paths(Start::Register),
        "paths_after_memory": longest_paths(Start::Memory),
        "modules": configuration.modules.iter().map(|MappedModule { size: module, depth }| {
            let mut value = size(module.size);
            value["module"] = json!(module.module);
            value["instances"] = json!(module.instances);
            value["depth"] = json!(depth);
            value
        }).collect::<Vec<_>>(),
        "run": {
            "file": options.file.display().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "yosys": yosys.version,
        },
    });
    if let (Some(value), serde_json::Value::Object(details)) = (value.as_object_mut(), details) {
        value.extend(details);
    }
    value
}

#[cfg(test)]
mod tests {
    #[test]
    fn published_shares_match_the_list() {
        let list = include_str!("../../../../experiments/published.toml");
        let [lut, bram] = super::PUBLISHED;
        let shares = list
            .split("[enzian.resources]")
            .nth(1)
            .and_then(|table| table.lines().find(|line| line.starts_with("dc = ")))
            .expect("the list has them");
        assert!(shares.contains(&format!("lut_percent = {lut}")), "{shares}");
        assert!(
            shares.contains(&format!("bram_percent = {bram}")),
            "{shares}"
        );
    }
}
