"""A board driven TLP by TLP, and a device model in Python."""

import lanemark
import pytest
from lanemark import Board


class Adder:
    """A card that adds: the host stores a descriptor of two numbers, and the card writes their sum and a flag.

    A descriptor is 16 B at offset 64*n of the first region; it takes 200 ns and ends with a write to host memory.
    """

    TIME_NS = 200

    def __init__(self, board):
        self.board = board
        self.region = board.regions()[1]
        self.free_at = 0.0

    def work(self):
        for tlp in self.board.accepted():
            slot = (tlp.address - self.region.address) // 64
            descriptor = self.board.card_memory(self.region.name, slot * 64, 16)
            one, other = (int.from_bytes(descriptor[at : at + 8], "little") for at in (0, 8))
            self.free_at = max(self.free_at, tlp.at_ns) + self.TIME_NS
            answer = (one + other).to_bytes(8, "little") + (1).to_bytes(8, "little")
            self.board.card_write(self.board.host_memory_at + slot * 64, answer, at_ns=self.free_at)


def test_a_device_model_in_python_answers_descriptors_in_host_memory():
    board = Board("card-gen5-x16")
    adder = Adder(board)
    for slot in range(20):
        descriptor = slot.to_bytes(8, "little") + (1000).to_bytes(8, "little")
        board.write(adder.region.address + 64 * slot, descriptor)
    while (at := board.next_at()) is not None:
        board.run_until(at)
        adder.work()
    for slot in range(20):
        answer = board.host_memory(64 * slot, 16)
        assert answer == (1000 + slot).to_bytes(8, "little") + (1).to_bytes(8, "little")
    assert board.now_ns > 20 * Adder.TIME_NS


def test_a_read_completes_with_the_bytes_that_were_written_before():
    board = Board("card-gen5-x16")
    memory = board.regions()[1].address
    board.write(memory + 60, bytes(range(10)))
    board.read(memory + 62, 2, tag=5)
    board.read(memory + 64, 6, tag=6)
    assert board.run() and [(read.tag, read.data) for read in board.completed()] == [(5, b"\x02\x03"), (6, bytes(range(4, 10)))]
    assert [tlp.kind for tlp in board.accepted()] == ["MWr", "MWr", "MRd", "MRd"] and board.accepted() == []


def test_a_read_of_no_region_is_refused():
    board = Board("card-gen5-x16")
    registers, memory = board.regions()
    board.read(registers.address + registers.length + 4096, 8)
    assert board.run() and board.completed()[0].data is None


def test_a_card_writes_more_than_one_tlp():
    board = Board(lanemark.Platform("card-gen5-x16").with_(link={"mps_bytes": 128}))
    data = bytes(index % 251 for index in range(1000))
    board.card_write(board.host_memory_at + 100, data)
    assert board.run() and board.host_memory(100, 1000) == data


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda board: board.read(0, 65), "length: 65 B at 0x0: read 1 to 64 B"),
        (lambda board: board.read(60, 5), "length: 5 B at 0x3c: read 1 to 4 B"),
        (lambda board: board.read(0, 0), "length: 0 B"),
        (lambda board: board.write(2**64 - 8, b"123456789"), "address: 9 B from 0xfffffffffffffff8 on end beyond 2^64"),
        (lambda board: board.card_write(0, b"x", card=1), "card: there is no card 1; the last one is 0"),
        (lambda board: board.run_until(-1.0), "at_ns: "),
        (lambda board: board.run_until(float("nan")), "at_ns: "),
        (lambda board: board.card_memory("none", 0, 1), "region: card 0 has no region 'none'; it has registers, memory"),
        (lambda board: board.card_memory(board.regions()[0].name, 65530, 7), "offset: 7 B from 0xfffa on end beyond 0x10000"),
    ],
)
def test_impossible_calls_are_refused(call, message):
    with pytest.raises(lanemark.UsageError) as error:
        call(Board("card-gen5-x16"))
    assert str(error.value).startswith(message)
