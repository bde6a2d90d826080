/* A minimal C program that launches a kernel, or copies to a device, and waits: the reference for `make bench`.
 *
 *     bare CPU launch PASSES           launches of a kernel that does nothing, each with clFinish
 *     bare CPU copy PASSES BYTES       copies to a buffer, each waited for
 *
 * It uses the first device of the first runtime, from a thread that is pinned to one core. It reads lines from standard
 * input: "finish N", or for copies also "event N". For each it takes N samples of PASSES iterations with that wait, and
 * prints the nanoseconds of one iteration of each sample, in one line. Copies by "finish" are blocking calls and one
 * clFinish. The declarations match the Khronos headers, which need not be installed. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int32_t clGetPlatformIDs(uint32_t, void **, uint32_t *);
int32_t clGetDeviceIDs(void *, uint64_t, uint32_t, void **, uint32_t *);
void *clCreateContext(const void *, uint32_t, void *const *, void *, void *, int32_t *);
void *clCreateCommandQueue(void *, void *, uint64_t, int32_t *);
void *clCreateProgramWithSource(void *, uint32_t, const char **, const size_t *, int32_t *);
int32_t clBuildProgram(void *, uint32_t, void *const *, const char *, void *, void *);
void *clCreateKernel(void *, const char *, int32_t *);
void *clCreateBuffer(void *, uint64_t, size_t, void *, int32_t *);
int32_t clEnqueueNDRangeKernel(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, void *const *, void **);
int32_t clEnqueueWriteBuffer(void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, void *const *, void **);
int32_t clWaitForEvents(uint32_t, void *const *);
int32_t clReleaseEvent(void *);
int32_t clFinish(void *);

static void *queue, *kernel, *buffer, *own;
static size_t bytes;

static int32_t launch(void) {
    size_t one = 1;
    int32_t status = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
    return status ? status : clFinish(queue);
}
static int32_t copy_and_block(void) { return clEnqueueWriteBuffer(queue, buffer, 1, 0, bytes, own, 0, NULL, NULL); }
static int32_t copy_by_event(void) {
    void *event;
    int32_t status = clEnqueueWriteBuffer(queue, buffer, 0, 0, bytes, own, 0, NULL, &event);
    if (status) return status;
    status = clWaitForEvents(1, &event);
    return status ? status : clReleaseEvent(event);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static double sample(int32_t (*job)(void), long passes) {
    double start = now();
    for (long pass = 0; pass < passes; pass++)
        if (job()) exit(1);
    /* A copy that blocked may not be over: one wait for all of a sample, as ours. */
    if (job == copy_and_block && clFinish(queue)) exit(1);
    return (now() - start) / (double)passes;
}
int main(int argc, char **argv) {
    int32_t status;
    uint32_t count;
    void *platform, *device;
    const char *source = "__kernel void nothing(void) {}";
    if (argc < 4) return 2;
    int is_copy = strcmp(argv[2], "copy") == 0;
    long passes = atol(argv[3]);
    if (clGetPlatformIDs(1, &platform, &count) || clGetDeviceIDs(platform, 0xFFFFFFFF, 1, &device, &count)) return 77;
    void *context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    queue = clCreateCommandQueue(context, device, 0, &status);
    void *program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    if (clBuildProgram(program, 1, &device, NULL, NULL, NULL)) return 1;
    kernel = clCreateKernel(program, "nothing", &status);
    /* After the runtime has its threads, which are where the system puts them. */
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set)) return 1;
    if (is_copy) {
        bytes = argc < 5 ? 0 : (size_t)atol(argv[4]);
        own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        buffer = clCreateBuffer(context, 1, bytes, NULL, &status);
        if (own == MAP_FAILED || status) return 1;
        memset(own, 7, bytes);
    }
    char wait[8];
    long samples;
    for (; scanf("%7s %ld", wait, &samples) == 2; fflush(stdout)) {
        int32_t (*job)(void) = !is_copy ? launch : strcmp(wait, "event") == 0 ? copy_by_event : copy_and_block;
        /* As ours: one pass before each sample. */
        for (; samples > 0; samples--) {
            if (job()) return 1;
            printf("%.1f ", sample(job, passes));
        }
        printf("\n");
    }
    return 0;
}
