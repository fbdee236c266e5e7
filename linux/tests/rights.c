// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Nobody maps what has not been granted. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static void sizes_match_sysfs(void)
{
	struct cohkit device;

	CHECK(cohkit_open(&device, DEVICE) == 0);
	CHECK(device.info.memory_size == GIB);
	CHECK(device.info.registers_size == 256);
	CHECK(device.info.vectors == 2);
	CHECK(sysfs_value("memory_size") == (long long)GIB);
	CHECK(sysfs_value("registers_size") == 256);
	CHECK(sysfs_value("vectors") == 2);
}

static void user_has_no_rights(void)
{
	unsigned int window;
	struct cohkit device;

	become_user();
	CHECK(cohkit_open(&device, DEVICE) == 0);
	for (window = 0; window <= COHKIT_WINDOW_REGISTERS; window++) {
		CHECK_ERROR(!cohkit_map(&device, window, 0, 4096, PROT_READ, 0),
			    EACCES);
		CHECK_ERROR(!cohkit_map(&device, window, 0, 4096, PROT_NONE, 0),
			    EACCES);
	}
	CHECK_ERROR(!cohkit_map(&device, 4, 0, 4096, PROT_READ, 0), EINVAL);
	CHECK_ERROR(cohkit_listen(&device, 0) < 0, EACCES);
	CHECK_ERROR(cohkit_clean(&device, 0, 64, 0) < 0, EACCES);
	CHECK_ERROR(cohkit_grant(device.fd, COHKIT_MEMORY, 0, 4096, ALL) < 0,
		    EPERM);
	CHECK_ERROR(cohkit_revoke(device.fd, COHKIT_MEMORY, 0, 4096, ALL) < 0,
		    EPERM);
}

static void administrator_of_a_namespace_has_no_rights(void)
{
	struct cohkit device;

	become_user();
	CHECK(unshare(CLONE_NEWUSER) == 0);
	CHECK(cohkit_open(&device, DEVICE) == 0);
	CHECK_ERROR(cohkit_grant(device.fd, COHKIT_MEMORY, 0, 4096, ALL) < 0,
		    EPERM);
}

static void invalid_grants_are_rejected(void)
{
	struct cohkit device;
	int fd;

	CHECK(cohkit_open(&device, DEVICE) == 0);
	fd = device.fd;
	CHECK_ERROR(cohkit_grant(fd, COHKIT_MEMORY, 0, 0, ALL) < 0, EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_MEMORY, 0, 100, ALL) < 0, EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_MEMORY, 64, 4096, ALL) < 0, EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_MEMORY, 0, 4096, 0) < 0, EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_MEMORY, 0, 4096, 4) < 0, EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_MEMORY, GIB, 4096, ALL) < 0,
		    EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_MEMORY, 4096, GIB, ALL) < 0,
		    EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_MEMORY, 4096, -4096ull, ALL) < 0,
		    EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_REGISTERS, 0, 8192, ALL) < 0,
		    EINVAL);
	CHECK_ERROR(cohkit_grant(fd, COHKIT_INTERRUPTS, 2, 1, ALL) < 0, EINVAL);
	CHECK_ERROR(cohkit_grant(fd, 3, 0, 4096, ALL) < 0, EINVAL);
	CHECK_ERROR(ioctl(fd, COHKIT_IOC_GRANT, NULL) < 0, EFAULT);
	CHECK_ERROR(ioctl(fd, _IO(COHKIT_IOC_MAGIC, 99), NULL) < 0, ENOTTY);
}

