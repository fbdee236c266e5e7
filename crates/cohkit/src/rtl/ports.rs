//! Systems in Verilator whose processor ports litmus tests drive.

use super::agents::{home, rejected};
use super::lockstep::default_cache_folder;
use super::systems::{printed, supported};
use super::{build_failure, file_name, origin};
use crate::console::Terminal;
use crate::progress::StatusLine;
use cohkit_api::files;
use cohkit_api::litmus::PortSystems;
use cohkit_api::outcome::Failure;
use cohkit_api::shell_word::quoted;
use cohkit_api::source::Source;
use cohkit_litmus::kinds::Kinds;
use cohkit_protocol::remotes::Remotes;
use cohkit_rtl::systems::build::{build, units, Bench, Options};
use cohkit_rtl::systems::directory::{Directory, Entries};
use cohkit_rtl::systems::ports::SystemPorts;
use cohkit_rtl::systems::sizes::Sizes;
use cohkit_system::ports::Ports;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Systems of one protocol, each built and started when a test needs it first.
pub(crate) struct Systems<'s> {
    /// The protocol.
    source: &'s Source,
    /// System of the file that the options name.
    system: Option<&'s str>,
    /// Folder of built programs that the options name.
    named_cache: Option<&'s Path>,
    /// Folder of built programs.
    cache: PathBuf,
    /// Terminal of messages.
    terminal: Terminal,
    /// Cancels builds and runs.
    stop: &'s AtomicBool,
    /// Started systems, with their numbers of caches of each kind.
    started: Vec<(Remotes, SystemPorts<'s>)>,
}

impl<'s> Systems<'s> {
    /// Prepares systems whose programs are in `cache`, by default in a folder of the current user. `system` is the system
    /// of the file whose sizes the protocol has, if the options name one. Setting `stop` cancels builds and runs.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(crate) fn new(
        source: &'s Source,
        (system, cache): (Option<&'s str>, Option<&'s Path>),
        terminal: Terminal,
        stop: &'s AtomicBool,
    ) -> Result<Systems<'s>, Failure> {
        let named_cache = cache;
        let cache = cache.map_or_else(default_cache_folder, Path::to_path_buf);
        files::make_folder(&cache)?;
        Ok(Systems {
            source,
            system,
            named_cache,
            cache,
            terminal,
            stop,
            started: Vec::new(),
        })
    }

    /// Builds and starts a system.
    fn start(&self, remotes: Remotes) -> Result<SystemPorts<'s>, Failure> {
        let (source, terminal) = (self.source, &self.terminal);
        let home = home(source, remotes, terminal)?;
        let agents = supported(source, &home, remotes, terminal)?;
        let file = file_name(&source.path);
        let directory = Directory::Full;
        let printed = printed(&agents, &origin(source, &file), directory)
            .map_err(|refusal| rejected(source, "system", &refusal, terminal))?;
        let program = {
            let status = format!("{}: building the RTL with Verilator", source.protocol.name);
            let _busy = StatusLine::new(status, terminal);
            let options = Options {
                bench: Bench::Ports,
                directory,
                entries: Entries::default(),
                sizes: Sizes::default(),
                waveforms: false,
            };
            let files = (&units()[..], &printed[..]);
            build(&self.cache, &agents, files, options, self.stop).map_err(build_failure)?
        };
        let caches = agents.total().into();
        Ok(SystemPorts::new(&program, caches, 0, self.stop))
    }
}

impl PortSystems for Systems<'_> {
    fn ports(&mut self, kinds: &Kinds) -> Result<&mut dyn Ports, Failure> {
        let remotes = kinds.remotes(&self.source.protocol);
        let started = self.started.iter().position(|(other, _)| *other == remotes);
        let index = match started {
            Some(index) => index,
            None => {
                let system = self.start(remotes)?;
                self.started.push((remotes, system));
                self.started.len() - 1
            }
        };
        Ok(&mut self.started[index].1)
    }

    fn options(&self) -> String {
        let system = self
            .system
            .map(|name| format!(" --system {}", quoted(name)));
        let cache = self
            .named_cache
            .map(|folder| format!(" --build-cache {}", quoted(&folder.display().to_string())));
        system.unwrap_or_default() + &cache.unwrap_or_default()
    }
}
