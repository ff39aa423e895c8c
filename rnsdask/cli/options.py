"""Options that several commands share, and the values that they give."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial, reduce, wraps
from inspect import signature
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import (
    CLUSTER,
    MODULI,
    OTHER,
    OUTPUT,
    PROCESSORS,
    RECORDS,
    options_of,
    refuse,
    refusing,
)
from rnsdask.cli.integers import INTEGER, NOT_NEGATIVE, POSITIVE, read_integer
from rnsdask.cli.printing import SHOWN_DIGITS, CommandError, open_input, remember_digits, remember_quiet
from rnsdask.cli.wording import in_options
from rnsdask.core.messages import QUIET, note, tell
from rnsdask.core.ways import Message

if TYPE_CHECKING:
    from distributed import Client

    from rnsdask.core.moduli import ModuliSet
    from rnsdask.core.wide_moduli import WideModuli
    from rnsdask.jobs.memory_plan import Work
    from rnsdask.positional.system import Positional
    from rnsdask.rns.system import RNS

_Function = Callable[..., Any]
_Decorator = Callable[[_Function], _Function]

_moduli, _records, _output = map(options_of, (MODULI, RECORDS, OUTPUT))
_processors, _cluster, _other = map(options_of, (PROCESSORS, CLUSTER, OTHER))


def joined(*options: _Decorator) -> _Decorator:
    """Join several options into one decorator."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def as_one(name: str, make: Callable[..., Any], *options: _Decorator) -> _Decorator:
    """Give a command several options as one value, `name`, which `make` creates from them."""
    taken = tuple(signature(make).parameters)

    def decorate(command: _Function) -> _Function:
        @joined(*options)
        @wraps(command)
        def wrapped(**given: Any) -> Any:
            value = make(**{option: given.pop(option) for option in taken})
            return command(**given, **{name: value})

        return wrapped

    return decorate


