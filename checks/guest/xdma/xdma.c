// SPDX-License-Identifier: GPL-2.0
/*
 * Twin of the driver xdma of AMD for tests: the same files and errors, with memory of the kernel instead of a card's.
 *
 * It binds QEMU's edu device, whose BAR0 is the user BAR; it does not touch it. Source of names, rules and errors: cdev_sgdma.c,
 * cdev_ctrl.c and xdma_cdev.c of github.com/Xilinx/dma_ip_drivers. Speed means nothing here.
 */
#include <linux/cdev.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define CHANNELS 2
/* The files of all channels, and that of the user BAR. */
#define FILES (2 * CHANNELS + 1)
#define MEMORY (1UL << 20)
/* Address of the memory on the card. */
#define START 0x10000UL

static unsigned int poll_mode;
module_param(poll_mode, uint, 0644);
MODULE_PARM_DESC(poll_mode, "as in the driver; without effect here");

/* Limits of a transfer in s, as in the driver; without effect here. */
static unsigned int h2c_timeout = 10, c2h_timeout = 10;
module_param(h2c_timeout, uint, 0644);
module_param(c2h_timeout, uint, 0644);

static unsigned int beat_bytes = 64;
module_param(beat_bytes, uint, 0644);
MODULE_PARM_DESC(beat_bytes, "width of the data path, which alignments follow");

static unsigned int most_bytes;
module_param(most_bytes, uint, 0644);
MODULE_PARM_DESC(most_bytes, "bytes after which a read ends early, as at the end of a packet of a stream; 0 for none");

static unsigned int delay_ms;
module_param(delay_ms, uint, 0644);
MODULE_PARM_DESC(delay_ms, "duration of each transfer");

static unsigned int shift_bytes;
module_param(shift_bytes, uint, 0644);
MODULE_PARM_DESC(shift_bytes, "fault: the card stores what it reads this far from its address");

static bool loses;
module_param(loses, bool, 0644);
MODULE_PARM_DESC(loses, "fault: the card reads host memory, and stores nothing");

static bool gives_up;
module_param(gives_up, bool, 0644);
MODULE_PARM_DESC(gives_up, "fault: a transfer does not end, so the driver gives it up");

static bool has_user = true;
module_param(has_user, bool, 0644);
MODULE_PARM_DESC(has_user, "whether cards that are bound from now on have a user BAR");

static atomic_t running;
static int most_at_once;
module_param(most_at_once, int, 0644);
MODULE_PARM_DESC(most_at_once, "largest number of transfers at the same time so far");

static unsigned long beyond;
module_param(beyond, ulong, 0444);
MODULE_PARM_DESC(beyond, "bytes outside of the addresses that a test gives away which were touched");

static unsigned long from = START, to = START + MEMORY;
module_param(from, ulong, 0644);
MODULE_PARM_DESC(from, "first address that a test gives away");
module_param(to, ulong, 0644);
MODULE_PARM_DESC(to, "address after the last one");

static char *memory;
static bool is_gone;
static struct pci_dev *bound;
static dev_t first;
static struct cdev cdev;
static struct class *class;

/* The check of alignments in cdev_sgdma.c, for incremental addresses, and of the addresses that a bus has. */
static ssize_t check(const void __user *buffer, size_t count, loff_t at)
{
	unsigned long mask = beat_bytes - 1;

	if (READ_ONCE(is_gone))
		return -ENODEV;
	if (((unsigned long)buffer & mask) != (at & mask))
		return -EINVAL;
	if (at < START || count > MEMORY || at - START > MEMORY - count)
		return -EIO;
	if (at < from || at + count > to)
		beyond += count;
	if (delay_ms) {
		int now = atomic_inc_return(&running);
		bool is_stopped;

		if (now > READ_ONCE(most_at_once))
			WRITE_ONCE(most_at_once, now);
		is_stopped = msleep_interruptible(delay_ms);
		atomic_dec(&running);
		if (is_stopped)
			return -ERESTARTSYS;
	}
	/* What xdma_xfer_submit returns for a transfer that did not end, also without a signal. */
	if (gives_up)
		return -ERESTARTSYS;
	return READ_ONCE(is_gone) ? -ENODEV : 0;
}

