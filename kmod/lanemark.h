/* SPDX-License-Identifier: GPL-2.0 */
#ifndef LANEMARK_H
#define LANEMARK_H

#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/pci.h>

#include "lanemark_uapi.h"

#define MOST_MAPPINGS 16

struct dma_mapping {
	struct page **pages; /* NULL if coherent, or unused */
	unsigned long count;
	struct sg_table table;
	enum dma_data_direction direction;
	void *coherent; /* NULL if streaming, or unused */
	dma_addr_t address;
	size_t len;
};

/* Both begin with handle and reserved. */
union lanemark_dma_call {
	struct lanemark_dma_unmap unmap;
	struct lanemark_dma_sync sync;
};

struct lanemark {
	struct kref references;
	struct pci_dev *pdev; /* NULL after removal; under io_lock */
	struct miscdevice misc;
	char name[32];
	struct lanemark_info info;
	unsigned int segment_bytes; /* Longest segment of a mapping: bounce buffers are short. */

	struct mutex io_lock;
	void __iomem *io; /* The window, mapped by the first call that copies. */
	struct dma_mapping dma[MOST_MAPPINGS];
	struct file *file; /* The only one. */
	struct mm_struct *mm; /* Its process; no other one maps pages. */

	struct mutex map_lock;
	bool has_window;
	struct lanemark_window window;
	phys_addr_t start; /* Of its BAR. */
	atomic_t mapped; /* Mappings of its pages; grows from 0 under map_lock only. */
};

/* Pins and maps memory of the calling process, or allocates coherent memory. */
int lanemark_dma_begin(struct lanemark *card, struct lanemark_dma_map *asked);
/* Synchronises a mapping by its handle, or ends it. */
int lanemark_dma_call(struct lanemark *card, union lanemark_dma_call *asked, bool is_sync);
/* Unmaps and unpins a mapping, if it is one, and measures both; under io_lock. */
void lanemark_dma_end(struct lanemark *card, struct dma_mapping *dma, struct lanemark_dma_unmap *times);
/* Reads the memory type of a page of the calling process back, which is mapped from the file. */
int lanemark_read_page(struct file *file, struct lanemark_page *page);

#endif
