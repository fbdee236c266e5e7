// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/* The module and its PCI driver: devices appear and disappear here. */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "internal.h"

#define COHKIT_MINORS		64
#define REGISTERS_BAR		0
#define MEMORY_BAR		2
#define COHKIT_BARS		(BIT(REGISTERS_BAR) | BIT(MEMORY_BAR))
#define COHKIT_MAGIC		0x436f684b

/* Memory shared with the host of a virtual machine, by QEMU. */
#define IVSHMEM_VENDOR		0x1af4
#define IVSHMEM_DEVICE		0x1110

static dev_t cohkit_first;
static DEFINE_IDA(cohkit_minors);
static struct class cohkit_class = {
	.name = "cohkit",
	.dev_groups = cohkit_groups,
};

/* A file system without files, for the address spaces of the devices. */
static struct vfsmount *cohkit_mount;
static int cohkit_mount_count;

static int init_fs_context(struct fs_context *context)
{
	return init_pseudo(context, COHKIT_MAGIC) ? 0 : -ENOMEM;
}

/*
 * There is no owner: it would keep the module loaded while it has a device.
 * Without one, the inodes end with their devices, at the latest with the last
 * open file, which does keep the module.
 */
static struct file_system_type cohkit_fs_type = {
	.name = "cohkit",
	.init_fs_context = init_fs_context,
	.kill_sb = kill_anon_super,
};

static struct inode *new_inode_of_device(void)
{
	struct inode *inode;
	int err;

	err = simple_pin_fs(&cohkit_fs_type, &cohkit_mount,
			    &cohkit_mount_count);
	if (err)
		return ERR_PTR(err);
	inode = alloc_anon_inode(cohkit_mount->mnt_sb);
	if (IS_ERR(inode)) {
		simple_release_fs(&cohkit_mount, &cohkit_mount_count);
		return inode;
	}
	/* Linux 6.1 asks for huge entries only where the inode has this flag. */
	inode->i_flags |= S_DAX;
	return inode;
}

/* Called when the device is gone and its last file is closed. */
static void release_device(struct device *dev)
{
	struct cohkit_device *cohkit =
		container_of(dev, struct cohkit_device, dev);

	if (cohkit->inode) {
		iput(cohkit->inode);
		simple_release_fs(&cohkit_mount, &cohkit_mount_count);
	}
	cohkit_pages_free(cohkit);
	cohkit_blocks_free(&cohkit->memory);
	ida_free(&cohkit_minors, MINOR(dev->devt) - MINOR(cohkit_first));
	kfree(cohkit);
}

static struct cohkit_device *alloc_device(struct pci_dev *pci)
{
	struct cohkit_device *cohkit;
	int minor;

	cohkit = kzalloc(sizeof(*cohkit), GFP_KERNEL);
	if (!cohkit)
		return ERR_PTR(-ENOMEM);
	minor = ida_alloc_max(&cohkit_minors, COHKIT_MINORS - 1, GFP_KERNEL);
	if (minor < 0) {
		kfree(cohkit);
		return ERR_PTR(minor);
	}
	cohkit->pci = pci;
	init_rwsem(&cohkit->lock);
	device_initialize(&cohkit->dev);
	cohkit->dev.class = &cohkit_class;
	cohkit->dev.parent = &pci->dev;
	cohkit->dev.release = release_device;
	cohkit->dev.devt = MKDEV(MAJOR(cohkit_first),
				 MINOR(cohkit_first) + minor);
	return cohkit;
}

/*
 * Registers can be mapped if nothing else is on their page. The rest of the
 * page is reserved, so that no other device is placed there later.
 */
static void init_registers(struct cohkit_device *cohkit)
{
	struct resource *registers = &cohkit->pci->resource[REGISTERS_BAR];
	struct resource *rest = &cohkit->registers_rest;

	if (!resource_size(registers) ||
	    !(registers->flags & IORESOURCE_MEM) ||
	    !PAGE_ALIGNED(registers->start))
		return;
	if (!PAGE_ALIGNED(resource_size(registers))) {
		rest->name = "cohkit";
		rest->start = registers->end + 1;
		rest->end = PAGE_ALIGN(registers->end + 1) - 1;
		rest->flags = registers->flags;
		if (request_resource(registers->parent, rest)) {
			rest->flags = 0;
			return;
		}
	}
	cohkit->registers = registers->start;
	cohkit->registers_size = resource_size(registers);
}

static void remove_registers(struct cohkit_device *cohkit)
{
	if (cohkit->registers_rest.flags)
		release_resource(&cohkit->registers_rest);
}

