/*
 * lanemark.h: loads and stores to the BARs of a PCI device, in ranges named beforehand and nowhere else.
 *
 * Every function returns a lanemark_status; lanemark_message() says the rest in words. A handle is used by one thread at a
 * time. On x86-64 Linux; elsewhere lanemark_attach refuses.
 *
 * Made from crates/capi/src; renewed by: LANEMARK_BLESS=1 cargo test -p lanemark-capi --test header
 */

#ifndef LANEMARK_H
#define LANEMARK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/**
 * For `lanemark_map`: uncached, through `resourceN`.
 */
#define LANEMARK_UC 0

/**
 * For `lanemark_map`: write-combining, through `resourceN_wc`; storage only.
 */
#define LANEMARK_WC 1

/**
 * For `lanemark_attach`: go on although a driver is bound to the device.
 */
#define LANEMARK_OWNS_DEVICE 1

/**
 * For `lanemark_attach`: turn memory decoding on where it is off; it stays on.
 */
#define LANEMARK_ENABLE 2

/**
 * How a call ended; `lanemark_message` says it in words.
 */
typedef enum lanemark_status {
  /**
   * It was done.
   */
  LANEMARK_STATUS_OK = 0,
  /**
   * A null pointer, or a text or number that means nothing.
   */
  LANEMARK_STATUS_BAD_ARGUMENT = 1,
  /**
   * The device is not there.
   */
  LANEMARK_STATUS_NOT_THERE = 2,
  /**
   * A range that is not in a memory BAR of the device, or none was named.
   */
  LANEMARK_STATUS_BAD_RANGE = 3,
  /**
   * A driver is bound to the device.
   */
  LANEMARK_STATUS_DRIVER_BOUND = 4,
  /**
   * The device sleeps, or its memory decoding is off.
   */
  LANEMARK_STATUS_NOT_READY = 5,
  /**
   * The system forbids it: permissions, lockdown, a claimed BAR, no resource file.
   */
  LANEMARK_STATUS_FORBIDDEN = 6,
  /**
   * The memory type is not to be had, or another one came of it, or the BAR is mapped with another.
   */
  LANEMARK_STATUS_MEMORY_TYPE = 7,
  /**
   * An access outside the range.
   */
  LANEMARK_STATUS_OUT_OF_RANGE = 8,
  /**
   * An access at no multiple of its width.
   */
  LANEMARK_STATUS_UNALIGNED = 9,
  /**
   * What stands behind the range forbids the access.
   */
  LANEMARK_STATUS_NOT_ALLOWED = 10,
  /**
   * The device is gone, or its BAR is.
   */
  LANEMARK_STATUS_GONE = 11,
  /**
   * A card that is still mapped cannot be detached.
   */
  LANEMARK_STATUS_STILL_MAPPED = 12,
  /**
   * The operating system refused, or said something that is not understood.
   */
  LANEMARK_STATUS_SYSTEM = 13,
  /**
   * A defect of this library.
   */
  LANEMARK_STATUS_INTERNAL = 14,
} lanemark_status;

/**
 * An attached device.
 */
typedef struct lanemark_card lanemark_card;

/**
 * A mapped range of a BAR.
 */
typedef struct lanemark_mapping lanemark_mapping;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Attaches to the device at `address`, such as "0000:01:00.0". `ranges` names what may be touched, separated by commas:
 * "2:0..4KiB:storage,0:0..64:registers:write". `flags` is 0 or LANEMARK_OWNS_DEVICE, LANEMARK_ENABLE or both. Fills
 * `card`, to be given to `lanemark_detach`; with null if it fails.
 *
 * # Safety
 * `address` and `ranges` end in zero; `card` can be written.
 */
enum lanemark_status lanemark_attach(const char *address,
                                     const char *ranges,
                                     uint32_t flags,
                                     struct lanemark_card **card);

/**
 * As `lanemark_attach`, with the folder `root` in place of "/": for tests of programs, whose BARs are then plain files
 * `root/sys/bus/pci/devices/ADDRESS/resourceN`.
 *
 * # Safety
 * As for `lanemark_attach`; `root` ends in zero.
 */
