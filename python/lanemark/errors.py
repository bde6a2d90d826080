"""Exceptions of the package, by kind; all but `Interrupted` are a `LanemarkError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lanemark.record import Record

__all__ = ["AbsentError", "FailedError", "Interrupted", "LanemarkError", "PlatformError", "Problem", "UsageError"]


def _record(native: object) -> Record | None:
    from lanemark.record import Record

    return None if native is None else Record(native)


def no_key(what: str, key: object, known: Iterable[str]) -> KeyError:
    """The error of an unknown key, with those that are near, or all of them.

    >>> raise no_key("there is no column", "size", ["size_bytes", "target"])
    Traceback (most recent call last):
    ...
    KeyError: "there is no column 'size'. Did you mean size_bytes?"
    """
    names = list(known)
    begun = [name for name in names if key and name.startswith(str(key))]
    near = begun[:3] or difflib.get_close_matches(str(key), names, 3, 0.5)
    hint = f". Did you mean {' or '.join(near)}?" if near else f"; use one of {', '.join(names)}"
    return KeyError(f"{what} {key!r}{hint}")


class LanemarkError(Exception):
    """An error of a request.

    Attributes:
        record: The answers until the error; None if there are none.
    """

    def __init__(self, message: str, record: object = None) -> None:
        super().__init__(message)
        self.record = _record(record)


class UsageError(LanemarkError, ValueError):
    """An argument, or a file named in one, is invalid. The message names the argument or the file.

    >>> import lanemark
    >>> lanemark.predict("card-gen5-x16", "dma_read_latency", sizes="many")
    Traceback (most recent call last):
    ...
    lanemark.errors.UsageError: invalid value 'many' for 'sizes <SIZES>': ...
    """


class Problem(NamedTuple):
    """A problem of a platform file."""

    file: str
    #: From 1; 0 for a problem of the whole file.
    line: int
    key: str
    message: str


class PlatformError(UsageError):
    """A platform file is invalid, or some of its numbers are unknown.

    Attributes:
        problems: Each problem with its file, line, key and message.

    >>> import lanemark
    >>> try:
    ...     lanemark.Platform("card-gen5-x16").with_(link={"width_lanes": 3})
    ... except lanemark.PlatformError as error:
    ...     print(error.problems[0].key)
    link.width_lanes
    """

    # The default is for `pickle`, which restores the problems afterwards.
    def __init__(self, message: str, problems: Sequence[tuple[str, int, str, str]] = ()) -> None:
        super().__init__(message)
        self.problems = [Problem(*problem) for problem in problems]


class AbsentError(LanemarkError):
    """A device, a runtime, a driver or a permission is missing."""


class FailedError(LanemarkError):
    """A target, a fit or a worker failed, or an answer is physically impossible."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in `bench`, `simulate` or `predict`.

    Attributes:
        record: The answers until then.
    """

    def __init__(self, message: str, record: object = None) -> None:
        super().__init__(message)
        self.record = _record(record)
