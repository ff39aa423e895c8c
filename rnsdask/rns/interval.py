"""Floating-point interval evaluation of X/M: bounds of a chosen relative width, for numbers of any size.

It is Algorithm 1 of K. Isupov, "High-Performance Computation in Residue Number System Using Floating-Point
Arithmetic", Computation 9(2):9, 2021, with its improved refinement, for signed numbers too. The bounds have
an exponent of their own, since X/M of a small number is far below the range of doubles. Unlike in the
paper, no number needs mixed-radix conversion: refining tells also those near M from those near 0, and
in signed arrays those near M/2 from those near -M/2 (docs/mathematics.md).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from rnsdask.backend import Array, IntervalGoal, kernels_of
from rnsdask.constants import directed, interval_constants, sufficient_prefix
from rnsdask.core.errors import brief
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.system import RNS

# For each modulus each of the two bounds loses up to one unit by the reciprocal and two by the fused
# multiply-add. One more in all covers the rounding of the test whether an interval is accurate.
_UNIT = Fraction(1, 2**52)
_UNITS_PER_MODULUS = 6

# A refinement makes |X/M| at most 1/4, and must be able to double whatever is not accurate yet.
_ACCURATE_FROM = Fraction(1, 8)


@dataclass(frozen=True)
class IntervalEvaluation:
    """Bounds of X/M for each number X: ``low * 2**exponent <= X/M <= upp * 2**exponent``, exactly.

    Parameters
    ----------
    low, upp : array of float64
        Lower and upper bound; negative for negative numbers, both 0 for 0 and only then.
    exponent : array of int32
        Exponent of both bounds; 0 for 0.
    """

    low: Array
    upp: Array
    exponent: Array


def interval_evaluation(residues: Array, system: RNS, accuracy: float = 1e-7) -> IntervalEvaluation:
    """Evaluate bounds of X/M for each number X.

    Parameters
    ----------
    residues : array of uint32, shape (n, *shape)
        NumPy or CuPy.
    system : RNS
        Their number system. Only as many of the first moduli are looked at as its bound needs.
    accuracy : float
        Greatest relative width of an interval: ``upp - low <= accuracy * min(|low|, |upp|)``.

    Returns
    -------
    IntervalEvaluation
        Of arrays of shape ``shape``, on the processor of `residues`.

    Raises
    ------
    TypeError
        If residues are not a NumPy or CuPy array of uint32.
    ValueError
        If residues do not fit the set, or `accuracy` is not positive and finite or smaller than double
        precision allows for this moduli set.
    """
    low, upp, exponent, _ = _evaluate(residues, system, accuracy)
    shape = residues.shape[1:]
    return IntervalEvaluation(low.reshape(shape), upp.reshape(shape), exponent.reshape(shape))


def refinement_steps(residues: Array, system: RNS, accuracy: float = 1e-7) -> Array:
    """Count the refinement steps that :func:`interval_evaluation` takes for each number.

    Arguments and errors are the same; the result is an array of uint32 of shape ``shape``. Each step reads
    the number's residues once more.
    """
    *_, steps = _evaluate(residues, system, accuracy)
    return steps.reshape(residues.shape[1:])


def _evaluate(residues: Array, system: RNS, accuracy: float) -> tuple[Array, Array, Array, Array]:
    system.check_words(residues)
    prefix = sufficient_prefix(system.moduli, system.signed, system.bound)
    goal = _goal(prefix, system, accuracy)
    matrix = as_matrix(residues[: len(prefix)])
    return kernels_of(matrix).interval(matrix, interval_constants(prefix), goal)


def _goal(prefix: ModuliSet, system: RNS, accuracy: Any) -> IntervalGoal:
    """Task of the kernel, with P the product of `prefix`: evaluate X/P and multiply by P/M."""
    if not isinstance(accuracy, Real):
        raise TypeError(f"accuracy must be a number, got {brief(accuracy)} of type {type(accuracy).__name__}")
    accuracy, moduli = float(accuracy), system.moduli
    if not (accuracy > 0 and math.isfinite(accuracy)):
        raise ValueError(f"accuracy must be a positive finite number, got {accuracy}")
    least = least_accuracy(len(prefix))
    scale_low, scale_upp, exponent, wanted = 1.0, 1.0, 0, Fraction(accuracy)
    if len(prefix) < len(moduli):
        exponent = prefix.bits - moduli.bits
        scale_low, scale_upp = directed(Fraction(prefix.product, moduli.product) / Fraction(2) ** exponent)
        # The factor and the multiplication, each rounded either way, widen the interval by 4 units.
        wanted, least = wanted - (1 + wanted) * 4 * _UNIT, (least + 4 * _UNIT) / (1 - 4 * _UNIT)
    if accuracy < least:
        raise ValueError(
            f"accuracy {accuracy} is out of reach of double precision for {len(prefix)} moduli: "
            f"it must be at least {1.01 * float(least):.3g}"
        )
    return IntervalGoal(directed(wanted)[0], system.signed, scale_low, scale_upp, exponent)


def least_accuracy(count: int) -> Fraction:
    """Relative width that an evaluation with all of `count` moduli can always reach; a greater one, too."""
    width = (_UNITS_PER_MODULUS * count + 1) * _UNIT
    return width / (_ACCURATE_FROM - width)
