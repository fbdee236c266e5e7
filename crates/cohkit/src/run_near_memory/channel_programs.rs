//! Channel programs that the options name, read from their files and verified.

use crate::guest_program::GuestProgram;
use crate::options;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_nearmemory::device::FIFO_PIPES;
use cohkit_nearmemory::{controller, host, Platform};
use cohkit_riscv::channel::{self, Grant};
use cohkit_riscv::elf::Image;
use cohkit_riscv::Extensions;
use std::path::Path;

/// Help line for errors of channel programs that bring no help of their own.
const CHANNEL_PROGRAM_HELP: &str = "\n  help: docs/nearmemory.md shows how to compile a channel program and declare its needs with `NM_CHANNEL`";

/// A channel program: its name, and the contents of its file.
pub(super) struct ChannelProgram {
    /// Name by which the host program starts the channel program.
    pub(super) name: String,
    /// Contents of the ELF file.
    pub(super) file: Vec<u8>,
}

impl ChannelProgram {
    /// Passes the program with its parsed form to `describe`; `None` if the file cannot be parsed.
    pub(super) fn with_parsed<R>(&self, describe: impl FnOnce(GuestProgram) -> R) -> Option<R> {
        let image = Image::read(&self.file).ok()?;
        Some(describe(GuestProgram {
            file: &self.file,
            image: &image,
        }))
    }
}

/// Reads the channel programs. Verifies each, unless the options leave verification to the cores.
pub(super) fn read(
    options: &options::Run,
    platform: &Platform,
) -> Result<Vec<ChannelProgram>, Failure> {
    let private = controller::PRIVATE..controller::PRIVATE + platform.private.value;
    let grant = Grant {
        extensions: Extensions::NEAR_MEMORY,
        private,
        pipes: (0..FIFO_PIPES + platform.mccs.value).collect(),
        far: std::iter::once(host::FAR..host::FAR + platform.far_bytes.value).collect(),
    };
    let mut programs: Vec<ChannelProgram> = Vec::new();
    for option in &options.channel_programs {
        let (name, path) = option.split_once('=').ok_or_else(|| {
            input_error(&format!(
                "`--channel-program {option}` has no `=`\n  help: write it like `sum=sum.elf`"
            ))
        })?;
        if name.is_empty() {
            return Err(input_error(&format!(
                "`--channel-program {option}` has no name\n  help: write it like `sum=sum.elf`"
            )));
        }
        if programs.iter().any(|program| program.name == name) {
            return Err(input_error(&format!(
                "there are two channel programs `{name}`"
            )));
        }
        let file = files::read_bytes(
            Path::new(path),
            "a channel program is an RV64 ELF file; docs/nearmemory.md shows how to compile one",
            "name a program in it",
        )?;
        if !options.skip_verification {
            verify(path, &file, &grant)?;
        }
        let name = name.to_string();
        programs.push(ChannelProgram { name, file });
    }
    Ok(programs)
}

/// Verifies a channel program as the loader of a core does. `grant` has all that a host can grant.
fn verify(path: &str, file: &[u8], grant: &Grant) -> Result<(), Failure> {
    let result = channel::verify(file, grant);
    result.map(drop).map_err(|rejection| {
        let mut message = rejection.to_string();
        if !message.contains("\n  help: ") {
            message += CHANNEL_PROGRAM_HELP;
        }
        input_error(&format!("{path}: {message}"))
    })
}

/// Failure for an invalid machine or channel program.
pub(super) fn input_error(reason: &str) -> Failure {
    Failure::new(ExitStatus::BadInput, format!("error: {reason}"))
}
