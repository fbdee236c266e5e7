// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Mappings of the memory and of the registers, and their page faults. */
#include <linux/minmax.h>
#include <linux/pfn_t.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

#define OFFSET_MASK	(COHKIT_OFFSET(1) - 1)

static u64 vma_start_offset(const struct vm_area_struct *vma)
{
	return ((u64)vma->vm_pgoff << PAGE_SHIFT) & OFFSET_MASK;
}

/* Offset in the memory, or in the registers, that an address shows. */
u64 cohkit_offset(const struct vm_area_struct *vma, unsigned long addr)
{
	return vma_start_offset(vma) + (addr - vma->vm_start);
}

static u32 vma_rights(const struct vm_area_struct *vma)
{
	return COHKIT_READ | (vma->vm_flags & VM_WRITE ? COHKIT_WRITE : 0);
}

static unsigned int window_resource(unsigned int window)
{
	return window == COHKIT_WINDOW_REGISTERS ? COHKIT_REGISTERS :
						   COHKIT_MEMORY;
}

static phys_addr_t window_base(const struct cohkit_device *cohkit,
			       unsigned int window)
{
	return window == COHKIT_WINDOW_REGISTERS ? cohkit->registers :
						   cohkit->memory.start;
}

/*
 * Returns true if the file of a mapping still has the rights on a range. The
 * lock of the device is held until the page is mapped.
 */
bool cohkit_may_fault(struct vm_area_struct *vma, u64 offset, u64 size)
{
	struct cohkit_file *file = vma->vm_file->private_data;
	struct cohkit_mapping *mapping = vma->vm_private_data;
	const struct cohkit_ranges *ranges =
		&file->ranges[window_resource(mapping->window)];

	lockdep_assert_held(&file->cohkit->lock);
	if (file->cohkit->removed)
		return false;
	if (cohkit_ranges_allow(ranges, offset, offset + size,
				vma_rights(vma)))
		return true;
	atomic64_inc(&file->cohkit->counters.denied);
	return false;
}

/* Maps the granted pages around an address that share its page table. */
static vm_fault_t insert_pages(struct vm_fault *vmf, u64 offset,
			       phys_addr_t phys)
{
	struct vm_area_struct *vma = vmf->vma;
	struct cohkit_file *file = vma->vm_file->private_data;
	struct cohkit_mapping *mapping = vma->vm_private_data;
	unsigned long fault = vmf->address & PAGE_MASK;
	unsigned long addr = max(fault & PMD_MASK, vma->vm_start);
	unsigned long end = min((fault & PMD_MASK) + PMD_SIZE, vma->vm_end);
	const struct cohkit_ranges *ranges;
	vm_fault_t result;
	unsigned long count = 1;

	result = vmf_insert_pfn(vma, fault, PHYS_PFN(phys));
	if (result != VM_FAULT_NOPAGE)
		return result;
	ranges = &file->ranges[window_resource(mapping->window)];
	for (; addr < end; addr += PAGE_SIZE) {
		u64 other = offset + addr - fault;

		if (addr == fault)
			continue;
		if (!cohkit_ranges_allow(ranges, other, other + PAGE_SIZE,
					 vma_rights(vma)))
			continue;
		if (vmf_insert_pfn(vma, addr, PHYS_PFN(phys + addr - fault)) !=
		    VM_FAULT_NOPAGE)
			break;
		count++;
	}
	atomic64_add(count, &file->cohkit->counters.pages);
	return VM_FAULT_NOPAGE;
}

