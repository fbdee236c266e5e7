// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Sizes of entries, population, memory types, and changes of mappings. */
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test.h"

#define READ_WRITE	(PROT_READ | PROT_WRITE)

static void entries_have_the_largest_size(void)
{
	struct cohkit device = open_granted();
	long long pages = sysfs_value("counters/pages");
	long long pmds = sysfs_value("counters/pmds");
	long long puds = sysfs_value("counters/puds");

	CHECK(cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1));
	CHECK(sysfs_value("counters/puds") == puds + 1);
	CHECK(sysfs_value("counters/pmds") == pmds);
	CHECK(cohkit_map(&device, 0, 2 * MIB, 6 * MIB, READ_WRITE, 1));
	CHECK(sysfs_value("counters/pmds") == pmds + 3);
	CHECK(sysfs_value("counters/pages") == pages);
	CHECK(cohkit_map(&device, 0, 4096, 2 * MIB, READ_WRITE, 1));
	CHECK(sysfs_value("counters/pages") == pages + 512);
	CHECK(sysfs_value("counters/pmds") == pmds + 3);
	/* From the middle of a block: pages, then two entries, then pages. */
	CHECK(cohkit_map(&device, 0, MIB, 6 * MIB, READ_WRITE, 1));
	CHECK(sysfs_value("counters/pages") == pages + 512 + 2 * 256);
	CHECK(sysfs_value("counters/pmds") == pmds + 5);
}

static void prefetch(const volatile void *address)
{
	__builtin_prefetch((const void *)address);
}

static void populated_pages_do_not_fault(void)
{
	struct cohkit device = open_granted();
	volatile unsigned char *page, *memory;
	unsigned long i;
	long faults;

	memory = cohkit_map(&device, 0, MIB, 8 * MIB, READ_WRITE, 1);
	page = cohkit_map(&device, 0, MIB, 4096, READ_WRITE, 0);
	CHECK(memory && page);
	faults = fault_count();
	for (i = 0; i < 8 * MIB; i += 4096)
		prefetch(memory + i);
	for (i = 0; i < 8 * MIB; i += 4096)
		memory[i] = i >> 12;
	CHECK(fault_count() == faults);
	/* Without population, a prefetch is dropped and the load faults. */
	prefetch(page);
	CHECK(fault_count() == faults);
	CHECK(*page == 0);
	CHECK(fault_count() == faults + 1);
}

static void other_addresses_are_not_populated(void)
{
	struct cohkit device = open_granted();
	struct cohkit other = open_granted();
	struct cohkit_populate range = { .length = 4096 };
	void *memory = cohkit_map(&device, 0, 0, 4096, PROT_READ, 0);
	void *none = cohkit_map(&device, 0, 0, 4096, PROT_NONE, 0);
	void *anonymous = mmap(NULL, 4096, READ_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	range.address = (uintptr_t)anonymous;
	CHECK_ERROR(ioctl(device.fd, COHKIT_IOC_POPULATE, &range) < 0, EINVAL);
	range.address = (uintptr_t)memory;
	CHECK_ERROR(ioctl(other.fd, COHKIT_IOC_POPULATE, &range) < 0, EINVAL);
	range.address = (uintptr_t)memory + 1;
	CHECK_ERROR(ioctl(device.fd, COHKIT_IOC_POPULATE, &range) < 0, EINVAL);
	range.address = -4096ull;
	CHECK_ERROR(ioctl(device.fd, COHKIT_IOC_POPULATE, &range) < 0, EINVAL);
	range.address = (uintptr_t)none;
	CHECK_ERROR(ioctl(device.fd, COHKIT_IOC_POPULATE, &range) < 0, EFAULT);
}

static void memory_is_shared_with_the_host(void)
{
	struct cohkit device = open_granted();
	volatile uint32_t *page;

	page = cohkit_map(&device, 0, HOST_PAGE, 4096, READ_WRITE, 1);
	CHECK(page);
	CHECK(page[0] == 0xc0de0001);
	page[1] = 0xc0de0002;
	while (page[2] != 0xc0de0003)
		sched_yield();
}

/* The host reads the emulated page tables while this process computes. */
static void host_sees_huge_entries(void)
{
	struct cohkit device = open_granted();
	cpu_set_t first;
	volatile uint64_t *request;
	volatile unsigned char *gib, *mibs, *pages;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	CHECK(sched_setaffinity(0, sizeof(first), &first) == 0);
	gib = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);
	mibs = cohkit_map(&device, 0, 2 * MIB, 4 * MIB, READ_WRITE, 1);
	pages = cohkit_map(&device, 0, 4096, 8192, READ_WRITE, 1);
	CHECK(gib && mibs && pages);
	request = (volatile uint64_t *)(gib + HOST_PAGE + 64);
	request[1] = (uintptr_t)gib;
	request[2] = (uintptr_t)mibs;
	request[3] = (uintptr_t)pages;
	request[0] = 1;
	while (request[0] == 1)
		;
	CHECK(request[0] == 2);
}

