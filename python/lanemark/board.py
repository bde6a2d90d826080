"""A simulated host with its links and cards, driven TLP by TLP: for models of devices written in Python."""

from __future__ import annotations

import os
from typing import NamedTuple, Union

from lanemark import _lanemark
from lanemark.errors import UsageError
from lanemark.platform import Platform

__all__ = ["Accepted", "Board", "Completed", "Fetched", "Region"]


#: Bytes of a payload.
Bytes = Union[bytes, bytearray, memoryview]


def _payload(data: Bytes) -> bytes:
    # `bytes` of a number would be that many zeros.
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def _range(error: Exception, most: int = 2**64 - 1, **arguments: float) -> Exception:
    """The error that names the argument that is negative, or above `most`."""
    for name, value in arguments.items():
        if isinstance(error, OverflowError) and not 0 <= value <= most:
            return UsageError(f"{name}: {value} is out of range: use 0 to {most}")
    return error


class Accepted(NamedTuple):
    """A TLP that a card accepted."""

    at_ns: float
    #: Name in the specification: MWr, MRd, CplD, ...
    kind: str
    address: int
    length: int
    #: First bytes of the payload of a write, at most 8; `Board.card_memory` has all bytes.
    head: bytes


class Completed(NamedTuple):
    """The completion of a read."""

    at_ns: float
    tag: int
    #: The bytes that were read; None if the completion has no data (UR or CA).
    data: bytes | None


class Fetched(NamedTuple):
    """A completed read of a card."""

    #: Time of the last bytes, behind the card's inbound data path.
    at_ns: float
    card: int
    #: The tag of `Board.card_read`.
    tag: int
    #: The bytes that were read; None if a completion has no data (UR or CA).
    data: bytes | None


class Region(NamedTuple):
    """A range of a card's BAR."""

    name: str
    #: Bus address of its first byte.
    address: int
    length: int


