// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Pages that a device grants and recalls. The device is on the host: see
 * python/tests/linux_pages.py, which has the same numbers of pages.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define READ_WRITE	(PROT_READ | PROT_WRITE)
#define WORDS		512

/* The device computes with these two, in turn. */
#define CALL_PAGE	0
/* The device withholds this one until somebody reads the next. */
#define WITHHELD_PAGE	8
#define RELEASING_PAGE	9
/* The device recalls and locks these at random times. */
#define SHARED_PAGE	16
#define SHARED_PAGES	16
/* The device grants these at once. */
#define PLAIN_PAGE	64

static volatile uint64_t *map_pages(const struct cohkit *device, uint64_t page,
				    size_t count, int protection)
{
	volatile uint64_t *words =
		cohkit_map(device, COHKIT_WINDOW_CACHED, page * 4096,
			   count * 4096, protection, 0);

	CHECK(words);
	return words;
}

static void rings_cannot_be_mapped(void)
{
	struct cohkit device = open_granted_of(PAGED_DEVICE);

	CHECK(device.info.memory_size == GIB - 2 * MIB);
	CHECK_ERROR(cohkit_grant(device.fd, COHKIT_MEMORY, GIB - 2 * MIB, 4096,
				 ALL) < 0, EINVAL);
	CHECK_ERROR(!cohkit_map(&device, COHKIT_WINDOW_CACHED, GIB - 2 * MIB,
				4096, PROT_READ, 0), EINVAL);
	CHECK_ERROR(!cohkit_map(&device, COHKIT_WINDOW_UNCACHED, 0, 4096,
				PROT_READ, 0), EINVAL);
	CHECK_ERROR(!cohkit_map(&device, COHKIT_WINDOW_WRITE_COMBINING, 0, 4096,
				PROT_READ, 0), EINVAL);
}

static void faults_ask_for_the_permission(void)
{
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	long long grants = sysfs_value_of(1, "counters/grants");
	volatile uint64_t *words = map_pages(&device, PLAIN_PAGE, 3,
					     READ_WRITE);

	CHECK(words[0] == 0);
	CHECK(sysfs_value_of(1, "counters/grants") == grants + 1);
	words[0] = 1;
	CHECK(sysfs_value_of(1, "counters/grants") == grants + 2);
	words[WORDS] = 2;
	CHECK(sysfs_value_of(1, "counters/grants") == grants + 3);
	/* A page stays granted when its mapping ends. */
	CHECK(munmap((void *)words, 3 * 4096) == 0);
	words = map_pages(&device, PLAIN_PAGE, 3, PROT_READ);
	CHECK(words[0] == 1 && words[WORDS] == 2);
	CHECK(sysfs_value_of(1, "counters/grants") == grants + 3);
}

static void population_asks_for_every_page(void)
{
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	long long grants = sysfs_value_of(1, "counters/grants");
	volatile uint64_t *words;
	long faults;
	int page;

	words = cohkit_map(&device, COHKIT_WINDOW_CACHED,
			   (PLAIN_PAGE + 100) * 4096, 50 * 4096, READ_WRITE, 1);
	CHECK(words);
	CHECK(sysfs_value_of(1, "counters/grants") == grants + 50);
	faults = fault_count();
	for (page = 0; page < 50; page++)
		words[page * WORDS] = page;
	CHECK(fault_count() == faults);
}

/* The load of the device's page is the call; the sides are swapped after it. */
static void calls_over_two_pages_return_results(void)
{
	enum { CALLS = 50 };
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	volatile uint64_t *words = map_pages(&device, CALL_PAGE, 2, READ_WRITE);
	int side = 0;
	int call, i;

	for (call = 0; call < CALLS; call++) {
		volatile uint64_t *arguments = words + side * WORDS;
		volatile uint64_t *results = words + !side * WORDS;

		for (i = 0; i < WORDS; i++)
			arguments[i] = call * 1000 + i;
		/* With the permission to write the next arguments. */
		__atomic_fetch_or(&results[0], 0, __ATOMIC_SEQ_CST);
		for (i = 0; i < WORDS; i++)
			CHECK(results[i] == 3 * (call * 1000ull + i) + 1);
		side = !side;
	}
}

/* A call recalls the page of the arguments, and nothing else. */
static void recall_unmaps_one_page(void)
{
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	volatile uint64_t *words = map_pages(&device, CALL_PAGE, 2, READ_WRITE);
	volatile uint64_t *others = map_pages(&device, PLAIN_PAGE + 200, 2,
					      READ_WRITE);
	int call;

	for (call = 0; call < 2; call++) {
		long long recalls = sysfs_value_of(1, "counters/recalls");
		long faults;

		words[call * WORDS] = 1;
		others[0] = others[WORDS] = call;
		__atomic_fetch_or(&words[!call * WORDS], 0, __ATOMIC_SEQ_CST);
		CHECK(sysfs_value_of(1, "counters/recalls") == recalls + 1);
		faults = fault_count();
		CHECK(others[0] + others[WORDS] == 2ull * call);
		CHECK(fault_count() == faults);
	}
}

