//! `cohkit rtl`: homes as hardware.

pub(crate) mod home;
mod lockstep;
mod measure;
mod platform;
mod synth;

use crate::console::Console;
use crate::files;
use crate::options::{self, RtlCommand};
use crate::outcome::{ExitStatus, Failure};
use crate::progress::StatusLine;
use crate::protocols::Source;
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_protocol::construct::{construct, Construction};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Home;
use cohkit_rtl::lockstep::build::{build, BuildError, Printed};
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::print::{file_list, image, package, top, Origin};
use cohkit_rtl::rom::Rom;
use cohkit_rtl::sources::HOME;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) fn run(options: &options::Rtl, console: &mut Console) -> Result<ExitStatus, Failure> {
    match &options.command {
        RtlCommand::Emit(options) => emit(options, console),
        RtlCommand::Test(options) => lockstep::test(options, console),
        RtlCommand::Synth(options) => synth::synth(options, console),
        RtlCommand::Measure(options) => measure::measure(options, console),
    }
}

/// Compiles the home of a protocol: its controller for one remote, merged, and its ROM.
fn compile(source: &Source, console: &Console) -> Result<(Controller, Rom), Failure> {
    let colour = console.terminal.colour;
    let wrong = |what: &str, span, help: Option<&str>| {
        let title = format!("no RTL for this home: {what}");
        Failure::new(
            ExitStatus::BadInput,
            source.error(&title, span, help, colour),
        )
    };
    let (home, rights) = match &source.protocol.home {
        Home::Policy(_) => {
            let charts = Text {
                width: console.terminal.width,
                ascii: false,
            };
            let construction = construct(&source.protocol).and_then(Construction::sound);
            let construction =
                construction.map_err(|error| source.no_home(&error, &charts, colour))?;
            (construction.controller(1), construction.rights(1))
        }
        Home::Controller(home) => {
            let help = Some("write the home as a policy; constructed homes support memory latency");
            return Err(wrong("it assumes zero-latency memory", home.span, help));
        }
    };
    let rom = Rom::new(&source.protocol, &home)
        .map_err(|refusal| wrong(&refusal.what, refusal.span, refusal.help.as_deref()))?
        .with_rights(&home, &rights);
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

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn interrupted() -> Failure {
    Failure::new(ExitStatus::Interrupted, "interrupted; nothing was written")
}

/// Returns the library of a home; builds it in the folder `cache` if it is missing.
fn built(
    cache: &Path,
    printed: Printed,
    shape: Shape,
    waveforms: bool,
    console: &Console,
) -> Result<PathBuf, Failure> {
    let doing = format!(
        "{}: building the RTL of {} units with Verilator",
        printed.protocol,
        2 * shape.units
    );
    let _busy = StatusLine::new(doing, &console.terminal);
    build(cache, printed, shape, waveforms, console.interrupted).map_err(not_built)
}

fn not_built(error: BuildError) -> Failure {
    let message = match error {
        BuildError::Missing(what) | BuildError::Unusable(what) => format!("error: {what}"),
        BuildError::Folder(folder, why) => format!(
            "error: {}: cannot be written: {why}\n  help: `--build` names another folder",
            folder.display()
        ),
        BuildError::Failed(said) => format!("error: the RTL cannot be built:\n{said}"),
        BuildError::Stopped => return interrupted(),
    };
    Failure::new(ExitStatus::CouldNotRun, message)
}

fn emit(options: &options::Emit, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console)?;
    let (home, rom) = compile(&source, console)?;
    let name = &source.protocol.name;
    let file = file_name(&options.file);
    let origin = origin(&source, &file);
    files::make_folder(&options.out)?;
    let own = [
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
    let own = own
        .iter()
        .map(|(file, text)| (options.out.join(file), text.as_str()));
    // The package needs the RTL that it is written for, so both are written.
    let rtl = HOME
        .iter()
        .map(|&(file, text)| (options.out.join(file), text));
    let written: Vec<(PathBuf, &str)> = own.chain(rtl).collect();
    let files: Vec<(&Path, &str)> = written
        .iter()
        .map(|(file, text)| (file.as_path(), *text))
        .collect();
    files::write_together(&files)?;
    let result = if options.json {
        let of = |end: &str| {
            let file = options.out.join(format!("{name}{end}"));
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
                "package": of("_pkg.sv"),
                "image": of(".mem"),
                "top": of("_home.sv"),
                "list": of(".f"),
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
