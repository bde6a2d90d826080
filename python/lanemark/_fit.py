"""Calibration: the unknown numbers of a platform, from measured figures."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from lanemark import _lanemark
from lanemark.errors import UsageError
from lanemark.platform import Platform
from lanemark.record import Record

#: Measured figures: a record, a file, or columns.
Data = Union[Record, str, "os.PathLike[str]", Mapping[str, Sequence[Any]], Any]


class Fit:
    """A platform after a fit, and how well it follows the figures. Printed, it is the output of the command."""

    def __init__(self, platform: Platform, document: str, text: str) -> None:
        self._platform = platform
        self._document = document
        self._text = text

    @property
    def platform(self) -> Platform:
        """The platform with the numbers that the data determine; the others are still unknown. `save` writes its file."""
        return self._platform

    def to_dict(self) -> dict[str, Any]:
        """Everything about the fit as plain data: parameters, structures compared, residuals, patterns."""
        document: dict[str, Any] = json.loads(self._document)
        return document

    @property
    def parameters(self) -> dict[str, float]:
        """The fitted numbers by key, without those that the data leave unknown."""
        document = self.to_dict()
        return {found["key"]: found["value"] for found in document["parameters"] if found["key"] not in document["unknown"]}

    @property
    def held_out(self) -> dict[str, float] | None:
        """Errors at figures that were not fitted: count, median, mean and worst, in percent; None if none was held out."""
        halves = self.to_dict()["halves"]
        return None if halves is None else dict(halves["held_out"])

    @property
    def verdict(self) -> str | None:
        """`predicts`, `predicts_between_ends`, `follows_the_data_only` or `lacks_something`; None if no figure was held out."""
        halves = self.to_dict()["halves"]
        return None if halves is None else str(halves["verdict"])

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<lanemark.Fit of {self.platform.name}: {len(self.parameters)} numbers>"


def fit(
    platform: Platform | str | os.PathLike[str],
    data: Data,
    *,
    tool: str | None = None,
    of: str | None = None,
    assume: Mapping[str, float] | None = None,
    assume_rest: bool = False,
    keep_structure: bool = False,
) -> Fit:
    """Fits the unknown numbers of a platform to measured figures.

    Args:
        platform: A platform with unknown numbers, such as one of `Platform.from_listing`.
        data: A record, a record file, a table of figures (`.csv`, or a mapping of columns such as
            `{"question": ["dma_read_latency"], "size_bytes": [64], "figure": ["1.38 us"]}`, or a data frame), or with `tool`
            the file with the output of a tool.
        tool: `nvbandwidth`, `perftest`, `fio`, `dd` or `xdma`.
        of: The target whose answers are fitted, for a record of several.
        assume: Values of keys that are not fitted.
        assume_rest: Whether numbers that the data do not determine get usual values.
        keep_structure: Whether only numbers are fitted, and no other mechanisms are tried.

    Raises:
        UsageError: The data or an argument are invalid.
        FailedError: The fit failed.
    """
    draft = platform if isinstance(platform, Platform) else Platform(platform)
    name, native = _data(data, tool)
    pairs = [(key, float(value)) for key, value in (assume or {}).items()]
    fitted = _lanemark.fit(draft._native, name, native, tool, of, pairs, assume_rest, keep_structure)
    return Fit(Platform._of(fitted.platform), fitted.json(), fitted.text())


def _data(data: Data, tool: str | None) -> tuple[str, Any]:
    if isinstance(data, Record):
        return "record", data._native
    # A table of pandas or Polars, too.
    frame: Any = data
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        names = list(data if isinstance(data, Mapping) else frame.columns)
        return "table", _csv({name: list(frame[name]) for name in names})
    path = os.fspath(data)
    if tool is None and not path.lower().endswith(".csv"):
        return path, Record.load(path)._native
    try:
        with open(path, encoding="utf-8") as file:
            return path, file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"reading {path}: {error}") from error


def _csv(columns: Mapping[str, Sequence[Any]]) -> str:
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise UsageError(f"data: columns have different lengths: {', '.join(map(str, sorted(lengths)))}")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if value is None else value for value in row] for row in zip(*columns.values()))
    return text.getvalue()
