/* Fake CUDA driver for tests: memory of the device is memory of the process, and kernels are functions of this file.
 *
 * It moves all bytes for real, so a wrong address or a wrong copy is noticed. It says nothing about speed, and exports
 * `lanemarkFakeDriver`, by which Lanemark marks every record as emulated.
 *
 *   variable                            effect
 *   FAKE_CUDA_FAIL=cuMemAlloc_v2:2:3    the third call of the function, and every later one, returns the status 2
 *   FAKE_CUDA_DEVICES=0                 number of devices [1]
 *   FAKE_CUDA_VERSION=12040             version of the driver, 12.4 [13.0]; before 12.8 there is no batch of copies
 *   FAKE_CUDA_BUS_ID=0000:01:00.0       PCI address of every device [FACE:0F:00.0, which no machine has]
 *   FAKE_CUDA_HANG=transfers:5          the fifth launch of this kernel never ends, and every call that waits for it neither
 *   FAKE_CUDA_LOST_AFTER=5              after 5 launches every call returns 999
 *   FAKE_CUDA_WRONG_BYTES=1             one wrong word in each transfer, one wrong byte in each copy to the device and in each
 *                                       piece that a kernel copies
 *   FAKE_CUDA_CLOCK=2                   the clock of the device runs at twice the rate; 0: it stands still
 *
 * It is stricter than a driver: addresses of the device differ from those of the host, also for host memory; new memory
 * is filled with a pattern; a call on a thread without a context fails; a kernel that leaves its memory fails. A
 * function is absent if the linker hides it (version script).
 *
 * Signatures and numbers: NVIDIA, "CUDA Driver API", 12.8. */
#define _DEFAULT_SOURCE
#include "driver.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 4096, MULTIPROCESSORS = 4, BLOCKS = 4 };
#define DEVICE_BYTES (512ull << 20)
/* Distance between the address of memory in this process and its address for the device. */
#define OF_DEVICE (1ull << 50)
#define OF_HOST (1ull << 51)

const int lanemarkFakeDriver = 1;

/* ---- faults ---- */

static atomic_int is_initialized, named_calls, launches, broken;

const char *told(const char *variable, const char *otherwise) {
    const char *value = getenv(variable);
    return value && *value ? value : otherwise;
}

int number(const char *variable, int otherwise) {
    const char *value = told(variable, NULL);
    return value ? atoi(value) : otherwise;
}

/* The status with which a call of this function ends before it begins. */
static int fault(const char *name) {
    char wanted[64];
    int status, from;
    const char *fail = told("FAKE_CUDA_FAIL", "");
    if (sscanf(fail, "%63[^:]:%d:%d", wanted, &status, &from) == 3 && strcmp(name, wanted) == 0) {
        if (++named_calls >= from) return status;
    }
    if (launches >= number("FAKE_CUDA_LOST_AFTER", 1 << 30)) return UNKNOWN;
    if (strcmp(name, "cuInit") != 0 && !is_initialized) return NOT_INITIALIZED;
    return broken;
}

static _Thread_local void *current;
static int context_of_device;

