"""Messages that hold ways out as values, which Python and the command line print in their own words.

An error describes the fault in text. Whatever the command line calls otherwise stands in it as a value: ways
out (:class:`Way`, :class:`Setting`, :class:`Conversions`), parameters and types of arrays. ``str`` gives
Python's words; :meth:`Message.render` gives those of another table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any, Self, TypeAlias


class Way(Enum):
    """Way out of an error, such as a method to call; the value is the text of Python's messages."""

    BOUND = "x.with_bound(bound) of the unsigned one does"
    LEAST_BOUND = "x.with_bound(x.measure_bound())"
    CERTIFICATES = "security="
    DENSE_DET = "rd.linalg.det takes a.to_dense(fields)"
    DENSE_RANK = "rd.linalg.rank takes a.to_dense(fields)"
    DENSE_SOLVE = "rd.linalg.solve takes a.to_dense(fields), with unique=False"
    EXTEND = "x.extend(moduli)"
    EXTEND_ALIKE = "x.extend(y.moduli)"
    EXTEND_FIRST = "x.extend(moduli) to moduli that hold the exact results"
    EXPECTED_GROUPS = (
        "fill or drop missing labels first, or name the groups that are wanted with expected_groups="
    )
    EXTEND_OR_EXTENDING = 'x.extend(moduli) or overflow="extend"'
    FIELDS = "rd.FieldArray.from_rns(x, fields)"
    INTEGERS = "x.lift()"
    INTEGERS_AS_LIMBS = "x.lift().to_positional(bits)"
    INTEGERS_OF_STORE = "of the array, x.lift()"
    LIMBS = "x.to_positional(bits)"
    MASKS = "zarr.open_array(path) reads it"
    NEGATIVE = (
        'rd.IntervalRNSArray.from_rns(x) holds negative integers too, and overflow="extend", where it is '
        "taken, makes signed residues"
    )
    OTHER_ARRAYS = "rd.from_ints(zarr.open_array(path))"
    RECHUNK = "x.rechunk(chunks)"
    RESIDUES = "x.to_rns(moduli)"
    RESIDUES_ALONE = "x.to_rns()"
    RESIDUES_OF_ANY = 'to_residues(moduli, overflow="wrap")'
    RESUME_OR_WRITE_ANEW = (
        "the command that began it goes on with --resume, or write it anew with overwrite=True"
    )
    SIGNED_ARRAY = "negative integers need a signed array"
    SIGNED_LIMBS = "x.to_positional(bits, signed=True)"
    STRICT = "where reading is strict"
    WRITE_ANEW = "write it anew with overwrite=True"

    def __str__(self) -> str:
        return self.value


class Conversion(Enum):
    """Conversion of an array to another number system; the value is the text of Python's messages."""

    FERMAT_FIELD = "FieldArray.from_rns(x, field)"
    FERMAT_FIELD_OF_ELEMENTS = "FieldArray.from_rns(x.lift(), field)"
    FIELDS = "FieldArray.from_rns(x, fields)"
    FIELDS_OF_ELEMENTS = "FieldArray.from_rns(x.lift(), fields)"
    INTERVALS = "IntervalRNSArray.from_rns(x)"
    INTERVALS_OF_ELEMENTS = "IntervalRNSArray.from_rns(x.lift())"
    INTERVALS_OF_LIMBS = "IntervalRNSArray.from_rns(x.to_rns(moduli))"
    LIFT = "lift()"
    LIMBS = "to_positional(bits)"
    LIMBS_OF_ELEMENTS = "lift().to_positional(bits)"
    RESIDUES = "to_rns()"
    RESIDUES_OF_LIMBS = "to_rns(moduli)"


@dataclass(frozen=True)
class Conversions:
    """Way out for arrays that do not mix: conversions, each of which makes them of one kind."""

    conversions: tuple[Conversion, ...]

    def __str__(self) -> str:
        verb = "converts" if len(self.conversions) == 1 else "convert"
        return f"{' and '.join(conversion.value for conversion in self.conversions)} {verb}"


@dataclass(frozen=True)
class Parameter:
    """Parameter of a function, and the option of that name if a command has it."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Setting:
    """Parameter with one or several values, ``overflow="wrap" or "flag"``; without a value ``column=``."""

    name: str
    values: tuple[object, ...]

    def __init__(self, name: str, *values: object) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        shown = (f'"{value}"' if isinstance(value, str) else str(value) for value in self.values)
        return f"{self.name}={' or '.join(shown)}"


@dataclass(frozen=True)
class Kind:
    """Type of arrays by its name: ``RNSArray``, ``an RNSArray``, ``no RNSArray`` or ``RNSArrays``."""

    name: str
    form: str = ""

    @classmethod
    def of(cls, array_type: type, form: str = "") -> Self:
        """Name a type: `form` "a" adds its article, "no" negates it, "s" is the plural."""
        return cls(array_type.__name__, form)

    def __str__(self) -> str:
        article = "an " if self.name[0] in "AEIOR" else "a "
        return {"": "", "a": article, "no": "no ", "s": ""}[self.form] + self.name + "s" * (self.form == "s")


Part: TypeAlias = Way | Conversions | Parameter | Setting | Kind
"""Part of a message that the command line writes in its own words."""


class Message(str):
    """Message in Python's words, with its ways out, parameters and types as values: :attr:`parts`."""

    parts: tuple[str | Part, ...]

    def __new__(cls, *parts: "str | Part | BaseException") -> Self:
        """Join texts, values, and messages of errors."""
        flat: list[str | Part] = []
        for part in parts:
            text = str(part) if isinstance(part, BaseException) else part
            flat.extend(text.parts if isinstance(text, Message) else (text,))
        self = super().__new__(cls, "".join(map(str, flat)))
        self.parts = tuple(flat)
        return self

    def __str__(self) -> Self:
        return self  # so that ``str(error)`` keeps the values

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.parts

    @property
    def ways(self) -> tuple[Way | Conversions | Setting, ...]:
        """Ways out that the message names."""
        return tuple(part for part in self.parts if isinstance(part, Way | Conversions | Setting))

    def render(self, words: Callable[[Part], str]) -> str:
        """Return the message with each value replaced by the text that a function gives."""
        return "".join(part if isinstance(part, str) else words(part) for part in self.parts)


REPLACE = Message("replace it with ", Setting("overwrite", True))
"""Way out where something exists that must not be replaced without consent, or cannot be resumed."""


def with_ways(what: "str | BaseException", *ways: "str | Part") -> Message:
    """Write a fault, followed by the ways out, separated by semicolons."""
    return Message(what, *chain.from_iterable(("; ", way) for way in ways))


def must(parameter: str, rule: str) -> Message:
    """Write the rule that a parameter breaks, as in ``bits must be at least 1, got 0``."""
    return Message(Parameter(parameter), " must ", rule)
