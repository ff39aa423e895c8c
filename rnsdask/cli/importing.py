"""The command ``import``, which writes integers to a new store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from errno import ENOENT
from functools import partial
from pathlib import Path, PurePath
from tempfile import TemporaryFile, gettempdir
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command, refuse, refusing
from rnsdask.cli.integers import NOT_NEGATIVE
from rnsdask.cli.moduli import field_options, read_fields
from rnsdask.cli.options import (
    as_one,
    binary_options,
    check_store_path,
    integer_system,
    json_option,
    moduli_of_other_programs,
    moduli_options,
    new_store,
    positional_option,
    progress_option,
    read_shape,
    records_form,
    residue_options,
    with_creation,
    with_log,
    with_memory,
)
from rnsdask.cli.printing import (
    CommandError,
    cost_text,
    counted,
    is_done,
    open_input,
    print_json,
    remark,
    size_text,
)
from rnsdask.core.errors import InputError, brief
from rnsdask.core.file_formats import (
    COMPRESSED,
    MATRIX_MARKET,
    NUMPY,
    PARQUET,
    RECORDS,
    TEXT,
    TEXTS,
    ZIP,
    format_of_begin,
    format_of_name,
    is_json_lines,
    replace_suffix,
    strip_compression,
)
from rnsdask.core.files import naming_file
from rnsdask.core.places import is_url, local_path, read_place
from rnsdask.core.ways import Message

if TYPE_CHECKING:
    from io import BufferedReader

    from rnsdask.core.moduli import ModuliSet
    from rnsdask.core.number_system import NumberSystem
    from rnsdask.core.wide_moduli import WideModuli
    from rnsdask.io.line_forms import NumberRange
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.importing import Import
    from rnsdask.jobs.input_forms import InputForm
    from rnsdask.jobs.writing import Transfer
    from rnsdask.store import Output


@dataclass(frozen=True)
class _Text:
    """Options of text."""

    column: str | None
    header: bool | None
    hexadecimal: bool
    strict: bool
    scale: int | None

    def check(self, *, of_others: bool) -> None:
        """Refuse options that contradict one another, or an input that is not text."""
        if self.scale is not None and of_others:
            refuse("--scale is about decimals of Parquet files, not --binary or --residues")
        if self.strict and of_others:
            refuse("--strict is about text, not --binary or --residues")
        if (self.column is not None or self.hexadecimal) and of_others:
            refuse("--column and --hex exclude --binary and --residues")
        if self.header is not None and self.column is None:
            refuse("--header and --no-header are about text in columns, of which --column chooses one")
        is_number = self.column is None or (self.column.isdecimal() and self.column.isascii())
        if self.header is False and not is_number:
            refuse(f"--column {brief(self.column)} is a name, and --no-header says that there are none")

    def check_kind(self, kind: str, name: str) -> None:
        """Refuse options of text for inputs of another kind."""
        told = {"--strict": self.strict, "--hex": self.hexadecimal, "--column": self.column is not None}
        told |= {"--header": self.header is True, "--no-header": self.header is False}
        if self.scale is not None and kind != PARQUET:
            refuse(f"--scale is about decimals of Parquet files, and {name} is {kind}")
        for option, is_told in told.items():
            if is_told and not (option == "--column" and kind == PARQUET):
                refuse(f"{option} is about text, and {name} is {kind}")

    def about(self) -> dict[str, Any]:
        """Return the options that determine the integers of an input."""
        told: dict[str, Any] = {"strict": self.strict, "column": self.column, "hexadecimal": self.hexadecimal}
        told |= {} if self.header is None else {"header": self.header}
        return told if self.scale is None else {**told, "scale": self.scale}


@dataclass(frozen=True)
class _System:
    """Options of the number system of integers; all but a file of moduli exclude residues."""

    bits: int | None
    modulus_bits: int | None
    moduli_file: str | None
    primes: str | None
    ntt_length: int | None
    positional: bool

    def read(self, signed: bool) -> "NumberSystem | None":
        """Make the number system; None if it depends on the integers."""
        fields = read_fields(self.primes, self.ntt_length, self.bits)
        of_moduli = self.modulus_bits, self.moduli_file
        if fields is not None:
            if self.positional or of_moduli != (None, None):
                refuse("fields exclude --moduli, --modulus-bits and --positional")
            return fields
        if self.bits is None and self.moduli_file is None:
            if self.modulus_bits is not None:
                refuse("--modulus-bits needs --bits")
            return None
        return integer_system(self.positional, self.bits, *of_moduli, signed)


@dataclass(frozen=True)
class _Residues:
    """Options of residues of other programs."""

    residues: bool
    moduli_list: str | None
    axis: int | None

    def check(self, source: str, system: _System, records: dict[str, Any], shape: str | None) -> None:
        """Refuse options that are not for residues; without --residues, options that are."""
        if not self.residues:
            if self.moduli_list is not None or self.axis is not None:
                refuse("--moduli-list and --axis need --residues")
            if system.moduli_file == source == "-":
                refuse("INPUT and --moduli cannot both be standard input")
            return
        others = records["width"], system.bits, system.modulus_bits, shape
        if system.positional or any(option is not None for option in others):
            refuse("--residues excludes --binary, --bits, --modulus-bits, --shape and --positional")
        if (system.primes, system.ntt_length) != (None, None):
            refuse("--residues excludes --primes and --ntt-length")
        if source == "-":
            refuse("--residues reads a NumPy file or a Zarr array, not standard input")


@click.command("import", cls=Command, short_help="Make a store of the integers in a file.")
@click.argument("source", metavar="INPUT")
@new_store
@as_one("system", _System, moduli_options, field_options, positional_option)
@with_creation
@as_one(
    "text",
    _Text,
    click.option(
        "--column",
        metavar="N|NAME",
        help="Read one column of text, such as CSV, or of a Parquet file; or one field of JSON lines.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="With --column N: whether the first line has names.  [default: if nothing in it could be a "
        "value]",
    ),
    click.option(
        "--scale",
        type=NOT_NEGATIVE,
        metavar="N",
        help="Read decimals of a Parquet file as integers of units of 10**-N, such as cents for 2.",
    ),
    click.option("--hex", "hexadecimal", is_flag=True, help="Read hexadecimal text, with 0x or without."),
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse comments, blank lines, spaces and a byte order mark.",
    ),
)
@as_one("records", records_form, binary_options)
@as_one("residues", _Residues, residue_options)
@click.option("--shape", metavar="R,C,...", help="The shape of the array; C order.  [default: one axis]")
@with_log
@with_memory
@progress_option
@json_option
def import_(
    source: str,
    path: str,
    system: _System,
    text: _Text,
    records: dict[str, Any],
    residues: _Residues,
    shape: str | None,
    **options: Any,
) -> None:
    """Write the integers of INPUT (- for standard input) to a new STORE.

    INPUT is text of one integer a line, decimal or 0x hexadecimal, with comments after #, or text in columns;
    a NumPy file (.npy), a Parquet file or a Matrix Market file of integers; or with --binary records of a
    fixed width, in two's complement if --signed. It is read piece by piece, so it may have any size; text may
    be compressed (gzip, bzip2, xz, zstandard), and so may records in a file named .gz, .bz2, .xz or .zst.

    Without --bits and --moduli, the store has the fewest moduli that hold the integers, and is signed if one
    is negative; INPUT is then read twice. With --residues, INPUT is a NumPy file or a Zarr array of residues
    of any integer type; moduli greater than 2**32 are replaced by others, exactly.
    """
    check_input(source, of_residues=residues.residues)
    text.check(of_others=residues.residues or records["width"] is not None)
    check_store_path(path)
    residues.check(source, system, records, shape)
    if residues.residues:
        moduli = moduli_of_other_programs(residues.moduli_list, system.moduli_file)
        _import_residues(source, path, moduli, residues.axis or 0, **options)
        return
    read = system.read(options["signed"])
    how: dict[str, Any] = {"text": text, "records": records, "positional": system.positional}
    how["bits"] = None if read is None else system.bits
    _import_integers(source, path, read, read_shape(shape), **how, **options)


def check_input(source: str, *, of_residues: bool = False) -> None:
    """Raise an error for an input that is missing or a folder, before other options are checked."""
    if source == "-":
        return
    place = read_place(source, "an input")
    if of_residues and is_url(place):
        return
    path = local_path(source, "an input")
    if not path.exists():
        if of_residues:
            raise CommandError(f"{source}: there is no such file or Zarr array")
        raise FileNotFoundError(ENOENT, "No such file or directory", source)
    if path.is_dir() and not of_residues:
        raise CommandError(f"{source}: it is a folder; import reads files, and with --residues Zarr arrays")


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
    from rnsdask.jobs import importing as job
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.hashes import import_hash
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.store import Output

    found = job.open_residues(source)
    try:
        with refusing():
            array = creation.from_residues(found, moduli, signed, axis=axis, chunks=chunks)
    except TypeError as error:
        raise InputError(Message(f"{source}: ", error)) from error
    work = job.work_of_import(array, found, axis)
    about = {"moduli": list(map(str, moduli)), "axis": axis, "signed": signed}
    about["chunks"] = array.words.chunksize[1:]
    output = Output(path, import_hash(source, path, progress=progress, **about), **mode)
    if is_done("import", output, as_json):
        return
    with fitting(work), measured() as cost:
        done = job.import_residues(array, found, source, output, progress=progress)
    used: dict[str, Any] = {"n_moduli": len(array.moduli), "bits": array.moduli.bits}
    _tell_imported(source, path, done, cost, as_json, f"under {array.moduli!r}", **used)


def _import_integers(
    source: str,
    path: str,
    system: "NumberSystem | None",
    shape: tuple[int, ...] | None,
    *,
    text: _Text,
    records: dict[str, Any],
    positional: bool,
    bits: int | None,
    signed: bool,
    chunks: Any,
    mode: dict[str, Any],
    progress: bool,
    as_json: bool,
) -> None:
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.hashes import import_hash
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.jobs.progress import metered
    from rnsdask.store import Output

    about = {"chunks": chunks, "shape": shape, "positional": positional, **records, **text.about()}
    about |= {} if bits is None else {"bits": bits}
    about |= {"system": system, "signed": signed}
    output = Output(path, import_hash(source, path, progress=progress, **about), **mode)
    if is_done("import", output, as_json):
        return
    form_of, as_records = partial(_form, text, records, signed), records["width"] is not None
    with measured() as cost, _Input.opened(source, path, form_of, system, as_records) as given:
        found = None
        if given.form.needs_range(system):
            if not output.resume:  # before the input is read a first time
                output.check()
            found = given.range(progress)
        job = _prepare(given, output, system, found, shape, chunks, signed, positional, bits)
        size = given.size
        with fitting(job.work, threads=1), metered("import", size, nbytes=size or 0, shown=progress) as meter:
            done = job.run(any_chunks=chunks == "auto", advance=meter.advance)
    if not given.form.has_plain_bytes and source != "-":  # only the integers' bytes were counted
        done = replace(done, bytes_read=local_path(source, "an input").stat().st_size)
    kind = "of limbs" if positional else "of residues"
    used: dict[str, Any] = {}
    if system is None:
        chosen: Any = job.system
        bits = chosen.bits if positional else chosen.moduli.bits
        sign = "signed" if chosen.signed else "unsigned"
        kind += f" of {bits} bits, {sign}" if positional else f", M of {bits} bits, {sign}, grows"
        used = {"bits": bits, "signed": chosen.signed}
    names = job.source.names
    _tell_imported(given.name, path, done, cost, as_json, kind, names, **used)


def _prepare(
    given: "_Input",
    output: "Output",
    system: "NumberSystem | None",
    found: "NumberRange | None",
    shape: tuple[int, ...] | None,
    chunks: Any,
    signed: bool,
    positional: bool,
    bits: int | None,
) -> "Import":
    """Make the import of an input, with its system, shape and chunks checked."""
    from rnsdask.core.file_formats import MATRIX_MARKET
    from rnsdask.jobs.importing import Import, consecutive_chunks, system_for
    from rnsdask.jobs.input_forms import Allowed

    if system is None:
        assert found is not None
        with refusing():
            system = system_for(found, signed=signed, positional=positional)
    reader = given.form.reader(given.stream, given.name, Allowed(system, found, bits))
    own = reader.shape
    if given.form.kind == MATRIX_MARKET and shape not in (None, own):
        refuse(f"--shape is {shape}, and {given.name} a Matrix Market file of a matrix of shape {own}")
    if shape is None and own is not None and (not own or 0 in own):
        way = "no axis; --shape 1 gives it one" if not own else "no numbers, and a store has at least one"
        raise CommandError(f"{given.name}: its array has shape {own}: {way}")
    shape = shape or own
    with refusing():
        lengths = consecutive_chunks(chunks, shape, system.rows)
    return Import(reader, output, system, shape, lengths)


def _form(text: _Text, records: dict[str, Any], signed: bool, begin: bytes, name: str) -> "InputForm":
    """Form of an input with these first bytes; options of text are refused for other forms."""
    from rnsdask.jobs import input_forms as forms

    as_records = records["width"] is not None
    kind = kind_of_input(begin, name, as_records=as_records)
    if as_records:
        return forms.RecordForm(**records, signed=signed)
    if kind == TEXT:
        if text.scale is not None:
            text.check_kind(kind, name)
        json = is_json_lines(name)
        if json and (text.hexadecimal or text.strict or text.header is not None):
            refuse(f"--hex, --strict and --header are about other text than the JSON lines of {name}")
        return forms.TextForm(text.column, text.header, text.hexadecimal, text.strict, json)
    text.check_kind(kind, name)
    if kind == PARQUET:
        return forms.ParquetForm(text.column, text.scale)
    return forms.NumpyForm() if kind == NUMPY else forms.MatrixMarketForm()


class _Input:
    """The stream of an input, decompressed, its name in messages, and its form; it may be read twice."""

    def __init__(self, stream: Any, name: str, form: "InputForm", again: Callable[[], Any]) -> None:
        self.stream, self.name, self.form, self._again = stream, name, form, again

    @classmethod
    @contextmanager
    def opened(
        cls,
        source: str,
        path: str,
        form_of: "Callable[[bytes, str], InputForm]",
        system: "NumberSystem | None",
        as_records: bool,
    ) -> "Iterator[_Input]":
        """Open the input of a store at `path`; a pipe that is to be read twice is kept in a file."""
        from rnsdask.io.compression import decompressed, first_bytes

        with open_input(source) as (opened, name), ExitStack() as stack:
            begun = opened.tell() if opened.seekable() else None
            open_again = partial(decompressed, opened, name, by_content=not as_records)
            stream: Any = open_again()
            form = form_of(first_bytes(stream), name)
            is_kept = form.needs_range(system) if begun is None else False
            is_kept |= form.kind == PARQUET and not stream.seekable()
            if is_kept:
                stream = stack.enter_context(_keep(stream, path))

            def again() -> Any:
                if is_kept:
                    stream.seek(0)
                    return stream
                opened.seek(begun or 0)
                return open_again()

            yield cls(stream, name, form, again)

    @property
    def size(self) -> int | None:
        """Number of bytes to be read, or None if unknown."""
        from rnsdask.io.integer_reading import remaining_bytes

        return remaining_bytes(self.stream) if self.form.has_plain_bytes else None

    def range(self, progress: bool) -> "NumberRange":
        """Read all integers, and return their range."""
        from rnsdask.jobs.progress import metered

        size = self.size
        with metered("range", size, nbytes=size or 0, shown=progress) as meter:
            found = self.form.range_of(self.stream, self.name, meter.advance)
        self.stream = self._again()
        return found


@contextmanager
def _keep(stream: "BufferedReader", path: str) -> "Iterator[Any]":
    """Copy a pipe's data to an unnamed file, next to the store if that is on a local disk."""
    place = read_place(path, "a store's path")
    folder = (
        gettempdir() if is_url(place) else str(next(p for p in Path(place).absolute().parents if p.is_dir()))
    )
    with TemporaryFile(dir=folder) as file:
        while piece := stream.read(2**20):
            with naming_file(f"{folder}: what the pipe gives"):
                file.write(piece)
        with naming_file(f"{folder}: what the pipe gives"):
            file.flush()
        file.seek(0)
        yield file


