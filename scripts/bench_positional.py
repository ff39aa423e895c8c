"""Time products, division and modular arithmetic of positional numbers, on the CPU or on a GPU.

On the CPU, where one thread takes 50,000 numbers, of the longest fewer, a loop of gmpy2 is beside; long
products are also taken by transforms. On a GPU, which takes 2**20 numbers or, of the shortest, more, rates
are beside two limits that are measured first: sums of limb products in registers, of operands that the
compiler does not know, and copies.

    python scripts/bench_positional.py
    python scripts/bench_positional.py --method avx2    by other instructions than the best: avx2, gmp
    python scripts/bench_positional.py --gpu
    python scripts/bench_positional.py --tiny    only see that it works

With --json FILE writes the figures too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import operator
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gmpy2
import numpy as np
from benchmarking import (
    argument_parser,
    compile_for_gpu,
    print_rows,
    time_in_turn,
    wall_seconds,
    write_results,
)

from rnsdask.backend import cpu, kernels_of
from rnsdask.backend.cpu import positional
from rnsdask.backend.cuda.layout import MOST_POWER_WINDOW
from rnsdask.backend.protocol import power_window
from rnsdask.positional.arithmetic import apply
from rnsdask.positional.divide import divmod_
from rnsdask.positional.modular import mod_add, mod_inverse, mod_multiply, mod_power
from rnsdask.positional.multiply import multiply, multiply_checked, transformed_product
from rnsdask.positional.operands import to_integers
from rnsdask.positional.system import Positional

BITS = (256, 512, 1024, 2048, 4096, 8192)
CPU_BITS = (109, 131, 163, 191, 239, *BITS)
LONG_BITS = (8192, 65536, 2**18, 2**20)
REPEAT = 5

# CGBN on an H200, with the number of threads for a number that is best there (4 to 16 of them) and operands
# in registers for products modulo a number: billions of numbers a second, by operation and bits.
CGBN = {
    "add": {256: 34.3, 1024: 11.4, 2048: 5.7, 4096: 2.8},
    "low product": {256: 37.8, 1024: 4.5, 2048: 1.17, 4096: 0.40},
    "exact product": {256: 21.2, 1024: 4.1, 2048: 1.11, 4096: 0.36},
    "Montgomery product": {256: 15.6, 1024: 2.5, 2048: 0.67, 4096: 0.21},
    "mod_power": {256: 0.0104, 1024: 0.0006},
}


def beside(operation: str, bits: int, rate: float) -> dict[str, float]:
    """How many times CGBN's rate a rate is, in numbers a second, where there is one."""
    known = CGBN.get(operation, {}).get(bits)
    return {} if known is None else {"of CGBN": rate / 1e9 / known}


def words(xp: Any, limbs: int, count: int, seed: int) -> Any:
    """Random numbers of all their bits."""
    return xp.asarray(np.random.default_rng(seed).integers(0, 2**32, (limbs, count), dtype=np.uint32))