static void a_block_has_one_memory_type(void)
{
	struct cohkit device = open_granted();
	volatile uint32_t *cached, *combining, *uncached;

	cached = cohkit_map(&device, COHKIT_WINDOW_CACHED, 0, 4096, READ_WRITE,
			    1);
	CHECK(cached);
	cached[0] = 1234;
	CHECK_ERROR(!cohkit_map(&device, COHKIT_WINDOW_WRITE_COMBINING, 0,
				4096, READ_WRITE, 0), EBUSY);
	CHECK_ERROR(!cohkit_map(&device, COHKIT_WINDOW_UNCACHED, MIB, 4 * MIB,
				READ_WRITE, 0), EBUSY);
	combining = cohkit_map(&device, COHKIT_WINDOW_WRITE_COMBINING, 2 * MIB,
			       2 * MIB, READ_WRITE, 1);
	CHECK(combining);
	combining[0] = 5678;
	CHECK(munmap((void *)cached, 4096) == 0);
	uncached = cohkit_map(&device, COHKIT_WINDOW_UNCACHED, 0, 2 * MIB,
			      READ_WRITE, 1);
	CHECK(uncached && uncached[0] == 1234);
	CHECK(munmap((void *)combining, 2 * MIB) == 0);
	cached = cohkit_map(&device, COHKIT_WINDOW_CACHED, 2 * MIB, 4096,
			    READ_WRITE, 0);
	CHECK(cached && cached[0] == 5678);
}

static void type_stays_until_the_last_piece_is_unmapped(void)
{
	struct cohkit device = open_granted();
	char *memory = cohkit_map(&device, 0, 0, 3 * 4096, READ_WRITE, 1);

	CHECK(memory);
	CHECK(munmap(memory + 4096, 4096) == 0);
	CHECK(munmap(memory, 4096) == 0);
	CHECK_ERROR(!cohkit_map(&device, COHKIT_WINDOW_UNCACHED, 0, 4096,
				READ_WRITE, 0), EBUSY);
	CHECK(munmap(memory + 2 * 4096, 4096) == 0);
	CHECK(cohkit_map(&device, COHKIT_WINDOW_UNCACHED, 0, 4096, READ_WRITE,
			 0));
}

static void caches_are_cleaned(void)
{
	struct cohkit device = open_granted();
	volatile unsigned char *memory;

	memory = cohkit_map(&device, 0, 0, 4 * MIB, READ_WRITE, 0);
	CHECK(memory);
	memory[5000] = 77;
	CHECK(cohkit_clean(&device, 4999, 2, 0) == 0);
	CHECK(cohkit_clean(&device, MIB, 3 * MIB, 1) == 0);
	CHECK(cohkit_clean(&device, 8 * MIB, MIB, 1) == 0);
	CHECK(memory[5000] == 77);
	CHECK_ERROR(cohkit_clean(&device, GIB, 1, 0) < 0, EINVAL);
	CHECK_ERROR(cohkit_clean(&device, 1, -1ull, 0) < 0, EINVAL);
	CHECK(cohkit_revoke(device.fd, COHKIT_MEMORY, 0, 4096, ALL) == 0);
	CHECK_ERROR(cohkit_clean(&device, 4000, 200, 0) < 0, EACCES);
}

