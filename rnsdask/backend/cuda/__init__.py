"""The kernels for CuPy arrays, compiled at first use and cached on disk (see :class:`.protocol.Kernels`).

All work goes to the current device and stream, which must be the ones of the arrays.
"""

from rnsdask.backend.cuda.arithmetic import apply, apply_checked, apply_windowed, inverse, power
from rnsdask.backend.cuda.bound_proof import bound_proof, prove_bound
from rnsdask.backend.cuda.charpoly import characteristic_polynomials
from rnsdask.backend.cuda.check import first_invalid, read_all
from rnsdask.backend.cuda.convert import (
    base_extend,
    first_outside,
    limbs_to_residues,
    residues_to_limbs,
)
from rnsdask.backend.cuda.convolution import convolve, padded_residues, three_prime_remainders
from rnsdask.backend.cuda.crc32c import crc32c, crc32c_and_validity
from rnsdask.backend.cuda.divide import divide_residues, floor_divide_limbs, remainder_limbs, remainders
from rnsdask.backend.cuda.elimination import eliminate, lu, lu_factor, small_cramer
from rnsdask.backend.cuda.fermat import (
    fermat_apply,
    fermat_first_invalid,
    fermat_multiply_by_root,
    fermat_pass,
)
from rnsdask.backend.cuda.fermat_limbs import fermat_to_limbs, limbs_to_fermat
from rnsdask.backend.cuda.fixed_point import fixed_point
from rnsdask.backend.cuda.int8_product import int8_join, int8_split
from rnsdask.backend.cuda.interval import interval
from rnsdask.backend.cuda.interval_rns import (
    interval_arithmetic,
    interval_rns_add,
    interval_rns_compare,
    interval_rns_multiply,
)
from rnsdask.backend.cuda.keyed import candidates, compare, extremum, find_unset, gather, row_sums
from rnsdask.backend.cuda.limbs import (
    positional_add,
    positional_compare,
    positional_count,
    positional_shift,
)
from rnsdask.backend.cuda.matmul import matmul
from rnsdask.backend.cuda.mixed_radix import mixed_radix_digits
from rnsdask.backend.cuda.ntt import cyclic_products, ntt
from rnsdask.backend.cuda.polynomials import divide_polynomials, remainder_sequences
from rnsdask.backend.cuda.positional_division import (
    positional_divmod,
    positional_gcd,
    positional_inverse,
    positional_isqrt,
)
from rnsdask.backend.cuda.positional_modular import (
    by_integers,
    montgomery_bits,
    montgomery_multiply,
    montgomery_power,
    most_montgomery_limbs,
    positional_mod_add,
    positional_mod_multiply,
)
from rnsdask.backend.cuda.positional_products import most_product_limbs, overlap_add, positional_multiply
from rnsdask.backend.cuda.scan import running_sums
from rnsdask.backend.cuda.transpose import transpose
from rnsdask.backend.cuda.triangles import solve_upper
from rnsdask.backend.cuda.wide_residues import limbs_to_wide_residues, wide_digits

__all__ = [
    "apply",
    "apply_checked",
    "apply_windowed",
    "base_extend",
    "bound_proof",
    "by_integers",
    "candidates",
    "characteristic_polynomials",
    "compare",
    "convolve",
    "crc32c",
    "crc32c_and_validity",
    "cyclic_products",
    "divide_polynomials",
    "divide_residues",
    "eliminate",
    "extremum",
    "fermat_apply",
    "fermat_first_invalid",
    "fermat_multiply_by_root",
    "fermat_pass",
    "fermat_to_limbs",
    "find_unset",
    "first_invalid",
    "first_outside",
    "fixed_point",
    "floor_divide_limbs",
    "gather",
    "int8_join",
    "int8_split",
    "interval",
    "interval_arithmetic",
    "interval_rns_add",
    "interval_rns_compare",
    "interval_rns_multiply",
    "inverse",
    "limbs_to_fermat",
    "limbs_to_residues",
    "limbs_to_wide_residues",
    "lu",
    "lu_factor",
    "matmul",
    "mixed_radix_digits",
    "montgomery_bits",
    "montgomery_multiply",
    "montgomery_power",
    "most_montgomery_limbs",
    "most_product_limbs",
    "ntt",
    "overlap_add",
    "padded_residues",
    "positional_add",
    "positional_compare",
    "positional_count",
    "positional_divmod",
    "positional_gcd",
    "positional_inverse",
    "positional_isqrt",
    "positional_mod_add",
    "positional_mod_multiply",
    "positional_multiply",
    "positional_shift",
    "power",
    "prove_bound",
    "read_all",
    "remainder_limbs",
    "remainder_sequences",
    "remainders",
    "residues_to_limbs",
    "row_sums",
    "running_sums",
    "small_cramer",
    "solve_upper",
    "three_prime_remainders",
    "transpose",
    "wide_digits",
]
