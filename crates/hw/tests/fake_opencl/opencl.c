/* Fake OpenCL for tests: loader and runtime in one, with one device that uses host memory and whose kernels do nothing.
 *
 * FAKE_FAILS="clFinish 3 -5" makes the third call of clFinish, and every later one, return -5. FAKE_EXTENSIONS is the device's extension list,
 * FAKE_LOG the number of lines in its compiler's log; with the extension fake_no_compiler it has no compiler. Prebuilt kernels are "FAKE" followed
 * by their names on lines. Types are those of the Khronos headers, which need not be installed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY __attribute__((visibility("default")))
#define PIECE (1ull << 20)
#define ALL (4ull << 20)

enum { NOT_SO_LARGE = -61, NO_SUCH_VALUE = -30, NO_SUCH_PROPERTY = -64, NO_BINARY = -42, NO_KERNEL = -46, NO_COMPILER = -3 };

struct memory {
    size_t bytes;
    char *start;
};
static int thing, built;
/* Contents of the prebuilt program. */
static char names[256];

static const char *extensions(void) { return getenv("FAKE_EXTENSIONS") ? getenv("FAKE_EXTENSIONS") : ""; }
static int has_compiler(void) { return !strstr(extensions(), "fake_no_compiler"); }

static int32_t fails(const char *name) {
    static int calls;
    const char *told = getenv("FAKE_FAILS");
    char wanted[64];
    int from, status;
    if (!told || sscanf(told, "%63s %d %d", wanted, &from, &status) != 3 || strcmp(name, wanted) != 0) return 0;
    return ++calls >= from ? status : 0;
}

static int32_t answer(const void *value, size_t len, size_t room, void *into, size_t *used) {
    if (used) *used = len;
    if (!into) return 0;
    if (room < len) return NO_SUCH_VALUE;
    memcpy(into, value, len);
    return 0;
}

static int32_t text(const char *value, size_t room, void *into, size_t *used) {
    return answer(value, strlen(value) + 1, room, into, used);
}

static void *made(void *handle, int32_t status, int32_t *told) {
    if (told) *told = status;
    return status ? NULL : handle;
}

ENTRY int32_t clGetPlatformIDs(uint32_t room, void **into, uint32_t *count) {
    if (into && room) into[0] = &thing;
    if (count) *count = 1;
    return 0;
}
ENTRY int32_t clGetPlatformInfo(void *platform, uint32_t what, size_t room, void *into, size_t *used) {
    (void)platform, (void)what;
    return text("Fake Platform", room, into, used);
}
ENTRY int32_t clGetDeviceIDs(void *platform, uint64_t type, uint32_t room, void **into, uint32_t *count) {
    (void)platform, (void)type;
    return clGetPlatformIDs(room, into, count);
}
ENTRY int32_t clGetDeviceInfo(void *device, uint32_t what, size_t room, void *into, size_t *used) {
    uint64_t number = 0;
    (void)device;
    switch (what) {
    case 0x1000: number = 8; break; /* CL_DEVICE_TYPE_ACCELERATOR */
    case 0x1002: number = 2; break; /* CL_DEVICE_MAX_COMPUTE_UNITS */
    case 0x101F: number = ALL; break;
    case 0x1010: number = PIECE; break;
    case 0x4190: case 0x4191: number = 1; break; /* unified shared memory, of the host and of the device */
    case 0x1028: number = (uint64_t)has_compiler(); break; /* CL_DEVICE_COMPILER_AVAILABLE */
    case 0x1030: return text(extensions(), room, into, used);
    default: return text("fake", room, into, used);
    }
    return answer(&number, sizeof number, room, into, used);
}