/* Marks a page so that a wrong offset after a change is noticed. */
static void mark(volatile unsigned char *memory, uint64_t page)
{
	*(volatile uint64_t *)(memory + page * 4096) = ~page;
}

static int marked(volatile unsigned char *memory, uint64_t page,
		  uint64_t original)
{
	return *(volatile uint64_t *)(memory + page * 4096) == ~original;
}

static void moved_mapping_shows_the_same_memory(void)
{
	struct cohkit device = open_granted();
	unsigned char *memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);
	unsigned char *room = mmap(NULL, 4 * GIB, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				   -1, 0);
	uint64_t page;

	CHECK(memory && room != MAP_FAILED);
	for (page = 0; page < GIB / 4096; page += 511)
		mark(memory, page);
	/* To an address that no entry of 1 GiB or 2 MiB can have. */
	memory = mremap(memory, GIB, GIB, MREMAP_MAYMOVE | MREMAP_FIXED,
			(unsigned char *)(((uintptr_t)room + GIB) & -GIB) +
			4096);
	CHECK(memory != MAP_FAILED);
	for (page = 0; page < GIB / 4096; page += 511)
		CHECK(marked(memory, page, page));
	/* A part of it to an aligned address again. */
	memory = mremap(memory + 2 * MIB, 4 * MIB, 2 * MIB,
			MREMAP_MAYMOVE | MREMAP_FIXED,
			(unsigned char *)(((uintptr_t)room + 3 * GIB) & -GIB));
	CHECK(memory != MAP_FAILED);
	CHECK(marked(memory, 510, 511 * 2));
	CHECK_ERROR(mremap(memory, 2 * MIB, 4 * MIB, MREMAP_MAYMOVE) ==
		    MAP_FAILED, EFAULT);
	CHECK_ERROR(mremap(memory, 0, 2 * MIB, MREMAP_MAYMOVE) == MAP_FAILED,
		    EFAULT);
}

static void part_of_a_huge_entry_is_protected(void)
{
	struct cohkit device = open_granted();
	unsigned char *memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);

	CHECK(memory);
	mark(memory, 1000);
	CHECK(mprotect(memory + 1000 * 4096, 4096, PROT_READ) == 0);
	CHECK(marked(memory, 1000, 1000));
	CHECK(signal_of_store(memory + 1000 * 4096) == SIGSEGV);
	CHECK(signal_of_store(memory + 999 * 4096) == 0);
	CHECK(signal_of_store(memory + 1001 * 4096) == 0);
	CHECK(mprotect(memory, GIB, PROT_NONE) == 0);
	CHECK(signal_of_load(memory) == SIGSEGV);
	CHECK(mprotect(memory, GIB, READ_WRITE) == 0);
	CHECK(signal_of_store(memory + 1000 * 4096) == 0);
}

static void protection_of_a_whole_huge_entry_changes(void)
{
	struct cohkit device = open_granted();
	unsigned char *memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);

	CHECK(memory);
	CHECK(mprotect(memory, GIB, PROT_READ) == 0);
	CHECK(signal_of_store(memory) == SIGSEGV);
	CHECK(mprotect(memory, GIB, READ_WRITE) == 0);
	CHECK(signal_of_store(memory) == 0);
}

static void part_of_a_huge_entry_is_unmapped(void)
{
	struct cohkit device = open_granted();
	unsigned char *memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);

	CHECK(memory);
	mark(memory, 1000);
	mark(memory, 1002);
	CHECK(munmap(memory + 1001 * 4096, 4096) == 0);
	CHECK(signal_of_load(memory + 1001 * 4096) == SIGSEGV);
	CHECK(marked(memory, 1000, 1000) && marked(memory, 1002, 1002));
}

