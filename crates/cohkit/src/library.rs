//! `cohkit library`: the C library for cores beside far memory and their hosts, which the command carries.

use crate::console::Console;
use crate::files;
use crate::options::Library;
use crate::outcome::{Failure, Outcome};
use std::fs;
use std::path::{Path, PathBuf};

macro_rules! text {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../", $path)))
    };
}

/// The library and the programs of its guide, where they lie in a checkout, so that the guide's commands do the same elsewhere.
const FILES: [(&str, &str); 45] = [
    text!("docs/riscv/accumulator/host.c"),
    text!("docs/riscv/accumulator/sum.c"),
    text!("docs/riscv/arrays/arrays.c"),
    text!("docs/riscv/arrays/host.c"),
    text!("nearmemory/arrays.h"),
    text!("nearmemory/channel.flags"),
    text!("nearmemory/channel.h"),
    text!("nearmemory/channel.ld"),
    text!("nearmemory/cores.h"),
    text!("nearmemory/enzian.toml"),
    text!("nearmemory/host.flags"),
    text!("nearmemory/host.h"),
    text!("nearmemory/native-channel.h"),
    text!("nearmemory/native-host.h"),
    text!("nearmemory/native.flags"),
    text!("nearmemory/native.h"),
    text!("nearmemory/pipe.h"),
    text!("nearmemory/programs/bench.h"),
    text!("nearmemory/programs/bulk-host.c"),
    text!("nearmemory/programs/bulk.c"),
    text!("nearmemory/programs/compute-host.c"),
    text!("nearmemory/programs/compute.c"),
    text!("nearmemory/programs/graph.h"),
    text!("nearmemory/programs/gups-host.c"),
    text!("nearmemory/programs/gups.c"),
    text!("nearmemory/programs/measure-host.c"),
    text!("nearmemory/programs/measure.c"),
    text!("nearmemory/programs/mixture.h"),
    text!("nearmemory/programs/pagerank-host.c"),
    text!("nearmemory/programs/pagerank.c"),
    text!("nearmemory/programs/pagerank.h"),
    text!("nearmemory/programs/pipes-host.c"),
    text!("nearmemory/programs/pipes.c"),
    text!("nearmemory/programs/rows-host.c"),
    text!("nearmemory/programs/rows.c"),
    text!("nearmemory/programs/spawn-host.c"),
    text!("nearmemory/programs/spawn.c"),
    text!("nearmemory/programs/team.h"),
    text!("nearmemory/programs/tree.h"),
    text!("nearmemory/programs/uts-host.c"),
    text!("nearmemory/programs/uts.c"),
    text!("nearmemory/programs/uts.h"),
    text!("nearmemory/scratchpad.h"),
    text!("nearmemory/stream.h"),
    text!("nearmemory/typed.h"),
];

pub(crate) fn run(options: &Library, console: &mut Console) -> Result<Outcome, Failure> {
    let folder = &options.folder;
    let files: Vec<(PathBuf, &str)> = FILES
        .iter()
        .map(|&(name, text)| (folder.join(name), text))
        .collect();
    for (path, text) in &files {
        if fs::read(path).is_ok_and(|there| there != text.as_bytes()) {
            return Err(Failure::new(
                Outcome::BadInput,
                format!(
                    "error: {}: is there already, and differs from what ships\n  help: remove it, or choose another folder",
                    path.display()
                ),
            ));
        }
    }
    for (path, _) in &files {
        files::make_folder(path.parent().expect("each is in a folder"))?;
    }
    let together: Vec<(&Path, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_path(), *text))
        .collect();
    files::write_together(&together)?;
    console.print(&format!(
        "{} files are in {}, from where the commands of docs/nearmemory.md work:\n\n{NEXT}",
        files.len(),
        folder.display()
    ))?;
    Ok(Outcome::Yes)
}

/// What one does next.
const NEXT: &str = "\
  riscv64-unknown-elf-gcc @nearmemory/host.flags \\
    docs/riscv/accumulator/host.c -o host.elf
  riscv64-unknown-elf-gcc @nearmemory/channel.flags \\
    docs/riscv/accumulator/sum.c -o sum.elf
  cohkit run --cp sum=sum.elf host.elf
";
