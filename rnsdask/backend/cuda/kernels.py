"""The kernels for CuPy arrays, compiled at first use and cached on disk (see :class:`.protocol.Kernels`).

All work goes to the current device and stream, which must be the ones of the arrays.
"""

from rnsdask.backend.cuda.arithmetic import apply, apply_checked, apply_windowed, inverse, power, running_sums
from rnsdask.backend.cuda.bound_proof import bound_proof, prove_bound
from rnsdask.backend.cuda.check import crc32c, crc32c_and_validity, first_invalid, read_all
from rnsdask.backend.cuda.convert import (
    base_extend,
    divide_residues,
    first_outside,
    fixed_point,
    floor_divide_limbs,
    limbs_to_residues,
    limbs_to_wide_residues,
    mixed_radix_digits,
    remainder_limbs,
    remainders,
    residues_to_limbs,
    wide_digits,
)
from rnsdask.backend.cuda.copies import transpose
from rnsdask.backend.cuda.elimination import (
    characteristic_polynomials,
    eliminate,
    lu,
    lu_factor,
    small_cramer,
)
from rnsdask.backend.cuda.fermat import (
    fermat_apply,
    fermat_first_invalid,
    fermat_multiply_by_root,
    fermat_pass,
    fermat_to_limbs,
    limbs_to_fermat,
)
from rnsdask.backend.cuda.int8_product import int8_join, int8_split
from rnsdask.backend.cuda.interval import (
    interval,
    interval_arithmetic,
    interval_rns_add,
    interval_rns_compare,
    interval_rns_multiply,
)
from rnsdask.backend.cuda.keyed import candidates, compare, extremum, find_unset, gather, row_sums
from rnsdask.backend.cuda.matmul import matmul
from rnsdask.backend.cuda.ntt import cyclic_products, ntt
from rnsdask.backend.cuda.polynomials import (
    convolve,
    divide_polynomials,
    padded_residues,
    remainder_sequences,
    three_prime_remainders,
)
from rnsdask.backend.cuda.positional import (
    positional_add,
    positional_compare,
    positional_count,
    positional_divmod,
    positional_gcd,
    positional_inverse,
    positional_isqrt,
    positional_shift,
)
from rnsdask.backend.cuda.positional_products import (
    by_integers,
    montgomery_bits,
    montgomery_multiply,
    montgomery_power,
    most_montgomery_limbs,
    most_product_limbs,
    overlap_add,
    positional_mod_add,
    positional_mod_multiply,
    positional_multiply,
)
from rnsdask.backend.cuda.triangles import solve_upper

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
