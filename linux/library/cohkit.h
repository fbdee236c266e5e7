/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * C library for /dev/cohkitN. Functions return a negative value or a null
 * pointer after an error, with the reason in errno.
 */
#ifndef COHKIT_H
#define COHKIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/cohkit.h>

struct cohkit {
	int fd;
	struct cohkit_info info;
};

/* Opens a device, such as "/dev/cohkit0". The file has no rights at first. */
int cohkit_open(struct cohkit *device, const char *path);
void cohkit_close(struct cohkit *device);

/*
 * Adds or removes rights of an open file: COHKIT_READ, COHKIT_WRITE. Needs
 * CAP_SYS_ADMIN. The file may belong to another process that has sent it.
 */
int cohkit_grant(int fd, uint32_t resource, uint64_t start, uint64_t length,
		 uint32_t rights);
int cohkit_revoke(int fd, uint32_t resource, uint64_t start, uint64_t length,
		  uint32_t rights);

/*
 * Maps a range of a window, such as COHKIT_WINDOW_CACHED, with the protection
 * of mmap. With populate, all its pages are mapped before the return: an
 * access then causes no page fault, and prefetches have an effect.
 */
void *cohkit_map(const struct cohkit *device, unsigned int window,
		 uint64_t start, size_t length, int protection, bool populate);

/* Returns a new eventfd that each interrupt of a vector increments. */
int cohkit_listen(const struct cohkit *device, uint32_t vector);

/* Writes back a range of the memory from the processors' caches. */
int cohkit_clean(const struct cohkit *device, uint64_t start, uint64_t length,
		 bool invalidate);

#endif /* COHKIT_H */
