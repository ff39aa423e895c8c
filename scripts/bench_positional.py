"""Time products, division and modular arithmetic of positional numbers, on the CPU or on a GPU.

On the CPU, where one thread takes 50,000 numbers, a loop of gmpy2 is beside. On a GPU rates are beside two
limits that are measured first: sums of limb products in registers, of operands that the compiler does not
know, and copies.

    python scripts/bench_positional.py
    python scripts/bench_positional.py --gpu
"""

import argparse
import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np

from rnsdask.backend import cuda_sources, kernels_of
from rnsdask.backend.protocol import power_window
from rnsdask.positional.divide import divmod_
from rnsdask.positional.integers import to_integers
from rnsdask.positional.modular import mod_add, mod_multiply, mod_power
from rnsdask.positional.multiply import multiply, multiply_checked

BITS = (256, 512, 1024, 2048, 4096)


def words(xp: Any, limbs: int, count: int, seed: int) -> Any:
    """Random numbers of all their bits."""
    return xp.asarray(np.random.default_rng(seed).integers(0, 2**32, (limbs, count), dtype=np.uint32))


def best(run: Callable[[], object], repeats: int, wait: Callable[[], None]) -> float:
    """Seconds of the quickest of some runs, after one."""
    run()
    wait()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        wait()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def power_products(bits: int) -> int:
    """How many Montgomery products a GPU's power by an exponent of so many bits takes."""
    window = power_window(bits)
    return 2**window + (-(-bits // window) - 1) * (window + 1) + 1


Case = tuple[int, Callable[[], object], Callable[[], object]]


def cpu_cases(bits: int, count: int) -> dict[str, Case]:
    """How many numbers, what we do and what gmpy2 does."""
    x, y = (words(np, bits // 32, count, seed) for seed in (1, 2))
    m = words(np, bits // 32, 1, 3) | np.uint32(1)
    x, y = (mod_multiply(z, z, m, False) for z in (x, y))
    a, b, (n,) = (to_integers(z, False) for z in (x, y, m))
    few = max(8, 2**24 // bits**2 // 8 * 8)
    exponent = int(to_integers(words(np, bits // 32, 1, 4), False)[0])

    def each(function: Callable[..., object]) -> Callable[[], object]:
        return lambda: list(map(function, a, b))

    return {
        "low product": (count, lambda: multiply(x, y, bits, False), each(operator.mul)),
        "exact product": (count, lambda: multiply(x, y, 2 * bits, False), each(operator.mul)),
        "mod_add": (count, lambda: mod_add(x, y, m, False), each(lambda p, q: (p + q) % n)),
        "mod_multiply": (count, lambda: mod_multiply(x, y, m, False), each(lambda p, q: p * q % n)),
        "divmod": (count, lambda: divmod_(x, y, False), each(gmpy2.f_divmod)),
        "mod_power": (
            few,
            lambda: mod_power(x[:, :few], exponent, m, False),
            lambda: [gmpy2.powmod(p, exponent, n) for p in a[:few]],
        ),
    }


def cpu() -> None:
    """One thread against a loop of gmpy2, each in turn."""
    for bits in BITS:
        for name, (count, ours, theirs) in cpu_cases(bits, 50_000).items():
            our, their = (1e9 * best(run, 3, lambda: None) / count for run in (ours, theirs))
            print(
                f"{bits:5d} bits  {name:14s} {our:10.1f} ns  gmpy2 {their:10.1f} ns  {their / our:5.2f} times"
            )


def ceiling(cupy: Any, wait: Callable[[], None]) -> float:
    """Products of limbs a second."""
    path = Path(__file__).resolve().parents[1] / "kernels" / "bench" / "limb_products.cu"
    options = (*cuda_sources.NVRTC_OPTIONS, *cuda_sources.include_options())
    kernel = cupy.RawModule(code=path.read_text(), options=options).get_function("sum_products")
    blocks = 16 * cupy.cuda.runtime.deviceGetAttribute(16, 0)  # multiprocessors
    x = words(cupy, 8, blocks * 256, 5)
    rounds = 2000
    seconds = best(lambda: kernel((blocks,), (256,), (x, np.int32(rounds))), 3, wait)
    return 64.0 * rounds * blocks * 256 / seconds


# How many numbers, what is done, and the limb products and words that each takes at least.
GpuCase = tuple[int, Callable[[], object], int, int]


def gpu_cases(cupy: Any, bits: int) -> dict[str, GpuCase]:
    """What is timed of numbers of some bits."""
    k = bits // 32
    count = min(2**22, 2**28 // (4 * k))
    few = min(count, 2**26 // k**2)  # for what takes long
    x, y, each = (words(cupy, k, count, seed) for seed in (1, 2, 4))
    m = words(cupy, k, 1, 3)
    m[0] |= 1
    m[-1] |= 2**31
    each[0] |= 1
    xs, ys, each = (z[:, :few].copy() for z in (x, y, each))
    x_below, y_below = (mod_multiply(z, z, m, False) for z in (x, y))
    exponent = int(to_integers(words(np, k, 1, 4), False)[0]) | 1 << bits - 1
    terms = 2 * k * k * power_products(bits)
    low, exact = (cupy.empty((limbs, count), dtype=cupy.uint32) for limbs in (k, 2 * k))
    product = kernels_of(x).positional_multiply
    return {
        "low product": (count, lambda: product(x, y, None, bits, False, low, None), k * (k + 1) // 2, 3 * k),
        "exact product": (count, lambda: product(x, y, None, 2 * bits, False, exact, None), k * k, 4 * k),
        "low, checked": (count, lambda: multiply_checked(x, y, bits, False), k * k, 3 * k),
        "mod_add": (count, lambda: mod_add(x_below, y_below, m, False), 0, 3 * k),
        "mod_multiply": (count, lambda: mod_multiply(x, y, m, False), 4 * k * k, 3 * k),
        "mod_power": (few, lambda: mod_power(xs, exponent, m, False), terms, 2 * k),
        "mod_power each": (few, lambda: mod_power(xs, ys, each, False), terms, 4 * k),
        "divmod": (few, lambda: divmod_(xs, ys, False), 0, 4 * k),
    }


def gpu() -> None:
    """Rates, and how much of the limits they are; of powers the rate of Montgomery products too."""
    import cupy

    wait = cupy.cuda.Device().synchronize
    products = ceiling(cupy, wait)
    x = words(cupy, 8, 2**24, 1)
    to = cupy.empty_like(x)
    copied = 2 * x.nbytes / best(lambda: cupy.copyto(to, x), 5, wait)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}: {products / 1e12:.2f} T limb products/s, copies {copied / 1e12:.2f} TB/s", flush=True)
    for bits in BITS:
        for name, (count, run, terms, moved) in gpu_cases(cupy, bits).items():
            rate = count / best(run, 3, wait)
            shares = f"{rate * terms / products:5.2f} of products, {4 * rate * moved / copied:5.2f} of copies"
            of_power = name.startswith("mod_power")
            more = f", {rate * power_products(bits) / 1e9:.3f} G products/s" if of_power else ""
            print(f"{bits:5d} bits  {name:14s} {rate / 1e9:12.6f} G/s  {shares}{more}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="on a GPU")
    gpu() if parser.parse_args().gpu else cpu()
