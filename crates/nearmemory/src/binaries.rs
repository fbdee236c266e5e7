//! Binaries of channel programs, which a host's program reads as files.

use cohkit_riscv::channel;
use cohkit_riscv::system::{Errno, Place};

/// Path prefix of binaries.
pub const FOLDER: &str = ":channel/";
/// First file descriptor of opened binaries; no other file uses descriptors from here on.
const FIRST: u32 = 0x4000_0000;
/// Maximum number of open binaries.
const MOST: usize = 16;

/// Binaries by name, stripped of symbols and debug information.
#[derive(Clone, Debug, Default)]
pub struct Binaries {
    all: Vec<(String, Vec<u8>)>,
    /// Open binaries: index and read position.
    open: Vec<Option<(usize, usize)>>,
}

impl Binaries {
    /// Adds a binary under a name.
    ///
    /// # Errors
    /// The file cannot be parsed, with the reason.
    pub fn add(&mut self, name: &str, file: &[u8]) -> Result<(), String> {
        let binary = channel::stripped(file)?;
        self.all.push((name.to_string(), binary));
        Ok(())
    }

    /// Returns the name of the binary with exactly these bytes.
    pub(crate) fn named(&self, bytes: &[u8]) -> Option<&str> {
        let found = self.all.iter().find(|(_, binary)| binary == bytes);
        found.map(|(name, _)| name.as_str())
    }

    /// Opens a binary; `None` if the name is not that of a binary.
    pub(crate) fn open(&mut self, name: &str) -> Option<Result<u32, Errno>> {
        let name = name.strip_prefix(FOLDER)?;
        let which = self.all.iter().position(|(own, _)| own == name)?;
        let free = self.open.iter().position(Option::is_none);
        let place = free.unwrap_or(self.open.len());
        if place >= MOST {
            return Some(Err(Errno::Denied));
        }
        self.open.resize(self.open.len().max(place + 1), None);
        self.open[place] = Some((which, 0));
        Some(Ok(FIRST + place as u32))
    }

    /// Returns the index of an open binary in `open`.
    fn place(&self, file: u32) -> Option<usize> {
        let place = file.checked_sub(FIRST)? as usize;
        self.open.get(place).copied().flatten().map(|_| place)
    }

    /// Reads from a binary; `None` if the file is not one.
    pub(crate) fn read(&mut self, file: u32, bytes: &mut [u8]) -> Option<usize> {
        let open = self.place(file)?;
        let (which, done) = self.open[open].as_mut()?;
        let rest = self.all[*which].1.get(*done..).unwrap_or(&[]);
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        *done += length;
        Some(length)
    }

    /// Seeks in a binary and returns the new position; `None` if the file is not one.
    pub(crate) fn seek(&mut self, file: u32, place: Place) -> Option<u64> {
        let open = self.place(file)?;
        let (which, done) = self.open[open].as_mut()?;
        let length = self.all[*which].1.len() as u64;
        let to = match place {
            Place::Start(at) => at,
            Place::Current(by) => (*done as u64).saturating_add_signed(by),
            Place::End(by) => length.saturating_add_signed(by),
        };
        *done = usize::try_from(to).unwrap_or(usize::MAX);
        Some(to)
    }

    /// Closes a binary; `None` if the file is not one.
    pub(crate) fn close(&mut self, file: u32) -> Option<()> {
        let place = self.place(file)?;
        self.open[place] = None;
        Some(())
    }
}