def _tell_imported(
    source: str,
    path: str,
    done: "Transfer",
    cost: "Cost",
    as_json: bool,
    kind: str,
    names: Sequence[str] = (),
    **fields: Any,
) -> None:
    """Print that a store was made from an input.

    `kind` names the content of its bytes, and `names` are the columns' names in its first line, if skipped.
    """
    cost.record("import", done.count, done.bytes_read)
    if as_json:
        told = {"op": "import", "store": path, "input": source}
        fields |= {"names": list(names)} if names else {}
        print_json({**told, **done.as_dict(), **cost.as_dict(), **fields})
        return
    time_taken = cost_text(done.bytes_read, cost)
    remark(f"{path}: {counted(done.count, 'integers')}, {size_text(done.bytes_written)} {kind};")
    remark(f"  {size_text(done.bytes_read)} of {source} read ({time_taken}){done.resumed_text}")
    if names:
        shown = ", ".join(f"{name!r:.40}" for name in names[:_SHOWN_NAMES])
        remark(f"  names in its first line: {shown}{', ...' * (len(names) > _SHOWN_NAMES)}")


_SHOWN_NAMES = 12
"""Most names of columns that are shown: they fit into a few lines of a terminal."""

_READ = "import without --binary reads it"
_WAYS = {
    NUMPY: _READ,
    ZIP: "in Python, from_ints takes integers that NumPy has loaded",
    PARQUET: _READ,
    MATRIX_MARKET: _READ,
}
_OTHER_WAY = "write its integers as text, one a line"