ENTRY void *clCreateContext(const void *properties, uint32_t count, void *const *devices, void *tell, void *whom, int32_t *status) {
    (void)properties, (void)count, (void)devices, (void)tell, (void)whom;
    return made(&thing, fails("clCreateContext"), status);
}
ENTRY void *clCreateCommandQueue(void *context, void *device, uint64_t properties, int32_t *status) {
    (void)context, (void)device, (void)properties;
    return made(&thing, fails("clCreateCommandQueue"), status);
}
ENTRY void *clCreateProgramWithSource(void *context, uint32_t count, const char **texts, const size_t *lengths, int32_t *status) {
    (void)context, (void)count, (void)texts, (void)lengths;
    return made(&thing, fails("clCreateProgramWithSource"), status);
}
ENTRY void *clCreateProgramWithBinary(void *context, uint32_t count, void *const *devices, const size_t *lengths, const char **binaries,
                                      int32_t *of_each, int32_t *status) {
    (void)context, (void)count, (void)devices;
    int is_one = lengths[0] < sizeof names && lengths[0] > 4 && !memcmp(binaries[0], "FAKE", 4);
    *of_each = is_one ? 0 : NO_BINARY;
    if (!is_one) return made(NULL, NO_BINARY, status);
    memcpy(names, binaries[0], lengths[0]);
    return made(&built, fails("clCreateProgramWithBinary"), status);
}
ENTRY int32_t clBuildProgram(void *program, uint32_t count, void *const *devices, const char *options, void *tell, void *whom) {
    (void)count, (void)devices, (void)options, (void)tell, (void)whom;
    return program != &built && !has_compiler() ? NO_COMPILER : fails("clBuildProgram");
}
ENTRY int32_t clGetProgramBuildInfo(void *program, void *device, uint32_t what, size_t room, void *into, size_t *used) {
    (void)program, (void)device, (void)what;
    const char *said = "line 1: the fake compiler does not like it";
    int lines = getenv("FAKE_LOG") ? atoi(getenv("FAKE_LOG")) : 1;
    char *log = malloc((size_t)lines * 64 + 64), *end = log + sprintf(log, "%s", said);
    for (int line = 2; line <= lines; line++) end += sprintf(end, "\nline %d: nor this", line);
    int32_t status = text(log, room, into, used);
    free(log);
    return status;
}
ENTRY void *clCreateKernel(void *program, const char *name, int32_t *status) {
    char line[64];
    snprintf(line, sizeof line, "\n%s\n", name);
    if (program == &built && !strstr(names, line)) return made(NULL, NO_KERNEL, status);
    return made(&thing, fails("clCreateKernel"), status);
}
ENTRY int32_t clSetKernelArg(void *kernel, uint32_t place, size_t len, const void *value) {
    (void)kernel, (void)place, (void)len, (void)value;
    return fails("clSetKernelArg");
}
ENTRY int32_t clReleaseContext(void *handle) { return (void)handle, 0; }
ENTRY int32_t clReleaseCommandQueue(void *handle) { return (void)handle, 0; }
ENTRY int32_t clRetainProgram(void *handle) { return (void)handle, 0; }
ENTRY int32_t clReleaseProgram(void *handle) { return (void)handle, 0; }
ENTRY int32_t clReleaseKernel(void *handle) { return (void)handle, 0; }
ENTRY int32_t clReleaseEvent(void *handle) { return (void)handle, 0; }
ENTRY int32_t clFlush(void *queue) { return (void)queue, fails("clFlush"); }
ENTRY int32_t clFinish(void *queue) { return (void)queue, fails("clFinish"); }
ENTRY int32_t clWaitForEvents(uint32_t count, void *const *events) { return (void)count, (void)events, fails("clWaitForEvents"); }

static int32_t done(const char *name, void **event) {
    if (event) *event = &thing;
    return fails(name);
}
ENTRY int32_t clEnqueueNDRangeKernel(void *queue, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *global,
                                     const size_t *local, uint32_t count, void *const *events, void **event) {
    (void)queue, (void)kernel, (void)dimensions, (void)offset, (void)global, (void)local, (void)count, (void)events;
    return done("clEnqueueNDRangeKernel", event);
}

