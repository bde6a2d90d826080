/* Calls our kernel module as no other program does, by its arguments: see `main`. A failure ends it with status 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lanemark_uapi.h"

#define PAGE 4096ULL

static int file;
static const char *path;

static void expect(const char *what, long returned, int expected)
{
	int found = returned < 0 ? errno : 0;

	if (found != expected) {
		printf("%s: %s instead of %s\n", what, strerror(found), strerror(expected));
		exit(1);
	}
}

static long window(unsigned bar, unsigned type, __u64 offset, __u64 len)
{
	struct lanemark_window asked = { bar, type, offset, len };

	return ioctl(file, LANEMARK_IOC_WINDOW, &asked);
}

static long map(__u64 offset, __u64 len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);

	return at == MAP_FAILED ? -1 : munmap(at, len);
}

/* Maps a page with each type, and prints what is read back: type, PAT, MTRR. */
static void types(unsigned bar)
{
	static const char *const names[] = { "UC", "UC-", "WC", "WT", "WP" };

	for (unsigned type = 0; type < 5; type++) {
		struct lanemark_page page = { 0 };
		__u64 copied = 0;
		void *at;

		expect("window", window(bar, type, 0, PAGE), 0);
		at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		expect("mmap", at == MAP_FAILED ? -1 : 0, 0);
		page.address = (__u64)(unsigned long)at;
		expect("page", ioctl(file, LANEMARK_IOC_PAGE, &page), 0);
		expect("a window while one is mapped", window(bar, type, 0, PAGE), EBUSY);
		/* The kernel's copies have the same type. */
		expect("pread", pread(file, &copied, sizeof(copied), 0), type == LANEMARK_WP ? EOPNOTSUPP : 0);
		printf("%s pat %u mtrr %u\n", names[type], page.pat, page.mtrr);
		expect("munmap", munmap(at, PAGE), 0);
	}
}

