"""Traces: every TLP and every stall of one transfer."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lanemark import _lanemark
from lanemark._ask import On, Question, TraceOptions, _target, words
from lanemark._lanemark import write_file
from lanemark.platform import Platform
from lanemark.table import Table, _written

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Trace:
    """The TLPs and stalls of one case, link by link. Printed, it is a waterfall.

    `pickle` keeps its platform, question and options; the trace is simulated again when it is loaded, with the same result.
    """

    def __init__(self, native: _lanemark.Trace, made_of: tuple[Platform, str, list[str]]) -> None:
        self._native = native
        self._made_of = made_of

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, self._made_of)

    @cached_property
    def table(self) -> Table:
        """One row per TLP and link: link, direction, number of the request, TLP in words, length, times, and the cause of its
        last wait."""
        return Table(self._native.table())

    @property
    def links(self) -> list[str]:
        """Names of the links, by the component below each."""
        return self._native.links

    @property
    def error(self) -> str | None:
        """The error that ended it, such as that of an injected fault; None without one."""
        return self._native.error

    def to_perfetto(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """JSON for the viewers of Perfetto and Chrome: returned, or written to `path`."""
        return _written(self._native.viewer_json(), path)

    def to_pcapng(self, path: str | os.PathLike[str], link: str | None = None) -> None:
        """Writes the TLPs of one link [default: the card's] as a capture for Wireshark."""
        write_file(path, bytes(self._native.pcapng(link)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        return f"<lanemark.Trace: {len(self.table)} TLPs on {', '.join(self.links)}>"


def trace(on: On, question: str | Question, **options: Unpack[TraceOptions]) -> Trace:
    """Traces the first supported case of a question on a simulated platform; options are those of `lanemark trace`.

    >>> import lanemark
    >>> lanemark.trace("card-gen5-x16", "mmio_read_latency", memory_type="uc", iterations=1).table["tlp_bytes"]
    [16, 16]
    """
    # The platform as it is now: its file may change before the trace is pickled.
    platform = on if isinstance(on, Platform) else Platform(on)
    name = question.name if isinstance(question, Question) else question
    return _again(platform, name, words("trace", options, "trace"))


def _again(platform: Platform, question: str, said: list[str]) -> Trace:
    return Trace(_lanemark.trace(_target(platform), question, said), (platform, question, said))
