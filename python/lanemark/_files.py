"""Files written by the package."""

from __future__ import annotations

import os
import tempfile

from lanemark.errors import UsageError

__all__ = ["write"]


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file completely or not at all: a file that exists stays as it is if this fails.

    Raises:
        UsageError: The file cannot be written; the message begins with its path.

    >>> write("/no/such/folder/file", b"")
    Traceback (most recent call last):
    ...
    lanemark.errors.UsageError: writing /no/such/folder/file: No such file or directory
    """
    path = os.fspath(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            # A device or a pipe is not replaced; a folder is refused.
            with open(path, "wb") as file:
                file.write(data)
            return
        at = os.path.realpath(path)
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(at), delete=False) as file:
            try:
                file.write(data)
                file.flush()
                _take_mode(file.fileno(), at)
                os.replace(file.name, at)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise UsageError(f"writing {path}: {error.strerror or error}") from error


def _take_mode(file: int, path: str) -> None:
    """Gives a new file the permissions of the file at `path`, or those of a file that `open` creates."""
    try:
        mode = os.stat(path).st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.fchmod(file, mode)
