"""The output of another tool as a record."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Union

from lanemark import _lanemark
from lanemark.errors import FailedError, UsageError
from lanemark.record import Record

#: A file, or several of one tool.
Files = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


def import_(files: Files, *, tool: str | None = None, on: str | os.PathLike[str] | None = None) -> Record:
    """Reads what another tool printed, as `lanemark import` does; the name ends in `_` because `import` is a keyword.

    Args:
        files: A file, or several of one tool, such as one for each node.
        tool: `nvbandwidth`, `perftest`, `fio`, or another of `lanemark import --help` [default: recognised from the output].
        on: A built-in platform, a platform file, or the output of `lspci -vvv`, whose link limits the figures [default: no
            limit].

    Returns:
        The record; `to_dict()["imported"]` has every figure with its limit, and the findings.

    Raises:
        UsageError: A file is not the output of that tool, or of any known one.
        FailedError: A figure is above the limit of the link; the attribute `record` of the error has all figures.

    >>> import lanemark, tempfile, pathlib
    >>> text = "$ ib_write_bw -d mlx5_0 -s 65536 node1\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "out.txt")
    ...     _ = path.write_text(text)
    ...     lanemark.import_(path, tool="none")
    Traceback (most recent call last):
    ...
    lanemark.errors.UsageError: tool: 'none' is not known; use one of ...
    """
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not paths:
        raise UsageError("files: there is none; name the output of a tool")
    native, problem = _lanemark.import_([os.fspath(path) for path in paths], tool, None if on is None else os.fspath(on))
    if problem is not None:
        raise FailedError(problem, native)
    return Record(native)
