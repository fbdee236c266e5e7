//! RTL as the home of a simulated machine.

use super::lockstep::default_cache_folder;
use super::{build_library, compile, origin};
use crate::console::Console;
use crate::interrupt::CleanupGuard;
use crate::options::{ExecutorOptions, HomeKind};
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_rtl::lockstep::build::PrintedHome;
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::print::{image, package};
use cohkit_rtl::verilated::Verilated;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::ClockedHomeFactory;
use std::sync::Arc;

/// Returns the RTL home that replaces the simulator's home; `None` if the options ask for the simulator's. Builds the
/// home in the platform's size if it is missing.
///
/// # Errors
/// The home has no RTL, does not fit the platform, or cannot be built.
pub(crate) fn build_rtl_home(
    options: &ExecutorOptions,
    source: &Source,
    platform: &Platform,
    console: &mut Console,
) -> Result<Option<ClockedHomeFactory>, Failure> {
    if options.home_executor == HomeKind::Model {
        return Ok(None);
    }
    let shape = shape(platform)?;
    let (home, rom) = compile(source, console)?;
    let protocol = &source.protocol;
    let file = super::file_name(&source.path);
    let origin = origin(source, &file);
    let text = package(protocol, &rom, &origin);
    let cache = options
        .build_cache
        .clone()
        .unwrap_or_else(default_cache_folder);
    files::make_folder(&cache)?;
    let printed = PrintedHome {
        protocol: &protocol.name,
        rom: &rom,
        package: &text,
    };
    let cleanup_guard = CleanupGuard::new();
    let library = build_library(&cache, printed, shape, false, console)?;
    drop(cleanup_guard);
    let rows = library.with_file_name(format!("{}.mem", protocol.name));
    files::write(&rows, &image(protocol, &home, &rom, &origin))?;
    let line_bytes = protocol.line_bytes;
    let cache = &platform.cache;
    let fold = match cache.index_hash.value {
        0 => 0,
        _ => cache.sets.value.trailing_zeros(),
    };
    Ok(Some(Arc::new(move || {
        let home = Verilated::open(&library, &rows, rom.clone(), line_bytes, fold)?;
        Ok(Box::new(home))
    })))
}

/// Shape of the home for a platform: a directory with as many sets and ways as the remote's cache.
fn shape(platform: &Platform) -> Result<Shape, Failure> {
    let reject = |reason: String, help: &str| {
        let message = format!(
            "error: the home in hardware does not fit the platform {}: {reason}\n  help: {help}",
            platform.name
        );
        Err(Failure::new(ExitStatus::BadInput, message))
    };
    let (slices, units) = (platform.home.slices.value, platform.home.units.value);
    let (sets, ways) = (platform.cache.sets.value, platform.cache.ways.value);
    if platform.remotes != 1 {
        return reject(
            format!("it serves one remote, not {}", platform.remotes),
            "`--set remotes=1`",
        );
    }
    if slices != 2 || units > 32 {
        return reject(
            format!("it has two slices of up to 32 units, not {slices} of {units}"),
            "`--set home.slices=2 --set home.units=32`",
        );
    }
    if ways < 4 || !ways.is_power_of_two() || sets < 2 * slices * units {
        return reject(
            format!("its directory has 4, 8 or 16 ways and at least 2 sets in each unit, as many in all as the cache has; that has {sets} sets of {ways} ways"),
            "other numbers by `--set cache.sets=8192 --set cache.ways=16`",
        );
    }
    let set_bits = (sets / (slices * units)).trailing_zeros();
    Ok(Shape::for_cache(units as usize, set_bits, ways as usize))
}
