"""The rows: every operation that a number system can have, declared once.

A number system is its table (:mod:`.table`): a function of chunks for each row that it has. The declarations
here say what such a function takes and returns. Blocks come first: the words (rows, *shape) of each operand,
on NumPy or CuPy, which broadcast; an integer is a block of one number. ``system=``, which
declarations leave out, and the options are keywords. A function need not take an option that has a default
here. Functions of numbers return words, unless the row declares the type of plain values (*shape).

A row of the kind ``"arrays"`` has a function of whole arrays of numbers, such as determinants of a stack of
matrices, where one function of chunks would not do. It takes arrays of one system and of known lengths, in
memory or lazy, in any chunks, and no ``system=``. It returns what users get: an array like its arguments,
integers, or a tuple of these, lazy if an argument is. It does not compute lazy arrays, unless its declaration
says so.

Three options mean the same everywhere:

- ``mode``, for rows whose exact results may be out of range: ``"raise"``, ``"wrap"``, or ``"flag"``, which
  adds a row to the result, 1 where a number is out of range;
- ``locate``, which turns a flat index in the chunk into the one to report;
- ``ranges``, the least and greatest number known for each operand.

Sums and products of two may also have ``given``, the systems of the operands where these differ, and
``algorithm``, which benchmarks set.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, Signature, signature
from types import MappingProxyType
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np

from rnsdask.core import ranges
from rnsdask.core.conventions import Convention
from rnsdask.core.operations import BY_INTEGERS, OF_MATRICES, POWER_TABLES, STEP, Footprint
from rnsdask.core.order import Ordering
from rnsdask.core.place import Locate, Place
from rnsdask.core.ranges import Range
from rnsdask.core.reductions import ReductionResult

P = ParamSpec("P")
R = TypeVar("R")

Array: TypeAlias = Any
"""Words, or plain values for each number, on NumPy or CuPy."""

Numbers: TypeAlias = Any
"""An array of numbers with ``words`` and ``system``, in memory or of Dask."""

Results: TypeAlias = Any
"""An array of numbers, or of Python ints in an object array of NumPy or Dask; with shape () a single one."""

Mode: TypeAlias = str
Axes: TypeAlias = tuple[int, ...]
Part: TypeAlias = Literal["quotient", "remainder"]
Kind: TypeAlias = Literal[
    "numbers", "conversion", "reduction", "scan", "order", "matrix", "polynomial", "arrays"
]


@dataclass(frozen=True, eq=False, repr=False)
class Row(Generic[P, R]):
    """Declaration of an operation.

    Attributes
    ----------
    name : str
        Name of the row, of its tasks, and of the operation in errors.
    declared : callable
        The declaration, whose signature is that of the row's functions without ``system=``.
    kind : str
        Whether a function takes numbers one by one, converts their words, reduces them, has running results
        or an order of them, takes them as matrices or coefficients of polynomials, or takes whole arrays.
    gives : dtype or None
        Type of the plain values; None for words.
    result : callable or None
        The range of the results, if the ranges of the operands determine it.
    footprint : Footprint
        Memory that a task takes, of a job or as a step of an expression.
    numpy : mapping of names
        NumPy's names of it, where it has others or several: functions, ufuncs, or ``accumulate`` of one; each
        with what the name chooses of the row, such as a relation of :func:`compare`, or None.
    """

    name: str
    declared: Callable[P, R]
    kind: Kind
    gives: np.dtype[Any] | None
    result: Callable[..., Range] | None
    footprint: Footprint
    numpy: Mapping[str, Any]

    @cached_property
    def signature(self) -> Signature:
        """Signature of the declaration."""
        return signature(self.declared)

    @cached_property
    def arity(self) -> int:
        """Number of blocks that a function takes."""
        kinds = (parameter.kind for parameter in self.signature.parameters.values())
        return sum(kind is Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Default of each parameter, or :attr:`inspect.Parameter.empty`."""
        return {parameter.name: parameter.default for parameter in self.signature.parameters.values()}

    @cached_property
    def optional(self) -> frozenset[str]:
        """Options that a function need not take."""
        return frozenset(name for name, value in self.defaults.items() if value is not Parameter.empty)

    def __repr__(self) -> str:
        return f"rows.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # pickled by its name in this module


ROWS: dict[str, Row[..., Any]] = {}
"""All rows by name."""


