//! Binaries of channel programs, which a host's program reads as files.

use cohkit_riscv::channel;
use cohkit_riscv::system::{Errno, FilePosition};

/// Path prefix of binaries.
pub const FOLDER: &str = ":channel/";
/// First file descriptor of opened binaries; no other file uses descriptors from here on.
const FIRST_DESCRIPTOR: u32 = 0x4000_0000;
/// Maximum number of open binaries.
const MAX_OPEN: usize = 16;

/// Binaries by name, stripped of symbols and debug information.
#[derive(Clone, Debug, Default)]
pub struct Binaries {
    binaries: Vec<(String, Vec<u8>)>,
    /// Open binaries: index and read position.
    open: Vec<Option<(usize, usize)>>,
}

impl Binaries {
    /// Adds a binary under a name.
    ///
    /// # Errors
    /// The file cannot be parsed, with the reason.
    pub fn add(&mut self, name: &str, file: &[u8]) -> Result<(), String> {
        let binary = channel::strip(file)?;
        self.binaries.push((name.to_string(), binary));
        Ok(())
    }

    /// Returns the name of the binary with exactly these bytes.
    pub(crate) fn name_of(&self, bytes: &[u8]) -> Option<&str> {
        let entry = self.binaries.iter().find(|(_, binary)| binary == bytes);
        entry.map(|(name, _)| name.as_str())
    }

    /// Opens a binary; `None` if the name is not that of a binary.
    pub(crate) fn open(&mut self, name: &str) -> Option<Result<u32, Errno>> {
        let name = name.strip_prefix(FOLDER)?;
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

    /// Returns the index of an open binary in `open`.
    fn open_index(&self, file: u32) -> Option<usize> {
        let index = file.checked_sub(FIRST_DESCRIPTOR)? as usize;
        self.open.get(index).copied().flatten().map(|_| index)
    }

    /// Reads from a binary; `None` if the file is not one.
    pub(crate) fn read(&mut self, file: u32, bytes: &mut [u8]) -> Option<usize> {
        let index = self.open_index(file)?;
        let (binary_index, position) = self.open[index].as_mut()?;
        let rest = self.binaries[*binary_index]
            .1
            .get(*position..)
            .unwrap_or(&[]);
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        *position += length;
        Some(length)
    }

    /// Seeks in a binary and returns the new position; `None` if the file is not one.
    pub(crate) fn seek(&mut self, file: u32, place: FilePosition) -> Option<u64> {
        let index = self.open_index(file)?;
        let (binary_index, position) = self.open[index].as_mut()?;
        let length = self.binaries[*binary_index].1.len() as u64;
        let new_position = match place {
            FilePosition::Start(offset) => offset,
            FilePosition::Current(offset) => (*position as u64).saturating_add_signed(offset),
            FilePosition::End(offset) => length.saturating_add_signed(offset),
        };
        *position = usize::try_from(new_position).unwrap_or(usize::MAX);
        Some(new_position)
    }

    /// Closes a binary; `None` if the file is not one.
    pub(crate) fn close(&mut self, file: u32) -> Option<()> {
        let index = self.open_index(file)?;
        self.open[index] = None;
        Some(())
    }
}
