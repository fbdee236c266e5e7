//! Line buffering of program output: several programs print concurrently, and a C library may write single bytes.

use cohkit_riscv::system::{Errno, World};

/// Maximum number of buffered bytes of an unfinished line.
const MAX_UNFINISHED_BYTES: usize = 1 << 13;

/// Output of a program since its last complete line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    /// Appends output and writes out all complete lines.
    pub(crate) fn print(&mut self, bytes: &[u8], world: &mut impl World) -> Result<usize, Errno> {
        self.0.extend(bytes);
        let complete_length = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => self.0.len() - bytes.len() + last + 1,
            None if self.0.len() > MAX_UNFINISHED_BYTES => self.0.len(),
            None => return Ok(bytes.len()),
        };
        let rest = self.0.split_off(complete_length);
        let result = write(&self.0, world);
        self.0 = rest;
        result.map(|()| bytes.len())
    }

    /// Writes out the unfinished line.
    pub(crate) fn flush(&mut self, world: &mut impl World) -> Result<(), Errno> {
        write(&std::mem::take(&mut self.0), world)
    }
}

fn write(mut bytes: &[u8], world: &mut impl World) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let written = world.write(1, bytes)?;
        bytes = bytes.get(written.max(1)..).unwrap_or(&[]);
    }
    Ok(())
}
