"""Errors in the words of the command line: the package names ways out, parameters and types in Python's."""

import re

import click

COMMANDS = {
    "write it anew with overwrite=True": "write the rest with --resume, or all of it anew with --overwrite",
    "the command that began it goes on with --resume, or write it anew with overwrite=True": "write the rest "
    "with --resume, or all of it anew with --overwrite",
    "overwrite=True": "--overwrite",
    "column= chooses": "--column chooses",
    "header=True says": "--header says",
    "where reading is strict": "which --strict refuses",
    "(negative integers need a signed array)": "(--signed allows negative integers)",
    "extend=True": "--extend",
    "axis=-1": "--axis -1",
    'overflow="wrap" or "flag"': "--overflow wrap or flag",
    'overflow="wrap" would': "--overflow wrap would",
    "x.extend(moduli) to moduli that": "rnsdask extend SRC DST to moduli that",
    'to_residues(moduli, overflow="wrap")': "rnsdask export --residues --overflow wrap",
    "security=": "--tls-ca-file and --tls-cert",
    'x.extend(moduli) or overflow="extend"': "rnsdask extend SRC DST, or eval --extend,",
    'rd.IntervalRNSArray.from_rns(x) holds negative integers too, and overflow="extend", where it is '
    "taken, makes signed residues": "rnsdask convert SRC DST --to interval makes a store that holds them",
    "x.extend(moduli)": "rnsdask extend SRC DST, or eval --extend,",
    "x.extend(y.moduli) makes": "rnsdask extend SRC DST makes",
    "x.with_bound(bound) of the unsigned one does": "rnsdask bound STORE --write of the unsigned one may",
    "x.with_bound(x.measure_bound()) has": "rnsdask bound STORE --write has",
    "x.rechunk(chunks)": "rnsdask rechunk SRC DST --chunks N,...",
    "x.to_positional(bits, signed=True)": "rnsdask convert SRC DST --to positional --bits B --signed",
    "x.to_positional(bits)": "rnsdask convert SRC DST --to positional --bits B",
    "x.lift().to_positional(bits)": "rnsdask convert SRC DST --to rns, and of that --to positional --bits B,",
    "x.to_rns(moduli)": "rnsdask convert SRC DST --to rns",
    "x.to_rns()": "rnsdask convert SRC DST --to rns",
    "to_positional(bits) and to_rns(moduli) convert": "rnsdask convert SRC DST --to rns or --to positional "
    "makes them of one kind",
    "IntervalRNSArray.from_rns(x) and to_rns() convert": "rnsdask convert SRC DST --to rns or --to interval "
    "makes them of one kind",
    "FieldArray.from_rns(x, fields) and lift() convert": "rnsdask convert SRC DST --to field or --to rns "
    "makes them of one kind",
    "their integers, of to_ints() or lift(), are of any field": "in Python, their integers, of to_ints() or "
    "lift(), are of any field",
    "rd.FieldArray.from_rns(x, fields)": "rnsdask convert SRC DST --to field",
    "rd.from_ints(zarr.open_array(path)) reads": "in Python, rd.from_ints(zarr.open_array(path)) reads",
    "of the array, x.lift() makes integers": "rnsdask convert SRC DST --to rns makes integers",
    "x.lift()": "rnsdask convert SRC DST --to rns",
    "overflow= is not taken": "--overflow is not taken",
    "rd.linalg.rank takes a.to_dense(fields)": "rnsdask import FILE.mtx STORE --primes P makes rank's matrix",
    "rd.linalg.det takes a.to_dense(fields)": "rnsdask import FILE.mtx STORE --primes P makes det's matrix",
    "rd.linalg.solve takes a.to_dense(fields), with unique=False": (
        "rnsdask import FILE.mtx STORE --primes P makes solve's matrix, then with --any"
    ),
}
"""Words of the command line for each way out in the package's messages; some exist in Python alone."""

_STORES = {
    "RNSArray": "residues",
    "IntervalRNSArray": "intervals",
    "FieldArray": "field elements",
    "PositionalArray": "limbs",
}
"""Contents of a store, by the name of the type that their array has in Python."""

# One pass, so that nothing is translated twice; the longest first, for some are a part of others.
_PHRASES = "|".join(map(re.escape, sorted(COMMANDS, key=len, reverse=True)))
_WORDS = re.compile(
    rf"(?<!in Python, )(?P<phrase>{_PHRASES})|"
    rf"\b(?:an? |(?P<no>no ))?(?P<type>{'|'.join(_STORES)})(?P<many>s?)\b(?!\.)|"
    r"(?<![\w-])(?P<parameter>[a-z_]+)(?= must )"
)


def in_options(message: str, context: click.Context | None = None) -> str:
    """Return an error's message in the words of the command line; `context` is that of the command.

    Without one, it is that of the command that is running. A parameter becomes the option of its name, if the
    command has one.
    """
    context = context or click.get_current_context(silent=True)
    params = context.command.params if context else []
    taking = [param for param in params if not getattr(param, "is_flag", False)]
    options = {option for param in taking for option in param.opts if option.startswith("--")}

    def translated(found: re.Match[str]) -> str:
        if found["phrase"]:
            return COMMANDS[found[0]]
        if found["type"]:
            article = "no " if found["no"] else "" if found["many"] else "a "
            return f"{article}store{found['many']} of {_STORES[found['type']]}"
        option = "--" + found["parameter"].replace("_", "-")
        return option if option in options else found[0]

    return _WORDS.sub(translated, message)
