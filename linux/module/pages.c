// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Coherence by pages, with a device that shares memory and sees no accesses.
 * A page is mapped only while the device has granted it. A fault asks for the
 * grant and waits; a recall unmaps the page from all processes. The protocol
 * is linux/pages.coh, and its rows are in pages_rows.h.
 */
#include <linux/file.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "internal.h"
#include "pages_rows.h"

/* Register of ivshmem that interrupts another peer. */
#define DOORBELL		12

static unsigned int grant_timeout_ms = 10000;
module_param(grant_timeout_ms, uint, 0444);
MODULE_PARM_DESC(grant_timeout_ms, "longest time that a fault waits for a grant");

struct cohkit_pages {
	struct cohkit_device *cohkit;
	/* Protects the states, and the sender's side of the ring. */
	struct mutex lock;
	u8 *state;
	u64 count;
	unsigned int outstanding;	/* requests without a grant */
	bool stopped;
	wait_queue_head_t wait;		/* for a grant, or the end */

	struct workqueue_struct *queue;
	struct work_struct work;	/* handles messages of the device */
	struct cohkit_pages_control *control;
	void __iomem *registers;
	u32 device;
	u32 slots;
	u32 sent;			/* counts that the device cannot change */
	u32 received;
};

static bool is_waiting(u8 state)
{
	return state >= STATE_N_R;
}

static bool is_permitted(u8 state, bool write)
{
	return state == STATE_W ||
		(!write && (state == STATE_R || state == STATE_R_W));
}

static const struct page_row *find_row(u8 state, u8 event)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(page_rows); i++)
		if (page_rows[i].state == state && page_rows[i].event == event)
			return &page_rows[i];
	return NULL;
}

static u64 *slots_of(struct cohkit_pages *pages, bool to_kernel)
{
	void *slots = (void *)pages->control + COHKIT_PAGES_SLOTS_OFFSET;

	return (u64 *)slots + (to_kernel ? pages->slots : 0);
}

static bool has_room(struct cohkit_pages *pages)
{
	/* Pairs with the device's release: it has read the slots before. */
	u32 head = smp_load_acquire(&pages->control->to_device.head);

	return pages->sent - head < pages->slots;
}

/*
 * Puts a message into the ring. A device that does not empty its ring, which
 * has room for all faults and answers at a time, has failed.
 */
static void send(struct cohkit_pages *pages, u8 message, u64 page)
{
	lockdep_assert_held(&pages->lock);
	if (pages->stopped)
		return;
	if (!has_room(pages)) {
		dev_err(&pages->cohkit->dev, "the device takes no messages\n");
		pages->stopped = true;
		wake_up_all(&pages->wait);
		return;
	}
	WRITE_ONCE(slots_of(pages, false)[pages->sent & (pages->slots - 1)],
		   COHKIT_PAGES_SLOT(message, page));
	/* The device reads the slot after the count. */
	smp_store_release(&pages->control->to_device.tail, ++pages->sent);
	/* Ordered after the message by the semantics of writel(). */
	writel(pages->device << 16, pages->registers + DOORBELL);
}

static void set_state(struct cohkit_pages *pages, u64 page, u8 next)
{
	lockdep_assert_held(&pages->lock);
	pages->outstanding += is_waiting(next);
	pages->outstanding -= is_waiting(pages->state[page]);
	WRITE_ONCE(pages->state[page], next);
}

/* Handles a message of the device; returns false if the protocol has no row. */
static bool receive(struct cohkit_pages *pages, u8 message, u64 page)
{
	const struct page_row *row;
	u8 state;

	if (page >= pages->count)
		return false;
	mutex_lock(&pages->lock);
	state = pages->state[page];
	row = find_row(state, message);
	if (row)
		set_state(pages, page, row->next);
	mutex_unlock(&pages->lock);
	if (!row)
		return false;
	if (!row->answer) {
		atomic64_inc(&pages->cohkit->counters.grants);
		wake_up_all(&pages->wait);
		return true;
	}
	/*
	 * From here on, no fault maps the page with the former permission. The
	 * answer follows the last access through an old entry.
	 */
	if (is_permitted(state, false) && row->next != state) {
		atomic64_inc(&pages->cohkit->counters.recalls);
		cohkit_unmap_memory(pages->cohkit, page << PAGE_SHIFT,
				    PAGE_SIZE);
	}
	mutex_lock(&pages->lock);
	send(pages, row->answer, page);
	mutex_unlock(&pages->lock);
	return true;
}

static void stop_after_error(struct cohkit_pages *pages, const char *error)
{
	dev_err(&pages->cohkit->dev, "%s\n", error);
	mutex_lock(&pages->lock);
	pages->stopped = true;
	mutex_unlock(&pages->lock);
	wake_up_all(&pages->wait);
}

