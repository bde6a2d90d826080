"""Copies of the card of `rtl/` under an adversary, with cocotb 2, behind any block whose ports it has.

rtl/cocotb_run card rtl/examples/test_card.py rtl/card/*.sv
rtl/cocotb_run card_series7 rtl/examples/test_card.py rtl/card/*.sv rtl/adapters/*.sv rtl/series7/*.sv -GWIDTH=128
"""

import random

import cocotb
from cocotb.clock import Clock
from lanemark.cocotb import RootComplex

SOURCE, DESTINATION, COUNT, COMMAND, STATUS = 0x00, 0x08, 0x10, 0x14, 0x18
TO_DEVICE, TO_HOST, INTERRUPT = 1, 2, 4
BAR, LENGTH = 0xE000_0000, 1024


async def command(rc, source, destination, direction):
    """Starts a transfer and waits for its end; returns whether it was good."""
    for register, value, size in (
        (SOURCE, source, 8), (DESTINATION, destination, 8), (COUNT, LENGTH, 4), (COMMAND, direction, 4)
    ):
        await rc.write(0, BAR + register, value.to_bytes(size, "little"))
    return await rc.wait(0, BAR + STATUS, mask=1, value=0) & 2 == 0


async def copies(dut, seed, illegal):
    """Copies to the card and back, eight times."""
    rc = RootComplex(dut, mode="adversary", seed=seed, illegal=illegal)
    cocotb.start_soon(Clock(rc.clock, 4, "ns").start())
    await rc.start()
    source, back = rc.memory_at + 0x101, rc.memory_at + 0x2ffe
    for number in range(8):
        data = random.Random(number).randbytes(LENGTH)
        rc.set_memory(source, data)
        async with rc.transfer(source, LENGTH):
            is_good = await command(rc, source, 0x20, TO_DEVICE)
        async with rc.transfer(back, LENGTH, writes=True):
            assert await command(rc, 0x20, back, TO_HOST | INTERRUPT)
            await rc.clocks(200)
            assert rc.interrupts == 1
        if is_good:
            rc.check_data(rc.memory(back, LENGTH), data)
    return rc


@cocotb.test()
async def legal_situations_are_passed(dut):
    rc = await copies(dut, seed=1, illegal=False)
    assert rc.coverage["split_at_every_rcb"] > 0, rc.coverage


@cocotb.test()
@cocotb.parametrize(seed=[0, 1])
async def illegal_situations_are_passed(dut, seed):
    await copies(dut, seed=seed, illegal=True)
