/*
 * lanemark.h: loads and stores to named ranges of the BARs of a PCI device, and the method for many small copies to a GPU.
 *
 * Every function returns a lanemark_status; lanemark_message() returns the details. A handle may be used by one thread at
 * a time. Runs on x86-64 Linux; on other systems lanemark_attach fails.
 *
 * Generated from crates/capi/src; to renew it: LANEMARK_BLESS=1 cargo test -p lanemark-capi --test header
 */

#ifndef LANEMARK_H
#define LANEMARK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/**
 * Memory type for `lanemark_map`: uncached, through `resourceN`.
 */
#define LANEMARK_UC 0

/**
 * Memory type for `lanemark_map`: write-combining, through `resourceN_wc`; storage only.
 */
#define LANEMARK_WC 1

/**
 * Flag for `lanemark_attach`: continue although a driver is bound to the device.
 */
#define LANEMARK_OWNS_DEVICE 1

/**
 * Flag for `lanemark_attach`: enable memory decoding if it is off; it stays enabled.
 */
#define LANEMARK_ENABLE 2

/**
 * Direction for `lanemark_copy_plan`: to the device.
 */
#define LANEMARK_TO_DEVICE 0

/**
 * Direction for `lanemark_copy_plan`: from the device.
 */
#define LANEMARK_FROM_DEVICE 1

/**
 * Outcome of a call; `lanemark_message` returns the details.
 */
typedef enum lanemark_status {
  /**
   * Success.
   */
  LANEMARK_STATUS_OK = 0,
  /**
   * Null pointer, or invalid text or number.
   */
  LANEMARK_STATUS_BAD_ARGUMENT = 1,
  /**
   * The device does not exist.
   */
  LANEMARK_STATUS_NOT_THERE = 2,
  /**
   * The range is not within a memory BAR of the device, or no range was named.
   */
  LANEMARK_STATUS_BAD_RANGE = 3,
  /**
   * A driver is bound to the device, or another process has locked it.
   */
  LANEMARK_STATUS_DRIVER_BOUND = 4,
  /**
   * The device is in a low-power state, or its memory decoding is off.
   */
  LANEMARK_STATUS_NOT_READY = 5,
  /**
   * The system denies access: permissions, lockdown, a claimed BAR, no resource file.
   */
  LANEMARK_STATUS_FORBIDDEN = 6,
  /**
   * The memory type is unavailable, the mapping has another one, or the BAR is already mapped with another one.
   */
  LANEMARK_STATUS_MEMORY_TYPE = 7,
  /**
   * The access is outside the range.
   */
  LANEMARK_STATUS_OUT_OF_RANGE = 8,
  /**
   * The access is not aligned to its width.
   */
  LANEMARK_STATUS_UNALIGNED = 9,
  /**
   * The kind of the range forbids the access.
   */
  LANEMARK_STATUS_NOT_ALLOWED = 10,
  /**
   * The device or its BAR is gone, or the device or its driver has changed.
   */
  LANEMARK_STATUS_GONE = 11,
  /**
   * The card still has mappings and cannot be detached.
   */
  LANEMARK_STATUS_STILL_MAPPED = 12,
  /**
   * A system call failed, or a system file has unexpected contents.
   */
  LANEMARK_STATUS_SYSTEM = 13,
  /**
   * Internal error of this library.
   */
  LANEMARK_STATUS_INTERNAL = 14,
} lanemark_status;

/**
 * How to copy many pieces.
 */
typedef enum lanemark_copy_method {
  /**
   * The table has no method: it is null, or has no times of the direction, or the direction is invalid.
   */
  LANEMARK_COPY_METHOD_UNKNOWN = 0,
  /**
   * An asynchronous copy for each piece, and one wait.
   */
  LANEMARK_COPY_METHOD_LOOP = 1,
  /**
   * One call with the list of all pieces.
   */
  LANEMARK_COPY_METHOD_BATCH = 2,
  /**
   * One copy of a packed buffer, and a kernel that distributes or gathers the pieces.
   */
  LANEMARK_COPY_METHOD_PACKED = 3,
  /**
   * A kernel that accesses the pieces in host memory.
   */
  LANEMARK_COPY_METHOD_IN_PLACE = 4,
  /**
   * Stores of the processor through a BAR, or loads.
   */
  LANEMARK_COPY_METHOD_STORES = 5,
} lanemark_copy_method;

/**
 * An attached device.
 */
typedef struct lanemark_card lanemark_card;

/**
 * A table of methods for many small copies.
 */
typedef struct lanemark_copy_table lanemark_copy_table;

/**
 * A mapped range of a BAR.
 */
typedef struct lanemark_mapping lanemark_mapping;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Attaches to the device at `address`, such as "0000:01:00.0". `ranges` lists the accessible ranges, separated by commas:
 * "2:0..4KiB:storage,0:0..64:registers:write". `flags` is 0 or a combination of LANEMARK_OWNS_DEVICE and
 * LANEMARK_ENABLE. Sets `card` to a handle for `lanemark_detach`, or to null on failure.
 *
 * # Safety
 * `address` and `ranges` must be NUL-terminated; `card` must be writable.
 */
enum lanemark_status lanemark_attach(const char *address,
                                     const char *ranges,
                                     uint32_t flags,
                                     struct lanemark_card **card);

/**
 * Like `lanemark_attach`, with the folder `root` instead of "/". For tests of programs: BARs are then plain files
 * `root/sys/bus/pci/devices/ADDRESS/resourceN`.
 *
 * # Safety
 * Same as for `lanemark_attach`; `root` must be NUL-terminated.
 */
