// SPDX-License-Identifier: GPL-2.0
/*
 * lanemark: the BARs of a PCI function for measurements by a program, with a chosen memory type.
 *
 * The driver matches no device by itself: a function is bound to it by name (driver_override). It claims all BARs
 * exclusively, so that with strict /dev/mem no mapping through sysfs or /dev/mem can change the type of one, and offers /dev/lanemark/ADDRESS to
 * one program at a time; see lanemark_uapi.h. Bus mastering is off unless the program turns it on.
 *
 * Locks, in this order: io_lock (window, DMA mappings, removal), the mmap lock of the process, map_lock (what mmap reads).
 * No memory of a program is accessed under io_lock. Only a program that holds its own mmap lock can delay a removal.
 */
#include <linux/capability.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <asm/memtype.h>

#include "lanemark.h"

#ifndef CONFIG_X86_64
#error "memory types of BARs are those of x86-64"
#endif

/* Bytes copied between two checks of the window. */
#define CHUNK 512

static const enum page_cache_mode modes[] = {
	[LANEMARK_UC] = _PAGE_CACHE_MODE_UC,
	[LANEMARK_UC_MINUS] = _PAGE_CACHE_MODE_UC_MINUS,
	[LANEMARK_WC] = _PAGE_CACHE_MODE_WC,
	[LANEMARK_WT] = _PAGE_CACHE_MODE_WT,
	[LANEMARK_WP] = _PAGE_CACHE_MODE_WP,
};

static void lanemark_free(struct kref *references)
{
	kfree(container_of(references, struct lanemark, references));
}

/* Length of a BAR that can have a window; 0 for others. */
static u64 bar_bytes(struct pci_dev *pdev, unsigned int bar)
{
	u64 len = pci_resource_len(pdev, bar);

	if (!(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) || !pci_resource_start(pdev, bar))
		return 0;
	return PAGE_ALIGNED(pci_resource_start(pdev, bar)) && PAGE_ALIGNED(len) ? len : 0;
}

static int lanemark_open(struct inode *inode, struct file *file)
{
	struct lanemark *card = container_of(file->private_data, struct lanemark, misc);
	int error;

	error = capable(CAP_SYS_RAWIO) ? security_locked_down(LOCKDOWN_PCI_ACCESS) : -EACCES;
	if (error)
		return error;
	mutex_lock(&card->io_lock);
	error = !card->pdev ? -ENODEV : card->file ? -EBUSY : 0;
	if (!error) {
		kref_get(&card->references);
		card->file = file;
		card->mm = current->mm;
		mmgrab(card->mm);
		file->private_data = card;
	}
	mutex_unlock(&card->io_lock);
	return error;
}

/* Ends the mapping of the window for copies; under io_lock. */
static void unmap_for_copies(struct lanemark *card)
{
	if (card->io)
		iounmap(card->io);
	card->io = NULL;
}

/* Ends everything that a program has begun, except its mappings of pages; under io_lock, before pdev is cleared. */
static void quiesce(struct lanemark *card)
{
	struct lanemark_dma_unmap times;
	int i;

	/* First of all: the device must not access pages that are unmapped. */
	pci_clear_master(card->pdev);
	mutex_lock(&card->map_lock);
	card->has_window = false;
	mutex_unlock(&card->map_lock);
	for (i = 0; i < MOST_MAPPINGS; i++)
		lanemark_dma_end(card, &card->dma[i], &times);
	unmap_for_copies(card);
}

static int lanemark_release(struct inode *inode, struct file *file)
{
	struct lanemark *card = file->private_data;

	mutex_lock(&card->io_lock);
	if (card->pdev)
		quiesce(card);
	card->file = NULL;
	mmdrop(card->mm);
	card->mm = NULL;
	mutex_unlock(&card->io_lock);
	kref_put(&card->references, lanemark_free);
	return 0;
}

