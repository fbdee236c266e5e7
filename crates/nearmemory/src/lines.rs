//! What programs print, line by line: several print at once, and a C library may write every byte by itself.

use cohkit_riscv::system::{Errno, World};

/// Of a line that has not ended, so many bytes are kept.
const LONGEST: usize = 1 << 13;

/// What a program has printed of a line that has not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    /// It prints this; what is now whole lines is handed on.
    pub(crate) fn print(&mut self, bytes: &[u8], world: &mut impl World) -> Result<usize, Errno> {
        self.0.extend(bytes);
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => self.0.len() - bytes.len() + last + 1,
            None if self.0.len() > LONGEST => self.0.len(),
            None => return Ok(bytes.len()),
        };
        let rest = self.0.split_off(whole);
        let done = write(&self.0, world);
        self.0 = rest;
        done.map(|()| bytes.len())
    }

    /// Nothing more comes for now.
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
