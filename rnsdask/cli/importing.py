"""The command ``import``, which brings integers into a store."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.errors import Command, refuse, refusing
from rnsdask.cli.options import (
    binary_options,
    check_store_path,
    json_option,
    moduli_of_other_programs,
    moduli_options,
    moduli_or_bits,
    positional_option,
    progress_option,
    records_form,
    residue_options,
    store_argument,
    with_creation,
    with_log,
)
from rnsdask.cli.printing import echo
from rnsdask.cli.streams import cost_text, is_done, open_input, print_json, size_text

if TYPE_CHECKING:
    from io import BufferedReader

    from rnsdask.core.moduli import ModuliSet
    from rnsdask.core.wide_moduli import WideModuli
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.integers import IntegerSource
    from rnsdask.jobs.writing import Transfer
    from rnsdask.positional.system import Positional
    from rnsdask.rns.system import RNS


@click.command("import", cls=Command, short_help="Make a store of the integers in a file.")
@click.argument("source", metavar="INPUT")
@store_argument
@moduli_options
@with_creation
@binary_options
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
    axis: int | None,
    width: int | None,
    byteorder: str | None,
    shape: str | None,
    strict: bool,
    positional: bool,
    **options: Any,
) -> None:
    """Write the integers of INPUT (- for standard input) to a new STORE.

    INPUT is text, with one decimal or 0x hexadecimal integer on a line, or a Matrix Market file of integers;
    or, with --binary, records of a fixed width, in two's complement with --signed. It is read piece by piece,
    so it may have any size; text may be compressed (gzip, bzip2, xz, zstandard), records if INPUT ends so
    (.gz, .bz2, .xz, .zst). With --residues it is a NumPy file (.npy) or a Zarr array of residues of any
    integer type; moduli greater than 2**32 are replaced by others, exactly.
    """
    records = records_form(width, byteorder)
    if strict and (residues or width is not None):
        refuse("--strict is about text, not --binary or --residues")
    check_store_path(path)
    from rnsdask.jobs.dask_import import import_dask_array

    import_dask_array()
    if residues:
        if positional or any(option is not None for option in (width, bits, modulus_bits, shape)):
            refuse("--residues excludes --binary, --bits, --modulus-bits, --shape and --positional")
        if source == "-":
            refuse("--residues reads a NumPy file or a Zarr array, not standard input")
        moduli = moduli_of_other_programs(moduli_list, moduli_file)
        _import_residues(source, path, moduli, axis or 0, **options)
        return
    if moduli_list is not None or axis is not None:
        refuse("--moduli-list and --axis need --residues")
    if moduli_file == source == "-":
        refuse("INPUT and --moduli cannot both be standard input")
    words = moduli_or_bits(positional, bits, modulus_bits, moduli_file)
    _import_integers(source, path, words, records, _shape(shape), strict, **options)


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
    from rnsdask.jobs.identity import import_identity

    found = job.open_residues(source)
    try:
        with refusing():
            array = creation.from_residues(found, moduli, signed, axis=axis, chunks=chunks)
    except TypeError as error:
        raise InputError(f"{source}: {error}") from error
    work = job.work_of_import(array, found, axis)
    about = {"moduli": list(map(str, moduli)), "axis": axis, "signed": signed}
    about["chunks"] = array.words.chunksize[1:]
    identity = import_identity(source, **about)
    if is_done("import", path, identity, mode, as_json):
        return
    with memory_plan.fitting(work), measured() as cost:
        done = job.import_residues(array, found, source, path, identity, progress=progress, **mode)
    used = {"moduli": len(array.moduli), "bits": array.moduli.bits}
    _tell_imported(source, path, done, cost, as_json, f"under {array.moduli!r}", **used)


def _import_integers(
    source: str,
    path: str,
    words: "ModuliSet | int",
    records: dict[str, Any],
    shape: tuple[int, ...] | None,
    strict: bool,
    *,
    signed: bool,
    chunks: Any,
    mode: dict[str, Any],
    progress: bool,
    as_json: bool,
) -> None:
    from rnsdask.core.errors import InputError
    from rnsdask.jobs import integers, memory_plan
    from rnsdask.jobs.compression import decompressed
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.identity import import_identity, system_parameters
    from rnsdask.jobs.integer_reading import remaining_bytes
    from rnsdask.jobs.progress import metered
    from rnsdask.positional.system import Positional
    from rnsdask.rns.system import RNS

    if Path(source).is_dir():
        raise InputError(f"{source}: it is a folder; import reads files, and with --residues Zarr arrays")
    with refusing():
        system = Positional(words, signed) if isinstance(words, int) else RNS(words, signed)
    about = {"chunks": chunks, "shape": shape, **records, **system_parameters(system)}
    with open_input(source) as (opened, name):
        identity = import_identity(source, **about)
        if is_done("import", path, identity, mode, as_json):
            return
        stream = decompressed(opened, name, by_content=records["width"] is None)
        reader, shape, held = _reader(stream, name, system, records, shape, strict)
        size = remaining_bytes(stream)
        with refusing():
            lengths = integers.consecutive_chunks(chunks, shape, system.rows)
        how: dict[str, Any] = {"cut": 1, "held": held, "kind": memory_plan.kind_of([system])}
        work = memory_plan.describe("import", system.rows, lengths, lengths, **how)
        with (
            memory_plan.fitting(work),
            measured() as cost,
            metered("import", size, nbytes=size or 0, shown=progress) as meter,
        ):
            more: dict[str, Any] = {"nonzero": getattr(reader, "nonzero", None), "job_identity": identity}
            done = integers.import_integers(
                reader, name, path, system, chunks=chunks, shape=shape, advance=meter.advance, **more, **mode
            )
    kind = "of limbs" if isinstance(words, int) else "of residues"
    _tell_imported(name, path, done, cost, as_json, kind)


def _tell_imported(
    source: str, path: str, done: "Transfer", cost: "Cost", as_json: bool, kind: str, **fields: Any
) -> None:
    """Tell of a store that was made of an input; `kind` is what its bytes are."""
    cost.record("import", done.count, done.bytes_read)
    if as_json:
        told = {"op": "import", "store": path, "input": source}
        print_json({**told, **done.as_dict(), **cost.as_dict(), **fields})
        return
    time_taken = cost_text(done.bytes_read, cost)
    echo(f"{path}: {done.count} integers, {size_text(done.bytes_written)} {kind};")
    echo(f"  {size_text(done.bytes_read)} of {source} read ({time_taken}){done.resumed_text}")


def _reader(
    stream: "BufferedReader",
    name: str,
    system: "RNS | Positional",
    records: dict[str, Any],
    shape: tuple[int, ...] | None,
    strict: bool,
) -> "tuple[IntegerSource, tuple[int, ...] | None, int]":
    """What reads a stream, by its options or its content; its shape, if known; and bytes that it holds."""
    from rnsdask.cli.input_formats import check_records, check_text
    from rnsdask.jobs.compression import first_bytes
    from rnsdask.jobs.integer_reading import BinaryReader, TextReader
    from rnsdask.jobs.matrix_market import MatrixMarketReader, is_matrix_market

    begin = first_bytes(stream)
    is_text = records["width"] is None
    (check_text if is_text else check_records)(begin, name)
    lowest, highest = system.value_range
    if not is_text:
        how = {"lowest": lowest, "highest": highest, "signed": system.signed, **records}
        return BinaryReader(stream, name, **how), shape, 0
    if not is_matrix_market(begin):
        return TextReader(stream, name, lowest, highest, strict=strict), shape, 0
    if strict:
        refuse(f"--strict is about lines of integers, and {name} is a Matrix Market file")
    matrix = MatrixMarketReader(stream, name, system)
    if shape not in (None, matrix.shape):
        refuse(f"--shape is {shape}, and {name} a Matrix Market file of a matrix of shape {matrix.shape}")
    return matrix, matrix.shape, matrix.held