static bool is_user(struct file *file)
{
	return iminor(file_inode(file)) - MINOR(first) == 2 * CHANNELS;
}

static bool is_c2h(struct file *file)
{
	return iminor(file_inode(file)) - MINOR(first) >= CHANNELS;
}

static ssize_t twin_write(struct file *file, const char __user *buffer, size_t count, loff_t *at)
{
	ssize_t refused = is_c2h(file) ? -EINVAL : check(buffer, count, *at);
	loff_t place = *at - START + shift_bytes;

	if (refused)
		return refused;
	if (place > MEMORY - count)
		return -EIO;
	if (!loses && copy_from_user(memory + place, buffer, count))
		return -EFAULT;
	*at += count;
	return count;
}

static ssize_t twin_read(struct file *file, char __user *buffer, size_t count, loff_t *at)
{
	ssize_t refused = is_c2h(file) && !is_user(file) ? check(buffer, count, *at) : -EINVAL;

	if (refused)
		return refused;
	if (most_bytes && count > most_bytes)
		count = most_bytes;
	if (copy_to_user(buffer, memory + (*at - START), count))
		return -EFAULT;
	*at += count;
	return count;
}

/* bridge_mmap in cdev_ctrl.c; the files of channels have no mmap. */
static int twin_mmap(struct file *file, struct vm_area_struct *area)
{
	unsigned long offset = area->vm_pgoff << PAGE_SHIFT, length = area->vm_end - area->vm_start;

	if (!is_user(file))
		return -ENODEV;
	if (READ_ONCE(is_gone) || length > pci_resource_len(bound, 0) - offset)
		return -EINVAL;
	area->vm_page_prot = pgprot_noncached(area->vm_page_prot);
	area->vm_flags |= VM_IO | VM_DONTEXPAND | VM_DONTDUMP;
	return io_remap_pfn_range(area, area->vm_start, (pci_resource_start(bound, 0) + offset) >> PAGE_SHIFT, length,
				  area->vm_page_prot) ? -EAGAIN : 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = twin_read,
	.write = twin_write,
	.mmap = twin_mmap,
	.llseek = default_llseek,
};

static int probe(struct pci_dev *card, const struct pci_device_id *id)
{
	int nth, error = pci_enable_device(card);

	if (error)
		return error;
	bound = card;
	WRITE_ONCE(is_gone, false);
	for (nth = 0; nth < 2 * CHANNELS + has_user; nth++) {
		struct device *made =
			nth == 2 * CHANNELS ?
				device_create(class, &card->dev, first + nth, NULL, "xdma0_user") :
				device_create(class, &card->dev, first + nth, NULL, "xdma0_%s_%d",
					      nth < CHANNELS ? "h2c" : "c2h", nth % CHANNELS);

		if (IS_ERR(made)) {
			while (nth-- > 0)
				device_destroy(class, first + nth);
			pci_disable_device(card);
			return PTR_ERR(made);
		}
	}
	return 0;
}

static void remove(struct pci_dev *card)
{
	int nth;

	WRITE_ONCE(is_gone, true);
	for (nth = 0; nth < FILES; nth++)
		device_destroy(class, first + nth);
	pci_disable_device(card);
}

static const struct pci_device_id ids[] = { { PCI_DEVICE(0x1234, 0x11e8) }, {} };

static struct pci_driver driver = { .name = "xdma", .id_table = ids, .probe = probe, .remove = remove };

static int __init twin_init(void)
{
	int error = alloc_chrdev_region(&first, 0, FILES, "xdma");

	if (error)
		return error;
	memory = vzalloc(MEMORY);
	class = class_create(THIS_MODULE, "xdma");
	cdev_init(&cdev, &operations);
	error = !memory ? -ENOMEM : IS_ERR(class) ? PTR_ERR(class) : cdev_add(&cdev, first, FILES);
	if (!error)
		error = pci_register_driver(&driver);
	if (error) {
		/* The guest of the tests ends with them; nothing else loads this module. */
		pr_err("xdma twin: error %d\n", error);
	}
	return error;
}

module_init(twin_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Twin of AMD's driver xdma, for tests");
