"""Errors in the words of the command line: the package names ways out in Python's."""

import re

COMMANDS = {
    "write it anew with overwrite=True": "write the rest with --resume, or all of it anew with --overwrite",
    "overwrite=True": "--overwrite",
    "extend=True": "--extend",
    "axis=-1": "--axis -1",
    'overflow="wrap" or "flag"': "--overflow wrap or flag",
    'overflow="wrap" would': "--overflow wrap would",
    "x.extend(moduli) to moduli that": "rnsdask extend SRC DST to moduli that",
    'to_residues(moduli, overflow="wrap")': "rnsdask export --residues --overflow wrap",
    "security=": "--tls-ca-file and --tls-cert",
    'x.extend(moduli) or overflow="extend"': "rnsdask extend SRC DST, or eval --extend,",
    "x.extend(moduli)": "rnsdask extend SRC DST, or eval --extend,",
    "x.extend(y.moduli) makes": "rnsdask extend SRC DST makes",
    "x.with_bound(bound) of the unsigned one does": "rnsdask bound STORE --write of the unsigned one may",
    "x.with_bound(x.measure_bound()) has": "rnsdask bound STORE --write has",
    "x.rechunk(chunks)": "rnsdask rechunk SRC DST --chunks N,...",
    "x.to_positional(bits)": "rnsdask convert SRC DST --to positional --bits B",
    "x.to_rns(moduli)": "rnsdask convert SRC DST --to rns",
    "x.to_rns()": "rnsdask convert SRC DST --to rns",
    "to_positional(bits) and to_rns(moduli) convert": "rnsdask convert SRC DST --to rns or --to positional "
    "makes them of one kind",
    "IntervalRNSArray.from_rns(x) and to_rns() convert": "rnsdask convert SRC DST --to rns or --to interval "
    "makes them of one kind",
    "FieldArray.from_rns(x, fields) and lift() convert": "in Python, FieldArray.from_rns(x, fields) and "
    "lift() convert",
    "their integers, of to_ints() or lift(), are of any field": "in Python, their integers, of to_ints() or "
    "lift(), are of any field",
    "rd.FieldArray.from_rns(x, fields)": "in Python, rd.FieldArray.from_rns(x, fields)",
    "rd.from_ints(x, fields)": "in Python, rd.from_ints(x, fields)",
    "x.lift()": "in Python, x.lift()",
}
"""Words of the command line for each way out in the package's messages; some exist in Python alone."""

# One pass, so that nothing is translated twice; the longest first, for some are a part of others.
_WORDS = re.compile("|".join(map(re.escape, sorted(COMMANDS, key=len, reverse=True))))


def in_options(message: str) -> str:
    """Return an error's message with the ways out that it names in the words of the command line."""
    return _WORDS.sub(lambda found: COMMANDS[found[0]], message)