/* Mistakes, each with its error. */
static void refusals(unsigned bar, __u64 len)
{
	const __u64 half = 1ULL << 63;
	char byte;
	__u64 words[2] = { 0 };
	/* Not a constant, so that the compiler does not object. */
	void *volatile nowhere = (void *)8;
	struct lanemark_page page = { .address = (__u64)(unsigned long)&page };
	struct lanemark_dma_map dma = { 0 };
	struct lanemark_dma_unmap unmap = { 0 };
	struct lanemark_dma_sync sync = { 0 };
	__u32 on = 2;

	expect("a second program", open(path, O_RDWR), EBUSY);
	expect("mmap without a window", map(0, PAGE), EINVAL);
	expect("pread without a window", pread(file, &byte, 1, 0), EINVAL);
	expect("length 0", window(bar, 0, 0, 0), EINVAL);
	expect("length 2^63", window(bar, 0, 0, half), ERANGE);
	expect("an end beyond 2^64", window(bar, 0, half, half), EINVAL);
	expect("an unaligned offset", window(bar, 0, 1, PAGE), EINVAL);
	expect("an unaligned length", window(bar, 0, 0, PAGE - 1), EINVAL);
	expect("a page beyond the BAR", window(bar, 0, len, PAGE), ERANGE);
	expect("a window that ends beyond the BAR", window(bar, 0, 0, len + PAGE), ERANGE);
	expect("BAR 6", window(6, 0, 0, PAGE), EINVAL);
	expect("BAR 5, which is absent", window(5, 0, 0, PAGE), ENXIO);
	expect("memory type 5", window(bar, 5, 0, PAGE), EINVAL);
	expect("a window", window(bar, 0, PAGE, PAGE), 0);
	expect("mmap before the window", map(0, PAGE), EINVAL);
	expect("mmap beyond the window", map(PAGE, 2 * PAGE), EINVAL);
	expect("a private mapping",
	       mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, PAGE) == MAP_FAILED ? -1 : 0, EINVAL);
	expect("pread before the window", pread(file, &byte, 1, PAGE - 1), EINVAL);
	expect("pread over the end of the window", pread(file, words, sizeof(words), 2 * PAGE - 8), EINVAL);
	expect("pwrite to a bad address", pwrite(file, nowhere, 8, PAGE), EFAULT);
	expect("a page of another mapping", ioctl(file, LANEMARK_IOC_PAGE, &page), EINVAL);
	expect("bus mastering 2", ioctl(file, LANEMARK_IOC_BUS_MASTER, &on), EINVAL);
	expect("DMA of length 0", ioctl(file, LANEMARK_IOC_DMA_MAP, &dma), EINVAL);
	dma.len = half;
	expect("DMA of length 2^63", ioctl(file, LANEMARK_IOC_DMA_MAP, &dma), EINVAL);
	dma.len = PAGE;
	dma.address = 1;
	expect("DMA from an unaligned address", ioctl(file, LANEMARK_IOC_DMA_MAP, &dma), EINVAL);
	dma.address = 0;
	expect("DMA of pages that are not mapped", ioctl(file, LANEMARK_IOC_DMA_MAP, &dma), EFAULT);
	dma.direction = 4;
	expect("DMA in direction 4", ioctl(file, LANEMARK_IOC_DMA_MAP, &dma), EINVAL);
	dma.direction = LANEMARK_COHERENT;
	dma.bounced = 2;
	expect("DMA_MAP with bounced = 2", ioctl(file, LANEMARK_IOC_DMA_MAP, &dma), EINVAL);
	expect("the end of no mapping", ioctl(file, LANEMARK_IOC_DMA_UNMAP, &unmap), EINVAL);
	expect("the sync of no mapping", ioctl(file, LANEMARK_IOC_DMA_SYNC, &sync), EINVAL);
	dma.bounced = 0;
	expect("coherent memory", ioctl(file, LANEMARK_IOC_DMA_MAP, &dma), 0);
	sync.handle = unmap.handle = dma.handle;
	expect("the sync of coherent memory", ioctl(file, LANEMARK_IOC_DMA_SYNC, &sync), EINVAL);
	unmap.reserved = 1;
	expect("reserved = 1", ioctl(file, LANEMARK_IOC_DMA_UNMAP, &unmap), EINVAL);
	unmap.reserved = 0;
	expect("the end of coherent memory", ioctl(file, LANEMARK_IOC_DMA_UNMAP, &unmap), 0);
	expect("a second end", ioctl(file, LANEMARK_IOC_DMA_UNMAP, &unmap), EINVAL);
	expect("another request", ioctl(file, _IO('L', 0x67)), ENOTTY);
	puts("all refused");
}

/* Maps memory of each length for DMA, streaming and coherent, and leaves the last mappings to the kernel. */
static void dma(void)
{
	char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned direction = 0; direction < 4; direction++) {
		for (__u64 len = PAGE; len <= 1 << 20; len *= 16) {
			struct lanemark_dma_map asked = { .len = len, .direction = direction, .bounced = 1 };
			struct lanemark_dma_unmap unmap = { 0 };
			struct lanemark_dma_sync sync = { 0 };

			asked.address = direction == LANEMARK_COHERENT ? 0 : (__u64)(unsigned long)memory;
			expect("map", ioctl(file, LANEMARK_IOC_DMA_MAP, &asked), 0);
			sync.handle = unmap.handle = asked.handle;
			if (direction != LANEMARK_COHERENT)
				expect("sync", ioctl(file, LANEMARK_IOC_DMA_SYNC, &sync), 0);
			printf("direction %u, %llu B: %u segments, %u pages bounced, pin %llu ns, map %llu ns", direction, len,
			       asked.segments, asked.bounced, asked.pin_ns, asked.map_ns);
			expect("unmap", ioctl(file, LANEMARK_IOC_DMA_UNMAP, &unmap), 0);
			printf(", sync for cpu %llu ns, for device %llu ns", sync.for_cpu_ns, sync.for_device_ns);
			printf(", unmap %llu ns, unpin %llu ns\n", unmap.unmap_ns, unmap.unpin_ns);
			if ((direction != LANEMARK_COHERENT) != (sync.for_cpu_ns && sync.for_device_ns))
				exit(1);
			if (!asked.map_ns || !unmap.unmap_ns || !asked.pin_ns != (direction == LANEMARK_COHERENT))
				exit(1);
		}
	}
	for (unsigned nth = 0; nth <= 16; nth++) {
		struct lanemark_dma_map asked = { .address = (__u64)(unsigned long)memory, .len = PAGE };

		expect("one more", ioctl(file, LANEMARK_IOC_DMA_MAP, &asked), nth < 16 ? 0 : ENOSPC);
	}
}

