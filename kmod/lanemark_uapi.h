/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Interface of the module "lanemark" to programs: /dev/lanemark/ADDRESS of each PCI function that is bound to it.
 *
 * A file has at most one window: a range of whole pages of one BAR, with one memory type. mmap() maps pages of the window,
 * pread() and pwrite() copy bytes of it; their offsets are those in the BAR. So a BAR never has two types at a time.
 */
#ifndef LANEMARK_UAPI_H
#define LANEMARK_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/** LANEMARK_VERSION - Version of this interface, in &struct lanemark_info. */
#define LANEMARK_VERSION 3

/** LANEMARK_MOST_DMA_BYTES - Longest DMA mapping, in bytes. */
#define LANEMARK_MOST_DMA_BYTES (64ULL << 20)

/**
 * enum lanemark_type - Memory types of a window.
 * @LANEMARK_UC: Uncacheable; no MTRR overrides it.
 * @LANEMARK_UC_MINUS: Uncacheable, unless an MTRR says write-combining.
 * @LANEMARK_WC: Write-combining.
 * @LANEMARK_WT: Write-through.
 * @LANEMARK_WP: Write-protected; pread() and pwrite() have no mapping of this type and fail with EOPNOTSUPP.
 */
enum lanemark_type {
	LANEMARK_UC = 0,
	LANEMARK_UC_MINUS = 1,
	LANEMARK_WC = 2,
	LANEMARK_WT = 3,
	LANEMARK_WP = 4,
};

/**
 * enum lanemark_direction - Directions and kinds of DMA mappings.
 * @LANEMARK_TO_DEVICE: Streaming mapping that the device reads.
 * @LANEMARK_FROM_DEVICE: Streaming mapping that the device writes.
 * @LANEMARK_BIDIRECTIONAL: Streaming mapping that the device reads and writes.
 * @LANEMARK_COHERENT: Memory that the kernel allocates (dma_alloc_coherent); no program sees its bytes.
 */
enum lanemark_direction {
	LANEMARK_TO_DEVICE = 0,
	LANEMARK_FROM_DEVICE = 1,
	LANEMARK_BIDIRECTIONAL = 2,
	LANEMARK_COHERENT = 3,
};

/**
 * struct lanemark_info - Properties of the function.
 * @version: Out: %LANEMARK_VERSION.
 * @reserved: Out: 0.
 * @bar_bytes: Out: length of each BAR; 0 if it is absent, in I/O space, or not whole pages.
 */
struct lanemark_info {
	__u32 version;
	__u32 reserved;
	__u64 bar_bytes[6];
};

/**
 * struct lanemark_window - The window of a file.
 * @bar: In: number of the BAR, 0 to 5.
 * @type: In: &enum lanemark_type.
 * @offset: In: first byte of the window in the BAR; whole pages.
 * @len: In: bytes of the window, at least a page; whole pages.
 */
struct lanemark_window {
	__u32 bar;
	__u32 type;
	__u64 offset;
	__u64 len;
};

/** LANEMARK_MTRR_MIXED - Several MTRR types in one page, or none that this kernel shows. */
#define LANEMARK_MTRR_MIXED 0xff

/**
 * struct lanemark_page - Memory type of a mapped page, as the processor finds it.
 * @address: In: an address in a mapping of this file in the calling process.
 * @pat_index: Out: index in the page attribute table, from the page table entry.
 * @pat: Out: type at this index in the MSR IA32_PAT, as encoded there.
 * @mtrr: Out: type from the variable MTRRs and their default, as encoded there, or %LANEMARK_MTRR_MIXED.
 * @reserved: In: 0.
 */
struct lanemark_page {
	__u64 address;
	__u32 pat_index;
	__u32 pat;
	__u32 mtrr;
	__u32 reserved;
};

/**
 * struct lanemark_dma_map - A DMA mapping by the kernel's DMA API.
 * @address: In: first byte in the calling process; whole pages. 0 if coherent.
 * @len: In: bytes, at least a page and at most %LANEMARK_MOST_DMA_BYTES; whole pages.
 * @direction: In: &enum lanemark_direction.
 * @handle: Out: number of the mapping, for &struct lanemark_dma_unmap.
 * @segments: Out: contiguous ranges of device addresses.
 * @bounced: In: 1 to count bounced pages, after the times are taken; otherwise 0. Out: pages mapped through a bounce
 *	buffer (swiotlb); 0 if not counted, or if coherent.
 * @dma_address: Out: first device address.
 * @pin_ns: Out: time of pinning the pages; 0 if coherent.
 * @map_ns: Out: time of dma_map_sgtable(), or of dma_alloc_coherent().
 */
struct lanemark_dma_map {
	__u64 address;
	__u64 len;
	__u32 direction;
	__u32 handle;
	__u32 segments;
	__u32 bounced;
	__u64 dma_address;
	__u64 pin_ns;
	__u64 map_ns;
};

/**
 * struct lanemark_dma_unmap - The end of a DMA mapping.
 * @handle: In: number of the mapping.
 * @reserved: In: 0.
 * @unmap_ns: Out: time of dma_unmap_sgtable(), or of dma_free_coherent().
 * @unpin_ns: Out: time of unpinning the pages; 0 if coherent.
 */
struct lanemark_dma_unmap {
	__u32 handle;
	__u32 reserved;
	__u64 unmap_ns;
	__u64 unpin_ns;
};

/**
 * struct lanemark_dma_sync - Synchronises a streaming DMA mapping, which remains mapped.
 * @handle: In: number of the mapping.
 * @reserved: In: 0.
 * @for_cpu_ns: Out: time of dma_sync_sgtable_for_cpu(), after which the cores may access the memory.
 * @for_device_ns: Out: time of dma_sync_sgtable_for_device(), which follows it.
 */
struct lanemark_dma_sync {
	__u32 handle;
	__u32 reserved;
	__u64 for_cpu_ns;
	__u64 for_device_ns;
};

/** LANEMARK_IOC_INFO - Reads the properties of the function. */
#define LANEMARK_IOC_INFO _IOR('L', 0x60, struct lanemark_info)
/** LANEMARK_IOC_WINDOW - Sets the window; EBUSY while pages of the former one are mapped. */
#define LANEMARK_IOC_WINDOW _IOW('L', 0x61, struct lanemark_window)
/** LANEMARK_IOC_PAGE - Reads the memory type of a mapped page back. */
#define LANEMARK_IOC_PAGE _IOWR('L', 0x62, struct lanemark_page)
/** LANEMARK_IOC_BUS_MASTER - Turns bus mastering on (1) or off (0); off when the file is closed. */
#define LANEMARK_IOC_BUS_MASTER _IOW('L', 0x63, __u32)
/** LANEMARK_IOC_DMA_MAP - Pins and maps memory for the function; at most 16 mappings. */
#define LANEMARK_IOC_DMA_MAP _IOWR('L', 0x64, struct lanemark_dma_map)
/** LANEMARK_IOC_DMA_UNMAP - Unmaps and unpins it; closing the file does so too. */
#define LANEMARK_IOC_DMA_UNMAP _IOWR('L', 0x65, struct lanemark_dma_unmap)
/** LANEMARK_IOC_DMA_SYNC - Synchronises a streaming mapping for the cores, then for the device; EINVAL for coherent memory. */
#define LANEMARK_IOC_DMA_SYNC _IOWR('L', 0x66, struct lanemark_dma_sync)

#endif
