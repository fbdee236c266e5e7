/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Structures and functions that the files of the module share.
 *
 * Lock order: mmap_lock, cohkit_device.lock, cohkit_blocks.lock. User memory
 * is accessed with none of the last two held, because the page fault that
 * this may cause takes them.
 */
#ifndef COHKIT_INTERNAL_H
#define COHKIT_INTERNAL_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>

#include <linux/cohkit.h>

#define COHKIT_MAX_RANGES	64
#define COHKIT_MAX_VECTORS	16
#define COHKIT_RESOURCES	3

/* The range [start, end) with the rights on it. */
struct cohkit_range {
	u64 start;
	u64 end;
	u32 rights;
};

/* Ranges in ascending order, without overlap. */
struct cohkit_ranges {
	unsigned int count;
	struct cohkit_range range[COHKIT_MAX_RANGES];
};

/* A block of 2 MiB of memory, which has one memory type while it is mapped. */
struct cohkit_block {
	void *kernel;		/* mapping that reserves the type */
	u32 mappings;		/* calls of mmap that are still in use */
	u32 window;
};

struct cohkit_blocks {
	struct mutex lock;	/* protects all blocks */
	phys_addr_t start;
	u64 size;
	bool removed;
	struct cohkit_block *block;
};

struct cohkit_vector {
	spinlock_t lock;	/* protects listeners, also from the handler */
	struct list_head listeners;
	struct cohkit_device *cohkit;
};

struct cohkit_counters {
	atomic64_t pages;	/* entries of 4 KiB that were mapped */
	atomic64_t pmds;	/* of 2 MiB */
	atomic64_t puds;	/* of 1 GiB */
	atomic64_t denied;	/* faults and mmap calls without permission */
	atomic64_t interrupts;
	atomic64_t grants;	/* pages that the device granted */
	atomic64_t recalls;	/* pages that it took back or protected */
	atomic64_t timeouts;	/* faults without a grant in time */
	atomic_t files;		/* open files */
	atomic_t mappings;	/* calls of mmap that are still in use */
};

struct cohkit_device {
	struct device dev;
	struct cdev cdev;
	struct pci_dev *pci;
	struct inode *inode;	/* its address space has all mappings */
	/*
	 * Protects removed, and the ranges and the flag split of all files.
	 * Whoever maps a page holds it for reading from the check to the
	 * insertion, so that revocation leaves no page behind.
	 */
	struct rw_semaphore lock;
	bool removed;
	struct cohkit_blocks memory;
	phys_addr_t registers;
	u64 registers_size;	/* 0 if they share their page */
	struct resource registers_rest;
	struct cohkit_pages *pages;	/* null if the device grants no pages */
	unsigned int vectors;
	struct cohkit_vector vector[COHKIT_MAX_VECTORS];
	struct cohkit_counters counters;
};

struct cohkit_file {
	struct cohkit_device *cohkit;
	/*
	 * True from the first revocation on: mapped by pages of 4 KiB only.
	 * A huge entry and a page table for the same addresses may not race.
	 */
	bool split;
	struct cohkit_ranges ranges[COHKIT_RESOURCES];
	struct mutex listeners_lock;	/* protects listeners */
	struct cohkit_listener *listeners[COHKIT_MAX_VECTORS];
};

/* One call of mmap, shared by the pieces into which it is split later. */
struct cohkit_mapping {
	struct kref references;
	struct cohkit_device *cohkit;
	unsigned int window;
	u64 start;
	u64 length;
};

/* file.c */
extern const struct file_operations cohkit_fops;

/* ranges.c */
int cohkit_ranges_update(struct cohkit_ranges *ranges, u64 start, u64 end,
			 u32 set, u32 clear);
bool cohkit_ranges_allow(const struct cohkit_ranges *ranges, u64 start,
			 u64 end, u32 rights);

/* memory.c */
int cohkit_mmap(struct file *file, struct vm_area_struct *vma);
unsigned long cohkit_get_unmapped_area(struct file *file, unsigned long addr,
				       unsigned long length,
				       unsigned long pgoff,
				       unsigned long flags);
int cohkit_populate(struct file *file, const struct cohkit_populate *populate);
u64 cohkit_offset(const struct vm_area_struct *vma, unsigned long addr);
bool cohkit_may_fault(struct vm_area_struct *vma, u64 offset, u64 size);
void cohkit_open_vma(struct vm_area_struct *vma);
void cohkit_close_vma(struct vm_area_struct *vma);
void cohkit_unmap(struct cohkit_device *cohkit, unsigned int window, u64 start,
		  u64 length);
void cohkit_unmap_memory(struct cohkit_device *cohkit, u64 start, u64 length);

/* blocks.c */
int cohkit_blocks_init(struct cohkit_blocks *blocks, phys_addr_t start,
		       u64 size);
void cohkit_blocks_remove(struct cohkit_blocks *blocks);
void cohkit_blocks_free(struct cohkit_blocks *blocks);
int cohkit_blocks_get(struct cohkit_blocks *blocks, unsigned int window,
		      u64 start, u64 length);
void cohkit_blocks_put(struct cohkit_blocks *blocks, u64 start, u64 length);
int cohkit_blocks_clean(struct cohkit_blocks *blocks, u64 start, u64 length,
			bool invalidate);

/* interrupts.c */
int cohkit_interrupts_init(struct cohkit_device *cohkit);
void cohkit_interrupts_remove(struct cohkit_device *cohkit);
int cohkit_interrupts_listen(struct cohkit_file *file, u32 vector, int fd);
void cohkit_interrupts_forget(struct cohkit_file *file, u32 vector);

/* pages.c */
extern const struct vm_operations_struct cohkit_pages_vm_ops;
int cohkit_pages_init(struct cohkit_device *cohkit);
void cohkit_pages_interrupt(struct cohkit_pages *pages);
void cohkit_pages_remove(struct cohkit_device *cohkit);
void cohkit_pages_disconnect(struct cohkit_device *cohkit);
void cohkit_pages_free(struct cohkit_device *cohkit);

/* counters.c */
extern const struct attribute_group *cohkit_groups[];

#endif /* COHKIT_INTERNAL_H */
