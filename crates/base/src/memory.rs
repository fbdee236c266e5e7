//! What processor and system may be told of memory before it is used.

/// Asks for the line of the processor's caches at an address; where this cannot be asked for, nothing happens.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can see, and any address will do.
    unsafe {
        std::arch::x86_64::_mm_prefetch(at.cast::<i8>(), std::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for all lines of the processor's caches that something lies in.
#[inline(always)]
pub fn prefetch_whole<T>(of: &T) {
    let begin = std::ptr::from_ref(of).cast::<u8>();
    for line in (0..size_of::<T>()).step_by(64) {
        prefetch(begin.wrapping_add(line));
    }
}

/// Asks for large pages for a row, which save most of the look-ups of addresses, once it is large enough to be worth it.
/// Room that is not used takes no memory without them; with them a little of it does.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn ask_for_large_pages<T>(row: &mut Vec<T>) {
    const PAGE: usize = 1 << 12;
    const LARGE: usize = 4 << 20;
    let bytes = row.capacity() * size_of::<T>();
    if bytes < LARGE {
        return;
    }
    let start = row.as_ptr() as usize;
    let (start, end) = (start.next_multiple_of(PAGE), (start + bytes) / PAGE * PAGE);
    // SAFETY: the pages lie within what the row owns, and this advice changes nothing that a program can see.
    // Where it is not taken, pages stay small.
    unsafe {
        libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
    }
}

/// Elsewhere pages are as large as they are.
#[cfg(not(target_os = "linux"))]
pub fn ask_for_large_pages<T>(_: &mut Vec<T>) {}
