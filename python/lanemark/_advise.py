"""Advice for a workload, comparison of records, and diagnosis of a machine."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from lanemark import _lanemark
from lanemark._ask import Sizes
from lanemark.errors import UsageError
from lanemark.platform import Keys, Platform, flat
from lanemark.record import Record

#: A record or its file, or several of them.
Records = Union[Record, str, "os.PathLike[str]", Iterable[Union[Record, str, "os.PathLike[str]"]]]


class Document:
    """A result as plain data. Printed, it is the output of the command.

    A key of the document is an attribute: `doctor().findings`.
    """

    def __init__(self, native: tuple[str, str]) -> None:
        self._data: dict[str, Any] = json.loads(native[0])
        self._text = native[1]

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data; `lanemark schema` prints its JSON Schema."""
        return self._data

    def __getattr__(self, name: str) -> Any:
        data = self.__dict__.get("_data", {})
        if name in data:
            return data[name]
        raise AttributeError(f"{type(self).__name__} has no '{name}'; it has {', '.join(data)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<lanemark.{type(self).__name__}: {', '.join(self._data)}>"


class Guidance(Document):
    """The best methods for a workload, the effect of changes to the machine, and whether goals are met."""


class Comparison(Document):
    """Answers that became faster or slower, or the reference records that are nearest to a record."""


class Diagnosis(Document):
    """PCIe devices of a machine, their problems, and the commands that fix them."""


class Fleet(Document):
    """Machines that answered the same questions, and those that differ."""


def advise(
    platform: Platform | str | os.PathLike[str],
    *,
    sizes: Sizes = (64, 4096, 1 << 20),
    direction: str | None = None,
    rate_bytes_per_s: float | None = None,
    latency_below_ns: float | None = None,
    with_: Keys | None = None,
) -> Guidance:
    """Finds the best methods for a workload on a simulated platform.

    Args:
        platform: A platform, the name of a built-in one, or a platform file.
        sizes: Bytes of a transfer, at most 12 values.
        direction: `to_device` or `from_device` [default: both].
        rate_bytes_per_s: Goal: at least this rate, for a stream of transfers.
        latency_below_ns: Goal: a lower latency than this, for one transfer.
        with_: Changed keys of the platform.

    >>> import lanemark
    >>> guidance = lanemark.advise("card-gen5-x16", sizes=[4096], direction="to_device")
    >>> guidance.target
    'card-gen5-x16'

    Raises:
        UsageError: An argument is invalid, or no method moves transfers of these sizes.
        PlatformError: The platform has unknown numbers.
    """
    made = platform if isinstance(platform, Platform) else Platform(platform)
    positive("rate_bytes_per_s", rate_bytes_per_s)
    positive("latency_below_ns", latency_below_ns)
    directions = ["to_device", "from_device"] if direction is None else [direction]
    listed = _lanemark.sizes(sizes if isinstance(sizes, str) else _listed(sizes))
    changed = flat(with_ or {})
    document = _lanemark.advise(made._native, changed, directions, listed, rate_bytes_per_s, latency_below_ns)
    return Guidance(document)


def positive(name: str, value: float | None) -> None:
    """Refuses a number that is not finite or is negative."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{name}: {value} is not a number of at least 0")


def _listed(sizes: Sizes) -> str:
    if isinstance(sizes, (int, str)):
        return str(sizes)
    return ",".join(str(size) for size in sizes)


def compare(
    base: Records,
    new: Records | None = None,
    *,
    to_corpus: bool = False,
    min_effect_percent: float | None = None,
    between_runs_percent: float | None = None,
) -> Comparison:
    """Finds answers that became faster or slower by more than the variation between runs.

    With `to_corpus`, finds instead the reference records that are nearest to one record, and what differs.

    Args:
        base: Base records, or their files; several of one machine show its variation between runs. With `to_corpus`, one.
        new: New records, or their files. With `to_corpus`, None.
        to_corpus: Whether `base` is compared with the reference records of Lanemark.
        min_effect_percent: Smallest change of interest, in percent of the time [default: 2; simulations: 0].
        between_runs_percent: Assumed standard deviation between runs, in percent, of a side with fewer than five records
            [default: 10].

    >>> import lanemark
    >>> slow, fast = (lanemark.simulate(
    ...     lanemark.Platform("card-gen5-x16").with_({"memory.read_ns": ns}), "dma_read_latency", sizes=64)
    ...     for ns in (300, 200))
    >>> lanemark.compare(slow, fast).pairs[0]["verdict"]
    'faster'
    >>> gpu = lanemark.simulate("xeon-spr+gpu-h100", "dma_write_bandwidth", sizes="64,512,4K,64K,4M")
    >>> lanemark.compare(gpu, to_corpus=True).targets[0]["neighbours"][0]["file"]
    'simulated-gpu-h100.json'
    """
    if to_corpus:
        return _nearest(_named(base), new, (min_effect_percent, between_runs_percent))
    if new is None:
        raise UsageError("new: there is no record to compare with; give new records, or to_corpus=True")
    positive("min_effect_percent", min_effect_percent)
    positive("between_runs_percent", between_runs_percent)
    return Comparison(_lanemark.compare(_named(base), _named(new), min_effect_percent, between_runs_percent))


def _nearest(
    records: list[tuple[str, _lanemark.Record]], new: Records | None, criteria: tuple[float | None, float | None]
) -> Comparison:
    if new is not None or any(value is not None for value in criteria):
        raise UsageError("to_corpus: one record is compared with the corpus, without new records and criteria")
    if len(records) != 1:
        raise UsageError(f"to_corpus: {len(records)} records are given, and one is compared")
    return Comparison(_lanemark.compare_to_corpus(*records[0]))


def _named(records: Records) -> list[tuple[str, _lanemark.Record]]:
    if isinstance(records, (Record, str, os.PathLike)):
        records = [records]
    named = []
    for place, record in enumerate(records, 1):
        name = f"record {place}"
        named.append((os.fspath(record) if isinstance(record, (str, os.PathLike)) else name, _opened(name, record)))
    if not named:
        raise UsageError("there is no record to compare")
    return named


def _opened(name: str, record: object) -> _lanemark.Record:
    if isinstance(record, (str, os.PathLike)):
        return Record.load(record)._native
    if isinstance(record, Record):
        return record._native
    raise UsageError(f"{name}: a {type(record).__name__} is no record: use a lanemark.Record or the path of its file")


def fleet(
    records: Mapping[str, Record | str | os.PathLike[str]],
    diagnoses: Mapping[str, Diagnosis] | None = None,
    *,
    min_effect_percent: float | None = None,
) -> Fleet:
    """Finds the machines whose answers differ from those of the others, and findings of `doctor` that few others have.

    Args:
        records: Records, or their files, by name of the machine; an answer is judged if at least four machines have it.
        diagnoses: Results of `doctor`, by name of the machine.
        min_effect_percent: Smallest difference from the median of the others that counts, in percent of the time
            [default: 5].
    """
    said = diagnoses or {}
    for argument, given in (("records", records), ("diagnoses", said)):
        if not isinstance(given, Mapping):
            hint = f'use a dict such as {{"node1": {argument}[0]}}'
            raise UsageError(f"{argument}: a {type(given).__name__} does not name the machines: {hint}")
    positive("min_effect_percent", min_effect_percent)
    if unknown := [name for name in said if name not in records]:
        raise UsageError(f"diagnoses: there is no record of {', '.join(map(str, unknown))}")
    machines = [
        (name, _opened(f"records: {name}", record), json.dumps(said[name].to_dict()) if name in said else None)
        for name, record in records.items()
    ]
    return Fleet(_lanemark.fleet(machines, min_effect_percent))


def doctor(path: str | os.PathLike[str] | None = None) -> Diagnosis:
    """Lists the PCIe devices of a machine and their problems; reads only.

    Args:
        path: Output of `lspci -vvv` or `lspci -xxxx`, or a folder or tar with files of `/sys` [default: this machine].

    Raises:
        UsageError: The path has none of these formats.
        AbsentError: This machine shows no PCI bus.
    """
    return Diagnosis(_lanemark.doctor(None if path is None else os.fspath(path)))
