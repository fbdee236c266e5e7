//! `cohkit rtl`: homes as hardware.

mod agents;
pub(crate) mod home;
mod lockstep;
mod measure;
mod platform;
pub(crate) mod ports;
mod synth;
mod systems;
mod timing;

use crate::console::Console;
use crate::options::{self, RtlCommand};
use crate::progress::StatusLine;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_protocol::construct::{construct, Construction};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Home;
use cohkit_rtl::lockstep::build::{build, BuildError, PrintedHome};
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::print::{file_list, image, package, top, Origin};
use cohkit_rtl::rom::Rom;
use cohkit_rtl::sources::HOME;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Runs the subcommand of `cohkit rtl`.
pub(crate) fn run(options: &options::Rtl, console: &mut Console) -> Result<ExitStatus, Failure> {
    match &options.command {
        RtlCommand::Emit(options) if !options.agents.is_empty() => agents::emit(options, console),
        RtlCommand::Emit(options) if !options.system.is_empty() => systems::emit(options, console),
        RtlCommand::Emit(options) => emit(options, console),
        RtlCommand::Test(options) if !options.system.is_empty() => systems::test(options, console),
        RtlCommand::Test(options) => lockstep::test(options, console),
        RtlCommand::Synth(options) => synth::synth(options, console),
        RtlCommand::Measure(options) if !options.system.is_empty() => {
            timing::measure(options, console)
        }
        RtlCommand::Measure(options) => measure::measure(options, console),
    }
}

/// Compiles the home of a protocol: its controller for one remote, merged, and its ROM.
fn compile(source: &Source, console: &Console) -> Result<(Controller, Rom), Failure> {
    let colour = console.terminal.colour;
    let input_error = |reason: &str, span, help: Option<&str>| {
        let title = format!("no RTL for this home: {reason}");
        Failure::new(
            ExitStatus::BadInput,
            source.error(&title, span, help, colour),
        )
    };
    let (home, permissions) = match &source.protocol.home {
        Home::Policy(_) => {
            let charts = Text {
                width: console.terminal.width,
                ascii: false,
            };
            let construction = construct(&source.protocol).and_then(Construction::sound);
            let construction =
                construction.map_err(|error| source.no_home(&error, &charts, colour))?;
            (construction.controller(1), construction.permissions(1))
        }
        Home::Controller(home) => {
            let help = Some("write the home as a policy; constructed homes support memory latency");
            return Err(input_error(
                "it assumes zero-latency memory",
                home.span,
                help,
            ));
        }
    };
    let rom = Rom::new(&source.protocol, &home)
        .map_err(|refusal| input_error(&refusal.feature, refusal.span, refusal.help.as_deref()))?
        .with_permissions(&home, &permissions);
    Ok((home, rom))
}

/// Origin that the first lines of generated files state. It omits folders, so that output does not depend on the
/// location.
fn origin<'a>(source: &'a Source, file: &'a str) -> Origin<'a> {
    Origin {
        file,
        text: &source.text,
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// Writes files, each with its name and text, into a folder, which is made first.
fn write_outputs(folder: &Path, outputs: &[(String, String)]) -> Result<(), Failure> {
    files::make_folder(folder)?;
    let paths: Vec<PathBuf> = outputs.iter().map(|(name, _)| folder.join(name)).collect();
    let texts = outputs.iter().map(|(_, text)| text.as_str());
    let written: Vec<(&Path, &str)> = paths.iter().map(PathBuf::as_path).zip(texts).collect();
    files::write_atomically(&written)
}

/// Name of a file without its folder.
fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Failure of an interrupted command.
fn interrupted() -> Failure {
    Failure::new(ExitStatus::Interrupted, "interrupted; nothing was written")
}

/// Returns the library of a home in a shape; builds it in the folder `cache` if it is missing. With `waveforms`,
/// the library can write waveforms, which makes it slower.
fn build_library(
    cache: &Path,
    printed: PrintedHome,
    shape: Shape,
    waveforms: bool,
    console: &Console,
) -> Result<PathBuf, Failure> {
    let status = format!(
        "{}: building the RTL of {} units with Verilator",
        printed.protocol,
        2 * shape.units
    );
    let _busy = StatusLine::new(status, &console.terminal);
    build(cache, printed, shape, waveforms, console.interrupted).map_err(build_failure)
}

/// Converts an error of Verilator or Yosys to a failure.
fn build_failure(error: BuildError) -> Failure {
    let message = match error {
        BuildError::Missing(what) | BuildError::Unusable(what) => format!("error: {what}"),
        BuildError::Folder(folder, reason) => format!(
            "error: {}: cannot be written: {reason}\n  help: `--build-cache` names another folder",
            folder.display()
        ),
        BuildError::Failed(output) => format!("error: the RTL cannot be built:\n{output}"),
        BuildError::Stopped => return interrupted(),
    };
    Failure::new(ExitStatus::CouldNotRun, message)
}

/// Writes the package, the ROM image, the top module, the file list and the RTL into a folder.
fn emit(options: &options::Emit, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let (home, rom) = compile(&source, console)?;
    let name = &source.protocol.name;
    let file = file_name(&options.file);
    let origin = origin(&source, &file);
    files::make_folder(&options.out)?;
    let generated = [
        (
            format!("{name}_pkg.sv"),
            package(&source.protocol, &rom, &origin),
        ),
        (
            format!("{name}.mem"),
            image(&source.protocol, &home, &rom, &origin),
        ),
        (format!("{name}_home.sv"), top(&source.protocol, &origin)),
        (format!("{name}.f"), file_list(&source.protocol)),
    ];
    let generated = generated
        .iter()
        .map(|(file, text)| (options.out.join(file), text.as_str()));
    // The package needs the RTL that it is written for, so both are written.
    let rtl = HOME
        .iter()
        .map(|&(file, text)| (options.out.join(file), text));
    let outputs: Vec<(PathBuf, &str)> = generated.chain(rtl).collect();
    let files: Vec<(&Path, &str)> = outputs
        .iter()
        .map(|(file, text)| (file.as_path(), *text))
        .collect();
    files::write_atomically(&files)?;
    let result = if options.json {
        let path_with_suffix = |suffix: &str| {
            let file = options.out.join(format!("{name}{suffix}"));
            file.display().to_string()
        };
        let value = json!({
            "protocol": name,
            "states": rom.states.len(),
            "events": rom.events.len(),
            "rows": rom.used().count(),
            "row_bits": rom.row_bits(),
            "address_bits": rom.state_bits() + rom.event_bits(),
            "run": {
                "file": options.file.display().to_string(),
                "package": path_with_suffix("_pkg.sv"),
                "image": path_with_suffix(".mem"),
                "top": path_with_suffix("_home.sv"),
                "file_list": path_with_suffix(".f"),
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        format!("{value:#}\n")
    } else {
        format!(
            "{name}: {}, {}, {} of {} bits: {name}_pkg.sv, {name}.mem; the top and the RTL: {name}.f\n",
            counted(rom.states.len() as u64, "state"),
            counted(rom.events.len() as u64, "event"),
            counted(rom.used().count() as u64, "row"),
            rom.row_bits(),
        )
    };
    console.print(&result)?;
    Ok(ExitStatus::Success)
}
