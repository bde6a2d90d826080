/* Kernels of the fake CUDA driver: functions with the names and the effects of the texts in crates/hw/src/cuda. */
#define _DEFAULT_SOURCE
#include "driver.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WARP = 32, UNITS = 8 };

static atomic_int is_hung, named_launches;

static uint64_t host_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t device_ns(void) {
    const char *rate = told("FAKE_CUDA_CLOCK", NULL);
    return rate ? (uint64_t)((double)host_ns() * atof(rate)) + 1 : host_ns();
}

struct kernel {
    const char *name;
    int (*run)(const struct module *module, unsigned columns, unsigned rows, unsigned threads, void **values);
};

#define VALUE(type, index) (*(type *)values[index])

static int nothing(const struct module *module, unsigned columns, unsigned rows, unsigned threads, void **values) {
    (void)columns, (void)rows, (void)threads;
    /* Each argument is the address of memory. */
    int index = 0;
    for (const char *at = module->text; (at = strstr(at, ".param .u64 a")); at++, index++)
        if (!memory_at(VALUE(uint64_t, index), 1)) return ILLEGAL_ADDRESS;
    return SUCCESS;
}

static int clock_readings(const struct module *module, unsigned columns, unsigned rows, unsigned threads, void **values) {
    (void)module;
    uint32_t count = VALUE(uint32_t, 1);
    uint64_t *readings = (uint64_t *)memory_at(VALUE(uint64_t, 0), count * sizeof(uint64_t));
    if (!readings) return ILLEGAL_ADDRESS;
    if (columns * rows * threads != 1) return INVALID_VALUE;
    for (uint32_t i = 0; i < count; i++) readings[i] = device_ns();
    return SUCCESS;
}

/* The job of `transfers`, at the offsets of transfers.ptx. */
struct job {
    uint64_t base, out, sums, count, bytes, slices, places, step, transfers_on, slices_on, carry;
    uint32_t warps, is_shared, is_random, is_write, zero, factor, summand, unused[3];
};
_Static_assert(sizeof(struct job) == 128, "a job has 128 bytes");
/* What the kernel keeps at `out`. */
struct times {
    uint64_t complement_of_start, issued, delivered;
    uint32_t finished_warps, unused;
};

static void larger(uint64_t *kept, uint64_t value) {
    if (value > *kept) *kept = value;
}

static uint64_t offset_of(const struct job *job, uint64_t nth) {
    uint64_t hash = nth;
    if (job->is_random) {
        hash = (hash + 1) * 0x9E3779B97F4A7C15;
        hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9;
        hash = (hash ^ hash >> 27) * 0x94D049BB133111EB;
        hash ^= hash >> 31;
    }
    return hash % job->places * job->step;
}

/* Reads a slice into the sums of the threads, or writes it. `offset` is that from the start of the window. */
static void slice(const struct job *job, uint32_t *words, uint64_t offset, uint64_t len, uint32_t unit, uint32_t *sums) {
    uint32_t of_thread = unit / 4, of_warp = of_thread * WARP;
    for (uint64_t i = 0; i < len / 4; i++) {
        if (job->is_write)
            words[i] = (uint32_t)(offset / 4 + i) * job->factor + job->summand;
        else
            sums[i % of_warp / of_thread] += words[i];
    }
}

