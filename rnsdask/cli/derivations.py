"""Commands that derive a store from others, such as ``extend``, ``convert``, ``concat`` and ``slice``."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command, refuse, refusing
from rnsdask.cli.integers import INTEGER, POSITIVE, read_integer
from rnsdask.cli.moduli import field_options, read_fields
from rnsdask.cli.options import (
    Connection,
    check_store_path,
    complete_path,
    destination_option,
    job_options,
    output_option,
    processor_job_options,
    source_argument,
    with_mode,
    with_moduli,
)
from rnsdask.cli.printing import is_done, tell_derived
from rnsdask.core.ways import Kind, Message

if TYPE_CHECKING:
    from rnsdask.core.moduli import ModuliSet
    from rnsdask.core.number_system import NumberSystem


_WORDS_OF_POWERS = 300
"""Words of a number times words of an exponent for which a GPU computes about a second for each GB."""

_NUMBERS_OF_ROOT = 12
"""Estimated memory of a tree's root, in numbers as long as all keys together."""


def derive(
    operation: str,
    sources: Sequence[str],
    path: str,
    make: Callable[..., Any],
    *,
    mode: dict[str, bool],
    connection: Connection,
    progress: bool,
    as_json: bool,
    backend: str = "cpu",
    of_fields: bool = False,
    **about: Any,
) -> None:
    """Derive an array from stores, write it to a new store, and report it."""
    check_store_path(path)
    from rnsdask.jobs import derivation
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.jobs.sources import OF_INTEGERS, OF_NUMBERS, Source, check_target
    from rnsdask.store import Output

    systems = OF_NUMBERS if of_fields else OF_INTEGERS
    opened = [Source.at(source, systems) for source in sources]
    try:
        prepared = derivation.prepare(operation, opened, make, backend=backend, **about)
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        refuse(Message(f"{operation} of {' '.join(sources)}: ", error))
    output = Output(path, prepared.job, **mode)
    check_target(output, prepared.sources)
    if is_done(operation, output, as_json):
        return
    with (
        connection(prepared.work) as client,
        fitting(prepared.work, client, backend=backend),
        measured() as cost,
    ):
        done = derivation.write(prepared, output, client, progress=progress)
    tell_derived(operation, sources, path, done, cost, as_json, shape=prepared.array.shape)


# ---- other words for the same numbers ---------------------------------------------------------------------


def _of_moduli(name: str, description: str) -> click.Command:
    """Make the command of a method that takes a moduli set."""

    @click.command(name, cls=Command, help=description)
    @source_argument
    @destination_option
    @with_moduli
    @with_mode
    @processor_job_options
    def command(source: str, path: str, moduli: "ModuliSet", **options: Any) -> None:
        about: dict[str, Any] = {"method": name, "moduli": list(moduli)}
        derive(name, [source], path, lambda x: getattr(x, name)(moduli), **about, **options)

    return command


_NAMES = ("interval", "rns", "positional", "field")
"""The package's own systems, as ``--to`` names them."""


class _System(click.Choice[str]):
    """Option type: one of the package's own systems, or another system without parameters, by its name."""

    def __init__(self) -> None:
        super().__init__(_NAMES)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from rnsdask.core.number_system import system_type

        if value not in _NAMES:
            with suppress(LookupError):
                if system_type(value).required_fields is None:  # not one of the package's
                    return str(value)
        return super().convert(value, param, ctx)


def _to_limbs(x: Any, bits: int | None = None, signed: bool | None = None) -> Any:
    """Convert an array to limbs, by default as many as hold its range."""
    lowest, highest = x.system.value_range
    is_signed = lowest < 0 if signed is None else signed
    longest = max(highest, ~lowest if lowest < 0 else 0).bit_length() + is_signed
    return x.to_positional(longest if bits is None else bits, is_signed)


def _to_system(x: Any, system: "NumberSystem") -> Any:
    """Convert an array to another system, which must hold its numbers."""
    from rnsdask.lazy.convert import words_in

    return system.array_type(words_in(x, system), system)


