"""Commands that bring integers into a store and out of it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from rnsdask.cli.errors import Command, refuse, refusing
from rnsdask.cli.options import (
    binary_option,
    json_option,
    moduli_of_other_programs,
    moduli_options,
    moduli_or_bits,
    positional_option,
    progress_option,
    residue_options,
    store_argument,
    with_creation,
    with_log,
)
from rnsdask.cli.printing import echo, output_errors
from rnsdask.cli.streams import cost_text, open_input, print_json, size_text
from rnsdask.cli.value_export import export_values

if TYPE_CHECKING:
    from rnsdask.core.moduli import ModuliSet
    from rnsdask.core.wide_moduli import WideModuli
    from rnsdask.jobs.integers import IntegerSource
    from rnsdask.jobs.writing import Transfer
    from rnsdask.positional.system import Positional
    from rnsdask.rns.system import RNS
    from rnsdask.store import StoreInfo


@click.command("import", cls=Command)
@click.argument("source", metavar="INPUT")
@store_argument
@moduli_options
@with_creation
@binary_option
@residue_options
@positional_option
@click.option("--shape", metavar="R,C,...", help="The shape of the array; C order.  [default: one axis]")
@click.option(
    "--strict", is_flag=True, help="Refuse blank lines, spaces around integers and a byte order mark."
)
@with_log
@progress_option
@json_option
def import_(
    source: str,
    path: str,
    bits: int | None,
    modulus_bits: int | None,
    moduli_file: str | None,
    moduli_list: str | None,
    residues: bool,
    axis: str | None,
    width: int | None,
    shape: str | None,
    strict: bool,
    positional: bool,
    **options: Any,
) -> None:
    """Write the integers of INPUT (- for standard input) to a new STORE.

    INPUT is text, with one decimal or 0x hexadecimal integer on a line, or a Matrix Market file of integers;
    or, with --binary, integers of a fixed width, in two's complement with --signed. It is read piece by
    piece, so it may have any size; text may be compressed (gzip, bzip2, xz, zstandard), records if INPUT ends
    so (.gz, .bz2, .xz, .zst). With
    --residues it is a NumPy file (.npy) or a Zarr array of residues of any integer type; moduli greater than
    2**32 are replaced by others, exactly.
    """
    if strict and (residues or width is not None):
        refuse("--strict is about text, not --binary or --residues")
    if residues:
        if positional or any(option is not None for option in (width, bits, modulus_bits, shape)):
            refuse("--residues excludes --binary, --bits, --modulus-bits, --shape and --positional")
        moduli = moduli_of_other_programs(moduli_list, moduli_file)
        _import_residues(source, path, moduli, int(axis or 0), **options)
        return
    if moduli_list is not None or axis is not None:
        refuse("--moduli-list and --axis need --residues")
    if moduli_file == source == "-":
        refuse("INPUT and --moduli cannot both be standard input")
    words = moduli_or_bits(positional, bits, modulus_bits, moduli_file)
    _import_integers(source, path, words, width, _shape(shape), strict, **options)


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if not all(part.strip().isdecimal() and part.isascii() for part in text.split(",")):
        refuse(f"--shape must be lengths with commas between them, such as 200,300, got {text!r:.80}")
    return tuple(int(part) for part in text.split(","))


def _import_residues(
    source: str,
    path: str,
    moduli: "ModuliSet | WideModuli",
    axis: int,
    *,
    signed: bool,
    chunks: Any,
    mode: dict[str, bool],
    progress: bool,
    as_json: bool,
) -> None:
    from rnsdask.arrays import creation
    from rnsdask.core.errors import InputError
    from rnsdask.jobs import memory_plan
    from rnsdask.jobs import residues as job
    from rnsdask.jobs.cost import measured

    found = job.open_residues(source)
    try:
        with refusing():
            array = creation.from_residues(found, moduli, signed, axis=axis, chunks=chunks)
    except TypeError as error:
        raise InputError(f"{source}: {error}") from error
    work = memory_plan.describe(
        "residues", len(array.moduli), array.shape, [max(axis) for axis in array.chunks or ()]
    )
    how = {"moduli": list(map(str, moduli)), "axis": axis}
    with memory_plan.fitting(work), measured() as cost:
        done = job.import_residues(array, found, source, path, how, progress=progress, **mode)
    cost.record("import", done.count, done.bytes_read)
    if as_json:
        moduli_used = len(array.moduli)
        fields = {**done.as_dict(), **cost.as_dict(), "moduli": moduli_used, "bits": array.moduli.bits}
        print_json({"op": "import", "store": path, "input": source, **fields})
    else:
        time_taken = cost_text(done.bytes_read, cost)
        echo(f"{path}: {done.count} integers, {size_text(done.bytes_written)} under {array.moduli!r};")
        echo(f"  {size_text(done.bytes_read)} of {source} read ({time_taken}){done.resumed_text}")


def _import_integers(
    source: str,
    path: str,
    words: "ModuliSet | int",
    width: int | None,
    shape: tuple[int, ...] | None,
    strict: bool,
    *,
    signed: bool,
    chunks: Any,
    mode: dict[str, bool],
    progress: bool,
    as_json: bool,
) -> None:
    from rnsdask.jobs import integers, memory_plan
    from rnsdask.jobs.compression import decompressed
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.integer_streams import remaining_bytes
    from rnsdask.jobs.progress import metered
    from rnsdask.positional.system import Positional
    from rnsdask.rns.system import RNS

    with refusing():
        system = Positional(words, signed) if isinstance(words, int) else RNS(words, signed)
    with open_input(source) as (opened, name):
        stream = decompressed(opened, name, by_content=width is None)
        reader, shape, held = _reader(stream, name, system, width, shape, strict)
        size = remaining_bytes(stream)
        with refusing():
            lengths = integers.consecutive_chunks(chunks, shape, system.rows)
        work = memory_plan.describe("import", system.rows, lengths, lengths, cut=1, held=held)
        with (
            memory_plan.fitting(work),
            measured() as cost,
            metered("import", size, nbytes=size or 0, shown=progress) as meter,
        ):
            done = integers.import_integers(
                reader, name, path, system, chunks=chunks, shape=shape, advance=meter.advance, **mode
            )
    cost.record("import", done.count, done.bytes_read)
    if as_json:
        print_json({"op": "import", "store": path, "input": name, **done.as_dict(), **cost.as_dict()})
    else:
        time_taken, kind = cost_text(done.bytes_read, cost), "limbs" if isinstance(words, int) else "residues"
        echo(f"{path}: {done.count} integers, {size_text(done.bytes_written)} of {kind};")
        echo(f"  {size_text(done.bytes_read)} of {name} read ({time_taken}){done.resumed_text}")


def _reader(
    stream: BinaryIO,
    name: str,
    system: "RNS | Positional",
    width: int | None,
    shape: tuple[int, ...] | None,
    strict: bool,
) -> "tuple[IntegerSource, tuple[int, ...] | None, int]":
    """What reads a stream, by its options or its content; its shape, if known; and bytes that it holds."""
    from rnsdask.jobs.integer_streams import BinaryReader, TextReader
    from rnsdask.jobs.matrix_market import MatrixMarketReader, is_matrix_market

    lowest, highest = system.value_range
    if width is not None:
        return BinaryReader(stream, name, width, lowest, highest, signed=system.signed), shape, 0
    if not is_matrix_market(stream):
        return TextReader(stream, name, lowest, highest, strict=strict), shape, 0
    if strict:
        refuse(f"--strict is about lines of integers, and {name} is a Matrix Market file")
    matrix = MatrixMarketReader(stream, name, system)
    if shape not in (None, matrix.shape):
        refuse(f"--shape is {shape}, and {name} a Matrix Market file of a matrix of shape {matrix.shape}")
    return matrix, matrix.shape, matrix.held


@click.command(cls=Command)
@store_argument
@click.argument("output", metavar="OUTPUT")
@click.option("--hex", "hexadecimal", is_flag=True, help="Write 0x hexadecimal instead of decimal.")
@binary_option
@residue_options
@click.option("--moduli", "moduli_file", metavar="FILE", help="With --residues: file of moduli, one a line.")
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT if there is such a file.")
@with_log
@progress_option
@json_option
def export(
    path: str,
    output: str,
    hexadecimal: bool,
    width: int | None,
    residues: bool,
    moduli_list: str | None,
    moduli_file: str | None,
    axis: str | None,
    overwrite: bool,
    progress: bool,
    as_json: bool,
) -> None:
    """Write the integers of STORE to OUTPUT (- for standard output), as import reads them.

    STORE may also be a group; or what eval wrote of a comparison, as 0 and 1, or of sign. OUTPUT is
    compressed if it ends so (.gz, .bz2, .xz, .zst). With --residues it is a NumPy file (.npy) of the residues
    of a store, under its moduli or others that hold every number, up to 2**64: of uint32 if none is greater
    than 2**32, else of uint64.
    """
    foreign = {"moduli_list": moduli_list, "moduli_file": moduli_file, "axis": axis}
    _check_forms(output, hexadecimal, width, residues, foreign, as_json)
    opened = _output(output, overwrite)
    if not residues and export_values(path, output, opened, hexadecimal, width, progress, as_json):
        return
    from rnsdask import store
    from rnsdask.jobs import memory_plan
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.progress import metered
    from rnsdask.jobs.sources import OF_INTEGERS
    from rnsdask.rns.system import RNS

    if store.is_group(store.locate(path)):
        raise ValueError(f"{path}: it is a group, of no residues; rnsdask convert --to rns makes a store")
    found = store.open_info(path, (RNS,) if residues else OF_INTEGERS)
    write = _exporting_residues(found, **foreign) if residues else _exporting_integers(hexadecimal, width)
    amount = {"numbers": found.count, "nbytes": found.nbytes}
    with (
        memory_plan.fitting(memory_plan.work_on(found, "export")),
        measured(paths=[found.path]) as cost,
        metered("export", found.count, **amount, shown=progress) as meter,
        opened as stream,
    ):
        done = write(found, stream, advance=meter.advance)
    cost.record("export", done.count, done.bytes_read)
    if as_json:
        print_json({"op": "export", "store": path, "output": output, **done.as_dict(), **cost.as_dict()})
    elif output != "-" or progress:
        written = done.bytes_written
        work = f"{size_text(written)} ({cost_text(written, cost)})"
        echo(f"{output}: {done.count} integers, {work}", err=output == "-")


def _check_forms(
    output: str, hexadecimal: bool, width: int | None, residues: bool, foreign: dict[str, Any], as_json: bool
) -> None:
    """Refuse options of export that contradict one another."""
    if hexadecimal + residues + (width is not None) > 1:
        refuse("give one of --hex, --binary and --residues, not several")
    if not residues and any(option is not None for option in foreign.values()):
        refuse("--moduli-list, --moduli and --axis need --residues")
    if as_json and output == "-":
        refuse("--json needs an OUTPUT other than -")
    if residues and output.endswith((".gz", ".bz2", ".xz", ".zst")):
        refuse("residues are written as a NumPy file, which is not compressed")


def _exporting_integers(hexadecimal: bool, width: int | None) -> Callable[..., "Transfer"]:
    from rnsdask.jobs import integers

    return partial(integers.export_integers, hexadecimal=hexadecimal, width=width)


def _exporting_residues(
    info: "StoreInfo", moduli_list: str | None, moduli_file: str | None, axis: str | None
) -> Callable[..., "Transfer"]:
    """The job that writes residues, under a store's own moduli unless there are others."""
    from rnsdask.jobs import residues

    own = (moduli_list, moduli_file) == (None, None)
    moduli = info.moduli if own else moduli_of_other_programs(moduli_list, moduli_file)
    return partial(residues.export_residues, moduli=moduli, axis=int(axis or 0))


@contextmanager
def _output(path: str, overwrite: bool) -> Iterator[BinaryIO]:
    """What is written: a new file or standard output, compressed as the name says."""
    from rnsdask.core.files import new_file
    from rnsdask.jobs.compression import compressing

    opened = _standard_output() if path == "-" else new_file(Path(path), overwrite=overwrite)
    with opened as file, compressing(file, path) as stream:
        yield stream


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    with output_errors():
        yield sys.stdout.buffer
