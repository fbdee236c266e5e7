// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Calls the device through two pages whose ownership alternates.
 *
 * usage: rpc [DEVICE [CALLS]]
 *
 * At rest, this program owns one page and the device the other. The program
 * writes the arguments into its page and accesses the other one: this access
 * is the call. The device withholds the page, takes the arguments, computes,
 * and grants the page with the results. The device is the one of
 * python/tests/linux_pages.py, which returns 3x + 1 for each argument x.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "cohkit.h"

#define PAGE_BYTES	4096
#define WORDS		(PAGE_BYTES / sizeof(uint64_t))

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Returns the number of wrong results. */
static size_t call(uint64_t *arguments, volatile uint64_t *results,
		   uint64_t first)
{
	size_t wrong = 0;
	size_t i;

	for (i = 0; i < WORDS; i++)
		arguments[i] = first + i;
	/* An atomic access faults for a store: the next call needs it. */
	__atomic_fetch_or(&results[0], 0, __ATOMIC_SEQ_CST);
	for (i = 0; i < WORDS; i++)
		wrong += results[i] != 3 * (first + i) + 1;
	return wrong;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "/dev/cohkit0";
	unsigned long calls = argc > 2 ? strtoul(argv[2], NULL, 0) : 10;
	struct cohkit device;
	size_t wrong = 0;
	unsigned long i;
	uint64_t *pages;
	double start;

	if (cohkit_open(&device, path) < 0) {
		perror(path);
		return 1;
	}
	if (cohkit_grant(device.fd, COHKIT_MEMORY, 0, 2 * PAGE_BYTES,
			 COHKIT_READ | COHKIT_WRITE) < 0) {
		perror("rpc: cohkit_grant");
		return 1;
	}
	pages = cohkit_map(&device, COHKIT_WINDOW_CACHED, 0, 2 * PAGE_BYTES,
			   PROT_READ | PROT_WRITE, false);
	if (!pages) {
		perror("rpc: cohkit_map");
		return 1;
	}
	start = seconds();
	for (i = 0; i < calls; i++)
		wrong += call(pages + i % 2 * WORDS, pages + (i + 1) % 2 * WORDS,
			      i * 1000);
	printf("%lu calls with %zu arguments each, %zu wrong results\n", calls,
	       WORDS, wrong);
	printf("each took %.0f us\n", (seconds() - start) * 1e6 / calls);
	return wrong != 0;
}
