// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Runs the tests in the guest: `guest-tests list` prints their names,
 * `guest-tests run` their results, `guest-tests fuzz SEED CALLS DEVICE` makes
 * random calls.
 */
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* Longest time of a test, in seconds. */
#define TEST_TIMEOUT	300

static const struct test *const suites[] = {
	rights_tests, mapping_tests, process_tests, pages_tests, device_tests,
};

struct cohkit open_granted_of(const char *path)
{
	struct cohkit device;

	CHECK(cohkit_open(&device, path) == 0);
	CHECK(cohkit_grant(device.fd, COHKIT_MEMORY, 0,
			   device.info.memory_size, ALL) == 0);
	CHECK(cohkit_grant(device.fd, COHKIT_REGISTERS, 0, 4096, ALL) == 0);
	CHECK(cohkit_grant(device.fd, COHKIT_INTERRUPTS, 0,
			   device.info.vectors, COHKIT_READ) == 0);
	return device;
}

struct cohkit open_granted(void)
{
	return open_granted_of(DEVICE);
}

long long sysfs_value_of(int number, const char *name)
{
	char path[128];
	long long value;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/cohkit/cohkit%d/%s",
		 number, name);
	file = fopen(path, "r");
	CHECK(file);
	CHECK(fscanf(file, "%lld", &value) == 1);
	fclose(file);
	return value;
}

long long sysfs_value(const char *name)
{
	return sysfs_value_of(0, name);
}

void become_user(void)
{
	CHECK(setgroups(0, NULL) == 0);
	CHECK(setgid(USER) == 0);
	CHECK(setuid(USER) == 0);
}

int run_child(void (*run)(void *), void *argument)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		run(argument);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static sigjmp_buf after_signal;

static void handle_signal(int signal)
{
	siglongjmp(after_signal, signal);
}

static int signal_of_access(volatile unsigned char *address, int store)
{
	struct sigaction action = { .sa_handler = handle_signal };
	struct sigaction bus, segv;
	int signal;

	sigaction(SIGBUS, &action, &bus);
	sigaction(SIGSEGV, &action, &segv);
	signal = sigsetjmp(after_signal, 1);
	if (!signal) {
		if (store)
			*address = 1;
		else
			(void)*address;
	}
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return signal;
}

int signal_of_load(volatile unsigned char *address)
{
	return signal_of_access(address, 0);
}

int signal_of_store(volatile unsigned char *address)
{
	return signal_of_access(address, 1);
}

long fault_count(void)
{
	struct rusage usage;

	CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
	return usage.ru_minflt;
}

static void run_test(void *argument)
{
	const struct test *test = argument;

	alarm(TEST_TIMEOUT);
	test->run();
}

static int run_all(void)
{
	int failed = 0;
	size_t i;

	for (i = 0; i < sizeof(suites) / sizeof(*suites); i++) {
		const struct test *test;

		for (test = suites[i]; test->name; test++) {
			int status = run_child(run_test, (void *)test);

			printf("%s %s (status %#x)\n", status ? "not ok" : "ok",
			       test->name, status);
			fflush(stdout);
			failed |= status;
		}
	}
	return failed ? 1 : 0;
}

static void list(void)
{
	const struct test *test;
	size_t i;

	for (i = 0; i < sizeof(suites) / sizeof(*suites); i++)
		for (test = suites[i]; test->name; test++)
			puts(test->name);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "run"))
		return run_all();
	if (argc == 5 && !strcmp(argv[1], "fuzz"))
		return fuzz(strtoul(argv[2], NULL, 0),
			    strtoul(argv[3], NULL, 0), argv[4]);
	fprintf(stderr,
		"usage: guest-tests list | run | fuzz SEED CALLS DEVICE\n");
	return 2;
}
