"""Platforms: a host and its cards as data."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from lanemark import _lanemark
from lanemark._lanemark import write_file
from lanemark.errors import UsageError, no_key

__all__ = ["Platform"]

#: Value of a key.
Value = Union[bool, int, float, str]
#: Sections with their keys, or paths of keys, with values.
Keys = Mapping[str, Any]


class Platform:
    """A simulated platform: every number with its origin.

    `Platform("card-gen5-x16")` is a built-in platform, `Platform("xeon-spr+gpu-h100")` a built-in host with a built-in card,
    and `Platform("my-card.toml")` a platform file; `lanemark.platforms()` lists the names. Numbers of a file may be unknown:
    `fit` determines them.

    >>> from lanemark import Platform
    >>> card = Platform("card-gen5-x16")
    >>> card["link.mps_bytes"], card.with_(link={"mps_bytes": 256})["link.mps_bytes"]
    (512, 256)
    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self._native = _lanemark.Platform.named(path_text("name", name))

    @staticmethod
    def _of(native: _lanemark.Platform) -> Platform:
        platform = Platform.__new__(Platform)
        platform._native = native
        return platform

    @staticmethod
    def from_toml(text: str, file: str = "platform.toml") -> Platform:
        """The platform of a file with this text; `file` is its name in messages.

        >>> text = 'schema = 2\\nname = "mine"\\nextends = "card-gen5-x16"\\n[link]\\nsource = "lspci"\\nwidth_lanes = 8\\n'
        >>> Platform.from_toml(text)["link.width_lanes"]
        8
        """
        return Platform._of(_lanemark.Platform.parse(file, text))

    @staticmethod
    def from_dict(document: Keys) -> Platform:
        """The platform of a document in the shape of a platform file.

        >>> Platform.from_dict({"schema": 2, "name": "mine", "extends": "card-gen5-x16",
        ...                     "link": {"source": "lspci", "width_lanes": 8}})["link.width_lanes"]
        8
        """
        return Platform._of(_lanemark.Platform.from_json("platform", as_json(_own(document))))

    @staticmethod
    def from_listing(path: str | os.PathLike[str] | None = None, address: str | None = None) -> Platform:
        """The platform of a card in a listing (output of `lspci -vvv`, or a folder or tar with files of `/sys`), with unknown
        numbers; without a path, of this machine. `address` names the card, such as `0000:01:00.0`.
        """
        return Platform._of(_lanemark.draft_from_listing(None if path is None else os.fspath(path), address))

    def with_(self, keys: Keys | None = None, **sections: Keys) -> Platform:
        """A copy in which keys have other values, which are checked as in a file.

        Known values can be changed only if no number stays unknown.

        >>> card = Platform("card-gen5-x16").with_({"dma.tags": 32}, link={"mps_bytes": 512, "skp": True})
        >>> card["dma.tags"], card["link.skp"]
        (32, True)
        """
        return Platform._of(self._native.with_texts(flat({**(keys or {}), **sections})))

    @property
    def name(self) -> str:
        """Name, as in records."""
        return self._native.name

    @property
    def summary(self) -> str:
        """Processor and card in one line."""
        return self._native.summary

    @property
    def unknown(self) -> list[str]:
        """Keys of unknown numbers; a simulation and a formula need all numbers."""
        return self._native.unknown

    @property
    def origins(self) -> dict[str, Any]:
        """Number of values that are given, assumed and fitted, and the same of inherited values."""
        origins: dict[str, Any] = json.loads(self._native.origins())
        return origins

    def __getitem__(self, key: str) -> Value:
        text = self._native.value(key)
        if text is None:
            raise no_key(f"{self.name} has no value of", key, _paths(self.to_dict()))
        return _value(text)

    def get(self, key: str, default: Value | None = None) -> Value | None:
        """Value of a key; `default` if it has none."""
        text = self._native.value(key)
        return default if text is None else _value(text)

    def to_dict(self) -> dict[str, Any]:
        """Every value with its origin, in the shape of a platform file."""
        document: dict[str, Any] = json.loads(self._native.json())
        return document

    def to_toml(self) -> str:
        """Text of the platform file. Raises `ValueError` if known values were changed: in a file, each value has a source."""
        text = self._native.text
        if text is None:
            raise ValueError("keys of this platform were changed: write the values, with their sources, in a file")
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the platform file, completely or not at all."""
        write_file(path, self.to_toml().encode())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._native.value(key) is not None

    #: A platform has keys, but is no sequence of them.
    __iter__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, self._native.parts())

    def __repr__(self) -> str:
        unknown = f", {len(self.unknown)} numbers unknown" if self.unknown else ""
        return f"<lanemark.Platform {self.name}: {self.summary}{unknown}>"


def _again(file: str | None, text: str, changes: list[tuple[str, str]]) -> Platform:
    native = _lanemark.Platform.named(text) if file is None else _lanemark.Platform.parse(file, text)
    return Platform._of(native.with_texts(changes) if changes else native)


def _own(document: Any) -> Any:
    """A document without what `to_dict` says about other files: its values are then its own."""
    if isinstance(document, Mapping):
        return {key: _own(value) for key, value in document.items() if key != "inherited_from"}
    return [_own(value) for value in document] if isinstance(document, list) else document


def as_json(document: Any) -> str:
    """A document as JSON: with lists for ranges and arrays, and numbers of Python for those of NumPy.

    >>> as_json({"dma": {"tags": range(8, 10)}})
    '{"dma": {"tags": [8, 9]}}'
    >>> as_json({"dma": {"beat_ns": [4.0, float("nan")]}})
    Traceback (most recent call last):
    ...
    lanemark.errors.UsageError: dma.beat_ns: nan is no value of a document: use a finite number
    """
    return json.dumps(_as_plain_data(document, ""))


def _as_plain_data(value: Any, path: str) -> Any:
    value = plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{path}: {value} is no value of a document: use a finite number")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Platform):
        raise UsageError(f"{path}: a Platform is not allowed here: save it with save(), and give the path of that file")
    if isinstance(value, Mapping):
        return {str(key): _as_plain_data(one, f"{path}.{key}" if path else str(key)) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [_as_plain_data(one, path) for one in value]
    raise UsageError(f"{path}: a {type(value).__name__} is no value of a document: use a number, a text, a list or a mapping")


def path_text(argument: str, path: str | os.PathLike[str]) -> str:
    """A name or a path as text, which must be UTF-8.

    >>> path_text("name", "my-card\\udcff.toml")
    Traceback (most recent call last):
    ...
    lanemark.errors.UsageError: name: 'my-card\\udcff.toml' is not UTF-8: use another name
    """
    text: object = os.fspath(path)
    if not isinstance(text, str):
        raise UsageError(f"{argument}: {text!r} is not a string: convert it, for example with os.fsdecode")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{argument}: {text!r} is not UTF-8: use another name") from None
    return text


def flat(keys: Keys, prefix: str = "") -> list[tuple[str, str]]:
    """Paths of keys with their values as text.

    >>> flat({"link": {"mps_bytes": 256, "skp": True}, "dma.tags": 32})
    [('link.mps_bytes', '256'), ('link.skp', 'true'), ('dma.tags', '32')]
    """
    pairs: list[tuple[str, str]] = []
    for key, value in keys.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            pairs.extend(flat(value, f"{path}."))
        else:
            pairs.append((path, text_of(value)))
    return pairs


def _paths(document: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Keys of the document of a platform that have a value, as paths."""
    paths: list[str] = []
    for key, value in document.items():
        if isinstance(value, Mapping):
            paths.extend([prefix + key] if "value" in value else _paths(value, f"{prefix}{key}."))
    return paths


def plain(value: Any) -> Any:
    """A number of NumPy as one of Python; other values as they are."""
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") and value.ndim == 0 else value


def text_of(value: Any) -> str:
    """A value, or a list of values, as the command reads it."""
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, Mapping)):
        raise TypeError(f"{value!r} is no value of a key or an option")
    if isinstance(value, (set, frozenset)):
        # In another order in each process.
        raise TypeError(f"{value!r} is a set, and a set has no order: use a list")
    if hasattr(value, "__iter__"):
        return ",".join(text_of(one) for one in value)
    return str(value)


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
