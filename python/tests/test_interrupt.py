"""Ctrl-C: every long call raises KeyboardInterrupt soon, and leaves no work behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import lanemark
import pytest

#: Time for a call to be at work.
AT_WORK_S = 0.3
#: A call ends within this time after Ctrl-C, also on a busy machine. It looks at signals every 20 ms.
PROMPTLY_S = 5.0

TRANSFERS = dict(sizes="64..4M*4", iterations=100_000, no_fast_forward=True)


def draft():
    unknown = '{ unknown = "to be fitted" }'
    keys = "read_request_ns write_request_ns beat_ns descriptor_ns tags".split()
    dma = "\n".join(f"{key} = {unknown}" for key in keys)
    text = f'schema = 2\nname = "mine"\nextends = "card-gen5-x16"\n[memory]\nread_ns = {unknown}\n[dma]\n{dma}\n'
    return lanemark.Platform.from_toml(text)


def figures():
    """Curves with many sizes, from a platform that the fit cannot follow: it tries every mechanism."""
    sizes = [64 * count for count in range(1, 60)]
    curves = {"dma_read_bandwidth": 5e9, "dma_write_bandwidth": 7e9}
    rows = [(name, size, f"{most * size / (size + 300 + size % 448) / 1e9} GB/s") for name, most in curves.items() for size in sizes]
    return dict(zip(("question", "size_bytes", "figure"), map(list, zip(*rows))))


def long_sweep(log):
    space = {"schema": 1, "platforms": ["card-gen5-x16"], "by": "simulation", "no_fast_forward": True,
             "question": [{"name": "dma_read_bandwidth", "flows": "host:0", "sizes": "1M,4M", "iterations": [10_000, 20_000]}]}
    return lanemark.sweep(space, log, executor=lanemark.InThisProcess(), progress=False)


CALLS = {
    "fit": lambda folder: lanemark.fit(draft(), figures()),
    "fit of numbers only": lambda folder: lanemark.fit(draft(), figures(), keep_structure=True),
    "simulate": lambda folder: lanemark.simulate("card-gen5-x16", "dma_read_bandwidth", progress=False, **TRANSFERS),
    "bench": lambda folder: lanemark.bench("host", budget=60, interval=0.001, progress=False),
    "trace": lambda folder: lanemark.trace("card-gen5-x16", "dma_read_bandwidth", sizes="64M", iterations=10_000),
    "advise": lambda folder: lanemark.advise("card-gen5-x16", sizes=[1 << shift for shift in range(13, 25)]),
    "sweep": lambda folder: long_sweep(folder / "log.jsonl"),
}


def working_threads():
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
        except OSError:
            continue
    return names.count("lanemark")


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_a_long_call_and_its_work(call, tmp_path):
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(AT_WORK_S, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            CALLS[call](tmp_path)
            timer.cancel()
    finally:
        timer.cancel()
    assert time.monotonic() - sent[0] < PROMPTLY_S
    assert working_threads() == 0


SWEEP = """
import signal, sys, threading, lanemark
# A shell's background job, such as these tests, ignores Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
space = {"schema": 1, "platforms": ["card-gen5-x16"], "by": "simulation", "no_fast_forward": True,
         "with": {"dma.tags": "8..71+1"},
         "question": [{"name": "dma_read_bandwidth", "flows": "host:0", "sizes": "1M", "iterations": 20000}]}
if __name__ == "__main__":
    try:
        lanemark.sweep(space, sys.argv[1], progress=False)
    except KeyboardInterrupt:
        # A thread that is left closes pipes while the interpreter ends: a traceback, now and then.
        print("interrupted, threads:", threading.active_count(), flush=True)
        sys.stdin.read()
"""


def in_group(group):
    """Processes of a group that have not ended."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                state, _, its_group = file.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            found.append(int(name))
    return found


@pytest.mark.parametrize("after_s", [0.6, 3.0])
def test_ctrl_c_in_a_terminal_ends_the_workers_of_a_sweep_silently(after_s, tmp_path):
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    words = [sys.executable, str(script), str(tmp_path / "log.jsonl")]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # A terminal sends the signal to a process and its workers.
    with subprocess.Popen(words, start_new_session=True, **pipes) as process:
        until = time.monotonic() + 60
        while len(in_group(process.pid)) < 3 and time.monotonic() < until:
            time.sleep(0.02)
        # Workers that start, and workers that simulate.
        time.sleep(after_s)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "interrupted, threads: 1\n"
        until = time.monotonic() + PROMPTLY_S
        # The tracker of the semaphores ends with the process.
        while len(in_group(process.pid)) > 2 and time.monotonic() < until:
            time.sleep(0.02)
        assert len(in_group(process.pid)) <= 2
        out, error = process.communicate("", timeout=60)
    assert (out, error, process.returncode) == ("", "", 0)


def test_ctrl_c_ends_formulas_and_keeps_their_answers():
    sent = []

    def interrupt(done, steps, what):
        # Steps that came meanwhile are told together.
        if done >= 2 and not sent:
            sent.append(done)
            signal.raise_signal(signal.SIGINT)

    tags = {"dma.tags": list(range(8, 72))}
    with pytest.raises(lanemark.Interrupted) as stopped:
        lanemark.predict("card-gen5-x16", ["dma_read_bandwidth", "dma_write_bandwidth"], with_=tags, progress=interrupt)
    assert len(stopped.value.record.answers) >= 2
