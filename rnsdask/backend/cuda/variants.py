"""Options of the compiler by which one CUDA source becomes several modules, and those that common calls use.

Launches take their `defines` from here, the build of a package compiles :data:`VARIANTS`, and
``scripts/check_kernels.py`` checks some of them. It imports the standard library only, for a build has no
other.
"""

from collections.abc import Sequence

from rnsdask.backend.cuda.ntt_shapes import Overlapped, Shape, matrix_shape, overlapped, row_shape

Defines = tuple[str, ...]

WARP = 32

SHARED_TABLE: Defines = ("-DRNS_SHARED_TABLE",)
"""Options of kernels whose coefficients are too many for a parameter."""

MOST_CLUSTER = 8
"""Blocks that eliminate one matrix together, at most."""


def cluster_options(blocks: int) -> Defines:
    """Compiler options for the number of blocks that eliminate a matrix together."""
    return (f"-DRNS_CLUSTER={blocks}",)


def int8_options(down: int) -> Defines:
    """Compiler options for the warps along a tile's rows in products of 8-bit matrices."""
    return (f"-DRNS_DOWN={down}",)


def proof_division(is_kept: bool) -> tuple[int, int]:
    """Warps of a block that proves a bound, at most, and blocks of a multiprocessor.

    Blocks are small, unless coefficients are kept in shared memory, which all warps of a block read.
    """
    return (8, 2) if is_kept else (4, 3)


def proof_options(size: int, words: int, is_wide: bool, is_kept: bool) -> Defines:
    """Compiler options for the bytes of residues, and the words of fractions, in the proof of a bound.

    And whether sums are wide, and coefficients are kept in shared memory.
    """
    warps, blocks = proof_division(is_kept)
    numbers = {"BYTES": size, "WORDS": words, "WIDE": int(is_wide), "KEPT": int(is_kept)}
    numbers |= {"THREADS": warps * WARP, "BLOCKS": blocks}
    return tuple(f"-DRNS_{name}={value}" for name, value in numbers.items())


def fermat_options(bits: int, side: int, radix: Sequence[int], digits: int) -> Defines:
    """Compiler options for a Fermat field.

    Bits of a digit's word, numbers of a thread, the fields of ``FermatRadix``, and the number of digits.
    """
    return (
        f"-DRNS_FERMAT_BITS={bits}",
        f"-DRNS_FERMAT_DIGITS={digits}",
        f"-DRNS_FERMAT_SIDE={side}",
        f"-DRNS_FERMAT_RADIX={radix[0]}ull,{','.join(map(str, radix[1:]))}",
    )


# ---- transforms --------------------------------------------------------------------------------------------


def transform_options(shape: Shape, field: str, twist: int = 0, reversed_: int = 0) -> Defines:
    """Compiler options for a tile of transforms modulo primes, by the class of their arithmetic."""
    return (
        *((f"-DRNS_TWIST={twist}",) if twist else ()),
        *((f"-DRNS_REVERSED={reversed_}",) if reversed_ else ()),
        f"-DRNS_FIELD={field}",
        f"-DRNS_LOG_LENGTH={shape.length}",
        f"-DRNS_LOG_COLUMNS={shape.columns}",
        f"-DRNS_LOG_VALUES={shape.values}",
        f"-DRNS_THREADS={shape.block}",
        f"-DRNS_BLOCKS={shape.blocks}",
    )


def overlapped_options(shape: Overlapped, field: str, twist: int = 0) -> Defines:
    """Compiler options for two passes of transforms in one launch."""
    return *transform_options(shape.first, field, twist), f"-DRNS_LAST_LENGTH={shape.last_length}"


_SHARED = 99 * 1024
"""Bytes of shared memory that a block of every GPU from sm_80 on may ask for."""

FIELDS = {"NarrowField": 4, "MontgomeryField": 4, "LooseWideField": 8}
"""Arithmetic of common transforms, and bytes of a word."""

_NARROW = tuple(field for field, word in FIELDS.items() if word == 4)

_TWISTED = {"NarrowField": 4, "LooseWideField": 8}
"""Arithmetic of common negacyclic transforms."""


def _row_variants(longest: int, fields: Sequence[str]) -> tuple[Defines, ...]:
    logs = range(1, longest + 1)
    return tuple(transform_options(row_shape(log, FIELDS[field]), field) for field in fields for log in logs)