static vm_fault_t insert_entry(struct vm_fault *vmf, unsigned long size,
			       u64 offset, phys_addr_t phys)
{
	struct cohkit_file *file = vmf->vma->vm_file->private_data;
	struct cohkit_counters *counters = &file->cohkit->counters;
	bool write = vmf->flags & FAULT_FLAG_WRITE;
	vm_fault_t result;
	/*
	 * There are no struct pages. Without these flags, get_user_pages_fast()
	 * would look for them: it does not know that a huge entry is special.
	 * With them, it asks for the device's page map, finds none, and fails.
	 */
	pfn_t pfn = phys_to_pfn_t(phys, PFN_DEV | PFN_MAP);

	if (size == PAGE_SIZE)
		return insert_pages(vmf, offset, phys);
	if (size == PMD_SIZE) {
		result = vmf_insert_pfn_pmd(vmf, pfn, write);
		if (result == VM_FAULT_NOPAGE)
			atomic64_inc(&counters->pmds);
		return result;
	}
#ifdef CONFIG_HAVE_ARCH_TRANSPARENT_HUGEPAGE_PUD
	result = vmf_insert_pfn_pud(vmf, pfn, write);
	if (result == VM_FAULT_NOPAGE)
		atomic64_inc(&counters->puds);
	return result;
#else
	return VM_FAULT_FALLBACK;
#endif
}

/*
 * Maps an entry of a size, if the mapping and the alignment allow it. For one
 * address, this depends on the VMA alone until the file is split: threads that
 * fault at the same time choose the same size.
 */
static vm_fault_t fault_of_size(struct vm_fault *vmf, unsigned long size)
{
	struct vm_area_struct *vma = vmf->vma;
	struct cohkit_file *file = vma->vm_file->private_data;
	struct cohkit_mapping *mapping = vma->vm_private_data;
	struct cohkit_device *cohkit = file->cohkit;
	unsigned long addr = ALIGN_DOWN(vmf->address, size);
	phys_addr_t phys;
	vm_fault_t result;
	u64 offset;

	if (addr < vma->vm_start || vma->vm_end - addr < size)
		return VM_FAULT_FALLBACK;
	offset = cohkit_offset(vma, addr);
	phys = window_base(cohkit, mapping->window) + offset;
	if (!IS_ALIGNED(phys, size))
		return VM_FAULT_FALLBACK;

	down_read(&cohkit->lock);
	if (size > PAGE_SIZE && file->split)
		result = VM_FAULT_FALLBACK;
	else if (cohkit_may_fault(vma, offset, size))
		result = insert_entry(vmf, size, offset, phys);
	else
		result = VM_FAULT_SIGBUS;
	up_read(&cohkit->lock);
	return result;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	return fault_of_size(vmf, PAGE_SIZE);
}

static vm_fault_t huge_fault(struct vm_fault *vmf, cohkit_fault_size size)
{
	if (size == COHKIT_FAULT_PMD)
		return fault_of_size(vmf, PMD_SIZE);
	if (size == COHKIT_FAULT_PUD)
		return fault_of_size(vmf, PUD_SIZE);
	return VM_FAULT_FALLBACK;
}

/*
 * The kernel cannot split, protect or move a part of an entry of 1 GiB. They
 * are unmapped before, under mmap_lock, and the next fault maps again.
 */
static void zap_puds(struct vm_area_struct *vma, unsigned long start,
		     unsigned long end)
{
	start = max(ALIGN_DOWN(start, PUD_SIZE), vma->vm_start);
	end = min(ALIGN(end, PUD_SIZE), vma->vm_end);
	if (end - start >= PUD_SIZE) {
		cohkit_exclude_faults(vma);
		zap_vma_ptes(vma, start, end - start);
	}
}

static int may_split(struct vm_area_struct *vma, unsigned long addr)
{
	if (!IS_ALIGNED(addr, PUD_SIZE))
		zap_puds(vma, addr, addr + 1);
	return 0;
}

static int protect(struct vm_area_struct *vma, unsigned long start,
		   unsigned long end, unsigned long flags)
{
	zap_puds(vma, start, end);
	return 0;
}

/* A VMA is copied by fork, by mremap before entries move, or by a split. */
void cohkit_open_vma(struct vm_area_struct *vma)
{
	struct cohkit_mapping *mapping = vma->vm_private_data;
	u64 length = vma->vm_end - vma->vm_start;

	kref_get(&mapping->references);
	if (length >= PUD_SIZE)
		cohkit_unmap(mapping->cohkit, mapping->window,
			     vma_start_offset(vma), length);
}

