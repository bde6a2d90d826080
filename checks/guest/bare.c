/*
 * Accesses without Lanemark, for comparison: `bare load FILE` or `bare store FILE` prints the median time of one, of words of
 * 8 B in the first page of this file, in ns. A failure ends it with status 1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
/* Samples, of which the median is printed. An interrupt disturbs few of them. */
#define SAMPLES 101
#define ACCESSES (PAGE / 8)

static void check(const char *what, int is_good)
{
	if (!is_good) {
		perror(what);
		exit(1);
	}
}

static double now_ns(void)
{
	struct timespec now;

	check("clock", clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void access_words(const char *path, int is_store)
{
	int file = open(path, O_RDWR | O_SYNC);
	double samples[SAMPLES];
	volatile uint64_t *at;

	check(path, file >= 0);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	check("mmap", at != MAP_FAILED);
	for (int nth = -1; nth < SAMPLES; nth++) {
		double begun = now_ns();

		if (is_store) {
#pragma GCC unroll 8
			for (unsigned word = 0; word < ACCESSES; word++)
				at[word] = word;
		} else {
#pragma GCC unroll 8
			for (unsigned word = 0; word < ACCESSES; word++)
				(void)at[word];
		}
		/* The first sample is overwritten: it is a warm-up. */
		samples[nth < 0 ? 0 : nth] = now_ns() - begun;
	}
	qsort(samples, SAMPLES, sizeof(*samples), by_size);
	printf("%.3f\n", samples[SAMPLES / 2] / ACCESSES);
}

int main(int count, char **words)
{
	if (count != 3)
		return 2;
	access_words(words[2], !strcmp(words[1], "store"));
	return 0;
}
