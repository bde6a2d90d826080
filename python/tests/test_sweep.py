"""Sweeps: any executor, killed workers, and the log of the command."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import lanemark
import pytest

SPACE = {
    "schema": 1,
    "platforms": ["card-gen5-x16"],
    "by": "simulation",
    "with": {"dma.tags": "8..64*2", "link.latency_ns": "50..250+50"},
    "question": [{"name": "dma_read_bandwidth", "flows": "host:0", "sizes": "64..16K*4"}],
}
POINTS = 4 * 5 * 5


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    log = tmp_path_factory.mktemp("sweep") / "log.jsonl"
    return lanemark.sweep(SPACE, log, executor=lanemark.InThisProcess(), progress=False).to_csv()


@pytest.mark.parametrize("make", [lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(2)])
def test_the_table_does_not_depend_on_the_executor(make, undisturbed, tmp_path):
    with make() as executor:
        table = lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=executor, progress=False)
    assert len(table) == POINTS and table.to_csv() == undisturbed


def test_a_table_has_its_axes_as_dimensions(tmp_path):
    table = lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=lanemark.InThisProcess(), progress=False)
    assert dict(table.to_xarray().delivered_rate_bytes_per_s.sizes) == {"dma.tags": 4, "link.latency_ns": 5, "size_bytes": 5}


class Killed:
    """Makes pools of which a worker is killed after some tasks, the first `times` times."""

    def __init__(self, times):
        self.left = times
        self.made = 0

    def __call__(self):
        self.made += 1
        pool = ProcessPoolExecutor(2)
        if self.left > 0:
            self.left -= 1
            submit = pool.submit
            after = random.Random(self.left).randrange(1, 5)

            def then_kill(*call):
                nonlocal after
                after -= 1
                return submit(os._exit, 1) if after == 0 else submit(*call)

            pool.submit = then_kill
        return pool


def test_killed_workers_lose_nothing(undisturbed, tmp_path, monkeypatch):
    monkeypatch.setitem(lanemark._sweep._AT_A_TIME, "simulation", 7)
    killed = Killed(3)
    table = lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=killed, progress=False)
    assert killed.made == 4 and table.to_csv() == undisturbed


def test_workers_that_always_die_end_the_sweep_with_an_error(tmp_path):
    with pytest.raises(lanemark.FailedError, match="100 points are left"):
        lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=lambda: Dead(1), progress=False)


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        (lambda: None, "executor: the function returned a NoneType, and no executor; use a concurrent.futures.Executor"),
        (5, "executor: a int is no executor, and no function that makes one; use a concurrent.futures.Executor"),
    ],
)
def test_what_is_no_executor_is_refused(executor, message, tmp_path):
    with pytest.raises(lanemark.UsageError, match=message):
        lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=executor, progress=False)


class KilledWorker(Exception):
    """As Dask's, which gives up a task."""


class Given(ThreadPoolExecutor):
    """Fails from the second task on."""

    tasks = 0

    def submit(self, *call):
        self.tasks += 1
        if self.tasks == 1:
            return super().submit(*call)
        future = Future()
        future.set_exception(KilledWorker("given up"))
        return future


def test_a_task_that_dask_gives_up_ends_the_sweep_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(lanemark._sweep._AT_A_TIME, "simulation", 7)
    log = tmp_path / "log.jsonl"
    with pytest.raises(lanemark.FailedError, match="workers were killed, and .* points are left: call sweep again"):
        with Given(1) as executor:
            lanemark.sweep(SPACE, log, executor=executor, progress=False)


class Dead(ProcessPoolExecutor):
    def submit(self, *call):
        return super().submit(os._exit, 1)


def test_a_run_begun_by_the_command_is_finished_here(undisturbed, tmp_path):
    space = tmp_path / "space.toml"
    space.write_text(lanemark._lanemark.toml(json.dumps({**SPACE, "with": {"dma.tags": "8", "link.latency_ns": "50..250+50"}})))
    log = tmp_path / "log.jsonl"
    words = ["sweep", str(space), "--log", str(log)]
    subprocess.run([sys.executable, "-m", "lanemark", *words], check=True, capture_output=True, timeout=120)
    before = log.read_bytes()
    steps = []
    table = lanemark.sweep(SPACE, log, executor=lanemark.InThisProcess(), progress=lambda *step: steps.append(step))
    assert steps[0][:2] == (25, 100) and log.read_bytes().startswith(before)
    assert table.to_csv() == undisturbed


