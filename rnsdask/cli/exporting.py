"""The command ``export``, which writes a store's integers to a file."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from rnsdask.cli.commands import RECORDS, Command, options_of, refuse, refusing
from rnsdask.cli.options import (
    binary_options,
    json_option,
    moduli_of_other_programs,
    new_file,
    progress_option,
    records_form,
    residue_options,
    store_argument,
    with_log,
    with_memory,
)
from rnsdask.cli.printing import cost_text, counted, output_errors, print_json, remark, size_text
from rnsdask.core.messages import note
from rnsdask.core.places import local_path

if TYPE_CHECKING:
    from rnsdask.jobs.exporting import Form, Numbers
    from rnsdask.jobs.writing import Transfer


@click.command(cls=Command)
@store_argument
@new_file
@click.option("--hex", "hexadecimal", is_flag=True, help="Write 0x hexadecimal instead of decimal.")
@binary_options
@residue_options
@options_of(RECORDS)(
    "--moduli", "moduli_file", metavar="FILE", help="With --residues: file of moduli, one a line."
)
@options_of(RECORDS)(
    "--overflow",
    type=click.Choice(["raise", "wrap"]),
    help="With --residues: a number out of the moduli's range is an error, or has the residues of another.  "
    "[default: raise]",
)
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT if there is such a file.")
@with_log
@with_memory
@progress_option
@json_option
def export(
    path: str,
    output: str,
    hexadecimal: bool,
    width: int | None,
    byteorder: str | None,
    residues: bool,
    moduli_list: str | None,
    moduli_file: str | None,
    axis: int | None,
    overflow: str | None,
    overwrite: bool,
    progress: bool,
    as_json: bool,
) -> None:
    """Write the integers of STORE to a file, in the format of its name.

    \b
    OUTPUT ends in
    .npy      NumPy file of int64 or uint64, which must hold the integers
    .parquet  column "value" of 64-bit integers, decimals or text
    .csv      text after a line "value"
    else      text, one integer a line; - is standard output

    Text and records are compressed if OUTPUT also ends in .gz, .bz2, .xz or .zst. STORE may also be an array
    that eval wrote for a comparison (0 and 1) or for sign.

    With --residues, OUTPUT is a NumPy file (.npy) of the residues of a store, under its moduli or others up
    to 2**64: of uint32 if none is greater than 2**32, else of uint64. They must hold every number, unless
    --overflow wrap takes the numbers modulo their product.
    """  # noqa: D301  (click's own sign, for lines that stay as they are)
    foreign: dict[str, Any] = {
        "moduli_list": moduli_list,
        "moduli_file": moduli_file,
        "axis": axis,
        "overflow": overflow,
    }
    records = records_form(width, byteorder)
    _check_forms(output, hexadecimal, width, residues, foreign, as_json)
    texts: dict[str, Any] = {"hexadecimal": hexadecimal, **records}
    if not (residues or hexadecimal or width is not None):
        texts["kind"] = _form_of(output)
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.exporting import Numbers, OutputForm, export_integers
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.jobs.progress import metered
    from rnsdask.store import check_file_outside_arrays

    if output != "-":
        check_file_outside_arrays(local_path(output, "OUTPUT"))
    opened = _output(output, overwrite)
    if residues:
        numbers, write = _residue_writer(path, **foreign)
    else:
        numbers = Numbers.at(path)
        write = partial(export_integers, numbers, form=OutputForm(**texts))
    count = numbers.info.count
    amount = {"numbers": count, "nbytes": numbers.nbytes}
    with (
        fitting(numbers.work, threads=1),
        measured() as cost,
        metered("export", count, **amount, shown=progress) as meter,
        opened as stream,
    ):
        done = write(stream=stream, advance=meter.advance)
    cost.record("export", done.count, done.bytes_read)
    if as_json:
        print_json({"op": "export", "store": path, "output": output, **done.as_dict(), **cost.as_dict()})
    elif output != "-" or progress:
        written = f"{size_text(done.bytes_written)} ({cost_text(done.bytes_written, cost)})"
        say = note if output == "-" else remark
        say(f"{output}: {counted(done.count, numbers.what)}, {written}")


def _check_forms(
    output: str, hexadecimal: bool, width: int | None, residues: bool, foreign: dict[str, Any], as_json: bool
) -> None:
    """Refuse options of export that contradict one another."""
    if hexadecimal + residues + (width is not None) > 1:
        refuse("give one of --hex, --binary and --residues, not several")
    if not residues and any(option is not None for option in foreign.values()):
        refuse("--moduli-list, --moduli, --axis and --overflow need --residues")
    if as_json and output == "-":
        refuse("--json needs an OUTPUT other than -")
    from rnsdask.core.file_formats import compression_of

    with refusing():
        local_path(output, "OUTPUT")
    if residues and compression_of(output):
        refuse("residues are written as a NumPy file, which is not compressed")
    _check_name(output, residues, hexadecimal, width)


def _check_name(output: str, residues: bool, hexadecimal: bool, width: int | None) -> None:
    """Refuse a name whose suffix contradicts the form that is written."""
    from rnsdask.core.file_formats import ZARR, compression_of, format_of_name, replace_suffix

    kind, text_form = format_of_name(output), _form_of(output)
    if residues:
        what, suffix = "a NumPy file of residues", ".npy"
    else:
        what, suffix = ("text, one integer a line", ".txt") if width is None else ("records", ".bin")
    if kind is None or kind == format_of_name(f"x{suffix}"):
        return
    own = ""
    if text_form != "text" and not residues:
        if not hexadecimal and width is None and (text_form == "csv" or not compression_of(output)):
            return
        own = "; without --hex and --binary, and not compressed, it is written as its name says"
    ways = {ZARR: "; rnsdask rechunk writes stores"}
    way = f"name it {replace_suffix(output, suffix)}, for example{ways.get(kind, own)}"
    refuse(f"{output}: its name is that of {kind}, and export writes {what}; {way}")


def _form_of(output: str) -> "Form":
    """Kind of file of integers that a name's suffix gives."""
    from rnsdask.core.file_formats import CSV, NUMPY, PARQUET, format_of_name

    forms: dict[str | None, Form] = {CSV: "csv", NUMPY: "npy", PARQUET: "parquet"}
    return forms.get(format_of_name(output), "text")


def _residue_writer(
    path: str, moduli_list: str | None, moduli_file: str | None, axis: int | None, overflow: str | None
) -> "tuple[Numbers, Callable[..., Transfer]]":
    """Numbers of a store, and a writer of their residues, by default under its own moduli."""
    from rnsdask.core.axes import axis_index
    from rnsdask.jobs.exporting import Numbers, export_residues
    from rnsdask.store import open_info

    info = open_info(path)
    own = (moduli_list, moduli_file) == (None, None)
    moduli = info.moduli if own else moduli_of_other_programs(moduli_list, moduli_file)
    with refusing():
        axis = axis_index(axis or 0, len(info.shape) + 1)
    how: dict[str, Any] = {"axis": axis, "wrap": overflow == "wrap"}
    return Numbers.of(info), partial(export_residues, info, moduli=moduli, **how)


@contextmanager
def _output(path: str, overwrite: bool) -> Iterator[BinaryIO]:
    """Open a new file, compressed as its suffix says, or standard output."""
    from rnsdask.core.files import new_file
    from rnsdask.io.compression import compressing

    opened = _standard_output() if path == "-" else new_file(local_path(path, "OUTPUT"), overwrite=overwrite)
    with opened as file, compressing(file, path) as stream:
        yield stream


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    with output_errors():
        yield sys.stdout.buffer
