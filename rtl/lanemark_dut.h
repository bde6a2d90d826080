/* A design for `lanemark fuzz-rtl` and `lanemark bench --on rtl:`: a shared library with these functions.
 *
 * There are two kinds of library. Version 2 of the interface is for a compiled design: its ports by name, whose
 * interface (a plain stream of TLPs, or that of a hard block) Lanemark recognises. `rtl/shim.cpp` implements it for
 * a Verilated module. Version 1 is for a model in software: TLPs in beats. */
#ifndef LANEMARK_DUT_H
#define LANEMARK_DUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What lanemark_dut_abi() returns. */
#define LANEMARK_DUT_STREAM 1
#define LANEMARK_DUT_PORTS 2

#if defined(__GNUC__)
#define LANEMARK_DUT_EXPORT __attribute__((visibility("default")))
#else
#define LANEMARK_DUT_EXPORT
#endif

/* ---- Both versions ---- */

/* LANEMARK_DUT_STREAM or LANEMARK_DUT_PORTS. */
LANEMARK_DUT_EXPORT uint32_t lanemark_dut_abi(void);
/* A device in its initial state, or NULL. Devices of several threads are independent. A device may move
 * between threads; its calls do not overlap. */
LANEMARK_DUT_EXPORT void *lanemark_dut_new(void);
LANEMARK_DUT_EXPORT void lanemark_dut_free(void *device);
/* Message of the first failed assertion of this device, or NULL. */
LANEMARK_DUT_EXPORT const char *lanemark_dut_failure(void *device);

/* ---- Version 2: ports ---- */

typedef struct {
    const char *name;
    void *value;       /* uint8_t for 1 to 8 bits, uint16_t to 16, uint32_t to 32, uint64_t to 64; wider:
                        * uint32_t[(bits + 31) / 32], the lowest bits first */
    uint32_t bits;     /* its width; the bits above it are 0 */
    uint32_t is_input; /* 1: the design reads it */
} lanemark_dut_port;

/* Ports of the top, and their number. They stay where they are until the device is freed. */
LANEMARK_DUT_EXPORT const lanemark_dut_port *lanemark_dut_ports(void *device, uint32_t *count);
/* Computes the outputs from the inputs; returns 1 if an assertion has failed. Each clock, the caller sets the
 * clock to 0 and the inputs, calls this function and reads the outputs, then sets the clock to 1 and calls it
 * again: a change of the clock since the last call is its edge. */
LANEMARK_DUT_EXPORT uint32_t lanemark_dut_evaluate(void *device);

/* ---- Version 1: a stream of TLPs ----
 *
 * A TLP is a sequence of bytes in the order of the link, in beats of lanemark_dut_beat_bytes() bytes; only
 * the last beat may be shorter. */

typedef struct {
    uint8_t rx_data[64];         /* a beat to the device */
    uint8_t rx_bytes;            /* its length; 0: no beat is offered */
    uint8_t rx_last;             /* 1: it ends its TLP */
    uint8_t rx_bar;              /* BAR that a request matches */
    uint8_t tx_ready;            /* 1: a beat of the device is accepted */
    uint8_t reset;               /* 1: reset of everything */
    uint8_t flr;                 /* 1: function-level reset */
    uint8_t bus_master;          /* Bus Master Enable */
    uint8_t msi_enable;          /* MSI Enable */
    uint8_t posted_headers;      /* credit limits, modulo 2^8 and 2^12 */
    uint8_t non_posted_headers;
    uint16_t posted_data;
    uint16_t requester_id;
    uint16_t mps;                /* Max Payload Size in bytes */
    uint16_t mrrs;               /* Max Read Request Size in bytes */
    uint16_t tags;               /* number of usable tags */
    uint32_t timeout_clocks;     /* completion timeout */
    uint32_t msi_data;
    uint64_t msi_address;
} lanemark_dut_in;

typedef struct {
    uint8_t tx_data[64];         /* a beat of the device */
    uint8_t tx_bytes;            /* its length; 0: no beat is offered */
    uint8_t tx_last;             /* 1: it ends its TLP */
    uint8_t rx_ready;            /* 1: the beat to the device is accepted */
} lanemark_dut_out;

/* Bytes of a full beat: a multiple of 4, at most 64. */
LANEMARK_DUT_EXPORT uint32_t lanemark_dut_beat_bytes(void);
/* Applies the inputs, writes the outputs as they are before the clock edge, then makes the edge. */
LANEMARK_DUT_EXPORT void lanemark_dut_clock(void *device, const lanemark_dut_in *in, lanemark_dut_out *out);

#ifdef __cplusplus
}
#endif

#endif
