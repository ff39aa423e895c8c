"""The command ``import``, which brings integers into a store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from errno import ENOENT
from functools import partial
from pathlib import Path, PurePath
from tempfile import TemporaryFile, gettempdir
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command, refuse, refusing
from rnsdask.cli.moduli import field_options, read_fields
from rnsdask.cli.options import (
    binary_options,
    check_store_path,
    integer_system,
    json_option,
    moduli_of_other_programs,
    moduli_options,
    positional_option,
    progress_option,
    read_shape,
    records_form,
    residue_options,
    store_argument,
    with_creation,
    with_log,
)
from rnsdask.cli.printing import (
    CommandError,
    cost_text,
    counted,
    echo,
    is_done,
    open_input,
    print_json,
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
    renamed,
    uncompressed,
)
from rnsdask.core.files import naming_file
from rnsdask.core.places import is_url, local_path, read_place

if TYPE_CHECKING:
    from io import BufferedReader

    from rnsdask.core.moduli import ModuliSet
    from rnsdask.core.number_system import NumberSystem
    from rnsdask.core.wide_moduli import WideModuli
    from rnsdask.io.line_forms import NumberRange
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.importing import Import, InputForm
    from rnsdask.jobs.writing import Transfer
    from rnsdask.positional.system import Positional
    from rnsdask.rns.system import RNS
    from rnsdask.store import Output


@click.command("import", cls=Command, short_help="Make a store of the integers in a file.")
@click.argument("source", metavar="INPUT")
@store_argument
@moduli_options
@with_creation
@field_options
@click.option(
    "--column", metavar="N|NAME", help="Read one column of text, such as CSV, or of a Parquet file."
)
@click.option(
    "--header/--no-header",
    default=None,
    help="With --column N: whether the first line has names.  [default: if nothing in it could be a value]",
)
@click.option("--hex", "hexadecimal", is_flag=True, help="Read hexadecimal text, with 0x or without.")
@binary_options
@residue_options
@positional_option
@click.option("--shape", metavar="R,C,...", help="The shape of the array; C order.  [default: one axis]")
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse comments, blank lines, spaces and a byte order mark.",
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
    primes: str | None,
    ntt_length: int | None,
    column: str | None,
    header: bool | None,
    hexadecimal: bool,
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

    INPUT is text of one integer a line, decimal or 0x hexadecimal, with comments after #, or text in columns;
    a NumPy file (.npy), a Parquet file or a Matrix Market file of integers; or with --binary records of a
    fixed width, in two's complement if --signed. It is read piece by piece, so it may have any size; text may
    be compressed (gzip, bzip2, xz, zstandard), and so may records in a file named .gz, .bz2, .xz or .zst.

    Without --bits and --moduli, the store has the fewest moduli that hold the integers, and is signed if one
    is negative; INPUT is then read twice. With --residues, INPUT is a NumPy file or a Zarr array of residues
    of any integer type; moduli greater than 2**32 are replaced by others, exactly.
    """
    check_input(source, of_residues=residues)
    records = records_form(width, byteorder)
    if strict and (residues or width is not None):
        refuse("--strict is about text, not --binary or --residues")
    if (column is not None or hexadecimal) and (residues or width is not None):
        refuse("--column and --hex exclude --binary and --residues")
    _check_header(column, header)
    check_store_path(path)
    if residues:
        if positional or any(option is not None for option in (width, bits, modulus_bits, shape)):
            refuse("--residues excludes --binary, --bits, --modulus-bits, --shape and --positional")
        if (primes, ntt_length) != (None, None):
            refuse("--residues excludes --primes and --ntt-length")
        if source == "-":
            refuse("--residues reads a NumPy file or a Zarr array, not standard input")
        moduli = moduli_of_other_programs(moduli_list, moduli_file)
        _import_residues(source, path, moduli, axis or 0, **options)
        return
    if moduli_list is not None or axis is not None:
        refuse("--moduli-list and --axis need --residues")
    if moduli_file == source == "-":
        refuse("INPUT and --moduli cannot both be standard input")
    fields = read_fields(primes, ntt_length, bits)
    if fields is not None and (positional or (modulus_bits, moduli_file) != (None, None)):
        refuse("fields exclude --moduli, --modulus-bits and --positional")
    system = fields or _system(positional, bits, modulus_bits, moduli_file, options["signed"])
    told = {"records": records, "strict": strict, "column": column, "hexadecimal": hexadecimal}
    told |= {} if header is None else {"header": header}
    _import_integers(source, path, system, read_shape(shape), told, positional=positional, **options)


