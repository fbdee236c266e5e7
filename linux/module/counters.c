// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Sizes and counters in /sys/class/cohkit/cohkitN. */
#include <linux/sysfs.h>

#include "internal.h"

static struct cohkit_device *to_cohkit(struct device *dev)
{
	return container_of(dev, struct cohkit_device, dev);
}

/* Defines a read-only attribute that prints an expression of the device. */
#define COHKIT_ATTRIBUTE(name, format, expression)			\
static ssize_t name##_show(struct device *dev,				\
			   struct device_attribute *attribute, char *buf)	\
{									\
	struct cohkit_device *cohkit = to_cohkit(dev);			\
									\
	return sysfs_emit(buf, format "\n", expression);		\
}									\
static DEVICE_ATTR_RO(name)

#define COHKIT_COUNTER(name)						\
	COHKIT_ATTRIBUTE(name, "%lld",					\
			 (long long)atomic64_read(&cohkit->counters.name))

COHKIT_ATTRIBUTE(memory_size, "%llu", cohkit->memory.size);
COHKIT_ATTRIBUTE(registers_size, "%llu", cohkit->registers_size);
COHKIT_ATTRIBUTE(vectors, "%u", cohkit->vectors);
COHKIT_ATTRIBUTE(files, "%d", atomic_read(&cohkit->counters.files));
COHKIT_ATTRIBUTE(mappings, "%d", atomic_read(&cohkit->counters.mappings));
COHKIT_COUNTER(pages);
COHKIT_COUNTER(pmds);
COHKIT_COUNTER(puds);
COHKIT_COUNTER(denied);
COHKIT_COUNTER(interrupts);
COHKIT_COUNTER(grants);
COHKIT_COUNTER(recalls);
COHKIT_COUNTER(timeouts);

static struct attribute *size_attributes[] = {
	&dev_attr_memory_size.attr,
	&dev_attr_registers_size.attr,
	&dev_attr_vectors.attr,
	NULL
};

static const struct attribute_group size_group = {
	.attrs = size_attributes,
};

static struct attribute *counter_attributes[] = {
	&dev_attr_files.attr,
	&dev_attr_mappings.attr,
	&dev_attr_pages.attr,
	&dev_attr_pmds.attr,
	&dev_attr_puds.attr,
	&dev_attr_denied.attr,
	&dev_attr_interrupts.attr,
	&dev_attr_grants.attr,
	&dev_attr_recalls.attr,
	&dev_attr_timeouts.attr,
	NULL
};

static const struct attribute_group counter_group = {
	.name = "counters",
	.attrs = counter_attributes,
};

const struct attribute_group *cohkit_groups[] = {
	&size_group,
	&counter_group,
	NULL
};
