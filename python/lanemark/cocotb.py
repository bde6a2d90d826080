"""A root complex with host memory for test benches of cocotb 2, legal or an adversary; every TLP of the device is checked.

The device has the ports of `rtl/card/card.sv`, a plain stream of TLPs, or those of a hard block. See `docs/guide/rtl.md`.
Needs `pip install lanemark[cocotb]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

from lanemark import _lanemark

__all__ = ["Broken", "RootComplex", "Transfer"]


class Broken(AssertionError):
    """A rule that the device breaks; the test fails."""

    def __init__(self, rule: str, finding: str) -> None:
        super().__init__(finding)
        #: Name of the rule, as in `lanemark fuzz-rtl`.
        self.rule = rule


class Transfer:
    """A transfer. After its end, `illegal` is the name of the illegal situation that was created, or None."""

    illegal: str | None = None


def _bits(port: Any) -> int:
    """Width of a port in bits; one of a single bit has no length."""
    try:
        return len(port)
    except TypeError:
        return 1


def _reader(port: Any) -> Callable[[], str]:
    """The fastest function that reads the bits of a port: of its native handle, if this version of cocotb has one, else
    `value`."""
    read: Callable[[], str] | None = getattr(getattr(port, "_handle", None), "get_signal_val_binstr", None)
    return read if read is not None else lambda: str(port.value)


def _raise(broken: tuple[str, str] | None) -> None:
    if broken is not None:
        raise Broken(*broken)


class RootComplex:
    """Root complex and host memory, and a model of the hard block whose ports the device has.

    `mode="adversary"` gives each `transfer` legal situations that are chosen by `seed`; `illegal=True` also gives each transfer
    that reads host memory an illegal one; a situation is a behaviour of the host, such as a split completion. The same seed
    and the same calls give the same run. The test bench drives `clock` and, on a plain stream, `dut.flr`.
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
        interface, clock, inputs, outputs = _lanemark.interface_of(lambda name: hasattr(dut, name))
        #: Name of the interface: "stream", "ultrascale", "series7" or "litepcie".
        self.interface = interface
        #: The clock of the device.
        self.clock = getattr(dut, clock)
        #: Address of the host memory.
        self.memory_at = memory_at
        self._dut = dut
        self._inputs = [getattr(dut, name) for name in inputs if hasattr(dut, name)]
        there = [(name, valid) for name, valid in outputs if hasattr(dut, name)]
        controls = [name for name, valid in there if not valid]
        self._controls = [_reader(getattr(dut, name)) for name in controls]
        self._data = [
            (place, [_reader(getattr(dut, name)) for name, valid in there if valid == control])
            for place, control in enumerate(controls)
        ]
        names = [clock, *(name for name in inputs if hasattr(dut, name)), *(name for name, _ in there)]
        ports = [(name, _bits(getattr(dut, name))) for name in names]
        self._native = _lanemark.Partner(
            seed, mode == "adversary", illegal, timeout_clocks, memory_at, memory_bytes, ports
        )
        self._task: Any = None

    async def start(self, clocks: int = 8) -> None:
        """Resets the device for a number of clocks; from then on it is driven and checked in each clock."""
        if self._task is not None:
            raise RuntimeError("start() was called before")
        self._task = cocotb.start_soon(self._run())
        await self.clocks(clocks)
        self._native.set_reset(False)

    async def _run(self) -> None:
        native, inputs = self._native, self._inputs
        if self.interface == "stream" and hasattr(self._dut, "flr"):
            self._dut.flr.value = 0
        nothing: list[str] = []
        while True:
            # Inputs change at the falling edge, and outputs are read in the same time step after they have settled: no simulator
            # has a race there. Combinational paths must have no delay.
            await FallingEdge(self.clock)
            for place, value in native.drive():
                inputs[place].value = value
            await ReadOnly()
            _raise(native.sample(nothing if native.is_in_reset else self._read()))

    def _read(self) -> list[str]:
        """Bits of all outputs, those without a valid signal first; an empty text if the valid signal is not 1."""
        values = [read() for read in self._controls]
        for place, reads in self._data:
            values += [read() for read in reads] if values[place] == "1" else [""] * len(reads)
        return values

    async def clocks(self, clocks: int) -> None:
        """Waits for a number of clocks."""
        for _ in range(clocks):
            await FallingEdge(self.clock)

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
            await FallingEdge(self.clock)

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
