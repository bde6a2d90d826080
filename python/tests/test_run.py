"""Runs: the same answers as the command, progress, and Ctrl-C."""

import json
import signal
import subprocess
import sys
import threading
import time

import lanemark
import pytest

SLOW = dict(questions=["dma_read_bandwidth", "dma_write_bandwidth"], sizes="64..4M*4", iterations=100, no_fast_forward=True)


def command(*words):
    return subprocess.run([sys.executable, "-m", "lanemark", *words], capture_output=True, text=True, timeout=120)


def test_answers_are_those_of_the_command():
    words = ["bench", "--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--sizes", "64,4K", "--json"]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    record = lanemark.simulate("card-gen5-x16", "dma_read_bandwidth", sizes=[64, 4096])
    assert record.answers == json.loads(done.stdout)["answers"]


def test_the_command_in_the_package_ends_with_its_exit_codes():
    assert command("--version").stdout.startswith("lanemark 0.")
    assert command("platforms").returncode == 0
    bad = command("bench", "--on", "no-such-card")
    assert bad.returncode == 2 and bad.stderr.startswith("lanemark: 'no-such-card' is not a target")


def test_the_command_in_the_package_starts_itself_again_for_several_runs(tmp_path):
    words = ["bench", "--on", "card-gen5-x16", "--question", "dma_read_latency", "--sizes", "64", "--repeat", "2"]
    done = command(*words, "--record", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    records = [lanemark.Record.load(path) for path in sorted((tmp_path / "runs").iterdir())]
    assert len(records) == 2 and records[0].answers == records[1].answers


def test_a_record_file_is_the_record_again(tmp_path):
    record = lanemark.predict("card-gen5-x16", "dma_read_latency", sizes=64)
    record.save(tmp_path / "record.json")
    assert lanemark.Record.load(tmp_path / "record.json").to_dict() == record.to_dict()
    assert (record.report(tmp_path / "record.html") is None) and (tmp_path / "record.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(("figure", "problem"), [(-5.0, "-5.0, below 0"), (1e308, "1e308, above 1e18")])
def test_a_record_file_with_an_impossible_figure_is_refused(figure, problem, tmp_path):
    document = lanemark.simulate("card-gen5-x16", "dma_read_latency", sizes=64).to_dict()
    document["answers"][0]["latency_ns"]["median"] = figure
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(lanemark.UsageError, match=f"bad.json: dma_read_latency on .*median of 'latency_ns' is {problem}"):
        lanemark.Record.load(tmp_path / "bad.json")


def test_what_is_no_record_is_refused_with_what_to_use(tmp_path):
    record = lanemark.simulate("card-gen5-x16", "dma_read_latency", sizes=64)
    for call, message in [
        (lambda: lanemark.Record("a.json"), r"^'a.json' is not a record of this process: use lanemark.Record.load\(path\)"),
        (lambda: lanemark.fleet([record]), '^records: a list does not name the machines: use a dict such as {"node1": '),
        (lambda: lanemark.fleet({"a": record}, [3]), "^diagnoses: a list does not name the machines"),
        (lambda: lanemark.fleet({"a": 5}), "^records: a: a int is no record: use a lanemark.Record or the path"),
        (lambda: lanemark.compare(record, [5]), "^record 1: a int is no record"),
    ]:
        with pytest.raises(lanemark.UsageError, match=message):
            call()


def test_progress_begins_below_and_ends_at_all_steps():
    steps = []
    lanemark.simulate("card-gen5-x16", "dma_read_bandwidth", sizes="64..64K", progress=lambda *step: steps.append(step))
    assert steps and steps[-1][0] == steps[-1][1] > 0
    assert [step[0] for step in steps] == sorted(step[0] for step in steps)


def test_an_error_of_the_progress_function_ends_the_run():
    def fail(done, steps, what):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        lanemark.simulate("card-gen5-x16", progress=fail, **SLOW)
    with pytest.raises(TypeError, match="progress: 3 is neither"):
        lanemark.simulate("card-gen5-x16", progress=3, **SLOW)


def test_ctrl_c_ends_a_run_and_keeps_the_answers_so_far():
    def interrupt(done, steps, what):
        if done >= 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as stopped:
        lanemark.simulate("card-gen5-x16", progress=interrupt, **SLOW)
    assert isinstance(stopped.value, lanemark.Interrupted)
    record = stopped.value.record
    assert record.to_dict()["interrupted"] is True
    assert 2 <= len(record.answers) < 18


def test_other_threads_run_meanwhile():
    counted = 0
    ended = threading.Event()

    def count():
        nonlocal counted
        while not ended.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begun = time.monotonic()
    lanemark.simulate("card-gen5-x16", "dma_read_bandwidth", sizes="4K", iterations=2000, no_fast_forward=True)
    lasted = time.monotonic() - begun
    ended.set()
    thread.join()
    # A held lock would let it count once or twice.
    assert lasted < 0.05 or counted > 5
