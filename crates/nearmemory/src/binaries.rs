//! The binaries that a host's program starts, as files that it reads.

use cohkit_riscv::channel;
use cohkit_riscv::system::{Errno, Place};

/// Before the names of binaries as files.
pub const FOLDER: &str = ":channel/";
/// The number of the first one that is opened. No other file goes by these.
const FIRST: u32 = 0x4000_0000;
/// How many may be open.
const MOST: usize = 16;

/// Binaries by their names, without what only people need.
#[derive(Clone, Debug, Default)]
pub struct Binaries {
    all: Vec<(String, Vec<u8>)>,
    /// What is open: which, and how far it is read.
    open: Vec<Option<(usize, usize)>>,
}

impl Binaries {
    /// Adds a program by a name.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn add(&mut self, name: &str, file: &[u8]) -> Result<(), String> {
        let binary = channel::stripped(file)?;
        self.all.push((name.to_string(), binary));
        Ok(())
    }

    /// The name of the binary with these bytes.
    pub(crate) fn named(&self, bytes: &[u8]) -> Option<&str> {
        let found = self.all.iter().find(|(_, binary)| binary == bytes);
        found.map(|(name, _)| name.as_str())
    }

    /// Opens a file if it is a binary by its name.
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

    /// The place of an open binary among those that are open.
    fn place(&self, file: u32) -> Option<usize> {
        let place = file.checked_sub(FIRST)? as usize;
        self.open.get(place).copied().flatten().map(|_| place)
    }

    /// Reads from a file if it is a binary.
    pub(crate) fn read(&mut self, file: u32, bytes: &mut [u8]) -> Option<usize> {
        let open = self.place(file)?;
        let (which, done) = self.open[open].as_mut()?;
        let rest = self.all[*which].1.get(*done..).unwrap_or(&[]);
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        *done += length;
        Some(length)
    }

    /// Goes to a place in a file if it is a binary, and says where that is.
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

    /// Closes a file if it is a binary.
    pub(crate) fn close(&mut self, file: u32) -> Option<()> {
        let place = self.place(file)?;
        self.open[place] = None;
        Some(())
    }
}