static int warp(const struct job *job, uint32_t number_of_warp, uint32_t unit, struct times *times) {
    uint32_t sums[WARP] = {0}, *kept = NULL;
    uint64_t slice_bytes = (uint64_t)unit * WARP * UNITS, nth = number_of_warp, k = 0;
    int is_wrong = number("FAKE_CUDA_WRONG_BYTES", 0);
    if (job->is_shared) nth = number_of_warp / job->slices, k = number_of_warp % job->slices;
    uint64_t start = device_ns();
    while (nth < job->count) {
        uint64_t within = k * slice_bytes, offset = offset_of(job, nth) + within, len = job->bytes - within;
        if (len > slice_bytes) len = slice_bytes;
        char *memory = memory_at(job->base + offset, len);
        if (!memory) return ILLEGAL_ADDRESS;
        if ((uintptr_t)memory % unit) return ILLEGAL_ADDRESS;
        slice(job, (uint32_t *)memory, offset, len, unit, sums);
        if (is_wrong && job->is_write && k == 0) *(uint32_t *)memory ^= 1;
        nth += job->transfers_on;
        k += job->slices_on;
        if (k >= job->slices) k -= job->slices, nth += job->carry;
    }
    uint64_t end = device_ns();
    larger(&times->complement_of_start, ~start);
    larger(&times->issued, end);
    if (job->is_write) {
        if (++times->finished_warps == job->warps) larger(&times->delivered, device_ns());
        return SUCCESS;
    }
    larger(&times->delivered, end);
    kept = (uint32_t *)memory_at(job->sums + number_of_warp * sizeof sums, sizeof sums);
    if (!kept) return ILLEGAL_ADDRESS;
    memcpy(kept, sums, sizeof sums);
    if (is_wrong && number_of_warp == 0) kept[0] ^= 1;
    return SUCCESS;
}

/* The bytes of a unit, which the text of a kernel has behind these words. */
static uint32_t unit_of(const struct module *module, const char *words) {
    const char *found = strstr(module->text, words);
    return found ? (uint32_t)atoi(found + strlen(words)) : 0;
}

static int transfers(const struct module *module, unsigned columns, unsigned rows, unsigned threads, void **values) {
    uint32_t unit = unit_of(module, "mul.wide.u32 %lo, %lane, ");
    if (threads != WARP || rows > 2 || (unit != 4 && unit != 8 && unit != 16)) return INVALID_VALUE;
    for (unsigned row = 0; row < rows; row++) {
        const struct job *job = values[row];
        struct times *times = (struct times *)memory_at(job->out, sizeof *times);
        if (!times) return ILLEGAL_ADDRESS;
        for (uint32_t i = 0; i < columns && i < job->warps; i++) {
            int status = warp(job, i, unit, times);
            if (status) return status;
        }
    }
    return SUCCESS;
}

/* The job of `pieces`, at the offsets of pieces.ptx. */
struct pieces_job {
    uint64_t from, to, bytes, slices, count, is_from_packed, is_to_packed, unused[5], places[500];
};
_Static_assert(sizeof(struct pieces_job) == 4096, "a list of pieces has 4096 bytes");

static int pieces(const struct module *module, unsigned columns, unsigned rows, unsigned threads, void **values) {
    uint32_t unit = unit_of(module, "mul.wide.u32 %lo, %x, ");
    uint64_t slice_bytes = (uint64_t)unit * WARP * UNITS;
    const struct pieces_job *job = values[0];
    if (threads != WARP || rows != 1 || !unit || !job->slices) return INVALID_VALUE;
    for (uint64_t warp = 0; warp < columns; warp++) {
        for (uint64_t nth = warp; nth < job->count; nth += columns) {
            uint64_t piece = nth / job->slices, within = nth % job->slices * slice_bytes, len = job->bytes - within;
            if (piece >= 500) return ILLEGAL_ADDRESS;
            uint64_t place = job->places[piece], packed = piece * job->bytes;
            if (len > slice_bytes) len = slice_bytes;
            const char *from = memory_at(job->from + (job->is_from_packed ? packed : place) + within, len);
            char *to = memory_at(job->to + (job->is_to_packed ? packed : place) + within, len);
            if (!from || !to || (uintptr_t)from % unit || (uintptr_t)to % unit || len % unit) return ILLEGAL_ADDRESS;
            memcpy(to, from, len);
            if (!within && number("FAKE_CUDA_WRONG_BYTES", 0)) to[0] ^= 1;
        }
    }
    return SUCCESS;
}

/* The one kernel that works while the host does: its values, and its thread. */
static struct {
    uint64_t *doorbell, *flag, first, count, patience_ns, bytes, places;
    char *data;
    int is_write;
    pthread_t thread;
    int is_started;
    atomic_int is_running;
} answering;