static void count_in_pages(void *argument)
{
	enum { ROUNDS = 80 };
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	volatile uint64_t *words = map_pages(&device, SHARED_PAGE, SHARED_PAGES,
					     READ_WRITE);
	int own = *(int *)argument;
	uint64_t before[SHARED_PAGES];
	int round, page;

	for (page = 0; page < SHARED_PAGES; page++)
		before[page] = words[page * WORDS + own];
	for (round = 1; round <= ROUNDS; round++)
		for (page = 0; page < SHARED_PAGES; page++) {
			volatile uint64_t *word = &words[page * WORDS + own];

			*word += 1;
			CHECK(*word == before[page] + round);
			__atomic_fetch_add(&words[page * WORDS], 1,
					   __ATOMIC_RELAXED);
		}
}

/* The host checks that nobody stores to a page while it has it locked. */
static void recalled_pages_lose_no_store(void)
{
	enum { PROCESSES = 3 };
	long long recalls = sysfs_value_of(1, "counters/recalls");
	pid_t children[PROCESSES];
	int numbers[PROCESSES];
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	volatile uint64_t *words;
	int i, status;

	for (i = 0; i < PROCESSES; i++) {
		numbers[i] = i + 1;
		children[i] = fork();
		CHECK(children[i] >= 0);
		if (!children[i]) {
			count_in_pages(&numbers[i]);
			_exit(0);
		}
	}
	for (i = 0; i < PROCESSES; i++) {
		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK(status == 0);
	}
	CHECK(sysfs_value_of(1, "counters/recalls") > recalls);
	words = map_pages(&device, SHARED_PAGE, SHARED_PAGES, PROT_READ);
	for (i = 0; i < SHARED_PAGES; i++)
		CHECK(words[i * WORDS] == words[i * WORDS + 1] +
		      words[i * WORDS + 2] + words[i * WORDS + 3]);
}

static void load_withheld_page(void *words)
{
	(void)*(volatile uint64_t *)words;
}

static void waiting_process_can_be_killed(void)
{
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	volatile uint64_t *words = map_pages(&device, WITHHELD_PAGE, 2,
					     PROT_READ);
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		load_withheld_page((void *)words);
		_exit(0);
	}
	usleep(100000);
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void withheld_page_ends_in_a_timeout(void)
{
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	long long timeouts = sysfs_value_of(1, "counters/timeouts");
	volatile uint64_t *words = map_pages(&device, WITHHELD_PAGE, 2,
					     PROT_READ);
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	CHECK(signal_of_load((volatile unsigned char *)words) == SIGBUS);
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK((end.tv_sec - begin.tv_sec + 1) * 1000 >= GRANT_TIMEOUT_MS);
	CHECK(sysfs_value_of(1, "counters/timeouts") == timeouts + 1);
	/* A late grant is as good as one in time. */
	CHECK(words[WORDS] == 0);
	CHECK(signal_of_load((volatile unsigned char *)words) == 0);
}

static void rights_hold_for_granted_pages(void)
{
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	volatile uint64_t *words = map_pages(&device, PLAIN_PAGE, 2,
					     READ_WRITE);

	words[0] = 5;
	CHECK(cohkit_revoke(device.fd, COHKIT_MEMORY, PLAIN_PAGE * 4096, 4096,
			    ALL) == 0);
	CHECK(signal_of_load((volatile unsigned char *)words) == SIGBUS);
	CHECK(signal_of_store((volatile unsigned char *)&words[WORDS]) == 0);
	CHECK_ERROR(!cohkit_map(&device, COHKIT_WINDOW_CACHED, 0, GIB - 2 * MIB,
				PROT_READ, 0), EACCES);
}

static void store_after_fork(void *words)
{
	((volatile uint64_t *)words)[0] = 9;
	CHECK(mprotect(words, 4096, PROT_READ) == 0);
	CHECK(signal_of_store(words) == SIGSEGV);
}

static void forked_processes_share_grants(void)
{
	struct cohkit device = open_granted_of(PAGED_DEVICE);
	volatile uint64_t *words = map_pages(&device, PLAIN_PAGE + 8, 1,
					     READ_WRITE);

	CHECK(words[0] == 0);
	CHECK(run_child(store_after_fork, (void *)words) == 0);
	CHECK(words[0] == 9);
	words[0] = 0;
}

const struct test pages_tests[] = {
	{ "rings_cannot_be_mapped", rings_cannot_be_mapped },
	{ "faults_ask_for_the_permission", faults_ask_for_the_permission },
	{ "population_asks_for_every_page", population_asks_for_every_page },
	{ "calls_over_two_pages_return_results",
	  calls_over_two_pages_return_results },
	{ "recall_unmaps_one_page", recall_unmaps_one_page },
	{ "recalled_pages_lose_no_store", recalled_pages_lose_no_store },
	{ "waiting_process_can_be_killed", waiting_process_can_be_killed },
	{ "withheld_page_ends_in_a_timeout", withheld_page_ends_in_a_timeout },
	{ "rights_hold_for_granted_pages", rights_hold_for_granted_pages },
	{ "forked_processes_share_grants", forked_processes_share_grants },
	{ }
};
