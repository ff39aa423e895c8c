"""Python integers to limbs and back, by their digits of 30 bits and without, against Python's own bytes."""

import numpy as np
import pytest

from rnsdask.backend import cpu
from rnsdask.backend.cpu import text


@pytest.fixture(params=[True, False], ids=["digits", "bytes"], autouse=True)
def knows_digits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test by digits, which are known of this Python, and as where they are not."""
    assert text.KNOWS_DIGITS
    monkeypatch.setattr(text, "KNOWS_DIGITS", request.param)


def values_of(bits: int, rng: np.random.Generator) -> list[int]:
    """Integers of up to so many bits: all ones, one bit, low zeros, and random."""
    drawn = [int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**bits for _ in range(4)]
    return [
        0,
        2**bits - 1,
        2 ** (bits - 1),
        2 ** (bits - 1) - 1,
        (2**bits - 1) >> bits // 2 << bits // 2,
        *drawn,
    ]


@pytest.mark.parametrize("limb_count", [*range(1, 36), 63, 64, 65, 128])
@pytest.mark.parametrize("signed", [False, True])
def test_both_ways(limb_count: int, signed: bool, rng: np.random.Generator) -> None:
    size = 32 * limb_count - signed
    values = [
        v for bits in {1, 29, 30, 31, 32, size - 31, size - 1, size} if bits > 0 for v in values_of(bits, rng)
    ]
    values = [value for value in values if value < 2**size]
    if signed:
        values += [-value for value in values] + [-(2**size)]
    limbs = np.full((len(values), limb_count), 7, dtype=np.uint32)
    assert cpu.ints_to_limbs(values, signed, limbs) == len(values)
    written = [int.from_bytes(number.tobytes(), "little", signed=signed) for number in limbs]
    assert written == values
    assert cpu.limbs_to_ints(limbs, signed) == values


@pytest.mark.parametrize("limb_count", [1, 2, 3, 4, 14, 15, 16, 17, 31, 45])
def test_values_that_do_not_fit(limb_count: int) -> None:
    guarded = np.zeros((4, limb_count), dtype=np.uint32)
    for signed in (False, True):
        end = 2 ** (32 * limb_count - signed)
        too_large = [end, end + 1, 2 * end, end << 40, -1 if not signed else -end - 1, -(end << 7)]
        for value in too_large:
            assert cpu.ints_to_limbs([0, value, 1], signed, guarded[:3]) == 1
            assert (guarded[2:] == 0).all()


def test_greatest_magnitude(rng: np.random.Generator) -> None:
    values = [v for bits in (1, 30, 31, 200) for v in values_of(bits, rng)]
    for some in (values, [-value for value in values], [0], [-(2**200), 2**200 - 1]):
        assert cpu.greatest_magnitude(some) == max(abs(value) for value in some)
    for other in ([], [1, True], [np.int64(1)]):
        assert cpu.greatest_magnitude(other) is None
        assert cpu.ints_to_limbs(other, True, np.empty((len(other), 1), np.uint32)) == max(len(other) - 1, 0)
