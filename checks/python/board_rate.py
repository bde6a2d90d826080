"""Measures `lanemark.Board`: prints one line `LOOP NUMBER`, TLPs per second of processor time, for each round of each loop."""

import time

from lanemark import Board

WRITES = 50_000
ROUNDS = 5
TOGETHER = 1000
DATA = bytes(range(64))


def tlps_per_s(loop):
    """TLPs that `loop` sends, by the seconds of processor time that it takes."""
    board = Board("card-gen5-x16")
    memory = next(region for region in board.regions() if region.name == "memory")
    start = time.process_time()
    tlps = loop(board, memory.address)
    return tlps / (time.process_time() - start)


def taken_together(board, address):
    """Writes to the card in groups; the TLPs of a group are taken when all of them were accepted."""
    accepted = 0
    for first in range(0, WRITES, TOGETHER):
        for number in range(first, first + TOGETHER):
            board.write(address + number * 64 % (1 << 20), DATA)
        assert board.run()
        accepted += len(board.accepted())
    assert accepted == WRITES
    return WRITES


def answered_one_by_one(board, address):
    """A device in Python that answers each write with one to host memory, event by event."""
    answered = 0
    for first in range(0, WRITES // 2, TOGETHER):
        for number in range(first, first + TOGETHER):
            board.write(address + number * 64 % (1 << 20), DATA)
        while (at_ns := board.next_at()) is not None:
            board.run_until(at_ns)
            for tlp in board.accepted():
                board.card_write(board.host_memory_at + answered * 64 % (1 << 20), DATA, at_ns=tlp.at_ns)
                answered += 1
    assert answered == WRITES // 2
    return 2 * answered


for _ in range(ROUNDS):
    for loop in (taken_together, answered_one_by_one):
        print(loop.__name__, f"{tlps_per_s(loop):.0f}", flush=True)
