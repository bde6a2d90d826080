// The interface of lanemark_dut.h for a Verilated module with the ports of rtl/card/card.sv.
#define CLOCK clk
#include "verilated_device.hpp"

extern "C" uint32_t lanemark_dut_beat_bytes(void) { return 4; }

extern "C" void *lanemark_dut_new(void) { return std::make_unique<Verilated_device>().release(); }

extern "C" void lanemark_dut_free(void *device) { delete static_cast<Verilated_device *>(device); }

extern "C" void lanemark_dut_clock(void *opaque, const lanemark_dut_in *in, lanemark_dut_out *out) {
    auto &device = *static_cast<Verilated_device *>(opaque);
    *out = {};
    if (!device.failure.empty()) return;  // its state may be half of a clock
    auto before = [&](TOP &top) {
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
    };
    make_clock(device, before, [&](TOP &top) {
        out->rx_ready = top.rx_ready;
        out->tx_bytes = top.tx_valid ? 4 : 0;
        out->tx_last = top.tx_last;
        for (int byte = 0; byte < 4; byte++) out->tx_data[byte] = uint8_t(top.tx_data >> (24 - 8 * byte));
    });
}

extern "C" const char *lanemark_dut_failure(void *opaque) {
    auto &device = *static_cast<Verilated_device *>(opaque);
    return device.failure.empty() ? nullptr : device.failure.c_str();
}