static void granted_range_alone_is_mapped(void)
{
	struct cohkit device;

	CHECK(cohkit_open(&device, DEVICE) == 0);
	CHECK(cohkit_grant(device.fd, COHKIT_MEMORY, 4 * MIB, MIB, ALL) == 0);
	become_user();
	CHECK(cohkit_map(&device, 0, 4 * MIB, MIB, PROT_READ | PROT_WRITE, 1));
	CHECK(cohkit_map(&device, 0, 4 * MIB + 4096, 4096, PROT_READ, 1));
	CHECK_ERROR(!cohkit_map(&device, 0, 4 * MIB - 4096, 8192, PROT_READ, 0),
		    EACCES);
	CHECK_ERROR(!cohkit_map(&device, 0, 5 * MIB - 4096, 8192, PROT_READ, 0),
		    EACCES);
	CHECK_ERROR(!cohkit_map(&device, 0, GIB - 4096, 8192, PROT_READ, 0),
		    EINVAL);
}

static void rights_stay_with_the_file(void)
{
	struct cohkit granted, other;

	CHECK(cohkit_open(&granted, DEVICE) == 0);
	CHECK(cohkit_open(&other, DEVICE) == 0);
	CHECK(cohkit_grant(granted.fd, COHKIT_MEMORY, 0, 4096, ALL) == 0);
	CHECK(cohkit_map(&granted, 0, 0, 4096, PROT_READ, 0));
	CHECK_ERROR(!cohkit_map(&other, 0, 0, 4096, PROT_READ, 0), EACCES);
}

static void read_right_does_not_allow_stores(void)
{
	struct cohkit device;
	void *page;

	CHECK(cohkit_open(&device, DEVICE) == 0);
	CHECK(cohkit_grant(device.fd, COHKIT_MEMORY, 0, 4096, COHKIT_READ) == 0);
	CHECK_ERROR(!cohkit_map(&device, 0, 0, 4096, PROT_READ | PROT_WRITE, 0),
		    EACCES);
	page = cohkit_map(&device, 0, 0, 4096, PROT_READ, 0);
	CHECK(page);
	CHECK(signal_of_load(page) == 0);
	CHECK(signal_of_store(page) == SIGSEGV);
	CHECK_ERROR(mprotect(page, 4096, PROT_READ | PROT_WRITE) < 0, EACCES);
}

static void code_and_private_copies_are_not_mapped(void)
{
	struct cohkit device = open_granted();
	void *page;

	CHECK_ERROR(!cohkit_map(&device, 0, 0, 4096, PROT_READ | PROT_EXEC, 0),
		    EACCES);
	page = cohkit_map(&device, 0, 0, 4096, PROT_READ, 0);
	CHECK(page);
	CHECK_ERROR(mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0, EACCES);
	CHECK_ERROR(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			 device.fd, 0) == MAP_FAILED, EINVAL);
}

static void revocation_unmaps_pages(void)
{
	struct cohkit device = open_granted();
	struct cohkit other = open_granted();
	unsigned char *memory, *rest;

	memory = cohkit_map(&device, 0, 0, GIB, PROT_READ | PROT_WRITE, 1);
	rest = cohkit_map(&other, 0, 0, GIB, PROT_READ | PROT_WRITE, 1);
	CHECK(memory && rest);
	memory[4 * MIB] = 17;
	CHECK(cohkit_revoke(device.fd, COHKIT_MEMORY, 4 * MIB, 4096, ALL) == 0);
	CHECK(signal_of_load(memory + 4 * MIB) == SIGBUS);
	CHECK(signal_of_load(memory + 4 * MIB - 1) == 0);
	CHECK(signal_of_load(memory + 4 * MIB + 4096) == 0);
	CHECK(signal_of_load(memory + GIB - 1) == 0);
	CHECK(rest[4 * MIB] == 17);
	CHECK_ERROR(!cohkit_map(&device, 0, 0, GIB, PROT_READ, 0), EACCES);
	/* A right that is granted again is usable again. */
	CHECK(cohkit_grant(device.fd, COHKIT_MEMORY, 4 * MIB, 4096, ALL) == 0);
	CHECK(memory[4 * MIB] == 17);
}

