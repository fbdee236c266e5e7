//! Homes that tests build with Verilator.

// Each test uses only some of these functions.
#![allow(dead_code)]

use cohkit_testing::require;
pub mod seeded;

use cohkit_protocol::construct::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_rtl::lockstep::build::{build_from, PrintedHome};
use cohkit_rtl::lockstep::model::Model;
use cohkit_rtl::lockstep::reachability::ReachabilityGraph;
use cohkit_rtl::lockstep::setup::Setup;
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::print::{package, Origin};
use cohkit_rtl::rom::Rom;
pub use require::require;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::Mutex;

/// A stop flag that is never set.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// A protocol, its home for one remote, the ROM, the paths to its rows, and the package.
pub struct Compiled {
    pub protocol: Protocol,
    pub home: Controller,
    pub rom: Rom,
    pub graph: ReachabilityGraph,
    pub package: String,
}

/// Compiles a shipped protocol.
pub fn compile_shipped(file: &str) -> Compiled {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("two folders up");
    let text =
        std::fs::read_to_string(root.join("protocols").join(file)).expect("readable protocol file");
    compile_text(file, &text)
}

/// Compiles a protocol; `file` is its name in printed headers.
pub fn compile_text(file: &str, text: &str) -> Compiled {
    let protocol = text::parse(text).expect("protocol without errors");
    let construction = construct(&protocol).expect("protocol with a home");
    let home = construction.flat(true);
    let rom = Rom::new(&protocol, &home).expect("ROM within the hardware limits");
    let rom = rom.with_permissions(&home, &construction.flat_permissions(true));
    let graph = ReachabilityGraph::new(&protocol, &home, &rom).expect("small reachability graph");
    // Print with the same header as the command, so that both share cached builds.
    let origin = Origin {
        file,
        text,
        version: env!("CARGO_PKG_VERSION"),
    };
    let package = package(&protocol, &rom, &origin);
    Compiled {
        protocol,
        home,
        rom,
        graph,
        package,
    }
}

/// A home's RTL as a library, and a folder for images.
pub struct Built {
    /// Protocol and ROM of the home.
    pub compiled: Compiled,
    /// Parameters of the build.
    pub shape: Shape,
    /// Library to be loaded by [`Model::open`].
    pub library: PathBuf,
    /// Folder for the images of ROMs, removed at the end.
    pub folder: tempfile::TempDir,
    /// Further Verilog plusargs for the RTL.
    pub argument: String,
}

impl Built {
    /// Returns the configuration of lockstep runs with this home.
    pub fn setup(&self) -> Setup<'_> {
        let Compiled {
            protocol,
            home,
            rom,
            graph,
            ..
        } = &self.compiled;
        Setup {
            protocol,
            home,
            rom,
            library: &self.library,
            shape: self.shape,
            graph: Some(graph),
            argument: &self.argument,
            folder: self.folder.path(),
            stop: &NEVER,
        }
    }

    /// Creates the home alone, with its ROM.
    pub fn model(&self) -> Model {
        self.model_without(&[])
    }

    /// Creates the home alone, with a ROM that lacks these rows, by state and event.
    pub fn model_without(&self, omitted_rows: &[(usize, usize)]) -> Model {
        let rom = &self.compiled.rom;
        let row = |(state, event)| {
            let word = rom.word(rom.row(state, event));
            format!("@{:x} {word:x}\n", rom.address(state, event))
        };
        let remaining_rows = rom.used().filter(|row| !omitted_rows.contains(row));
        let image = remaining_rows.map(row).collect::<String>();
        let file = self.folder.path().join("rows.mem");
        std::fs::write(&file, image).expect("writable file");
        Model::open(&self.library, &file, &self.argument).expect("the library was built")
    }
}

/// Builds the RTL of a protocol's home from these sources, once for all tests; `None` if Verilator is absent and not
/// required.
pub fn build_home(compiled: Compiled, sources: &[(&str, &str)], shape: Shape) -> Option<Built> {
    if !require("verilator") {
        return None;
    }
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let Compiled {
        protocol,
        rom,
        package,
        ..
    } = &compiled;
    let build_lock = ONE_AT_A_TIME.lock();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lockstep");
    let printed = PrintedHome {
        protocol: &protocol.name,
        rom,
        package,
    };
    let library = build_from(sources, &cache, printed, shape, false, &NEVER)
        .unwrap_or_else(|error| panic!("{error:?}"));
    drop(build_lock);
    let folder = tempfile::tempdir().expect("a temporary folder");
    Some(Built {
        compiled,
        shape,
        library,
        folder,
        argument: String::new(),
    })
}