static void advice_does_not_change_content(void)
{
	struct cohkit device = open_granted();
	long long pages = sysfs_value("counters/pages");
	unsigned char *memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);

	CHECK(memory);
	mark(memory, 3);
	CHECK_ERROR(madvise(memory, 2 * MIB, MADV_DONTNEED) < 0, EINVAL);
	CHECK_ERROR(madvise(memory, 2 * MIB, MADV_FREE) < 0, EINVAL);
	CHECK_ERROR(madvise(memory, 2 * MIB, MADV_DODUMP) < 0, EINVAL);
	CHECK_ERROR(madvise(memory, 2 * MIB, MADV_PAGEOUT) < 0, EINVAL);
	CHECK(madvise(memory, 2 * MIB, MADV_REMOVE) < 0);
	CHECK(madvise(memory, 2 * MIB, MADV_POPULATE_READ) < 0);
	CHECK(madvise(memory, 2 * MIB, MADV_WILLNEED) == 0);
	CHECK(madvise(memory, GIB, MADV_MERGEABLE) == 0);
	CHECK(marked(memory, 3, 3));
	CHECK(madvise(memory, GIB, MADV_NOHUGEPAGE) == 0);
	CHECK(munmap(memory, GIB) == 0);
	memory = cohkit_map(&device, 0, 0, 4 * MIB, READ_WRITE, 0);
	CHECK(memory && madvise(memory, 4 * MIB, MADV_NOHUGEPAGE) == 0);
	CHECK(marked(memory, 3, 3));
	CHECK(sysfs_value("counters/pages") == pages + 512);
}

/* There are no struct pages: the kernel must not look for them. */
static void kernel_takes_no_references_to_pages(void)
{
	static const size_t lengths[] = { GIB, 2 * MIB, 8192 };
	struct cohkit device = open_granted();
	char buffer[4096];
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		unsigned char *memory = cohkit_map(&device, 0, 0, lengths[i],
						   READ_WRITE, 1);
		struct iovec local = { buffer, 64 }, remote = { memory, 64 };
		int pagemap = open("/proc/self/pagemap", O_RDONLY);
		int mem = open("/proc/self/mem", O_RDONLY);
		int smaps = open("/proc/self/smaps", O_RDONLY);
		int pipes[2];

		CHECK(memory && pagemap >= 0 && mem >= 0 && smaps >= 0);
		CHECK(pipe(pipes) == 0);
		CHECK_ERROR(syscall(SYS_futex, memory, FUTEX_WAKE, 1, NULL,
				    NULL, 0) < 0, EFAULT);
		CHECK_ERROR(process_vm_readv(getpid(), &local, 1, &remote, 1,
					     0) < 0, EFAULT);
		CHECK_ERROR(vmsplice(pipes[1], &remote, 1, 0) < 0, EFAULT);
		CHECK_ERROR(pread(mem, buffer, 64, (uintptr_t)memory) < 0, EIO);
		CHECK(pread(pagemap, buffer, sizeof(buffer),
			    (uintptr_t)memory / 512) >= 0);
		while (read(smaps, buffer, sizeof(buffer)) > 0)
			;
		/* A system call may copy to and from the memory. */
		CHECK(write(pipes[1], memory, 64) == 64);
		CHECK(read(pipes[0], memory, 64) == 64);
		close(pipes[0]);
		close(pipes[1]);
		close(pagemap);
		close(mem);
		close(smaps);
	}
}

const struct test mapping_tests[] = {
	{ "entries_have_the_largest_size", entries_have_the_largest_size },
	{ "populated_pages_do_not_fault", populated_pages_do_not_fault },
	{ "other_addresses_are_not_populated",
	  other_addresses_are_not_populated },
	{ "memory_is_shared_with_the_host", memory_is_shared_with_the_host },
	{ "host_sees_huge_entries", host_sees_huge_entries },
	{ "a_block_has_one_memory_type", a_block_has_one_memory_type },
	{ "type_stays_until_the_last_piece_is_unmapped",
	  type_stays_until_the_last_piece_is_unmapped },
	{ "caches_are_cleaned", caches_are_cleaned },
	{ "moved_mapping_shows_the_same_memory",
	  moved_mapping_shows_the_same_memory },
	{ "part_of_a_huge_entry_is_protected",
	  part_of_a_huge_entry_is_protected },
	{ "protection_of_a_whole_huge_entry_changes",
	  protection_of_a_whole_huge_entry_changes },
	{ "part_of_a_huge_entry_is_unmapped",
	  part_of_a_huge_entry_is_unmapped },
	{ "advice_does_not_change_content", advice_does_not_change_content },
	{ "kernel_takes_no_references_to_pages",
	  kernel_takes_no_references_to_pages },
	{ }
};