ENTRY void *clCreateBuffer(void *context, uint64_t flags, size_t bytes, void *host, int32_t *status) {
    (void)context, (void)host;
    int32_t wrong = flags >> 16 ? NO_SUCH_PROPERTY : bytes > PIECE ? NOT_SO_LARGE : fails("clCreateBuffer");
    if (wrong) return made(NULL, wrong, status);
    struct memory *memory = malloc(sizeof *memory);
    *memory = (struct memory){bytes, calloc(1, bytes)};
    return made(memory, 0, status);
}
ENTRY int32_t clReleaseMemObject(struct memory *memory) {
    free(memory->start);
    free(memory);
    return 0;
}
ENTRY int32_t clEnqueueWriteBuffer(void *queue, struct memory *memory, uint32_t blocks, size_t at, size_t bytes, const void *from,
                                   uint32_t count, void *const *events, void **event) {
    (void)queue, (void)blocks, (void)count, (void)events;
    memcpy(memory->start + at, from, bytes);
    return done("clEnqueueWriteBuffer", event);
}
ENTRY int32_t clEnqueueReadBuffer(void *queue, struct memory *memory, uint32_t blocks, size_t at, size_t bytes, void *to,
                                  uint32_t count, void *const *events, void **event) {
    (void)queue, (void)blocks, (void)count, (void)events;
    memcpy(to, memory->start + at, bytes);
    return done("clEnqueueReadBuffer", event);
}
ENTRY void *clEnqueueMapBuffer(void *queue, struct memory *memory, uint32_t blocks, uint64_t flags, size_t at, size_t bytes,
                               uint32_t count, void *const *events, void **event, int32_t *status) {
    (void)queue, (void)blocks, (void)flags, (void)bytes, (void)count, (void)events, (void)event;
    return made(memory->start + at, fails("clEnqueueMapBuffer"), status);
}
ENTRY int32_t clEnqueueUnmapMemObject(void *queue, void *memory, void *mapping, uint32_t count, void *const *events, void **event) {
    (void)queue, (void)memory, (void)mapping, (void)count, (void)events;
    return done("clEnqueueUnmapMemObject", event);
}

/* Not exported: programs get them through clGetExtensionFunctionAddressForPlatform. */
static void *on_host(void *context, const void *properties, size_t bytes, uint32_t alignment, int32_t *status) {
    (void)context, (void)properties;
    return made(aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment), fails("clHostMemAllocINTEL"), status);
}
static void *on_device(void *context, void *device, const void *properties, size_t bytes, uint32_t alignment, int32_t *status) {
    (void)context, (void)device, (void)properties;
    return made(aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment), fails("clDeviceMemAllocINTEL"), status);
}
static int32_t give_back(void *context, void *start) {
    (void)context;
    free(start);
    return 0;
}
static int32_t copy(void *queue, uint32_t blocks, void *to, const void *from, size_t bytes, uint32_t count, void *const *events, void **event) {
    (void)queue, (void)blocks, (void)count, (void)events;
    memcpy(to, from, bytes);
    return done("clEnqueueMemcpyINTEL", event);
}
static int32_t give(void *kernel, uint32_t place, const void *value) {
    return (void)kernel, (void)place, (void)value, fails("clSetKernelArgMemPointerINTEL");
}
ENTRY void *clGetExtensionFunctionAddressForPlatform(void *platform, const char *name) {
    (void)platform;
    if (!strcmp(name, "clHostMemAllocINTEL")) return (void *)on_host;
    if (!strcmp(name, "clDeviceMemAllocINTEL")) return (void *)on_device;
    if (!strcmp(name, "clMemFreeINTEL")) return (void *)give_back;
    if (!strcmp(name, "clEnqueueMemcpyINTEL")) return (void *)copy;
    if (!strcmp(name, "clSetKernelArgMemPointerINTEL")) return (void *)give;
    return NULL;
}