def _check_header(column: str | None, header: bool | None) -> None:
    """Refuse options about names that contradict the column."""
    if header is not None and column is None:
        refuse("--header and --no-header are about text in columns, of which --column chooses one")
    if header is False and column is not None and not (column.isdecimal() and column.isascii()):
        refuse(f"--column {brief(column)} is a name, and --no-header says that there are none")


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


def _system(
    positional: bool, bits: int | None, modulus_bits: int | None, moduli_file: str | None, signed: bool
) -> "RNS | Positional | None":
    """The number system that the options ask for; None if it is to be found by the integers."""
    if bits is None and moduli_file is None:
        if modulus_bits is not None:
            refuse("--modulus-bits needs --bits")
        return None
    return integer_system(positional, bits, modulus_bits, moduli_file, signed)


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
        raise InputError(f"{source}: {error}") from error
    work = job.work_of_import(array, found, axis)
    about = {"moduli": list(map(str, moduli)), "axis": axis, "signed": signed}
    about["chunks"] = array.words.chunksize[1:]
    output = Output(path, import_hash(source, **about), **mode)
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
    told: dict[str, Any],
    *,
    positional: bool,
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

    records = told["records"]
    others = {name: value for name, value in told.items() if name != "records"}
    about = {"chunks": chunks, "shape": shape, "positional": positional, **records, **others}
    output = Output(path, import_hash(source, **about, system=system, signed=signed), **mode)
    if is_done("import", output, as_json):
        return
    with measured() as cost, _Input.opened(source, path, told, signed, system) as given:
        found = None
        if given.form.needs_range(system):
            if not output.resume:  # before the input is read a first time
                output.check()
            found = given.range(progress)
        job = _prepared(given, output, system, found, shape, chunks, signed, positional)
        size = given.size
        with fitting(job.work), metered("import", size, nbytes=size or 0, shown=progress) as meter:
            done = job.run(any_chunks=chunks == "auto", advance=meter.advance)
    if not given.form.has_plain_bytes and source != "-":  # what was counted are the integers alone
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


def _prepared(
    given: "_Input",
    output: "Output",
    system: "NumberSystem | None",
    found: "NumberRange | None",
    shape: tuple[int, ...] | None,
    chunks: Any,
    signed: bool,
    positional: bool,
) -> "Import":
    """The import of an input, whose system, shape and chunks are checked."""
    from rnsdask.core.file_formats import MATRIX_MARKET
    from rnsdask.jobs.importing import Import, consecutive_chunks, system_for

    if system is None:
        assert found is not None
        with refusing():
            system = system_for(found, signed=signed, positional=positional)
    reader = given.form.reader(given.stream, given.name, system, found)
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


