"""Sweeps: many points of platforms, changed keys and questions, in one process or many."""

from __future__ import annotations

import array
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing.context import SpawnContext
from typing import Any, Union

from lanemark import _lanemark
from lanemark._progress import Progress, shown
from lanemark.errors import FailedError, UsageError
from lanemark.platform import as_json, path_text
from lanemark.table import Table

#: A space: a TOML file, or a document in its shape.
Space = Union[str, "os.PathLike[str]", Mapping[str, Any]]

#: Points that a worker takes at a time: formulas of consecutive points share an open platform, and a simulation may take long.
_AT_A_TIME = {"formulas": 2048, "simulation": 1}
#: Chunks that wait for workers at a time.
_WAITING = 256
#: Times that the work of killed workers is given to new ones, without any further point done.
_ATTEMPTS = 5
#: Time that idle or terminated processes have to end.
_CLOSE_S = 10.0


def _rows(file: str, text: str, indices: list[int]) -> list[str]:
    """Rows of these points, in a worker."""
    key = (file, text)
    if key not in _OPEN:
        _OPEN.clear()
        _OPEN[key] = _lanemark.Points(file, text)
    return _OPEN[key].rows(indices)


#: The points of the last space, in a worker.
_OPEN: dict[tuple[str, str], _lanemark.Points] = {}


def sweep(
    space: Space,
    log: str | os.PathLike[str] | None = None,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    progress: Progress = None,
) -> Table:
    """Runs every point of a space that is not in the log, and returns the table of all its points.

    The log is that of `lanemark sweep`: each continues a sweep that the other began. Rows are appended as they are ready, so
    an interruption or a killed worker loses only unfinished points. The table does not depend on the executor.

    Args:
        space: A space file, or a document in its shape.
        log: The log [default: the space file with the extension .jsonl; a document needs a log].
        executor: Any `concurrent.futures.Executor`, such as that of a Dask client (`client.get_executor()`), or a function
            that makes one. If workers are killed, the function is called again, and the lost points are run again
            [default: such a function, with a new process per processor; a script then needs
            `if __name__ == "__main__":`].
        progress: As for `bench`, in points.

    Raises:
        FailedError: Workers of an executor object were killed, or those of a function five times without a finished point;
            call `sweep` again to continue.

    >>> import lanemark, tempfile
    >>> space = {"schema": 1, "platforms": ["card-gen5-x16"], "with": {"dma.tags": "16..64*2"},
    ...          "question": [{"name": "dma_read_bandwidth", "flows": "host:0", "sizes": "4K,64K"}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = lanemark.sweep(space, f"{folder}/log.jsonl", executor=lanemark.InThisProcess())
    >>> len(table), table["dma.tags"]
    (6, [16, 16, 32, 32, 64, 64])
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        # A new process reads the script again, up to the call.
        raise UsageError('sweep starts processes: put the call below `if __name__ == "__main__":`')
    file, text = _text(space)
    if log is None:
        if isinstance(space, Mapping):
            raise UsageError("log: a space that is no file needs the path of a log")
        log = os.path.splitext(file)[0] + ".jsonl"
    points = _lanemark.Points(file, text)
    opened = _lanemark.SweepLog(os.fspath(log))
    try:
        _run(points, opened, (file, text), executor, progress)
    finally:
        opened.close()
    table, axes = _lanemark.sweep_table(os.fspath(log), points)
    return Table(table, axes)


def read_sweep(log: str | os.PathLike[str]) -> Table:
    """The table of all points in the log of a sweep."""
    table, axes = _lanemark.sweep_table(os.fspath(log), None)
    return Table(table, axes)


class InThisProcess(Executor):
    """An executor that runs each call immediately, in this process."""

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs the call and returns its finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _text(space: Space) -> tuple[str, str]:
    if isinstance(space, Mapping):
        return "the space", _lanemark.toml(as_json(space))
    file = path_text("space", space)
    try:
        with open(file, encoding="utf-8") as opened:
            return file, opened.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"reading {file}: {error}") from error


def _left(points: _lanemark.Points, log: _lanemark.SweepLog) -> array.array[int]:
    """Numbers of the points that are not in the log: 8 MB for a million."""
    left = array.array("Q")
    left.frombytes(log.left(points))
    return left


def _chunks(indices: array.array[int], length: int) -> Iterator[list[int]]:
    for start in range(0, len(indices), length):
        yield indices[start : start + length].tolist()


def _run(
    points: _lanemark.Points,
    log: _lanemark.SweepLog,
    space: tuple[str, str],
    executor: Executor | Callable[[], Executor] | None,
    progress: Progress,
) -> None:
    left = _left(points, log)
    given = executor if isinstance(executor, Executor) else None
    make = _Processes if executor is None or isinstance(executor, Executor) else executor
    if not callable(make):
        raise UsageError(f"executor: a {type(executor).__name__} is no executor, and no function that makes one{_HINT}")
    with shown(progress) as tell:
        done = len(points) - len(left)
        attempts = 0
        while left:
            if tell is not None:
                tell(done, len(points), "points")
            workers = given or make()
            if not isinstance(workers, Executor):
                raise UsageError(f"executor: the function returned a {type(workers).__name__}, and no executor{_HINT}")
            before = len(left)

            def keep(indices: list[int], rows: list[str]) -> None:
                nonlocal done
                _check(indices, rows)
                log.append(rows)
                done += len(rows)
                if tell is not None:
                    tell(done, len(points), "points")

            try:
                _submit(workers, space, _chunks(left, _AT_A_TIME[points.by]), keep)
            except BaseException:
                if isinstance(workers, _Processes):
                    workers.end()
                raise
            finally:
                if isinstance(workers, _Processes):
                    workers.close()
                elif given is None:
                    workers.shutdown(wait=False, cancel_futures=True)
            left = _left(points, log)
            attempts = 0 if len(left) < before else attempts + 1
            if left and (given is not None or attempts == _ATTEMPTS):
                continues = "call sweep again with a new executor, which continues"
                if given is None:
                    continues = 'a further call continues. Is this one below `if __name__ == "__main__":`? Processes need it'
                raise FailedError(f"workers were killed, and {len(left)} points are left: {continues}")


def _check(indices: list[int], rows: object) -> None:
    """Raises `FailedError` unless a call returned one row for each point."""
    if not isinstance(rows, (list, tuple)) or len(rows) != len(indices):
        what = f"{len(rows)} rows" if isinstance(rows, (list, tuple)) else f"a {type(rows).__name__}"
        hint = "use an executor that returns results unchanged"
        raise FailedError(f"executor: a call returned {what} instead of {len(indices)} rows: {hint}")


class _Context(SpawnContext):
    """Starts processes, and knows them. A forked process would keep the log open and locked."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[multiprocessing.process.BaseProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        process = SpawnContext.Process(*args, **kwargs)
        self.started.append(process)
        return process


