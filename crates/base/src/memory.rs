//! Hints about memory to the processor and the operating system.

/// Prefetches the cache line at an address. No effect on targets other than x86-64.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect visible to the program, and any address is valid.
    unsafe {
        std::arch::x86_64::_mm_prefetch(address.cast::<i8>(), std::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches the 64-byte lines of a value, counted from its first byte.
#[inline(always)]
pub fn prefetch_value<T>(value: &T) {
    let begin = std::ptr::from_ref(value).cast::<u8>();
    for line in (0..size_of::<T>()).step_by(64) {
        prefetch(begin.wrapping_add(line));
    }
}

/// Requests huge pages for the buffer of a vector with a capacity of at least 4 MiB, which avoids most TLB misses.
/// Unused capacity takes no memory with small pages, but some with huge ones.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub fn request_huge_pages<T>(vector: &mut Vec<T>) {
    /// Bytes of a page; advice applies to whole pages.
    const PAGE: usize = 1 << 12;
    /// Minimum capacity in bytes for which huge pages pay.
    const LARGE: usize = 4 << 20;
    let bytes = vector.capacity() * size_of::<T>();
    if bytes < LARGE {
        return;
    }
    let start = vector.as_ptr() as usize;
    let (start, end) = (start.next_multiple_of(PAGE), (start + bytes) / PAGE * PAGE);
    // SAFETY: the pages lie within the vector's buffer, and this advice has no effect visible to the program. If the
    // system ignores the advice, pages stay small.
    unsafe {
        libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
    }
}

/// Does nothing: huge pages are only requested on Linux.
#[cfg(not(target_os = "linux"))]
pub fn request_huge_pages<T>(_: &mut Vec<T>) {}