#define BEGIN(name) \
    do { \
        int begun = fault(#name); \
        if (begun) return begun; \
    } while (0)
#define BEGIN_IN_CONTEXT(name) \
    do { \
        BEGIN(name); \
        if (!current) return INVALID_CONTEXT; \
    } while (0)

/* ---- memory ---- */

struct place {
    char *start;
    size_t len;
    uint64_t distance;
    int is_registered;
};
static struct place places[MOST_PLACES];
static uint64_t used_bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct place *place_at(const void *start) {
    for (int i = 0; i < MOST_PLACES; i++)
        if (places[i].start == start) return &places[i];
    return NULL;
}

char *memory_at(uint64_t at, uint64_t len) {
    char *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_PLACES && !found; i++) {
        uint64_t from = (uint64_t)(uintptr_t)places[i].start + places[i].distance;
        if (places[i].start && at >= from && at - from <= places[i].len && len <= places[i].len - (at - from))
            found = places[i].start + (at - from);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static int keep(char *start, size_t len, uint64_t distance, int is_registered) {
    int status = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    struct place *free_place = place_at(NULL);
    if (place_at(start)) {
        status = ALREADY_REGISTERED;
    } else if (free_place) {
        *free_place = (struct place){start, len, distance, is_registered};
        if (distance == OF_DEVICE) used_bytes += len;
        status = SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static int drop(char *start, uint64_t distance, int is_registered) {
    pthread_mutex_lock(&lock);
    struct place *place = start ? place_at(start) : NULL;
    int is_it = place && place->distance == distance && place->is_registered == is_registered;
    if (is_it) {
        if (distance == OF_DEVICE) used_bytes -= place->len;
        place->start = NULL;
    }
    pthread_mutex_unlock(&lock);
    return is_it;
}

static int allocated(char **start, size_t len, uint64_t distance) {
    if (!len) return INVALID_VALUE;
    if (distance == OF_DEVICE && len > DEVICE_BYTES - used_bytes) return OUT_OF_MEMORY;
    void *memory;
    if (posix_memalign(&memory, 4096, len)) return OUT_OF_MEMORY;
    memset(memory, 0xA5, len);
    *start = memory;
    return keep(*start, len, distance, 0);
}

int cuMemAlloc_v2(uint64_t *at, size_t len) {
    BEGIN_IN_CONTEXT(cuMemAlloc_v2);
    wait_for_kernels();
    char *start;
    int status = allocated(&start, len, OF_DEVICE);
    if (!status) *at = (uint64_t)(uintptr_t)start + OF_DEVICE;
    return status;
}

int cuMemFree_v2(uint64_t at) {
    BEGIN_IN_CONTEXT(cuMemFree_v2);
    wait_for_kernels();
    char *start = (char *)(uintptr_t)(at - OF_DEVICE);
    if (!drop(start, OF_DEVICE, 0)) return INVALID_VALUE;
    free(start);
    return SUCCESS;
}

int cuMemHostAlloc(void **start, size_t len, unsigned flags) {
    BEGIN_IN_CONTEXT(cuMemHostAlloc);
    wait_for_kernels();
    return flags > 7 ? INVALID_VALUE : allocated((char **)start, len, OF_HOST);
}

int cuMemFreeHost(void *start) {
    BEGIN_IN_CONTEXT(cuMemFreeHost);
    wait_for_kernels();
    if (!drop(start, OF_HOST, 0)) return INVALID_VALUE;
    free(start);
    return SUCCESS;
}

int cuMemHostRegister_v2(void *start, size_t len, unsigned flags) {
    BEGIN_IN_CONTEXT(cuMemHostRegister_v2);
    if (!start || !len || flags > 15) return INVALID_VALUE;
    return keep(start, len, OF_HOST, 1);
}

int cuMemHostUnregister(void *start) {
    BEGIN_IN_CONTEXT(cuMemHostUnregister);
    return drop(start, OF_HOST, 1) ? SUCCESS : NOT_REGISTERED;
}

int cuMemHostGetDevicePointer_v2(uint64_t *at, void *start, unsigned flags) {
    BEGIN_IN_CONTEXT(cuMemHostGetDevicePointer_v2);
    uint64_t address = (uint64_t)(uintptr_t)start + OF_HOST;
    if (flags || !memory_at(address, 1)) return INVALID_VALUE;
    *at = address;
    return SUCCESS;
}

/* ---- modules and launches ---- */

/* Whether the first line that is neither empty nor a comment names a version. */
static int is_ptx(const char *text) {
    while (*text == '\n' || strncmp(text, "//", 2) == 0) text = *text == '\n' ? text + 1 : strchr(text, '\n');
    return strncmp(text, ".version ", 9) == 0 && strstr(text, "\n.target sm_") && strstr(text, "\n.address_size 64\n");
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    int status = fault("cuModuleLoadDataEx");
    if (!status && !current) status = INVALID_CONTEXT;
    if (!status && !is_ptx(image)) status = INVALID_PTX;
    if (status) {
        char *log = NULL;
        size_t room = 0;
        for (unsigned i = 0; i < count; i++) {
            if (options[i] == 5) log = values[i];
            if (options[i] == 6) room = (size_t)(uintptr_t)values[i];
        }
        if (log && room) snprintf(log, room, "line 1: the fake compiler rejects it\n");
        return status;
    }
    struct module *made = calloc(1, sizeof *made);
    made->text = strdup(image);
    *module = made;
    return SUCCESS;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    BEGIN_IN_CONTEXT(cuModuleGetFunction);
    struct module *of = module;
    char entry[64];
    snprintf(entry, sizeof entry, "\n.visible .entry %s(", name);
    if (!strstr(of->text, entry)) return NOT_FOUND;
    of->kernel = kernel_named(name);
    *function = of;
    return of->kernel ? SUCCESS : NOT_FOUND;
}

int cuModuleUnload(void *module) {
    BEGIN_IN_CONTEXT(cuModuleUnload);
    wait_for_kernels();
    free(((struct module *)module)->text);
    free(module);
    return SUCCESS;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                   unsigned threads_z, unsigned shared, void *stream, void **values, void **extra) {
    BEGIN_IN_CONTEXT(cuLaunchKernel);
    const struct module *module = function;
    if (!stream || !module || !module->kernel) return INVALID_HANDLE;
    if (!x || !y || z != 1 || !threads || threads_y != 1 || threads_z != 1 || shared || extra) return INVALID_VALUE;
    launches++;
    int status = launch(module, x, y, threads, values);
    /* As on a device, a failing kernel fails every later call, not its launch. */
    if (status) broken = status;
    return SUCCESS;
}

/* ---- devices and contexts ---- */

int cuInit(unsigned flags) {
    BEGIN(cuInit);
    if (flags) return INVALID_VALUE;
    is_initialized = 1;
    return SUCCESS;
}

static int version_of_driver(void) { return number("FAKE_CUDA_VERSION", 13000); }

int cuDriverGetVersion(int *version) {
    BEGIN(cuDriverGetVersion);
    *version = version_of_driver();
    return SUCCESS;
}

static int devices(void) { return number("FAKE_CUDA_DEVICES", 1); }

int cuDeviceGetCount(int *count) {
    BEGIN(cuDeviceGetCount);
    *count = devices();
    return SUCCESS;
}

int cuDeviceGet(int *device, int ordinal) {
    BEGIN(cuDeviceGet);
    if (ordinal < 0 || ordinal >= devices()) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

int cuDeviceGetName(char *name, int len, int device) {
    BEGIN(cuDeviceGetName);
    if (device >= devices() || len < 1) return INVALID_DEVICE;
    snprintf(name, (size_t)len, "Fake GPU (test driver)");
    return SUCCESS;
}

int cuDeviceGetPCIBusId(char *bus_id, int len, int device) {
    BEGIN(cuDeviceGetPCIBusId);
    if (device >= devices() || len < 1) return INVALID_DEVICE;
    snprintf(bus_id, (size_t)len, "%s", told("FAKE_CUDA_BUS_ID", "FACE:0F:00.0"));
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    /* Multiprocessors, integrated, compute capability (two numbers), blocks per multiprocessor. */
    static const int KNOWN[][2] = {{16, MULTIPROCESSORS}, {18, 0}, {75, 7}, {76, 5}, {106, BLOCKS}};
    BEGIN(cuDeviceGetAttribute);
    if (device >= devices()) return INVALID_DEVICE;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        if (KNOWN[i][0] == attribute) {
            *value = KNOWN[i][1];
            return SUCCESS;
        }
    }
    return INVALID_VALUE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    BEGIN(cuDeviceTotalMem_v2);
    if (device >= devices()) return INVALID_DEVICE;
    *bytes = DEVICE_BYTES;
    return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    BEGIN(cuDevicePrimaryCtxRetain);
    if (device >= devices()) return INVALID_DEVICE;
    *context = &context_of_device;
    return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    BEGIN(cuDevicePrimaryCtxRelease_v2);
    if (device >= devices()) return INVALID_DEVICE;
    wait_for_kernels();
    return SUCCESS;
}

int cuCtxSetCurrent(void *context) {
    BEGIN(cuCtxSetCurrent);
    if (context && context != &context_of_device) return INVALID_CONTEXT;
    current = context;
    return SUCCESS;
}

/* ---- streams and events: all work but that of `ping` is done once its call returns ---- */

static int made(void **handle, unsigned flags, unsigned most) {
    if (flags > most) return INVALID_VALUE;
    *handle = malloc(1);
    return *handle ? SUCCESS : OUT_OF_MEMORY;
}

int cuStreamCreate(void **stream, unsigned flags) {
    BEGIN_IN_CONTEXT(cuStreamCreate);
    return made(stream, flags, 1);
}

int cuStreamDestroy_v2(void *stream) {
    BEGIN_IN_CONTEXT(cuStreamDestroy_v2);
    free(stream);
    return SUCCESS;
}

int cuStreamQuery(void *stream) {
    BEGIN_IN_CONTEXT(cuStreamQuery);
    return stream && is_busy() ? NOT_READY : SUCCESS;
}

int cuStreamSynchronize(void *stream) {
    BEGIN_IN_CONTEXT(cuStreamSynchronize);
    /* The default stream does not wait for one that is non-blocking. */
    if (stream) wait_for_kernels();
    return broken;
}

int cuEventCreate(void **event, unsigned flags) {
    BEGIN_IN_CONTEXT(cuEventCreate);
    return made(event, flags, 7);
}

int cuEventDestroy_v2(void *event) {
    BEGIN_IN_CONTEXT(cuEventDestroy_v2);
    free(event);
    return SUCCESS;
}

int cuEventRecord(void *event, void *stream) {
    BEGIN_IN_CONTEXT(cuEventRecord);
    return event && stream ? SUCCESS : INVALID_HANDLE;
}

int cuEventSynchronize(void *event) {
    BEGIN_IN_CONTEXT(cuEventSynchronize);
    if (!event) return INVALID_HANDLE;
    wait_for_kernels();
    return broken;
}

/* ---- copies ---- */

static int to_device(uint64_t to, const void *from, size_t len) {
    char *memory = memory_at(to, len);
    if (!memory || !from) return INVALID_VALUE;
    memcpy(memory, from, len);
    if (number("FAKE_CUDA_WRONG_BYTES", 0) && len) memory[len / 2] ^= 1;
    return SUCCESS;
}

static int from_device(void *to, uint64_t from, size_t len) {
    const char *memory = memory_at(from, len);
    if (!memory || !to) return INVALID_VALUE;
    memcpy(to, memory, len);
    return SUCCESS;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t len) {
    BEGIN_IN_CONTEXT(cuMemcpyHtoD_v2);
    return to_device(to, from, len);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len) {
    BEGIN_IN_CONTEXT(cuMemcpyDtoH_v2);
    return from_device(to, from, len);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream) {
    BEGIN_IN_CONTEXT(cuMemcpyHtoDAsync_v2);
    return stream ? to_device(to, from, len) : INVALID_HANDLE;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream) {
    BEGIN_IN_CONTEXT(cuMemcpyDtoHAsync_v2);
    return stream ? from_device(to, from, len) : INVALID_HANDLE;
}

int cuMemsetD8Async(uint64_t at, unsigned char value, size_t len, void *stream) {
    BEGIN_IN_CONTEXT(cuMemsetD8Async);
    char *memory = memory_at(at, len);
    if (!memory || !stream) return INVALID_VALUE;
    memset(memory, value, len);
    return SUCCESS;
}

/* The memory at an address of the device, or at one of page-locked memory of the host. */
static char *either_memory(uint64_t at, size_t len) {
    char *memory = memory_at(at, len);
    return memory ? memory : memory_at(at + OF_HOST, len);
}

/* Attributes of a batch: order of accesses to the source, two hints of location, flags. */
struct attributes {
    int source_order, source_hint[2], destination_hint[2];
    unsigned flags;
};

static int copy_batch(uint64_t *to, uint64_t *from, size_t *lengths, size_t count, struct attributes *attributes,
                      size_t *first, size_t attribute_count, size_t *failed, void *stream) {
    BEGIN_IN_CONTEXT(cuMemcpyBatchAsync);
    if (!stream) return INVALID_HANDLE;
    if (!count || attribute_count != 1 || first[0] || attributes->source_order < 1 || attributes->source_order > 3)
        return INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        char *source = either_memory(from[i], lengths[i]), *destination = either_memory(to[i], lengths[i]);
        *failed = i;
        if (!source || !destination || !lengths[i]) return INVALID_VALUE;
        memcpy(destination, source, lengths[i]);
        if (number("FAKE_CUDA_WRONG_BYTES", 0) && memory_at(to[i], 1)) destination[lengths[i] / 2] ^= 1;
    }
    return SUCCESS;
}

/* Knows one function, by the signature of CUDA 12.8. The results of a search: 0 found, 1 unknown, 2 in no such version. */
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *result) {
    BEGIN(cuGetProcAddress_v2);
    void (*found)(void) = (void (*)(void))copy_batch;
    *result = strcmp(name, "cuMemcpyBatchAsync") ? 1 : version != 12080 || version > version_of_driver() ? 2 : 0;
    *function = NULL;
    if (!*result) memcpy(function, &found, sizeof found);
    return flags ? INVALID_VALUE : SUCCESS;
}

/* ---- graphs of kernels ---- */

struct graph {
    struct module **nodes;
    size_t count;
};

/* CUDA_KERNEL_NODE_PARAMS of CUDA 12.0. */
struct node_parameters {
    void *function;
    unsigned blocks[3], threads[3], shared_bytes;
    void **values, **extra;
    void *kernel, *context;
};

int cuGraphCreate(void **graph, unsigned flags) {
    BEGIN_IN_CONTEXT(cuGraphCreate);
    if (flags) return INVALID_VALUE;
    *graph = calloc(1, sizeof(struct graph));
    return *graph ? SUCCESS : OUT_OF_MEMORY;
}

int cuGraphAddKernelNode_v2(void **node, void *of, void *const *before, size_t count,
                            const struct node_parameters *parameters) {
    BEGIN_IN_CONTEXT(cuGraphAddKernelNode_v2);
    struct graph *graph = of;
    struct module *module = parameters->function;
    for (int i = 0; i < 3; i++)
        if (parameters->blocks[i] != 1 || parameters->threads[i] != 1) return INVALID_VALUE;
    if (!graph || !module || !module->kernel || parameters->values || parameters->extra) return INVALID_VALUE;
    /* A chain: each node but the first waits for the last one. */
    if (count != (graph->count > 0) || (count && *before != &graph->nodes[graph->count - 1])) return INVALID_VALUE;
    if (!graph->nodes) graph->nodes = calloc(MOST_PLACES, sizeof *graph->nodes);
    if (!graph->nodes || graph->count == MOST_PLACES) return OUT_OF_MEMORY;
    graph->nodes[graph->count] = module;
    *node = &graph->nodes[graph->count++];
    return SUCCESS;
}

int cuGraphInstantiateWithFlags(void **executable, void *of, uint64_t flags) {
    BEGIN_IN_CONTEXT(cuGraphInstantiateWithFlags);
    struct graph *graph = of, *made = calloc(1, sizeof *made);
    if (!graph || flags || !made) return INVALID_VALUE;
    made->count = graph->count;
    made->nodes = calloc(graph->count + 1, sizeof *made->nodes);
    if (!made->nodes) return OUT_OF_MEMORY;
    if (graph->count) memcpy(made->nodes, graph->nodes, graph->count * sizeof *made->nodes);
    *executable = made;
    return SUCCESS;
}

int cuGraphLaunch(void *executable, void *stream) {
    BEGIN_IN_CONTEXT(cuGraphLaunch);
    struct graph *graph = executable;
    if (!stream || !graph) return INVALID_HANDLE;
    launches++;
    for (size_t i = 0; i < graph->count; i++) {
        int status = launch(graph->nodes[i], 1, 1, 1, NULL);
        if (status) broken = status;
    }
    return SUCCESS;
}

static int destroyed(struct graph *graph) {
    if (!graph) return INVALID_HANDLE;
    free(graph->nodes);
    free(graph);
    return SUCCESS;
}

int cuGraphExecDestroy(void *executable) {
    BEGIN_IN_CONTEXT(cuGraphExecDestroy);
    return destroyed(executable);
}

int cuGraphDestroy(void *graph) {
    BEGIN_IN_CONTEXT(cuGraphDestroy);
    return destroyed(graph);
}

/* ---- words of memory that a stream waits for ---- */

int cuStreamWaitValue32_v2(void *stream, uint64_t at, uint32_t value, unsigned flags) {
    BEGIN_IN_CONTEXT(cuStreamWaitValue32_v2);
    const uint32_t *word = (const uint32_t *)memory_at(at, sizeof *word);
    if (!stream || !word || at % sizeof *word || flags) return INVALID_VALUE;
    wait_for_word(word, value);
    return SUCCESS;
}