def row(
    kind: Kind,
    *,
    gives: Any = None,
    result: Callable[..., Range] | None = None,
    footprint: Footprint = STEP,
    numpy: Mapping[str, Any] = MappingProxyType({}),
) -> Callable[[Callable[P, R]], Row[P, R]]:
    """Declare a row by a function without a body."""

    def declare(declared: Callable[P, R]) -> Row[P, R]:
        name = declared.__name__
        if name in ROWS:
            raise ValueError(f"two rows are named {name}")
        dtype = None if gives is None else np.dtype(gives)
        made = Row(name, declared, kind, dtype, result, footprint, numpy)
        ROWS[name] = made
        return made

    return declare


# ---- sums of signed products: core/operations.py lists them ------------------------------------------------


@row("numbers", result=ranges.SUMS_OF_PRODUCTS["add"])
def add(
    a: Array,
    b: Array,
    *,
    mode: Mode = "raise",
    locate: Locate = int,
    ranges: Sequence[Range] = (),
    given: Sequence[Any] | None = None,
    algorithm: Any = None,
) -> Array:
    """Sums ``a + b``."""


@row("numbers", result=ranges.SUMS_OF_PRODUCTS["subtract"])
def subtract(
    a: Array,
    b: Array,
    *,
    mode: Mode = "raise",
    locate: Locate = int,
    ranges: Sequence[Range] = (),
    given: Sequence[Any] | None = None,
    algorithm: Any = None,
) -> Array:
    """Differences ``a - b``."""


@row("numbers", result=ranges.SUMS_OF_PRODUCTS["multiply"])
def multiply(
    a: Array,
    b: Array,
    *,
    mode: Mode = "raise",
    locate: Locate = int,
    ranges: Sequence[Range] = (),
    given: Sequence[Any] | None = None,
    algorithm: Any = None,
) -> Array:
    """Products ``a * b``."""


@row("numbers", result=ranges.SUMS_OF_PRODUCTS["fma"])
def fma(
    a: Array, b: Array, c: Array, *, mode: Mode = "raise", locate: Locate = int, ranges: Sequence[Range] = ()
) -> Array:
    """Sums ``a * b + c``."""


@row("numbers", result=ranges.SUMS_OF_PRODUCTS["mulsub"], footprint=Footprint(7, 30))
def mulsub(
    a: Array,
    b: Array,
    c: Array,
    d: Array,
    *,
    mode: Mode = "raise",
    locate: Locate = int,
    ranges: Sequence[Range] = (),
) -> Array:
    """Differences ``a * b - c * d``."""


@row("numbers", result=ranges.SUMS_OF_PRODUCTS["muladd"], footprint=Footprint(7, 30))
def muladd(
    a: Array,
    b: Array,
    c: Array,
    d: Array,
    *,
    mode: Mode = "raise",
    locate: Locate = int,
    ranges: Sequence[Range] = (),
) -> Array:
    """Sums ``a * b + c * d``."""


# ---- numbers, one by one -----------------------------------------------------------------------------------


@row("numbers", result=ranges.negative)
def negative(x: Array, *, mode: Mode = "raise") -> Array:
    """Opposites, where this is faster than a subtraction from 0."""