static int set_window(struct lanemark *card, const struct lanemark_window *asked)
{
	u64 end, len;
	int error;

	if (asked->bar >= PCI_STD_NUM_BARS || asked->type >= ARRAY_SIZE(modes))
		return -EINVAL;
	if (!asked->len || !PAGE_ALIGNED(asked->offset) || !PAGE_ALIGNED(asked->len) ||
	    check_add_overflow(asked->offset, asked->len, &end))
		return -EINVAL;
	/* Without a page attribute table every mapping is UC-. */
	if (!pat_enabled() && asked->type != LANEMARK_UC_MINUS)
		return -EOPNOTSUPP;
	len = card->info.bar_bytes[asked->bar];
	if (end > len)
		return len ? -ERANGE : -ENXIO;
	mutex_lock(&card->map_lock);
	error = atomic_read(&card->mapped) ? -EBUSY : 0;
	if (!error) {
		/* First of all: while it exists, the kernel changes the type of every new mapping to that of this one. */
		unmap_for_copies(card);
		card->window = *asked;
		card->start = pci_resource_start(card->pdev, asked->bar);
		card->has_window = true;
	}
	mutex_unlock(&card->map_lock);
	return error;
}

/* Whether bytes of the BAR are within the window. */
static bool is_inside(const struct lanemark *card, u64 offset, u64 len)
{
	u64 in_window = offset - card->window.offset;

	return card->has_window && offset >= card->window.offset && in_window <= card->window.len &&
	       len <= card->window.len - in_window;
}

static void lanemark_vma_open(struct vm_area_struct *vma)
{
	atomic_inc(vma->vm_private_data);
}

static void lanemark_vma_close(struct vm_area_struct *vma)
{
	atomic_dec(vma->vm_private_data);
}

/* No pages come later: those of a removed function are gone. */
static const struct vm_operations_struct lanemark_vm_ops = { .open = lanemark_vma_open, .close = lanemark_vma_close };

static int lanemark_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct lanemark *card = file->private_data;
	u64 len = vma->vm_end - vma->vm_start, offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	pgprotval_t prot = pgprot_val(vma->vm_page_prot) & ~_PAGE_CACHE_MASK;
	int error = -EINVAL;

	/* Removal waits for the mmap lock of this process only. */
	if (current->mm != card->mm)
		return -EPERM;
	if (!(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC) || vma->vm_pgoff > (U64_MAX >> PAGE_SHIFT))
		return -EINVAL;
	/* A child would keep the pages after the end of this process. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, VM_DONTCOPY, VM_MAYEXEC);
#else
	vma->vm_flags = (vma->vm_flags | VM_DONTCOPY) & ~VM_MAYEXEC;
#endif
	mutex_lock(&card->map_lock);
	if (is_inside(card, offset, len)) {
		vma->vm_page_prot = __pgprot(prot | cachemode2protval(modes[card->window.type]));
		error = io_remap_pfn_range(vma, vma->vm_start, (card->start + offset) >> PAGE_SHIFT, len,
					   vma->vm_page_prot);
	}
	if (!error) {
		vma->vm_private_data = &card->mapped;
		vma->vm_ops = &lanemark_vm_ops;
		atomic_inc(&card->mapped);
	}
	mutex_unlock(&card->map_lock);
	return error;
}

/* Maps the window for copies; under io_lock. */
static int map_for_copies(struct lanemark *card)
{
	/* The kernel has no mapping of type WP. */
	static void __iomem *(*const maps[])(resource_size_t start, unsigned long len) = {
		[LANEMARK_UC] = ioremap_uc,
		[LANEMARK_UC_MINUS] = ioremap,
		[LANEMARK_WC] = ioremap_wc,
		[LANEMARK_WT] = ioremap_wt,
	};

	if (card->window.type >= ARRAY_SIZE(maps))
		return -EOPNOTSUPP;
	if (!card->io)
		card->io = maps[card->window.type](card->start + card->window.offset, card->window.len);
	return card->io ? 0 : -ENOMEM;
}

