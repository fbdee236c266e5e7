// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Random system calls of a user without privileges, on files with a few
 * grants. An oracle knows the grants: each mapping that succeeds must lie in
 * one, and each protection that is added must be granted.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define FILES		3
#define MAPPINGS	24
#define READ_WRITE	(PROT_READ | PROT_WRITE)

struct grant {
	int file;
	uint32_t resource;
	uint64_t start;
	uint64_t length;
	uint32_t rights;
};

/* File 0 has no grant. Those of memory are moved to the base of a device. */
static struct grant grants[] = {
	{ 1, COHKIT_MEMORY, 4 * MIB, 5 * MIB, ALL },
	{ 1, COHKIT_MEMORY, 16 * MIB, 4096, COHKIT_READ },
	{ 1, COHKIT_INTERRUPTS, 1, 1, COHKIT_READ },
	{ 2, COHKIT_MEMORY, 0, 4 * MIB, COHKIT_READ },
	{ 2, COHKIT_REGISTERS, 0, 4096, COHKIT_READ },
};

struct mapping {
	char *address;		/* null if unused */
	size_t length;
	int file;
	uint64_t start;
	unsigned int window;
	int protection;
};

/* Of a device that grants pages, the first ones have meanings of their own. */
#define PAGED_BASE	(512 * MIB)

static uint64_t base;
static struct cohkit files[FILES];
static struct mapping mappings[MAPPINGS];
static uint64_t random_state;
/* Calls that have succeeded: a run without any would test nothing. */
static unsigned long mapped, accessed;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

/* Values near the borders of grants, pages, blocks and windows. */
static uint64_t random_offset(void)
{
	static const uint64_t borders[] = {
		0, 4 * MIB, 9 * MIB, 16 * MIB, 32 * MIB, GIB, 1ull << 40,
		-4096ull,
	};
	uint64_t border = base +
		borders[random_below(sizeof(borders) / sizeof(*borders))];

	switch (random_below(4)) {
	case 0:
		return border;
	case 1:
		return border + 4096 * random_below(1024);
	case 2:
		return border - 4096 * random_below(16);
	default:
		return border + random_below(8192);
	}
}

static uint64_t random_length(void)
{
	switch (random_below(5)) {
	case 0:
		return 4096 * (1 + random_below(16));
	case 1:
		return 2 * MIB * (1 + random_below(2));
	case 2:
		return 4096 * (1 + random_below(2048));
	case 3:
		return random_below(5) * GIB;
	default:
		return random_below(10000);
	}
}

static int is_granted(const struct mapping *mapping)
{
	uint32_t resource = mapping->window == COHKIT_WINDOW_REGISTERS ?
		COHKIT_REGISTERS : COHKIT_MEMORY;
	uint32_t rights = COHKIT_READ |
		(mapping->protection & PROT_WRITE ? COHKIT_WRITE : 0);
	size_t i;

	if (mapping->protection & PROT_EXEC)
		return 0;
	for (i = 0; i < sizeof(grants) / sizeof(*grants); i++)
		if (grants[i].file == mapping->file &&
		    grants[i].resource == resource &&
		    (grants[i].rights & rights) == rights &&
		    grants[i].start <= mapping->start &&
		    mapping->start + ((mapping->length + 4095) & -4096ull) <=
		    grants[i].start + grants[i].length)
			return 1;
	return 0;
}

/* A range in a grant, or one page beyond, so that many calls succeed. */
static void choose_granted(struct mapping *mapping)
{
	const struct grant *grant =
		&grants[random_below(sizeof(grants) / sizeof(*grants))];
	uint64_t pages = grant->length / 4096;
	uint64_t page = random_below(pages + 1);

	if (random_below(2))
		page &= -512ull;
	mapping->file = grant->file;
	if (grant->resource == COHKIT_REGISTERS)
		mapping->window = COHKIT_WINDOW_REGISTERS;
	else
		mapping->window = random_below(8) ? COHKIT_WINDOW_CACHED :
						    random_below(3);
	mapping->start = grant->start + 4096 * page;
	mapping->length = 4096 * (1 + random_below(pages - page + 1));
	mapping->protection = grant->rights & COHKIT_WRITE ?
		random_below(4) : random_below(2);
}

