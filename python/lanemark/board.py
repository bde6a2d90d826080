"""A simulated host with its links and cards, driven TLP by TLP: for models of devices written in Python."""

from __future__ import annotations

import os
from typing import NamedTuple, Union

from lanemark import _lanemark
from lanemark.platform import Platform

__all__ = ["Accepted", "Board", "Completed", "Fetched", "Region"]


#: Bytes of a payload.
Bytes = Union[bytes, bytearray, memoryview]


def _payload(data: Bytes) -> bytes:
    # `bytes` of a number would be that many zeros.
    return data if isinstance(data, bytes) else bytes(memoryview(data))


class Accepted(NamedTuple):
    """A TLP that a card accepted."""

    at_ns: float
    #: Name in the specification: MWr, MRd, CplD, ...
    kind: str
    address: int
    length: int
    #: The payload, at most up to the end of its first 8 bytes; `Board.card_memory` has all bytes.
    head: bytes


class Completed(NamedTuple):
    """The completion of a read."""

    at_ns: float
    tag: int
    #: The bytes that were read; None if the read was refused.
    data: bytes | None


class Fetched(NamedTuple):
    """A completed read of a card."""

    #: Time of the last bytes, behind the card's inbound data path.
    at_ns: float
    card: int
    #: The tag of `Board.card_read`.
    tag: int
    #: The bytes that were read; None if a part of the read was refused.
    data: bytes | None


class Region(NamedTuple):
    """A range of a card's BAR."""

    name: str
    #: Bus address of its first byte.
    address: int
    length: int


class Board:
    """Endpoints and links with credits, ordering and bytes, driven by `write`, `read`, `card_write`, `card_read` and
    `run_until`.

    Times are in ns from the start of the board; calls inject TLPs at `at_ns` at the earliest, never before now.

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
        """Writes from the root, as a processor does: one TLP for each line of 64 B."""
        self._native.write(address, _payload(data), at_ns)

    def read(self, address: int, length: int, tag: int = 0, at_ns: float = 0.0) -> None:
        """Reads `length` bytes within one line of 64 B from the root; `completed` has the completion, with this tag."""
        self._native.read(address, length, tag, at_ns)

    def card_write(self, address: int, data: Bytes, card: int = 0, at_ns: float = 0.0) -> None:
        """Writes from a card, as its DMA engine does: TLPs of at most Max_Payload_Size."""
        self._native.card_write(address, _payload(data), card, at_ns)

    def card_read(self, address: int, length: int, tag: int = 0, card: int = 0, at_ns: float = 0.0) -> None:
        """Reads from a card, as its DMA engine does: TLPs of at most Max_Read_Request_Size.

        `fetched` has the bytes, with this tag, once the last completion has passed the card's inbound data path. The board
        does not limit the outstanding reads to the tags of the platform: a model of a device does.
        """
        self._native.card_read(address, length, tag, card, at_ns)

    def run_until(self, until_ns: float) -> None:
        """Runs every event up to and including `until_ns`."""
        self._native.run_until(until_ns)

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
        return [Region(*region) for region in self._native.regions(card)]

    def run(self, most_events: int = 10_000_000) -> bool:
        """Runs until nothing is left to do; returns False after `most_events` events."""
        return self._native.run(most_events)

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
        return self._native.card_memory(region, offset, length, card)

    def host_memory(self, offset: int, length: int) -> bytes:
        """Bytes of the host memory for DMA."""
        return self._native.host_memory(offset, length)

    def set_card_memory(self, region: str, offset: int, data: Bytes, card: int = 0) -> None:
        """Sets bytes of a region of a card, at no simulated time: what a processor reads there afterwards."""
        self._native.set_card_memory(region, offset, _payload(data), card)

    def set_host_memory(self, offset: int, data: Bytes) -> None:
        """Sets bytes of the host memory for DMA, at no simulated time."""
        self._native.set_host_memory(offset, _payload(data))

    def __repr__(self) -> str:
        return f"<lanemark.Board: {self.cards} cards, at {self.now_ns:.0f} ns>"