class _Processes(ProcessPoolExecutor):
    """A new process per processor. Ctrl-C in a terminal reaches this process only, which then ends the others."""

    def __init__(self) -> None:
        self._context = _Context()
        super().__init__(mp_context=self._context, initializer=_ignore_interrupts)

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        with _interrupts_blocked():
            return super().submit(function, *args, **kwargs)

    def end(self) -> None:
        """Ends the processes immediately; unfinished points are lost."""
        for process in self._context.started:
            # One that could not be started has none.
            if process.pid is not None:
                process.terminate()

    def close(self) -> None:
        """Waits for the threads and the processes, at most so long. An interpreter that ends meanwhile may print a traceback:
        its thread closes a pipe without the lock that its exit would need (`concurrent.futures.process._ThreadWakeup`)."""
        # `shutdown` itself has no limit.
        closing = threading.Thread(target=self.shutdown, kwargs={"cancel_futures": True}, daemon=True)
        closing.start()
        closing.join(_CLOSE_S)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Delays Ctrl-C. A process that starts meanwhile inherits this: before `_ignore_interrupts`, it would print a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


#: How to give workers.
_HINT = "; use a concurrent.futures.Executor, such as client.get_executor() of Dask"


def _submit(
    workers: Executor,
    space: tuple[str, str],
    chunks: Iterator[list[int]],
    keep: Callable[[list[int], list[str]], None],
) -> None:
    """Gives the chunks to the workers, and keeps the rows of each as it is ready; ends when a worker is killed."""
    waiting: dict[Future[list[str]], list[int]] = {}
    try:
        for chunk in chunks:
            future = _submitted(workers, space, chunk)
            if future.done():
                keep(chunk, future.result())
                continue
            waiting[future] = chunk
            if len(waiting) >= _WAITING:
                _keep_finished(waiting, keep)
        while waiting:
            _keep_finished(waiting, keep)
    except BaseException as error:
        is_of_killed = _is_of_killed(error)
        if is_of_killed:
            # Those that ended before are kept.
            for future, chunk in waiting.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    keep(chunk, future.result())
        if not isinstance(workers, _Processes):
            # An executor of the caller would run them all. Our processes end, and with them their futures.
            for future in waiting:
                future.cancel()
        if not is_of_killed:
            raise


def _submitted(workers: Executor, space: tuple[str, str], chunk: list[int]) -> Future[list[str]]:
    try:
        return workers.submit(_rows, *space, chunk)
    except RuntimeError as error:
        if isinstance(error, BrokenExecutor) or "shutdown" not in str(error):
            raise
        raise UsageError(f"executor: {error}: give a new one, or a function that makes one") from error


def _is_of_killed(error: BaseException) -> bool:
    """Whether workers were killed. Dask, which is not imported here, has an error of its own."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


def _keep_finished(waiting: dict[Future[list[str]], list[int]], keep: Callable[[list[int], list[str]], None]) -> None:
    ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in ended:
        rows = future.result()
        keep(waiting.pop(future), rows)
