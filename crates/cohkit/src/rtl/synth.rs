//! `cohkit rtl synth`: size of the home, and depth of its logic.

use super::{build_failure, compile, file_name, origin};
use crate::console::Console;
use crate::interrupt::CleanupGuard;
use crate::options::Synth;
use crate::progress::StatusLine;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_rtl::print::{image, package};
use cohkit_rtl::synth::levels::{paths, Path, Start};
use cohkit_rtl::synth::netlist::{ModuleSize, Netlist, Size};
use cohkit_rtl::synth::yosys::{find, Slice, Yosys, TOP};
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
    /// Number of units in all slices.
    units: usize,
    /// Number of slices: 1 for a single unit, otherwise 2.
    slices: usize,
    /// Resources of all slices together.
    size: Size,
    /// Module types other than the top.
    modules: Vec<MappedModule>,
    /// Longest paths of one slice, from register or memory.
    paths: Vec<Path>,
}

/// A module type in a mapped configuration.
struct MappedModule {
    /// Instances and resources in all slices.
    size: ModuleSize,
    /// Levels of the longest path that ends in the module; 0 if there is none.
    depth: u32,
}

impl Configuration {
    /// Returns the configuration of `units` units, from the netlist of one slice.
    ///
    /// # Errors
    /// The netlist has a cell or a loop that cannot be handled, with the reason.
    fn new(units: usize, netlist: &Netlist) -> Result<Configuration, String> {
        let slices = slice_count(units);
        let paths = paths(netlist)?;
        let depth = |module: &str| {
            let module_paths = paths.iter().filter(|path| path.module == module);
            module_paths.map(|path| path.levels).max().unwrap_or(0)
        };
        let modules = netlist.modules().into_iter();
        let modules = modules
            .filter(|module| module.module != TOP)
            .map(|module| MappedModule {
                depth: depth(&module.module),
                size: ModuleSize {
                    instances: module.instances * slices as u64,
                    size: module.size.times(slices as u64),
                    module: module.module,
                },
            })
            .collect();
        Ok(Configuration {
            units,
            slices,
            size: netlist.size().times(slices as u64),
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

    /// Name for users, such as `64 units`.
    fn name(&self) -> String {
        counted(self.units as u64, "unit")
    }
}

/// Maps each configuration with Yosys, and prints its resources and longest paths.
///
/// # Errors
/// The home has no RTL, or Yosys is missing or fails.
pub(super) fn synth(options: &Synth, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let (home, rom) = compile(&source, console)?;
    let yosys = find().map_err(build_failure)?;
    let file = file_name(&options.file);
    let origin = origin(&source, &file);
    let package = package(&source.protocol, &rom, &origin);
    let image = image(&source.protocol, &home, &rom, &origin);
    if let Some(folder) = &options.build_folder {
        files::make_folder(folder)?;
    }

    let mut configurations = Vec::new();
    for &units in &options.units {
        let cleanup_guard = CleanupGuard::new();
        let temporary = tempfile::tempdir()
            .map_err(|error| files::cannot_write(&std::env::temp_dir(), &error))?;
        let folder = options.build_folder.as_deref().unwrap_or(temporary.path());
        let protocol = &source.protocol.name;
        let status = counted(units as u64, "unit");
        let status = format!("{protocol}: mapping {status} with Yosys");
        let status_line = StatusLine::new(status, &console.terminal);
        let json = yosys
            .map(
                &folder.join(format!("{protocol}-{units}")),
                protocol,
                &package,
                &image,
                slice(units, source.protocol.line_bytes),
                console.interrupted,
            )
            .map_err(build_failure)?;
        // Reading the netlist takes seconds, and needs no file.
        drop((status_line, temporary, cleanup_guard));
        let configuration = Netlist::read(&json, TOP)
            .and_then(|netlist| Configuration::new(units, &netlist))
            .map_err(|reason| {
                let message = format!("error: the netlist of Yosys cannot be read: {reason}");
                Failure::new(ExitStatus::CouldNotRun, message)
            })?;
        configurations.push(configuration);
    }
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
    let mut text = format!(
        "{}: {} in {}: {lut} LUT, {ff} FF, {bram36} BRAM36, {uram} URAM; levels {}, after memory {}\n",
        source.protocol.name,
        configuration.name(),
        counted(configuration.slices as u64, "slice"),
        configuration.depth(Start::Register),
        configuration.depth(Start::Memory),
    );
    let _ = write!(
        text,
        "  of a VU9P: {:.2}% of LUT, {:.2}% of BRAM36",
        percent(lut as f64, VU9P.lut as f64),
        percent(bram36, VU9P.bram36())
    );
    if configuration.units == PUBLISHED_UNITS {
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
        let _ = writeln!(text, "\n  {title}:");
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
        "configuration": configuration.name(),
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