static void *answers(void *unused) {
    (void)unused;
    __atomic_store_n(answering.flag, answering.first - 1, __ATOMIC_RELEASE);
    for (uint64_t i = 0; i < answering.count; i++) {
        uint64_t next = answering.first + i, begun = host_ns();
        while (__atomic_load_n(answering.doorbell, __ATOMIC_ACQUIRE) != next) {
            if (host_ns() - begun > answering.patience_ns) goto done;
            if (__atomic_load_n(answering.doorbell, __ATOMIC_ACQUIRE) == UINT64_MAX) goto done;
            sched_yield();
        }
        uint32_t *words = (uint32_t *)(answering.data + i % answering.places * answering.bytes);
        volatile uint32_t sum = 0;
        for (uint64_t word = 0; word < answering.bytes / 4; word++) {
            if (answering.is_write)
                words[word] = (uint32_t)next;
            else
                sum += words[word];
        }
        if (answering.is_write && number("FAKE_CUDA_WRONG_BYTES", 0)) words[0] ^= 1;
        __atomic_store_n(answering.flag, next, __ATOMIC_RELEASE);
    }
done:
    answering.is_running = 0;
    return NULL;
}

static int ping(const struct module *module, unsigned columns, unsigned rows, unsigned threads, void **values) {
    (void)module;
    if (columns * rows != 1 || threads != WARP) return INVALID_VALUE;
    answering.doorbell = (uint64_t *)memory_at(VALUE(uint64_t, 0), 8);
    answering.flag = (uint64_t *)memory_at(VALUE(uint64_t, 1), 8);
    answering.first = VALUE(uint64_t, 2);
    answering.count = VALUE(uint64_t, 3);
    /* A load of host memory takes a device over a link 1300 ns. */
    answering.patience_ns = VALUE(uint64_t, 4) * 1300;
    answering.bytes = VALUE(uint64_t, 6);
    answering.places = VALUE(uint64_t, 7);
    answering.data = memory_at(VALUE(uint64_t, 5), answering.bytes * answering.places);
    answering.is_write = VALUE(uint32_t, 8) != 0;
    if (!answering.doorbell || !answering.flag || !answering.data) return ILLEGAL_ADDRESS;
    answering.is_running = 1;
    answering.is_started = 1;
    return pthread_create(&answering.thread, NULL, answers, NULL) ? UNKNOWN : SUCCESS;
}

/* The word that the stream waits for, if any. */
static const uint32_t *_Atomic awaited;
static uint32_t awaited_value;

void wait_for_word(const uint32_t *word, uint32_t value) {
    wait_for_kernels();
    awaited_value = value;
    awaited = word;
}

/* Whether the stream still waits for a word. */
static int is_waiting(void) {
    const uint32_t *word = awaited;
    if (word && (int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - awaited_value) >= 0) awaited = NULL;
    return awaited != NULL;
}

int is_busy(void) { return is_hung || is_waiting() || answering.is_running; }

void wait_for_kernels(void) {
    while (is_hung) pause();
    while (is_waiting()) sched_yield();
    if (answering.is_started) pthread_join(answering.thread, NULL);
    answering.is_started = 0;
}

static const struct kernel KERNELS[] = {
    {"nothing", nothing}, {"clock", clock_readings}, {"transfers", transfers}, {"ping", ping}, {"pieces", pieces},
};

const struct kernel *kernel_named(const char *name) {
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (strcmp(KERNELS[i].name, name) == 0) return &KERNELS[i];
    return NULL;
}

int launch(const struct module *module, unsigned columns, unsigned rows, unsigned threads, void **values) {
    const char *hang = told("FAKE_CUDA_HANG", "");
    char wanted[64];
    int from;
    int is_named = sscanf(hang, "%63[^:]:%d", wanted, &from) == 2 && strcmp(module->kernel->name, wanted) == 0;
    if (is_named && ++named_launches >= from) {
        is_hung = 1;
        return SUCCESS;
    }
    /* An empty kernel has no effect, so it may as well run before the word is there; no other kernel is queued. */
    if (is_waiting()) return module->kernel->run == nothing ? SUCCESS : INVALID_VALUE;
    wait_for_kernels();
    return module->kernel->run(module, columns, rows, threads, values);
}