static void call_mmap(struct mapping *mapping)
{
	static const int flags[] = {
		MAP_SHARED, MAP_SHARED, MAP_SHARED, MAP_PRIVATE,
		MAP_SHARED | MAP_POPULATE, MAP_SHARED | MAP_LOCKED,
		MAP_SHARED_VALIDATE, MAP_SHARED | MAP_NORESERVE,
	};
	void *address;

	if (mapping->address)
		return;
	*mapping = (struct mapping) {
		.file = random_below(FILES),
		.window = random_below(8) ? random_below(4) : random_below(128),
		.protection = random_below(8) ? random_below(4) :
						random_below(8),
		.length = random_length(),
		.start = random_offset() & (COHKIT_OFFSET(1) - 1),
	};
	if (random_below(4))
		choose_granted(mapping);
	address = mmap(NULL, mapping->length, mapping->protection,
		       flags[random_below(sizeof(flags) / sizeof(*flags))],
		       files[mapping->file].fd,
		       COHKIT_OFFSET(mapping->window) + mapping->start);
	if (address == MAP_FAILED)
		return;
	mapping->address = address;
	mapping->length = (mapping->length + 4095) & -4096ull;
	CHECK(is_granted(mapping));
	mapped++;
}

static void call_munmap(struct mapping *mapping)
{
	uint64_t part = mapping->length;

	if (!mapping->address)
		return;
	if (random_below(2) && part > 4096)
		part = 4096 * (1 + random_below(part / 4096));
	CHECK(munmap(mapping->address, part) == 0);
	mapping->address += part;
	mapping->start += part;
	mapping->length -= part;
	if (!mapping->length)
		mapping->address = NULL;
}

static void call_mprotect(struct mapping *mapping)
{
	struct mapping changed = *mapping;

	if (!mapping->address)
		return;
	changed.protection = random_below(8);
	changed.length = 4096 * (1 + random_below(mapping->length / 4096));
	if (mprotect(changed.address, changed.length, changed.protection) < 0)
		return;
	CHECK(is_granted(&changed));
	CHECK(mprotect(mapping->address, mapping->length,
		       mapping->protection) == 0);
}

static void call_mremap(struct mapping *mapping)
{
	uint64_t length = 4096 * random_below(mapping->length / 2048 + 1);
	void *address;

	if (!mapping->address)
		return;
	if (random_below(2) || !length)
		length = mapping->length;
	address = mremap(mapping->address, mapping->length, length,
			 random_below(2) ? MREMAP_MAYMOVE : 0);
	if (address == MAP_FAILED)
		return;
	CHECK(length <= mapping->length);
	mapping->address = address;
	mapping->length = length;
}

static void access_mapping(struct mapping *mapping)
{
	volatile unsigned char *byte;
	int signal;

	if (!mapping->address)
		return;
	byte = (unsigned char *)mapping->address +
		random_below(mapping->length);
	signal = signal_of_load(byte);
	CHECK(signal == 0 || !(mapping->protection & READ_WRITE));
	/* Registers are granted for loads alone. */
	signal = signal_of_store(byte);
	CHECK((signal == 0) == !!(mapping->protection & PROT_WRITE));
	accessed++;
}

static void call_with_address(struct mapping *mapping)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
		MADV_DONTFORK, MADV_DOFORK, MADV_DODUMP, MADV_WILLNEED,
		MADV_REMOVE, MADV_MERGEABLE, MADV_POPULATE_WRITE, MADV_PAGEOUT,
	};
	char *address = mapping->address;

	if (!address)
		return;
	switch (random_below(4)) {
	case 0:
		madvise(address, mapping->length,
			advice[random_below(sizeof(advice) / sizeof(*advice))]);
		break;
	case 1:
		CHECK(syscall(SYS_futex, address, FUTEX_WAKE, 1, NULL, NULL,
			      0) < 0);
		break;
	case 2:
		msync(address, mapping->length, MS_SYNC);
		break;
	default:
		mlock(address, mapping->length);
		munlock(address, mapping->length);
	}
}