enum lanemark_status lanemark_attach_in(const char *root,
                                        const char *address,
                                        const char *ranges,
                                        uint32_t flags,
                                        struct lanemark_card **card);

/**
 * Maps the range of this number, counted from 0 in the order they were named, as LANEMARK_UC or LANEMARK_WC. Fills
 * `mapping`, to be given to `lanemark_unmap`; with null if it fails. One BAR has one memory type at a time.
 *
 * # Safety
 * `card` comes from `lanemark_attach` and is not detached; `mapping` can be written.
 */
enum lanemark_status lanemark_map(const struct lanemark_card *card,
                                  size_t range,
                                  uint32_t memory_type,
                                  struct lanemark_mapping **mapping);

/**
 * Loads `width` bytes, 1, 2, 4 or 8, at `offset` of the BAR, a multiple of the width, into `value`.
 *
 * # Safety
 * `mapping` comes from `lanemark_map` and is not unmapped; `value` can be written.
 */
enum lanemark_status lanemark_peek(const struct lanemark_mapping *mapping,
                                   uint64_t offset,
                                   uint32_t width,
                                   uint64_t *value);

/**
 * Stores the low `width` bytes of `value`, 1, 2, 4 or 8, at `offset` of the BAR, a multiple of the width. A store is
 * posted: an error of the device's does not come back.
 *
 * # Safety
 * `mapping` comes from `lanemark_map` and is not unmapped; no other thread uses it meanwhile.
 */
enum lanemark_status lanemark_poke(struct lanemark_mapping *mapping,
                                   uint64_t offset,
                                   uint32_t width,
                                   uint64_t value);

/**
 * Stores `count` words of 4 B from `offset` of the BAR on, a multiple of 4, in ascending order; in storage two at a time,
 * so that lines of 64 B leave write-combining buffers whole.
 *
 * # Safety
 * As for `lanemark_poke`; `words` holds `count` of them.
 */
enum lanemark_status lanemark_write_burst(struct lanemark_mapping *mapping,
                                          uint64_t offset,
                                          const uint32_t *words,
                                          size_t count);

/**
 * Measures, for about `limit_ms` milliseconds, which copy is the fastest for each length to this very mapping; from then on
 * `lanemark_copy_to` uses it. Overwrites the range, up to 4 MiB of it.
 *
 * # Safety
 * As for `lanemark_poke`.
 */
enum lanemark_status lanemark_calibrate(struct lanemark_mapping *mapping,
                                        uint32_t limit_ms);

/**
 * Copies `len` bytes to storage from `offset` of the BAR on. In which order and how wide is the copy's own affair.
 *
 * # Safety
 * As for `lanemark_poke`; `bytes` holds `len` of them.
 */
enum lanemark_status lanemark_copy_to(struct lanemark_mapping *mapping,
                                      uint64_t offset,
                                      const void *bytes,
                                      size_t len);

/**
 * Copies `len` bytes from storage, from `offset` of the BAR on.
 *
 * # Safety
 * `mapping` comes from `lanemark_map` and is not unmapped; `bytes` has room for `len` and nobody else uses it.
 */
enum lanemark_status lanemark_copy_from(const struct lanemark_mapping *mapping,
                                        uint64_t offset,
                                        void *bytes,
                                        size_t len);

/**
 * Sends all earlier stores on their way, those in write-combining buffers too. They have arrived once a later peek has
 * come back.
 *
 * # Safety
 * As for `lanemark_poke`.
 */
enum lanemark_status lanemark_fence(struct lanemark_mapping *mapping);

/**
 * Gives a mapping back; null is nothing to give back.
 *
 * # Safety
 * `mapping` comes from `lanemark_map`, is not unmapped yet, and is used by nobody any more.
 */
enum lanemark_status lanemark_unmap(struct lanemark_mapping *mapping);

/**
 * Leaves the device; null is nothing to leave. Refused while a mapping of it is there.
 *
 * # Safety
 * `card` comes from `lanemark_attach`, is not detached yet, and is used by nobody any more.
 */
enum lanemark_status lanemark_detach(struct lanemark_card *card);

/**
 * What the last call on this thread said, in English and UTF-8; empty after one that did what it was asked for. Never
 * null; stays until the next call on this thread.
 */
const char *lanemark_message(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LANEMARK_H */
