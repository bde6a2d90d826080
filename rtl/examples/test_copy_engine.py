"""Copies of the example engine under an adversary, with cocotb 2. Its completer is trusted, and that is found.

rtl/cocotb_run copy_engine rtl/examples/test_copy_engine.py rtl/examples/copy_engine.sv
"""

import random

import cocotb
from cocotb.clock import Clock
from lanemark.cocotb import Broken, RootComplex

SOURCE, DESTINATION, COUNT, COMMAND = 0x80, 0x88, 0x90, 0x98
BAR, OWN_MEMORY, LENGTH = 0xE000_0000, 0x4_0000, 1024


async def command(rc, source, destination, direction):
    """Starts a transfer and waits for its end; returns whether it was good."""
    for register, value in ((SOURCE, source), (DESTINATION, destination), (COUNT, LENGTH), (COMMAND, direction)):
        await rc.write(0, BAR + register, value.to_bytes(8, "little"))
    return await rc.wait(0, BAR + COMMAND, mask=1, value=0, length=8) & 4 == 0


async def copies(dut, seed, illegal):
    """Copies to the engine and back, eight times."""
    cocotb.start_soon(Clock(dut.clk, 4, "ns").start())
    rc = RootComplex(dut, mode="adversary", seed=seed, illegal=illegal)
    await rc.start()
    source, back = rc.memory_at + 0x100, rc.memory_at + 0x2000
    for number in range(8):
        data = random.Random(number).randbytes(LENGTH)
        rc.set_memory(source, data)
        async with rc.transfer(source, LENGTH):
            is_good = await command(rc, source, OWN_MEMORY, 1)
        async with rc.transfer(back, LENGTH, writes=True) as transfer:
            assert await command(rc, OWN_MEMORY, back, 3)
        if is_good:
            rc.check_data(rc.memory(back, LENGTH), data)
    return rc


@cocotb.test()
async def legal_situations_are_passed(dut):
    rc = await copies(dut, seed=1, illegal=False)
    assert rc.coverage["split_at_every_rcb"] > 0, rc.coverage


@cocotb.test()
async def a_wrong_completion_is_taken_as_data(dut):
    try:
        await copies(dut, seed=0, illegal=True)
    except Broken as broken:
        assert broken.rule == "completion_mismatch", broken
    else:
        raise AssertionError("the engine passed, and it trusts its completer")
