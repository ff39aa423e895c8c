"""Products of positional numbers against Python's integers."""

import numpy as np
import pytest
from conftest import Processor
from positional_numbers import PRECISIONS, some_values, to_values, to_words, wrapped

from rnsdask.backend import cpu, kernels_of
from rnsdask.positional import multiply as transforms
from rnsdask.positional.multiply import (
    multiply,
    multiply_add,
    multiply_add_checked,
    multiply_checked,
    transformed_product,
)


def pairs(bits: int, signed: bool, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Each special number with each, or with as many as make a small test; squares of the ends."""
    values = some_values(bits, signed, 40, rng)
    first = [v for v in values for _ in values]
    second = values * len(values)
    step = max(1, len(first) * bits // 2**20)
    ends = [values[0], values[-1], min(values), max(values)]
    return ends + ends + first[::step], ends + ends[::-1] + second[::step]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", PRECISIONS)
def test_products(bits: int, signed: bool, on_each_processor: Processor, rng: np.random.Generator) -> None:
    a, b = pairs(bits, signed, rng)
    x, y = (to_words(v, bits, on_each_processor) for v in (a, b))
    exact = [p * q for p, q in zip(a, b, strict=True)]
    assert to_values(multiply(x, y, 2 * bits, signed), signed) == exact
    low, overflowed = multiply_checked(x, y, bits, signed)
    expected = [wrapped(p, bits, signed) for p in exact]
    assert to_values(low, signed) == expected
    assert overflowed.tolist() == [p != q for p, q in zip(exact, expected, strict=True)]
    assert to_values(multiply(x, y, bits, signed), signed) == expected


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    ("x_bits", "y_bits", "z_bits", "bits"),
    [
        (1024, 32, 64, 1056),
        (33, 2000, 100, 500),
        (64, 64, 128, 129),
        (64, 64, 128, 64),
        (256, 100, 300, 700),
        (4096, 520, 31, 4600),
        (2048, 2048, 2048, 2048),
    ],
)
def test_products_of_other_precisions(
    x_bits: int,
    y_bits: int,
    z_bits: int,
    bits: int,
    signed: bool,
    on_each_processor: Processor,
    rng: np.random.Generator,
) -> None:
    given = (x_bits, y_bits, z_bits)
    values = [some_values(b, signed, 60, rng) for b in given]
    count = max(map(len, values))
    values = [(v[::-1] * count)[:count] if i else (v * count)[:count] for i, v in enumerate(values)]
    x, y, z = (to_words(v, b, on_each_processor) for v, b in zip(values, given, strict=True))
    exact = [p * q + r for p, q, r in zip(*values, strict=True)]
    expected = [wrapped(p, bits, signed) for p in exact]
    result, overflowed = multiply_add_checked(x, y, z, bits, signed)
    assert to_values(result, signed) == expected
    assert overflowed.tolist() == [p != q for p, q in zip(exact, expected, strict=True)]
    assert to_values(multiply_add(x, y, z, bits, signed), signed) == expected


def test_products_by_one_number_and_of_shapes(on_each_processor: Processor, rng: np.random.Generator) -> None:
    a, b = some_values(300, False, 60, rng)[:60], [2**300 - 1]
    x, y = to_words(a, 300, on_each_processor), to_words(b, 300, on_each_processor)
    expected = [p * b[0] for p in a]
    assert to_values(multiply(x, y, 600, False)) == expected
    grid = multiply(x.reshape(10, 6, 10), y.reshape(10, 1, 1), 600, False)
    assert grid.shape == (19, 6, 10)
    assert to_values(grid.reshape(19, 60)) == expected
    outer = multiply(x[:, :5, None], x[:, None, :4], 600, False)
    assert to_values(outer.reshape(19, 20)) == [p * q for p in a[:5] for q in a[:4]]
    square = multiply(x[:, ::2], x[:, ::2], 600, False)
    assert to_values(square) == [p * p for p in a[::2]]
    strided = multiply(x[:, ::2], x[:, 1::2], 600, False)
    assert to_values(strided) == [p * q for p, q in zip(a[::2], a[1::2], strict=True)]
    assert multiply(x[:, :0], y, 600, False).shape == (19, 0)
    assert multiply(x[:, 0], x[:, 1], 600, False).shape == (19,)


def test_long_products(on_each_processor: Processor, rng: np.random.Generator) -> None:
    a = [2**20000 - 1, 2**20000 - 2**9999, 1, 0, int.from_bytes(rng.bytes(2500), "little")]
    x = to_words(a, 20000, on_each_processor)
    assert to_values(multiply(x, x, 40000, False)) == [p * p for p in a]
    assert to_values(multiply(x, x, 20000, True), True) == [wrapped(p * p, 20000, True) for p in a]


@pytest.mark.parametrize(
    ("x_bits", "y_bits", "bits"),
    [
        (4096, 4096, 4064),
        (2080, 2080, 2080),
        (2080, 1056, 2080),
        (4096, 2112, 4096),
        (3000, 2500, 5500),
        (2500, 4096, 3001),
        (9000, 40, 9040),
        (2048, 96, 4001),
        (40000, 33000, 73000),
    ],
)
def test_long_products_of_other_precisions(
    x_bits: int, y_bits: int, bits: int, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Around the lengths at which GPUs take them otherwise: in halves, by several lanes."""
    values = [some_values(b, False, 60, rng)[::-1] for b in (x_bits, y_bits)]
    count = min(map(len, values))
    x, y = (to_words(v[:count], b, on_each_processor) for v, b in zip(values, (x_bits, y_bits), strict=True))
    exact = [p * q for p, q in zip(*(v[:count] for v in values), strict=True)]
    assert to_values(multiply(x, y, bits, False)) == [p % 2**bits for p in exact]
    low, overflowed = multiply_checked(x, y, bits, False)
    assert to_values(low) == [p % 2**bits for p in exact]
    assert overflowed.tolist() == [p >= 2**bits for p in exact]


@pytest.mark.parametrize("limbs", [33, 34, 63, 64, 66, 127, 130])
def test_carries_that_pass_all_limbs(limbs: int, on_each_processor: Processor) -> None:
    """Limbs of all ones: carries between lanes of GPUs, and along chains within a lane."""
    ones = 2 ** (32 * limbs) - 1
    a = [ones, ones, ones // 3, ones // 3 + 2**640, ones - 2**32, 2 ** (32 * limbs - 1), ones - 2**1024]
    b = [ones, 1, 3, 3, 2**32 + 1, 2, 2**32 - 1]
    bits = 32 * limbs
    x, y = (to_words(z, bits, on_each_processor) for z in (a, b))
    exact = [p * q for p, q in zip(a, b, strict=True)]
    assert to_values(multiply(x, y, 2 * bits, False)) == exact
    signed = [[wrapped(p, bits, True) for p in z] for z in (a, b)]
    assert to_values(multiply(x, y, 2 * bits, True), True) == [p * q for p, q in zip(*signed, strict=True)]
    total = multiply_add(x, y, x, 2 * bits, False)
    assert to_values(total) == [(p + r) % 2 ** (2 * bits) for p, r in zip(exact, a, strict=True)]


@pytest.mark.parametrize("limbs", [40, 64, 65, 79, 96, 97, 127, 128, 129, 255, 256, 257, 512])
def test_products_of_equal_and_extreme_halves(limbs: int, on_each_processor: Processor) -> None:
    """Differences of halves that are 0, of either sign, or of one limb; and all carries of their sums."""
    whole, lanes = 2 ** (32 * limbs) - 1, 1 << (-(-limbs // 32) - 1).bit_length()
    for half in {32 * (limbs // 2), 64 * lanes * -(-limbs // (4 * lanes))}:  # as of a GPU's lanes, too
        parts = [0, 1, 2**half - 1, 2 ** (half - 1), 2**half - 2**32]
        values = [(high << half | low) & whole for high in parts for low in parts]
        a = [p for p in values for _ in values]
        b = values * len(values)
        x, y = (to_words(v, 32 * limbs, on_each_processor) for v in (a, b))
        for bits in (64 * limbs, 64 * limbs + 33):
            assert to_values(multiply(x, y, bits, False)) == [p * q for p, q in zip(a, b, strict=True)]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [32, 100, 256, 2500])
def test_overflow_by_lengths(
    bits: int, signed: bool, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Numbers whose lengths together are the precision, one bit less, or up to three more."""
    pairs = []
    for length in {1, 2, 31, 32, 33, bits // 2, bits - 1}:
        for other in range(max(1, bits - length - 2), bits - length + 4):
            if max(length, other) <= bits - signed:
                pairs += [(2**length - 1, 2**other - 1), (2 ** (length - 1), 2 ** (other - 1))]
    if signed:
        ends = [(-(2 ** (bits - 1)), z) for z in (-1, 0, 1, 2, -2)]
        pairs = ends + [(s * p, t * q) for p, q in pairs for s in (1, -1) for t in (1, -1)]
    x, y = (to_words([pair[i] for pair in pairs], bits, on_each_processor) for i in range(2))
    low, overflowed = multiply_checked(x, y, bits, signed)
    expected = [wrapped(p * q, bits, signed) for p, q in pairs]
    assert to_values(low, signed) == expected
    assert overflowed.tolist() == [p * q != z for (p, q), z in zip(pairs, expected, strict=True)]


def test_sums_of_products_do_not_overflow() -> None:
    """The greatest numbers of more digits than a sum holds products of."""
    bits = 120_000
    value = 2**bits - 1
    x = to_words([value], bits, Processor("cpu", np))
    for method in cpu.positional_methods():
        for y in (x, x.copy()):  # a square, and a product
            out = np.empty((2 * len(x), 1), dtype=np.uint32)
            arguments = (x, y, None, 2 * bits, False, out, None)
            cpu.positional_multiply(*arguments, method=method, algorithm="schoolbook")
            assert to_values(out) == [value * value]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 33, 239, 1024])
def test_methods_agree(bits: int, signed: bool, rng: np.random.Generator) -> None:
    a, b = pairs(bits, signed, rng)
    x, y = (to_words(v, bits, Processor("cpu", np)) for v in (a, b))
    results = []
    for method in cpu.positional_methods():
        out, overflowed = np.empty_like(x), np.empty(len(a), dtype=np.bool_)
        cpu.positional_multiply(x, y, None, bits, signed, out, overflowed, method=method)
        results.append((out, overflowed))
    for out, overflowed in results[1:]:
        assert np.array_equal(out, results[0][0])
        assert np.array_equal(overflowed, results[0][1])


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("method", cpu.positional_methods())
def test_algorithms_agree(method: str, signed: bool, rng: np.random.Generator) -> None:
    """Products and squares by halves, of lengths that are no multiples of others, whole and low."""
    host = Processor("cpu", np)
    for x_bits, y_bits in ((3000, 3000), (9000, 1300), (2080, 6200), (13000, 13000)):
        a, b = (some_values(bits, signed, 150, rng) for bits in (x_bits, y_bits))
        a, b = a[:20] + a[-60:], b[-80:]
        x, y = to_words(a, x_bits, host), to_words(b, y_bits, host)
        for other, numbers in ((y, b), (x, a)):
            exact = [p * q for p, q in zip(a, numbers, strict=True)]
            for bits in (x_bits + y_bits, 2 * x_bits, x_bits, 700):
                expected = [wrapped(p, bits, signed) for p in exact]
                for algorithm in ("schoolbook", "karatsuba", "best"):
                    out = np.empty((-(-bits // 32), len(a)), dtype=np.uint32)
                    overflowed = np.empty(len(a), dtype=np.bool_)
                    arguments = (x, other, None, bits, signed, out, overflowed)
                    cpu.positional_multiply(*arguments, method=method, algorithm=algorithm)
                    assert to_values(out, signed) == expected
                    assert overflowed.tolist() == [p != q for p, q in zip(exact, expected, strict=True)]


WAYS = {
    "as chosen": {},
    "transforms": {"most_product_limbs": 0},
    "transforms without sums of a line": {"most_product_limbs": 0, "overlap_add": None},
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_ways_to_take_long_products(
    way: str,
    signed: bool,
    on_each_processor: Processor,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in WAYS[way].items():
        monkeypatch.setattr(kernels_of(on_each_processor.xp.empty(0)), name, value)
    lengths = [(1, 1), (31, 64), (250, 2000), (1024, 1024), (3000, 33), (9000, 8000), (70_000, 66_000)]
    for x_bits, y_bits in lengths:
        a, b = (some_values(bits, signed, 30, rng)[-30:] for bits in (x_bits, y_bits))
        a, b = [max(a), min(a), *a][: len(b)], b[: len(a) + 2][::-1]
        x, y = to_words(a, x_bits, on_each_processor), to_words(b, y_bits, on_each_processor)
        for other, numbers in ((y, b), (x, a), (y[:, :1], b[:1] * len(a))):
            exact = [p * q for p, q in zip(a, numbers, strict=True)]
            total = 32 * (len(x) + len(other))
            assert to_values(multiply(x, other, total, signed), signed) == exact
            for bits in (x_bits, total + 40):
                low, overflowed = multiply_add_checked(x, other, y, bits, signed)
                sums = [p + q for p, q in zip(exact, b, strict=True)]
                expected = [wrapped(s, bits, signed) for s in sums]
                assert to_values(low, signed) == expected
                assert overflowed.tolist() == [p != q for p, q in zip(sums, expected, strict=True)]
        assert multiply(x[:, :0], y[:, :1], total, signed).shape == (total // 32, 0)
    pair = multiply(x[:, :1], y[:, :1], total, signed)
    assert to_values(pair, signed) == [a[0] * b[0]]


@pytest.mark.parametrize("rounds", [0, 3])
def test_blocks_and_carries_of_transforms(
    rounds: int, on_each_processor: Processor, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [on_each_processor.xp.asarray(rng.integers(0, 2**32, (n, 23), dtype=np.uint32)) for n in (40, 7)]
    for x in words:
        x[:, 5] = 2**32 - 1
    a, b = map(to_values, words)
    monkeypatch.setattr(transforms, "BLOCK_LIMBS", 5 * 47)
    monkeypatch.setattr(transforms, "CARRY_ROUNDS", rounds)
    monkeypatch.setattr(kernels_of(words[0]), "overlap_add", None)
    assert to_values(transformed_product(*words, 23)) == [p * q for p, q in zip(a, b, strict=True)]
    one = transformed_product(words[0], words[1][:, 3:4], 23)
    assert to_values(one) == [p * b[3] for p in a]