enum lanemark_status lanemark_attach_in(const char *root,
                                        const char *address,
                                        const char *ranges,
                                        uint32_t flags,
                                        struct lanemark_card **card);

/**
 * Maps a range as LANEMARK_UC or LANEMARK_WC; `range` is its index in the order of naming. Sets `mapping` to a handle for
 * `lanemark_unmap`, or to null on failure. A BAR has one memory type at a time.
 *
 * # Safety
 * `card` must come from `lanemark_attach` and not be detached; `mapping` must be writable.
 */
enum lanemark_status lanemark_map(const struct lanemark_card *card,
                                  size_t range,
                                  uint32_t memory_type,
                                  struct lanemark_mapping **mapping);

/**
 * Loads `width` bytes (1, 2, 4 or 8) at `offset` of the BAR, a multiple of the width, into `value`.
 *
 * # Safety
 * `mapping` must come from `lanemark_map` and not be unmapped; `value` must be writable.
 */
enum lanemark_status lanemark_peek(const struct lanemark_mapping *mapping,
                                   uint64_t offset,
                                   uint32_t width,
                                   uint64_t *value);

/**
 * Stores the low `width` bytes (1, 2, 4 or 8) of `value` at `offset` of the BAR, a multiple of the width. Stores are
 * posted: an error on the device is not reported.
 *
 * # Safety
 * `mapping` must come from `lanemark_map` and not be unmapped; no other thread may use it meanwhile.
 */
enum lanemark_status lanemark_poke(struct lanemark_mapping *mapping,
                                   uint64_t offset,
                                   uint32_t width,
                                   uint64_t value);

/**
 * Stores `count` words of 4 B in ascending order from `offset` of the BAR, a multiple of 4. In storage, words are stored
 * in pairs, so that write-combining buffers are flushed as whole 64 B lines.
 *
 * # Safety
 * Same as for `lanemark_poke`; `words` must hold `count` words.
 */
enum lanemark_status lanemark_write_burst(struct lanemark_mapping *mapping,
                                          uint64_t offset,
                                          const uint32_t *words,
                                          size_t count);

/**
 * Measures for about `limit_ms` milliseconds which copy routine is fastest for each length to this mapping;
 * `lanemark_copy_to` then uses it. Overwrites up to 4 MiB of the range.
 *
 * # Safety
 * Same as for `lanemark_poke`.
 */
enum lanemark_status lanemark_calibrate(struct lanemark_mapping *mapping,
                                        uint32_t limit_ms);

/**
 * Copies `len` bytes to storage at `offset` of the BAR. Order and width of the stores are unspecified.
 *
 * # Safety
 * Same as for `lanemark_poke`; `bytes` must hold `len` bytes.
 */
enum lanemark_status lanemark_copy_to(struct lanemark_mapping *mapping,
                                      uint64_t offset,
                                      const void *bytes,
                                      size_t len);

/**
 * Copies `len` bytes from storage at `offset` of the BAR.
 *
 * # Safety
 * `mapping` must come from `lanemark_map` and not be unmapped; `bytes` must hold `len` bytes without other users.
 */
enum lanemark_status lanemark_copy_from(const struct lanemark_mapping *mapping,
                                        uint64_t offset,
                                        void *bytes,
                                        size_t len);

/**
 * Executes `SFENCE`: flushes write-combining buffers and orders all earlier stores. They have arrived when a later peek
 * returns.
 *
 * # Safety
 * Same as for `lanemark_poke`.
 */
enum lanemark_status lanemark_fence(struct lanemark_mapping *mapping);

/**
 * Unmaps a mapping; null is ignored.
 *
 * # Safety
 * `mapping` must come from `lanemark_map`, not be unmapped, and have no other users.
 */
enum lanemark_status lanemark_unmap(struct lanemark_mapping *mapping);

/**
 * Detaches from the device; null is ignored. Fails while one of its mappings exists.
 *
 * # Safety
 * `card` must come from `lanemark_attach`, not be detached, and have no other users.
 */
enum lanemark_status lanemark_detach(struct lanemark_card *card);

/**
 * Reads the table at `path`, which `lanemark tune` has written. Sets `table` to a handle for `lanemark_copy_table_close`, or
 * to null on failure. Several threads may use the handle at a time.
 *
 * # Safety
 * `path` must be NUL-terminated; `table` must be writable.
 */
enum lanemark_status lanemark_copy_table_open(const char *path,
                                              struct lanemark_copy_table **table);

/**
 * Returns the fastest method for `count` pieces of `bytes` bytes; `direction` is LANEMARK_TO_DEVICE or LANEMARK_FROM_DEVICE.
 * It takes a few nanoseconds, and leaves the message of `lanemark_message` as it is.
 *
 * # Safety
 * `table` must be null, or come from `lanemark_copy_table_open` and not be closed.
 */
enum lanemark_copy_method lanemark_copy_plan(const struct lanemark_copy_table *table,
                                             uint64_t bytes,
                                             uint32_t count,
                                             uint32_t direction);

/**
 * Closes a table.
 *
 * # Safety
 * `table` must come from `lanemark_copy_table_open`, and not be used afterwards.
 */
enum lanemark_status lanemark_copy_table_close(struct lanemark_copy_table *table);

/**
 * Returns the message of the last call on this thread, in English and UTF-8; empty if it succeeded. Never null; valid
 * until the next call on this thread.
 */
const char *lanemark_message(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LANEMARK_H */
