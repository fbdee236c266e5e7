//! Builds the Verilated home of a protocol as a library.

use super::shapes::Shape;
use crate::rom::Rom;
use crate::sources::SOURCES;
use crate::tool::{self, VersionResult};
use crate::tools::VERILATOR;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Files of the C++ program around the Verilated home, by name.
const DRIVER: &[(&str, &str)] = &[
    (
        "lockstep.cpp",
        include_str!("../../../../hardware/lockstep/lockstep.cpp"),
    ),
    (
        "lockstep.h",
        include_str!("../../../../hardware/lockstep/lockstep.h"),
    ),
];

/// Reason for which the library was not built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// A tool is absent or too old, with installation instructions.
    Missing(String),
    /// A tool is installed but does not run, with the symptom.
    Unusable(String),
    /// The folder cannot be written, with the reason.
    Folder(PathBuf, String),
    /// Verilator or the compiler failed, with their output.
    Failed(String),
    /// The build was cancelled and its files were removed.
    Stopped,
}

/// Time limit for Verilator to print its version.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the installed version of Verilator, as it reports it.
///
/// # Errors
/// Verilator is absent, older than 5.006, or does not run.
pub fn verilator() -> Result<String, BuildError> {
    let path = tool::search_path();
    let (help, oldest) = (VERILATOR.install(), VERILATOR.programs[0].oldest);
    let version = match tool::version("verilator", &["--version"], &path, LIMIT) {
        VersionResult::Output(version) => version,
        VersionResult::Absent => {
            return Err(BuildError::Missing(format!(
                "Verilator is not installed\n  help: {help}"
            )))
        }
        VersionResult::Failed(symptom) => {
            return Err(BuildError::Unusable(format!(
                "Verilator is installed and does not run: {symptom}\n  help: make `verilator --version` run, or {help}"
            )))
        }
    };
    let number = version.split_whitespace().nth(1).and_then(|number| {
        let (major, minor) = number.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    match number {
        Some(number) if number >= oldest => Ok(version),
        Some(_) => Err(BuildError::Missing(format!(
            "Verilator is too old: {version}\n  help: {help}"
        ))),
        None => {
            let symptom = tool::no_version("Verilator", "verilator --version", &version);
            Err(BuildError::Unusable(format!("{symptom}\n  help: {help}")))
        }
    }
}

/// A home as printed by [`crate::print`].
#[derive(Clone, Copy)]
pub struct PrintedHome<'a> {
    /// Name of the protocol.
    pub protocol: &'a str,
    /// The ROM.
    pub rom: &'a Rom,
    /// The SystemVerilog package.
    pub package: &'a str,
}

/// Builds a home of this shape in a folder of its own below `cache`, unless it exists there. Returns the path of the
/// library. With `waveforms`, the library can record them, but runs more slowly. The build ends soon after `stop` is
/// set.
///
/// # Errors
/// [`BuildError`].
pub fn build(
    cache: &Path,
    printed: PrintedHome,
    shape: Shape,
    waveforms: bool,
    stop: &AtomicBool,
) -> Result<PathBuf, BuildError> {
    build_from(SOURCES, cache, printed, shape, waveforms, stop)
}

/// Builds from other sources than [`SOURCES`], for example with a seeded fault. See [`build`].
///
/// # Errors
/// [`BuildError`].
pub fn build_from(
    sources: &[(&str, &str)],
    cache: &Path,
    printed: PrintedHome,
    shape: Shape,
    waveforms: bool,
    stop: &AtomicBool,
) -> Result<PathBuf, BuildError> {
    let key = (sources, DRIVER, printed.package, shape, waveforms);
    build_cached(cache, printed.protocol, key, LIBRARY, |folder| {
        verilate(sources, folder, printed, shape, waveforms, stop)
    })
}

/// Builds a file in a folder of its own below `cache`, unless it exists there. The folder's name has `name` and the hash
/// of `key`, which stands for everything that determines the file. Returns the path of the file.
///
/// # Errors
/// [`BuildError`].
pub(crate) fn build_cached(
    cache: &Path,
    name: &str,
    key: impl Hash,
    file: &str,
    make: impl FnOnce(&Path) -> Result<(), BuildError>,
) -> Result<PathBuf, BuildError> {
    let version = verilator()?;
    let mut hasher = rustc_hash::FxHasher::default();
    (key, version).hash(&mut hasher);
    let folder = cache.join(format!("{name}-{:016x}", hasher.finish()));
    let library = folder.join(file);
    if is_intact(&library) {
        return Ok(library);
    }
    // Built under a temporary name and renamed when complete, so that an interrupted build never counts as built.
    // Threads of one process may build the same file at once.
    static BUILDS: AtomicU64 = AtomicU64::new(0);
    let temporary = cache.join(format!(
        "{name}-{:016x}.{}.{}",
        hasher.finish(),
        std::process::id(),
        BUILDS.fetch_add(1, Ordering::Relaxed)
    ));
    let folder_error =
        |error: std::io::Error| BuildError::Folder(temporary.clone(), error.to_string());
    let build = || {
        fs::create_dir_all(&temporary).map_err(folder_error)?;
        make(&temporary)?;
        seal(&temporary.join(file)).map_err(folder_error)?;
        // Another process may have built the same file meanwhile; a damaged one is removed.
        if folder.exists() && !is_intact(&library) {
            fs::remove_dir_all(&folder)
                .map_err(|error| BuildError::Folder(folder.clone(), error.to_string()))?;
        }
        match fs::rename(&temporary, &folder) {
            Err(_) if is_intact(&library) => Ok(()),
            renamed => renamed.map_err(folder_error),
        }
    };
    let built = build();
    // Remove the files of a failed build.
    let _ = fs::remove_dir_all(&temporary);
    built.map(|()| library)
}

/// Writes files into a folder and runs Verilator there, with the programs that it starts.
///
/// # Errors
/// [`BuildError`].
pub(crate) fn run_verilator(
    files: &[(String, String)],
    command: &mut Command,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<(), BuildError> {
    let folder_error = |error: std::io::Error| BuildError::Folder(folder.into(), error.to_string());
    for (name, text) in files {
        fs::write(folder.join(name), text).map_err(folder_error)?;
    }
    command.env("PATH", tool::search_path());
    match tool::run(command, folder, stop).map_err(folder_error)? {
        None => Err(BuildError::Stopped),
        Some(output) if output.status.success() => Ok(()),
        Some(output) => Err(build_error(output, folder)),
    }
}

/// Maximum number of units per slice for which the C++ code of the home is compiled as one piece.
const MAX_UNSPLIT_UNITS: usize = 8;

/// Name of the library.
const LIBRARY: &str = "lockstep.so";
/// Name of the file beside the library with its checksum.
const SEAL: &str = "lockstep.sum";

/// Returns a checksum of the library. Loading a damaged library can crash the process.
fn checksum(library: &Path) -> io::Result<String> {
    let mut hasher = rustc_hash::FxHasher::default();
    fs::read(library)?.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

/// Writes the checksum of a library beside it.
fn seal(library: &Path) -> io::Result<()> {
    fs::write(library.with_file_name(SEAL), checksum(library)?)
}

/// True if the library exists with its original contents.
fn is_intact(library: &Path) -> bool {
    let sealed = fs::read_to_string(library.with_file_name(SEAL));
    matches!((sealed, checksum(library)), (Ok(sealed), Ok(checksum)) if sealed == checksum)
}

/// Builds the home in a folder.
fn verilate(
    sources: &[(&str, &str)],
    folder: &Path,
    printed: PrintedHome,
    shape: Shape,
    waveforms: bool,
    stop: &AtomicBool,
) -> Result<(), BuildError> {
    let package_file = format!("{}_pkg.sv", printed.protocol);
    let package = [(package_file.as_str(), printed.package)];
    let files = sources.iter().chain(DRIVER).chain(&package);
    let files: Vec<(String, String)> = files
        .map(|(name, text)| (name.to_string(), text.to_string()))
        .collect();
    let mut command = command(sources, &package_file, printed, shape, waveforms);
    run_verilator(&files, &mut command, folder, stop)
}

/// Returns the build command, for sources in its working folder.
fn command(
    sources: &[(&str, &str)],
    package_file: &str,
    printed: PrintedHome,
    shape: Shape,
    waveforms: bool,
) -> Command {
    let mut command = Command::new("verilator");
    command.args(["--cc", "--exe", "--build", "-j", "2", "--assert", "-Wall"]);
    // Small homes run faster as one piece; for large homes the piece would be too large for the C++ compiler.
    if shape.units <= MAX_UNSPLIT_UNITS {
        command.arg("-O3");
    }
    // Code that runs once is not optimised.
    command.args(["-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1"]);
    // State without a reset starts with random bits, so that nothing can depend on it.
    command.args(["--x-assign", "unique", "--x-initial", "unique"]);
    command.args([
        "--top-module",
        "lockstep",
        "--Mdir",
        "made",
        "-o",
        "../lockstep.so",
        "-LDFLAGS",
        "-shared",
    ]);
    command.arg(format!("-DPROTOCOL_PKG={}_pkg", printed.protocol));
    // C++ compilers are slow both for one function with everything and for many pieces that each repeat all
    // declarations; these limits balance the two.
    command.args(["--output-split", "50000", "--output-split-cfuncs", "5000"]);
    if waveforms {
        command.args(["--trace-fst", "--trace-structs"]);
    }
    for (parameter, value) in [
        ("Units", shape.units),
        ("SetWidth", shape.set_bits as usize),
        ("TagWidth", shape.tag_bits as usize),
        ("Ways", shape.ways),
        ("WaysPerStep", shape.ways_per_step),
        ("Reads", shape.reads),
        ("Writes", shape.writes),
        ("Locals", shape.locals),
        ("MaxDeferred", shape.max_deferred),
        ("StoreSlots", shape.store_slots),
        ("ChangeDepth", shape.change_depth),
        ("UnitsPerPort", shape.units_per_port),
        ("PayloadWidth", shape.payload),
        ("Endpoint", shape.endpoint as usize),
        ("MemoryLines", shape.memory_lines),
        ("RecallDelayLog2", shape.recall_delay_log2 as usize),
    ] {
        command.arg(format!("-G{parameter}={value}"));
    }
    command.arg("-CFLAGS").arg(format!(
        "-fPIC -DVL_USER_STOP -DNUM_RX={} -DNUM_TX={} -DNUM_UNITS={} -DPAYLOAD={} -include ../lockstep.h",
        printed.rom.rx.len(),
        printed.rom.tx.len(),
        shape.units,
        shape.payload,
    ));
    command.args(["home_pkg.sv", package_file]);
    command.args(
        sources
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| *name != "home_pkg.sv"),
    );
    command.arg("lockstep.cpp");
    command
}

/// Derives the error from the output of Verilator and of the programs that it starts.
fn build_error(output: Output, folder: &Path) -> BuildError {
    let output_text = [output.stdout, output.stderr].concat();
    let output_text = String::from_utf8_lossy(&output_text);
    let disk_full = "No space left on device";
    if output_text.contains(disk_full) {
        return BuildError::Folder(folder.into(), disk_full.into());
    }
    // The shell reports an absent command with status 127.
    if output_text.contains("exited with 127") || output_text.contains("Error 127") {
        return BuildError::Missing(format!(
            "make or a C++ compiler is not installed\n  help: {}",
            VERILATOR.install()
        ));
    }
    let output_text: Vec<&str> = output_text
        .lines()
        .filter(|line| line.contains("rror") || line.contains("arning"))
        // This line only reports that the command as a whole failed.
        .filter(|line| !line.starts_with("%Error: Command Failed"))
        .take(12)
        .collect();
    BuildError::Failed(match output_text.is_empty() {
        true => format!("Verilator reports no reason ({})", output.status),
        false => output_text.join("\n"),
    })
}
