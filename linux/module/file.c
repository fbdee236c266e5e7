// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* The device file: open, close and ioctl. */
#include <linux/capability.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

static int cohkit_open(struct inode *inode, struct file *filp)
{
	struct cohkit_device *cohkit =
		container_of(inode->i_cdev, struct cohkit_device, cdev);
	struct cohkit_file *file;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	file->cohkit = cohkit;
	mutex_init(&file->listeners_lock);
	/* All nodes of the device share its address space, for unmapping. */
	filp->f_mapping = cohkit->inode->i_mapping;
	filp->private_data = file;
	atomic_inc(&cohkit->counters.files);
	return nonseekable_open(inode, filp);
}

static int cohkit_release(struct inode *inode, struct file *filp)
{
	struct cohkit_file *file = filp->private_data;
	unsigned int vector;

	for (vector = 0; vector < file->cohkit->vectors; vector++)
		cohkit_interrupts_forget(file, vector);
	atomic_dec(&file->cohkit->counters.files);
	kfree(file);
	return 0;
}

static long get_info(struct cohkit_device *cohkit,
		     struct cohkit_info __user *user)
{
	struct cohkit_info info = {
		.memory_size = cohkit->memory.size,
		.registers_size = cohkit->registers_size,
		.vectors = cohkit->vectors,
	};

	return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

/* Number of units of a resource that can be granted; a multiple of @unit. */
static u64 resource_size_of(const struct cohkit_device *cohkit, u32 resource,
			    u64 *unit)
{
	*unit = PAGE_SIZE;
	switch (resource) {
	case COHKIT_MEMORY:
		return cohkit->memory.size;
	case COHKIT_REGISTERS:
		return PAGE_ALIGN(cohkit->registers_size);
	case COHKIT_INTERRUPTS:
		*unit = 1;
		return cohkit->vectors;
	default:
		return 0;
	}
}

static int check_grant(const struct cohkit_device *cohkit,
		       const struct cohkit_grant *grant)
{
	u64 unit;
	u64 size = resource_size_of(cohkit, grant->resource, &unit);

	if (!grant->rights || grant->rights & ~(COHKIT_READ | COHKIT_WRITE))
		return -EINVAL;
	if (grant->start >= size || grant->length > size - grant->start)
		return -EINVAL;
	if (!grant->length || !IS_ALIGNED(grant->start, unit) ||
	    !IS_ALIGNED(grant->length, unit))
		return -EINVAL;
	return 0;
}

/* Unmaps what a file may no longer use, and stops its interrupts. */
static void apply_revocation(struct cohkit_file *file,
			     const struct cohkit_grant *grant)
{
	struct cohkit_device *cohkit = file->cohkit;
	u64 vector;

	switch (grant->resource) {
	case COHKIT_MEMORY:
		cohkit_unmap_memory(cohkit, grant->start, grant->length);
		break;
	case COHKIT_REGISTERS:
		cohkit_unmap(cohkit, COHKIT_WINDOW_REGISTERS, grant->start,
			     grant->length);
		break;
	default:
		for (vector = grant->start;
		     vector < grant->start + grant->length; vector++)
			cohkit_interrupts_forget(file, vector);
	}
}

static long change_grant(struct cohkit_file *file,
			 const struct cohkit_grant __user *user, bool revoke)
{
	struct cohkit_device *cohkit = file->cohkit;
	struct cohkit_grant grant;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (copy_from_user(&grant, user, sizeof(grant)))
		return -EFAULT;
	err = check_grant(cohkit, &grant);
	if (err)
		return err;
	down_write(&cohkit->lock);
	if (cohkit->removed)
		err = -ENODEV;
	else
		err = cohkit_ranges_update(&file->ranges[grant.resource],
					   grant.start,
					   grant.start + grant.length,
					   revoke ? 0 : grant.rights,
					   revoke ? grant.rights : 0);
	if (!err && revoke)
		file->split = true;
	up_write(&cohkit->lock);
	if (!err && revoke)
		apply_revocation(file, &grant);
	return err;
}

static long populate(struct file *filp,
		     const struct cohkit_populate __user *user)
{
	struct cohkit_populate populate;

	if (copy_from_user(&populate, user, sizeof(populate)))
		return -EFAULT;
	return cohkit_populate(filp, &populate);
}

static long set_eventfd(struct cohkit_file *file,
			const struct cohkit_eventfd __user *user)
{
	struct cohkit_device *cohkit = file->cohkit;
	struct cohkit_eventfd eventfd;
	int err = 0;

	if (copy_from_user(&eventfd, user, sizeof(eventfd)))
		return -EFAULT;
	if (eventfd.vector >= cohkit->vectors)
		return -EINVAL;
	/* Held to the end: a revocation may not come in between. */
	down_read(&cohkit->lock);
	if (cohkit->removed)
		err = -ENODEV;
	else if (!cohkit_ranges_allow(&file->ranges[COHKIT_INTERRUPTS],
				      eventfd.vector, eventfd.vector + 1ULL,
				      COHKIT_READ))
		err = -EACCES;
	else if (eventfd.fd < 0)
		cohkit_interrupts_forget(file, eventfd.vector);
	else
		err = cohkit_interrupts_listen(file, eventfd.vector,
					       eventfd.fd);
	up_read(&cohkit->lock);
	return err;
}

static long operate_cache(struct cohkit_file *file,
			  const struct cohkit_cache __user *user)
{
	struct cohkit_device *cohkit = file->cohkit;
	struct cohkit_cache cache;
	u64 size = cohkit->memory.size;
	bool allowed;

	if (copy_from_user(&cache, user, sizeof(cache)))
		return -EFAULT;
	if (cache.operation > COHKIT_CLEAN_INVALIDATE || cache.reserved)
		return -EINVAL;
	if (cache.start >= size || cache.length > size - cache.start)
		return -EINVAL;
	down_read(&cohkit->lock);
	allowed = cohkit_ranges_allow(&file->ranges[COHKIT_MEMORY],
				      cache.start, cache.start + cache.length,
				      COHKIT_READ);
	up_read(&cohkit->lock);
	if (!allowed)
		return -EACCES;
	return cohkit_blocks_clean(&cohkit->memory, cache.start, cache.length,
				   cache.operation == COHKIT_CLEAN_INVALIDATE);
}

static long cohkit_ioctl(struct file *filp, unsigned int command,
			 unsigned long argument)
{
	struct cohkit_file *file = filp->private_data;
	void __user *user = (void __user *)argument;
	bool removed;

	down_read(&file->cohkit->lock);
	removed = file->cohkit->removed;
	up_read(&file->cohkit->lock);
	if (removed)
		return -ENODEV;

	switch (command) {
	case COHKIT_IOC_INFO:
		return get_info(file->cohkit, user);
	case COHKIT_IOC_GRANT:
		return change_grant(file, user, false);
	case COHKIT_IOC_REVOKE:
		return change_grant(file, user, true);
	case COHKIT_IOC_POPULATE:
		return populate(filp, user);
	case COHKIT_IOC_EVENTFD:
		return set_eventfd(file, user);
	case COHKIT_IOC_CACHE:
		return operate_cache(file, user);
	default:
		return -ENOTTY;
	}
}

const struct file_operations cohkit_fops = {
	.owner = THIS_MODULE,
	.open = cohkit_open,
	.release = cohkit_release,
	.unlocked_ioctl = cohkit_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = cohkit_mmap,
	.get_unmapped_area = cohkit_get_unmapped_area,
};