def kind_of_input(begin: bytes, name: str, *, as_records: bool) -> str:
    """Return the kind of an input of integers, by its first bytes or because it is read as records.

    InputError if import does not read its format, or not with the options given.
    """
    from rnsdask.io.matrix_market import is_matrix_market

    if as_records:
        _check_records(begin, name)
        return RECORDS
    if is_matrix_market(begin):
        return MATRIX_MARKET
    kind = format_of_begin(begin)
    if kind in (None, NUMPY, PARQUET):
        return kind or TEXT
    way = _WAYS.get(kind, _OTHER_WAY)
    raise InputError(f"{name}: its first bytes are those of {kind}, which import does not read; {way}")


def _check_records(begin: bytes, name: str) -> None:
    """Raise InputError if a file to be read as records without a header has another format."""
    if kind := format_of_begin(begin, of_records=True):
        way = _WAYS.get(kind, _OTHER_WAY)
        if kind in (f"data compressed by {by}" for by in COMPRESSED.values()):
            suffix = next(suffix for suffix, by in COMPRESSED.items() if kind.endswith(by))
            way = f"name it so that it ends in {suffix}, or decompress it"
        problem = f"its first bytes are those of {kind}, and --binary reads records without a header"
        raise InputError(f"{name}: {problem}; {way}")
    if kind := format_of_name(name):
        ending = PurePath(strip_compression(name).lower()).suffix
        way = "import without --binary reads text; " if ending in TEXTS else ""
        way += f"if it holds such records, name it otherwise, such as {replace_suffix(name, '.bin')}"
        raise InputError(f"{name}: its name is that of {kind}, not of records without a header; {way}")
