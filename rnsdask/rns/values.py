"""Conversion of integers from other libraries, and from text, to values that number systems encode."""

from typing import Any, NamedTuple, Self, SupportsIndex

import numpy as np

from rnsdask.backend import cpu
from rnsdask.core.errors import NumberError, abbreviate, brief, out_of_range
from rnsdask.core.integer_text import not_an_integer, parse_integer
from rnsdask.core.moduli import ModuliSet, as_bool, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ranges import bits_of, range_of_bits
from rnsdask.core.ways import Message, Setting, Way, must, with_ways
from rnsdask.rns.convert import as_python_ints, flat_values, place_of
from rnsdask.rns.system import RNS, least_system

_SPACES = b" \t\r\n"
_TEXT_SPACES = _SPACES.decode("ascii")
_BLOCK = 2**12
"""Texts that are converted to integers together."""
_LONGEST_LINE = 2**11
"""Most characters of a text for which the kernels are quicker than GMP."""
_LIMB_BYTES = 4
_MOST_DIGITS = 1000
"""Most decimal digits by which integers of a scale are longer than their decimals."""


def flat_integers(values: Any, scale: int | None = None) -> tuple[Any, tuple[int, ...]]:
    """Values as a list, or as a one-dimensional array of a NumPy integer type, and their shape.

    In addition to the types of :func:`.flat_values`, `values` may be text of integers, decimal or hexadecimal
    after ``0x``, in lists and in arrays of NumPy; a Series, an Index or an array of pandas; an array of
    Arrow; a Series of decimals of polars. A missing value, or text that is not an integer, is a ValueError
    that names the position.

    With a `scale`, values are decimals of Arrow or polars, and integers count units of ``10**-scale``.
    """
    library = type(values).__module__.partition(".")[0]
    if library == "pandas":
        values = _convert_pandas(values, scale)
    elif library == "pyarrow":
        values = _convert_arrow(values, scale)
    elif hasattr(getattr(values, "dtype", None), "scale") and hasattr(values, "to_arrow"):
        values = _convert_arrow(values.to_arrow(), scale)  # decimals, for which NumPy has no type
    elif scale is not None:
        raise TypeError(
            Message(
                Setting("scale", scale), f" is for decimals of Arrow, pandas or polars, got {brief(values)}"
            )
        )
    flat, shape = flat_values(values)
    if isinstance(flat, list) and not {str, bytes, np.str_, np.bytes_}.isdisjoint(map(type, flat)):
        flat = [
            v for i in range(0, len(flat), _BLOCK) for v in _block_of_integers(flat[i : i + _BLOCK], i, shape)
        ]
    return flat, shape


def _block_of_integers(values: list[Any], first: int, shape: tuple[int, ...]) -> list[Any]:
    """Convert texts among values to integers; `first` is the block's flat position in an array of a shape."""
    integers = _integers_of_lines(values) if set(map(type, values)) == {str} else None
    if integers is not None:
        return integers
    return [_parse(v, first + i, shape) if isinstance(v, str | bytes) else v for i, v in enumerate(values)]


