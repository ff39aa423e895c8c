"""Powers and inverses of a chunk of signed integers with intervals, by their magnitudes. No Dask in here."""

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.errors import IntervalOverflowError
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.arithmetic import absolute, to_ints
from rnsdask.interval_rns.compare import compare
from rnsdask.interval_rns.convert import columns_of_ints
from rnsdask.rns import powers
from rnsdask.rns.system import RNS


def power(columns: Array, exponent: int, moduli: ModuliSet, mode: str, locate: Locate = int) -> Array:
    """Powers of a chunk (n + 6, *shape); with ``"flag"`` one row more, 1 where the exact one is out of range.

    Where it is, the result is the sign of the exact power with its magnitude modulo M. With ``"raise"``, an
    error names the index that `locate` makes of that in the chunk.
    """
    powers.check_exponent(exponent)
    system = RNS(moduli)
    outside = np.zeros_like(columns[0], dtype=np.bool_)
    if mode != "wrap":
        greatest = columns_of_ints([powers.bases_that_fit(exponent, system)[1]], moduli)
        ends = greatest.reshape(-1, *(1,) * (columns.ndim - 1))
        outside = compare(absolute(columns, moduli), ends, moduli) > 0
    if mode == "raise" and bool(outside.any()):
        index = int(outside.reshape(-1).argmax())
        base = to_ints(columns.reshape(len(columns), -1)[:, [index]], moduli)[0]
        raise powers.overflow_error(
            base, exponent, locate(index), moduli.bits + 1, signed=True, kind=IntervalOverflowError
        )
    # With "raise" the bases of long exponents are 0, 1 and -1, for which only the parity counts.
    is_long = mode == "raise" and exponent >= moduli.bits
    sizes = powers.power(
        layout.residues_of(columns, moduli), 2 - exponent % 2 if is_long else exponent, system, "wrap"
    )
    negative = layout.is_negative(columns, moduli) & bool(exponent % 2)
    result = layout.evaluated(sizes, moduli, negative)
    return np.concatenate([result, outside[None].astype(np.uint32)]) if mode == "flag" else result


def power_by_array(
    columns: Array, exponents: Array, moduli: ModuliSet, mode: str, locate: Locate = int
) -> Array:
    """Powers of a chunk by an exponent for each number, integers (1, *shape), as :func:`power`."""
    shape = np.broadcast_shapes(columns.shape[1:], exponents.shape[1:])
    columns = np.broadcast_to(columns, (len(columns), *shape))
    exponents = np.broadcast_to(exponents[0], shape)
    sizes = layout.residues_of(columns, moduli)
    powered = powers.power_by_array(sizes, exponents[None], RNS(moduli), "flag", locate)
    outside = powered[-1] != 0
    if mode == "raise" and bool(outside.any()):
        index = int(outside.argmax())
        base = to_ints(columns.reshape(len(columns), -1)[:, [index]], moduli)[0]
        exponent = int(exponents.reshape(-1)[index])
        raise powers.overflow_error(
            base, exponent, locate(index), moduli.bits + 1, signed=True, kind=IntervalOverflowError
        )
    negative = layout.is_negative(columns, moduli) & (exponents % 2 == 1)
    result = layout.evaluated(powered[:-1], moduli, negative)
    return np.concatenate([result, outside[None].astype(np.uint32)]) if mode == "flag" else result


def inverse(columns: Array, moduli: ModuliSet, locate: Locate = int) -> Array:
    """Inverse modulo M of each number of a chunk, with the number's sign."""
    inverses = powers.inverse(layout.residues_of(columns, moduli), moduli, locate)
    return layout.evaluated(inverses, moduli, layout.is_negative(columns, moduli))
