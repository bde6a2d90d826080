// The interface of lanemark_dut.h for a Verilated module with the ports of rtl/card/card.sv.
//
// TOP is the name of the Verilated class, TOP_HEADER its header; rtl/build defines both.
#include "lanemark_dut.h"
#include TOP_HEADER
#include "verilated.h"

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>

namespace {

struct Device {
    VerilatedContext context;
    std::unique_ptr<TOP> top;
    std::string failure;
};

// Verilator's loops until a design settles end with a fatal message only, so it has to leave them.
struct Fatal {};

// The device whose clock runs in this thread.
thread_local Device *current = nullptr;
thread_local std::string printed;

void fail(const char *file, int line) {
    if (current && current->failure.empty()) {
        std::string name = file ? file : "";
        name = name.substr(name.find_last_of('/') + 1);
        current->failure = name + ":" + std::to_string(line) + ": " + printed;
        while (!current->failure.empty() && current->failure.back() == '\n') current->failure.pop_back();
    }
    printed.clear();
}

}  // namespace

// Verilator prints messages of assertions through this function.
extern "C" void lanemark_dut_printf(const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    printed = line;
}

void vl_finish(const char *, int, const char *) {}
void vl_stop(const char *file, int line, const char *) { fail(file, line); }
void vl_fatal(const char *file, int line, const char *, const char *message) {
    printed = message ? message : "";
    fail(file, line);
    throw Fatal();
}
double sc_time_stamp() { return 0; }

extern "C" uint32_t lanemark_dut_abi(void) { return LANEMARK_DUT_ABI; }
extern "C" uint32_t lanemark_dut_beat_bytes(void) { return 4; }

extern "C" void *lanemark_dut_new(void) {
    auto device = std::make_unique<Device>();
    // Registers without a reset have other values in each device, but the same in each run.
    device->context.randReset(2);
    device->context.randSeed(1);
    device->top = std::make_unique<TOP>(&device->context);
    return device.release();
}

extern "C" void lanemark_dut_free(void *device) { delete static_cast<Device *>(device); }

extern "C" void lanemark_dut_clock(void *opaque, const lanemark_dut_in *in, lanemark_dut_out *out) {
    auto device = static_cast<Device *>(opaque);
    auto &top = *device->top;
    *out = {};
    if (!device->failure.empty()) return;  // its state may be half of a clock
    current = device;
    const uint8_t *rx = in->rx_data;
    top.rx_data = uint32_t(rx[0]) << 24 | uint32_t(rx[1]) << 16 | uint32_t(rx[2]) << 8 | rx[3];
    top.rx_valid = in->rx_bytes != 0;
    top.rx_last = in->rx_last;
    top.rx_bar = in->rx_bar;
    top.tx_ready = in->tx_ready;
    top.rst = in->reset;
    top.flr = in->flr;
    top.bus_master = in->bus_master;
    top.msi_enable = in->msi_enable;
    top.msi_address = in->msi_address;
    top.msi_data = in->msi_data;
    top.credit_posted_headers = in->posted_headers;
    top.credit_posted_data = in->posted_data;
    top.credit_non_posted_headers = in->non_posted_headers;
    top.requester_id = in->requester_id;
    top.mps = in->mps;
    top.mrrs = in->mrrs;
    top.tags = in->tags;
    top.timeout_clocks = in->timeout_clocks;
    try {
        top.clk = 0;
        top.eval();
        out->rx_ready = top.rx_ready;
        out->tx_bytes = top.tx_valid ? 4 : 0;
        out->tx_last = top.tx_last;
        for (int byte = 0; byte < 4; byte++) out->tx_data[byte] = uint8_t(top.tx_data >> (24 - 8 * byte));
        top.clk = 1;
        top.eval();
        device->context.timeInc(1);
    } catch (const Fatal &) {
        // fail() has kept its message.
    }
    current = nullptr;
}

extern "C" const char *lanemark_dut_failure(void *opaque) {
    auto device = static_cast<Device *>(opaque);
    return device->failure.empty() ? nullptr : device->failure.c_str();
}
