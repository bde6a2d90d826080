// SPDX-License-Identifier: GPL-2.0
/* Memory of programs, pinned and mapped for the function by the kernel's DMA API, and the times of both. */
#include <linux/ktime.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "lanemark.h"

static void unpin(struct lanemark *card, struct dma_mapping *dma)
{
	unpin_user_pages_dirty_lock(dma->pages, dma->count, dma->direction != DMA_TO_DEVICE);
	account_locked_vm(card->mm, dma->count, false);
	sg_free_table(&dma->table);
	kvfree(dma->pages);
}

void lanemark_dma_end(struct lanemark *card, struct dma_mapping *dma, struct lanemark_dma_unmap *times)
{
	u64 begun = ktime_get_ns(), between;

	if (dma->coherent) {
		dma_free_coherent(&card->pdev->dev, dma->len, dma->coherent, dma->address);
		times->unmap_ns = ktime_get_ns() - begun;
	} else if (dma->pages) {
		dma_unmap_sgtable(&card->pdev->dev, &dma->table, dma->direction, 0);
		between = ktime_get_ns();
		unpin(card, dma);
		times->unmap_ns = between - begun;
		times->unpin_ns = ktime_get_ns() - between;
	}
	memset(dma, 0, sizeof(*dma));
}

/* Pins the pages of a streaming mapping; without io_lock, because pages of a program may have to be read first. */
static int pin(struct lanemark *card, struct lanemark_dma_map *asked, struct dma_mapping *dma)
{
	unsigned int flags = FOLL_LONGTERM | (asked->direction == LANEMARK_TO_DEVICE ? 0 : FOLL_WRITE);
	u64 begun;
	long pinned;
	int error;

	dma->count = asked->len >> PAGE_SHIFT;
	dma->pages = kvmalloc_array(dma->count, sizeof(*dma->pages), GFP_KERNEL);
	if (!dma->pages)
		return -ENOMEM;
	error = account_locked_vm(card->mm, dma->count, true);
	if (error)
		goto free;
	begun = ktime_get_ns();
	pinned = pin_user_pages_fast(asked->address, dma->count, flags, dma->pages);
	asked->pin_ns = ktime_get_ns() - begun;
	error = pinned < 0 ? pinned : -EFAULT;
	if (pinned == dma->count)
		error = sg_alloc_table_from_pages(&dma->table, dma->pages, dma->count, 0, asked->len, GFP_KERNEL);
	if (!error)
		return 0;
	if (pinned > 0)
		unpin_user_pages(dma->pages, pinned);
	account_locked_vm(card->mm, dma->count, false);
free:
	kvfree(dma->pages);
	return error;
}

int lanemark_dma_begin(struct lanemark *card, struct lanemark_dma_map *asked)
{
	static const enum dma_data_direction directions[] = { DMA_TO_DEVICE, DMA_FROM_DEVICE, DMA_BIDIRECTIONAL,
							      DMA_BIDIRECTIONAL };
	bool is_coherent = asked->direction == LANEMARK_COHERENT;
	struct dma_mapping dma = { .len = asked->len };
	u64 begun;
	int error = 0, i;

	if (asked->direction >= ARRAY_SIZE(directions) || asked->reserved || !PAGE_ALIGNED(asked->address) ||
	    !asked->len || !PAGE_ALIGNED(asked->len) || asked->len > LANEMARK_MOST_DMA_BYTES ||
	    (is_coherent && asked->address))
		return -EINVAL;
	if (current->mm != card->mm)
		return -EPERM;
	dma.direction = directions[asked->direction];
	asked->pin_ns = 0;
	if (!is_coherent)
		error = pin(card, asked, &dma);
	if (error)
		return error;
	mutex_lock(&card->io_lock);
	for (i = 0; i < MOST_MAPPINGS && (card->dma[i].pages || card->dma[i].coherent); i++)
		;
	error = !card->pdev ? -ENODEV : i == MOST_MAPPINGS ? -ENOSPC : 0;
	begun = ktime_get_ns();
	if (!error && is_coherent) {
		dma.coherent = dma_alloc_coherent(&card->pdev->dev, dma.len, &dma.address, GFP_KERNEL | __GFP_NOWARN);
		error = dma.coherent ? 0 : -ENOMEM;
	} else if (!error) {
		error = dma_map_sgtable(&card->pdev->dev, &dma.table, dma.direction, 0);
	}
	asked->map_ns = ktime_get_ns() - begun;
	if (!error) {
		asked->handle = i;
		asked->segments = is_coherent ? 1 : dma.table.nents;
		asked->dma_address = is_coherent ? dma.address : sg_dma_address(dma.table.sgl);
		card->dma[i] = dma;
	}
	mutex_unlock(&card->io_lock);
	if (error && dma.pages)
		unpin(card, &dma);
	return error;
}

int lanemark_dma_finish(struct lanemark *card, struct lanemark_dma_unmap *asked)
{
	struct dma_mapping *dma;
	int error = -EINVAL;

	if (asked->handle >= MOST_MAPPINGS || asked->reserved)
		return -EINVAL;
	asked->unmap_ns = 0;
	asked->unpin_ns = 0;
	mutex_lock(&card->io_lock);
	dma = &card->dma[asked->handle];
	/* The mappings of a removed function have ended. */
	if (dma->pages || dma->coherent) {
		lanemark_dma_end(card, dma, asked);
		error = 0;
	}
	mutex_unlock(&card->io_lock);
	return error;
}