class Board:
    """A root complex with host memory, links and cards, with payload bytes, flow-control credits and ordering rules.

    `write`, `read`, `card_write` and `card_read` inject TLPs; `run_until` and `run` simulate them. Times are in ns from the
    start of the board. A TLP is injected at `at_ns` at the earliest, never before now. Threads can share a board: its calls
    run one after another.

    A card that answers a doorbell by writing to host memory:

    >>> from lanemark import Board
    >>> board = Board("card-gen5-x16")
    >>> doorbell = board.regions()[0].address
    >>> board.write(doorbell, (1).to_bytes(8, "little"))
    >>> board.run()
    True
    >>> for tlp in board.accepted():
    ...     board.card_write(board.host_memory_at, b"done", at_ns=tlp.at_ns + 100)
    >>> board.run(), board.host_memory(0, 4)
    (True, b'done')
    """

    def __init__(self, platform: Platform | str | os.PathLike[str]) -> None:
        made = platform if isinstance(platform, Platform) else Platform(platform)
        self._native = _lanemark.Board(made._native)

    def write(self, address: int, data: Bytes, at_ns: float = 0.0) -> None:
        """Writes from the root complex, as a processor does: one TLP for each line of 64 B."""
        try:
            self._native.write(address, _payload(data), at_ns)
        except OverflowError as error:
            raise _range(error, address=address, at_ns=at_ns) from None

    def read(self, address: int, length: int, tag: int = 0, at_ns: float = 0.0) -> None:
        """Reads `length` bytes within one line of 64 B, as a processor does; `completed` has the completion, with this tag."""
        try:
            self._native.read(address, length, tag, at_ns)
        except OverflowError as error:
            raise _range(_range(error, address=address, length=length, at_ns=at_ns), 0xFFFF, tag=tag) from None

    def card_write(self, address: int, data: Bytes, card: int = 0, at_ns: float = 0.0) -> None:
        """Writes from a card, as its DMA engine does: TLPs of at most Max_Payload_Size."""
        try:
            self._native.card_write(address, _payload(data), card, at_ns)
        except OverflowError as error:
            raise _range(error, address=address, card=card, at_ns=at_ns) from None

    def card_read(self, address: int, length: int, tag: int = 0, card: int = 0, at_ns: float = 0.0) -> None:
        """Reads from a card, as its DMA engine does: TLPs of at most Max_Read_Request_Size.

        `fetched` has the bytes, with this tag, once the last completion has passed the card's inbound data path. The board
        does not limit the outstanding reads to the tags of the platform: the model of a device must do that. The platform
        needs a DMA engine (`[dma]`).
        """
        try:
            self._native.card_read(address, length, tag, card, at_ns)
        except OverflowError as error:
            raise _range(error, address=address, length=length, tag=tag, card=card, at_ns=at_ns) from None

    def run_until(self, until_ns: float) -> None:
        """Runs every event up to and including `until_ns`."""
        try:
            self._native.run_until(until_ns)
        except OverflowError as error:
            raise _range(error, until_ns=until_ns) from None

    def next_at(self) -> float | None:
        """Time of the next event in ns; None if there is none."""
        return self._native.next_at_ns()

    @property
    def now_ns(self) -> float:
        """Current simulated time in ns."""
        return self._native.now_ns

    @property
    def hops(self) -> int:
        """Number of TLP transmissions: a TLP that crosses two links counts twice."""
        return self._native.hops

    @property
    def cards(self) -> int:
        """Number of cards."""
        return self._native.cards

    @property
    def host_memory_at(self) -> int:
        """Bus address of the host memory for DMA."""
        return self._native.host_memory_at

    def regions(self, card: int = 0) -> list[Region]:
        """The regions of a card."""
        try:
            return [Region(*region) for region in self._native.regions(card)]
        except OverflowError as error:
            raise _range(error, card=card) from None

    def run(self, most_events: int = 10_000_000) -> bool:
        """Runs until there are no more events, and returns True; returns False after `most_events` events."""
        try:
            return self._native.run(most_events)
        except OverflowError as error:
            raise _range(error, most_events=most_events) from None

    def accepted(self) -> list[Accepted]:
        """The TLPs that cards accepted since the last call."""
        return [Accepted(*tlp) for tlp in self._native.accepted()]

    def completed(self) -> list[Completed]:
        """The completions of `read` since the last call."""
        return [Completed(*completion) for completion in self._native.completed()]

    def fetched(self) -> list[Fetched]:
        """The reads of cards (`card_read`) that were completed since the last call, in order of time."""
        return [Fetched(*read) for read in self._native.fetched()]

    def card_memory(self, region: str, offset: int, length: int, card: int = 0) -> bytes:
        """Bytes of a region of a card."""
        try:
            return self._native.card_memory(region, offset, length, card)
        except OverflowError as error:
            raise _range(error, offset=offset, length=length, card=card) from None

    def host_memory(self, offset: int, length: int) -> bytes:
        """Bytes of the host memory for DMA, from `offset` on: its first 64 MiB."""
        try:
            return self._native.host_memory(offset, length)
        except OverflowError as error:
            raise _range(error, offset=offset, length=length) from None

    def set_card_memory(self, region: str, offset: int, data: Bytes, card: int = 0) -> None:
        """Sets bytes of a region of a card, at no simulated time: what a processor reads there afterwards."""
        try:
            self._native.set_card_memory(region, offset, _payload(data), card)
        except OverflowError as error:
            raise _range(error, offset=offset, card=card) from None

    def set_host_memory(self, offset: int, data: Bytes) -> None:
        """Sets bytes of the host memory for DMA (its first 64 MiB), at no simulated time."""
        try:
            self._native.set_host_memory(offset, _payload(data))
        except OverflowError as error:
            raise _range(error, offset=offset) from None

    def __repr__(self) -> str:
        return f"<lanemark.Board: {self.cards} cards, at {self.now_ns:.0f} ns>"
