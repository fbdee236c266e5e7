/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Differences between the kernels from 6.1 to 6.12. */
#ifndef COHKIT_COMPAT_H
#define COHKIT_COMPAT_H

#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma,
				unsigned long set, unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* Argument of huge_fault: the size of the entry. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define cohkit_fault_size	enum page_entry_size
#define COHKIT_FAULT_PMD	PE_SIZE_PMD
#define COHKIT_FAULT_PUD	PE_SIZE_PUD
#else
#define cohkit_fault_size	unsigned int
#define COHKIT_FAULT_PMD	PMD_ORDER
#define COHKIT_FAULT_PUD	PUD_ORDER
#endif

static inline void cohkit_signal(struct eventfd_ctx *event)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	eventfd_signal(event, 1);
#else
	eventfd_signal(event);
#endif
}

/* Releases the lock that the fault handler was called with. */
static inline void cohkit_release_fault_lock(struct vm_fault *vmf)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	mmap_read_unlock(vmf->vma->vm_mm);
#else
	release_fault_lock(vmf);
#endif
}

/* Excludes page faults of a VMA until mmap_lock, held for writing, is released. */
static inline void cohkit_exclude_faults(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	vma_start_write(vma);
#endif
}

static inline unsigned long
cohkit_find_area(struct file *file, unsigned long addr, unsigned long length,
		 unsigned long pgoff, unsigned long flags)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
	return current->mm->get_unmapped_area(file, addr, length, pgoff,
					      flags);
#else
	return mm_get_unmapped_area(current->mm, file, addr, length, pgoff,
				    flags);
#endif
}

#endif /* COHKIT_COMPAT_H */
