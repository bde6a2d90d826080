/*
 * Writes a message to a card's memory and reads it back.
 *
 *     make install-c PREFIX=$HOME/.local
 *     export PKG_CONFIG_PATH=$HOME/.local/lib/pkgconfig
 *     cc crates/capi/examples/hello.c $(pkg-config --cflags --libs lanemark) -o hello
 *     sudo LD_LIBRARY_PATH=$HOME/.local/lib ./hello 0000:01:00.0 2:0..4KiB:storage
 *
 * An optional third argument is a folder that replaces the root of the file system, to try it without a card.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lanemark.h"

/* Ends the program with the library's message if a call fails. */
#define DO(call)                                                                     \
    do {                                                                             \
        lanemark_status status = (call);                                             \
        if (status != LANEMARK_STATUS_OK) {                                          \
            fprintf(stderr, "%s: %d: %s\n", #call, (int)status, lanemark_message()); \
            return 1;                                                                \
        }                                                                            \
    } while (0)

int main(int argc, char **argv)
{
    static const char message[64] = "hello, card";
    const uint32_t words[4] = {1, 2, 3, 4};
    char back[64];
    uint64_t value;
    lanemark_card *card;
    lanemark_mapping *memory;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: %s ADDRESS RANGE [ROOT]\n", argv[0]);
        return 2;
    }
    if (argc == 4) {
        DO(lanemark_attach_in(argv[3], argv[1], argv[2], 0, &card));
    } else {
        DO(lanemark_attach(argv[1], argv[2], 0, &card));
    }
    DO(lanemark_map(card, 0, LANEMARK_WC, &memory));

    DO(lanemark_copy_to(memory, 0, message, sizeof message));
    DO(lanemark_write_burst(memory, 64, words, 4));
    DO(lanemark_poke(memory, 128, 8, UINT64_C(0x1122334455667788)));
    DO(lanemark_fence(memory));

    DO(lanemark_copy_from(memory, 0, back, sizeof back));
    DO(lanemark_peek(memory, 72, 4, &value));
    printf("%s, %" PRIu64 "\n", back, value);
    DO(lanemark_peek(memory, 128, 4, &value));
    printf("0x%" PRIx64 "\n", value);
    if (lanemark_peek(memory, 130, 4, &value) == LANEMARK_STATUS_UNALIGNED) {
        printf("refused: %s\n", lanemark_message());
    }

    DO(lanemark_unmap(memory));
    DO(lanemark_detach(card));
    return memcmp(back, message, sizeof back) != 0;
}
