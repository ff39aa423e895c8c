"""Constants that the kernels read, computed once for a moduli set and kept for the process.

Each class holds NumPy arrays in the layout its kernels expect. Instances compare by identity, and the
functions that build them are cached, so the copies on a GPU can be cached by instance too
(:mod:`rnsdask.backend.cuda`).
"""

from rnsdask.constants.arithmetic import SumCheck, WindowCheck, modulus_table, sum_check, window_check
from rnsdask.constants.byte_proof import ByteProofConstants, byte_proof_constants
from rnsdask.constants.convert import (
    ExtensionConstants,
    ForwardConstants,
    ReverseConstants,
    extension_constants,
    forward_constants,
    limbs_of,
    reverse_constants,
)
from rnsdask.constants.decimal import (
    DECIMAL_BASE,
    DECIMAL_DIGITS,
    DecimalConstants,
    decimal_constants,
    decimal_forward_constants,
)
from rnsdask.constants.digit_proof import ProofConstants, proof_constants
from rnsdask.constants.factors import last_residues
from rnsdask.constants.fermat import FermatConstants, FermatPass, fermat_root
from rnsdask.constants.fermat_limbs import radix_division
from rnsdask.constants.fixed_point import FIXED_POINT_BITS, FixedPointConstants, fixed_point_constants
from rnsdask.constants.int8_product import (
    INT8_BYTES,
    INT8_GREATEST,
    INT8_LONGEST,
    INT8_TERMS,
    INT8_WORKSPACE,
    LU_BYTES,
    LU_WORKSPACE,
    MOST_TERMS,
    Int8Constants,
    int8_constants,
    small_moduli_for,
)
from rnsdask.constants.interval import IntervalConstants, directed, interval_constants
from rnsdask.constants.interval_rns import MAX_EXPONENT, ProductBounds, product_bounds
from rnsdask.constants.keys import KEY_BITS, KeyConstants, key_constants, sufficient_prefix
from rnsdask.constants.mixed_radix import MixedRadixConstants, mixed_radix_constants
from rnsdask.constants.ntt import (
    TransformConstants,
    TwiddleFactors,
    transform_constants,
    twiddle_factors,
    twist_factors,
)
from rnsdask.constants.remainders import RemainderConstants, remainder_constants
from rnsdask.constants.three_primes import THREE_PRIMES, ThreePrimeConstants, three_prime_constants
from rnsdask.constants.wide_residues import (
    WideDigitConstants,
    WideForwardConstants,
    digits_to_residues,
    wide_digit_constants,
    wide_forward_constants,
)
from rnsdask.constants.word_proof import (
    WordProofConstants,
    short_word_proof_constants,
    word_proof_constants,
)

__all__ = [
    "DECIMAL_BASE",
    "DECIMAL_DIGITS",
    "FIXED_POINT_BITS",
    "INT8_BYTES",
    "INT8_GREATEST",
    "INT8_LONGEST",
    "INT8_TERMS",
    "INT8_WORKSPACE",
    "KEY_BITS",
    "LU_BYTES",
    "LU_WORKSPACE",
    "MAX_EXPONENT",
    "MOST_TERMS",
    "THREE_PRIMES",
    "ByteProofConstants",
    "DecimalConstants",
    "ExtensionConstants",
    "FermatConstants",
    "FermatPass",
    "FixedPointConstants",
    "ForwardConstants",
    "Int8Constants",
    "IntervalConstants",
    "KeyConstants",
    "MixedRadixConstants",
    "ProductBounds",
    "ProofConstants",
    "RemainderConstants",
    "ReverseConstants",
    "SumCheck",
    "ThreePrimeConstants",
    "TransformConstants",
    "TwiddleFactors",
    "WideDigitConstants",
    "WideForwardConstants",
    "WindowCheck",
    "WordProofConstants",
    "byte_proof_constants",
    "decimal_constants",
    "decimal_forward_constants",
    "digits_to_residues",
    "directed",
    "extension_constants",
    "fermat_root",
    "fixed_point_constants",
    "forward_constants",
    "int8_constants",
    "interval_constants",
    "key_constants",
    "last_residues",
    "limbs_of",
    "mixed_radix_constants",
    "modulus_table",
    "product_bounds",
    "proof_constants",
    "radix_division",
    "remainder_constants",
    "reverse_constants",
    "short_word_proof_constants",
    "small_moduli_for",
    "sufficient_prefix",
    "sum_check",
    "three_prime_constants",
    "transform_constants",
    "twiddle_factors",
    "twist_factors",
    "wide_digit_constants",
    "wide_forward_constants",
    "window_check",
    "word_proof_constants",
]
