"""The card with streams of the UltraScale+ hard block, under the model of that block in cocotbext-pcie.

That model was written by others, so it has other errors than ours: rtl/cocotb_run card_ultrascale
rtl/ultrascale/test_card_ultrascale.py rtl/card/*.sv rtl/adapters/*.sv rtl/ultrascale/*.sv
"""

import random

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiStreamBus
from cocotbext.pcie.core import RootComplex
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice

SOURCE, DESTINATION, COUNT, COMMAND, STATUS, MEMORY = 0x00, 0x08, 0x10, 0x14, 0x18, 0x4000
TO_DEVICE, TO_HOST, INTERRUPT = 1, 2, 4


class Bench:
    def __init__(self, dut):
        signals = {
            name: getattr(dut, name)
            for name in (
                "user_clk", "user_reset", "pcie_rq_seq_num0", "pcie_rq_seq_num_vld0", "cfg_max_payload",
                "cfg_max_read_req", "cfg_function_status", "cfg_flr_in_process", "cfg_flr_done",
                "cfg_interrupt_msi_enable", "cfg_interrupt_msi_int", "cfg_interrupt_msi_sent", "cfg_interrupt_msi_fail",
            )
        }
        buses = {f"{name}_bus": AxiStreamBus.from_prefix(dut, f"{side}_axis_{name}")
                 for side, name in (("s", "rq"), ("m", "rc"), ("m", "cq"), ("s", "cc"))}
        self.host = RootComplex()
        self.host.max_payload_size = 0x1
        self.block = UltraScalePlusPcieDevice(
            pcie_generation=3, pcie_link_width=len(dut.m_axis_cq_tdata) // 32, user_clk_frequency=250e6, alignment="dword", max_payload_size=512,
            enable_client_tag=True, pf0_msi_enable=True, **signals, **buses)
        self.block.functions[0].configure_bar(0, 1 << 16)
        self.host.make_port().connect(self.block)
        self.dut = dut

    async def start(self):
        await RisingEdge(self.dut.user_reset)
        while self.dut.user_reset.value:
            await RisingEdge(self.dut.user_clk)
        await self.host.enumerate()
        self.function = self.host.find_device(self.block.functions[0].pcie_id)
        await self.function.enable_device()
        await self.function.set_master()
        await self.function.alloc_irq_vectors(1, 1)
        self.bar = self.function.bar_window[0]
        self.memory = self.host.mem_pool.alloc_region(1 << 16)

    async def transfer(self, command, host, device, count):
        address = self.memory.get_absolute_address(host)
        pair = (address, device) if command & TO_DEVICE else (device, address)
        for register, value in zip((SOURCE, DESTINATION), pair):
            await self.bar.write(register, value.to_bytes(8, "little"))
        await self.bar.write_dword(COUNT, count)
        await self.bar.write_dword(COMMAND, command)
        for _ in range(1000):
            status = await self.bar.read_dword(STATUS)
            if not status & 1:
                assert status == 0, f"the transfer of {count} B failed: status {status:#x}"
                return
        raise AssertionError(f"the transfer of {count} B does not end")


@cocotb.test()
async def bytes_of_both_directions_arrive(dut):
    bench = Bench(dut)
    await bench.start()
    numbers = random.Random(1)
    for count in (1, 3, 4, 64, 100, 511, 1024, 4096):
        for _ in range(3):
            host, device = numbers.randrange(4096), numbers.randrange(4096 - count + 1)
            data = numbers.randbytes(count)
            bench.memory[host:host + count] = data
            await bench.transfer(TO_DEVICE, host, device, count)
            # The card completes loads of a DW.
            word = await bench.bar.read_dword(MEMORY + device // 4 * 4)
            first = word.to_bytes(4, "little")[device % 4:][:count]
            assert first == data[:len(first)], (count, host, device)
            back = numbers.randrange(8192, 12288)
            await bench.transfer(TO_HOST, back, device, count)
            assert bench.memory[back:back + count] == data, (count, back, device)


@cocotb.test()
async def the_interrupt_follows_the_data(dut):
    bench = Bench(dut)
    await bench.start()
    await bench.bar.write(MEMORY, bytes(range(200)))
    event = bench.function.msi_vectors[0].event
    event.clear()
    cocotb.start_soon(bench.transfer(TO_HOST | INTERRUPT, 100, 0, 200))
    await event.wait()
    assert bench.memory[100:300] == bytes(range(200))