class _Input:
    """The stream of an input, decompressed, its name in messages, and its form; it may be read twice."""

    def __init__(self, stream: Any, name: str, form: "InputForm", again: Callable[[], Any]) -> None:
        self.stream, self.name, self.form, self._again = stream, name, form, again

    @classmethod
    @contextmanager
    def opened(
        cls, source: str, path: str, told: dict[str, Any], signed: bool, system: "NumberSystem | None"
    ) -> "Iterator[_Input]":
        """Open the input of a store at `path`; keep what a pipe gives in a file if it is to be read twice."""
        from rnsdask.core.file_formats import PARQUET
        from rnsdask.io.compression import decompressed, first_bytes
        from rnsdask.jobs.importing import InputForm

        as_records = told["records"]["width"] is not None
        with open_input(source) as (opened, name), ExitStack() as stack:
            begun = opened.tell() if opened.seekable() else None
            open_again = partial(decompressed, opened, name, by_content=not as_records)
            stream: Any = open_again()
            kind = kind_of_input(first_bytes(stream), name, as_records=as_records)
            form = InputForm(kind, signed=signed, **told)
            _check_form(form, name)
            is_kept = form.needs_range(system) if begun is None else False
            is_kept |= kind == PARQUET and not stream.seekable()
            if is_kept:
                stream = stack.enter_context(_kept(stream, path))

            def again() -> Any:
                if is_kept:
                    stream.seek(0)
                    return stream
                opened.seek(begun or 0)
                return open_again()

            yield cls(stream, name, form, again)

    @property
    def size(self) -> int | None:
        """Bytes that are to be read, where that is known."""
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
def _kept(stream: "BufferedReader", path: str) -> "Iterator[Any]":
    """Keep what a pipe gives in a file without a name, beside the store if that is on a local disk."""
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


def _check_form(form: "InputForm", name: str) -> None:
    """Refuse options of text for inputs of another kind."""
    from rnsdask.core.file_formats import PARQUET, RECORDS, TEXT

    if form.kind in (TEXT, RECORDS):
        return
    told = {"--strict": form.strict, "--hex": form.hexadecimal, "--column": form.column is not None}
    told |= {"--header": form.header is True, "--no-header": form.header is False}
    for option, is_told in told.items():
        if is_told and not (option == "--column" and form.kind == PARQUET):
            refuse(f"{option} is about text, and {name} is {form.kind}")


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
    """Print that a store was made of an input.

    `kind` names the content of its bytes, and `names` are what the input's first line was taken for.
    """
    cost.record("import", done.count, done.bytes_read)
    if as_json:
        told = {"op": "import", "store": path, "input": source}
        fields |= {"names": list(names)} if names else {}
        print_json({**told, **done.as_dict(), **cost.as_dict(), **fields})
        return
    time_taken = cost_text(done.bytes_read, cost)
    echo(f"{path}: {counted(done.count, 'integers')}, {size_text(done.bytes_written)} {kind};")
    echo(f"  {size_text(done.bytes_read)} of {source} read ({time_taken}){done.resumed_text}")
    if names:
        shown = ", ".join(f"{name!r:.40}" for name in names[:_SHOWN_NAMES])
        echo(f"  names in its first line: {shown}{', ...' * (len(names) > _SHOWN_NAMES)}")


_SHOWN_NAMES = 12
"""Names of columns that fit into some lines of a terminal."""

_READ = "import without --binary reads it"
_WAYS = {
    NUMPY: _READ,
    ZIP: "in Python, from_ints takes integers that NumPy has loaded",
    PARQUET: _READ,
    MATRIX_MARKET: _READ,
}
_OTHER_WAY = "write its integers as text, one a line"


def kind_of_input(begin: bytes, name: str, *, as_records: bool) -> str:
    """Return the kind of integers that an input has, by its first bytes or because it is read as records.

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
    """Raise InputError if a file that is to be read as records without a header is of another format."""
    if kind := format_of_begin(begin, of_records=True):
        way = _WAYS.get(kind, _OTHER_WAY)
        if kind in (f"data compressed by {by}" for by in COMPRESSED.values()):
            suffix = next(suffix for suffix, by in COMPRESSED.items() if kind.endswith(by))
            way = f"name it so that it ends in {suffix}, or decompress it"
        problem = f"its first bytes are those of {kind}, and --binary reads records without a header"
        raise InputError(f"{name}: {problem}; {way}")
    if kind := format_of_name(name):
        ending = PurePath(uncompressed(name).lower()).suffix
        way = "import without --binary reads text; " if ending in TEXTS else ""
        way += f"if it holds such records, name it otherwise, such as {renamed(name, '.bin')}"
        raise InputError(f"{name}: its name is that of {kind}, not of records without a header; {way}")
