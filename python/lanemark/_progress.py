"""Progress bars in a terminal and in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Union

#: A function of the steps done, all steps, and what is being done; or whether to show a bar.
Progress = Union[Callable[[float, float, str], object], bool, None]

_WIDTH = 30
_EVERY_S = 0.1


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    return kernel is not None and hasattr(kernel, "kernel")


class _Bar:
    """A bar on standard error, which is rewritten at most ten times per second."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._shown = 0.0
        self._longest = 0

    def __call__(self, done: float, steps: float, what: str) -> None:
        now = time.monotonic()
        if now - self._shown < _EVERY_S:
            return
        self._shown = now
        share = min(done / steps, 1.0) if steps else 0.0
        left = (now - self._begun) * (1 - share) / share if share else None
        bar = ("#" * round(share * _WIDTH)).ljust(_WIDTH, ".")
        rest = "" if left is None else f", {left:.0f} s left"
        self._write(f"{bar} {share:4.0%}{rest}  {what}")

    def end(self) -> None:
        self._write("")
        print(end="\r", file=sys.stderr, flush=True)

    def _write(self, line: str) -> None:
        line = line[:120]
        print("\r" + line.ljust(self._longest), end="", file=sys.stderr, flush=True)
        self._longest = len(line)


@contextmanager
def shown(progress: Progress) -> Iterator[Callable[[float | None, float | None, str | None], None] | None]:
    """A function that passes steps to `progress`; None if no progress is shown."""
    bar = None
    if progress is None:
        progress = _is_notebook() or sys.stderr is not None and sys.stderr.isatty()
    if progress is True:
        progress = bar = _Bar()
    if progress is False:
        yield None
        return
    if not callable(progress):
        raise TypeError(f"progress: {progress!r} is neither True, False, None nor a function of three arguments")
    done, steps, what = 0.0, 0.0, ""

    def tell(new_done: float | None, new_steps: float | None, new_what: str | None) -> None:
        nonlocal done, steps, what
        done = done if new_done is None else new_done
        steps = steps if new_steps is None else new_steps
        what = what if new_what is None else new_what
        progress(done, steps, what)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.end()
