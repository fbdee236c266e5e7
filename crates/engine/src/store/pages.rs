//! Large memory that grows where it lies.

use crate::memory;
use crate::threads::Team;
use cohkit_base::memory::ask_for_large_pages;
use std::mem::MaybeUninit;

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
    ask_for_large_pages(row);
}