def _twisted_row_variants() -> tuple[Defines, ...]:
    return tuple(
        transform_options(row_shape(log, word), field, twist, reversed_)
        for field, word in _TWISTED.items()
        for log in range(10, 15)
        for twist in (1, 2)
        for reversed_ in (0, twist)
    )


def _matrix_variants(shortest: int) -> tuple[Defines, ...]:
    logs = range(shortest, 12)
    return tuple(
        transform_options(matrix_shape(log, 5, _SHARED, word), field)
        for field, word in FIELDS.items()
        for log in logs
    )


# ---- positional numbers ------------------------------------------------------------------------------------

MOST_LIMBS = 128
"""Limbs up to which the kernels of positional numbers are compiled for their number."""

LIMBS_OF_LANE = 32
"""Limbs that a lane takes of long numbers, and of factors that go by rows, if a warp has lanes enough."""

MOST_ROWS = 16
"""Rows of products that are added without a loop, at most."""

_MOST_BY_ONE_LANE = 32
"""Limbs of the longest moduli that a thread keeps in registers with two numbers and a quotient."""

_ROWS_OF_POWERS = 12
"""Most rows of powers that are unrolled: the code of squares and of products then fits the caches."""


def shares(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, an even number, and lanes of a number."""
    lanes = min(WARP, 1 << (-(-limbs // LIMBS_OF_LANE) - 1).bit_length())
    return multiple(-(-limbs // lanes), 2), lanes


def modular_shares(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, and lanes of a number, for arithmetic modulo numbers."""
    return (limbs, 1) if limbs <= _MOST_BY_ONE_LANE else shares(limbs)


def halved_shares(limbs: int) -> tuple[int, int]:
    """Limbs of a lane, a multiple of 4 so that its halves are pairs, and lanes of the longer factor."""
    share, lanes = shares(limbs)
    return multiple(share, 4), lanes


def multiple(limbs: int, of: int) -> int:
    """Return the least multiple of `of` that is not below `limbs`."""
    return -(-limbs // of) * of


def limb_options(limbs: int) -> Defines:
    """Compiler options for the number of limbs of positional numbers; 0 means any."""
    return (f"-DRNS_LIMBS={limbs if limbs <= MOST_LIMBS else 0}",)


def product_options(
    x_limbs: int, y_limbs: int, columns: int, is_plain: bool, is_sum: bool = False
) -> Defines:
    """Compiler options for the limbs in products of positional numbers."""
    limbs = (f"-DRNS_X_LIMBS={x_limbs}", f"-DRNS_Y_LIMBS={y_limbs}", f"-DRNS_COLUMNS={columns}")
    return *limbs, f"-DRNS_IS_PLAIN={int(is_plain)}", f"-DRNS_IS_SUM={int(is_sum)}"


def row_options(shortest: int, is_plain: bool) -> Defines:
    """Compiler options for products by rows, by the limbs of the shorter factor."""
    return *product_options(1, 1, 1, is_plain), *_lane_options(*shares(shortest), MOST_ROWS)


def halves_options(longest: int) -> Defines:
    """Compiler options for products of halves, by the limbs of the longer factor."""
    share, lanes = halved_shares(longest)
    return *product_options(1, 1, 1, True), *_lane_options(share, lanes, share // 2)


def montgomery_options(limbs: int, is_power: bool) -> Defines:
    """Compiler options for products and powers modulo numbers of some limbs."""
    share, lanes = modular_shares(limbs)
    rows = 0 if lanes == 1 else share if share <= MOST_ROWS else share // 2
    most = _ROWS_OF_POWERS if is_power else MOST_ROWS
    return _lane_options(share, lanes, rows // 2 if rows > most and rows % 4 == 0 else rows)


def _lane_options(limbs: int, lanes: int, rows: int) -> Defines:
    """Compiler options for the limbs of a lane, and the lanes of a positional number.

    And how many rows of products are added without a loop, or 0 where these do not go by rows.
    """
    return f"-DRNS_LIMBS={limbs}", f"-DRNS_LANES={lanes}", f"-DRNS_ROWS={rows}"


_LIMBS = (0, *range(1, 10), 12, 16, 17, 18, 24, 32, 33, 34, 48, 50, 64, 65, 66, 96, 98, 114, MOST_LIMBS)
"""Limbs of numbers of common sizes, one more, which sums have, and those of cofactors in trees."""

_FACTORS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Limbs of factors of common sizes that one thread takes."""

_LONG = (32, 64, 128, 256)
"""Limbs of longer numbers of common sizes."""

_LONGER = (512, 1024, 2048)
"""Limbs of products in trees of numbers."""

_COFACTORS = (33, 50, 65, 98, 129, 194)
"""Limbs of the sums of cofactors, in trees of numbers of common sizes, that go by rows."""

_TREES = ((1, 16, 17), (16, 17, 33), (16, 33, 33), (17, 32, 49))
"""Limbs of factors, and of products, in trees of numbers of 512 bits that one thread takes."""


def _product_variants() -> tuple[Defines, ...]:
    """Exact products of two numbers of one length, checked ones of that length, then products by rows."""
    columns = [(n, k) for n in _FACTORS for k in sorted({n + 1, 2 * n})]
    by_columns = [product_options(n, n, k, is_plain) for n, k in columns for is_plain in (True, False)]
    sums = [product_options(n, n, 2 * n, True, True) for n in _FACTORS[:4]]
    by_rows = [row_options(n, is_plain) for n in _LONG for is_plain in (True, False)]
    in_trees = [product_options(*limbs, True) for limbs in _TREES]
    by_rows += [row_options(n, True) for n in (*_COFACTORS, *_LONGER)]
    return *by_columns, *sums, *in_trees, *by_rows


# ---- all of them -------------------------------------------------------------------------------------------

VARIANTS: dict[str, tuple[Defines, ...]] = {
    **dict.fromkeys(("extremum", "sum", "compare"), ((), SHARED_TABLE)),
    **dict.fromkeys(
        ("fermat", "fermat_fft"),
        (
            fermat_options(64, 2, (2**63 + 2**34, 63, 34, 1, 3, 2), 8),
            fermat_options(32, 4, (2**32 - 2**20, 32, 20, 0, 4, 2), 8),
        ),
    ),
    "byte_proof": (
        proof_options(2, 1, False, True),
        proof_options(3, 1, True, False),
        *(proof_options(4, 2, is_wide, is_kept) for is_wide in (True, False) for is_kept in (True, False)),
    ),
    "cyclic_products": _row_variants(13, _NARROW),
    "eliminate_panel": tuple(cluster_options(1 << log) for log in range(MOST_CLUSTER.bit_length())),
    "int8_tiles": (int8_options(1), int8_options(2)),
    "limbs": tuple(map(limb_options, _LIMBS)),
    "ntt_columns": _matrix_variants(7),
    "ntt_overlapped": (
        *(
            overlapped_options(overlapped(log, word), field)
            for field, word in FIELDS.items()
            for log in range(15, 21)
        ),
        *(
            overlapped_options(overlapped(log, word), field, twist)
            for field, word in _TWISTED.items()
            for log in range(15, 18)
            for twist in (1, 2)
        ),
    ),
    "ntt_rows": (*_row_variants(14, tuple(FIELDS)), *_twisted_row_variants()),
    "ntt_turned": _matrix_variants(8),
    "positional_karatsuba": tuple(map(halves_options, (80, *_LONG[1:], *_LONGER[:2]))),
    "positional_modular": tuple(map(limb_options, (0, 1, 2, 4, 8, 9, 16, 32, 64, 128))),
    "positional_montgomery": tuple(
        dict.fromkeys(
            montgomery_options(limbs, is_power)
            for limbs in (1, 2, 4, 8, 9, 16, 32, 64, 128, 144)
            for is_power in (False, True)
        )
    ),
    "positional_multiply": tuple(dict.fromkeys(_product_variants())),
}
"""The options of each source that is compiled more than once or with options; all others have none."""


def variants_of(module: str) -> tuple[Defines, ...]:
    """Return the options with which a source is compiled beforehand, once for each."""
    return VARIANTS.get(module, ((),))


def is_launched(module: str, defines: Defines, architecture: int) -> bool:
    """Whether GPUs of an architecture, such as 90, launch a source that is compiled with some options."""
    if module == "ntt_overlapped":
        return architecture // 10 == 9
    if module == "eliminate_panel":  # blocks work in clusters from sm_90 on
        return architecture >= 90 or defines == cluster_options(1)
    return True
