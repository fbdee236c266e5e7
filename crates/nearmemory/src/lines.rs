//! Line buffering of program output: several programs print concurrently, and a C library may write single bytes.

use cohkit_riscv::system::{Errno, World};

/// Maximum number of buffered bytes of an unfinished line. A longer line is written out in parts, so that the buffer
/// stays small.
const MAX_UNFINISHED_BYTES: usize = 1 << 13;

/// Output of a program since its last complete line.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineBuffer(Vec<u8>);

impl LineBuffer {
    /// Appends output and writes out all complete lines.
    pub(crate) fn print(&mut self, bytes: &[u8], world: &mut impl World) -> Result<usize, Errno> {
        self.0.extend(bytes);
        let complete_length = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => self.0.len() - bytes.len() + last + 1,
            None if self.0.len() > MAX_UNFINISHED_BYTES => self.0.len(),
            None => return Ok(bytes.len()),
        };
        let unfinished = self.0.split_off(complete_length);
        let result = write_all(&self.0, world);
        self.0 = unfinished;
        result.map(|()| bytes.len())
    }

    /// Writes out the unfinished line.
    pub(crate) fn flush(&mut self, world: &mut impl World) -> Result<(), Errno> {
        write_all(&std::mem::take(&mut self.0), world)
    }
}

/// Writes all bytes to standard output.
fn write_all(mut bytes: &[u8], world: &mut impl World) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let written = world.write(1, bytes)?;
        bytes = bytes.get(written.max(1)..).unwrap_or(&[]);
    }
    Ok(())
}
