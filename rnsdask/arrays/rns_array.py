"""RNSArray: an array of integers held as residues, on NumPy, CuPy or Dask."""

from __future__ import annotations

from typing import Any, Self, SupportsIndex

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.extending import Extending
from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.constants import key_constants
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet, as_integer, check_moduli_set
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.lazy import convert, foreign
from rnsdask.lazy.check import check_numbers, check_within_bound
from rnsdask.lazy.inputs import make_readable
from rnsdask.lazy.promotion import fit
from rnsdask.rns.bounds import narrowed
from rnsdask.rns.evaluation import IntervalEvaluation
from rnsdask.rns.foreign import system_of
from rnsdask.rns.reduce import WORTH_A_GLANCE, looks_small
from rnsdask.rns.system import RNS
from rnsdask.typing import PlainArray


class RNSArray(Extending, IntegerArray):
    """An array of exact integers in a residue number system.

    It joins an array of residues with their moduli set. If the residues are a Dask array, it is a Dask
    collection and everything is lazy; if they are a NumPy or CuPy array, results come at once, computed on
    that array's processor.

    Make one with :func:`.from_ints`, :func:`.from_residues`, :func:`.random` or :func:`.open_zarr`.

    Parameters
    ----------
    words : array of uint32, shape (n, *shape)
        Residues: row i of every number is below ``moduli[i]``. This class does not check it
        (:func:`.from_residues` does). A Dask array is rechunked so that the residue axis has one chunk. A
        NumPy or CuPy array is not copied: do not write to it afterwards.
    system : RNS
        The moduli set, the range, and a bound of the numbers, which is not checked.

    Raises
    ------
    TypeError, ValueError
        If residues and system do not fit.
    """

    __slots__ = ("_measured",)

    _measured: RNS

    system_type = RNS

    @property
    def system(self) -> RNS:
        """Number system of the words."""
        system: RNS = self._system
        return system

    # ---- residues and bound --------------------------------------------------------------------------------

    @property
    def residues(self) -> PlainArray[np.uint32]:
        """Residues of the numbers: NumPy, CuPy or Dask array of uint32, shape (n, *shape).

        A NumPy array is read-only. CuPy has no read-only arrays: do not write to one. :meth:`with_residues`
        makes an array of other residues.
        """
        return self.words

    @property
    def signed(self) -> bool:
        """Whether the range is symmetric around 0."""
        return self.system.signed

    @property
    def bound(self) -> int | None:
        """Upper bound of every magnitude, or None if unknown."""
        return self.system.bound

    def _measured_system(self) -> RNS:
        """System with a bound, measured once, if many numbers in host memory are small in its range."""
        words = self._words
        system = self.system
        if system.bound is not None or not isinstance(words, np.ndarray) or words.size < WORTH_A_GLANCE:
            return system
        found: RNS | None = getattr(self, "_measured", None)
        if found is None:
            matrix = as_matrix(words)
            small = looks_small(matrix, key_constants(system.moduli, system.signed))
            self._measured = found = (narrowed(system, matrix) if small else None) or system
        return found

    def with_residues(
        self,
        residues: NDArray[Any] | da.Array | PlainArray[Any],
        bound: int | None = None,
        *,
        trusted: bool = False,
    ) -> RNSArray:
        """Make an array of other residues with this moduli set and range, checked as in `from_residues`.

        Parameters
        ----------
        residues : NumPy, CuPy or Dask array of uint32, shape (n, *shape)
            Of any shape and kind, such as a changed copy of :attr:`residues`.
        bound : int, optional
            Every number must be at most this in magnitude. This array's bound is not passed on.
        trusted : bool
            Use the array as it is, neither checked nor copied.
        """
        return array_of_residues(residues, self.system.with_bound(bound), trusted=trusted)

    def with_bound(self, bound: SupportsIndex | None, *, trusted: bool = False) -> RNSArray:
        """Set another bound for the numbers, which are checked.

        Parameters
        ----------
        bound : int or None
            Every number must be at most this in magnitude; None forgets the bound. A bound beyond the range
            is reduced to the range's end.
        trusted : bool
            Do not check the numbers. A wrong bound makes wrong results.

        Raises
        ------
        TypeError, ValueError
            If it is not an integer, or negative.
        ValueError
            If a number is beyond it; it names the first one. For a Dask array when a chunk is computed.
            Numbers are not read if the present bound is not greater.
        """
        system = self.system.with_bound(None if bound is None else as_integer(bound, "bound"))
        is_proved = trusted or self.system.known_magnitude <= system.known_magnitude
        made: RNSArray = fit(
            RNSArray(self._words if is_proved else check_within_bound(self._words, system), system)
        )
        return made

    # ---- division and size --------------------------------------------------------------------------------

    def interval(self, accuracy: float = 1e-7) -> IntervalEvaluation:
        """Evaluate an interval of X/M for each number: ``low <= X/M / 2**exponent <= upp``.

        Parameters
        ----------
        accuracy : float
            Upper bound of the relative width of an interval.

        Returns
        -------
        IntervalEvaluation
            Its arrays have this array's shape; lazy on Dask.

        Raises
        ------
        ValueError
            If double precision does not reach this accuracy for the moduli set.
        """
        return convert.interval_evaluation(self, accuracy)

    # ---- other moduli sets --------------------------------------------------------------------------------

    def extend(self, moduli: ModuliSet) -> Self:
        """Extend the numbers to another moduli set (base extension), exactly.

        Parameters
        ----------
        moduli : ModuliSet
            Usually a larger set. Its range must hold every number. If neither the ranges nor the array's
            bound prove that, each number is checked, at twice the cost.

        Returns
        -------
        RNSArray
            Signed if this array is, with the same chunks.

        Raises
        ------
        ValueError
            If a number does not fit. It names the number's flat index, the first in its chunk; for a Dask
            array when it is computed.
        """
        check_moduli_set(moduli)
        bound, words = self.bound, convert.change_moduli(self, moduli)
        if bound is None and moduli.product > self.moduli.product:
            bound = self.system.greatest_magnitude
        return type(self)(words, RNS(moduli, self.signed, bound))


def array_of_residues(residues: Any, system: RNS, *, trusted: bool) -> RNSArray:
    """Make an array of residues of uint32 as :func:`.from_residues` says."""
    system.check_words(residues)
    residues = make_readable(residues, 0)
    return RNSArray(residues if trusted else check_numbers(residues, system), system)


def array_of_foreign_residues(
    residues: Any, moduli: ModuliSet | WideModuli, system: RNS, *, trusted: bool
) -> RNSArray:
    """Make an array of residues (n, *shape) of another integer type, or under wide moduli."""
    # Numbers need not be read for a bound that the moduli prove.
    stated = system_of(moduli, system.signed, None).known_magnitude
    array = RNSArray(foreign.words_of_residues(residues, moduli, system, trusted), system)
    if trusted or system.known_magnitude >= stated:
        return array
    return RNSArray(check_within_bound(array.words, system), system)
