// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* Interrupts of the device, as eventfds of the files that listen. */
#include <linux/eventfd.h>
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

struct cohkit_listener {
	struct list_head entry;
	struct eventfd_ctx *event;
};

static irqreturn_t handle_interrupt(int irq, void *data)
{
	struct cohkit_vector *vector = data;
	struct cohkit_device *cohkit = vector->cohkit;
	struct cohkit_listener *listener;

	if (cohkit->pages && vector == &cohkit->vector[0])
		cohkit_pages_interrupt(cohkit->pages);
	atomic64_inc(&cohkit->counters.interrupts);
	spin_lock(&vector->lock);
	list_for_each_entry(listener, &vector->listeners, entry)
		cohkit_signal(listener->event);
	spin_unlock(&vector->lock);
	return IRQ_HANDLED;
}

/* Requests the vectors that the device has; a device may have none. */
int cohkit_interrupts_init(struct cohkit_device *cohkit)
{
	struct pci_dev *pci = cohkit->pci;
	int vectors;
	int err;

	vectors = pci_alloc_irq_vectors(pci, 1, COHKIT_MAX_VECTORS,
					PCI_IRQ_MSIX);
	if (vectors < 0)
		return vectors == -ENOMEM ? vectors : 0;
	while (cohkit->vectors < vectors) {
		struct cohkit_vector *vector = &cohkit->vector[cohkit->vectors];

		spin_lock_init(&vector->lock);
		INIT_LIST_HEAD(&vector->listeners);
		vector->cohkit = cohkit;
		err = request_irq(pci_irq_vector(pci, cohkit->vectors),
				  handle_interrupt, 0, dev_name(&cohkit->dev),
				  vector);
		if (err) {
			cohkit_interrupts_remove(cohkit);
			return err;
		}
		cohkit->vectors++;
	}
	return 0;
}

/* Frees the vectors; listeners stay until their files are closed. */
void cohkit_interrupts_remove(struct cohkit_device *cohkit)
{
	unsigned int i;

	for (i = 0; i < cohkit->vectors; i++)
		free_irq(pci_irq_vector(cohkit->pci, i), &cohkit->vector[i]);
	pci_free_irq_vectors(cohkit->pci);
}

static void remove_listener(struct cohkit_vector *vector,
			    struct cohkit_listener *listener)
{
	if (!listener)
		return;
	spin_lock_irq(&vector->lock);
	list_del(&listener->entry);
	spin_unlock_irq(&vector->lock);
	eventfd_ctx_put(listener->event);
	kfree(listener);
}

/* Removes the eventfd of a file for a vector, if it has one. */
void cohkit_interrupts_forget(struct cohkit_file *file, u32 vector)
{
	mutex_lock(&file->listeners_lock);
	remove_listener(&file->cohkit->vector[vector],
			file->listeners[vector]);
	file->listeners[vector] = NULL;
	mutex_unlock(&file->listeners_lock);
}

/**
 * cohkit_interrupts_listen() - signals an eventfd at each interrupt
 * @file: file that listens, with permission for the vector
 * @vector: number of the vector, of those that the device has
 * @fd: eventfd that replaces the present one
 *
 * Return: 0, or an error of eventfd_ctx_fdget(), or -ENOMEM.
 */
int cohkit_interrupts_listen(struct cohkit_file *file, u32 vector, int fd)
{
	struct cohkit_vector *source = &file->cohkit->vector[vector];
	struct cohkit_listener *listener;

	listener = kzalloc(sizeof(*listener), GFP_KERNEL_ACCOUNT);
	if (!listener)
		return -ENOMEM;
	listener->event = eventfd_ctx_fdget(fd);
	if (IS_ERR(listener->event)) {
		int err = PTR_ERR(listener->event);

		kfree(listener);
		return err;
	}
	mutex_lock(&file->listeners_lock);
	remove_listener(source, file->listeners[vector]);
	file->listeners[vector] = listener;
	spin_lock_irq(&source->lock);
	list_add_tail(&listener->entry, &source->listeners);
	spin_unlock_irq(&source->lock);
	mutex_unlock(&file->listeners_lock);
	return 0;
}
