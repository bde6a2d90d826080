/* Builds kernels for a device into a file, as a vendor's compiler does for boards without one. It uses a runtime that has
 * a compiler.
 *
 *     offline NUMBER SOURCE RESULT     device NUMBER, as in `--on opencl:NUMBER`
 *
 * The declarations match the Khronos headers, which need not be installed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int32_t clGetPlatformIDs(uint32_t, void **, uint32_t *);
int32_t clGetDeviceIDs(void *, uint64_t, uint32_t, void **, uint32_t *);
void *clCreateContext(const void *, uint32_t, void *const *, void *, void *, int32_t *);
void *clCreateProgramWithSource(void *, uint32_t, const char **, const size_t *, int32_t *);
int32_t clBuildProgram(void *, uint32_t, void *const *, const char *, void *, void *);
int32_t clGetProgramInfo(void *, uint32_t, size_t, void *, size_t *);

#define MOST 16
#define SOURCE (1 << 20)

int main(int argc, char **argv) {
    static char text[SOURCE];
    const char *source = text;
    void *platforms[MOST], *found[MOST], *device = NULL;
    uint32_t platform_count = 0, count;
    if (argc < 4) return 2;
    long left = atol(argv[1]);
    clGetPlatformIDs(MOST, platforms, &platform_count);
    for (uint32_t n = 0; n < platform_count && n < MOST && !device; n++) {
        if (clGetDeviceIDs(platforms[n], 0xFFFFFFFF, MOST, found, &count)) continue;
        if (left >= 0 && left < (long)count && left < MOST) device = found[left];
        left -= count;
    }
    if (!device) return 77;
    FILE *file = fopen(argv[2], "rb");
    size_t len = file ? fread(text, 1, SOURCE, file) : 0, bytes = 0;
    if (!len || len == SOURCE || fclose(file)) return 2;
    int32_t status;
    void *context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    void *program = clCreateProgramWithSource(context, 1, &source, &len, &status);
    if (status || clBuildProgram(program, 1, &device, NULL, NULL, NULL)) return 1;
    if (clGetProgramInfo(program, 0x1165 /* CL_PROGRAM_BINARY_SIZES */, sizeof bytes, &bytes, NULL)) return 1;
    unsigned char *binary = malloc(bytes);
    if (!binary || clGetProgramInfo(program, 0x1166 /* CL_PROGRAM_BINARIES */, sizeof binary, &binary, NULL)) return 1;
    file = fopen(argv[3], "wb");
    return !file || fwrite(binary, 1, bytes, file) != bytes || fclose(file);
}
