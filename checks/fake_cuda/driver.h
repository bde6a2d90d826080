/* What the two files of the fake CUDA driver share. */
#include <stddef.h>
#include <stdint.h>

enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
    ILLEGAL_ADDRESS = 700, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713, UNKNOWN = 999
};


#pragma GCC visibility push(hidden)

struct kernel;
/* A module: its text, and the kernel that was asked for. */
struct module {
    char *text;
    const struct kernel *kernel;
};

/* The value of an environment variable, or `otherwise` if it is absent or empty. */
const char *told(const char *variable, const char *otherwise);
int number(const char *variable, int otherwise);

/* The memory of this process at an address of the device, if all `len` bytes are there. */
char *memory_at(uint64_t at, uint64_t len);

/* The kernel of this name, or NULL. */
const struct kernel *kernel_named(const char *name);
/* Launches the kernel of a module; an error of the kernel fails every later call. */
int launch(const struct module *module, unsigned columns, unsigned rows, unsigned threads, void **values);
/* Lets everything wait that is launched from now on, until the word is at least `value` as a signed difference. */
void wait_for_word(const uint32_t *word, uint32_t value);
/* Whether a kernel still runs, or waits for a word. */
int is_busy(void);
/* Returns once no kernel runs: never if one hangs. */
void wait_for_kernels(void);

#pragma GCC visibility pop