static void receive_all(struct work_struct *work)
{
	struct cohkit_pages *pages =
		container_of(work, struct cohkit_pages, work);
	struct cohkit_pages_ring *ring = &pages->control->to_kernel;

	while (!READ_ONCE(pages->stopped)) {
		/* The slots are read after the count that includes them. */
		u32 available = smp_load_acquire(&ring->tail) - pages->received;
		u64 slot;

		if (!available)
			return;
		if (available > pages->slots) {
			stop_after_error(pages, "the device's ring is invalid");
			return;
		}
		slot = READ_ONCE(slots_of(pages, true)[pages->received &
						       (pages->slots - 1)]);
		/* The device overwrites the slot after it has seen the count. */
		smp_store_release(&ring->head, ++pages->received);
		if (!receive(pages, slot & 0xff, slot >> 8)) {
			stop_after_error(pages, "unexpected message of the device");
			return;
		}
		cond_resched();
	}
}

/* Called by the handler of the first interrupt. */
void cohkit_pages_interrupt(struct cohkit_pages *pages)
{
	queue_work(pages->queue, &pages->work);
}

/*
 * Maps a page that is granted, or asks for it. Returns 0 if the fault has to
 * wait for the device.
 */
static vm_fault_t map_or_ask(struct cohkit_pages *pages, struct vm_fault *vmf,
			     u64 page, bool write)
{
	struct vm_area_struct *vma = vmf->vma;
	vm_fault_t result = 0;
	const struct page_row *row;
	unsigned long flags;
	u8 state;

	mutex_lock(&pages->lock);
	state = pages->state[page];
	if (is_permitted(state, write)) {
		/* Without VM_SHARED, the protection is that for loads alone. */
		flags = vma->vm_flags & ~(state == STATE_W ? 0 : VM_SHARED);
		result = vmf_insert_pfn_prot(vma, vmf->address & PAGE_MASK,
					     PHYS_PFN(pages->cohkit->memory.start) +
					     page, vm_get_page_prot(flags));
		if (result == VM_FAULT_NOPAGE)
			atomic64_inc(&pages->cohkit->counters.pages);
	} else if (pages->stopped) {
		result = VM_FAULT_SIGBUS;
	} else {
		row = find_row(state, write ? ACCESS_STORE : ACCESS_LOAD);
		if (row) {
			set_state(pages, page, row->next);
			send(pages, row->answer, page);
		}
	}
	mutex_unlock(&pages->lock);
	return result;
}

static bool is_settled(struct cohkit_pages *pages, u64 page, bool write)
{
	u8 state = READ_ONCE(pages->state[page]);

	return is_permitted(state, write) || !is_waiting(state) ||
		READ_ONCE(pages->stopped) || READ_ONCE(pages->cohkit->removed);
}

/* Waits for the device. Returns a time left, 0, or -ERESTARTSYS if killed. */
static long await_grant(struct cohkit_pages *pages, u64 page, bool write)
{
	return wait_event_killable_timeout(pages->wait,
					   is_settled(pages, page, write),
					   msecs_to_jiffies(grant_timeout_ms));
}

static vm_fault_t pages_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct cohkit_file *file = vma->vm_file->private_data;
	struct cohkit_device *cohkit = file->cohkit;
	u64 page = cohkit_offset(vma, vmf->address & PAGE_MASK) >> PAGE_SHIFT;
	bool write = vmf->flags & FAULT_FLAG_WRITE;

	for (;;) {
		vm_fault_t result = VM_FAULT_SIGBUS;
		long left;

		down_read(&cohkit->lock);
		if (cohkit_may_fault(vma, page << PAGE_SHIFT, PAGE_SIZE))
			result = map_or_ask(cohkit->pages, vmf, page, write);
		up_read(&cohkit->lock);
		if (result)
			return result;
		if (fault_flag_allow_retry_first(vmf->flags) &&
		    !(vmf->flags & FAULT_FLAG_RETRY_NOWAIT)) {
			/* Others may change the address space meanwhile. */
			struct file *filp = get_file(vma->vm_file);

			cohkit_release_fault_lock(vmf);
			await_grant(cohkit->pages, page, write);
			fput(filp);
			return VM_FAULT_RETRY;
		}
		left = await_grant(cohkit->pages, page, write);
		if (left < 0)
			return VM_FAULT_NOPAGE;	/* to be killed */
		if (!left) {
			atomic64_inc(&cohkit->counters.timeouts);
			return VM_FAULT_SIGBUS;
		}
	}
}

/*
 * A store to a page that is mapped for loads. The entry must not be made
 * writable here, because the device may recall the page meanwhile. Without
 * the entry, the store faults again and asks.
 */
static vm_fault_t pages_mkwrite(struct vm_fault *vmf)
{
	zap_vma_ptes(vmf->vma, vmf->address & PAGE_MASK, PAGE_SIZE);
	return VM_FAULT_NOPAGE;
}

const struct vm_operations_struct cohkit_pages_vm_ops = {
	.open = cohkit_open_vma,
	.close = cohkit_close_vma,
	.fault = pages_fault,
	.pfn_mkwrite = pages_mkwrite,
};

