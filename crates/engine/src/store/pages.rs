//! Large arrays that grow in place.

use crate::memory;
use crate::threads::Team;
use cohkit_base::memory::request_huge_pages;
use std::mem::MaybeUninit;

/// Growth in bytes from which several threads pay.
const WORTH_THREADS: usize = 1 << 16;

/// Appends `more` elements made by `make`. A team does this in parallel: the first write to a page requires its
/// allocation, which takes much longer than the write.
#[allow(unsafe_code)]
pub(crate) fn extend_pages<T: Send>(
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
    team.run_in_parallel(shares, |share: &mut [MaybeUninit<T>]| {
        for place in share {
            place.write(make());
        }
    });
    // SAFETY: the capacity suffices, and all `more` elements were written above.
    unsafe { row.set_len(len) }
}

/// Reserves space for `more` elements. Reserves much more if possible, so that the array seldom moves: unused space
/// takes no memory. If the address space is limited (`ulimit -v`), the reservation grows only geometrically.
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
    request_huge_pages(row);
}
