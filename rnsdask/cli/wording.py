"""Errors in the words of the command line: the package names ways out, parameters and types in Python's."""

from collections.abc import Container
from functools import partial

import click

from rnsdask.core.ways import Conversion, Conversions, Kind, Message, Parameter, Part, Setting, Way

WAYS = {
    Way.BOUND: "rnsdask bound STORE --write of the unsigned one may",
    Way.LEAST_BOUND: "rnsdask bound STORE --write",
    Way.CERTIFICATES: "--tls-ca-file and --tls-cert",
    Way.DENSE_DET: "rnsdask import FILE.mtx STORE --primes P makes det's matrix",
    Way.DENSE_RANK: "rnsdask import FILE.mtx STORE --primes P makes rank's matrix",
    Way.DENSE_SOLVE: "rnsdask import FILE.mtx STORE --primes P makes solve's matrix, then with --any",
    Way.EXTEND: "rnsdask extend SRC -o DST, or eval --extend,",
    Way.EXTEND_ALIKE: "rnsdask extend SRC -o DST",
    Way.EXTEND_FIRST: "rnsdask extend SRC -o DST to moduli that hold the exact results",
    Way.EXPECTED_GROUPS: "fill or drop missing labels first",
    Way.EXTEND_OR_EXTENDING: "rnsdask extend SRC -o DST, or eval --extend,",
    Way.FIELDS: "rnsdask convert SRC -o DST --to field",
    Way.INTEGERS: "rnsdask convert SRC -o DST --to rns",
    Way.INTEGERS_AS_LIMBS: "rnsdask convert SRC -o DST --to rns, and of that --to positional --bits B,",
    Way.INTEGERS_OF_STORE: "rnsdask convert SRC -o DST --to rns",
    Way.LIMBS: "rnsdask convert SRC -o DST --to positional --bits B",
    Way.MASKS: "rnsdask info, head, sum, topk, where and export take it, and eval and filter as an operand",
    Way.NEGATIVE: "rnsdask convert SRC -o DST --to interval makes a store that holds them",
    Way.OTHER_ARRAYS: "in Python, rd.from_ints(zarr.open_array(path))",
    Way.RECHUNK: "rnsdask rechunk SRC -o DST --chunks N,...",
    Way.RESIDUES: "rnsdask convert SRC -o DST --to rns",
    Way.RESIDUES_ALONE: "rnsdask convert SRC -o DST --to rns",
    Way.RESIDUES_OF_ANY: "rnsdask export --residues --overflow wrap",
    Way.RESUME_OR_WRITE_ANEW: "write the rest with --resume, or all of it anew with --overwrite",
    Way.SIGNED_ARRAY: "--signed allows negative integers",
    Way.SIGNED_LIMBS: "rnsdask convert SRC -o DST --to positional --bits B --signed",
    Way.STRICT: "which --strict refuses",
    Way.WRITE_ANEW: "write the rest with --resume, or all of it anew with --overwrite",
}
"""Words of the command line for each way out."""

CONVERSIONS = {
    Conversion.FERMAT_FIELD: None,
    Conversion.FERMAT_FIELD_OF_ELEMENTS: None,
    Conversion.FIELDS: "--to field",
    Conversion.FIELDS_OF_ELEMENTS: "--to rns, and of that --to field,",
    Conversion.INTERVALS: "--to interval",
    Conversion.INTERVALS_OF_ELEMENTS: "--to rns, and of that --to interval,",
    Conversion.INTERVALS_OF_LIMBS: "--to interval",
    Conversion.LIFT: "--to rns",
    Conversion.LIMBS: "--to positional",
    Conversion.LIMBS_OF_ELEMENTS: "--to rns, and of that --to positional,",
    Conversion.RESIDUES: "--to rns",
    Conversion.RESIDUES_OF_LIMBS: "--to rns",
}
"""Options of ``rnsdask convert SRC -o DST`` for each conversion; None for what only Python does."""

STORES = {
    "RNSArray": "residues",
    "IntervalRNSArray": "intervals",
    "FieldArray": "field elements",
    "PositionalArray": "limbs",
}
"""Contents of a store, by the name of the type that their array has in Python."""


def words_of(part: Part, options: Container[str] = ()) -> str:
    """Return what the command line says for a value of a message; `options` are those of the command."""
    match part:
        case Way():
            return WAYS[part]
        case Conversions():
            return _conversions(part)
        case Setting():
            values = " or ".join(str(value) for value in part.values if value is not True)
            return f"{_option(part.name)} {values}".rstrip()
        case Parameter():
            option = _option(part.name)
            return option if option in options else part.name
        case Kind():
            if part.name not in STORES:
                return str(part)
            store = {"no": "no store", "s": "stores"}.get(part.form, "a store")
            return f"{store} of {STORES[part.name]}"


def _conversions(way: Conversions) -> str:
    made = "makes them of one kind"
    options = dict.fromkeys(filter(None, map(CONVERSIONS.__getitem__, way.conversions)))
    return f"rnsdask convert SRC -o DST {' or '.join(options)} {made}" if options else f"in Python, {way}"


def _option(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")


def in_options(message: str, context: click.Context | None = None) -> str:
    """Return an error's message in the words of the command line; `context` is that of the command.

    Without one, it is that of the command that is running. A parameter becomes the option of its name, if the
    command has one.
    """
    if not isinstance(message, Message):
        return message
    context = context or click.get_current_context(silent=True)
    params = context.command.params if context else []
    taking = [param for param in params if not getattr(param, "is_flag", False)]
    return message.render(partial(words_of, options={option for param in taking for option in param.opts}))