def _integers_of_lines(texts: list[str]) -> list[int] | None:
    """Convert texts to integers by the kernels; None if one is long, or not an integer."""
    lines = [text.strip(_TEXT_SPACES) for text in texts]
    longest = max(map(len, lines))
    if longest > _LONGEST_LINE:
        return None
    data = "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"
    limbs = np.empty((len(lines), longest // 8 + 1), dtype=np.uint32)  # 8 hexadecimal digits are a limb
    rows, end = cpu.parse_lines(data, 0, longest, 0, True, limbs)
    # A line end within a text would give more lines than texts.
    return cpu.limbs_to_ints(limbs, True) if (rows, end) == (len(lines), len(data)) else None


def _parse(text: str | bytes, position: int, shape: tuple[int, ...]) -> int:
    line = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    value = parse_integer(line.strip(_SPACES))
    if value is None:
        problem = not_an_integer(line) if line.strip(_SPACES) else "empty text is not an integer"
        raise ValueError(f"value at {place_of(position, shape)}: {problem}")
    return int(value)


def _convert_pandas(values: Any, scale: int | None) -> Any:
    kind = type(values).__name__
    if not hasattr(values, "isna") or not hasattr(values, "dtype") or kind == "MultiIndex":
        raise TypeError(
            f"values must be a Series, an Index or an array of pandas, got a {kind}; choose a column"
        )
    missing = np.asarray(values.isna())
    if missing.any():
        raise _missing_error(int(missing.argmax()))
    if hasattr(values.dtype, "pyarrow_dtype"):
        return _convert_arrow(getattr(values, "array", values).__arrow_array__(), scale)
    if scale is not None:
        raise TypeError(
            Message(Setting("scale", scale), f" is for decimals of Arrow, got pandas' type {values.dtype}")
        )
    return values.to_numpy()


def _missing_error(position: int) -> ValueError:
    return ValueError(f"value at position {position} is missing; fill or drop missing values first")


def _convert_arrow(values: Any, scale: int | None) -> Any:
    """Convert an array of Arrow, chunked or not, to NumPy or a list."""
    if not hasattr(values, "null_count") or not hasattr(values, "type"):
        raise TypeError(f"values must be an array of Arrow, got a {type(values).__name__}; choose a column")
    if values.null_count:
        raise _missing_error(int(np.flatnonzero(np.asarray(values.is_null()))[0]))
    if range_of_arrow(values.type, scale) is None:
        return values.to_pylist()
    if hasattr(values.type, "precision"):
        parts, factor = values.chunks if hasattr(values, "chunks") else [values], _factor(values.type, scale)
        return [factor * number for part in parts for number in _decimals(part)]
    return np.asarray(values)


def _decimals(part: Any) -> list[int]:
    """Convert decimals to integers of their last digit: Arrow holds them in two's complement."""
    width = part.type.bit_width // 8
    octets = np.frombuffer(part.buffers()[1], dtype=np.uint8, count=(part.offset + len(part)) * width)
    limbs = octets.view("<u4").reshape(-1, width // _LIMB_BYTES)[part.offset :]
    return cpu.limbs_to_ints(np.ascontiguousarray(limbs, dtype=np.uint32), True)


def _factor(kind: Any, scale: int | None) -> int:
    """Return how many units of ``10**-scale`` the last digit of a type of decimals counts."""
    return int(10 ** ((scale or 0) - kind.scale))


def range_of_arrow(kind: Any, scale: int | None = None) -> tuple[int, int] | None:
    """Least and greatest integer that an Arrow type can hold, or None for text; TypeError for other types.

    Of decimals with a `scale`, these are in units of ``10**-scale``.
    """
    name = str(kind)
    if name.startswith("decimal") and 0 <= (scale or 0) - kind.scale <= _MOST_DIGITS:
        most = (10**kind.precision - 1) * _factor(kind, scale)
        return -most, most
    if name.startswith("decimal") and (scale is not None or kind.scale > 0):
        what: Any = (
            f"values must be integers, and Arrow's type {name} has {kind.scale} digits after the point"
        )
        if scale is not None:
            must_be = (
                f"be from {kind.scale} to {kind.scale + _MOST_DIGITS} for Arrow's type {name}, got {scale}"
            )
            what = must("scale", must_be)
        units = f" reads them as integers of units of 10**-{kind.scale}"
        raise TypeError(with_ways(what, Message(Setting("scale", kind.scale), units)))
    if scale is not None:
        raise TypeError(Message(Setting("scale", scale), f" is for decimals, got Arrow's type {name}"))
    if name.startswith(("int", "uint")):
        limits = np.iinfo(name)
        return int(limits.min), int(limits.max)
    if name in ("string", "large_string", "string_view"):
        return None
    raise TypeError(f"values must be integers, decimals or text of integers, got Arrow's type {name}")


def check_bits(flat: Any, shape: tuple[int, ...], bits: int, signed: bool) -> None:
    """Raise NumberError unless integers from :func:`flat_integers` are in the :func:`.range_of_bits`.

    It names the first other one, its position in an array of that shape, and the way out.
    """
    lowest, highest = range_of_bits(bits, signed)
    found = _range_of(flat, shape)
    if lowest <= found[0] and found[1] <= highest:
        return
    position, value = next((i, int(v)) for i, v in enumerate(flat) if not lowest <= int(v) <= highest)
    what = f"value {abbreviate(value)} at {place_of(position, shape)}"
    fault = out_of_range(what, (lowest, highest), "signed" if signed else "unsigned", f"bits={bits}")
    needs_sign = value < 0 and not signed
    way = (Way.SIGNED_ARRAY,) if needs_sign else (Setting("bits", bits_of(value, signed)), " holds it")
    raise NumberError(with_ways(fault, Message(*way)))


def as_system(moduli: ModuliSet | NumberSystem, **given: Any) -> Any:
    """Return the number system of a moduli set, with `signed` and `bound` if given; a system as it is.

    Given options must not contradict the system.
    """
    if not isinstance(moduli, NumberSystem):
        signed = given.get("signed")
        return RNS(moduli, False if signed is None else signed, given.get("bound"))
    for name, value in given.items():
        if value is not None and value != getattr(moduli, name, None):
            raise ValueError(f"{name}={brief(value)} contradicts the number system {moduli!r}")
    return moduli


class OfBits(NamedTuple):
    """Length in bits of every number that comes in, and the moduli for it."""

    bits: int
    moduli: ModuliSet

    @classmethod
    def checked(cls, bits: SupportsIndex, moduli: object) -> Self:
        """Check `bits`, beside which there must be no moduli."""
        if moduli is not None:
            raise TypeError(f"give either bits or moduli, got bits={brief(bits)} and moduli={brief(moduli)}")
        length = as_integer(bits, "bits")
        return cls(length, ModuliSet.for_bits(length))


def system_that_holds(flat: Any, shape: tuple[int, ...], signed: bool | None) -> RNS:
    """Growing system of the fewest moduli that hold integers from :func:`flat_integers`.

    Unless `signed` is given, the range is signed if one of them is negative.
    """
    return system_of_range(*_range_of(flat, shape), signed)


def _range_of(flat: Any, shape: tuple[int, ...]) -> tuple[int, int]:
    """Least and greatest of integers from :func:`flat_integers`, or 0 twice if there are none."""
    if isinstance(flat, list):
        integers = as_python_ints(flat, shape)
        return min(integers, default=0), max(integers, default=0)
    return (int(flat.min()), int(flat.max())) if len(flat) else (0, 0)


def system_of_range(lowest: int, highest: int, signed: bool | None) -> RNS:
    """Growing system of the fewest moduli that hold integers from `lowest` to `highest`."""
    is_signed = lowest < 0 if signed is None else as_bool(signed, "signed")
    # A negative number in an unsigned range is refused at its position later, when it is encoded.
    return least_system(lowest if is_signed else 0, highest if is_signed else max(highest, 0), is_signed)