static int init_memory(struct cohkit_device *cohkit)
{
	struct pci_dev *pci = cohkit->pci;
	u64 size = pci_resource_len(pci, MEMORY_BAR);

	if (!size || !(pci_resource_flags(pci, MEMORY_BAR) & IORESOURCE_MEM) ||
	    !PAGE_ALIGNED(pci_resource_start(pci, MEMORY_BAR)) ||
	    !PAGE_ALIGNED(size))
		return -ENODEV;
	return cohkit_blocks_init(&cohkit->memory,
				  pci_resource_start(pci, MEMORY_BAR), size);
}

static int cohkit_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct cohkit_device *cohkit = alloc_device(pci);
	struct inode *inode;
	int err;

	if (IS_ERR(cohkit))
		return PTR_ERR(cohkit);
	err = dev_set_name(&cohkit->dev, "cohkit%u",
			   MINOR(cohkit->dev.devt) - MINOR(cohkit_first));
	if (err)
		goto put;
	inode = new_inode_of_device();
	if (IS_ERR(inode)) {
		err = PTR_ERR(inode);
		goto put;
	}
	cohkit->inode = inode;
	err = pci_enable_device(pci);
	if (err)
		goto put;
	err = pci_request_selected_regions(pci, COHKIT_BARS, "cohkit");
	if (err)
		goto disable;
	err = init_memory(cohkit);
	if (err)
		goto release;
	init_registers(cohkit);
	pci_set_master(pci);
	err = cohkit_pages_init(cohkit);
	if (err)
		goto registers;
	err = cohkit_interrupts_init(cohkit);
	if (err)
		goto pages;
	pci_set_drvdata(pci, cohkit);
	cdev_init(&cohkit->cdev, &cohkit_fops);
	cohkit->cdev.owner = THIS_MODULE;
	err = cdev_device_add(&cohkit->cdev, &cohkit->dev);
	if (err)
		goto interrupts;
	return 0;

interrupts:
	cohkit_interrupts_remove(cohkit);
pages:
	cohkit_pages_disconnect(cohkit);
registers:
	pci_clear_master(pci);
	remove_registers(cohkit);
release:
	pci_release_selected_regions(pci, COHKIT_BARS);
disable:
	pci_disable_device(pci);
put:
	put_device(&cohkit->dev);
	return err;
}

/* Also called for a device that has been unplugged while files are open. */
static void cohkit_remove(struct pci_dev *pci)
{
	struct cohkit_device *cohkit = pci_get_drvdata(pci);

	cdev_device_del(&cohkit->cdev, &cohkit->dev);
	down_write(&cohkit->lock);
	cohkit->removed = true;
	up_write(&cohkit->lock);
	/* From here on, no page is mapped: each fault sees the flag. */
	unmap_mapping_range(cohkit->inode->i_mapping, 0, 0, 1);
	cohkit_pages_remove(cohkit);
	cohkit_interrupts_remove(cohkit);
	cohkit_pages_disconnect(cohkit);
	cohkit_blocks_remove(&cohkit->memory);
	pci_clear_master(pci);
	remove_registers(cohkit);
	pci_release_selected_regions(pci, COHKIT_BARS);
	pci_disable_device(pci);
	put_device(&cohkit->dev);
}

static const struct pci_device_id cohkit_ids[] = {
	{ PCI_DEVICE(IVSHMEM_VENDOR, IVSHMEM_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, cohkit_ids);

static struct pci_driver cohkit_driver = {
	.name = "cohkit",
	.id_table = cohkit_ids,
	.probe = cohkit_probe,
	.remove = cohkit_remove,
};

static int __init cohkit_init(void)
{
	int err;

	err = alloc_chrdev_region(&cohkit_first, 0, COHKIT_MINORS, "cohkit");
	if (err)
		return err;
	err = class_register(&cohkit_class);
	if (err)
		goto region;
	err = pci_register_driver(&cohkit_driver);
	if (err)
		goto class;
	return 0;

class:
	class_unregister(&cohkit_class);
region:
	unregister_chrdev_region(cohkit_first, COHKIT_MINORS);
	return err;
}

static void __exit cohkit_exit(void)
{
	pci_unregister_driver(&cohkit_driver);
	class_unregister(&cohkit_class);
	unregister_chrdev_region(cohkit_first, COHKIT_MINORS);
}

module_init(cohkit_init);
module_exit(cohkit_exit);

MODULE_DESCRIPTION("Coherent memory of a device in user space");
MODULE_AUTHOR("Cohkit");
MODULE_LICENSE("GPL");
