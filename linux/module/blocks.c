// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Memory types. Two types for one page at a time are an error on most
 * processors, so that a block of 2 MiB has the type of those who map it. Its
 * mapping in the kernel reserves the type; x86 takes the type of a user's
 * mapping from this reservation.
 */
#include <linux/bits.h>
#include <linux/cacheflush.h>
#include <linux/io.h>
#include <linux/libnvdimm.h>
#include <linux/minmax.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"

#define TYPE_BLOCK_SHIFT	21
#define TYPE_BLOCK_SIZE	BIT_ULL(TYPE_BLOCK_SHIFT)

static u64 block_count(const struct cohkit_blocks *blocks)
{
	return DIV_ROUND_UP_ULL(blocks->size, TYPE_BLOCK_SIZE);
}

int cohkit_blocks_init(struct cohkit_blocks *blocks, phys_addr_t start,
		       u64 size)
{
	mutex_init(&blocks->lock);
	blocks->start = start;
	blocks->size = size;
	blocks->block = kvcalloc(block_count(blocks), sizeof(*blocks->block),
				 GFP_KERNEL);
	return blocks->block ? 0 : -ENOMEM;
}

static void *map_block(struct cohkit_blocks *blocks, u64 number,
		       unsigned int window)
{
	u64 offset = number << TYPE_BLOCK_SHIFT;
	phys_addr_t start = blocks->start + offset;
	size_t size = min(TYPE_BLOCK_SIZE, blocks->size - offset);

	switch (window) {
	case COHKIT_WINDOW_CACHED:
		return memremap(start, size, MEMREMAP_WB);
	case COHKIT_WINDOW_WRITE_COMBINING:
		return memremap(start, size, MEMREMAP_WC);
	default:
		return (__force void *)ioremap(start, size);
	}
}

static void unmap_block(struct cohkit_block *block)
{
	if (!block->kernel)
		return;
	if (block->window == COHKIT_WINDOW_UNCACHED)
		iounmap((__force void __iomem *)block->kernel);
	else
		memunmap(block->kernel);
	block->kernel = NULL;
}

static void put_blocks(struct cohkit_blocks *blocks, u64 first, u64 end)
{
	u64 number;

	for (number = first; number < end; number++) {
		struct cohkit_block *block = &blocks->block[number];

		if (!--block->mappings)
			unmap_block(block);
	}
}

static int get_block(struct cohkit_blocks *blocks, u64 number,
		     unsigned int window)
{
	struct cohkit_block *block = &blocks->block[number];

	if (block->mappings && block->window != window)
		return -EBUSY;
	if (!block->mappings) {
		block->kernel = map_block(blocks, number, window);
		/* Another driver may have reserved another type. */
		if (!block->kernel)
			return -EBUSY;
		block->window = window;
	}
	block->mappings++;
	return 0;
}

/**
 * cohkit_blocks_get() - reserves the memory type of a range
 * @blocks: blocks of the device
 * @window: window that has the type
 * @start: first byte in the memory
 * @length: bytes, not 0
 *
 * Return: 0, -EBUSY while a block has another type, -ENODEV after removal.
 */
int cohkit_blocks_get(struct cohkit_blocks *blocks, unsigned int window,
		      u64 start, u64 length)
{
	u64 first = start >> TYPE_BLOCK_SHIFT;
	u64 end = ((start + length - 1) >> TYPE_BLOCK_SHIFT) + 1;
	u64 number;
	int err = 0;

	mutex_lock(&blocks->lock);
	if (blocks->removed)
		err = -ENODEV;
	for (number = first; number < end && !err; number++) {
		err = get_block(blocks, number, window);
		if (err)
			put_blocks(blocks, first, number);
		cond_resched();
	}
	mutex_unlock(&blocks->lock);
	return err;
}

/* Ends the reservation of cohkit_blocks_get() for the same range. */
void cohkit_blocks_put(struct cohkit_blocks *blocks, u64 start, u64 length)
{
	mutex_lock(&blocks->lock);
	put_blocks(blocks, start >> TYPE_BLOCK_SHIFT,
		   ((start + length - 1) >> TYPE_BLOCK_SHIFT) + 1);
	mutex_unlock(&blocks->lock);
}

/* Unmaps all blocks from the kernel: the device is gone, mappings may stay. */
void cohkit_blocks_remove(struct cohkit_blocks *blocks)
{
	u64 number;

	mutex_lock(&blocks->lock);
	blocks->removed = true;
	for (number = 0; number < block_count(blocks); number++)
		unmap_block(&blocks->block[number]);
	mutex_unlock(&blocks->lock);
}

void cohkit_blocks_free(struct cohkit_blocks *blocks)
{
	kvfree(blocks->block);
}

static void clean_lines(void *start, size_t length, bool invalidate)
{
#ifdef CONFIG_X86
	if (invalidate)
		clflush_cache_range(start, length);
	else
		arch_wb_cache_pmem(start, length);
#endif
}

/**
 * cohkit_blocks_clean() - writes back what the processors' caches hold
 * @blocks: blocks of the device
 * @start: first byte in the memory
 * @length: bytes
 * @invalidate: true to remove the lines from the caches as well
 *
 * A block that nobody maps as cached has no lines in caches.
 *
 * Return: 0, -EOPNOTSUPP where the architecture has no such operation,
 * -EINTR after a fatal signal.
 */
int cohkit_blocks_clean(struct cohkit_blocks *blocks, u64 start, u64 length,
			bool invalidate)
{
	u64 end = start + length;

	if (!IS_ENABLED(CONFIG_X86))
		return -EOPNOTSUPP;
	while (start < end) {
		struct cohkit_block *block =
			&blocks->block[start >> TYPE_BLOCK_SHIFT];
		u64 offset = start & (TYPE_BLOCK_SIZE - 1);
		u64 part = min(TYPE_BLOCK_SIZE - offset, end - start);

		if (fatal_signal_pending(current))
			return -EINTR;
		mutex_lock(&blocks->lock);
		if (block->kernel && block->window == COHKIT_WINDOW_CACHED)
			clean_lines(block->kernel + offset, part, invalidate);
		mutex_unlock(&blocks->lock);
		start += part;
		cond_resched();
	}
	return 0;
}
