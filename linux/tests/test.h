/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Tests that run in the guest, each in a process of its own. */
#ifndef COHKIT_TEST_H
#define COHKIT_TEST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cohkit.h"

#define DEVICE		"/dev/cohkit0"
/* Device that grants pages. */
#define PAGED_DEVICE	"/dev/cohkit1"
/* As in linux/init. */
#define GRANT_TIMEOUT_MS	5000
#define MODULE_PARAMETERS	"grant_timeout_ms=5000"
#define USER		1000
#define MIB		(1ull << 20)
#define GIB		(1ull << 30)
#define ALL		(COHKIT_READ | COHKIT_WRITE)

/* Page that the test on the host shares: see python/tests/linux_guest.py. */
#define HOST_PAGE	(64 * MIB)

struct test {
	const char *name;
	void (*run)(void);
};

/* Ends the process with a message if the condition does not hold. */
#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			fprintf(stderr, "%s:%d: %s (errno %d: %s)\n",	\
				__FILE__, __LINE__, #condition, errno,	\
				strerror(errno));			\
			_exit(1);					\
		}							\
	} while (0)

/* Checks that an expression fails with an error. */
#define CHECK_ERROR(failed, error)	\
	do {				\
		errno = 0;		\
		CHECK(failed);		\
		CHECK(errno == (error)); \
	} while (0)

/* Opens the device with all rights on all resources. */
struct cohkit open_granted(void);
struct cohkit open_granted_of(const char *path);

/* Value of a file in /sys/class/cohkit/cohkitN; of cohkit0 without N. */
long long sysfs_value(const char *name);
long long sysfs_value_of(int number, const char *name);

/* Gives up all privileges. */
void become_user(void);

/* Runs a function in a child and returns its status, as waitpid does. */
int run_child(void (*run)(void *), void *argument);

/* Signal that an access of a byte causes, or 0. */
int signal_of_load(volatile unsigned char *address);
int signal_of_store(volatile unsigned char *address);

/* Minor page faults of this process so far. */
long fault_count(void);

extern const struct test rights_tests[];
extern const struct test mapping_tests[];
extern const struct test process_tests[];
extern const struct test device_tests[];
extern const struct test pages_tests[];

/* Random calls of ioctl, mmap and others by a user without privileges. */
int fuzz(unsigned long seed, unsigned long calls, const char *path);

#endif /* COHKIT_TEST_H */