@click.command(cls=Command)
@source_argument
@destination_option
@click.option(
    "--to",
    "system",
    type=_System(),
    required=True,
    help="Signed integers with intervals; residues; limbs; elements of fields; or a system that an installed "
    "package declares, by its name.",
)
@click.option(
    "--signed/--unsigned",
    default=None,
    help="With --to rns or positional: whether numbers may be negative.  [default: as in SRC]",
)
@click.option(
    "--bits",
    type=POSITIVE,
    metavar="B",
    help="With --to positional: bits of a number, with its sign. With --to rns from limbs: the least bits "
    "of the product of the moduli.  [default: as many as hold the range]",
)
@field_options
@with_mode
@processor_job_options
def convert(
    source: str,
    path: str,
    system: str,
    signed: bool | None,
    bits: int | None,
    primes: str | None,
    ntt_length: int | None,
    **options: Any,
) -> None:
    """Write the integers of SRC in another number system to a new store.

    Residues keep their moduli when they get intervals, or lose them. Elements of fields become integers
    under the primes as moduli: from 0 to M - 1, or around 0 with --signed.
    """
    fields = read_fields(primes, ntt_length, bits)
    if (fields is None) == (system == "field"):
        refuse("--to field goes with --primes, or with --bits and --ntt-length")
    if fields is not None and signed is not None:
        refuse("--signed is for --to rns and positional: elements of fields have no sign")
    if system == "interval" and (signed, bits) != (None, None):
        refuse("--signed and --bits are for --to rns and positional: intervals have a sign for each number")

    def make(x: Any) -> Any:
        from rnsdask.arrays.field_array import FieldArray
        from rnsdask.arrays.interval_rns_array import IntervalRNSArray
        from rnsdask.arrays.positional_array import PositionalArray
        from rnsdask.arrays.rns_array import RNSArray
        from rnsdask.core.moduli import ModuliSet
        from rnsdask.core.number_system import system_type

        if isinstance(x, FieldArray):
            if system != "rns" or bits is not None:
                raise ValueError("of elements of fields --to rns makes integers, without --bits")
            return x.lift(bool(signed))
        if fields is not None:
            return FieldArray.from_rns(x, fields)
        if system not in _NAMES:
            return _to_system(x, system_type(system).from_stored({}))
        made = {"rns": RNSArray, "interval": IntervalRNSArray, "positional": PositionalArray}[system]
        if type(x) is made and (system != "positional" or (signed, bits) == (None, None)):
            already = f" already, which is what --to {system} makes"
            raise ValueError(Message("it is ", Kind.of(made, "a"), already))
        if system == "positional":
            return _to_limbs(x, bits, signed)
        if x.system.residue_moduli is None:
            x = x if type(x) is PositionalArray else _to_limbs(x)
            if system == "interval":
                return IntervalRNSArray.from_rns(x.to_rns())
            return x.to_rns(None if bits is None else ModuliSet.for_bits(bits), signed)
        if bits is not None:
            raise ValueError(
                "--bits is for --to positional, or for a store of limbs; rnsdask extend takes more moduli"
            )
        return x.to_rns(signed is not False) if system == "rns" else IntervalRNSArray.from_rns(x)

    if system not in _NAMES and (signed, bits) != (None, None):
        refuse(f"--signed and --bits are for --to rns and positional, not for {system}")
    about: dict[str, Any] = {"to": system, "signed": signed, "bits": bits}
    if fields is not None:
        about["primes"] = list(fields.primes)
    derive("convert", [source], path, make, of_fields=True, **about, **options)


# ---- what is computed of two stores -----------------------------------------------------------------------


@click.command(cls=Command)
@click.argument("a", metavar="A", shell_complete=complete_path)
@click.argument("b", metavar="B", shell_complete=complete_path)
@output_option
@click.option(
    "--mode",
    "kind",
    type=click.Choice(["full", "same", "valid", "cyclic", "negacyclic"]),
    default="full",
    show_default=True,
    help="Which numbers: as numpy.convolve, or of operands of one length folded onto that.",
)
@click.option(
    "--axis", type=INTEGER, metavar="K", default=-1, show_default=True, help="The axis; the others broadcast."
)
@click.option(
    "--overflow",
    type=click.Choice(["raise", "wrap"]),
    help="On an integer out of range: fail, or take it modulo M.  [default: raise]",
)
@with_mode
@processor_job_options
def convolve(a: str, b: str, path: str, kind: str, axis: int, overflow: str | None, **options: Any) -> None:
    """Write the exact convolution of A and B to a new store.

    With the mode full, these are the coefficients of the product of two polynomials.
    """

    def make(x: Any, y: Any) -> Any:
        from rnsdask.jobs.sources import check_overflow
        from rnsdask.lazy import convolve as convolution

        for store, array in ((a, x), (b, y)):
            check_overflow(store, array.system, overflow)
        given: Any = overflow
        return convolution.convolve(x, y, kind, axis, overflow=given)

    def waiting(x: Any, y: Any) -> int:
        from rnsdask.lazy import convolve as convolution

        return convolution.numbers_waiting(x, y, kind, axis)

    about: dict[str, Any] = {"kind": kind, "axis": axis, "overflow": overflow}
    derive("convolve", [a, b], path, make, of_fields=True, waiting=waiting, **about, **options)