@row("numbers", result=ranges.absolute, numpy={"absolute": None})
def absolute(x: Array, *, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Absolute values."""


@row("numbers", gives=np.int8, result=ranges.sign)
def sign(x: Array) -> Array:
    """Signs: -1, 0 or +1."""


_RELATIONS = {
    **{"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="},
    **{"equal": "==", "not_equal": "!="},
}


@row("numbers", gives=np.int8, numpy=_RELATIONS)
def compare(a: Array, b: Array) -> Array:
    """Order of two numbers: -1, 0 or +1."""


@row("numbers", gives=np.bool_)
def differ(a: Array, b: Array) -> Array:
    """Inequality of two numbers, where this is faster than their order, or they have none."""


@row("numbers", gives=np.bool_, result=ranges.truth, footprint=Footprint(4, BY_INTEGERS))
def is_even(x: Array) -> Array:
    """Divisibility by 2."""


_PARTS: dict[str, tuple[Part, ...]] = {
    "floor_divide": ("quotient",),
    "remainder": ("remainder",),
    "divmod": ("quotient", "remainder"),
}


@row("numbers", footprint=Footprint(4, 60), numpy=_PARTS)
def floor_divide(
    x: Array, y: Array, *, parts: Sequence[Part], locate: Locate = int, ranges: Sequence[Range] = ()
) -> Array:
    """Quotients, rounded down, and remainders: the words of each of `parts`, one after another."""


@row("numbers")
def floor_divide_by(x: Array, *, divisor: int, parts: Sequence[Part], locate: Locate = int) -> Array:
    """Quotients and remainders by one integer of any size."""


@row("numbers", footprint=Footprint(16, BY_INTEGERS))
def power(x: Array, *, exponent: int, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Powers; in a field also by negative exponents."""


@row("numbers")
def power_by_array(x: Array, exponents: Array, *, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Powers by machine integers (1, *shape)."""


@row("numbers", footprint=Footprint(17, 16, POWER_TABLES, passes=1))
def power_modulo(x: Array, *, exponent: int, modulus: int, locate: Locate = int) -> Array:
    """Powers modulo an integer, as Python's ``pow``."""


@row("numbers")
def power_modulo_by_array(x: Array, exponents: Array, *, modulus: int, locate: Locate = int) -> Array:
    """Powers by machine integers (1, *shape) modulo an integer."""


@row("numbers")
def inverse(x: Array, *, locate: Locate = int) -> Array:
    """Inverses, modulo M or in a field."""


@row("numbers", result=ranges.gcd, footprint=Footprint(4, BY_INTEGERS))
def gcd(x: Array, y: Array, *, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Greatest common divisors."""


@row("numbers", result=ranges.lcm, footprint=Footprint(4, BY_INTEGERS))
def lcm(x: Array, y: Array, *, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Least common multiples."""


@row("numbers", result=ranges.isqrt, footprint=Footprint(4, BY_INTEGERS))
def isqrt(x: Array, *, locate: Locate = int) -> Array:
    """Square roots, rounded down."""


@row("numbers", result=ranges.factorial, footprint=Footprint(4, BY_INTEGERS))
def factorial(x: Array, *, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Factorials."""


@row("numbers", result=ranges.binomial, footprint=Footprint(4, BY_INTEGERS))
def binomial(n: Array, k: Array, *, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Binomial coefficients."""


@row("numbers", result=ranges.primorial, footprint=Footprint(4, BY_INTEGERS))
def primorial(x: Array, *, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Products of all primes up to each number."""


@row("numbers", gives=np.int64, result=ranges.bit_length, footprint=Footprint(4, BY_INTEGERS))
def bit_length(x: Array) -> Array:
    """Bits of magnitudes."""


@row("numbers", gives=np.int64, result=ranges.bitwise_count, footprint=Footprint(4, BY_INTEGERS))
def bitwise_count(x: Array) -> Array:
    """Counts of the 1 bits of magnitudes."""


@row("numbers", result=ranges.bitwise, footprint=Footprint(1, 0))
def bitwise_and(x: Array, y: Array) -> Array:
    """Bits that are 1 in both numbers, in two's complement."""


@row("numbers", result=ranges.bitwise, footprint=Footprint(1, 0))
def bitwise_or(x: Array, y: Array) -> Array:
    """Bits that are 1 in either number."""


@row("numbers", result=ranges.bitwise, footprint=Footprint(1, 0))
def bitwise_xor(x: Array, y: Array) -> Array:
    """Bits in which two numbers differ."""


@row("numbers", result=ranges.invert, footprint=Footprint(1, 0))
def invert(x: Array) -> Array:
    """All bits inverted."""


@row("numbers", footprint=Footprint(3, 60))
def left_shift(x: Array, counts: Array, *, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Products with powers of 2 by machine integers (1, *shape)."""


@row("numbers", footprint=Footprint(3, 60))
def right_shift(x: Array, counts: Array, *, locate: Locate = int) -> Array:
    """Quotients by powers of 2, rounded down."""


@row("numbers", result=ranges.modular, footprint=Footprint(4, BY_INTEGERS))
def mod_add(x: Array, y: Array, m: Array, *, locate: Locate = int) -> Array:
    """Sums modulo m."""


@row("numbers", result=ranges.modular, footprint=Footprint(4, BY_INTEGERS))
def mod_subtract(x: Array, y: Array, m: Array, *, locate: Locate = int) -> Array:
    """Differences modulo m."""


@row("numbers", result=ranges.modular, footprint=Footprint(4, BY_INTEGERS))
def mod_multiply(x: Array, y: Array, m: Array, *, locate: Locate = int) -> Array:
    """Products modulo m."""


@row("numbers", result=ranges.modular, footprint=Footprint(16, BY_INTEGERS, passes=1))
def mod_power(x: Array, exponents: Array, m: Array, *, locate: Locate = int) -> Array:
    """Powers by numbers modulo m."""


@row("numbers")
def mod_power_by_array(x: Array, m: Array, exponents: Array, *, locate: Locate = int) -> Array:
    """Powers by machine integers (1, *shape) modulo m."""


@row("numbers")
def mod_power_by_integer(x: Array, m: Array, *, exponent: int, locate: Locate = int) -> Array:
    """Powers by one integer of any size modulo m."""


@row("numbers", result=ranges.modular, footprint=Footprint(4, BY_INTEGERS))
def mod_inverse(x: Array, m: Array, *, locate: Locate = int) -> Array:
    """Inverses modulo m."""


@row("numbers", numpy={"divide": None})
def divide_by(x: Array, *, divisor: int) -> Array:
    """Quotients of elements of fields by one integer."""


@row("numbers")
def multiply_by_root(x: Array, *, exponent: int) -> Array:
    """Products with a power of the radix, a root of unity."""


# ---- the same numbers in other words -----------------------------------------------------------------------


@row("conversion")
def residues_modulo(x: Array) -> Array:
    """Residues of numbers of either sign modulo the system's moduli, which are not extended."""


@row("conversion", footprint=Footprint(4, 30))
def widened(x: Array, *, wide: Any) -> Array:
    """Words in a system of more moduli or bits."""


@row("conversion")
def narrowed(x: Array, *, wide: Any, mode: Mode = "raise", locate: Locate = int) -> Array:
    """Numbers of this system from their words in one of more moduli or bits."""


@row("conversion", footprint=Footprint(4, 30))
def rescale(x: Array, *, dropped: int, to_nearest: bool) -> Array:
    """Quotients by the product of the last `dropped` primes, in the fields of the others."""


@row("conversion", footprint=Footprint(4, 30))
def base_extend(x: Array, *, fields: Any, offset: int) -> Array:
    """Elements of other prime fields of the integers from ``-offset`` to ``M - 1 - offset``."""


@row("conversion")
def from_decimal(limbs: Array, *, signed: bool) -> Array:
    """Words (rows, N) from limbs of 9 decimal digits, uint32 (L, N), in NumPy."""


@row("conversion")
def to_decimal(words: Array) -> tuple[Array, Array]:  # type: ignore[empty-body]
    """Magnitudes as limbs of 9 decimal digits (L, N), and a mask of the negative numbers (N,)."""


# ---- over all numbers, or along axes, which keep length 1 --------------------------------------------------


@row("reduction", footprint=Footprint(0, 12))
def reduce(words: Array, *, operation: str) -> ReductionResult:  # type: ignore[empty-body]
    """Result of one of :data:`.REDUCTIONS` over all numbers."""


@row("reduction")
def extrema(words: Array, *, axes: Axes, minimum: bool) -> tuple[Array, Array]:  # type: ignore[empty-body]
    """Words of the greatest or least numbers, and their first index along one axis, int64 (*reduced)."""


@row("reduction")
def sums(words: Array, *, axes: Axes) -> Array:
    """Exact sums: Python ints (*reduced)."""


@row("reduction", footprint=Footprint(0, 30))
def moments(words: Array, *, axes: Axes) -> Array:
    """Exact sums of numbers and of their squares: Python ints (2, *reduced)."""


@row("reduction")
def sum_along(words: Array, *, axes: Axes) -> Array:
    """Sums of elements of a field along axes."""


@row("reduction")
def prod_along(words: Array, *, axes: Axes) -> Array:
    """Products of elements of a field along axes."""


@row("reduction", footprint=Footprint(3, 30))
def group_sums(words: Array, *, codes: Array, count: int) -> Array:
    """Sums (rows, count) of the numbers (rows, N) of each group, by codes (N,) below `count`.

    They are modulo what the words count modulo: no sum is out of the range of the system.
    """


@row("reduction")
def group_prods(words: Array, *, codes: Array, count: int) -> Array:
    """Products (rows, count) of elements of fields (rows, N) by group; each code below `count` occurs."""


@row("reduction")
def axis_factors(words: Array, *, axes: Axes, mode: Mode = "raise") -> Array:
    """Factors of products along axes, which determine the products and whether they overflow."""


@row("reduction")
def join_axis_factors(factors: Array, *, axes: Axes) -> Array:
    """Joined factors of several chunks."""


@row("reduction")
def axis_products(factors: Array, *, mode: Mode, locate: Locate = int) -> Array:
    """Products that factors represent."""


@row("reduction")
def factors(words: Array, *, mode: Mode = "raise") -> Any:
    """Factors of the product of all numbers."""


@row("reduction")
def join_factors(a: Any, b: Any) -> Any:
    """Joined factors of two chunks."""


@row("reduction", footprint=Footprint(3, 30))
def product(factors: Any, *, mode: Mode) -> Any:
    """Product that factors represent, an int; with ``"flag"`` a pair of it and a bool."""


@row("reduction", footprint=Footprint(40, 30, passes=1))
def product_tree(words: Array, *, locate: Locate = int) -> Any:
    """Tree of all products of neighbours."""


# ---- running results along an axis: each row gives a Scan --------------------------------------------------


@row("scan", numpy={"add.accumulate": None}, footprint=Footprint(4, 60))
def cumsum(*, axis: int, line: bool = False) -> Any:
    """Running sums; on a `line`, chunks have only one axis."""


@row("scan", numpy={"multiply.accumulate": None})
def cumprod(*, axis: int, mode: Mode) -> Any:
    """Running products."""


@row("scan", numpy={"maximum.accumulate": None}, footprint=Footprint(4, 60))
def cummax(*, axis: int, line: bool = False) -> Any:
    """Running maxima."""


@row("scan", numpy={"minimum.accumulate": None}, footprint=Footprint(4, 60))
def cummin(*, axis: int, line: bool = False) -> Any:
    """Running minima."""


# ---- order -------------------------------------------------------------------------------------------------


@row("order", footprint=Footprint(6, 60))
def ordering(words: Array) -> Ordering:  # type: ignore[empty-body]
    """Sort keys of 64 bits, and digits that decide where the keys do not."""


# ---- matrices, convolutions, transforms --------------------------------------------------------------------


@row("matrix")
def multiply_matrices(a: Array, b: Array) -> Array:
    """Products of matrices (rows, *batch, I, K) and (rows, *batch, K, J), modulo M or in a field."""


@row("matrix")
def multiply_sparse(x: Array, *, matrix: Any) -> Array:
    """Products (rows, R, K) of a :class:`.SparseMatrix` (R, C) and blocks of vectors (rows, C, K)."""


@row("matrix")
def window(x: Array, y: Array, *, first: int, stop: int) -> Array:
    """Some coefficients of products of polynomials along the last axis."""


@row("matrix", footprint=Footprint(6, 0))
def transform(
    words: Array, *, axis: int, inverse: bool, negacyclic: bool, convention: Convention | None = None
) -> Array:
    """Number-theoretic transforms along an axis, by the usual root in natural order or another convention."""


@row("matrix")
def twiddled(words: Array, *, length: int, first: int, inverse: bool, negacyclic: bool) -> Array:
    """Matrices (rows, B, I, K) times the powers of a root of unity between two steps of a transform."""


# ---- polynomials over fields, coefficients along the last axis, ascending ----------------------------------


@row("polynomial")
def resultants(f: Array, g: Array) -> Array:
    """Resultants."""


@row("polynomial")
def discriminants(f: Array) -> Array:
    """Discriminants."""


@row("polynomial")
def common_divisors(f: Array, g: Array) -> Array:
    """Greatest common divisors, monic."""


@row("polynomial")
def divided(f: Array, g: Array, *, place: Place) -> Array:
    """Quotients and remainders of polynomials, one after another."""


# ---- whole arrays: sums of products ------------------------------------------------------------------------


@row("arrays", footprint=Footprint(16, BY_INTEGERS, passes=1))
def matmul(a: Numbers, b: Numbers, *, overflow: str | None = None) -> Any:
    """Products of stacks of matrices (*batch, I, K) and (*batch, K, J), or of one of them and a vector.

    With the mode ``"flag"`` a pair of the products and a mask of those out of range.
    """


@row("arrays", footprint=Footprint(17, 10))
def convolve(a: Numbers, b: Numbers, *, mode: str, axis: int, overflow: str | None = None) -> Any:
    """Convolutions along an axis in a mode of :func:`.convolve`; with ``"flag"`` a pair, as of `matmul`."""


# ---- whole arrays: matrices, along the last two axes -------------------------------------------------------
#
# A matrix is one chunk. Over prime fields it may be in any chunks, except for `charpoly` and `permanent`, and
# if its elements are polynomials. Results over a field are elements. Over the integers they are Python ints
# or, with `moduli` (an RNS), residues. A matrix over a field in memory may be given up to the result with
# `overwrite`.


@row("arrays", footprint=OF_MATRICES)
def det(x: Numbers, *, variables: int = 0, moduli: Any = None, overwrite: bool = False) -> Results:
    """Determinants (...); with ``variables=1`` polynomials (..., degree + 1), of matrices of polynomials."""


@row("arrays", numpy={"matrix_rank": None}, footprint=OF_MATRICES)
def rank(x: Numbers, *, overwrite: bool = False) -> Array:
    """Ranks, int64: in each prime field, with the axis of the fields first, or over the rationals."""


@row("arrays", footprint=OF_MATRICES)
def permanent(x: Numbers, *, moduli: Any = None) -> Results:
    """Permanents (...)."""


@row("arrays", footprint=OF_MATRICES)
def charpoly(x: Numbers, *, moduli: Any = None) -> Results:
    """Characteristic polynomials (..., N + 1), ascending."""


@row("arrays", footprint=OF_MATRICES)
def solve(
    a: Numbers,
    b: Numbers,
    *,
    unique: bool = True,
    modulo: tuple[int, ...] | None = None,
    moduli: Any = None,
    overwrite: bool = False,
) -> Any:
    """Solutions of ``a @ x == b``: over the rationals numerators and denominators, or modulo coprime factors.

    Matrices may have any shape and rank unless solutions must be `unique`.
    """


@row("arrays")
def inv(
    x: Numbers, *, modulo: tuple[int, ...] | None = None, moduli: Any = None, overwrite: bool = False
) -> Any:
    """Inverses of matrices, in the forms of `solve`."""


@row("arrays", footprint=OF_MATRICES)
def rref(x: Numbers, *, overwrite: bool = False) -> tuple[Any, ...]:  # type: ignore[empty-body]
    """Reduced row echelon forms, over the rationals with denominators, and the pivots' columns."""


@row("arrays")
def nullspace(x: Numbers, *, moduli: Any = None) -> Results:
    """Bases of the solutions of ``x @ v == 0``. The ranks of lazy matrices are computed at once."""


@row("arrays")
def lu(x: Numbers, *, overwrite: bool = False) -> Any:
    """Factors P, L and U of matrices over fields."""


# ---- whole arrays: polynomials, coefficients along the last axis, ascending; other axes broadcast ----------


@row("arrays")
def poly_divmod(f: Numbers, g: Numbers) -> tuple[Results, Results]:  # type: ignore[empty-body]
    """Quotients (..., A) and remainders (..., max(C - 1, 1)) of polynomials."""


@row("arrays")
def poly_gcd(f: Numbers, g: Numbers) -> Results:
    """Greatest common divisors (..., max(A, C)), monic over a field."""


@row("arrays")
def evaluate(f: Numbers, points: Numbers) -> Results:
    """Values (..., P) of polynomials at points (..., P)."""


@row("arrays")
def interpolate(points: Numbers, values: Numbers) -> Any:
    """Polynomials (..., N) with given values at points; over the rationals numerators and denominators."""


@row("arrays")
def rational_interpolate(  # type: ignore[empty-body]
    points: Numbers, values: Numbers, *, degrees: tuple[int, int]
) -> tuple[Results, Results]:
    """Numerators and denominators, up to given degrees, of rational functions with given values at points."""


@row("arrays", footprint=OF_MATRICES)
def resultant(f: Numbers, g: Numbers, *, variables: int = 1) -> Results:
    """Resultants (...); in 2 variables the coefficients of resultants that eliminate the first."""


@row("arrays")
def discriminant(f: Numbers) -> Results:
    """Discriminants (...)."""


@row("arrays")
def compose(f: Numbers, g: Numbers, *, length: int) -> Results:
    """Coefficients (..., length) of compositions f(g(x))."""


@row("arrays")
def power_mod(f: Numbers, g: Numbers, *, exponent: int) -> Results:
    """Powers (..., max(C - 1, 1)) of polynomials modulo polynomials."""


@row("arrays")
def power_series(f: Numbers, *, exponent: int, length: int) -> Results:
    """Powers (..., length) of series modulo x**length."""


@row("arrays")
def inverse_series(f: Numbers, *, length: int) -> Results:
    """Inverses (..., length) of series modulo x**length."""


@row("arrays")
def log_series(f: Numbers, *, length: int) -> Any:
    """Logarithms (..., length) of series; over the rationals numerators and denominators."""


@row("arrays")
def exp_series(f: Numbers, *, length: int) -> Any:
    """Exponentials (..., length) of series; over the rationals numerators and denominators."""