def test_a_run_begun_here_is_finished_by_the_command(undisturbed, tmp_path):
    space, log = tmp_path / "space.toml", tmp_path / "log.jsonl"
    space.write_text(lanemark._lanemark.toml(json.dumps(SPACE)))
    first = {**SPACE, "with": {"dma.tags": "8", "link.latency_ns": "50..250+50"}}
    assert len(lanemark.sweep(first, log, executor=lanemark.InThisProcess(), progress=False)) == 25
    before = log.read_bytes()
    words = ["sweep", str(space), "--log", str(log)]
    done = subprocess.run([sys.executable, "-m", "lanemark", *words], check=True, capture_output=True, text=True, timeout=120)
    assert "75 of 100 points run" in done.stdout + done.stderr and log.read_bytes().startswith(before)
    steps = []
    table = lanemark.sweep(SPACE, log, progress=lambda *step: steps.append(step))
    assert steps == [] and table.to_csv() == undisturbed


def test_an_interrupted_sweep_keeps_its_rows_and_frees_the_log(undisturbed, tmp_path, monkeypatch):
    monkeypatch.setitem(lanemark._sweep._AT_A_TIME, "simulation", 7)

    def interrupt(done, steps, what):
        if done >= 14:
            raise KeyboardInterrupt

    for executor in (lanemark.InThisProcess(), None):
        log = tmp_path / f"{executor is None}.jsonl"
        with pytest.raises(KeyboardInterrupt):
            lanemark.sweep(SPACE, log, executor=executor, progress=interrupt)
        assert 14 <= len(log.read_text().splitlines()) < POINTS
        table = lanemark.sweep(SPACE, log, executor=lanemark.InThisProcess(), progress=False)
        assert table.to_csv() == undisturbed


class Changing(lanemark.InThisProcess):
    """An executor that changes results."""

    def __init__(self, change):
        self.change = change

    def submit(self, function, /, *args, **kwargs):
        return super().submit(lambda: self.change(function(*args, **kwargs)))


def test_results_that_an_executor_has_changed_are_refused(tmp_path):
    for change, what in [(lambda rows: rows[1:], "0 rows"), (lambda rows: None, "a NoneType")]:
        with pytest.raises(lanemark.FailedError, match=f"^executor: a call returned {what} instead of 1 rows"):
            lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=Changing(change))
    assert (tmp_path / "log.jsonl").read_text() == ""


class Full(Executor):
    """An executor without a free thread."""

    def submit(self, function, /, *args, **kwargs):
        raise RuntimeError("can't start new thread")


def test_an_executor_that_cannot_submit_keeps_its_own_error(tmp_path):
    with pytest.raises(RuntimeError, match="^can't start new thread$"):
        lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=Full())


def test_an_executor_that_was_shut_down_is_refused(tmp_path):
    workers = ThreadPoolExecutor()
    workers.shutdown()
    with pytest.raises(lanemark.UsageError, match="^executor: .*after shutdown: give a new one"):
        lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=workers)


LONG = pytest.mark.skipif(not os.environ.get("LANEMARK_LONG"), reason="takes minutes: make test-long")


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=LONG)])
def test_killed_workers_of_dask_lose_nothing(kills, undisturbed, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    monkeypatch.setitem(lanemark._sweep._AT_A_TIME, "simulation", 1)
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    killed = []
    # By default, the fourth worker that dies with a task takes the task with it, and a worker that is dead 15 s after an
    # earlier one of its name died is given up.
    patience = {"distributed.scheduler.allowed-failures": 100, "distributed.deploy.lost-worker-timeout": "1 hour"}
    with dask.config.set(patience):
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:

            def kill(done, steps, what):
                if len(killed) < kills and done < POINTS:
                    victim = random.choice(living_workers(client, killed))
                    os.kill(victim, signal.SIGKILL)
                    killed.append(victim)

            with client.get_executor() as executor:
                table = lanemark.sweep(SPACE, tmp_path / "log.jsonl", executor=executor, progress=kill)
    assert len(killed) == len(set(killed)) == kills
    assert table.to_csv() == undisturbed


def living_workers(client, killed):
    """The processes of both workers, when both answer: one that dies as it starts is never replaced."""
    until = time.monotonic() + 60
    while True:
        living = client.run(os.getpid, on_error="ignore").values()
        living = [pid for pid in living if isinstance(pid, int) and pid not in killed]
        if len(living) == 2:
            return living
        assert time.monotonic() < until, "no new worker has started"
        time.sleep(0.05)