static void revoked_stores_end(void)
{
	struct cohkit device = open_granted();
	unsigned char *memory;

	memory = cohkit_map(&device, 0, 0, 2 * MIB, PROT_READ | PROT_WRITE, 1);
	CHECK(memory);
	CHECK(cohkit_revoke(device.fd, COHKIT_MEMORY, 0, 4096, COHKIT_WRITE) ==
	      0);
	/* The mapping has more rights than the file: its page is not usable. */
	CHECK(signal_of_store(memory) == SIGBUS);
	CHECK(signal_of_load(memory) == SIGBUS);
	CHECK(signal_of_store(memory + 4096) == 0);
	CHECK(cohkit_map(&device, 0, 0, 4096, PROT_READ, 1));
}

/* Compares the ranges of the module with one bit for each page and right. */
static void ranges_match_a_bitmap(void)
{
	enum { PAGES = 24, STEPS = 200 };
	unsigned int rights[PAGES] = { 0 };
	struct cohkit device;
	unsigned int seed = 1;
	int step, page;

	CHECK(cohkit_open(&device, DEVICE) == 0);
	for (step = 0; step < STEPS; step++) {
		unsigned int first = rand_r(&seed) % PAGES;
		unsigned int count = 1 + rand_r(&seed) % (PAGES - first);
		unsigned int right = 1 + rand_r(&seed) % 3;
		bool revoke = rand_r(&seed) % 2;

		CHECK((revoke ? cohkit_revoke : cohkit_grant)
			(device.fd, COHKIT_MEMORY, first * 4096ull,
			 count * 4096ull, right) == 0);
		for (page = first; page < (int)(first + count); page++)
			rights[page] = revoke ? rights[page] & ~right :
						rights[page] | right;
		for (page = 0; page < PAGES; page++) {
			void *read = cohkit_map(&device, 0, page * 4096ull,
						4096, PROT_READ, 0);
			void *write = cohkit_map(&device, 0, page * 4096ull,
						 4096, PROT_READ | PROT_WRITE,
						 0);

			CHECK(!!read == !!(rights[page] & COHKIT_READ));
			CHECK(!!write == (rights[page] == ALL));
			if (read)
				munmap(read, 4096);
			if (write)
				munmap(write, 4096);
		}
	}
}

static void number_of_ranges_is_limited(void)
{
	struct cohkit device;
	int i;

	CHECK(cohkit_open(&device, DEVICE) == 0);
	for (i = 0; i < 64; i++)
		CHECK(cohkit_grant(device.fd, COHKIT_MEMORY, i * 8192ull, 4096,
				   ALL) == 0);
	CHECK_ERROR(cohkit_grant(device.fd, COHKIT_MEMORY, GIB - 4096, 4096,
				 ALL) < 0, ENOSPC);
	/* The error has changed nothing, and a gap may still be filled. */
	CHECK_ERROR(!cohkit_map(&device, 0, GIB - 4096, 4096, PROT_READ, 0),
		    EACCES);
	CHECK(cohkit_grant(device.fd, COHKIT_MEMORY, 4096, 4096, ALL) == 0);
	CHECK(cohkit_map(&device, 0, 0, 3 * 4096, PROT_READ, 1));
}

const struct test rights_tests[] = {
	{ "sizes_match_sysfs", sizes_match_sysfs },
	{ "user_has_no_rights", user_has_no_rights },
	{ "administrator_of_a_namespace_has_no_rights",
	  administrator_of_a_namespace_has_no_rights },
	{ "invalid_grants_are_rejected", invalid_grants_are_rejected },
	{ "granted_range_alone_is_mapped", granted_range_alone_is_mapped },
	{ "rights_stay_with_the_file", rights_stay_with_the_file },
	{ "read_right_does_not_allow_stores",
	  read_right_does_not_allow_stores },
	{ "code_and_private_copies_are_not_mapped",
	  code_and_private_copies_are_not_mapped },
	{ "revocation_unmaps_pages", revocation_unmaps_pages },
	{ "revoked_stores_end", revoked_stores_end },
	{ "ranges_match_a_bitmap", ranges_match_a_bitmap },
	{ "number_of_ranges_is_limited", number_of_ranges_is_limited },
	{ }
};
