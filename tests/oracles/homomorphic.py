"""Algorithms of libraries of homomorphic encryption, in Python's integers, written after their sources.

SEAL: native/src/seal/util/{ntt,numth,rns}.cpp, ckks.h, context.cpp (4.x). OpenFHE:
src/core/include/math/{nbtheory-impl.h,hal/intnat/transformnat-impl.h}, lib/math/hal/intnat/mubintvecnat.cpp,
include/lattice/hal/default/dcrtpoly-impl.h (1.5). Lattigo: ring/{ntt,subring,scaling,ring,basis_extension}.go
(6.x). HEonGPU: src/lib/util/util.cu, kernel/switchkey.cu, and src/lib/ntt_merge/ntt_cpu.cu of GPU-NTT.
"""

from collections.abc import Callable


def reversed_bits(x: int, bits: int) -> int:
    return int(format(x, f"0{bits}b")[::-1], 2) if bits else 0


# ---- roots of order 2N -------------------------------------------------------------------------------------


def _any_root(order: int, q: int) -> int:
    return next(
        r for r in (pow(x, (q - 1) // order, q) for x in range(2, q)) if pow(r, order // 2, q) == q - 1
    )


def seal_root(order: int, q: int) -> int:
    """try_minimal_primitive_root: the least of the odd powers of any primitive root."""
    root = current = _any_root(order, q)
    square = root * root % q
    for _ in range(0, order, 2):
        root = min(root, current)
        current = current * square % q
    return root


def openfhe_root(order: int, q: int) -> int:
    """RootOfUnity: the least power to an exponent that has no factor in common with the order."""
    result = _any_root(order, q)
    return min(pow(result, k, q) for k in range(1, order, 2))


def lattigo_root(order: int, q: int, factors: list[int]) -> int:
    """generateNTTConstants: a power of the least generator from 3 on, by the prime factors of q - 1."""
    g = 3
    while any(pow(g, (q - 1) // factor, q) == 1 for factor in factors):
        g += 1
    return pow(g, (q - 1) // order, q)


# ---- transforms --------------------------------------------------------------------------------------------


def seal_transform(a: list[int], q: int, root: int) -> list[int]:
    """NTTTables and DWTHandler.transform_to_rev: powers of the root in reversed order, used one by one."""
    n, bits = len(a), len(a).bit_length() - 1
    powers, power = [1] * n, root
    for i in range(1, n):
        powers[reversed_bits(i, bits)] = power
        power = power * root % q
    values, place, gap, m = list(a), 0, n // 2, 1
    while m < n:
        offset = 0
        for _ in range(m):
            place += 1
            for j in range(offset, offset + gap):
                u, v = values[j], values[j + gap] * powers[place] % q
                values[j], values[j + gap] = (u + v) % q, (u - v) % q
            offset += 2 * gap
        gap, m = gap // 2, 2 * m
    return values


def openfhe_transform(a: list[int], q: int, root: int) -> list[int]:
    """ForwardTransformToBitReverseInPlace."""
    n, bits = len(a), len(a).bit_length() - 1
    table = [0] * n
    for i in range(n):
        table[reversed_bits(i, bits)] = pow(root, i, q)
    values, m, t, logt = list(a), 1, n // 2, bits
    while m < n:
        for i in range(m):
            for j in range(i << logt, (i << logt) + t):
                low, high = values[j], values[j + t] * table[i + m] % q
                values[j], values[j + t] = (low + high) % q, (low - high) % q
        m, t, logt = 2 * m, t // 2, logt - 1
    return values


def lattigo_transform(a: list[int], q: int, root: int) -> list[int]:
    """nttLazy, without its lazy reductions."""
    n = len(a)
    bits = n.bit_length() - 1
    roots = [1] * n
    for j in range(1, n):
        roots[reversed_bits(j, bits)] = roots[reversed_bits(j - 1, bits)] * root % q
    values, t, m = list(a), n, 1
    while m < n:
        t //= 2
        for i in range(m):
            for x in range(2 * i * t, 2 * i * t + t):
                u, v = values[x], values[x + t] * roots[m + i] % q
                values[x], values[x + t] = (u + v) % q, (u - v) % q
        m *= 2
    return values


def gpu_ntt_transform(a: list[int], q: int, root: int, *, cyclic: bool = False) -> list[int]:
    """NTTCPU::ntt, for X**N + 1 with a root of order 2N, or for X**N - 1 with one of order N."""
    n, bits = len(a), len(a).bit_length() - 1
    values, t, m = list(a), n, 1
    while m < n:
        t //= 2
        for i in range(m):
            s = pow(root, reversed_bits(i, bits - 1) if cyclic else reversed_bits(m + i, bits), q)
            for j in range(2 * i * t, 2 * i * t + t):
                u, v = values[j], values[j + t] * s % q
                values[j], values[j + t] = (u + v) % q, (u - v) % q
        m *= 2
    return values


# ---- rescaling by the last prime, of residues of one number ------------------------------------------------


def seal_rescale(residues: list[int], primes: list[int]) -> list[int]:
    """divide_and_round_q_last_inplace; HEonGPU's divide_round_lastq kernels are the same steps."""
    *rest, last = residues
    *kept, d = primes
    half = d >> 1
    last = (last + half) % d
    return [(x - (last % q - half % q)) % q * pow(d, -1, q) % q for x, q in zip(rest, kept, strict=True)]


def openfhe_rescale(residues: list[int], primes: list[int]) -> list[int]:
    """DropLastElementAndScale, with SwitchModulus and its comparison with a half."""
    *rest, last = residues
    *kept, d = primes
    found = []
    for x, q in zip(rest, kept, strict=True):
        difference = abs(q - d)
        if q > d:
            switched = last + (difference if last > d >> 1 else 0)
        else:
            switched = (last - (difference if last > d >> 1 else 0)) % q
        # QlQlInvModqlDivqlModq is ([(Q/q_l)**-1 mod q_l] Q/q_l - 1) / q_l mod q_i, that is -1/q_l.
        found.append((x * pow(d, -1, q) + switched * -pow(d, -1, q)) % q)
    return found


def lattigo_rescale(residues: list[int], primes: list[int], *, floor: bool = False) -> list[int]:
    """DivRoundByLastModulus and DivFloorByLastModulus."""
    *rest, last = residues
    *kept, d = primes
    half = 0 if floor else (d - 1) >> 1
    last = (last + half) % d
    return [(last + q - half % q - x) * -pow(d, -1, q) % q for x, q in zip(rest, kept, strict=True)]


# ---- integers around 0 -------------------------------------------------------------------------------------

CENTRED: dict[str, Callable[[int, int], int]] = {
    "SEAL, HEonGPU: upper_half_threshold": lambda x, q: x - q if x >= (q + 1) >> 1 else x,
    "OpenFHE: qHalf of CKKSPackedEncoding, SwitchModulus": lambda x, q: x - q if x > q >> 1 else x,
    "Lattigo: PolyToBigintCentered": lambda x, q: x - q if x >= q >> 1 else x,
    "Lattigo: ExtendBasisSmallNormAndCenter": lambda x, q: x - q if x > q >> 1 else x,
    "Lattigo: ModUpQtoP": lambda x, q: (x + (q >> 1)) % q - (q >> 1),
}
"""The integer that a library reads a number below q as, by its name there."""
