"""DMA of the card of `rtl/` behind an UltraScale+ block, under `lanemark.cocotb` and under cocotbext-pcie; prints TLPs of the DMA per second.

Both use the same transfers, 4 KiB in each direction, at a Max_Payload_Size and a Max_Read_Request_Size of 128 B. Writes of
registers and polling belong to both, and are not counted. `checks/src/bin/bench/rtl.rs` runs it.
"""

import os
import sys
import time

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../rtl/ultrascale"))
SOURCE, DESTINATION, COUNT, COMMAND, STATUS = 0x00, 0x08, 0x10, 0x14, 0x18
TO_DEVICE, TO_HOST = 1, 2
LENGTH, TRANSFERS, ROUNDS = 4096, 8, 3
BAR, SIZE = 0xE000_0000, 128


def print_rate(name, started):
    """A pair of transfers has reads, their completions, and writes."""
    tlps = TRANSFERS * 3 * (LENGTH // SIZE)
    print(f"{name} {tlps / (time.perf_counter() - started)}", flush=True)


@cocotb.test()
async def lanemark(dut):
    from lanemark.cocotb import RootComplex

    rc = RootComplex(dut, mode="legal")
    cocotb.start_soon(Clock(rc.clock, 4, "ns").start())
    await rc.start()
    data = bytes(range(256)) * (LENGTH // 256)
    rc.set_memory(rc.memory_at, data)
    back = rc.memory_at + 0x4000

    async def transfer(source, destination, command):
        for register, value, size in ((SOURCE, source, 8), (DESTINATION, destination, 8), (COUNT, LENGTH, 4), (COMMAND, command, 4)):
            await rc.write(0, BAR + register, value.to_bytes(size, "little"))
        assert await rc.wait(0, BAR + STATUS, mask=1, value=0) == 0

    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(TRANSFERS):
            async with rc.transfer(rc.memory_at, LENGTH):
                await transfer(rc.memory_at, 0, TO_DEVICE)
            async with rc.transfer(back, LENGTH, writes=True):
                await transfer(0, back, TO_HOST)
        print_rate("lanemark", started)
        assert rc.memory(back, LENGTH) == data


@cocotb.test()
async def cocotbext_pcie(dut):
    from test_card_ultrascale import Bench

    bench = Bench(dut)
    bench.host.max_payload_size = 0
    await bench.start()
    bench.block.functions[0].pcie_cap.max_read_request_size = 0
    await ClockCycles(dut.user_clk, 100)
    data = bytes(range(256)) * (LENGTH // 256)
    bench.memory[0:LENGTH] = data
    assert int(dut.cfg_max_payload.value) == int(dut.cfg_max_read_req.value) == 0

    async def transfer(source, destination, command):
        for register, value in ((SOURCE, source), (DESTINATION, destination)):
            await bench.bar.write(register, value.to_bytes(8, "little"))
        await bench.bar.write_dword(COUNT, LENGTH)
        await bench.bar.write_dword(COMMAND, command)
        while (status := await bench.bar.read_dword(STATUS)) & 1:
            await ClockCycles(dut.user_clk, 50)
        assert status == 0

    at = bench.memory.get_absolute_address
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(TRANSFERS):
            await transfer(at(0), 0, TO_DEVICE)
            await transfer(0, at(0x4000), TO_HOST)
        print_rate("cocotbext-pcie", started)
        assert bench.memory[0x4000:0x4000 + LENGTH] == data
