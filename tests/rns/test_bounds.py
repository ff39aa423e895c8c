"""Bounds: that they are proved, that no array changes behind them, and that operations pass on right ones."""

import copy
import itertools
import operator
import pickle
import tracemalloc
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import dask.array as da
import gmpy2
import numpy as np
import pytest
from conftest import Processor
from oracles import rns
from strategies import (
    BOTH_RANGES,
    MODULI_SETS,
    SHORT_SETS,
    bounds_around_prefixes,
    edge_values,
    values_within,
)

import rnsdask as rd
from rnsdask import store
from rnsdask.backend import cpu
from rnsdask.constants import (
    byte_proof_constants,
    proof_constants,
)
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import layout
from rnsdask.rns import bounds

MODULI = MODULI_SETS["unsorted"]


def encoded(processor: Processor, values: list[int], moduli: ModuliSet, signed: bool = False) -> Any:
    return processor.xp.asarray(rns.encode(values, moduli, signed))


# ---- proof of a bound -------------------------------------------------------------------------------------

WAYS = pytest.mark.parametrize("way", ["by extension", "in one pass"])


def choose(way: str, processor: Processor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prove bounds by the kernel of one pass, which not every processor has, or as the others do."""
    if way == "in one pass":
        if processor.xp is np and not cpu.MULTIPLIES_WORDS:
            pytest.skip("this processor does not multiply words of 52 bits")
    else:
        monkeypatch.setattr(bounds, "proof_of", lambda *_: None)


def prove_on_cpus(residues: Any, constants: Any, columns: slice = slice(None)) -> Any:
    return cpu.prove_bound(residues[:, columns], constants)


def digit_constants_within(moduli: ModuliSet, low: int, bound: int) -> Any:
    shorter = sum(product < 4 * (bound + 1) for product in accumulate(moduli, operator.mul))
    first = min(1 + shorter, len(moduli))
    return cpu.bound_proof(moduli, first, low, bound)


def byte_constants_of(first: ModuliSet, others: ModuliSet, low: int, bound: int) -> Any:
    return byte_proof_constants(ModuliSet([*first, *others]), low, bound)


def prove_on_gpus(residues: Any, constants: Any, columns: slice = slice(None)) -> Any:
    import cupy

    from rnsdask.backend.cuda import kernels as cuda

    return cuda.prove_bound(cupy.asarray(residues)[:, columns], constants).get()


MULTIPLIES_WORDS = pytest.mark.skipif(
    not cpu.MULTIPLIES_WORDS, reason="this processor does not multiply words of 52 bits"
)
PROOFS = pytest.mark.parametrize(
    ("constants_of", "prove"),
    [
        pytest.param(proof_constants, prove_on_cpus, marks=MULTIPLIES_WORDS, id="digits"),
        pytest.param(byte_constants_of, prove_on_gpus, marks=pytest.mark.gpu, id="bytes"),
    ],
)


@SHORT_SETS
@BOTH_RANGES
@WAYS
def test_find_excess_at_the_edges(
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
    moduli: ModuliSet,
    signed: bool,
    way: str,
    rng: np.random.Generator,
) -> None:
    choose(way, on_each_processor, monkeypatch)
    values = edge_values(moduli, signed)
    if len(values) > 400:
        values = [values[i] for i in sorted(rng.choice(len(values), 400, replace=False))]
    residues = encoded(on_each_processor, values, moduli, signed)
    greatest = max(map(abs, moduli.value_range(signed)))
    chosen = bounds_around_prefixes(moduli, signed)
    chosen = [0, greatest, greatest - 1, *(chosen[i] for i in rng.permutation(len(chosen))[:12])]
    for bound in chosen:
        beyond = [i for i, value in enumerate(values) if abs(value) > bound]
        found = bounds.find_excess(residues, rd.RNS(moduli, signed, bound))
        if beyond:
            assert found == bounds.Excess(beyond[0], values[beyond[0]], len(beyond)), (bound, moduli)
        else:
            assert found is None, (bound, moduli)
        within = np.array([i for i, value in enumerate(values) if abs(value) <= bound], dtype=np.int64)
        assert bounds.find_excess(residues[:, within], rd.RNS(moduli, signed, bound)) is None


@BOTH_RANGES
@WAYS
def test_find_excess_among_numbers_near_the_bound(
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
    signed: bool,
    way: str,
    rng: np.random.Generator,
) -> None:
    choose(way, on_each_processor, monkeypatch)
    moduli = MODULI_SETS["bits2048"]
    for bound in (0, 1, 5, 2**31, 2**40, 2**63 - 1, 2**992, 2**1024 - 1, 2**2000, moduli.product // 5):
        values = values_within(bound, signed, rng)
        residues = encoded(on_each_processor, values, moduli, signed)
        assert bounds.find_excess(residues, rd.RNS(moduli, signed, bound)) is None
        greatest = max(map(abs, values))
        if greatest:
            first = next(i for i, value in enumerate(values) if abs(value) == greatest)
            count = sum(abs(value) == greatest for value in values)
            found = bounds.find_excess(residues, rd.RNS(moduli, signed, greatest - 1))
            assert found == bounds.Excess(first, values[first], count)
        # Numbers that agree with small ones modulo the first moduli, and the greatest, which is near 0.
        for wrong in (moduli.product - 1, moduli.prefix(3).product, moduli.prefix(60).product + 1):
            wrong = wrong if not signed else wrong // 2
            if wrong > bound:
                residues = encoded(on_each_processor, [*values, wrong], moduli, signed)
                found = bounds.find_excess(residues, rd.RNS(moduli, signed, bound))
                assert found == bounds.Excess(len(values), wrong, 1)


@BOTH_RANGES
@WAYS
@pytest.mark.parametrize(("count", "size"), [(1, 32), (2, 17), (3, 32), (8, 16), (64, 17), (300, 32)])
def test_find_excess_next_to_the_bound_and_the_range(
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    size: int,
    signed: bool,
    way: str,
    rng: np.random.Generator,
) -> None:
    """Numbers next to the bound, 0, the ends of the range and products of the first moduli."""
    choose(way, on_each_processor, monkeypatch)
    moduli = ModuliSet.for_bits(size * (count + 2), size).prefix(count)
    lowest, highest = moduli.value_range(signed)
    for bits in (0, 1, moduli.bits // 3, moduli.bits // 2, moduli.bits - 33, moduli.bits - 3):
        bound = (1 << max(bits, 0)) - int(rng.integers(0, 2))
        ends = [0, bound, lowest, highest, *(moduli.prefix(k).product for k in {1, count // 2 or 1, count})]
        near = [sign * end + step for end in ends for sign in (-1, 1) for step in range(-3, 4)]
        values = [v for v in near if lowest <= v <= highest]
        found = bounds.find_beyond(
            encoded(on_each_processor, values, moduli, signed), rd.RNS(moduli, signed, bound)
        )
        assert found.tolist() == [i for i, v in enumerate(values) if abs(v) > bound], (moduli, bound)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_numbers_that_a_proof_leaves_open(
    monkeypatch: pytest.MonkeyPatch, share: float, rng: np.random.Generator
) -> None:
    """Few of them, or most, in one batch and in several."""
    monkeypatch.setattr(bounds, "CPU_RESIDUES", 100 * len(MODULI))
    monkeypatch.setattr("rnsdask.rns.blocks.EXACT_RESIDUES", 7 * len(MODULI))
    bound = 2**40
    values = [int(v) for v in rng.integers(0, 2**40, 1500)]
    for beyond in ([], [3, 700, 1499], range(0, 1500, 2)):
        for i in beyond:
            values[i] = 2**40 + 1 + i
        within = np.array([value <= bound for value in values])
        is_open = rng.random(1500) < share
        monkeypatch.setattr(bounds, "proof_of", lambda *_: "constants")
        monkeypatch.setattr(cpu, "prove_bound", lambda *_, proved=within & ~is_open: proved)
        found = bounds.find_beyond(rns.encode(values, MODULI), rd.RNS(MODULI, False, bound))
        assert found.tolist() == (~within).nonzero()[0].tolist()


@PROOFS
@BOTH_RANGES
@pytest.mark.parametrize("name", ["tiny", "mixed", "bits2048", "table2_64", "table2_256"])
def test_proof_in_one_pass(
    constants_of: Any, prove: Any, name: str, signed: bool, rng: np.random.Generator
) -> None:
    """One wrong residue, or a multiple of the first moduli's product too many, leaves a number open."""
    tiny = ModuliSet([2, 5, 3, 7, 11, 13, 17, 19, 23, 29, 31])
    mixed = ModuliSet([2**32, 3, 2**32 - 5, 2**31 - 1, 5, 65537, 7, 2**17 - 1, 11, 2**32 - 17])
    moduli = {"tiny": tiny, "mixed": mixed}.get(name) or MODULI_SETS[name]
    for count in {1, 2, len(moduli) // 2, len(moduli) - 1}:
        first, others = moduli.prefix(count), ModuliSet(moduli.moduli[count:])
        bound = first.product // 4 - 1
        low = -bound if signed else 0
        constants = constants_of(first, others, low, bound) if bound >= 0 else None
        assert constants is not None or (count == 1 and (bound < 0 or prove is prove_on_cpus))
        if constants is None:
            continue
        within = values_within(bound, signed, rng)
        beyond = [bound + 1, bound + 2, -bound - 1, first.product, -first.product, first.product * 3 + 1]
        beyond += [-1] if not signed else [first.product // 2, -first.product // 2]
        beyond += [
            first.product * (moduli.product // first.product - 1),
            5 + first.product * others.moduli[-1],
        ]
        beyond = [v for v in beyond if not low <= (v + bound) % moduli.product - bound <= bound]
        residues = rns.encode([v % moduli.product for v in within + beyond], moduli)
        proved = prove(residues, constants)
        assert not proved[len(within) :].any(), (moduli, count)
        # Less than the 2**-30th part of the first moduli's product from an end may stay open; 0 never does.
        room = first.product >> 30
        sure = [v == 0 or low + room < v < bound - room for v in within]
        assert proved[: len(within)][sure].all()
        for row in rng.permutation(np.arange(count, len(moduli)))[:20]:
            wrong = residues[:, : len(within)].copy()
            modulus = moduli.moduli[row]
            wrong[row] = (wrong[row] + rng.integers(1, modulus, len(within))) % modulus
            assert not prove(wrong, constants).any(), (moduli, count, row)


@PROOFS
@pytest.mark.parametrize(("limit", "count"), [(2**32, 177), (2**19, 295), (2**12, 380)])
def test_proof_of_the_greatest_sums(
    constants_of: Any, prove: Any, limit: int, count: int, rng: np.random.Generator
) -> None:
    """Terms as great as they can be, in up to 59 groups, overflow no sum."""
    moduli = ModuliSet(itertools.islice(filter(gmpy2.is_prime, range(limit - 1, 0, -1)), count + 40))
    first, others = moduli.prefix(count), ModuliSet(moduli.moduli[count:])
    bound = first.product // 4 - 1
    constants = constants_of(first, others, -bound, bound)
    assert constants is not None
    parts = [first.product // m for m in first]
    greatest = sum((m - 1) * part for m, part in zip(first, parts, strict=True)) % first.product
    values = [greatest - first.product, 1 - sum(parts), sum(parts), -1, 1]
    residues = rns.encode([v % moduli.product for v in values], moduli)
    assert prove(residues, constants).all()
    for row in range(count, count + 40):
        wrong = residues.copy()
        wrong[row] = (wrong[row] + rng.integers(1, moduli.moduli[row], len(values))) % moduli.moduli[row]
        assert not prove(wrong, constants).any()


@PROOFS
@pytest.mark.parametrize("targets", range(1, 10))
def test_proof_of_each_number(constants_of: Any, prove: Any, targets: int, rng: np.random.Generator) -> None:
    """Just those numbers stay open of which one residue is wrong, wherever they are, for so many groups."""
    moduli = MODULI_SETS["bits2048"]
    first = moduli.prefix(int(rng.integers(2, 30)))
    others = ModuliSet(moduli.moduli[len(first) : len(first) + 3 * targets])
    both = ModuliSet([*first, *others])
    bound = first.product // 8
    constants = constants_of(first, others, -bound, bound)
    assert constants is not None
    if prove is prove_on_cpus:
        assert len(constants.target_groups) == targets
    for count in (1, 15, 17, 511, 1100):
        values = [int.from_bytes(rng.bytes(200)) % bound - bound // 2 for _ in range(count)]
        residues = rns.encode(values, both, True)
        assert prove(residues, constants).all()
        wrong = rng.random(count) < 0.3
        for column in wrong.nonzero()[0]:
            row = int(rng.integers(len(both)))
            step = int(rng.integers(1, both.moduli[row]))
            residues[row, column] = (int(residues[row, column]) + step) % both.moduli[row]
        assert (prove(residues, constants) == ~wrong).all()
        padded = np.full((len(both), count + 9), 2**32 - 1, dtype=np.uint32)
        padded[:, 3 : 3 + count] = residues
        assert (prove(padded, constants, slice(3, 3 + count)) == ~wrong).all()


def test_too_many_groups_have_no_proof_by_digits() -> None:
    moduli = ModuliSet(itertools.islice(filter(gmpy2.is_prime, range(2**32 - 1, 0, -1)), 190))
    for count, expected in ((180, True), (181, False)):
        first, others = moduli.prefix(count), ModuliSet(moduli.moduli[count:])
        bound = first.product // 4 - 1
        assert (proof_constants(first, others, 0, bound) is not None) == expected


def test_constants_of_proofs_by_bytes_have_no_tables_of_their_own() -> None:
    """Whether a GPU has the memory for a proof is asked of constants, and each bound's moduli have others."""
    moduli = ModuliSet.for_bits(32 * 400)
    byte_proof_constants(moduli, 0, 1)  # which leaves what is kept of the moduli alone
    tracemalloc.start()
    constants = [byte_proof_constants(moduli, 0, 2**bits - 1) for bits in range(2000, 6000, 500)]
    used, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    tables = [c.tables.table for c in constants]
    assert used < sum(table.nbytes for table in tables) / 4  # mostly the moduli's P / m_i
    assert most < used + tables[0].nbytes / 8
    assert [table.shape for table in tables] == [(c.tables.vectors, 4) for c in constants]


@pytest.mark.parametrize("even", [2, 2**16, 2**32])
def test_byte_proofs_extend_from_the_even_modulus(even: int) -> None:
    """To be a multiple of one is seen by an inverse, which even moduli have not."""
    moduli = ModuliSet([*ModuliSet.for_bits(32 * 40).moduli[1:], even])
    tables = byte_proof_constants(moduli, 0, 2**600).tables
    assert even in list(tables.moduli)
    assert all(m % 2 for m in tables.others)
    assert [moduli[i] for i in tables.order] == [*tables.moduli, *tables.others]


@pytest.mark.parametrize(
    ("constants_of", "prove"),
    [
        pytest.param(digit_constants_within, prove_on_cpus, marks=MULTIPLIES_WORDS, id="digits"),
        pytest.param(byte_proof_constants, prove_on_gpus, marks=pytest.mark.gpu, id="bytes"),
    ],
)
@BOTH_RANGES
@pytest.mark.parametrize("name", ["tiny_unsorted", "top", "unsorted", "bits2048", "table2_8", "table2_64"])
def test_proof_of_bounds_of_any_length(
    constants_of: Any, prove: Any, name: str, signed: bool, rng: np.random.Generator
) -> None:
    """All bits beyond those of the bound count, and both its ends."""
    moduli, proofs = MODULI_SETS[name], 0
    for bits in (2, 12, moduli.bits // 3, moduli.bits // 2, moduli.bits - 30, moduli.bits - 4):
        bound = min(2 ** max(bits, 1) - 1, moduli.product // 4 - 1)
        low = -bound if signed else 0
        constants = constants_of(moduli, low, bound)
        if constants is None:
            continue
        proofs += 1
        within = [v for v in values_within(bound, signed, rng) if low <= v <= bound]
        room = bound >> 4
        sure = [v == 0 or low + room < v < bound - room for v in within]
        ends = [bound + 1, bound + 2, 2 * bound + 2, low - 1, low - 2, 2 * low - 1]
        beyond = [v % moduli.product for v in ends]
        beyond += [(moduli.product * k >> j) % moduli.product for j in range(1, moduli.bits) for k in (1, -1)]
        beyond = [v for v in beyond if bound < v < moduli.product + low]
        residues = rns.encode([v % moduli.product for v in within + beyond], moduli)
        proved = prove(residues, constants)
        assert not proved[len(within) :].any(), (moduli, bound)
        assert proved[: len(within)][sure].all(), (moduli, bound)
        for row in range(len(moduli)):
            wrong = residues[:, : len(within)].copy()
            wrong[row] = (wrong[row] + rng.integers(1, moduli.moduli[row], len(within))) % moduli.moduli[row]
            fits = [low <= v <= bound for v in rd.RNS(moduli, True).decode(wrong)]
            assert not prove(wrong, constants)[np.logical_not(fits)].any()
    assert proofs or (prove is prove_on_cpus and len(moduli) < 8)


def test_find_excess_in_many_blocks_and_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CPU_RESIDUES", 64)
    values = list(range(1000))
    residues = rns.encode(values, MODULI).reshape(len(MODULI), 4, 250)
    assert bounds.find_excess(residues, rd.RNS(MODULI, False, 990)) == bounds.Excess(991, 991, 9)
    turned = residues.transpose(0, 2, 1)
    assert bounds.find_excess(turned, rd.RNS(MODULI, False, 990)) == bounds.Excess(4 * 241 + 3, 991, 9)
    assert bounds.find_excess(residues[:, :, :0], rd.RNS(MODULI, False, 0)) is None


@BOTH_RANGES
def test_from_residues_proves_the_bound(on_each_processor: Processor, signed: bool) -> None:
    values = [3, 2**70, 1, -(2**71) if signed else 2**71, 0]
    residues = encoded(on_each_processor, values, MODULI, signed)
    message = (
        r"the number at flat index 1 is 0x4.{17} \(71 bits\), greater in magnitude than the bound 5 \(and 1"
    )
    for make in (rd.from_residues, rd.RNSArray(residues, rd.RNS(MODULI, signed)).with_residues):
        arguments = () if make != rd.from_residues else (MODULI, signed)
        assert make(residues, *arguments, bound=2**71).bound == 2**71
        with pytest.raises(ValueError, match=message):
            make(residues, *arguments, bound=5)
        assert make(residues, *arguments, bound=5, trusted=True).bound == 5
    parts = da.from_array(residues.reshape(-1, 1, 5), (2, 1, 2), asarray=False)
    lazy = rd.from_residues(parts, MODULI, signed, bound=2**70)
    with pytest.raises(ValueError, match=r"the number at flat index 3 is -?0x8"):
        lazy.max().compute()
    with pytest.raises(ValueError, match=r"the number at flat index 3 is -?0x8"):
        lazy.compute()
    assert rd.from_residues(parts, MODULI, signed, bound=2**71).max(axis=0).compute().size == 5


def test_stores_of_wrong_bounds_are_not_valid(tmp_path: Path) -> None:
    x = rd.from_ints(range(600), MODULI, chunks=128)
    with pytest.raises(
        ValueError, match=r"flat index \d+ is \d+, greater in magnitude than the bound 5 \(and"
    ):
        rd.from_residues(x.residues, MODULI, bound=5).to_zarr(tmp_path / "refused")
    for bound, lines in ((599, []), (598, ["chunk c/0/4: number 599 is 599"]), (254, [1, 2, 3, 4])):
        rd.RNSArray(x.residues, rd.RNS(MODULI, bound=bound)).to_zarr(tmp_path / "x", overwrite=True)
        info = store.open_info(tmp_path / "x")
        problems = list(store.verify(info))
        assert len(problems) == len(lines)
    start = f"{tmp_path}/x: chunk c/0/"
    assert problems[0] == f"{start}1: number 255 is 255, greater in magnitude than the bound 254"
    assert (
        problems[1] == f"{start}2: number 256 is 256, greater in magnitude than the bound 254 (and 127 more)"
    )


def test_verify_names_a_number_of_more_axes(tmp_path: Path) -> None:
    moduli = MODULI_SETS["bits2048"]
    values = np.arange(12, dtype=object).reshape(3, 4)
    values[2, 1] = -(2**2000)
    residues = rd.from_ints(values, moduli, True).residues
    rd.RNSArray(residues, rd.RNS(moduli, True, 2**2000 - 1)).rechunk((2, 4)).to_zarr(tmp_path / "x")
    (problem,) = store.verify(store.open_info(tmp_path / "x"))
    assert problem.startswith(f"{tmp_path}/x: chunk c/0/1/0: number (2, 1) is -0x1000")
    assert "(2001 bits), greater in magnitude than the bound 0xffff" in problem


# ---- proof of headers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny_unsorted", "table2_8", "tiny_beside_huge", "bits2048"])
def test_headers_are_proved(name: str, on_each_processor: Processor) -> None:
    moduli = MODULI_SETS[name]
    magnitudes = edge_values(moduli)[:: 1 + len(edge_values(moduli)) // 200]
    signs = [(-1) ** i for i in range(len(magnitudes))]
    x = rd.IntervalRNSArray.from_ints([s * m for s, m in zip(signs, magnitudes, strict=True)], moduli)
    x = rd.IntervalRNSArray(on_each_processor.xp.asarray(x.columns), rd.IntervalRNS(moduli))
    with rd.errstate(overflow="wrap"):
        results = [x, x + x, x - x[::-1], x * x[::-1], (x + 1) - 1, -x, abs(x), x // 3, ((x + 7) * 3 - x) * x]
    for y in results:
        assert layout.find_wrong_header(y.columns, moduli) is None


def test_wrong_headers_are_found(on_each_processor: Processor) -> None:
    moduli = MODULI_SETS["table2_8"]
    x = rd.IntervalRNSArray.from_ints([0, 5, -(10**20), moduli.product - 1], moduli)
    x = x * 1 - 0
    wrong_values: dict[str, tuple[Any, ...]] = {
        "sign": (2, 255),
        "low": (0.0, -0.25, 0.5, float("nan"), float("inf"), float("-inf"), 1e-320, 1.0),
        "upp": (0.0, 0.5, 1.0, 0.999, float("nan"), float("inf"), -1.0),
        "exponent": (1, 2**31 - 1, -(2**31), -1, 9),
    }
    for index, (part, values) in itertools.product(range(4), wrong_values.items()):
        for value in values:
            parts = {name: getattr(x, name).copy() for name in layout.PART_DTYPES}
            parts[part][index] = value
            columns = layout.pack(x.residues, moduli, **parts)
            if (columns == x.columns).all():
                continue
            found = layout.find_wrong_header(on_each_processor.xp.asarray(columns), moduli)
            assert found is not None, (index, part, value)
            assert (found.index, found.magnitude) == (index, abs(x.to_ints()[index]))
            assert "its header has the sign" in found.text()


@pytest.mark.filterwarnings("error")
def test_headers_that_are_no_numbers_make_no_warnings() -> None:
    moduli = MODULI_SETS["table2_8"]
    x = rd.IntervalRNSArray.from_ints([5, 6], moduli)
    for low, upp in (("inf", "inf"), ("nan", "nan"), ("-inf", "inf"), ("1e308", "-1e308"), ("inf", "-inf")):
        bounds_ = {"low": np.full(2, float(low)), "upp": np.full(2, float(upp))}
        columns = layout.pack(x.residues, moduli, sign=x.sign, exponent=x.exponent, **bounds_)
        assert layout.find_wrong_header(columns, moduli) is not None


def test_headers_as_narrow_as_can_be(on_each_processor: Processor) -> None:
    moduli = MODULI_SETS["table2_8"]
    values = [10**20, 3**60, moduli.product - 2, 7]
    x = rd.IntervalRNSArray.from_ints(values, moduli)
    exponents = [int(exponent) for exponent in x.exponent]
    exact = [Fraction(v, moduli.product) / Fraction(2) ** e for v, e in zip(values, exponents, strict=True)]
    below = [float(f) if Fraction(float(f)) < f else np.nextafter(float(f), 0.0) for f in exact]
    above = [np.nextafter(f, 1.0) for f in below]
    far = [np.nextafter(f, 1.0) for f in above]
    for low, upp, is_right in ((below, above, True), (above, far, False), (below, below, False)):
        bounds_ = {"low": np.array(low), "upp": np.array(upp)}
        columns = layout.pack(x.residues, moduli, sign=x.sign, exponent=x.exponent, **bounds_)
        found = layout.find_wrong_header(on_each_processor.xp.asarray(columns), moduli)
        assert (found is None) == is_right
        assert is_right or found.index == 0  # type: ignore[union-attr]


def test_residues_of_other_numbers_show_in_the_header() -> None:
    moduli = MODULI_SETS["table2_8"]
    x = rd.IntervalRNSArray.from_ints([3, 10**30, 7], moduli)
    columns = x.columns.copy()
    columns[0, 1] = (columns[0, 1] + 1) % moduli[0]
    assert layout.find_wrong_header(columns, moduli).index == 1  # type: ignore[union-attr]
    columns = x.columns.copy()
    columns[:8, 2] = 0
    assert layout.find_wrong_header(columns, moduli).index == 2  # type: ignore[union-attr]


# ---- arrays that nobody can change ------------------------------------------------------------------------


def test_residues_are_read_only() -> None:
    x = rd.from_ints([1, 2, 3], MODULI, chunks=None)
    y = x + x
    results = [
        x,
        y,
        x[1:],
        x.rechunk().compute(),
        rd.where(x < y, x, y),
        x.cumsum(),
        x // 2,
        x.extend(MODULI),
    ]
    results += [pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(y, protocol=5)), copy.deepcopy(x)]
    results += [x.max(axis=0, keepdims=True), x.rechunk(), x.rechunk().persist().compute()]
    for array in results:
        if isinstance(array.residues, da.Array):
            continue
        with pytest.raises(ValueError, match="read-only"):
            array.residues[...] = 9
    assert x.to_ints().tolist() == [1, 2, 3]
    z = rd.IntervalRNSArray.from_ints([1, -2, 3], MODULI)
    for words in (z.columns, z.residues, (z + z).columns, pickle.loads(pickle.dumps(z)).columns):
        with pytest.raises(ValueError, match="read-only"):
            words[...] = 9
    z.sign[...] = 1
    z.low[...] = 0
    assert z.to_ints().tolist() == [1, -2, 3]


def test_assigning_to_lazy_residues_changes_no_number() -> None:
    x = rd.from_ints([1, 2, 3], MODULI, chunks=128)
    x.residues[...] = 0
    assert x.to_ints().tolist() == [1, 2, 3]
    z = rd.IntervalRNSArray.from_ints([1, -2, 3], MODULI, chunks=128)
    z.columns[...] = 0
    assert z.to_ints().tolist() == [1, -2, 3]


def test_later_writes_to_a_users_array_change_no_number(on_each_processor: Processor) -> None:
    residues = encoded(on_each_processor, [1, 2, 3], MODULI)
    x, trusted = rd.from_residues(residues, MODULI, bound=3), rd.from_residues(residues, MODULI, trusted=True)
    again = x.with_residues(residues)
    z = rd.IntervalRNSArray.from_residues(residues, on_each_processor.xp.zeros(3, np.uint8), MODULI)
    residues[...] = 1
    assert x.to_ints().tolist() == again.to_ints().tolist() == z.to_ints().tolist() == [1, 2, 3]
    assert trusted.to_ints().tolist() == [1, 1, 1]


def test_read_only_arrays_are_not_copied() -> None:
    residues = rns.encode([1, 2, 3], MODULI)
    residues.flags.writeable = False
    assert np.shares_memory(rd.from_residues(residues, MODULI).residues, residues)
    x = rd.from_residues(residues, MODULI, bound=3)
    assert np.shares_memory(x.with_residues(x.residues).residues, residues)


@BOTH_RANGES
def test_with_residues(signed: bool) -> None:
    x = rd.from_ints([1, 2, 3], MODULI, signed, chunks=None)
    residues = x.residues.copy()
    residues[:, 1] = 0
    y = x.with_residues(residues)
    assert (y.moduli, y.signed, y.bound) == (MODULI, signed, None)
    assert y.to_ints().tolist() == [1, 0, 3]
    residues[2, 1] = MODULI[2]
    with pytest.raises(
        ValueError, match=rf"residue {MODULI[2]} of the number at flat position 1 is not below"
    ):
        x.with_residues(residues)
    lazy = x.rechunk().with_residues(da.from_array(residues))
    with pytest.raises(ValueError, match="is not below its modulus"):
        lazy.compute()


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
def test_pickles_keep_everything(lazy: bool) -> None:
    x = rd.from_ints([1, -2, 3], MODULI, True, chunks=128 if lazy else None)
    for copied in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert type(copied) is rd.RNSArray
        assert (copied.moduli, copied.signed, copied.bound) == (MODULI, True, 3)
        assert copied.to_ints().tolist() == [1, -2, 3]
