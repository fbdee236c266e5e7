/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * Interface of /dev/cohkitN: coherent memory of a device, in user space.
 *
 * An open file has no permission at first. An administrator grants it
 * ranges of the memory, the page of registers, and interrupts.
 */
#ifndef COHKIT_UAPI_H
#define COHKIT_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Windows of the file: offsets for mmap. The first three show the same
 * memory, each with another memory type. Pages that share a block of 2 MiB
 * have one type at a time: mmap fails with EBUSY while another is mapped.
 */
#define COHKIT_WINDOW_CACHED		0
#define COHKIT_WINDOW_WRITE_COMBINING	1
#define COHKIT_WINDOW_UNCACHED		2
#define COHKIT_WINDOW_REGISTERS		3
#define COHKIT_WINDOW_SHIFT		56
#define COHKIT_OFFSET(window)		((__u64)(window) << COHKIT_WINDOW_SHIFT)

/* Resources of a device, and the unit of a range of each of them. */
#define COHKIT_MEMORY		0	/* bytes */
#define COHKIT_REGISTERS	1	/* bytes, from the start of their page */
#define COHKIT_INTERRUPTS	2	/* vectors */

/* Rights on a range. */
#define COHKIT_READ		(1u << 0)
#define COHKIT_WRITE		(1u << 1)

/**
 * struct cohkit_info - sizes of the device
 * @memory_size: bytes of memory
 * @registers_size: bytes of the registers, 0 if they cannot be mapped
 * @vectors: number of interrupt vectors
 * @reserved: 0
 */
struct cohkit_info {
	__u64 memory_size;
	__u64 registers_size;
	__u32 vectors;
	__u32 reserved;
};

/**
 * struct cohkit_grant - rights of an open file on a range
 * @resource: COHKIT_MEMORY, COHKIT_REGISTERS or COHKIT_INTERRUPTS
 * @rights: COHKIT_READ and COHKIT_WRITE; an interrupt needs COHKIT_READ
 * @start: first unit of the range
 * @length: number of units
 */
struct cohkit_grant {
	__u32 resource;
	__u32 rights;
	__u64 start;
	__u64 length;
};

/**
 * struct cohkit_populate - range of mapped addresses
 * @address: first address
 * @length: bytes
 */
struct cohkit_populate {
	__u64 address;
	__u64 length;
};

/**
 * struct cohkit_eventfd - destination of an interrupt
 * @vector: number of the vector
 * @fd: an eventfd, or -1 to remove the present one
 */
struct cohkit_eventfd {
	__u32 vector;
	__s32 fd;
};

#define COHKIT_CLEAN		0
#define COHKIT_CLEAN_INVALIDATE	1

/**
 * struct cohkit_cache - operation on the processors' caches
 * @operation: COHKIT_CLEAN or COHKIT_CLEAN_INVALIDATE
 * @reserved: 0
 * @start: first byte of the range in the memory
 * @length: bytes
 */
struct cohkit_cache {
	__u32 operation;
	__u32 reserved;
	__u64 start;
	__u64 length;
};

#define COHKIT_IOC_MAGIC	0xC6
#define COHKIT_IOC_INFO		_IOR(COHKIT_IOC_MAGIC, 0, struct cohkit_info)
/* These two need CAP_SYS_ADMIN; revoked pages are unmapped at once. */
#define COHKIT_IOC_GRANT	_IOW(COHKIT_IOC_MAGIC, 1, struct cohkit_grant)
#define COHKIT_IOC_REVOKE	_IOW(COHKIT_IOC_MAGIC, 2, struct cohkit_grant)
#define COHKIT_IOC_POPULATE	_IOW(COHKIT_IOC_MAGIC, 3, struct cohkit_populate)
#define COHKIT_IOC_EVENTFD	_IOW(COHKIT_IOC_MAGIC, 4, struct cohkit_eventfd)
#define COHKIT_IOC_CACHE	_IOW(COHKIT_IOC_MAGIC, 5, struct cohkit_cache)

#endif /* COHKIT_UAPI_H */
