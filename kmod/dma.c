// SPDX-License-Identifier: GPL-2.0
/* Memory of programs, pinned and mapped for the function by the kernel's DMA API, and the times of both. */
#include <linux/iommu.h>
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

	if (dma->coherent)
		dma_free_coherent(&card->pdev->dev, dma->len, dma->coherent, dma->address);
	else if (dma->pages)
		dma_unmap_sgtable(&card->pdev->dev, &dma->table, dma->direction, 0);
	between = ktime_get_ns();
	if (dma->pages)
		unpin(card, dma);
	times->unmap_ns = between - begun;
	times->unpin_ns = dma->pages ? ktime_get_ns() - between : 0;
	memset(dma, 0, sizeof(*dma));
}

/* Pins the pages of a streaming mapping; without io_lock, because pages of a program may have to be read first. */
static int pin(struct lanemark *card, struct lanemark_dma_map *asked, struct dma_mapping *dma)
{
	unsigned int flags = FOLL_LONGTERM | (asked->direction == LANEMARK_TO_DEVICE ? 0 : FOLL_WRITE);
	u64 begun;
	int pinned, error;

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
		error = sg_alloc_table_from_pages_segment(&dma->table, dma->pages, dma->count, 0, asked->len,
							  card->segment_bytes, GFP_KERNEL);
	if (!error)
		return 0;
	if (pinned > 0)
		unpin_user_pages(dma->pages, pinned);
	account_locked_vm(card->mm, dma->count, false);
free:
	kvfree(dma->pages);
	return error;
}

/* Counts the pages whose DMA address leads to a bounce buffer. On x86-64 without an IOMMU, it is a physical address. */
static u32 bounced_pages(struct lanemark *card, struct dma_mapping *dma)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&card->pdev->dev);
	struct sg_dma_page_iter at;
	u32 page = 0, bounced = 0;
	phys_addr_t memory;

	for_each_sgtable_dma_page(&dma->table, &at, 0) {
		memory = sg_page_iter_dma_address(&at);
		memory = domain ? iommu_iova_to_phys(domain, memory) : memory;
		bounced += __sme_clr(memory) != page_to_phys(dma->pages[page++]);
	}
	return bounced;
}

int lanemark_dma_begin(struct lanemark *card, struct lanemark_dma_map *asked)
{
	static const u8 directions[] = { DMA_TO_DEVICE, DMA_FROM_DEVICE, DMA_BIDIRECTIONAL, DMA_BIDIRECTIONAL };
	bool is_coherent = asked->direction == LANEMARK_COHERENT;
	struct dma_mapping dma = { .len = asked->len };
	int error, i;
	u64 begun;

	if (asked->direction >= ARRAY_SIZE(directions) || asked->bounced > 1 || !PAGE_ALIGNED(asked->address) ||
	    !asked->len || !PAGE_ALIGNED(asked->len) || asked->len > LANEMARK_MOST_DMA_BYTES ||
	    (is_coherent && asked->address))
		return -EINVAL;
	if (current->mm != card->mm)
		return -EPERM;
	dma.direction = directions[asked->direction];
	asked->pin_ns = 0;
	error = is_coherent ? 0 : pin(card, asked, &dma);
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
		asked->bounced = asked->bounced ? bounced_pages(card, &dma) : 0;
		asked->segments = is_coherent ? 1 : dma.table.nents;
		asked->dma_address = is_coherent ? dma.address : sg_dma_address(dma.table.sgl);
		card->dma[i] = dma;
	}
	mutex_unlock(&card->io_lock);
	if (error && dma.pages)
		unpin(card, &dma);
	return error;
}

/* Hands a streaming mapping over to the cores, then to the device. */
static void sync(struct lanemark *card, struct dma_mapping *dma, struct lanemark_dma_sync *times)
{
	u64 begun = ktime_get_ns(), between;

	dma_sync_sgtable_for_cpu(&card->pdev->dev, &dma->table, dma->direction);
	between = ktime_get_ns();
	dma_sync_sgtable_for_device(&card->pdev->dev, &dma->table, dma->direction);
	times->for_device_ns = ktime_get_ns() - between;
	times->for_cpu_ns = between - begun;
}

int lanemark_dma_call(struct lanemark *card, union lanemark_dma_call *asked, bool is_sync)
{
	struct dma_mapping *dma;
	int error;

	if (asked->unmap.handle >= MOST_MAPPINGS || asked->unmap.reserved)
		return -EINVAL;
	mutex_lock(&card->io_lock);
	dma = &card->dma[asked->unmap.handle];
	/* The mappings of a removed function have ended. Coherent memory is not synchronised. */
	error = !card->pdev ? -ENODEV : dma->pages || (dma->coherent && !is_sync) ? 0 : -EINVAL;
	if (!error && is_sync)
		sync(card, dma, &asked->sync);
	else if (!error)
		lanemark_dma_end(card, dma, &asked->unmap);
	mutex_unlock(&card->io_lock);
	return error;
}
