/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * Rings between the kernel and a device that withholds and recalls pages: the
 * last 2 MiB of its memory, if they start with the magic number. The protocol
 * is linux/pages.coh. All numbers are little-endian.
 */
#ifndef COHKIT_PAGES_UAPI_H
#define COHKIT_PAGES_UAPI_H

#include <linux/types.h>

#define COHKIT_PAGES_BYTES	(2u << 20)
#define COHKIT_PAGES_MAGIC	0x73676170	/* "pags" */
#define COHKIT_PAGES_VERSION	1
#define COHKIT_PAGES_MAX_SLOTS	65536

/* Messages of linux/pages.coh, in its order. */
enum cohkit_pages_message {
	COHKIT_PAGES_READ_FAULT = 1,
	COHKIT_PAGES_WRITE_FAULT,
	COHKIT_PAGES_RELEASE_READ,
	COHKIT_PAGES_RELEASE_WRITE,
	COHKIT_PAGES_PROTECTED,
	COHKIT_PAGES_UNMAPPED_WRITE,
	COHKIT_PAGES_UNMAPPED_READ,
	COHKIT_PAGES_STILL_READ,
	COHKIT_PAGES_NOT_MAPPED,
	COHKIT_PAGES_PROTECT,
	COHKIT_PAGES_UNMAP,
	COHKIT_PAGES_GRANT_READ,
	COHKIT_PAGES_GRANT_WRITE,
};

/* A slot of a ring: the message in the low 8 bits, the page above. */
#define COHKIT_PAGES_SLOT(message, page)	\
	((__u64)(message) | (__u64)(page) << 8)

/**
 * struct cohkit_pages_ring - counts of a ring, each in a cache line of its own
 * @head: messages that the receiver has taken
 * @tail: messages that the sender has put in
 */
struct cohkit_pages_ring {
	__u32 head;
	__u32 reserved0[15];
	__u32 tail;
	__u32 reserved1[15];
};

/**
 * struct cohkit_pages_control - start of the last 2 MiB
 * @magic: COHKIT_PAGES_MAGIC
 * @version: COHKIT_PAGES_VERSION
 * @device: number of the device for doorbells
 * @slots: slots of each ring, a power of two
 * @to_device: its slots begin 4096 bytes after this structure's start
 * @to_kernel: its slots follow those of the other ring
 */
struct cohkit_pages_control {
	__u32 magic;
	__u32 version;
	__u32 device;
	__u32 slots;
	__u32 reserved[12];
	struct cohkit_pages_ring to_device;
	struct cohkit_pages_ring to_kernel;
};

#define COHKIT_PAGES_SLOTS_OFFSET	4096

#endif /* COHKIT_PAGES_UAPI_H */