# ---- order ------------------------------------------------------------------------------------------------


@click.command(cls=Command)
@source_argument
@destination_option
@click.option(
    "--axis", type=INTEGER, metavar="K", default=-1, show_default=True, help="The axis to sort along."
)
@with_mode
@processor_job_options
def sort(
    source: str,
    path: str,
    axis: int,
    mode: dict[str, bool],
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Write the integers of SRC in ascending order to a new store.

    SRC may be larger than memory: if half of it does not hold all numbers, they are sorted in two passes,
    with a temporary store next to the new one.
    """
    check_store_path(path)
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.jobs.sorting import in_runs, prepare, write_sorted
    from rnsdask.jobs.sources import OF_INTEGERS, Source, check_target
    from rnsdask.store import Output

    opened = Source.at(source, OF_INTEGERS)
    try:
        prepared = prepare(opened, axis, backend)
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        refuse(Message(f"sort of {source}: ", error))
    output = Output(path, prepared.derived.job, **mode)
    check_target(output, [opened])
    if is_done("sort", output, as_json):
        return
    with connection(prepared.work) as client:
        chosen = in_runs(prepared, client)
        with fitting(chosen.work, client, backend=backend), measured() as cost:
            done = write_sorted(chosen, output, client, progress=progress)
    read = "read" if chosen.runs is None else "read in two passes"
    tell_derived("sort", [source], path, done, cost, as_json, read=read, shape=chosen.derived.array.shape)


# ---- powers modulo an integer -----------------------------------------------------------------------------


@click.command(cls=Command)
@click.argument("base", metavar="BASE", shell_complete=complete_path)
@click.argument("exponent", metavar="EXPONENT", shell_complete=complete_path)
@click.argument("modulus", metavar="MODULUS", shell_complete=complete_path)
@output_option
@with_mode
@processor_job_options
def powmod(base: str, exponent: str, modulus: str, path: str, **options: Any) -> None:
    """Write powers of BASE modulo an integer to a new store.

    BASE is a store of limbs or residues. EXPONENT and MODULUS are each an integer, or a store with one for
    each number; their shapes broadcast. A negative integer as the exponent raises inverses. A store whose
    name is an integer is written ./NAME.
    """
    given = {"exponent": read_integer(exponent), "modulus": read_integer(modulus)}
    paths = {"exponent": exponent, "modulus": modulus}
    stores = [name for name, integer in given.items() if integer is None]

    def make(x: Any, *arrays: Any) -> Any:
        from rnsdask.lazy.modular import mod_power

        operands = {**given, **dict(zip(stores, arrays, strict=True))}
        return mod_power(x, operands["exponent"], operands["modulus"])

    def memory(x: Any, *arrays: Any) -> dict[str, Any]:
        raised = given["exponent"]
        words = arrays[0].system.words32 if raised is None else -(-raised.bit_length() // 32)
        return {"passes": words * x.system.words32 / _WORDS_OF_POWERS}

    about: dict[str, Any] = {
        name: None if integer is None else hex(integer) for name, integer in given.items()
    }
    derive(
        "powmod",
        [base, *(paths[name] for name in stores)],
        path,
        make,
        memory=memory,
        **about,
        **options,
    )


# ---- factors that numbers share ---------------------------------------------------------------------------


@click.command(cls=Command)
@source_argument
@output_option
@with_mode
@processor_job_options
def batchgcd(source: str, path: str, **options: Any) -> None:
    """Write the factors that numbers share to a new store.

    SRC is a store of limbs, such as RSA moduli, all positive. Results are greatest common divisors of each
    number and the product of all others: 1 where a number shares no factor. The product of all numbers must
    fit in the memory of one process.
    """

    def make(x: Any) -> Any:
        from rnsdask.lazy.trees import batch_gcd

        return batch_gcd(x)

    def waiting(x: Any) -> int:
        # Products, sums and fractions of all levels above the chunks, and transforms of the longest.
        return (_NUMBERS_OF_ROOT + int(x.words.npartitions).bit_length()) * int(x.size)

    derive("batchgcd", [source], path, make, waiting=waiting, **options)


# ---- the same words in another order, or in other chunks --------------------------------------------------


@click.command(cls=Command)
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, shell_complete=complete_path)
@output_option
@click.option(
    "--axis",
    type=INTEGER,
    metavar="K",
    default=0,
    show_default=True,
    help="The axis along which they are joined.",
)
@with_mode
@job_options
def concat(sources: tuple[str, ...], path: str, axis: int, **options: Any) -> None:
    """Join stores along an axis, to a new store.

    They are joined in the order given, along an existing axis. They must have the same moduli set and range,
    and the same shape but for that axis.
    """

    def make(*arrays: Any) -> Any:
        from rnsdask.arrays.functions import concatenate

        return concatenate(arrays, axis)

    derive("concat", sources, path, make, of_fields=True, axis=axis, **options)


@click.command("slice", cls=Command)
@source_argument
@destination_option
@click.argument("index", metavar="INDEX")
@with_mode
@job_options
def slice_(source: str, path: str, index: str, **options: Any) -> None:
    """Write the part of SRC that INDEX selects to a new store.

    INDEX is NumPy's basic indexing, as between brackets in Python: "10:20", "::-1", "3, ::2",
    "..., -1", "None". Chunks of which nothing is selected are not read.
    """
    key = _read_index(index)
    derive("slice", [source], path, lambda x: x[key], of_fields=True, index=repr(key), **options)


@click.command(cls=Command)
@source_argument
@destination_option
@click.option(
    "--chunks",
    required=True,
    metavar="N,...|SIZE|auto",
    help="A chunk's length along each axis, -1 for all of it; a size, as 32MiB; auto: 64 to 128 MiB.",
)
@with_mode
@job_options
def rechunk(source: str, path: str, chunks: str, **options: Any) -> None:
    """Write the integers of SRC in other chunks to a new store."""
    is_size = chunks.isalnum() and read_integer(chunks) is None  # or auto
    lengths = chunks if is_size else _read_lengths(chunks, "--chunks")
    how: dict[str, Any] = {"read_in": lambda _: lengths, "of_fields": True, "chunks": lengths}
    derive("rechunk", [source], path, lambda x: x.rechunk(lengths), **how, **options)


@click.command(cls=Command)
@source_argument
@destination_option
@click.argument("shape", metavar="SHAPE")
@with_mode
@job_options
def reshape(source: str, path: str, shape: str, **options: Any) -> None:
    """Write the integers of SRC in another shape to a new store.

    They are in C order. SHAPE has a length for each axis, one of which may be -1.
    """
    lengths = _read_lengths(shape, "SHAPE")
    derive("reshape", [source], path, lambda x: x.reshape(lengths), of_fields=True, shape=lengths, **options)


def _read_lengths(text: str, name: str) -> tuple[int, ...]:
    lengths = [read_integer(part.strip()) for part in text.split(",")]
    found = tuple(length for length in lengths if length is not None)
    if len(found) < len(lengths):
        refuse(f"{name}: {text!r:.60} is not integers with commas between them, such as 1000,128")
    return found


def _read_index(text: str) -> Any:
    """Parse an index of integers, slices, ``...`` and ``None``, without evaluating the text."""
    import ast

    with refusing():
        try:
            parsed = ast.parse(f"_[{text}]", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            parsed = None
        if not isinstance(parsed, ast.Subscript) or not isinstance(parsed.value, ast.Name):
            raise _wrong_index(text)
        place = parsed.slice
        if isinstance(place, ast.Tuple):
            return tuple(_index_part(part, text) for part in place.elts)
        return _index_part(place, text)


def _index_part(node: Any, text: str) -> Any:
    import ast

    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else _index_part(end, text) for end in ends))
    if isinstance(node, ast.Constant) and (node.value in (None, ...) or type(node.value) is int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _index_part(node.operand, text)
        if type(value) is int:
            return -value if isinstance(node.op, ast.USub) else value
    raise _wrong_index(text)


def _wrong_index(text: str) -> ValueError:
    return ValueError(
        f"INDEX: {text!r:.60} is no index of integers, slices, ... and None, such as 10:20 or ..., ::2"
    )


extend = _of_moduli(
    "extend",
    "Write the integers of SRC under more moduli to a new store.\n\n"
    "Any moduli whose range holds all integers of SRC will do.",
)
shrink = _of_moduli(
    "shrink",
    "Write the integers of SRC under fewer moduli to a new store.\n\n"
    "Their range must hold all integers of SRC.",
)
