"""Calls that mean nothing: each error names the argument, the rule and the value, in one line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rnsdask as rd

MODULI = rd.ModuliSet.for_bits(64)
X = rd.from_ints([1, 2, 3, 4], MODULI)
LAZY = rd.from_ints([1, 2, 3, 4], MODULI, chunks=1)
LIMBS = rd.from_ints([1, 2, 3, 4], rd.Positional(64))
FERMAT = rd.from_ints([1, 2, 3, 4], rd.FermatField(2**28 + 2**22, 16))

# What is called, and what the line must have in it.
CALLS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: X.sum(axis="a"), TypeError, "axis must be an integer, got 'a' of type str"),
    (lambda: X.sum(axis=(0, 1.5)), TypeError, "axis must be an integer, got 1.5 of type float"),
    (lambda: X.sum(axis=3), ValueError, "axis 3 is out of bounds for array of dimension 1"),
    (lambda: X.sum(axis=(0, -1)), ValueError, "repeated axis"),
    (lambda: rd.sort(X, axis="a"), TypeError, "axis must be an integer, got 'a' of type str"),
    (lambda: rd.median(X, axis="a"), TypeError, "axis must be an integer, got 'a' of type str"),
    (lambda: rd.concatenate([X, X], axis=0.0), TypeError, "axis must be an integer, got 0.0 of type float"),
    (lambda: rd.expand_dims(X, "a"), TypeError, "axis must be an integer, got 'a' of type str"),
    (lambda: rd.expand_dims(X, LAZY), TypeError, "axis must be an integer, got a lazy RNSArray"),
    (lambda: rd.expand_dims(X[:1], LAZY[:1]), TypeError, "axis must be an integer, got a lazy RNSArray"),
    (
        lambda: X.sum(axis=LAZY[:1]),
        TypeError,
        "axis must be an integer, got a lazy RNSArray; compute it first",
    ),
    (lambda: rd.mixed_radix_digits(3, X), TypeError, "moduli must be a ModuliSet, got"),  # type: ignore[arg-type]
    (lambda: rd.mixed_radix_digits(3, MODULI), TypeError, "residues must be an array, got int"),
    (lambda: X**-1, ValueError, "inverse(x) of an RNSArray"),
    (lambda: X << LAZY, TypeError, "numbers of bits must be machine integers, got an RNSArray"),
    (
        lambda: X << np.arange(4),
        TypeError,
        "residues are shifted by one integer, got an array; x.to_positional(bits)",
    ),
    (lambda: X >> LAZY, TypeError, "numbers of bits must be machine integers, got an RNSArray"),
    (lambda: LIMBS**-1, ValueError, "mod_inverse(x, m) of a PositionalArray"),
    (lambda: X / 3, TypeError, "//"),
    (lambda: 3 / X, TypeError, "//"),
    (lambda: X & 1, TypeError, "to_positional"),
    (lambda: 1 | X, TypeError, "to_positional"),
    (lambda: ~X, TypeError, "to_positional"),
    (lambda: X.std(), TypeError, "var"),
    (lambda: np.linalg.qr(X), TypeError, "x.astype(float"),
    (lambda: X.squeeze("a"), TypeError, "axis must be an integer, got 'a' of type str"),
    (lambda: X.squeeze(0), ValueError, "size not equal to one"),
    (lambda: X.take([0], axis=1.0), TypeError, "axis must be an integer, got 1.0 of type float"),
    (lambda: X.swapaxes(0, "b"), TypeError, "axis2 must be an integer, got 'b' of type str"),
    (lambda: np.sqrt(X), TypeError, "rd.isqrt(x) gives roots rounded down, exactly"),
    *(
        (
            lambda f=f: f(X),
            TypeError,
            'x.astype(float, casting="unsafe") rounds numbers to floats, which numpy.',
        )
        for f in (np.sin, np.exp, np.cbrt, np.fft.fft, np.fft.rfft)
    ),
    (lambda: np.gradient(X), TypeError, "makes Python ints, which numpy.gradient may take"),
    (lambda: np.roll(X, 1.5), TypeError, "shift must be an integer, got 1.5 of type float"),
    (lambda: rd.tile(X, 1.5), TypeError, "reps must be an integer, got 1.5 of type float"),
    (lambda: rd.tile(X, (2, -1)), ValueError, "reps must not be negative, got (2, -1)"),
    (lambda: X.shrink(5), TypeError, "moduli must be a ModuliSet, got 5"),
    (
        lambda: rd.bitwise_count(X),
        TypeError,
        "bitwise_count takes no RNSArray: residues have no such operation; x.to_pos",
    ),
    (lambda: rd.to_decimal("a"), TypeError, "to_decimal takes an integer, got 'a' of type str"),
    (lambda: rd.to_decimal([1.5]), TypeError, "to_decimal takes an integer, got [1.5] of type list"),
    (lambda: rd.required_bits(5), TypeError, "expression must be a str, got 5"),
    (lambda: rd.required_bits("a**-1", a=5), ValueError, "must not be negative, got -1"),
    (lambda: LAZY.max(split_every="a"), TypeError, "split_every must be an integer, got 'a' of type str"),
    (lambda: LAZY.reshape(2, 2).max(0, split_every=-1), ValueError, "split_every must be at least 1, got -1"),
    (lambda: X.interval(accuracy="a"), TypeError, "accuracy must be a number, got 'a' of type str"),
    (lambda: X.to_zarr("x.zarr", overwrite="no"), TypeError, "overwrite must be a bool, got 'no'"),
    (lambda: X.to_zarr("x.zarr", compute="no"), TypeError, "compute must be a bool, got 'no'"),
    (
        lambda: rd.open_zarr("x.zarr", storage_options=5),
        TypeError,
        "storage_options must be a mapping, got int",
    ),
    (lambda: rd.read_parquet(5, "a"), TypeError, "path must be a Parquet file's path, or several, got int"),
    (lambda: rd.FieldArray.from_rns(X, 5), TypeError, "takes PrimeFields or a FermatField, got int"),
    (lambda: FERMAT.lift(None), TypeError, "signed must be a bool, got None"),  # type: ignore[arg-type]
    (
        lambda: rd.interval_arithmetic("add", X, X, MODULI),
        TypeError,
        "add takes IntervalEvaluations, got RNSArray",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), CALLS, ids=[text for _, _, text in CALLS])
def test_an_error_names_argument_rule_and_value(
    call: Callable[[], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
