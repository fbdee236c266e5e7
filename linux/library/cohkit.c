// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cohkit.h"

int cohkit_open(struct cohkit *device, const char *path)
{
	device->fd = open(path, O_RDWR | O_CLOEXEC);
	if (device->fd < 0)
		return -1;
	if (ioctl(device->fd, COHKIT_IOC_INFO, &device->info) < 0) {
		cohkit_close(device);
		return -1;
	}
	return 0;
}

void cohkit_close(struct cohkit *device)
{
	int error = errno;

	close(device->fd);
	device->fd = -1;
	errno = error;
}

static int change_grant(int fd, unsigned long command, uint32_t resource,
			uint64_t start, uint64_t length, uint32_t rights)
{
	struct cohkit_grant grant = {
		.resource = resource,
		.rights = rights,
		.start = start,
		.length = length,
	};

	return ioctl(fd, command, &grant);
}

int cohkit_grant(int fd, uint32_t resource, uint64_t start, uint64_t length,
		 uint32_t rights)
{
	return change_grant(fd, COHKIT_IOC_GRANT, resource, start, length,
			    rights);
}

int cohkit_revoke(int fd, uint32_t resource, uint64_t start, uint64_t length,
		  uint32_t rights)
{
	return change_grant(fd, COHKIT_IOC_REVOKE, resource, start, length,
			    rights);
}

void *cohkit_map(const struct cohkit *device, unsigned int window,
		 uint64_t start, size_t length, int protection, bool populate)
{
	void *address = mmap(NULL, length, protection, MAP_SHARED, device->fd,
			     (off_t)(COHKIT_OFFSET(window) + start));
	struct cohkit_populate range = {
		.address = (uint64_t)(uintptr_t)address,
		.length = length,
	};

	if (address == MAP_FAILED)
		return NULL;
	if (populate && ioctl(device->fd, COHKIT_IOC_POPULATE, &range) < 0) {
		int error = errno;

		munmap(address, length);
		errno = error;
		return NULL;
	}
	return address;
}

int cohkit_listen(const struct cohkit *device, uint32_t vector)
{
	struct cohkit_eventfd listener = { .vector = vector };

	listener.fd = eventfd(0, EFD_CLOEXEC);
	if (listener.fd < 0)
		return -1;
	if (ioctl(device->fd, COHKIT_IOC_EVENTFD, &listener) < 0) {
		int error = errno;

		close(listener.fd);
		errno = error;
		return -1;
	}
	return listener.fd;
}

int cohkit_clean(const struct cohkit *device, uint64_t start, uint64_t length,
		 bool invalidate)
{
	struct cohkit_cache cache = {
		.operation = invalidate ? COHKIT_CLEAN_INVALIDATE : COHKIT_CLEAN,
		.start = start,
		.length = length,
	};

	return ioctl(device->fd, COHKIT_IOC_CACHE, &cache);
}
