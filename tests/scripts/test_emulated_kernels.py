"""CUDA kernels that run on the host: as C++ under sanitizers, and as PTX."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import nvrtc
import pytest
from emulation import ptx

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "emulate_kernels.py"
LIBRARY = nvrtc.find_library()
needs_nvrtc = pytest.mark.skipif(LIBRARY is None, reason="there is no NVRTC")
TWICE_AND_ONE = r"""
extern "C" __global__ void twice_and_one(const unsigned* x, unsigned* out) {
  unsigned given = x[threadIdx.x], sum = given;
  asm("add.u32 %0, %0, 1;\n\tadd.u32 %0, %0, %1;" : "CONSTRAINT"(sum) : "r"(given));
  out[threadIdx.x] = sum;
}
"""
WORDS = r"""
typedef unsigned long long u64;
extern "C" __global__ void words(const u64* x, const u64* y, u64* out) {
  __shared__ u64 shared[40];
  const int i = threadIdx.x, n = blockDim.x;
  const u64 a = x[i], b = y[i];
  const long long c = a, d = b;
  u64 found[] = {a / b, a % b, u64(c / d), u64(c % d), __umul64hi(a, b), u64(__mul64hi(c, d)),
                 u64(__clzll(a)), u64(__popcll(b)), a >> (b & 63), u64(c >> (b & 63)),
                 u64(int(a)), u64(c < d)};
  for (int k = 0; k < 12; ++k) out[k * n + i] = found[k];
  shared[i] = a;
  for (u64 k = 0; k < (a & 7); ++k) shared[i] += b;  // as often as each wants
  __syncthreads();
  out[12 * n + i] = shared[n - 1 - i];
  if (i >= 32) return;
  const int votes = 16 * __all_sync(~0u, a > 0) + 32 * __all_sync(~0u, a > 1) + 64 * __any_sync(~0u, a == 3);
  out[13 * n + i] = __shfl_up_sync(~0u, int(a), 3) + __ballot_sync(~0u, a < b) + votes;
}
"""


def emulated(*arguments: str) -> list[str]:
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def compiled(source: str, name: str) -> ptx.Kernel:
    assert LIBRARY is not None
    text = nvrtc.NVRTC(LIBRARY).translate(source, "test.cu", ("-arch=compute_90",), "PTX")
    return ptx.Kernel(text.rstrip(b"\0").decode(), name)


def pointers(*arrays: np.ndarray) -> list[np.ndarray]:
    return [np.array(array.ctypes.data) for array in arrays]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_kernels_agree_with_the_cpus() -> None:
    assert emulated("powers", "transposition") == [
        "transposition: 4 results agree",
        "montgomery_powers: 4 results agree",
    ]


@pytest.mark.slow
@needs_nvrtc
def test_kernels_as_ptx_agree_with_the_cpus() -> None:
    assert emulated("--ptx", "carries", "transposition", "running", "joined") == [
        "transposition: 4 results agree",
        "carries_that_pass_all_limbs: 6 results agree",
        "products_joined_at_once: not by PTX, for it has matrix units and copies that do not wait",
        "running_sums: 9 results agree",
        "running_maxima: 18 results agree",
    ]


@needs_nvrtc
@pytest.mark.parametrize(("constraint", "finds"), [("+&r", [1, 3, 5, 7]), ("+r", [2, 4, 6, 8])])
def test_registers_written_before_all_are_read_are_shared_without_a_word(
    constraint: str, finds: list[int]
) -> None:
    x = np.arange(4, dtype=np.uint32)
    out = np.zeros_like(x)
    kernel = compiled(TWICE_AND_ONE.replace("CONSTRAINT", constraint), "twice_and_one")
    kernel.launch(1, 4, pointers(x, out))
    assert out.tolist() == finds


@needs_nvrtc
def test_instructions_of_ptx_are_as_pythons_integers() -> None:
    ends = [1, 2, 3, 7, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**63 + 5, 2**64 - 2, 2**64 - 1]
    pairs = [(ends[i % 12], ends[(5 * i + i // 12) % 12]) for i in range(40)]
    pairs = [(a, 3 if (a, b) == (2**63, 2**64 - 1) else b) for a, b in pairs]
    x, y = np.array(pairs, dtype=np.uint64).T.copy()
    out = np.zeros((14, 40), np.uint64)
    compiled(WORDS, "words").launch(1, 40, pointers(x, y, out))
    sums = [(a + (a & 7) * b) % 2**64 for a, b in pairs]
    votes = 16 + 64 + sum((a < b) << i for i, (a, b) in enumerate(pairs[:32]))
    for i, (a, b) in enumerate(pairs):
        c, d = (z - (z >> 63 << 64) for z in (a, b))
        quotient = abs(c) // abs(d) * (-1 if (c < 0) != (d < 0) else 1)
        low = a % 2**32
        expected = [a // b, a % b, quotient, c - quotient * d, a * b >> 64, c * d >> 64]
        expected += [64 - a.bit_length(), b.bit_count(), a >> b % 64, c >> b % 64, low - (low >> 31 << 32)]
        expected += [c < d, sums[39 - i]]
        if i < 32:
            expected.append((pairs[i - 3 if i >= 3 else i][0] + votes) % 2**32)
        assert out[: len(expected), i].tolist() == [z % 2**64 for z in expected], (a, b)


@needs_nvrtc
def test_bytes_are_chosen_of_two_words_and_their_signs() -> None:
    source = r"""extern "C" __global__ void chosen(const unsigned* x, unsigned* out) {
      const unsigned choice = x[2 + threadIdx.x];
      asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out[threadIdx.x]) : "r"(x[0]), "r"(x[1]), "r"(choice));
    }"""
    choices = [0x3210, 0x7654, 0x2104, 0x8888, 0xF0C3, 0x94AE]
    x = np.array([0x807F01FE, 0x12F48C00, *choices], np.uint32)
    out = np.zeros(len(choices), np.uint32)
    compiled(source, "chosen").launch(1, len(choices), pointers(x, out))
    pair = x[:2].tobytes()
    for choice, found in zip(choices, out, strict=True):
        digits = [choice >> shift & 15 for shift in (0, 4, 8, 12)]
        chosen = [255 * (pair[d & 7] >> 7) if d & 8 else pair[d & 7] for d in digits]
        assert int(found) == int.from_bytes(chosen, "little"), hex(choice)


@needs_nvrtc
def test_what_ptx_is_not_known_is_an_error() -> None:
    source = 'extern "C" __global__ void root(float* x) { *x = sqrtf(*x); }'
    x = np.ones(1, np.float32)
    with pytest.raises(NotImplementedError, match="of PTX"):
        compiled(source, "root").launch(1, 1, pointers(x))


@needs_nvrtc
def test_barriers_and_shared_memory_are_watched() -> None:
    source = """extern "C" __global__ void beyond(int* x) {
      extern __shared__ int shared[];
      shared[threadIdx.x] = *x;
      if (threadIdx.x != 2) __syncthreads();
      *x = shared[*x];
      if (threadIdx.x == 2) __syncthreads();
    }"""
    x = np.zeros(1, np.int32)
    kernel = compiled(source, "beyond")
    kernel.launch(1, 2, pointers(x), 8)
    with pytest.raises(AssertionError, match="beyond shared memory"):
        kernel.launch(1, 2, pointers(x), 7)
    with pytest.raises(AssertionError, match="a barrier that not all threads of a block reach"):
        kernel.launch(1, 3, pointers(x), 12)