static void release_mapping(struct kref *references)
{
	struct cohkit_mapping *mapping =
		container_of(references, struct cohkit_mapping, references);
	struct cohkit_device *cohkit = mapping->cohkit;

	if (mapping->window != COHKIT_WINDOW_REGISTERS)
		cohkit_blocks_put(&cohkit->memory, mapping->start,
				  mapping->length);
	atomic_dec(&cohkit->counters.mappings);
	kfree(mapping);
}

void cohkit_close_vma(struct vm_area_struct *vma)
{
	struct cohkit_mapping *mapping = vma->vm_private_data;

	kref_put(&mapping->references, release_mapping);
}

/* There is no access(): debuggers and other processes cannot read pages. */
static const struct vm_operations_struct vm_ops = {
	.open = cohkit_open_vma,
	.close = cohkit_close_vma,
	.fault = fault,
	.huge_fault = huge_fault,
	.may_split = may_split,
	.mprotect = protect,
};

/* Checks window, bounds and rights; removes rights that mprotect may not add. */
static int check_mmap(struct cohkit_file *file, struct vm_area_struct *vma,
		      unsigned int window)
{
	struct cohkit_device *cohkit = file->cohkit;
	const struct cohkit_ranges *ranges;
	u64 start = vma_start_offset(vma);
	u64 length = vma->vm_end - vma->vm_start;
	unsigned long clear = VM_MAYEXEC;
	u64 size;

	if (window > COHKIT_WINDOW_REGISTERS)
		return -EINVAL;
	/* Pages that the device may recall are cacheable, and mapped singly. */
	if (cohkit->pages && window_resource(window) == COHKIT_MEMORY &&
	    window != COHKIT_WINDOW_CACHED)
		return -EINVAL;
	size = window == COHKIT_WINDOW_REGISTERS ?
		PAGE_ALIGN(cohkit->registers_size) : cohkit->memory.size;
	if (start >= size || length > size - start)
		return -EINVAL;
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	ranges = &file->ranges[window_resource(window)];
	if (!cohkit_ranges_allow(ranges, start, start + length,
				 vma_rights(vma))) {
		atomic64_inc(&cohkit->counters.denied);
		return -EACCES;
	}
	if (!cohkit_ranges_allow(ranges, start, start + length, COHKIT_WRITE))
		clear |= VM_MAYWRITE;
	vm_flags_mod(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP,
		     clear);
	return 0;
}

int cohkit_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct cohkit_file *file = filp->private_data;
	struct cohkit_device *cohkit = file->cohkit;
	unsigned long window =
		vma->vm_pgoff >> (COHKIT_WINDOW_SHIFT - PAGE_SHIFT);
	struct cohkit_mapping *mapping;
	int err;

	down_read(&cohkit->lock);
	err = cohkit->removed ? -ENODEV : check_mmap(file, vma, window);
	up_read(&cohkit->lock);
	if (err)
		return err;

	mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		return -ENOMEM;
	kref_init(&mapping->references);
	mapping->cohkit = cohkit;
	mapping->window = window;
	mapping->start = vma_start_offset(vma);
	mapping->length = vma->vm_end - vma->vm_start;
	if (window != COHKIT_WINDOW_REGISTERS) {
		err = cohkit_blocks_get(&cohkit->memory, window,
					mapping->start, mapping->length);
		if (err) {
			kfree(mapping);
			return err;
		}
	}
	if (window == COHKIT_WINDOW_WRITE_COMBINING)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	else if (window != COHKIT_WINDOW_CACHED)
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	atomic_inc(&cohkit->counters.mappings);
	vma->vm_private_data = mapping;
	if (cohkit->pages && window == COHKIT_WINDOW_CACHED)
		vma->vm_ops = &cohkit_pages_vm_ops;
	else
		vma->vm_ops = &vm_ops;
	return 0;
}

