// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Rights on ranges: the only place that decides what a file may map. */
#include <linux/minmax.h>
#include <linux/slab.h>

#include "internal.h"

/* Appends a range to the result, joined with the last one where possible. */
static int append(struct cohkit_ranges *result, u64 start, u64 end, u32 rights)
{
	struct cohkit_range *last;

	if (start >= end || !rights)
		return 0;
	if (result->count) {
		last = &result->range[result->count - 1];
		if (last->end == start && last->rights == rights) {
			last->end = end;
			return 0;
		}
	}
	if (result->count == COHKIT_MAX_RANGES)
		return -ENOSPC;
	result->range[result->count++] = (struct cohkit_range) {
		.start = start, .end = end, .rights = rights,
	};
	return 0;
}

/**
 * cohkit_ranges_update() - adds rights to a range and removes others
 * @ranges: the rights; unchanged after an error
 * @start: first unit of the range
 * @end: unit after the last of the range
 * @set: rights to add
 * @clear: rights to remove
 *
 * Return: 0, -ENOMEM, or -ENOSPC if there would be too many ranges.
 */
int cohkit_ranges_update(struct cohkit_ranges *ranges, u64 start, u64 end,
			 u32 set, u32 clear)
{
	struct cohkit_ranges *result;
	u64 next = start;	/* part of the range that is not appended yet */
	unsigned int i;
	int err = 0;

	result = kzalloc(sizeof(*result), GFP_KERNEL);
	if (!result)
		return -ENOMEM;
	for (i = 0; i < ranges->count && !err; i++) {
		const struct cohkit_range *old = &ranges->range[i];
		u64 low = max(old->start, start);
		u64 high = min(old->end, end);

		err = append(result, old->start, min(old->end, start),
			     old->rights);
		if (!err && low < high) {
			err = append(result, next, low, set);
			if (!err)
				err = append(result, low, high,
					     (old->rights | set) & ~clear);
			next = high;
		} else if (!err && old->start >= end) {
			err = append(result, next, end, set);
			next = end;
		}
		if (!err)
			err = append(result, max(old->start, end), old->end,
				     old->rights);
	}
	if (!err)
		err = append(result, next, end, set);
	if (!err)
		*ranges = *result;
	kfree(result);
	return err;
}

/* Returns true if all rights are granted on all units of [start, end). */
bool cohkit_ranges_allow(const struct cohkit_ranges *ranges, u64 start,
			 u64 end, u32 rights)
{
	unsigned int i;

	for (i = 0; i < ranges->count && start < end; i++) {
		const struct cohkit_range *range = &ranges->range[i];

		if (range->end <= start)
			continue;
		if (range->start > start || (range->rights & rights) != rights)
			return false;
		start = range->end;
	}
	return start >= end;
}
