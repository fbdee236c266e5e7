// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Maps a region of device memory, with and without population, and prints the
 * time of the first and of the second access to each of its pages.
 *
 * usage: map_memory [DEVICE [MIB]]
 *
 * The program grants itself the region, for which it needs CAP_SYS_ADMIN; in
 * a real system, a service opens the device, grants, and passes the file on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "cohkit.h"

#define PAGE_BYTES	4096

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Adds one to a word of each page; returns nanoseconds for each page. */
static double touch(volatile unsigned char *memory, size_t length)
{
	double start = seconds();
	size_t i;

	for (i = 0; i < length; i += PAGE_BYTES)
		memory[i]++;
	return (seconds() - start) * 1e9 / (length / PAGE_BYTES);
}

static int measure(const struct cohkit *device, size_t length, bool populate)
{
	double start = seconds();
	unsigned char *memory;
	double first, second;

	memory = cohkit_map(device, COHKIT_WINDOW_CACHED, 0, length,
			    PROT_READ | PROT_WRITE, populate);
	if (!memory) {
		perror("map_memory: cohkit_map");
		return 1;
	}
	start = (seconds() - start) * 1e6;
	first = touch(memory, length);
	second = touch(memory, length);
	printf("%s: mapped in %.0f us, first access %.0f ns, second %.0f ns\n",
	       populate ? "populated" : "on demand", start, first, second);
	munmap(memory, length);
	return 0;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "/dev/cohkit0";
	size_t length = (argc > 2 ? strtoull(argv[2], NULL, 0) : 8) << 20;
	struct cohkit device;

	if (cohkit_open(&device, path) < 0) {
		perror(path);
		return 1;
	}
	if (cohkit_grant(device.fd, COHKIT_MEMORY, 0, length,
			 COHKIT_READ | COHKIT_WRITE) < 0) {
		perror("map_memory: cohkit_grant");
		return 1;
	}
	printf("%s: %llu MiB of memory, %u interrupts\n", path,
	       (unsigned long long)device.info.memory_size >> 20,
	       device.info.vectors);
	return measure(&device, length, false) || measure(&device, length, true);
}
