//! The `cohkit` command; everything else is in the library.

use cohkit::{Console, Terminal};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{stderr, stdout, IsTerminal, Write};
use std::process::ExitCode;

/// The system's allocator; where it has no memory left, the command ends as one that could not run.
struct OrCouldNotRun;

#[global_allocator]
static ALLOCATOR: OrCouldNotRun = OrCouldNotRun;

// SAFETY: everything is asked of the system's allocator, and given back to it, as it came.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for OrCouldNotRun {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        given(System.alloc(layout))
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        given(System.alloc_zeroed(layout))
    }
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        given(System.realloc(old, layout, size))
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        System.dealloc(memory, layout);
    }
}

#[inline(always)]
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && !cohkit_engine::memory::is_attempt() {
        no_memory();
    }
    memory
}

/// Says so and ends at once: whatever else is done might ask for memory again.
#[cold]
#[cfg(unix)]
#[allow(unsafe_code)]
fn no_memory() {
    const SAID: &[u8] = b"error: there is no more memory\n  \
        help: limits such as `ulimit -v` may be wider; `--max-memory SIZE` lets a check give up before, \
        and fewer `--threads` take less\n";
    // SAFETY: the bytes are there, and neither call comes back to what was interrupted here.
    unsafe {
        libc::write(libc::STDERR_FILENO, SAID.as_ptr().cast(), SAID.len());
        libc::_exit(i32::from(cohkit::Outcome::CouldNotRun.code()));
    }
}

#[cold]
#[cfg(not(unix))]
fn no_memory() {}

/// Files that grow beyond a limit are to fail to be written, which can be told, and not to end the command.
#[cfg(unix)]
#[allow(unsafe_code)]
fn outlive_limits_of_files() {
    // SAFETY: nothing else handles this signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[cfg(not(unix))]
fn outlive_limits_of_files() {}

/// Whether the locale, as POSIX finds it, has characters beyond ASCII in UTF-8.
fn is_utf8() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
    let first = named.into_iter().flatten().find(|name| !name.is_empty());
    // Who has named none may be in a container, whose terminal is one of today.
    first.is_none_or(|name| {
        let name = name.to_string_lossy().to_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}

fn main() -> ExitCode {
    outlive_limits_of_files();
    let interrupted = match cohkit::interrupt::watch() {
        Ok(interrupted) => interrupted,
        Err(error) => {
            let _ = writeln!(stderr(), "warning: Ctrl-C will stop at once: {error}");
            cohkit::interrupt::never()
        }
    };
    let width = terminal_size::terminal_size_of(stdout()).map(|(width, _)| usize::from(width.0));
    let terminal = Terminal {
        width,
        ascii: stdout().is_terminal() && !is_utf8(),
        colour: stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        progress: stderr().is_terminal(),
    };
    let outcome = cohkit::run(
        std::env::args_os(),
        &mut Console::new(&mut stdout(), &mut stderr(), terminal, interrupted),
    );
    outcome.into()
}
