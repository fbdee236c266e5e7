//! Binaries of channel programs, which a host program reads as files.

use cohkit_riscv::channel;
use cohkit_riscv::system::{Errno, FilePosition};

/// Path prefix of binaries; the rest of the path is the name of the binary.
pub const FOLDER: &str = ":channel/";
/// First file descriptor of open binaries. This and all higher descriptors are reserved for binaries.
const FIRST_DESCRIPTOR: u32 = 0x4000_0000;
/// Maximum number of open binaries. Bounds the table of a host program that never closes any.
const MAX_OPEN: usize = 16;

/// Channel programs by name, stripped of symbols and debug information, and the read positions of open ones.
#[derive(Clone, Debug, Default)]
pub struct Binaries {
    /// Names and contents.
    binaries: Vec<(String, Vec<u8>)>,
    /// Index in `binaries` and read position in bytes of each open binary; `None` for a free descriptor.
    open: Vec<Option<(usize, usize)>>,
}

impl Binaries {
    /// Adds a binary under a name.
    ///
    /// # Errors
    /// Returns the reason if the file cannot be parsed.
    pub fn add(&mut self, name: &str, file: &[u8]) -> Result<(), String> {
        let binary = channel::strip(file)?;
        self.binaries.push((name.to_string(), binary));
        Ok(())
    }

    /// Returns the name of the binary with exactly these bytes, if any.
    pub(crate) fn name_of(&self, bytes: &[u8]) -> Option<&str> {
        let entry = self.binaries.iter().find(|(_, binary)| binary == bytes);
        entry.map(|(name, _)| name.as_str())
    }

    /// Opens a binary by its path and returns a file descriptor; `None` if the path is not that of a binary.
    ///
    /// # Errors
    /// [`Errno::Denied`] if the maximum number of binaries is open.
    pub(crate) fn open(&mut self, path: &str) -> Option<Result<u32, Errno>> {
        let name = path.strip_prefix(FOLDER)?;
        let binary_index = self
            .binaries
            .iter()
            .position(|(binary_name, _)| binary_name == name)?;
        let free_index = self.open.iter().position(Option::is_none);
        let index = free_index.unwrap_or(self.open.len());
        if index >= MAX_OPEN {
            return Some(Err(Errno::Denied));
        }
        self.open.resize(self.open.len().max(index + 1), None);
        self.open[index] = Some((binary_index, 0));
        Some(Ok(FIRST_DESCRIPTOR + index as u32))
    }

    /// Returns the index in `open` of a descriptor; `None` if no binary is open under it.
    fn open_index(&self, descriptor: u32) -> Option<usize> {
        let index = descriptor.checked_sub(FIRST_DESCRIPTOR)? as usize;
        self.open.get(index).copied().flatten().map(|_| index)
    }

    /// Reads from an open binary and returns the number of bytes read, which is 0 at the end; `None` for any other
    /// file.
    pub(crate) fn read(&mut self, descriptor: u32, bytes: &mut [u8]) -> Option<usize> {
        let index = self.open_index(descriptor)?;
        let (binary_index, position) = self.open[index].as_mut()?;
        let remaining = self.binaries[*binary_index]
            .1
            .get(*position..)
            .unwrap_or(&[]);
        let length = remaining.len().min(bytes.len());
        bytes[..length].copy_from_slice(&remaining[..length]);
        *position += length;
        Some(length)
    }

    /// Sets the read position of an open binary and returns it, in bytes; `None` for any other file. The position may
    /// lie beyond the end.
    pub(crate) fn seek(&mut self, descriptor: u32, target: FilePosition) -> Option<u64> {
        let index = self.open_index(descriptor)?;
        let (binary_index, position) = self.open[index].as_mut()?;
        let length = self.binaries[*binary_index].1.len() as u64;
        let new_position = match target {
            FilePosition::Start(offset) => offset,
            FilePosition::Current(offset) => (*position as u64).saturating_add_signed(offset),
            FilePosition::End(offset) => length.saturating_add_signed(offset),
        };
        *position = usize::try_from(new_position).unwrap_or(usize::MAX);
        Some(new_position)
    }

    /// Closes an open binary; `None` for any other file.
    pub(crate) fn close(&mut self, descriptor: u32) -> Option<()> {
        let index = self.open_index(descriptor)?;
        self.open[index] = None;
        Some(())
    }
}
