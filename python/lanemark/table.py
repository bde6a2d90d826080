"""Tidy tables: one row per observation, one column per variable, with units in names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, Union

from lanemark._lanemark import write_file
from lanemark.errors import no_key

if TYPE_CHECKING:
    import pandas
    import xarray

    from lanemark import _lanemark

__all__ = ["Table"]

Value = Union[str, int, float, None]

#: Units by the end of a column's name.
_UNITS = {"_bytes_per_s": "B/s", "_ns": "ns", "_bytes": "B", "_percent": "%"}
_SHOWN_ROWS = 10


class Table:
    """A table that pandas, Polars, DuckDB and PyArrow read directly (Arrow PyCapsule interface).

    A column has texts, whole numbers or numbers; a value may be missing (None). The name of a column contains its unit, if it
    has one. Its type does not depend on its values, except for changed keys (`varied.KEY`).

    >>> import lanemark
    >>> table = lanemark.predict("card-gen5-x16", "dma_read_latency", sizes=[64, 4096]).table
    >>> len(table), table["size_bytes"], table["question"][0]
    (2, [64, 4096], 'dma_read_latency')
    >>> import polars
    >>> polars.DataFrame(table).height
    2
    """

    def __init__(self, native: _lanemark.Table, axes: list[str] | None = None) -> None:
        self._native = native
        self._axes = axes

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return self._native.column_names

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, column: str) -> list[Value]:
        values = self._native.column(column)
        if values is None:
            raise no_key("there is no column", column, self.columns)
        return values

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """The rows, each as a dict without its missing values."""
        columns = {name: self[name] for name in self.columns}
        for row in range(len(self)):
            yield {name: values[row] for name, values in columns.items() if values[row] is not None}

    def unit(self, column: str) -> str | None:
        """Unit of a column, from the end of its name: `B/s`, `ns`, `B`, `%`; None without one.

        >>> import lanemark
        >>> lanemark.predict("card-gen5-x16", "dma_read_latency", sizes=64).table.unit("latency_ns_median")
        'ns'
        """
        for end, unit in _UNITS.items():
            if column.endswith(end) or end + "_" in column:
                return unit
        return None

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a `pandas.DataFrame`; the unit of each column is in `attrs["units"]`."""
        import pandas

        # Before pandas 3 there is no reader of the Arrow interface without PyArrow.
        read = getattr(pandas.DataFrame, "from_arrow", None)
        columns = {name: self[name] for name in self.columns}
        frame: pandas.DataFrame = pandas.DataFrame(columns) if read is None else read(self)
        frame.attrs["units"] = {name: unit for name in self.columns if (unit := self.unit(name))}
        return frame

    def to_xarray(self) -> xarray.Dataset:
        """The figures as an `xarray.Dataset`, whose dimensions are the parameters that vary.

        Parameters are the target, changed keys (`varied.KEY`), method, size and alignment. A figure has the attribute
        `units`. There must be one question only, and one row for each point.

        >>> import lanemark
        >>> record = lanemark.predict("card-gen5-x16", "dma_read_bandwidth", sizes=[64, 4096], with_={"dma.tags": [32, 64]})
        >>> dict(record.to_xarray().formula_delivered_rate_bytes_per_s.sizes)
        {'dma.tags': 2, 'size_bytes': 2}
        """
        import numpy
        import xarray

        if self._axes is None and "label" not in self:
            raise ValueError("to_xarray needs a table of answers: use to_pandas() for samples and traces")
        questions = sorted({str(name) for name in self["question"]})
        if not questions:
            raise ValueError("to_xarray needs answers, and the table has no row")
        if len(questions) != 1:
            raise ValueError(f"to_xarray needs the answers of one question, and these are of {', '.join(questions)}")
        parameters = self._parameters()
        axes = {name: values for name, values in parameters.items() if len(set(values)) > 1}
        alone = {name: values[0] for name, values in parameters.items() if name not in axes and values[0] is not None}
        coordinates = {name: sorted(set(values), key=_order) for name, values in axes.items()}
        places = {name: {value: place for place, value in enumerate(values)} for name, values in coordinates.items()}
        index = [tuple(places[name][values[row]] for name, values in axes.items()) for row in range(len(self))]
        if len(set(index)) != len(index):
            raise ValueError(f"several rows have the same {', '.join(axes) or 'parameters'}: use to_pandas()")
        shape = tuple(len(values) for values in coordinates.values())
        figures = {}
        for name in self.columns:
            values = self[name]
            # A text is no figure, and a parameter is a coordinate.
            if not (self.unit(name) or name == "samples") or name in parameters or name.startswith("varied."):
                continue
            if not all(isinstance(value, (int, float, type(None))) for value in values):
                continue
            array = numpy.full(shape, numpy.nan)
            for place, value in zip(index, values):
                array[place] = numpy.nan if value is None else value
            if not numpy.isnan(array).all():
                figures[name] = (tuple(axes), array, {"units": self.unit(name) or "1"})
        return xarray.Dataset(figures, coords={**coordinates, **alone}, attrs={"question": questions[0], "target": self._targets()})

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The table as CSV: returned, or written to `path`."""
        return _written(self._native.csv(), path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as a Parquet file, without PyArrow; completely or not at all."""
        write_file(path, bytes(self._native.parquet()))

    def _parameters(self) -> dict[str, list[Value]]:
        if self._axes is not None:
            names = ["platform", *self._axes, "method", "size_bytes", "alignment_bytes"]
            return {name: self[name] for name in names if name in self.columns}
        varied = [name for name in self.columns if name.startswith("varied.")]
        # A changed key is a part of the target's name, after a comma.
        targets = [str(name).split(", ")[0] if varied else name for name in self["target"]]
        keys = {name.removeprefix("varied."): self[name] for name in varied}
        rest = {"method": self["label"], "size_bytes": self["size_bytes"], "alignment_bytes": self["alignment_bytes"]}
        return {"target": targets, **keys, **rest}

    def _targets(self) -> str:
        column = "platform" if self._axes is not None else "target"
        return ", ".join(dict.fromkeys(str(name).split(", ")[0] for name in self[column]))

    def __repr__(self) -> str:
        return f"<lanemark.Table: {len(self)} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        shown = self._native.head(_SHOWN_ROWS)
        head = "".join(f"<th>{escape(name)}</th>" for name, _ in shown)
        columns = [values for _, values in shown]
        rows = ""
        for row in range(min(len(self), _SHOWN_ROWS)):
            cells = (_cell(values[row]) for values in columns)
            rows += "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        more = f"<p>{len(self) - _SHOWN_ROWS} more rows</p>" if len(self) > _SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _cell(value: Value) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _order(value: Value) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (2, value) if isinstance(value, str) else (1, value)


def _written(text: str, path: str | os.PathLike[str] | None) -> str | None:
    if path is None:
        return text
    write_file(path, text.encode())
    return None