def numbers_of(bits: int, count: int, seed: int) -> Any:
    """Random numbers below 2**bits on the host."""
    matrix = words(np, -(-bits // 32), count, seed)
    matrix[-1] >>= np.uint32(-bits % 32)
    return matrix


def force(method: str) -> None:
    """Take no better instructions than those of one of the CPU's methods."""
    positional.best_method = method
    for name, function in vars(cpu).copy().items():
        if name.startswith("montgomery_") or name == "positional_mod_add":
            setattr(cpu, name, partial(function, method=method))
    cpu.most_product_limbs = positional.MOST_PRODUCT_LIMBS[method]
    if method == cpu.GMP:
        cpu.most_montgomery_limbs = 0


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


def best_on_gpu(cupy: Any, run: Callable[[], object]) -> float:
    """Seconds of the quickest of some runs on a GPU; short ones are queued one after another."""
    times = []
    calls = 1
    for _ in range(4):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(calls):
            run()
        end.record()
        end.synchronize()
        times.append(1e-3 * cupy.cuda.get_elapsed_time(start, end) / calls)
        calls = 8 if times[-1] < 0.01 else 1
    return min(times[1:])  # the first one compiles


def power_products(bits: int) -> int:
    """How many Montgomery products a GPU's power by an exponent of so many bits takes."""
    window = min(MOST_POWER_WINDOW, power_window(bits))
    return 2**window + (-(-bits // window) - 1) * (window + 1) + 1


Case = tuple[int, Callable[[], object], Callable[[], object]]


def cpu_cases(bits: int, count: int) -> dict[str, Case]:
    """How many numbers, what we do and what gmpy2 does."""
    x, y, each = (numbers_of(bits, count, seed) for seed in (1, 2, 5))
    m = numbers_of(bits, 1, 3) | np.uint32(1)
    each[0] |= 1
    x, y = (mod_multiply(z, z, m, False) for z in (x, y))
    a, b, moduli, (n,) = (to_integers(z, False) for z in (x, y, each, m))
    few = max(8, 2**24 // bits**2 // 8 * 8)
    exponent = int(to_integers(numbers_of(bits, 1, 4), False)[0])
    system = Positional(bits)
    coprime = np.array([gmpy2.gcd(p, q) == 1 for p, q in zip(a, moduli, strict=True)])
    inverted, modulo = (np.ascontiguousarray(z[:, coprime]) for z in (x, each))
    pairs = list(zip(*(to_integers(z, False) for z in (inverted, modulo)), strict=True))

    def loop(function: Callable[..., object]) -> Callable[[], object]:
        return lambda: list(map(function, a, b))

    return {
        "add": (count, lambda: apply("add", (x, y), (system,) * 2, system, "wrap"), loop(operator.add)),
        "low product": (count, lambda: multiply(x, y, bits, False), loop(operator.mul)),
        "exact product": (count, lambda: multiply(x, y, 2 * bits, False), loop(operator.mul)),
        "exact square": (count, lambda: multiply(x, x, 2 * bits, False), lambda: [p * p for p in a]),
        "divmod": (count, lambda: divmod_(x, y, False), loop(gmpy2.f_divmod)),
        "mod_add": (count, lambda: mod_add(x, y, m, False), loop(lambda p, q: (p + q) % n)),
        "mod_multiply": (count, lambda: mod_multiply(x, y, m, False), loop(lambda p, q: p * q % n)),
        "mod_multiply each": (
            count,
            lambda: mod_multiply(x, y, each, False),
            lambda: [p * q % r for p, q, r in zip(a, b, moduli, strict=True)],
        ),
        "mod_power": (
            few,
            lambda: mod_power(x[:, :few], exponent, m, False),
            lambda: [gmpy2.powmod(p, exponent, n) for p in a[:few]],
        ),
        "mod_power each": (
            few,
            lambda: mod_power(x[:, :few], y[:, :few], each[:, :few], False),
            lambda: list(map(gmpy2.powmod, a[:few], b[:few], moduli[:few])),
        ),
        "mod_inverse each": (
            len(pairs),
            lambda: mod_inverse(inverted, modulo, False),
            lambda: [gmpy2.invert(p, q) for p, q in pairs],
        ),
    }


def long_rows(lengths: tuple[int, ...], limbs: int, method: str) -> list[dict[str, Any]]:
    """Exact products of long numbers, as they are taken and by transforms, against a loop of gmpy2."""
    rows = []
    for bits in lengths:
        x, y = (words(np, bits // 32, max(2, 32 * limbs // bits), seed) for seed in (1, 2))
        pairs = list(zip(*(to_integers(z, False) for z in (x, y)), strict=True))
        ways = {
            "as chosen": partial(multiply, x, y, 2 * bits, False),
            "transforms": partial(transformed_product, x, y, len(pairs)),
            "gmpy2": lambda pairs=pairs: [p * q for p, q in pairs],
        }
        timings = time_in_turn({name: partial(wall_seconds, run) for name, run in ways.items()}, REPEAT)
        least = {name: min(timing.seconds) for name, timing in timings.items()}
        for name in ("as chosen", "transforms"):
            row = {"table": f"long products, one thread, {method}", "bits": bits, "operation": name}
            row |= {"us a number": 1e6 * least[name] / len(pairs), **timings[name].row()}
            rows.append(row | {"gmpy2": least["gmpy2"] / least[name]})
    return rows


def cpu_rows(lengths: tuple[int, ...], most: int, method: str) -> list[dict[str, Any]]:
    """A row for each operation: one thread against a loop of gmpy2, in turn."""
    rows = []
    for bits in lengths:
        # So many that the longest take no minutes.
        count = min(most, 2**37 // bits**2 // 8 * 8)
        for name, (numbers, ours, theirs) in cpu_cases(bits, count).items():
            calls = {"ours": partial(wall_seconds, ours), "gmpy2": partial(wall_seconds, theirs)}
            timings = time_in_turn(calls, REPEAT)
            least = {who: min(timing.seconds) for who, timing in timings.items()}
            row = {"table": f"beside gmpy2, one thread, {method}", "bits": bits, "operation": name}
            row |= {"ns a number": 1e9 * least["ours"] / numbers, **timings["ours"].row()}
            rows.append(row | {"gmpy2": least["gmpy2"] / least["ours"]})
    return rows


def ceiling(cupy: Any, wait: Callable[[], None]) -> float:
    """Products of limbs a second."""
    path = Path(__file__).resolve().parent / "limb_products.cu"
    kernel = compile_for_gpu(path).get_function("sum_products")
    blocks = 16 * cupy.cuda.runtime.deviceGetAttribute(16, 0)  # multiprocessors
    x = words(cupy, 8, blocks * 256, 5)
    rounds = 2000
    seconds = best(lambda: kernel((blocks,), (256,), (x, np.int32(rounds))), 3, wait)
    return 64.0 * rounds * blocks * 256 / seconds


# How many numbers, what is done, and the limb products and words that each takes at least.
GpuCase = tuple[int, Callable[[], object], int, int]


def gpu_cases(cupy: Any, bits: int, most: int) -> dict[str, GpuCase]:
    """Cases to time at one size of numbers; short numbers are so many that no cache holds them."""
    k = bits // 32
    count = max(most, 32 * most // k)
    few = min(count, 2**27 // k**2)  # for what takes long
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
    sums: dict[str, GpuCase] = {
        name: (
            count,
            partial(kernels_of(x).positional_add, (x, y), (False,) * 2, minus, 32, False, low),
            0,
            3 * k,
        )
        for name, minus in (("add", False), ("subtract", True))
    }
    return {
        **sums,
        "low product": (count, lambda: product(x, y, None, bits, False, low, None), k * (k + 1) // 2, 3 * k),
        "exact product": (
            count,
            lambda: product(x, y, None, 2 * bits, False, exact, None),
            k * k if k <= 32 else 3 * k * k // 4,  # by halves
            4 * k,
        ),
        "low, checked": (count, lambda: multiply_checked(x, y, bits, False), k * k, 3 * k),
        "mod_add": (count, lambda: mod_add(x_below, y_below, m, False), 0, 3 * k),
        "mod_multiply": (count, lambda: mod_multiply(x, y, m, False), 4 * k * k, 3 * k),
        "mod_power": (few, lambda: mod_power(xs, exponent, m, False), terms, 2 * k),
        "mod_power each": (few, lambda: mod_power(xs, ys, each, False), terms, 4 * k),
        "divmod": (few, lambda: divmod_(xs, ys, False), 0, 4 * k),
    }


def gpu_rows(lengths: tuple[int, ...], most: int) -> list[dict[str, Any]]:
    """Rows of rates, and how much of the limits they are; of powers the rate of Montgomery products too."""
    import cupy

    wait = cupy.cuda.Device().synchronize
    products = ceiling(cupy, wait)
    x = words(cupy, 8, 16 * most, 1)
    to = cupy.empty_like(x)
    copied = 2 * x.nbytes / best(lambda: cupy.copyto(to, x), 5, wait)
    rows: list[dict[str, Any]] = [
        {"table": "limits", "T limb products/s": products / 1e12, "copies, TB/s": copied / 1e12}
    ]
    for bits in lengths:
        for name, (count, run, terms, moved) in gpu_cases(cupy, bits, most).items():
            rate = count / best_on_gpu(cupy, run)
            row = {"table": "rates", "bits": bits, "operation": name, "G numbers/s": rate / 1e9}
            row |= {"of products": rate * terms / products, "of copies": 4 * rate * moved / copied}
            row |= beside(name, bits, rate)
            if name.startswith("mod_power"):
                montgomery = rate * power_products(bits)
                row["G Montgomery products/s"] = montgomery / 1e9
                row |= {f"{key}'s": v for key, v in beside("Montgomery product", bits, montgomery).items()}
            rows.append(row)
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true", help="on a GPU")
    parser.add_argument("--tiny", action="store_true", help="only see that it works")
    methods = cpu.positional_methods()
    parser.add_argument("--method", choices=methods, default=methods[-1], help="of the CPU: the best one")
    options = parser.parse_args()
    lengths = (64,) if options.tiny else BITS if options.gpu else CPU_BITS
    if options.gpu:
        rows = gpu_rows(lengths, 2**8 if options.tiny else 2**20)
    else:
        force(options.method)
        rows = cpu_rows(lengths, 100 if options.tiny else 50_000, options.method)
        long = (4096,) if options.tiny else LONG_BITS
        rows += long_rows(long, 2**10 if options.tiny else 2**17, options.method)
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