/* Copies by accesses of 8 B, and narrower ones at the ends; each byte once. The chunk is aligned as the window is. */
static void copy_bytes(u8 __iomem *io, u8 *chunk, size_t len, bool is_write)
{
	size_t width;

#define COPY(type, load, store) \
	(is_write ? store(*(type *)chunk, io) : (void)(*(type *)chunk = load(io)))
	for (; len; io += width, chunk += width, len -= width) {
		width = min3(8UL, 1UL << __ffs((__force unsigned long)io), rounddown_pow_of_two(len));
		if (width == 8)
			COPY(u64, readq, writeq);
		else if (width == 4)
			COPY(u32, readl, writel);
		else if (width == 2)
			COPY(u16, readw, writew);
		else
			COPY(u8, readb, writeb);
	}
#undef COPY
}

/* Copies between a chunk and the window. All of the call must be inside: an end beyond the window is a mistake. */
static int copy_chunk(struct lanemark *card, u8 *chunk, u64 offset, size_t len, size_t rest_of_call, bool is_write)
{
	int error = -ENODEV;

	mutex_lock(&card->io_lock);
	if (card->pdev)
		error = is_inside(card, offset, rest_of_call) ? map_for_copies(card) : -EINVAL;
	if (!error)
		copy_bytes((u8 __iomem *)card->io + (offset - card->window.offset), chunk, len, is_write);
	mutex_unlock(&card->io_lock);
	return error;
}

static ssize_t copy(struct file *file, char __user *user, size_t len, loff_t *at, bool is_write)
{
	u8 aligned[CHUNK + 8] __aligned(8), *chunk = aligned + (*at & 7);
	size_t done = 0, part;
	int error = 0;

	while (done < len && !error) {
		part = min_t(size_t, len - done, CHUNK);
		if (signal_pending(current))
			error = -EINTR;
		else if (is_write && copy_from_user(chunk, user + done, part))
			error = -EFAULT;
		if (!error)
			error = copy_chunk(file->private_data, chunk, *at + done, part, len - done, is_write);
		if (!error && !is_write && copy_to_user(user + done, chunk, part))
			error = -EFAULT;
		done += error ? 0 : part;
		cond_resched();
	}
	*at += done;
	return done ? done : error;
}

static ssize_t lanemark_read(struct file *file, char __user *user, size_t len, loff_t *at)
{
	return copy(file, user, len, at, false);
}

static ssize_t lanemark_write(struct file *file, const char __user *user, size_t len, loff_t *at)
{
	return copy(file, (char __user *)user, len, at, true);
}

static long lanemark_ioctl(struct file *file, unsigned int request, unsigned long user)
{
	struct lanemark *card = file->private_data;
	union {
		struct lanemark_info info;
		struct lanemark_window window;
		struct lanemark_page page;
		struct lanemark_dma_map map;
		union lanemark_dma_call call;
		u32 is_on;
	} argument = {};
	long error = 0;

	if (_IOC_TYPE(request) != 'L' || _IOC_SIZE(request) > sizeof(argument))
		return -ENOTTY;
	if ((_IOC_DIR(request) & _IOC_WRITE) && copy_from_user(&argument, (void __user *)user, _IOC_SIZE(request)))
		return -EFAULT;
	switch (request) {
	case LANEMARK_IOC_INFO:
	case LANEMARK_IOC_WINDOW:
	case LANEMARK_IOC_BUS_MASTER:
		mutex_lock(&card->io_lock);
		if (!card->pdev)
			error = -ENODEV;
		else if (request == LANEMARK_IOC_WINDOW)
			error = set_window(card, &argument.window);
		else if (request == LANEMARK_IOC_INFO)
			argument.info = card->info;
		else if (argument.is_on > 1)
			error = -EINVAL;
		else
			(argument.is_on ? pci_set_master : pci_clear_master)(card->pdev);
		mutex_unlock(&card->io_lock);
		break;
	case LANEMARK_IOC_PAGE:
		error = lanemark_read_page(file, &argument.page);
		break;
	case LANEMARK_IOC_DMA_MAP:
		error = lanemark_dma_begin(card, &argument.map);
		break;
	case LANEMARK_IOC_DMA_UNMAP:
	case LANEMARK_IOC_DMA_SYNC:
		error = lanemark_dma_call(card, &argument.call, request == LANEMARK_IOC_DMA_SYNC);
		break;
	default:
		return -ENOTTY;
	}
	if (error || !(_IOC_DIR(request) & _IOC_READ))
		return error;
	/* A program that cannot take the handle of a mapping has it until the file is closed. */
	return copy_to_user((void __user *)user, &argument, _IOC_SIZE(request)) ? -EFAULT : 0;
}

