"""A board driven TLP by TLP, and a device model in Python."""

import threading

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


class Summer:
    """A card that reads a buffer of host memory by DMA and writes the sum of its 32-bit words behind a descriptor.

    A doorbell is a store of the descriptor's offset in host memory: 8 B offset of the buffer, 8 B length, 8 B answer, 8 B
    flag. Up to `TAGS` descriptors are in work; the others wait.
    """

    TAGS, WORK_NS = 4, 50

    def __init__(self, board):
        self.board, self.at = board, board.host_memory_at
        self.doorbell = board.regions()[0].address
        self.waiting, self.free, self.jobs = [], list(range(self.TAGS)), {}
        self.most = 0

    def begin(self, now):
        while self.waiting and self.free:
            tag = self.free.pop()
            self.jobs[tag] = (self.waiting.pop(0), None)
            self.board.card_read(self.at + self.jobs[tag][0], 16, tag=tag, at_ns=now)
        self.most = max(self.most, len(self.jobs))

    def work(self):
        for tlp in self.board.accepted():
            if tlp.address == self.doorbell:
                self.waiting.append(int.from_bytes(tlp.head, "little"))
                self.begin(tlp.at_ns)
        for read in self.board.fetched():
            descriptor, length = self.jobs[read.tag]
            if length is None:
                start, length = (int.from_bytes(read.data[at : at + 8], "little") for at in (0, 8))
                self.jobs[read.tag] = (descriptor, length)
                self.board.card_read(self.at + start, length, tag=read.tag, at_ns=read.at_ns)
                continue
            words = (read.data[at : at + 4] for at in range(0, length, 4))
            total = sum(int.from_bytes(word, "little") for word in words)
            answer = total.to_bytes(8, "little") + (1).to_bytes(8, "little")
            self.board.card_write(self.at + descriptor + 16, answer, at_ns=read.at_ns + self.WORK_NS)
            del self.jobs[read.tag]
            self.free.append(read.tag)
            self.begin(read.at_ns)


@pytest.mark.parametrize("name", ["card-gen5-x16", "card-gen5-x16-iommu", "rosta-virtex7"])
def test_a_device_model_in_python_reads_descriptors_and_buffers_by_dma(name):
    board = Board(name)
    summer = Summer(board)
    for job in range(12):
        # Buffers cross pages, and their length is no multiple of a read request.
        start, words = 8192 + 5000 * job, 300 + 7 * job
        board.set_host_memory(start, b"".join((job * index).to_bytes(4, "little") for index in range(words)))
        board.set_host_memory(64 * job, start.to_bytes(8, "little") + (4 * words).to_bytes(8, "little"))
        board.write(summer.doorbell, (64 * job).to_bytes(8, "little"))
    while (at := board.next_at()) is not None:
        board.run_until(at)
        summer.work()
    for job in range(12):
        answer, flag = (int.from_bytes(board.host_memory(64 * job + at, 8), "little") for at in (16, 24))
        assert (answer, flag) == (job * sum(range(300 + 7 * job)), 1)
    assert summer.most == Summer.TAGS and not summer.jobs


def test_a_read_of_a_card_takes_a_round_trip_and_completes_once_with_all_its_bytes():
    board = Board(lanemark.Platform("card-gen5-x16").with_(link={"mrrs_bytes": 128}))
    data = bytes(index % 253 for index in range(1000))
    board.set_host_memory(3900, data)
    board.card_read(board.host_memory_at + 3900, 1000, tag=77)
    board.card_read(board.host_memory_at + 3900, 1, tag=78)
    assert board.fetched() == [] and board.run()
    (long, short) = sorted(board.fetched(), key=lambda read: read.tag)
    assert (long.tag, long.card, long.data) == (77, 0, data) and short.data == data[:1]
    assert long.at_ns > 300 and board.fetched() == []


def test_a_read_by_dma_outside_of_every_mapping_is_refused():
    board = Board("card-gen5-x16-iommu")
    board.card_read(1 << 52, 256, tag=3)
    assert board.run() and [(read.tag, read.data) for read in board.fetched()] == [(3, None)]


