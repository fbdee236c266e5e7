//! Large memory that grows where it lies.

use crate::memory;
use crate::threads::Team;
use std::mem::MaybeUninit;

/// Rows from this many bytes on are worth large pages, which save most of the look-ups of addresses.
const LARGE: usize = 4 << 20;

/// So many bytes more are worth threads.
const WORTH_THREADS: usize = 1 << 16;

/// Lengthens a row by so many of what `make` makes. A team does so side by side, since memory that is written for the
/// first time has to be found first, which takes much longer than to write it.
#[allow(unsafe_code)]
pub(crate) fn lengthen<T: Send>(
    row: &mut Vec<T>,
    more: usize,
    make: impl Fn() -> T + Sync,
    team: &Team,
) {
    reserve(row, more);
    let threads = match more * size_of::<T>() < WORTH_THREADS {
        true => 1,
        false => team.len(),
    };
    let len = row.len() + more;
    let room = &mut row.spare_capacity_mut()[..more];
    let shares = room.chunks_mut(more.div_ceil(threads).max(1)).collect();
    team.side_by_side(shares, |share: &mut [MaybeUninit<T>]| {
        for place in share {
            place.write(make());
        }
    });
    // SAFETY: there is that much room, and all of it was written above.
    unsafe { row.set_len(len) }
}

/// Makes room for more in a row. Much more than that is asked for, so that the row seldom has to be moved:
/// room that is not used takes no memory. Where addresses are counted, as by `ulimit -v`, no more is asked for than
/// rows that double ask for.
fn reserve<T>(row: &mut Vec<T>, more: usize) {
    if row.capacity() - row.len() >= more {
        return;
    }
    let plenty = match memory::addresses() {
        None => 7 * row.len() + more,
        Some(_) => more.max(row.len() / 2),
    };
    if memory::attempt(|| row.try_reserve_exact(plenty)).is_err() {
        row.reserve_exact(more);
    }
    if row.capacity() * size_of::<T>() >= LARGE {
        ask_for_large_pages(row);
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn ask_for_large_pages<T>(row: &mut Vec<T>) {
    const PAGE: usize = 1 << 12;
    let start = row.as_ptr() as usize;
    let end = start + row.capacity() * size_of::<T>();
    let (start, end) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    // SAFETY: the pages lie within what the row owns, and this advice changes nothing that a program can see.
    // Where it is not taken, pages stay small.
    unsafe {
        libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages<T>(_: &mut Vec<T>) {}