static int check_control(struct cohkit_pages *pages)
{
	struct cohkit_pages_control *control = pages->control;

	pages->device = READ_ONCE(control->device);
	pages->slots = READ_ONCE(control->slots);
	if (READ_ONCE(control->version) != COHKIT_PAGES_VERSION ||
	    !is_power_of_2(pages->slots) ||
	    pages->slots > COHKIT_PAGES_MAX_SLOTS || pages->device > U16_MAX) {
		dev_err(&pages->cohkit->pci->dev,
			"version or sizes of the rings are not supported\n");
		return -EINVAL;
	}
	pages->sent = READ_ONCE(control->to_device.tail);
	pages->received = READ_ONCE(control->to_kernel.head);
	return 0;
}

/* Ends all use of the device's memory and registers. */
static void disconnect(struct cohkit_pages *pages)
{
	if (pages->queue)
		destroy_workqueue(pages->queue);
	if (pages->registers)
		iounmap(pages->registers);
	if (pages->control)
		memunmap(pages->control);
}

static void free_states(struct cohkit_pages *pages)
{
	kvfree(pages->state);
	kfree(pages);
}

static int init_pages(struct cohkit_pages *pages)
{
	struct cohkit_device *cohkit = pages->cohkit;

	pages->count = cohkit->memory.size >> PAGE_SHIFT;
	pages->state = kvzalloc(pages->count, GFP_KERNEL);
	pages->registers = ioremap(cohkit->registers, cohkit->registers_size);
	pages->queue = alloc_ordered_workqueue("cohkit", 0);
	if (!pages->state || !pages->registers || !pages->queue)
		return -ENOMEM;
	mutex_init(&pages->lock);
	init_waitqueue_head(&pages->wait);
	INIT_WORK(&pages->work, receive_all);
	return check_control(pages);
}

/**
 * cohkit_pages_init() - finds the rings of a device that grants pages
 * @cohkit: the device, with its memory and registers
 *
 * The rings are taken from the size of the memory, so that nobody maps them.
 *
 * Return: 0, also for a device without rings, or an error.
 */
int cohkit_pages_init(struct cohkit_device *cohkit)
{
	struct cohkit_pages *pages;
	u64 size = cohkit->memory.size;
	int err;

	if (size <= COHKIT_PAGES_BYTES || !cohkit->registers_size)
		return 0;
	pages = kzalloc(sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	pages->cohkit = cohkit;
	pages->control = memremap(cohkit->memory.start + size -
				  COHKIT_PAGES_BYTES, COHKIT_PAGES_BYTES,
				  MEMREMAP_WB);
	if (!pages->control ||
	    READ_ONCE(pages->control->magic) != COHKIT_PAGES_MAGIC) {
		disconnect(pages);
		free_states(pages);
		return 0;
	}
	cohkit->memory.size = size - COHKIT_PAGES_BYTES;
	err = init_pages(pages);
	if (err) {
		disconnect(pages);
		free_states(pages);
		return err;
	}
	cohkit->pages = pages;
	cohkit_pages_interrupt(pages);
	return 0;
}

/* Gives a page back, if it is mapped; waits for room in the ring. */
static void release_page(struct cohkit_pages *pages, u64 page)
{
	const struct page_row *row;

	mutex_lock(&pages->lock);
	row = find_row(pages->state[page], ACCESS_EVICT);
	if (row) {
		set_state(pages, page, row->next);
		send(pages, row->answer, page);
	}
	mutex_unlock(&pages->lock);
	if (row)
		wait_event_timeout(pages->wait, has_room(pages) ||
				   READ_ONCE(pages->stopped), 1);
}

/*
 * Waits for outstanding grants of a device that is removed: faults see the
 * flag, and nothing is mapped any more. Interrupts still arrive.
 */
void cohkit_pages_remove(struct cohkit_device *cohkit)
{
	struct cohkit_pages *pages = cohkit->pages;

	if (!pages)
		return;
	wake_up_all(&pages->wait);
	wait_event_timeout(pages->wait, !READ_ONCE(pages->outstanding) ||
			   READ_ONCE(pages->stopped),
			   msecs_to_jiffies(grant_timeout_ms));
}

/*
 * Gives all pages back. Called after the last interrupt. A message that still
 * arrives stays in the ring, and the next driver of the device answers it.
 */
void cohkit_pages_disconnect(struct cohkit_device *cohkit)
{
	struct cohkit_pages *pages = cohkit->pages;
	u64 page;

	if (!pages)
		return;
	/* Each message that was taken is answered before the end. */
	flush_work(&pages->work);
	for (page = 0; page < pages->count; page++)
		release_page(pages, page);
	mutex_lock(&pages->lock);
	pages->stopped = true;
	mutex_unlock(&pages->lock);
	disconnect(pages);
}

/* Called after the last file is closed. */
void cohkit_pages_free(struct cohkit_device *cohkit)
{
	if (cohkit->pages)
		free_states(cohkit->pages);
}
