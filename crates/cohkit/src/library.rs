//! `cohkit library`: writes the C library for near-memory cores and their hosts, which the command contains.

use crate::console::Console;
use crate::options::Library;
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::shipped::LIBRARY;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the library into a folder, which is created if it does not exist.
///
/// # Errors
/// A file exists with other contents, in which case no file is written; or a file cannot be written.
pub(crate) fn run(options: &Library, console: &mut Console) -> Result<ExitStatus, Failure> {
    let folder = &options.folder;
    let files: Vec<(PathBuf, &str)> = LIBRARY
        .iter()
        .map(|&(name, text)| (folder.join(name), text))
        .collect();
    for (path, text) in &files {
        if fs::read(path).is_ok_and(|existing| existing != text.as_bytes()) {
            return Err(Failure::new(
                ExitStatus::BadInput,
                format!(
                    "error: {}: already exists, and differs from the shipped file\n  help: remove it, or choose another folder",
                    path.display()
                ),
            ));
        }
    }
    for (path, _) in &files {
        files::make_folder(path.parent().expect("each is in a folder"))?;
    }
    let file_refs: Vec<(&Path, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_path(), *text))
        .collect();
    files::write_atomically(&file_refs)?;
    console.print(&format!(
        "{} files are in {}; run the commands of docs/nearmemory.md there:\n\n{NEXT_COMMANDS}",
        files.len(),
        folder.display()
    ))?;
    Ok(ExitStatus::Success)
}

/// Commands that the user can run next in the folder.
const NEXT_COMMANDS: &str = "\
  riscv64-unknown-elf-gcc @nearmemory/host.flags \\
    docs/riscv/accumulator/host.c -o host.elf
  riscv64-unknown-elf-gcc @nearmemory/channel.flags \\
    docs/riscv/accumulator/sum.c -o sum.elf
  cohkit run --channel-program sum=sum.elf host.elf
";
