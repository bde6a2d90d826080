"""Lanemark measures, models and simulates how a CPU talks to an accelerator over PCIe.

A question such as "what does a 512 B write to this BAR cost?" is answered by simulation (`simulate`), by measurement of this
machine or a card in it (`bench`), and by formula (`predict`). Each answer has the physical limit and the bottleneck, where
they are known.

>>> import lanemark
>>> card = lanemark.Platform("card-gen5-x16").with_(link={"mps_bytes": 512})
>>> record = lanemark.simulate(card, "dma_write_bandwidth", sizes=[4096])
>>> round(record.table["share_of_ceiling_percent"][0]) <= 100
True
"""

from lanemark import _lanemark
from lanemark._advise import Comparison, Diagnosis, Fleet, Guidance, advise, compare, doctor, fleet
from lanemark._ask import Options, Question, TraceOptions, bench, platforms, predict, questions, simulate
from lanemark._fit import Fit, fit
from lanemark._import import import_
from lanemark._sweep import InThisProcess, read_sweep, sweep
from lanemark._trace import Trace, trace
from lanemark.board import Accepted, Board, Completed, Fetched, Region
from lanemark.errors import AbsentError, FailedError, Interrupted, LanemarkError, PlatformError, Problem, UsageError
from lanemark.platform import Platform
from lanemark.record import Record
from lanemark.table import Table

__version__: str = _lanemark.version()

__all__ = [
    "AbsentError",
    "Accepted",
    "Board",
    "Comparison",
    "Completed",
    "Diagnosis",
    "FailedError",
    "Fetched",
    "Fit",
    "Fleet",
    "Guidance",
    "InThisProcess",
    "Interrupted",
    "LanemarkError",
    "Options",
    "Platform",
    "PlatformError",
    "Problem",
    "Question",
    "Record",
    "Region",
    "Table",
    "Trace",
    "TraceOptions",
    "UsageError",
    "advise",
    "bench",
    "compare",
    "doctor",
    "fit",
    "fleet",
    "import_",
    "platforms",
    "predict",
    "questions",
    "read_sweep",
    "simulate",
    "sweep",
    "trace",
]
