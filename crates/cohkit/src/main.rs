//! The `cohkit` command; everything else is in the library.

use cohkit::{exit_code, Console, ExitStatus, Terminal};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{stderr, stdout, IsTerminal, Write};
use std::process::ExitCode;

/// The system's allocator; without free memory, the command ends with the outcome `CouldNotRun`.
struct ExitingAllocator;

#[global_allocator]
static ALLOCATOR: ExitingAllocator = ExitingAllocator;

// SAFETY: all calls are passed on unchanged to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for ExitingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        exit_if_null(System.alloc(layout))
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        exit_if_null(System.alloc_zeroed(layout))
    }
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        exit_if_null(System.realloc(old, layout, size))
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        System.dealloc(memory, layout);
    }
}

/// Ends the process if an allocation failed, unless the failure is handled where the memory is requested.
#[inline(always)]
fn exit_if_null(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && !cohkit_engine::memory::is_attempt() {
        no_memory();
    }
    memory
}

/// Prints an error and exits immediately: any other action might allocate memory again.
#[cold]
#[cfg(unix)]
#[allow(unsafe_code)]
fn no_memory() {
    /// Message on standard error, which is formatted in advance because nothing can be allocated.
    const OUT_OF_MEMORY_MESSAGE: &[u8] = b"error: out of memory\n  \
        help: raise limits such as `ulimit -v`, limit the check with `--max-memory SIZE`, \
        or use fewer `--threads`\n";
    // SAFETY: the bytes are static, and the process exits without a return to the interrupted allocation.
    unsafe {
        libc::write(
            libc::STDERR_FILENO,
            OUT_OF_MEMORY_MESSAGE.as_ptr().cast(),
            OUT_OF_MEMORY_MESSAGE.len(),
        );
        libc::_exit(i32::from(exit_code(ExitStatus::CouldNotRun)));
    }
}

#[cold]
#[cfg(not(unix))]
fn no_memory() {}

/// Ignores the signal for files beyond a size limit: writing then fails with an error that can be reported.
#[cfg(unix)]
#[allow(unsafe_code)]
fn ignore_file_size_signal() {
    // SAFETY: no other code handles this signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[cfg(not(unix))]
fn ignore_file_size_signal() {}

/// Returns true if the locale, as POSIX determines it, has a UTF-8 encoding.
fn is_utf8() -> bool {
    let locale_names = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
    let locale = locale_names
        .into_iter()
        .flatten()
        .find(|name| !name.is_empty());
    // Without a locale the command may run in a container, whose terminal supports UTF-8.
    locale.is_none_or(|name| {
        let name = name.to_string_lossy().to_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}

fn main() -> ExitCode {
    ignore_file_size_signal();
    let interrupted = match cohkit::interrupt::watch() {
        Ok(interrupted) => interrupted,
        Err(error) => {
            let _ = writeln!(
                stderr(),
                "warning: Ctrl-C will stop the command immediately: {error}"
            );
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
    ExitCode::from(exit_code(outcome))
}
