// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Processes: fork, kill, core dumps and threads. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define READ_WRITE	(PROT_READ | PROT_WRITE)

static void store_seven(void *memory)
{
	*(volatile unsigned char *)memory = 7;
}

static void forked_processes_share_memory(void)
{
	static const size_t lengths[] = { GIB, 2 * MIB, 4096 };
	struct cohkit device = open_granted();
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		volatile unsigned char *memory =
			cohkit_map(&device, 0, 0, lengths[i], READ_WRITE, 1);

		CHECK(memory);
		*memory = 3;
		CHECK(run_child(store_seven, (void *)memory) == 0);
		CHECK(*memory == 7);
		*memory = 8;
	}
}

static void load_one(void *memory)
{
	CHECK(signal_of_load(memory) == SIGBUS);
}

static void revocation_reaches_forked_processes(void)
{
	struct cohkit device = open_granted();
	unsigned char *memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);

	CHECK(memory);
	CHECK(cohkit_revoke(device.fd, COHKIT_MEMORY, 0, 4096, ALL) == 0);
	CHECK(run_child(load_one, memory) == 0);
}

static void killed_process_releases_everything(void)
{
	int files = sysfs_value("counters/files");
	int mappings = sysfs_value("counters/mappings");
	int i;

	for (i = 0; i < 10; i++) {
		pid_t child = fork();
		int status;

		CHECK(child >= 0);
		if (!child) {
			struct cohkit device = open_granted();

			CHECK(cohkit_listen(&device, 0) >= 0);
			for (;;) {
				unsigned char *memory =
					cohkit_map(&device, 0, 0, GIB,
						   READ_WRITE, 1);

				CHECK(memory);
				munmap(memory + 4096 * i, 8192);
				munmap(memory, GIB);
			}
		}
		usleep(5000 + 3000 * i);
		CHECK(kill(child, SIGKILL) == 0);
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	CHECK(sysfs_value("counters/files") == files);
	CHECK(sysfs_value("counters/mappings") == mappings);
}

static void dump_core(void *unused)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct cohkit device = open_granted();
	unsigned char *memory;

	(void)unused;
	CHECK(setrlimit(RLIMIT_CORE, &unlimited) == 0);
	memory = cohkit_map(&device, 0, 0, GIB, READ_WRITE, 1);
	CHECK(memory);
	memory[0] = 1;
	abort();
}

static void core_dumps_omit_device_memory(void)
{
	struct stat core;
	int status;
	FILE *pattern = fopen("/proc/sys/kernel/core_pattern", "w");

	CHECK(pattern);
	fprintf(pattern, "/tmp/core\n");
	fclose(pattern);
	status = run_child(dump_core, NULL);
	CHECK(WIFSIGNALED(status) && WCOREDUMP(status));
	CHECK(stat("/tmp/core", &core) == 0);
	CHECK(core.st_size > 0 && core.st_size < (off_t)MIB);
	CHECK(unlink("/tmp/core") == 0);
}

struct race {
	struct cohkit device;
	volatile unsigned char *memory;
	volatile int done;
};

static void *access_memory(void *argument)
{
	struct race *race = argument;
	unsigned int seed = (uintptr_t)&seed;

	while (!race->done)
		race->memory[(rand_r(&seed) % (16 * 512)) * 4096] = 1;
	return NULL;
}

/* Threads fault while entries are protected, unmapped by others and split. */
static void threads_fault_during_changes(void)
{
	enum { THREADS = 3, CHANGES = 45 };
	struct race race = { .device = open_granted() };
	struct cohkit other = open_granted();
	pthread_t thread[THREADS];
	unsigned int seed = 5;
	int i;

	race.memory = cohkit_map(&race.device, 0, 0, GIB, READ_WRITE, 0);
	CHECK(race.memory);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, access_memory, &race) ==
		      0);
	for (i = 0; i < CHANGES; i++) {
		size_t page = rand_r(&seed) % (16 * 512);
		void *address = (void *)(race.memory + page * 4096);

		if (i % 3 == 0)
			CHECK(mprotect(address, 4096, READ_WRITE) == 0);
		else if (i % 3 == 1)
			CHECK(cohkit_revoke(other.fd, COHKIT_MEMORY,
					    page * 4096, 4096, ALL) == 0);
		else
			CHECK(madvise(address, 4096, MADV_DONTFORK) == 0);
		if (i % 10 == 0)
			madvise((void *)race.memory, GIB, MADV_DOFORK);
		CHECK(cohkit_grant(other.fd, COHKIT_MEMORY, 0, GIB, ALL) == 0);
	}
	race.done = 1;
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

const struct test process_tests[] = {
	{ "forked_processes_share_memory", forked_processes_share_memory },
	{ "revocation_reaches_forked_processes",
	  revocation_reaches_forked_processes },
	{ "killed_process_releases_everything",
	  killed_process_releases_everything },
	{ "core_dumps_omit_device_memory", core_dumps_omit_device_memory },
	{ "threads_fault_during_changes", threads_fault_during_changes },
	{ }
};
