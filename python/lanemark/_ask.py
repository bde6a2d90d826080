"""Questions to simulated and real machines, and to formulas."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Union

from lanemark import _lanemark
from lanemark._progress import Progress, shown
from lanemark.errors import UsageError
from lanemark.platform import Platform, flat, path_text, plain, text_of
from lanemark.record import Record

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A target: a platform, or a name as on the command line.
On = Union[str, Platform, "os.PathLike[str]"]
#: Bytes: a number, a list, or a range such as `"64..4M"`.
Sizes = Union[int, str, Iterable[Union[int, str]]]
#: One name or several.
Names = Union[str, Iterable[str]]


class Question(NamedTuple):
    """A question of the catalogue."""

    name: str
    summary: str
    quantity: str
    #: Whether it is asked if no question is named.
    is_usual: bool


#: Questions by name, or from `questions()`.
Asked = Union[str, Question, Iterable[Union[str, Question]]]


class _Variants(TypedDict, total=False):
    """Options that select the variants of a question."""

    sizes: Sizes
    memory_type: Names
    access: Union[int, str, Iterable[Union[int, str]]]
    fence: Names
    align: Union[int, Iterable[int]]
    region: str
    flows: Names
    window: Union[int, str]
    random: bool
    stride: Union[int, str]
    outstanding: int
    cache_state: str
    socket: str
    channels: int
    matrix: Names
    cores: Union[str, int, Iterable[int]]
    #: Changed keys of the platform: `{"dma.tags": 64}` or `{"dma": {"tags": 64}}`. Except for `trace`, a list of values makes a
    #: target for each.
    with_: Mapping[str, Any]
    fault: Names
    iterations: int


class Options(_Variants, total=False):
    """Options of `bench`, `simulate` and `predict`: those of the command, with underscores.

    The command describes each: `lanemark bench --help`. A list is given as a list or as text (`"64,4K"`).
    """

    zip: bool
    setpci: Names
    no_fast_forward: bool
    what_if: bool
    twin: str
    kernels: str
    #: Seconds per question and target.
    budget: float
    #: Wanted width of a confidence interval, in percent.
    interval: float
    all_copies: bool
    bar: Names
    #: Addresses on a card with AMD's XDMA driver, `FROM..TO`, whose bytes are overwritten.
    card_memory: str
    #: A built-in device (`edu`, `xdma`, `axi-cdma`) or a device file, for a card that is bound to vfio-pci.
    device: Union[str, "os.PathLike[str]"]
    #: Memory of another card bound to vfio-pci, `FUNCTION:BAR:FROM..TO`, whose bytes are overwritten.
    peer: str
    #: Interface by which a card bound to vfio-pci is opened: `container`, `iommufd` or, behind no IOMMU, `no-iommu`.
    vfio: str
    #: Pages of host memory for its DMA: `4KiB`, `2MiB` or `1GiB`.
    host_pages: str
    #: Place of the I/O submission queue of an NVMe drive bound to vfio-pci: `host` or `cmb`.
    nvme_queues: str
    #: Description of the memory of its commands: `prp`, `sgl` or `sgl-list`.
    nvme_data: str
    #: Place of the data of its commands: `host` or `cmb`.
    nvme_data_place: str
    #: How a core sees its completions: `polling` or `interrupt`.
    nvme_completions: str
    #: Namespace of such a drive whose blocks are read: its NSID [default: the first active one].
    namespace: int
    #: Start of the namespace in use of such a drive, which plans with DMA reads may overwrite: `1` or `1:64MiB`.
    destructive: str
    i_own_this_device: bool
    enable: bool
    emulated: bool


class TraceOptions(_Variants, total=False):
    """Options of `trace`: those of the command, with underscores."""

    dllps: bool


#: Options of the command that have another form here: arguments of their own, results, and runs in other processes. A package
#: binds no drivers: `lanemark bind`, a command of the package, does.
NOT_HERE = frozenset(
    "on question json record repeat save-baseline baseline-folder run-of-repeat csv html svg full samples dry-run system-root "
    "output read link help bind".split()
)


def words(function: str, options: Mapping[str, Any], command: str = "bench") -> list[str]:
    """The options as words of a command line.

    >>> words("bench", {"sizes": [64, "4K"], "random": True, "twin": None, "with_": {"dma": {"tags": [32, 64]}}})
    ['--sizes=64,4K', '--random', '--with=dma.tags=32,64']
    """
    options = {key: plain(value) for key, value in options.items()}
    names = _lanemark.option_names(command)
    known = [name for name in names if name not in NOT_HERE]
    said: list[str] = []
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        if name in NOT_HERE:
            raise TypeError(
                f"{function}() got an unexpected keyword argument '{key}': --{name} is an option of the command only"
            )
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f". Did you mean {close[0].replace('-', '_')}?" if close else ""
            raise TypeError(f"{function}() got an unexpected keyword argument '{key}'{hint}")
        if value is None or value is False:
            continue
        if (value is True) != names[name]:
            wanted = "True or False" if names[name] else "a value, such as a number or a string"
            raise TypeError(f"{function}() got {key}={value!r}: it takes {wanted}")
        if value is True:
            said.append(f"--{name}")
        elif isinstance(value, Mapping):
            said.extend(f"--{name}={path}={text}" for path, text in flat(value))
        else:
            said.append(f"--{name}={path_text(key, value) if isinstance(value, (str, os.PathLike)) else text_of(value)}")
    return said


def _target(on: On) -> _lanemark.Platform | str:
    return on._native if isinstance(on, Platform) else path_text("on", on)


def _targets(on: On | Iterable[On]) -> list[_lanemark.Platform | str]:
    if not isinstance(on, (str, Platform, os.PathLike, Iterable)):
        raise TypeError(f"on: a {type(on).__name__} is no target; give a platform, its name or file, or a list of them")
    targets = [_target(on)] if isinstance(on, (str, Platform, os.PathLike)) else [_target(one) for one in on]
    if not targets:
        raise UsageError("on: there is no target; give a platform, or a name such as host")
    return targets


def _run(
    function: str,
    on: On | Iterable[On],
    questions: Asked,
    progress: Progress,
    options: Mapping[str, Any],
    *,
    by_formulas: bool,
) -> Record:
    if not isinstance(questions, Iterable):
        raise TypeError(f"questions: a {type(questions).__name__} is no question; give a name, such as dma_read_latency")
    asked = [questions] if isinstance(questions, (str, Question)) else list(questions)
    named = [one.name if isinstance(one, Question) else one for one in asked]
    said = [f"--question={','.join(named)}"] if named else []
    said += words(function, options)
    with shown(progress) as tell:
        return Record(_lanemark.run(_targets(on), said, by_formulas, tell))


def bench(
    on: On | Iterable[On] = ("host", "card-gen5-x16"),
    questions: Asked = (),
    *,
    progress: Progress = None,
    **options: Unpack[Options],
) -> Record:
    """Measures this machine, a card in it, a GPU, or simulated platforms.

    Args:
        on: Targets: a `Platform`, or names as on the command line: a built-in platform, a platform file, `host`, a PCI
            address, `cuda:0`, `opencl:0`, `sycl:0`, `nvme:/dev/ng0n1`,
            `xdma:/dev/xdma0`.
        questions: Names of questions; `lanemark.questions()` lists them [default: the usual ones].
        progress: Whether to show a bar [default: in a terminal and in a notebook], or a function of three arguments: the
            steps done, all steps, and the current question and target in words.
        options: Options of `lanemark bench` by name, such as `sizes`; see `lanemark.Options`.

    Returns:
        The record, with one answer for each question, target, method and size.

    Raises:
        UsageError: An argument is invalid.
        AbsentError: A device, a runtime or a permission is missing.
        FailedError: A target failed; its attribute `record` has the answers so far.
        Interrupted: Ctrl-C; its attribute `record` has the answers so far.

    >>> import lanemark
    >>> record = lanemark.bench("card-gen5-x16", "mmio_write_bandwidth", memory_type="wc", access="memcpy", sizes=64)
    >>> [answer["size_bytes"] for answer in record.answers]
    [64]
    """
    return _run("bench", on, questions, progress, options, by_formulas=False)


def simulate(
    on: On | Iterable[On] = "card-gen5-x16",
    questions: Asked = (),
    *,
    progress: Progress = None,
    **options: Unpack[Options],
) -> Record:
    """Simulates platforms: as `bench`, but a real target is refused.

    >>> import lanemark
    >>> lanemark.simulate("host", "mmio_read_latency")
    Traceback (most recent call last):
    ...
    lanemark.errors.UsageError: 'host' is a real machine: use bench, or name a platform
    """
    targets = [on] if isinstance(on, (str, Platform, os.PathLike)) else list(on)
    for target in targets:
        if not isinstance(target, Platform) and _lanemark.is_real(path_text("on", target)):
            raise UsageError(f"'{os.fspath(target)}' is a real machine: use bench, or name a platform")
    return _run("simulate", targets, questions, progress, options, by_formulas=False)


def predict(
    on: On | Iterable[On] = "card-gen5-x16",
    questions: Asked = (),
    *,
    progress: Progress = None,
    **options: Unpack[Options],
) -> Record:
    """Computes closed formulas only: as `bench`, for platforms.

    >>> import lanemark
    >>> record = lanemark.predict("card-gen5-x16", "dma_write_bandwidth", sizes="4K")
    >>> record.answers[0]["formula"]["bound"] is not None
    True
    """
    return _run("predict", on, questions, progress, options, by_formulas=True)


def questions() -> list[Question]:
    """The questions that can be asked.

    >>> import lanemark
    >>> "dma_read_latency" in [question.name for question in lanemark.questions()]
    True
    """
    return [Question(*row) for row in _lanemark.questions()]


class Built(NamedTuple):
    """Names of the built-in platforms, hosts and cards."""

    platforms: Sequence[str]
    #: With a card, a platform: `Platform("xeon-spr+gpu-h100")`.
    hosts: Sequence[str]
    cards: Sequence[str]


def platforms() -> Built:
    """Names of the built-in platforms, hosts and cards.

    >>> import lanemark
    >>> "card-gen5-x16" in lanemark.platforms().platforms
    True
    """
    return Built(*_lanemark.platforms())
