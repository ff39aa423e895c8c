"""Structures, as dtypes, and sizes that Python and the CUDA sources share; needs no CuPy.

``scripts/check_kernels.py`` compiles each source together with its :func:`assertions`.
"""

import numpy as np

from rnsdask.backend.cuda.variants import WARP as WARP
from rnsdask.backend.cuda.variants import Defines, fermat_options
from rnsdask.constants import FermatConstants
from rnsdask.constants.convert import TABLE_MULTIPLE
from rnsdask.constants.keys import INTERVAL_POWERS
from rnsdask.constants.proofs import MOST_WORDS

BLOCK = 256

SCAN_TILE = 2048
"""Items whose running maxima one block finds."""


def fermat_side(field: FermatConstants) -> int:
    """How many numbers a thread of element-wise kernels takes: 16 bytes of a digit, or 256 of all digits."""
    size = field.dtype.itemsize
    return max(1, min(16 // size, 256 // (size * field.digits)))


def field_options(field: FermatConstants) -> Defines:
    """Compiler options for a Fermat field."""
    *radix, digits = field.parameters
    return fermat_options(8 * field.dtype.itemsize, fermat_side(field), radix, digits)


# Operands and results of element-wise kernels.
MAX_OPERANDS = 4
OPERAND = np.dtype([("data", np.uint64), ("stride", np.int64), ("step", np.int64)])
TASK = np.dtype(
    [
        ("x", OPERAND, (MAX_OPERANDS,)),
        ("out", np.uint64),
        ("out_stride", np.int64),
        ("count", np.int64),
        ("vectors", np.int64),
        ("moduli", np.uint64),
        ("rows", np.int64),
    ]
)
WIDE_TASK = np.dtype(
    [
        ("x", OPERAND, (MAX_OPERANDS,)),
        ("out", np.uint64),
        ("out_stride", np.int64),
        ("count", np.int64),
        ("moduli", np.uint64),
        ("rows", np.int64),
    ]
)
WIDE_MATRICES = np.dtype(
    [
        ("words", np.uint64),
        *((name, np.int64) for name in ("total", "count", "rows", "columns")),
        ("moduli", np.uint64),
    ]
)
WIDE_PANEL = np.dtype(
    [
        ("words", np.uint64),
        *((name, np.int64) for name in ("stride", "rows", "width")),
        *(
            (name, np.uint64)
            for name in ("pivot_rows", "found", "state", "order", "pivots", "product", "modulus")
        ),
    ]
)
WIDE_PRODUCT = np.dtype(
    [
        *((name, np.uint64) for name in ("a", "b", "out")),
        *((name, np.int64) for name in ("total", "count", "rows", "terms", "columns")),
        ("moduli", np.uint64),
    ]
)
SUM_TEST = np.dtype(
    [
        (limit, np.uint64)
        for limit in ("ambiguous_below", "fits_lowest", "fits_width", "open_lowest", "open_width")
    ]
)
WINDOW_TEST = np.dtype(
    [
        (limit, np.uint64)
        for limit in ("ambiguous_below", "fits_first", "fits_last", "open_first", "open_last")
    ]
)

# The tables of coefficients and of one number's residues as kernel parameters, the description of an array of
# numbers, a block's result; vectors of numbers that a thread takes at once.
PARAMETER_TABLE_SIZE = 256
KEY_TABLE = np.dtype([("c", np.uint64, (PARAMETER_TABLE_SIZE,))])
SCALAR_TABLE = np.dtype([("x", np.uint32, (PARAMETER_TABLE_SIZE,))])
NUMBERS = np.dtype(
    [
        ("residues", np.uint64),
        ("stride", np.int64),
        ("count", np.int64),
        ("vectors", np.int64),
        ("start", np.uint64),
        ("ambiguous_below", np.uint64),
        ("moduli", np.int32),
    ],
    align=True,
)
EXTREMUM = np.dtype(
    [("best", np.uint64), ("runner_up", np.uint64), ("index", np.int64), ("ambiguous", np.uint64)]
)
KEY_VECTORS = 2
SUM_VECTORS = 4
PAIR_VECTORS = 1

LENGTH_TABLE = np.dtype(
    [
        *((name, np.uint64) for name in ("width_high", "width_low", "size")),
        ("bits", np.int32),
        ("is_signed", np.uint32),
    ]
)
INTERVAL_GOAL = np.dtype(
    [
        ("accuracy", np.float64),
        ("scale_low", np.float64),
        ("scale_upp", np.float64),
        ("scale_exponent", np.int32),
        ("is_signed", np.int32),
    ]
)
EXTENDED_INTERVAL = np.dtype([("low", np.float64), ("upp", np.float64), ("exponent", np.int32)], align=True)
DIGIT_VECTORS = 4

TILE_LIMBS = 32

TRANSPOSED_WORDS = 1024

REVERSED_BITS = 5  # at each end of the numbers of words that a tile of bit_reversal.cu has

LIMB_OPERAND = np.dtype([("data", np.uint64), *((name, np.int64) for name in ("stride", "step", "limbs"))])
LIMB_TASK = np.dtype(
    [
        ("x", LIMB_OPERAND, (2,)),
        ("are_signed", np.int32, (2,)),
        ("out", np.uint64),
        ("rows", np.int64),
        ("count", np.int64),
        ("top_bits", np.int32),
        ("is_signed", np.int32),
    ]
)

FERMAT_TASK = np.dtype(
    [
        ("x", OPERAND, (2,)),
        ("out", np.uint64),
        ("out_stride", np.int64),
        ("count", np.int64),
        ("vectors", np.int64),
    ]
)
FERMAT_PASS = np.dtype([(name, np.int32) for name in ("log_radix", "log_columns", "log_done", "is_inverse")])
FERMAT_TRANSFORM = np.dtype(
    [
        ("x", np.uint64),
        ("stride", np.int64),
        ("factors", np.uint64),
        ("factor_count", np.int64),
        ("out", np.uint64),
        ("out_stride", np.int64),
        ("columns", np.int64),
        ("shape", FERMAT_PASS),
    ]
)
WIDE_RADIX = np.dtype(
    [
        *((name, np.uint64) for name in ("radix", "normalized", "reciprocal")),
        ("shift", np.int32),
        ("digits", np.int32),
    ]
)

STACK = np.dtype([("data", np.uint64), *((name, np.int64) for name in ("plane", "matrix", "stride", "step"))])
PRODUCT = np.dtype(
    [
        ("a", STACK),
        ("b", STACK),
        ("out", np.uint64),
        ("moduli", np.uint64),
        *((name, np.int64) for name in ("moduli_count", "count", "rows", "terms", "columns")),
        ("segments", np.int64),
        ("length", np.int64),
    ]
)
MATMUL_TILE = 64
WIDE_TILE, WIDE_ACROSS = 64, 16
"""Rows and columns of a tile of a product modulo long primes, and threads that share a row of it."""
BOUND = np.dtype([("each", np.uint64), ("all", np.int64)])
SMALL_MODULUS = np.dtype(
    [
        *((name, np.int32) for name in ("modulus", "reciprocal", "upper", "middle", "factor", "start")),
        ("inverse", np.float32),
        ("parts", np.float32, (3,)),
    ]
)
MOST_SMALL_MODULI = 10
INT8_TASK = np.dtype(
    [
        ("x", STACK),
        *((name, BOUND) for name in ("row_start", "row_end", "column_start", "column_end")),
        *((name, np.int64) for name in ("first", "count", "batch")),
        *((name, np.int64) for name in ("row", "column", "rows", "columns")),
        *((name, np.int64) for name in ("padded_rows", "padded_columns")),
        ("small", SMALL_MODULUS, (MOST_SMALL_MODULI,)),
        ("small_count", np.int32),
    ],
    align=True,
)
IMAGE = np.dtype([("data", np.uint64), *((name, np.int64) for name in ("plane", "step", "row"))])
INT8_FACTORS = np.dtype([("left", IMAGE), ("right", IMAGE), ("terms", np.int64), ("added", STACK)])
INT8_RESULTS = np.dtype(
    [
        ("image", IMAGE),
        ("small", SMALL_MODULUS, (MOST_SMALL_MODULI,)),
        ("small_count", np.int32),
        ("has_words", np.int32),
    ],
    align=True,
)
INT8_TILE = (64, 32)
"""Rows and columns of a warp."""
INT8_WARPS = 4
INT8_BLOCKS = 2
INT8_STEP = 64
INT8_STAGES = 4

ELIMINATION = np.dtype(
    [
        ("x", STACK),
        *((name, np.uint64) for name in ("out", "permutation", "lower", "upper")),
        *((name, np.uint64) for name in ("order", "pivots", "products")),
        *((name, np.uint64) for name in ("ranks", "new_ranks", "moduli")),
        *((name, np.int64) for name in ("moduli_count", "count", "rows", "columns")),
        *((name, np.int64) for name in ("most", "start", "stop", "reach", "has_panels")),
    ]
)
TRIANGLES = np.dtype(
    [
        ("x", STACK),
        *((name, np.uint64) for name in ("first", "last", "lower", "upper", "moduli")),
        *((name, np.int64) for name in ("moduli_count", "count", "size")),
    ]
)
MOST_INVERTED = 128
INVERSE_ROWS = 8
PANEL_WIDTH = 17
ROW = 32
ROW_WIDTH = 33
ROW_TILE = 32
WHOLE_ROWS = 256
LU_STRIP = 32
TALL_SEGMENT = 1024
GREAT_TILE = 128
BOARD_BYTES = 1392
TRIANGULAR = np.dtype(
    [
        ("upper", STACK),
        ("right", STACK),
        ("out", STACK),
        *((name, np.uint64) for name in ("inverses", "moduli")),
        *((name, np.int64) for name in ("moduli_count", "count", "rows", "columns", "lanes")),
    ]
)
PROOF_WINDOW = np.dtype([("start", np.uint32, (MOST_WORDS,)), ("room", np.uint32, (MOST_WORDS,))])
RESIDUE_TEST = np.dtype([(name, np.uint32) for name in ("modulus", "inverse", "most", "unused")])
BYTE_PROOF = np.dtype(
    [
        ("residues", np.uint64),
        *((name, np.int64) for name in ("stride", "count", "is_aligned", "moduli", "steps", "passes")),
        *((name, np.uint64) for name in ("table", "rows", "compared", "tests")),
        ("window", PROOF_WINDOW),
        ("proved", np.uint64),
    ]
)

SPARSE = np.dtype(
    [
        *((name, np.uint64) for name in ("starts", "columns", "values", "x", "out", "moduli")),
        *((name, np.int64) for name in ("moduli_count", "planes", "rows", "terms", "width", "entries")),
        *((name, np.int64) for name in ("lanes", "parts")),
    ]
)

POLYNOMIALS = np.dtype(
    [
        ("x", STACK),
        *((name, np.uint64) for name in ("out", "space", "work", "moduli")),
        *((name, np.int64) for name in ("moduli_count", "count", "length", "is_shared")),
    ]
)

COEFFICIENTS = np.dtype(
    [("data", np.uint64), *((name, np.int64) for name in ("plane", "run", "step", "length"))]
)
SEQUENCES = np.dtype(
    [
        ("x", COEFFICIENTS),
        ("y", COEFFICIENTS),
        *((name, np.uint64) for name in ("x_degrees", "y_degrees", "moduli")),
        *((name, np.uint64) for name in ("numerators", "denominators", "divisors", "space")),
        *((name, np.int64) for name in ("moduli_count", "count", "divisor_length", "is_shared")),
    ]
)
DIVISIONS = np.dtype(
    [
        ("x", COEFFICIENTS),
        ("y", COEFFICIENTS),
        *((name, np.uint64) for name in ("y_degrees", "moduli", "quotients", "remainders")),
        *((name, np.int64) for name in ("moduli_count", "count")),
    ]
)

PASS = np.dtype(
    [
        ("x", np.uint64),
        ("out", np.uint64),
        ("x_stride", np.int64),
        ("out_stride", np.int64),
        ("moduli", np.uint64),
        ("roots", np.uint64),
        ("low", np.uint64),
        ("high", np.uint64),
        ("within", np.uint64),
        ("scales", np.uint64),
        ("rows", np.int32),
        ("tiles", np.uint32),
        ("log_length", np.int32),
        ("log_rest", np.int32),
        ("log_split", np.int32),
        ("log_high", np.int32),
    ]
)
FLOW = np.dtype(
    [
        *((name, np.uint64) for name in ("between", "last_roots", "counters")),
        *((name, np.uint32) for name in ("lag", "ring")),
        *((name, np.int32) for name in ("log_group", "log_outer")),
    ]
)
RUNS = np.dtype([("data", np.uint64), ("plane", np.int64), ("step", np.int64), ("length", np.int64)])
CONVOLUTION = np.dtype(
    [
        ("x", RUNS),
        ("y", RUNS),
        ("out", np.uint64),
        ("moduli", np.uint64),
        ("rows", np.int64),
        ("runs", np.int64),
        ("first", np.int64),
        ("count", np.int64),
    ]
)
THREE_PRIMES = np.dtype(
    [
        ("last", np.uint32, (3,)),
        *((name, np.uint32, (2,)) for name in ("inverse01", "inverse02", "inverse12")),
    ]
)

PRODUCT_TASK = np.dtype(
    [
        *((name, LIMB_OPERAND) for name in ("x", "y", "addend")),
        ("out", np.uint64),
        ("overflowed", np.uint64),
        *((name, np.int64) for name in ("out_limbs", "count", "columns")),
        ("unused_bits", np.int32),
        ("is_signed", np.int32),
    ]
)
MODULAR_TASK = np.dtype(
    [
        *((name, LIMB_OPERAND) for name in ("x", "y", "modulus", "square")),
        ("out", np.uint64),
        ("workspace", np.uint64),
        ("count", np.int64),
        ("exponent_bits", np.int32),
        ("window", np.int32),
    ]
)
LIMB_BLOCK = 64
"""Threads of a block of kernels of positional numbers."""

MOST_POWER_TABLES = 3 * 2**26
"""Bytes of the tables of powers of one call, on GPUs."""

MOST_POWER_WINDOW = 5
"""Bits of an exponent that one entry of a power's table is for, on GPUs: more does not pay there."""


STRUCTURES = {
    "arithmetic": {"Operand": OPERAND, "Task": TASK},
    "arithmetic_checked": {"Task": TASK, "SumTest": SUM_TEST},
    "arithmetic_windowed": {"Task": TASK, "WindowTest": WINDOW_TEST},
    "candidates": {"Numbers": NUMBERS},
    "compare": {"ScalarTable": SCALAR_TABLE},
    "convolution": {"Runs": RUNS, "Convolution": CONVOLUTION, "ThreePrimes": THREE_PRIMES},
    "cyclic_products": {"Pass": PASS},
    "byte_proof": {"ProofWindow": PROOF_WINDOW, "ResidueTest": RESIDUE_TEST, "ByteProof": BYTE_PROOF},
    "charpoly": {"Stack": STACK, "Polynomials": POLYNOMIALS},
    "elimination": {"Stack": STACK, "Elimination": ELIMINATION},
    "eliminate_panel": {"Stack": STACK, "Elimination": ELIMINATION},
    "eliminate_whole": {"Stack": STACK, "Elimination": ELIMINATION},
    "extremum": {"KeyTable": KEY_TABLE, "Numbers": NUMBERS, "Extremum": EXTREMUM},
    "fermat": {"FermatOperand": OPERAND, "FermatTask": FERMAT_TASK},
    "fermat_fft": {"FermatPass": FERMAT_PASS, "FermatTransform": FERMAT_TRANSFORM},
    "fermat_limbs": {"WideRadix": WIDE_RADIX},
    "fixed_point": {"LengthTable": LENGTH_TABLE},
    "interval": {"IntervalGoal": INTERVAL_GOAL},
    "interval_rns": {"ExtendedInterval": EXTENDED_INTERVAL},
    "int8_product": {
        "Stack": STACK,
        "Bound": BOUND,
        "SmallModulus": SMALL_MODULUS,
        "Int8Task": INT8_TASK,
        "Image": IMAGE,
    },
    "int8_tiles": {
        "Stack": STACK,
        "Bound": BOUND,
        "SmallModulus": SMALL_MODULUS,
        "Int8Task": INT8_TASK,
        "Image": IMAGE,
        "Factors": INT8_FACTORS,
        "Results": INT8_RESULTS,
    },
    "matmul": {"Stack": STACK, "Product": PRODUCT},
    "limbs": {"LimbOperand": LIMB_OPERAND, "LimbTask": LIMB_TASK},
    "ntt_columns": {"Pass": PASS},
    "ntt_overlapped": {"Pass": PASS, "Flow": FLOW},
    "ntt_rows": {"Pass": PASS},
    "ntt_turned": {"Pass": PASS},
    "polynomials": {"Coefficients": COEFFICIENTS, "Sequences": SEQUENCES, "Divisions": DIVISIONS},
    "positional_gcd": {"LimbOperand": LIMB_OPERAND},
    "positional_divide": {"LimbOperand": LIMB_OPERAND},
    "positional_modular": {"LimbOperand": LIMB_OPERAND, "ModularTask": MODULAR_TASK},
    "positional_montgomery": {"LimbOperand": LIMB_OPERAND, "ModularTask": MODULAR_TASK},
    "positional_multiply": {"LimbOperand": LIMB_OPERAND, "ProductTask": PRODUCT_TASK},
    "sparse": {"SparseTask": SPARSE},
    "sum": {"KeyTable": KEY_TABLE, "Numbers": NUMBERS},
    "tall_panel": {"Stack": STACK, "Elimination": ELIMINATION},
    "triangles": {"Stack": STACK, "Triangles": TRIANGLES},
    "triangular_systems": {"Stack": STACK, "Triangular": TRIANGULAR},
    "wide_arithmetic": {"WideOperand": OPERAND, "WideTask": WIDE_TASK},
    "wide_elimination": {"WideMatrices": WIDE_MATRICES},
    "wide_matmul": {"WideProduct": WIDE_PRODUCT},
    "wide_panel": {"WidePanel": WIDE_PANEL},
}
"""The structures by their names in the sources that know them."""

COMMON_FIELDS = (FermatConstants(2**63 + 2**34, 8), FermatConstants(2**32 - 2**20, 8))
"""Fermat fields that packages bring kernels for (:data:`.variants.VARIANTS`)."""

SIZES = {
    "fermat_fft": {"kTileNumbers": COMMON_FIELDS[0].tile},
    "arithmetic": {"kMaxOperands": MAX_OPERANDS},
    "wide_arithmetic": {"kMaxOperands": MAX_OPERANDS},
    "wide_elimination": {"kWarp": WARP},
    "wide_matmul": {"kTile": WIDE_TILE, "kAcross": WIDE_ACROSS},
    "byte_proof": {
        "kMostProofWords": MOST_WORDS,
        "kWarp": WARP,
    },
    "compare": {"kPairVectors": PAIR_VECTORS},
    "convert": {"kTileLimbs": TILE_LIMBS, "kResults": TABLE_MULTIPLE},
    "elimination": {"kWarp": WARP, "kPanelWidth": PANEL_WIDTH},
    "eliminate_panel": {
        "kRow": ROW,
        "kRowWidth": ROW_WIDTH,
        "kGreatTile": GREAT_TILE,
        "sizeof(Board)": BOARD_BYTES,
    },
    "eliminate_whole": {
        "kRow": ROW,
        "kTile": ROW_TILE,
        "kMostRows": WHOLE_ROWS,
        "sizeof(Board)": BOARD_BYTES,
    },
    "extremum": {"kBlock": BLOCK, "kWarp": WARP, "kKeyVectors": KEY_VECTORS},
    "interval": {"kPowers": INTERVAL_POWERS},
    "interval_rns": {"kDigitVectors": DIGIT_VECTORS},
    "int8_product": {"kSmallModuli": MOST_SMALL_MODULI, "kStep": INT8_STEP},
    "int8_tiles": {
        "kSmallModuli": MOST_SMALL_MODULI,
        "kWarp": WARP,
        "kWarpRows": INT8_TILE[0],
        "kWarpColumns": INT8_TILE[1],
        "kWarps": INT8_WARPS,
        "kBlocks": INT8_BLOCKS,
        "kStep": INT8_STEP,
        "kStages": INT8_STAGES,
    },
    "bit_reversal": {"kBits": REVERSED_BITS},
    "lu_factors": {"kBlock": BLOCK, "kStrip": LU_STRIP},
    "matmul": {"kBlock": BLOCK, "kWarp": WARP, "kTile": MATMUL_TILE},
    "positional_karatsuba": {"kBlock": LIMB_BLOCK},
    "positional_montgomery": {"kBlock": LIMB_BLOCK},
    "scan": {"kBlock": BLOCK, "kTile": SCAN_TILE},
    "sparse": {"kWarp": WARP},
    "sum": {"kBlock": BLOCK, "kWarp": WARP, "kSumVectors": SUM_VECTORS},
    "tall_panel": {"kWarp": WARP, "kSegment": TALL_SEGMENT},
    "transpose": {"kTileWords": TRANSPOSED_WORDS},
    "triangles": {"kMost": MOST_INVERTED, "kRows": INVERSE_ROWS},
}
"""The numbers by their names in the sources."""


# NVRTC has no header for offsetof; this is how the compiler's own define it.
_OFFSET = """
#ifdef __CUDACC_RTC__
#define OFFSET(type, field) __INTADDR__(&static_cast<type*>(nullptr)->field)
#else
#define OFFSET(type, field) __builtin_offsetof(type, field)
#endif
"""


def assertions(source: str) -> str:
    """Return C++ that compiles after the text of ``cuda/<source>.cu`` only if both sides agree."""
    facts = dict(SIZES.get(source, {}))
    for name, dtype in STRUCTURES.get(source, {}).items():
        facts[f"sizeof({name})"] = dtype.itemsize
        for field, (kind, offset, *_) in (dtype.fields or {}).items():
            facts[f"sizeof({name}::{field})"] = kind.itemsize
            facts[f"OFFSET({name}, {field})"] = offset
    return _OFFSET + "".join(f'static_assert({what} == {number}, "");\n' for what, number in facts.items())
