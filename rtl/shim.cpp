// The interface of lanemark_dut.h for any Verilated module: its ports, and failed assertions that are kept, not printed.
//
// TOP is the name of the Verilated class and TOP_HEADER its header. ports.inc has a line PORT(name, member, msb, lsb, is_input) for
// each port. rtl/build defines and writes them.
#include "lanemark_dut.h"
#include TOP_HEADER
#include "verilated.h"

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Device {
    VerilatedContext context;
    std::unique_ptr<TOP> top;
    std::vector<lanemark_dut_port> ports;
    std::string failure;

    Device() {
        // Registers without a reset have other values in each device, but the same in each run.
        context.randReset(2);
        context.randSeed(1);
        top = std::make_unique<TOP>(&context);
#define PORT(name, member, msb, lsb, is_input) ports.push_back({name, &top->member, (msb) - (lsb) + 1, is_input});
#include "ports.inc"
#undef PORT
    }
};

// Verilator's loops until a design settles end with a fatal message only, so it has to leave them.
struct Fatal {};

// The device that this thread evaluates.
thread_local Device *current = nullptr;
thread_local std::string printed;

// Keeps the first failure.
void fail(const char *file, int line) {
    if (current && current->failure.empty()) {
        std::string name = file ? file : "";
        name = name.substr(name.find_last_of('/') + 1);
        while (!printed.empty() && printed.back() == '\n') printed.pop_back();
        current->failure = name + ":" + std::to_string(line) + ": " + printed;
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

extern "C" uint32_t lanemark_dut_abi(void) { return LANEMARK_DUT_PORTS; }

extern "C" void *lanemark_dut_new(void) { return std::make_unique<Device>().release(); }

extern "C" void lanemark_dut_free(void *device) { delete static_cast<Device *>(device); }

extern "C" const lanemark_dut_port *lanemark_dut_ports(void *opaque, uint32_t *count) {
    auto &device = *static_cast<Device *>(opaque);
    *count = uint32_t(device.ports.size());
    return device.ports.data();
}

extern "C" uint32_t lanemark_dut_evaluate(void *opaque) {
    auto &device = *static_cast<Device *>(opaque);
    current = &device;
    try {
        device.top->eval();
        device.context.timeInc(1);
    } catch (const Fatal &) {
        // fail() has kept its message.
    }
    current = nullptr;
    return !device.failure.empty();
}

extern "C" const char *lanemark_dut_failure(void *opaque) {
    auto &device = *static_cast<Device *>(opaque);
    return device.failure.empty() ? nullptr : device.failure.c_str();
}