#define THREADS 3

static unsigned long calls_of_thread;
static __u64 accepted;
static char *memory;

/* Constants: Knuth, MMIX. */
static __u64 next(__u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static __u64 wide(__u64 *state)
{
	__u64 high = next(state) << 33;

	return high ^ next(state);
}

/* Requests with random contents, many of them nearly right; each thread has a fixed seed. */
static void *fuzz_thread(void *seed)
{
	static const unsigned long requests[] = { LANEMARK_IOC_INFO,	  LANEMARK_IOC_WINDOW,	LANEMARK_IOC_PAGE,
						  LANEMARK_IOC_BUS_MASTER, LANEMARK_IOC_DMA_MAP, LANEMARK_IOC_DMA_UNMAP,
						  LANEMARK_IOC_DMA_SYNC };
	__u64 state = (__u64)(unsigned long)seed;
	__u64 corner[] = { 0, 1, 2, PAGE, 2 * PAGE, 4 << 20, 1ULL << 63, ~0ULL, (__u64)(unsigned long)memory };

	for (unsigned long nth = 0; nth < calls_of_thread; nth++) {
		__u64 words[8];
		unsigned long request = requests[next(&state) % 7];
		int is_accepted;

		for (unsigned i = 0; i < 8; i++)
			words[i] = next(&state) % 8 ? corner[next(&state) % 9] : wide(&state);
		/* The device must not be able to do anything. */
		if (request == LANEMARK_IOC_BUS_MASTER && (words[0] & 0xffffffff) == 1)
			continue;
		/* The DMA API does not support overlapping mappings that the device may write: a debugging kernel warns. */
		if (request == LANEMARK_IOC_DMA_MAP && ((__u32)words[2] == LANEMARK_FROM_DEVICE ||
							(__u32)words[2] == LANEMARK_BIDIRECTIONAL))
			words[2] = LANEMARK_TO_DEVICE;
		if (next(&state) % 64 == 0)
			request ^= 1UL << next(&state) % 30;
		if (request == LANEMARK_IOC_BUS_MASTER)
			words[0] = 2;
		is_accepted = ioctl(file, request, next(&state) % 32 ? (void *)words : (void *)8) == 0;
		if (next(&state) % 4 == 0)
			map(words[1], words[2]);
		if (next(&state) % 4 == 0)
			is_accepted += pread(file, memory, words[3] % 8192, words[4]) > 0;
		__sync_fetch_and_add(&accepted, is_accepted);
	}
	return NULL;
}

/* Several threads send such requests concurrently. */
static void fuzz(unsigned long calls)
{
	pthread_t threads[THREADS];

	calls_of_thread = calls / THREADS;
	memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, fuzz_thread, (void *)(i + 1)))
			exit(1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%llu of %lu accepted\n", accepted, calls);
}

/* module DEVICE types BAR | refusals BAR BYTES | dma | fuzz CALLS | hold SECONDS | master SECONDS */
int main(int count, char **words)
{
	unsigned long first = count > 3 ? strtoul(words[3], NULL, 0) : 0;
	__u32 on = 1;

	if (count < 3)
		return 2;
	path = words[1];
	file = open(path, O_RDWR);
	if (file < 0) {
		perror(words[1]);
		return 1;
	}
	if (!strcmp(words[2], "types"))
		types(first);
	else if (!strcmp(words[2], "refusals") && count > 4)
		refusals(first, strtoull(words[4], NULL, 0));
	else if (!strcmp(words[2], "dma"))
		dma();
	else if (!strcmp(words[2], "fuzz"))
		fuzz(first);
	else if (!strcmp(words[2], "hold"))
		sleep(first);
	else if (!strcmp(words[2], "master"))
		expect("bus mastering", ioctl(file, LANEMARK_IOC_BUS_MASTER, &on), 0), sleep(first);
	else
		return 2;
	return 0;
}
