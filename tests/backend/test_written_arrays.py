"""CPU kernels write to the array they are given, or refuse it: never to a copy that nobody sees."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnsdask.backend import cpu
from rnsdask.constants import FermatConstants, transform_constants
from rnsdask.core.moduli import ModuliSet

MODULI = ModuliSet.ntt_primes(60, 16)
FIELD = FermatConstants(2**28 + 2**22, 16)
WORDS = np.arange(2 * 16, dtype=np.uint32).reshape(2, 16)
CUBE = WORDS.reshape(2, 4, 4)
DIGITS = np.arange(16 * 4, dtype=np.uint32).reshape(16, 4)
WRITERS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "apply": (lambda out: cpu.apply("add", [WORDS, WORDS], MODULI, out), (2, 16)),
    "ntt": (lambda out: cpu.ntt(WORDS, transform_constants(MODULI, 16, False), out), (2, 16)),
    "matmul": (lambda out: cpu.matmul(CUBE[:, None], CUBE[:, None], MODULI, out), (2, 1, 4, 4)),
    "convolve": (lambda out: cpu.convolve(CUBE, CUBE, MODULI, 0, out), (2, 4, 7)),
    "fermat": (lambda out: cpu.fermat_apply("add", (DIGITS, DIGITS), FIELD, out), (16, 4)),
    "transpose": (lambda out: cpu.transpose(WORDS, out), (16, 2)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_an_array_that_is_not_contiguous_is_refused(name: str) -> None:
    write, shape = WRITERS[name]
    written = np.full(shape, 7, dtype=np.uint32)
    write(written)
    assert (written != 7).any()
    apart = np.full((*shape[:-1], 2 * shape[-1]), 7, dtype=np.uint32)
    turned = np.full(shape[::-1], 7, dtype=np.uint32).T
    for refused in (apart[..., ::2], turned, np.full(shape, 7, np.int32), np.full(shape, 7, np.float64)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            write(refused)
        assert (refused == 7).all()


def test_a_read_only_array_is_refused() -> None:
    written = np.zeros((2, 16), dtype=np.uint32)
    written.flags.writeable = False
    with pytest.raises(TypeError, match="incompatible function arguments"):
        WRITERS["apply"][0](written)


def test_all_arrays_that_are_written_are_taken_as_they_are() -> None:
    """`Written` refuses to convert; an array of nanobind's own type is for reading."""
    folder = Path(__file__).resolve().parents[2] / "kernels" / "cpu"
    found = {path.name: re.findall(r"\bndarray<\s*(\w+)", path.read_text()) for path in folder.iterdir()}
    assert sum(map(len, found.values())) > 20
    assert {(name, first) for name, types in found.items() for first in types} - {
        ("residues.hpp", "Args")
    } == {(name, "const") for name, types in found.items() if "const" in types}