def test_a_processor_reads_what_the_device_model_has_set():
    board = Board("card-gen5-x16")
    registers = board.regions()[0]
    board.set_card_memory(registers.name, 256, b"\x01\x02\x03\x04")
    board.read(registers.address + 256, 4)
    assert board.run() and board.completed()[0].data == b"\x01\x02\x03\x04"


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
        (lambda board: board.card_read(0, 0), "length: 0 B: read at least 1 B"),
        (lambda board: board.card_read(0, 1, card=1), "card: there is no card 1; the last one is 0"),
        (lambda board: [board.card_read(0, 64 << 20) for _ in range(3)], "length: 67108864 B: too many read requests are outstanding"),
        (lambda board: board.set_card_memory("none", 0, b"1"), "region: card 0 has no region 'none'; it has registers, memory"),
        (lambda board: board.run_until(-1.0), "until_ns: "),
        (lambda board: board.run_until(float("nan")), "until_ns: "),
        (lambda board: board.card_memory("none", 0, 1), "region: card 0 has no region 'none'; it has registers, memory"),
        (lambda board: board.write(-1, b"1"), "address: -1 is out of range: use 0 to 18446744073709551615"),
        (lambda board: board.write(0, b"1", at_ns=10**400), "at_ns: 1000"),
        (lambda board: board.read(0, 8, tag=65536), "tag: 65536 is out of range: use 0 to 65535"),
        (lambda board: board.read(2**64, 8, tag=1), "address: 18446744073709551616 is out of range"),
        (lambda board: board.card_write(0, b"1", card=-1), "card: -1 is out of range"),
        (lambda board: board.card_read(0, 8, tag=-1), "tag: -1 is out of range: use 0 to 18446744073709551615"),
        (lambda board: board.regions(2**64), "card: 18446744073709551616 is out of range"),
        (lambda board: board.run(-1), "most_events: -1 is out of range"),
        (lambda board: board.run_until(10**400), "until_ns: 1000"),
        (lambda board: board.card_memory("registers", 0, -1), "length: -1 is out of range"),
        (lambda board: board.host_memory(-1, 1), "offset: -1 is out of range"),
        (lambda board: board.set_card_memory("registers", -1, b"1"), "offset: -1 is out of range"),
        (lambda board: board.set_host_memory(2**64, b"1"), "offset: 18446744073709551616 is out of range"),
        (lambda board: board.card_memory(board.regions()[0].name, 65530, 7), "offset: 7 B from 0xfffa on end beyond 0x10000"),
    ],
)
def test_impossible_calls_are_refused(call, message):
    with pytest.raises(lanemark.UsageError) as error:
        call(Board("card-gen5-x16"))
    assert str(error.value).startswith(message)


def test_a_number_is_no_payload():
    board = Board("card-gen5-x16")
    with pytest.raises(TypeError):
        board.write(board.regions()[0].address, 5)


def test_threads_that_share_a_board_wait_for_each_other():
    board = Board("card-gen5-x16")
    doorbell = board.regions()[0].address
    failures = []

    def write(number):
        try:
            for count in range(200):
                board.write(doorbell + 8 * number, count.to_bytes(8, "little"))
                board.run()
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == [] and len(board.accepted()) == 800


def test_code_that_runs_during_a_call_does_not_wait_for_its_board(monkeypatch):
    board = Board("card-gen5-x16")
    seen = []
    init = lanemark.UsageError.__init__

    def uses_the_board(self, message, record=None):
        try:
            board.next_at()
        except RuntimeError as error:
            seen.append(str(error))
        init(self, message, record)

    monkeypatch.setattr(lanemark.UsageError, "__init__", uses_the_board)
    with pytest.raises(lanemark.UsageError):
        board.card_write(board.host_memory_at, b"x", card=9)
    assert seen == ["this board is in use by a call that is not finished"]
    assert board.next_at() is None
