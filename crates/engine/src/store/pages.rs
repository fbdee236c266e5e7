//! Large arrays that grow in place.

use crate::memory;
use crate::threads::Team;
use cohkit_base::memory::request_huge_pages;
use std::mem::MaybeUninit;

/// Growth in bytes from which several threads pay off.
const MIN_BYTES_FOR_THREADS: usize = 1 << 16;

/// Appends `additional` elements made by `make`. A team does this in parallel: the first write to a page requires its
/// allocation, which takes much longer than the write.
#[allow(unsafe_code)]
pub(crate) fn extend_pages<T: Send>(
    elements: &mut Vec<T>,
    additional: usize,
    make: impl Fn() -> T + Sync,
    team: &Team,
) {
    reserve(elements, additional);
    let threads = match additional * size_of::<T>() < MIN_BYTES_FOR_THREADS {
        true => 1,
        false => team.len(),
    };
    let len = elements.len() + additional;
    let spare = &mut elements.spare_capacity_mut()[..additional];
    let shares = spare
        .chunks_mut(additional.div_ceil(threads).max(1))
        .collect();
    team.run_in_parallel(shares, |share: &mut [MaybeUninit<T>]| {
        for slot in share {
            slot.write(make());
        }
    });
    // SAFETY: the capacity suffices, and all `additional` elements were written above.
    unsafe { elements.set_len(len) }
}

/// Reserves space for `additional` elements. Reserves much more if possible, so that the array seldom moves: unused
/// space takes no memory. If the address space is limited (`ulimit -v`), the reservation grows only geometrically.
fn reserve<T>(elements: &mut Vec<T>, additional: usize) {
    if elements.capacity() - elements.len() >= additional {
        return;
    }
    let generous_size = match memory::address_space_limit() {
        None => 7 * elements.len() + additional,
        Some(_) => additional.max(elements.len() / 2),
    };
    if memory::attempt_allocation(|| elements.try_reserve_exact(generous_size)).is_err() {
        elements.reserve_exact(additional);
    }
    request_huge_pages(elements);
}