static const struct file_operations lanemark_fops = {
	.owner = THIS_MODULE,
	.open = lanemark_open, .release = lanemark_release,
	.read = lanemark_read, .write = lanemark_write,
	.llseek = no_seek_end_llseek,
	.mmap = lanemark_mmap,
	.unlocked_ioctl = lanemark_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static int lanemark_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct lanemark *card;
	int error, bar;

	/* Not by an id that was given to the driver, which may match every function. */
	if (!id->override_only || pdev->hdr_type != PCI_HEADER_TYPE_NORMAL)
		return -ENODEV;
	card = kzalloc(sizeof(*card), GFP_KERNEL);
	if (!card)
		return -ENOMEM;
	kref_init(&card->references);
	mutex_init(&card->io_lock);
	mutex_init(&card->map_lock);
	card->pdev = pdev;
	error = pci_enable_device_mem(pdev);
	if (error)
		goto put;
	pci_clear_master(pdev);
	/* EBUSY if another driver has claimed a BAR. */
	error = pci_request_regions_exclusive(pdev, "lanemark");
	if (error)
		goto disable;
	error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (error)
		goto release;
	card->info.version = LANEMARK_VERSION;
	for (bar = 0; bar < ARRAY_SIZE(card->info.bar_bytes); bar++)
		card->info.bar_bytes[bar] = bar_bytes(pdev, bar);
	card->segment_bytes = min_t(size_t, UINT_MAX, dma_max_mapping_size(&pdev->dev));
	dma_set_max_seg_size(&pdev->dev, card->segment_bytes);
	/* The file is in the folder /dev/lanemark. */
	snprintf(card->name, sizeof(card->name), "lanemark/%s", pci_name(pdev));
	card->misc = (struct miscdevice){ .minor = MISC_DYNAMIC_MINOR, .name = card->name, .fops = &lanemark_fops,
					  .mode = 0600, .parent = &pdev->dev };
	pci_set_drvdata(pdev, card);
	error = misc_register(&card->misc);
	if (!error)
		return 0;
release:
	pci_release_regions(pdev);
disable:
	pci_disable_device(pdev);
put:
	kref_put(&card->references, lanemark_free);
	return error;
}

static void lanemark_remove(struct pci_dev *pdev)
{
	struct lanemark *card = pci_get_drvdata(pdev);

	misc_deregister(&card->misc);
	mutex_lock(&card->io_lock);
	quiesce(card);
	card->pdev = NULL;
	if (card->file) {
		/* Without a window, mmap() is refused. One that was not is over after this, and its mapping is found. */
		mmap_read_lock(card->mm);
		mmap_read_unlock(card->mm);
		unmap_mapping_range(card->file->f_mapping, 0, 0, 1);
	}
	mutex_unlock(&card->io_lock);
	pci_release_regions(pdev);
	pci_disable_device(pdev);
	kref_put(&card->references, lanemark_free);
}

/* Matches a function whose driver_override names this driver. Not exported: no alias loads the module. */
static const struct pci_device_id named[] = { { PCI_DEVICE(PCI_ANY_ID, PCI_ANY_ID), .override_only = 1 }, { } };

static struct pci_driver lanemark_driver = {
	.name = "lanemark", .id_table = named, .probe = lanemark_probe, .remove = lanemark_remove,
};
module_pci_driver(lanemark_driver);

MODULE_DESCRIPTION("BARs of a PCI function with a chosen memory type, for measurements");
MODULE_AUTHOR("the Lanemark authors");
MODULE_LICENSE("GPL");
