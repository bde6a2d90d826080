"""A root complex with host memory for test benches of cocotb 2, legal or an adversary; every TLP of the device is checked.

The device has the ports of `rtl/card/card.sv`: one stream of TLPs in each direction, a DW a clock. See `docs/guide/rtl.md`.
Needs `pip install lanemark[cocotb]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

from lanemark import _lanemark

__all__ = ["Broken", "RootComplex", "Transfer"]

#: Inputs of the device, in the order of the native module.
INPUTS = (
    "rx_data rx_valid rx_last rx_bar tx_ready rst bus_master msi_enable credit_posted_headers "
    "credit_non_posted_headers credit_posted_data requester_id mps mrrs tags timeout_clocks msi_address msi_data"
).split()


class Broken(AssertionError):
    """A rule that the device breaks; the test fails."""

    def __init__(self, rule: str, finding: str) -> None:
        super().__init__(finding)
        #: Name of the rule, as in `lanemark fuzz-rtl`.
        self.rule = rule


class Transfer:
    """A transfer. After its end, `illegal` is the name of the illegal situation that was created, or None."""

    illegal: str | None = None


def _raise(broken: tuple[str, str] | None) -> None:
    if broken is not None:
        raise Broken(*broken)


class RootComplex:
    """Root complex and host memory at the streams of a device.

    `mode="adversary"` gives each `transfer` legal situations that are chosen by `seed`; `illegal=True` also gives each transfer
    that reads host memory an illegal one. The same seed and the same calls give the same run. The test bench drives `dut.clk`
    and, if there is one, `dut.flr`.
    """

    def __init__(
        self,
        dut: Any,
        *,
        mode: Literal["legal", "adversary"] = "legal",
        seed: int = 0,
        illegal: bool = False,
        timeout_clocks: int = 2048,
        memory_at: int = 0x1000_0000,
        memory_bytes: int = 32 * 1024,
    ) -> None:
        if mode not in ("legal", "adversary"):
            raise ValueError(f"mode: '{mode}'; use 'legal' or 'adversary'")
        if len(dut.rx_data) != 32 or len(dut.tx_data) != 32:
            raise ValueError(f"rx_data has {len(dut.rx_data)} bits and tx_data {len(dut.tx_data)}; streams have 32")
        #: Address of the host memory.
        self.memory_at = memory_at
        self._dut = dut
        self._native = _lanemark.Partner(seed, mode == "adversary", illegal, timeout_clocks, memory_at, memory_bytes)
        self._task: Any = None

    async def start(self, clocks: int = 8) -> None:
        """Resets the device for a number of clocks; from then on it is driven and checked in each clock."""
        if self._task is not None:
            raise RuntimeError("start() was called before")
        self._task = cocotb.start_soon(self._run())
        await self.clocks(clocks)
        self._native.set_reset(False)

    async def _run(self) -> None:
        dut, native = self._dut, self._native
        if hasattr(dut, "flr"):
            dut.flr.value = 0
        ports = [getattr(dut, name, None) for name in INPUTS]
        before: list[int | None] = [None] * len(ports)
        while True:
            # Inputs change in the middle of a clock, and outputs are read before its edge: no simulator has a race there.
            await FallingEdge(dut.clk)
            inputs = native.drive()
            for place, (port, value) in enumerate(zip(ports, inputs)):
                if value != before[place] and port is not None:
                    port.value = value
            before[:] = inputs
            await ReadOnly()
            if inputs[5]:
                _raise(native.sample(0, False, False, False))
                continue
            is_valid = bool(dut.tx_valid.value)
            data = dut.tx_data.value.to_unsigned() if is_valid else 0
            is_last = is_valid and bool(dut.tx_last.value)
            _raise(native.sample(data, is_valid, is_last, bool(dut.rx_ready.value)))

    async def clocks(self, clocks: int) -> None:
        """Waits for a number of clocks."""
        for _ in range(clocks):
            await FallingEdge(self._dut.clk)

    async def write(self, bar: int, address: int, data: bytes) -> None:
        """Writes 4 or 8 bytes to a BAR; a posted write, which returns when it is queued."""
        self._native.write(bar, address, data)

    async def read(self, bar: int, address: int, length: int = 4) -> bytes:
        """Reads 4 or 8 bytes of a BAR; raises `Broken` if the device does not complete the read."""
        tag = self._native.start_read(bar, address, length)
        while True:
            data, broken = self._native.take_read(tag)
            _raise(broken)
            if data is not None:
                return data
            await FallingEdge(self._dut.clk)

    async def wait(self, bar: int, address: int, mask: int, value: int, length: int = 4, every_clocks: int = 50) -> int:
        """Reads a register until its bits of `mask` are `value`, and returns all of it; raises `Broken` if the transfer makes
        no progress."""
        while True:
            found = int.from_bytes(await self.read(bar, address, length), "little")
            if found & mask == value:
                return found
            _raise(self._native.check_progress())
            await self.clocks(every_clocks)

    @asynccontextmanager
    async def transfer(self, address: int, length: int, writes: bool = False) -> AsyncIterator[Transfer]:
        """A transfer of the device from a buffer in host memory, or with `writes` to it. Requests elsewhere break a rule."""
        self._native.begin(address, length, writes)
        transfer = Transfer()
        yield transfer
        transfer.illegal = self._native.end()

    def memory(self, address: int, length: int) -> bytes:
        """Bytes of the host memory."""
        return self._native.memory(address, length)

    def set_memory(self, address: int, data: bytes) -> None:
        """Changes bytes of the host memory."""
        self._native.set_memory(address, data)

    def check_data(self, found: bytes, expected: bytes) -> None:
        """Compares bytes that the device has copied; raises `Broken` with the rule of the last transfer's illegal situation."""
        _raise(self._native.check_data(found, expected))

    @property
    def interrupts(self) -> int:
        """MSIs since the last transfer began."""
        return self._native.interrupts

    @property
    def coverage(self) -> dict[str, int]:
        """Situations that were created, and how often."""
        return dict(self._native.coverage())

    def pcapng(self) -> bytes:
        """TLPs of both directions as a capture, for `lanemark trace --read` and Wireshark."""
        return self._native.pcapng()