/* Fills an argument with values that are partly valid. */
static void fill(uint64_t *words, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		switch (random_below(4)) {
		case 0:
			words[i] = random_below(4);
			break;
		case 1:
			words[i] = random_offset();
			break;
		case 2:
			words[i] = (uintptr_t)
				mappings[random_below(MAPPINGS)].address;
			break;
		default:
			words[i] = random_length();
		}
}

static void call_ioctl(struct mapping *mapping)
{
	static const unsigned long commands[] = {
		COHKIT_IOC_INFO, COHKIT_IOC_GRANT, COHKIT_IOC_REVOKE,
		COHKIT_IOC_POPULATE, COHKIT_IOC_EVENTFD, COHKIT_IOC_CACHE,
	};
	unsigned long command =
		commands[random_below(sizeof(commands) / sizeof(*commands))];
	int fd = files[random_below(FILES)].fd;
	uint64_t words[4];
	void *argument = words;
	int result;

	fill(words, 4);
	if (command == COHKIT_IOC_POPULATE && mapping->address &&
	    random_below(2)) {
		words[0] = (uintptr_t)mapping->address;
		words[1] = mapping->length;
	}
	/* Bad addresses, and device memory as the argument. */
	if (!random_below(8))
		argument = (void *)(uintptr_t)random_offset();
	else if (!random_below(8))
		argument = mapping->address;
	if (!random_below(16))
		command = random_below(1ull << 32);
	result = ioctl(fd, command, argument);
	if (command == COHKIT_IOC_GRANT || command == COHKIT_IOC_REVOKE)
		CHECK(result < 0);
}

static void listen_and_stop(struct mapping *mapping)
{
	int file = random_below(FILES);
	int vector = random_below(3);
	int event = cohkit_listen(&files[file], vector);

	(void)mapping;
	CHECK((event >= 0) == (file == 1 && vector == 1));
	if (event >= 0)
		close(event);
}

static void exit_at_once(void *mapping)
{
	access_mapping(mapping);
}

static void call_fork(struct mapping *mapping)
{
	if (random_below(50))
		return;
	/* Advice may have excluded the mapping from the child. */
	if (mapping->address)
		madvise(mapping->address, mapping->length, MADV_NORMAL);
	run_child(exit_at_once, &(struct mapping) { 0 });
}

int fuzz(unsigned long seed, unsigned long calls, const char *path)
{
	static void (*const operations[])(struct mapping *mapping) = {
		call_mmap, call_mmap, call_mmap, call_munmap, call_mprotect,
		call_mremap, access_mapping, access_mapping, call_with_address,
		call_ioctl, call_ioctl, call_ioctl, listen_and_stop, call_fork,
	};
	unsigned long call;
	size_t i;

	random_state = seed * 0x9e3779b97f4a7c15ull + 1;
	for (i = 0; i < FILES; i++)
		CHECK(cohkit_open(&files[i], path) == 0);
	if (!strcmp(path, PAGED_DEVICE))
		base = PAGED_BASE;
	for (i = 0; i < sizeof(grants) / sizeof(*grants); i++) {
		if (grants[i].resource == COHKIT_MEMORY)
			grants[i].start += base;
		CHECK(cohkit_grant(files[grants[i].file].fd, grants[i].resource,
				   grants[i].start, grants[i].length,
				   grants[i].rights) == 0);
	}
	become_user();
	for (call = 0; call < calls; call++)
		operations[random_below(sizeof(operations) /
					sizeof(*operations))]
			(&mappings[random_below(MAPPINGS)]);
	printf("ok fuzz (%s, seed %lu, %lu calls)\n", path, seed, calls);
	printf("%lu mappings, %lu accesses\n", mapped, accessed);
	return 0;
}