/* Chooses an address that allows the largest entries which the length has. */
unsigned long cohkit_get_unmapped_area(struct file *filp, unsigned long addr,
				       unsigned long length,
				       unsigned long pgoff,
				       unsigned long flags)
{
	struct cohkit_file *file = filp->private_data;
	unsigned long window = pgoff >> (COHKIT_WINDOW_SHIFT - PAGE_SHIFT);
	phys_addr_t phys = window_base(file->cohkit, window) +
		(((u64)pgoff << PAGE_SHIFT) & OFFSET_MASK);
	unsigned long align = length >= PUD_SIZE ? PUD_SIZE : PMD_SIZE;
	unsigned long found;

	if (addr || length < PMD_SIZE || length + align < length)
		return cohkit_find_area(filp, addr, length, pgoff, flags);
	found = cohkit_find_area(filp, 0, length + align, pgoff, flags);
	if (IS_ERR_VALUE(found))
		return cohkit_find_area(filp, 0, length, pgoff, flags);
	return found + ((phys - found) & (align - 1));
}

/**
 * cohkit_populate() - maps all pages of a range of addresses of the caller
 * @filp: file that the addresses are mapped from
 * @populate: the range, in pages
 *
 * The handler maps all pages that share a page table, so that one fault for
 * each 2 MiB is enough, except where the device grants single pages.
 *
 * Return: 0, -EINVAL for other addresses, -EFAULT without permission, -EINTR.
 */
int cohkit_populate(struct file *filp, const struct cohkit_populate *populate)
{
	u64 addr = populate->address;
	u64 end = addr + populate->length;
	struct mm_struct *mm = current->mm;
	int err = 0;

	if (!populate->length || end < addr || end > ULONG_MAX ||
	    !PAGE_ALIGNED(addr) || !PAGE_ALIGNED(end))
		return -EINVAL;
	mmap_read_lock(mm);
	while (addr < end && !err) {
		struct vm_area_struct *vma = find_vma(mm, addr);
		bool unlocked = false;
		unsigned int flags;
		u64 step, next;

		if (!vma || vma->vm_start > addr || vma->vm_file != filp) {
			err = -EINVAL;
			break;
		}
		step = vma->vm_ops == &vm_ops ? PMD_SIZE : PAGE_SIZE;
		flags = vma->vm_flags & VM_WRITE ? FAULT_FLAG_WRITE : 0;
		next = min_t(u64, ALIGN(addr + 1, step), vma->vm_end);
		err = fixup_user_fault(mm, addr, flags, &unlocked);
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
		addr = next;
		cond_resched();
	}
	mmap_read_unlock(mm);
	return err;
}

/**
 * cohkit_unmap() - unmaps a range of a window from all processes
 * @cohkit: the device
 * @window: the window
 * @start: first byte
 * @length: bytes, not 0
 *
 * The range grows to whole entries of 1 GiB: a part of one cannot be unmapped
 * without mmap_lock. A device that grants pages has no such entries.
 */
void cohkit_unmap(struct cohkit_device *cohkit, unsigned int window, u64 start,
		  u64 length)
{
	phys_addr_t base = window_base(cohkit, window);
	u64 entry = cohkit->pages ? PAGE_SIZE : PUD_SIZE;
	u64 end = ALIGN(base + start + length, entry) - base;

	start -= min_t(u64, start, (base + start) & (entry - 1));
	unmap_mapping_range(cohkit->inode->i_mapping,
			    COHKIT_OFFSET(window) + start, end - start, 1);
}

/* Unmaps a range of the memory in all windows. */
void cohkit_unmap_memory(struct cohkit_device *cohkit, u64 start, u64 length)
{
	unsigned int window;

	for (window = 0; window < COHKIT_WINDOW_REGISTERS; window++)
		cohkit_unmap(cohkit, window, start, length);
}
