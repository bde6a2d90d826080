"""Records: the answers of one request, with everything that is needed to judge them."""

from __future__ import annotations

import json
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lanemark import _lanemark
from lanemark.errors import UsageError
from lanemark.table import Table, _written

if TYPE_CHECKING:
    import pandas
    import xarray

__all__ = ["Record"]


class Record:
    """The answers of a request: figures with their spread, ceiling, bottleneck and formula.

    It is what the command writes with `--record`. Printed, it is the tables of the command; in a notebook, a table, and a plot
    of bandwidths of several sizes.

    >>> import lanemark
    >>> record = lanemark.simulate("card-gen5-x16", "dma_read_latency", sizes=64)
    >>> answer = record.answers[0]
    >>> answer["question"], answer["latency_ns"]["median"] > answer["formula"]["latency_ns"] * 0.9
    ('dma_read_latency', True)
    """

    def __init__(self, native: Any) -> None:
        if not isinstance(native, _lanemark.Record):
            raise UsageError(f"{native!r} is not a record of this process: use lanemark.Record.load(path) for a file")
        self._native: _lanemark.Record = native

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Record:
        """Reads a record file, such as one of `lanemark bench --record FILE`."""
        return Record(_lanemark.Record.read(os.fspath(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a record file, completely or not at all."""
        self._native.write(os.fspath(path))

    @cached_property
    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._native.json())
        return document

    def to_dict(self) -> dict[str, Any]:
        """The record as plain data, described by the JSON Schema `lanemark schema record`."""
        document: dict[str, Any] = json.loads(self._native.json())
        return document

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The answers, in order of measurement."""
        return list(self._document["answers"])

    @property
    def targets(self) -> list[dict[str, Any]]:
        """The targets: name, summary, kind and, if simulated, the platform."""
        return list(self._document["targets"])

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """Cases without an answer, each with the reason."""
        return list(self._document["skipped"])

    @property
    def warnings(self) -> list[str]:
        """Warnings to read before the figures are used."""
        return list(self._document["warnings"])

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Remarkable results, with reasons."""
        return list(self._document["findings"])

    @property
    def advice(self) -> list[dict[str, Any]]:
        """The best method for each target, direction and size."""
        return list(self._document["advice"])

    @cached_property
    def table(self) -> Table:
        """One row per answer: the question, the target, every parameter, and the figures with units in their names."""
        return Table(self._native.table())

    @cached_property
    def samples(self) -> Table:
        """One row per raw sample, including dropped ones; times are of whole samples of `passes` iterations."""
        return Table(self._native.samples())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """The answers as a `pandas.DataFrame`; see `Table.to_pandas`."""
        return self.table.to_pandas()

    def to_xarray(self) -> xarray.Dataset:
        """The figures as an `xarray.Dataset`; see `Table.to_xarray`."""
        data = self.table.to_xarray()
        data.attrs["machine"] = "; ".join(target["summary"] for target in self.targets)
        return data

    def report(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The page of `lanemark report` as HTML: returned, or written to `path`."""
        return _written(self._native.html(), path)

    def plot(self, y: str | None = None, ax: Any = None) -> Any:
        """Draws a figure against the size, one line per target and method, with Matplotlib; returns the axes.

        `y` is a column of `table` [default: the rate, or the latency of answers without a rate].

        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import lanemark
        >>> axes = lanemark.simulate("card-gen5-x16", "dma_read_bandwidth", sizes="64..4K").plot()
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('size in B', 'delivered rate in B/s')
        """
        import matplotlib.pyplot

        table = self.table
        if y is None:
            y = next((name for name in _PLOTTED if any(value is not None for value in table[name])), None)
        if y is None or y not in table.columns:
            raise ValueError(f"y: there is no figure {y!r} to plot; use a column of table")
        if ax is None:
            ax = matplotlib.pyplot.subplots()[1]
        lines: dict[tuple[Any, Any, Any], list[tuple[Any, Any]]] = {}
        rows = zip(table["question"], table["target"], table["label"], table["size_bytes"], table[y])
        for question, target, method, size, value in rows:
            if value is not None:
                lines.setdefault((question, target, method), []).append((size, value))
        for (_, target, method), points in lines.items():
            ax.plot(*zip(*sorted(points)), marker="o", label=f"{target}: {method}")
        ax.set_xscale("log", base=2)
        ax.set_xlabel("size in B")
        name = y.removesuffix("_median").removesuffix("_bytes_per_s").removesuffix("_ns").replace("_", " ")
        ax.set_ylabel(f"{name} in {table.unit(y) or '1'}")
        ax.set_ylim(bottom=0)
        ax.legend()
        return ax

    def __reduce__(self) -> tuple[Any, ...]:
        return (_from_json, (self._native.json(),))

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        names = ", ".join(target["name"] for target in self.targets)
        questions = ", ".join(dict.fromkeys(answer["question"] for answer in self.answers))
        return f"<lanemark.Record: {len(self.answers)} answers of {names} to {questions}>"

    def _repr_html_(self) -> str:
        return (self._native.svg() or "") + self.table._repr_html_()


def _from_json(text: str) -> Record:
    return Record(_lanemark.Record.from_json(text))


#: Figures that `plot` draws, the first that has values.
_PLOTTED = (
    "delivered_rate_bytes_per_s_median",
    "formula_delivered_rate_bytes_per_s",
    "latency_ns_median",
    "formula_latency_ns",
)