def _read_gpus(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Any:
    if value is None or value == "all":
        return value
    return _read_positive(value)


def _read_positive(text: str) -> int:
    """Read a positive integer, for options that also accept 'all'."""
    number = read_integer(text)
    if number is None or not 1 <= number <= _MOST:
        raise click.BadParameter(f"it must be an integer from 1 to {_MOST}, or 'all', got {text!r:.80}")
    return number


def _read_progress(_ctx: click.Context, _param: click.Parameter, value: bool | None) -> bool:
    return sys.stderr.isatty() and not QUIET.get() if value is None else value


_LONGEST = 2**63 - 1
"""Longest chunk that arrays have."""

_MOST = 10**9 - 1
"""Most GPUs, and most digits shown; more is a typing error."""


def _read_chunks(_ctx: click.Context, _param: click.Parameter, value: str) -> Any:
    """Read chunks: one integer or text, or a tuple of several."""
    items = [item.strip() for item in value.split(",")]
    chunks = tuple(item if (read := read_integer(item)) is None else read for item in items)
    for item, length in zip(items, chunks, strict=True):
        if isinstance(length, int) and length != -1 and not 1 <= length <= _LONGEST:
            raise click.BadParameter(f"a chunk's length must be from 1 to {_LONGEST}, or -1, got {item:.40}")
    return chunks if len(chunks) > 1 else chunks[0]


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _LocalPath(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Local path, as text: a Path drops the ``./`` that distinguishes ``./s3:/x`` from a URL."""

    name = "path"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse a URL, text that is neither a URL nor a path, and a path within a Zarr array."""
        from rnsdask.core.places import read_local
        from rnsdask.store import check_file_outside_arrays

        try:
            path = read_local(value, "it")
            check_file_outside_arrays(path)
            return path
        except ValueError as error:
            self.fail(in_options(str(error)), param, ctx)


LOCAL_PATH = _LocalPath()


def complete_path(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Any:
    """Let the shell complete the path of a store, which may also be a URL."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def check_store_path(path: str) -> None:
    """Refuse standard output, and names of files of other formats, as the path of a new store."""
    if path == "-":
        refuse("a store cannot be standard output; rnsdask export writes text there")
    from rnsdask.core.places import read_place

    with refusing():
        read_place(path, "a store's path")
    from rnsdask.core.file_formats import ZARR, format_of_name, replace_suffix

    if (kind := format_of_name(path)) not in (None, ZARR):
        other = replace_suffix(path, ".zarr")
        refuse(f"{path}: its name is that of {kind}, and a store is a folder; name it {other}, for example")


def read_shape(text: str | None) -> tuple[int, ...] | None:
    """Read the lengths of ``--shape``; None without it."""
    if text is None:
        return None
    lengths = [read_integer(part.strip()) for part in text.split(",")]
    found = tuple(length for length in lengths if length is not None and length >= 0)
    if len(found) < len(lengths):
        refuse(f"--shape must be lengths with commas between them, such as 200,300, got {text!r:.80}")
    return found


store_argument = click.argument("path", metavar="STORE", shell_complete=complete_path)
source_argument = click.argument("source", metavar="SRC", shell_complete=complete_path)


class _FormerArgument(click.Argument):
    """Output as an argument of a command that takes it by ``-o``: the former form, not in its usage line."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """Return nothing."""
        return []


def _output_by(
    argument: type[click.Argument] | None, name: str, metavar: str, what: str = "store"
) -> _Decorator:
    """Give a command its output by ``-o``, as `name`; with a class of arguments by one of these, too.

    A command that had its output as an argument once takes it with a warning.
    """
    option = click.option(
        "-o", "--output", name, metavar=metavar, shell_complete=complete_path, help=f"The new {what}."
    )

    def decorate(command: _Function) -> _Function:
        @wraps(command)
        def wrapped(**options: Any) -> Any:
            context = click.get_current_context()
            given = context.params.pop("output_argument", ())
            options.pop("output_argument", None)
            options[name] = context.params[name] = _one_output(argument, given, options[name], what, metavar)
            return command(**options)

        if argument is not None:
            return click.argument(
                "output_argument",
                metavar=f"[{metavar}]",
                cls=argument,
                nargs=-1,
                shell_complete=complete_path,
            )(option(wrapped))
        return option(wrapped)

    return decorate


def _one_output(
    argument: type[click.Argument] | None, given: Any, path: str | None, what: str, metavar: str
) -> str:
    """Return the output that is given once, by the option or as an argument."""
    if len(given) > 1 or (given and path is not None):
        extra = given[1] if len(given) > 1 else given[0]
        raise click.UsageError(f"Got unexpected extra argument ({extra})", click.get_current_context())
    if path is not None:
        return path
    if not given:
        missing = f"argument '{metavar}'" if argument is click.Argument else "option '-o' / '--output'"
        raise click.UsageError(f"Missing {missing}.", click.get_current_context())
    if argument is _FormerArgument:
        tell(f"rnsdask: warning: give the new {what} by -o; as an argument it is in the former form")
    return str(given[0])


output_option = _output_by(None, "path", "STORE")
"""The new store of a command, by ``-o`` alone."""

destination_option = _output_by(_FormerArgument, "path", "STORE")
"""New store of a command that took it as an argument, which it still does."""

new_store = _output_by(click.Argument, "path", "STORE")
"""The new store of a command, as its last argument or by ``-o``."""

new_file = _output_by(click.Argument, "output", "OUTPUT", "file")
"""The new file of a command, as its last argument or by ``-o``."""

json_option = _output("--json", "as_json", is_flag=True, help="Print one JSON object.")


def _read_digits(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    remember_digits(ctx, param, value if value in (None, "all") else _read_positive(value))


digits_option = _output(
    "--digits",
    metavar="N|all",
    callback=_read_digits,
    expose_value=False,
    help=f"Longest number that is printed whole.  [default: {SHOWN_DIGITS} on a terminal, else all]",
)

binary_options = joined(
    _records(
        "--binary", "width", type=POSITIVE, metavar="BYTES", help="Records of this width, without a header."
    ),
    _records(
        "--byte-order",
        "byteorder",
        type=click.Choice(["little", "big"]),
        help="With --binary: which byte is first, the least or the most significant.  [default: little]",
    ),
)
"""Options of binary records: `width` and `byteorder`."""


def records_form(width: int | None, byteorder: str | None) -> dict[str, Any]:
    """Make the form of records that the options ask for."""
    if byteorder is not None and width is None:
        refuse("--byte-order needs --binary")
    return {"width": width, "byteorder": byteorder or "little"}


progress_option = joined(
    _output(
        "-q",
        "--quiet",
        is_flag=True,
        is_eager=True,
        callback=remember_quiet,
        expose_value=False,
        help="Print results, warnings and errors alone.",
    ),
    _output(
        "--progress/--no-progress",
        default=None,
        callback=_read_progress,
        help="Show progress.  [default: on a terminal]",
    ),
)

checkpoint_option = _output(
    "--checkpoint",
    type=LOCAL_PATH,
    metavar="DIR",
    help="Keep partial results there, to continue from.",
)

moduli_options = joined(
    _moduli(
        "--bits",
        type=INTEGER,
        metavar="B",
        help="Integers of B bits, the sign among them: the fewest moduli whose product is at least 2**B.",
    ),
    _moduli(
        "--modulus-bits", type=INTEGER, metavar="W", help="With --bits: moduli up to 2**W.  [default: 32]"
    ),
    _moduli("--moduli", "moduli_file", metavar="FILE", help="File of moduli, one a line; - for stdin."),
)

_creation_options = joined(
    _moduli("--signed", is_flag=True, help="Symmetric range around 0 instead of 0 to M-1."),
    _output(
        "--chunk",
        "--chunks",
        "chunks",
        callback=_read_chunks,
        default="auto",
        metavar="N[,N...]",
        help="Integers in a chunk, along each axis; -1: all of it; auto: chunks of 64 to 128 MiB.",
    ),
)

_mode_options = joined(
    _output("--overwrite", is_flag=True, help="Replace an old output once the new one is whole."),
    _output(
        "--resume",
        is_flag=True,
        help="Continue what this same command began; begin, or do nothing if it is complete.",
    ),
)

_address_options = joined(
    _cluster(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the cluster of this Dask scheduler.  [default: DASK_SCHEDULER_ADDRESS]",
    ),
    _cluster(
        "--scheduler-file", type=LOCAL_PATH, metavar="FILE", help="Where the scheduler wrote its address."
    ),
    _cluster(
        "--tls-ca-file", type=_FILE, metavar="FILE", help="Authority that signed its certificate, as PEM."
    ),
    _cluster("--tls-cert", type=_FILE, metavar="FILE", help="This client's certificate, as PEM."),
    _cluster("--tls-key", type=_FILE, metavar="FILE", help="Private key of that certificate, as PEM."),
)

_scheduler_options = joined(
    _other(
        "--retries",
        type=NOT_NEGATIVE,
        metavar="N",
        help="How often to try again after an error that may pass.  [default: 3]",
    ),
    _address_options,
    _cluster(
        "--report", type=LOCAL_PATH, metavar="FILE", help="Write Dask's performance report there, as HTML."
    ),
)

_log_option = _other(
    "--log-json",
    "log",
    type=LOCAL_PATH,
    metavar="FILE",
    help="Log the events of the job there, one JSON object a line.",
)

processor_options = joined(
    _processors(
        "--gpus",
        metavar="N|all",
        callback=_read_gpus,
        help="Use 1 GPU, or a worker on each of N; all: as many as gain time.",
    ),
    _processors(
        "--protocol",
        type=click.Choice(["tcp", "ucx"]),
        help="How workers of several GPUs exchange chunks.  [default: tcp]",
    ),
    _processors(
        "--backend",
        type=click.Choice(["auto", "cpu", "cuda"]),
        default="auto",
        help="Processor.  [default: auto, a GPU if any]",
    ),
)


def with_moduli(command: _Function) -> _Function:
    """Give a command the moduli set that its options ask for, as `moduli`."""

    @moduli_options
    @wraps(command)
    def wrapped(bits: int | None, modulus_bits: int | None, moduli_file: str | None, **rest: Any) -> Any:
        if moduli_file == rest.get("source") == "-":
            refuse("INPUT and --moduli cannot both be standard input")
        return command(moduli=moduli_set(bits, modulus_bits, moduli_file), **rest)

    return wrapped


def with_mode(command: _Function) -> _Function:
    """Give a command the `mode`: whether an array at its output is replaced or resumed."""

    @_mode_options
    @wraps(command)
    def wrapped(overwrite: bool, resume: bool, **rest: Any) -> Any:
        return command(mode={"overwrite": overwrite, "resume": resume}, **rest)

    return wrapped


def with_creation(command: _Function) -> _Function:
    """Give a command the options of a new store: `signed`, `chunks`, and `mode` (:func:`with_mode`)."""

    @_creation_options
    @with_mode
    @wraps(command)
    def wrapped(**options: Any) -> Any:
        return command(**options)

    return wrapped


def with_log(command: _Function) -> _Function:
    """Write what a command does to the file of ``--log-json``."""

    @_log_option
    @wraps(command)
    def wrapped(log: str | None, **rest: Any) -> Any:
        if log is None:
            return command(**rest)
        from rnsdask.jobs.log import json_log

        context = click.get_current_context()
        with json_log(log, in_options, command=context.info_name, options=context.params):
            try:
                return command(**rest)
            except click.exceptions.Exit as end:  # a status that is an answer, as from compare
                status = end.exit_code
        return context.exit(status)

    return wrapped


def with_memory(command: _Function) -> _Function:
    """Run a command within the memory of ``--memory``."""

    @_other(
        "--memory",
        metavar="SIZE",
        help="Memory that this process may take, such as 4GiB.  [default: the host's]",
    )
    @wraps(command)
    def wrapped(memory: str | None, **rest: Any) -> Any:
        if memory is None:
            return command(**rest)
        from rnsdask.cluster.limits import limited_memory

        with ExitStack() as stack:
            try:
                stack.enter_context(limited_memory(memory))
            except ValueError:
                refuse(f"--memory must be a size with its unit, such as 4GiB, got {memory!r:.80}")
            return command(**rest)

    return wrapped


def with_cluster(command: _Function, *, auto: str = "auto") -> _Function:
    """Give a command the `connection` to its cluster, and the options of the job's reports.

    The `connection` is a :data:`Connection`. If the user did not choose a `backend`, it is `auto`.
    """

    @_scheduler_options
    @with_log
    @with_memory
    @wraps(command)
    def wrapped(
        scheduler: str | None,
        scheduler_file: str | None,
        report: str | None,
        retries: int | None,
        tls_ca_file: Path | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        **rest: Any,
    ) -> Any:
        gpus, protocol = rest.pop("gpus", None), rest.pop("protocol", None)
        if sum(given is not None for given in (scheduler, scheduler_file, gpus)) > 1:
            refuse("give one of --scheduler, --scheduler-file and --gpus, not several")
        if protocol is not None and gpus is None:
            refuse("--protocol is for the workers of --gpus; a cluster that runs already has its own")
        if gpus is not None and rest.get("backend") == "cpu":
            refuse("--gpus and --backend cpu contradict each other")
        if rest.get("backend") == "auto":
            rest["backend"] = auto
        from rnsdask.jobs.run import with_retries

        tls = (tls_ca_file, tls_cert, tls_key)
        if gpus is not None and any(tls):
            refuse("--tls-ca-file, --tls-cert and --tls-key are for a cluster that runs already, not --gpus")
        with with_retries(retries):
            connection = partial(_connection, scheduler, scheduler_file, gpus, protocol, report, tls)
            return command(connection=connection, **rest)

    return wrapped


def with_scheduler(command: _Function) -> _Function:
    """Give a command the `cluster` of its options: a function that connects to it.

    That returns a context manager of a client, or of None where no option and no setting of Dask's names a
    scheduler.
    """

    @_address_options
    @wraps(command)
    def wrapped(
        scheduler: str | None,
        scheduler_file: str | None,
        tls_ca_file: Path | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        **rest: Any,
    ) -> Any:
        if scheduler is not None and scheduler_file is not None:
            refuse("give one of --scheduler and --scheduler-file, not both")
        tls = (tls_ca_file, tls_cert, tls_key)
        return command(cluster=partial(_cluster_of, scheduler, scheduler_file, tls), **rest)

    return wrapped


@contextmanager
def _cluster_of(
    scheduler: str | None, scheduler_file: str | None, tls: tuple[Any, ...]
) -> Iterator["Client | None"]:
    from rnsdask.cluster.connecting import connect, tls_security

    with connect(scheduler, scheduler_file, None, tls_security(*tls)) as client:
        yield client


job_options = joined(with_cluster, progress_option, json_option)
"""Options of a job: `connection`, `progress` and `as_json`."""

processor_job_options = joined(with_cluster, processor_options, progress_option, json_option)
"""Options of a job that may run on GPUs: also `backend`."""

host_job_options = joined(partial(with_cluster, auto="cpu"), processor_options, progress_option, json_option)
"""Options of a job that reads and writes more than it computes: on the host, unless ``--backend cuda``.

There it takes no longer than reading and writing; a GPU would add copies both ways, and some 30 small kernels
to compile.
"""


Connection = Callable[["Work"], AbstractContextManager["Client | None"]]
"""Context of a job: its client, or None to run it on the threads of this process."""


@contextmanager
def _connection(
    scheduler: str | None,
    scheduler_file: str | None,
    gpus: Any,
    protocol: str | None,
    report: str | None,
    tls: tuple[Any, ...],
    work: "Work",
) -> Iterator["Client | None"]:
    from rnsdask.cluster.connecting import check_gpu, connect, dashboard_of, reporting, tls_security
    from rnsdask.jobs.memory_plan import threads_per_gpu

    with refusing():
        security = tls_security(*tls)
    if gpus == "all":
        gpus = _chosen_gpus(work)
    if gpus == 1 and report is None:
        check_gpu()
        yield None
        return
    workers: dict[str, Any] = {}
    if gpus is not None:
        workers = {"threads_per_gpu": threads_per_gpu(work, gpus), "protocol": protocol}
    with connect(scheduler, scheduler_file, gpus, security, **workers) as client:
        if client is None and security is not None:
            refuse("--tls-ca-file, --tls-cert and --tls-key are for a scheduler: give --scheduler")
        if client is None and report is not None:
            refuse("--report is about the tasks of a cluster: give --scheduler, --scheduler-file or --gpus")
        if client is not None and gpus is None and (address := dashboard_of(client)):
            note(f"dashboard: {address}")
        with reporting(client, report):
            yield client


def _chosen_gpus(work: "Work") -> int:
    """Choose the number of this host's GPUs for a job, and print it on standard error."""
    from rnsdask.cluster.connecting import check_gpu, gpu_count

    check_gpu()
    available = gpu_count()
    chosen = work.gpus(available)
    why = ", each with a worker" if chosen > 1 else ""
    if chosen < available:
        why += f": more would gain {work.operation} no time on this much data; --gpus {available} takes all"
    note(f"rnsdask: on {chosen} of {available} {'GPU' if available == 1 else 'GPUs'}{why}")
    return chosen


residue_options = joined(
    _records("--residues", is_flag=True, help="Residues instead of integers: a NumPy file, or a Zarr array."),
    _records(
        "--moduli-list",
        metavar="M,M,...",
        help="With --residues: the moduli, up to 2**64; also --moduli FILE.",
    ),
    _records(
        "--axis",
        type=INTEGER,
        metavar="K",
        help="With --residues: their axis, such as -1 for the last.  [default: 0]",
    ),
)
"""Options of residues of other programs: `residues`, `moduli_list` and `axis`."""


def moduli_of_other_programs(moduli_list: str | None, moduli_file: str | None) -> "ModuliSet | WideModuli":
    """Read the moduli of residues from a list or a file; they may be too large for a moduli set."""
    from rnsdask.core.integer_text import read_moduli
    from rnsdask.core.wide_moduli import moduli_of_residues

    if (moduli_list is None) == (moduli_file is None):
        refuse("--residues needs either --moduli-list or --moduli")
    if moduli_file is None:
        text = str(moduli_list).replace(",", "\n").encode("utf-8", "surrogateescape")
        with refusing():
            return moduli_of_residues(read_moduli(BytesIO(text), "--moduli-list"))
    with open_input(moduli_file) as (stream, name):
        moduli = read_moduli(stream, name)
    try:
        return moduli_of_residues(moduli)
    except ValueError as error:
        raise CommandError(Message(f"{name}: ", error)) from None


positional_option = _moduli(
    "--positional", is_flag=True, help="Make a store of limbs, for numbers of --bits bits."
)


def integer_system(
    positional: bool, bits: int | None, modulus_bits: int | None, moduli_file: str | None, signed: bool
) -> "RNS | Positional":
    """Make the number system that the options of a new store of integers ask for."""
    from rnsdask.positional.system import Positional
    from rnsdask.rns.system import RNS

    if not positional:
        moduli = moduli_set(bits, modulus_bits, moduli_file)
        with refusing():
            return RNS(moduli, signed)
    if bits is None or (modulus_bits, moduli_file) != (None, None):
        refuse("--positional needs --bits, and excludes --modulus-bits and --moduli")
    with refusing():
        return Positional(bits, signed)


def moduli_set(bits: int | None, modulus_bits: int | None, moduli_file: str | None) -> "ModuliSet":
    """Make the moduli set that the options ask for."""
    if (bits is None) == (moduli_file is None):
        refuse("give either --bits or --moduli")
    if modulus_bits is not None and bits is None:
        refuse("--modulus-bits needs --bits")
    if moduli_file is not None:
        return _moduli_in_file(moduli_file)
    from rnsdask.core.moduli import ModuliSet

    assert bits is not None
    with refusing():
        return ModuliSet.for_bits(bits, 32 if modulus_bits is None else modulus_bits)


def _moduli_in_file(path: str) -> "ModuliSet":
    from rnsdask.core.integer_text import read_moduli
    from rnsdask.core.moduli import ModuliSet

    with open_input(path) as (stream, name):
        moduli = read_moduli(stream, name)
    try:
        return ModuliSet(moduli)
    except ValueError as error:
        raise CommandError(Message(f"{name}: ", error)) from None
