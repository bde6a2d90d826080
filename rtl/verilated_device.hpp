// What the shims share: a Verilated module whose failed assertions are kept, not printed.
//
// TOP is the name of the Verilated class, TOP_HEADER its header; rtl/build defines both.
#ifndef LANEMARK_VERILATED_DEVICE_HPP
#define LANEMARK_VERILATED_DEVICE_HPP

#include "lanemark_dut.h"
#include TOP_HEADER
#include "verilated.h"

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <string>

namespace {

struct Verilated_device {
    VerilatedContext context;
    std::unique_ptr<TOP> top;
    std::string failure;

    Verilated_device() {
        // Registers without a reset have other values in each device, but the same in each run.
        context.randReset(2);
        context.randSeed(1);
        top = std::make_unique<TOP>(&context);
    }

    // Keeps the first failure.
    void fail(const std::string &what) {
        if (failure.empty()) failure = what;
    }
};

// Verilator's loops until a design settles end with a fatal message only, so it has to leave them.
struct Fatal {};

// The device whose clock runs in this thread.
thread_local Verilated_device *current = nullptr;
thread_local std::string printed;

void fail(const char *file, int line) {
    if (current) {
        std::string name = file ? file : "";
        name = name.substr(name.find_last_of('/') + 1);
        while (!printed.empty() && printed.back() == '\n') printed.pop_back();
        current->fail(name + ":" + std::to_string(line) + ": " + printed);
    }
    printed.clear();
}

// Applies the inputs in `before`, reads the outputs in `sample`, then makes the clock edge.
template <class Before, class Sample>
void make_clock(Verilated_device &device, Before before, Sample sample) {
    current = &device;
    try {
        device.top->CLOCK = 0;
        before(*device.top);
        device.top->eval();
        sample(*device.top);
        device.top->CLOCK = 1;
        device.top->eval();
        device.context.timeInc(1);
    } catch (const Fatal &) {
        // fail() has kept its message.
    }
    current = nullptr;
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

#endif
