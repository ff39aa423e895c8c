"""The report of ``compare`` on elements of prime fields."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.options import Connection
from rnsdask.cli.printing import CommandError, cost_text, counted, echo, print_json, remark, size_text

if TYPE_CHECKING:
    from rnsdask.fields.system import PrimeFields
    from rnsdask.jobs.sources import Source
    from rnsdask.lazy.field_differences import FieldDifferences

_Pattern = tuple[str, int]


def compare_fields(
    sources: "list[Source]",
    arrays: list[Any],
    connection: Connection,
    all_: bool,
    progress: bool,
    as_json: bool,
) -> None:
    """Print where the elements of two stores differ, and how; exit status 1 if they do."""
    from rnsdask.jobs.compute import compute
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting, work_on
    from rnsdask.lazy.field_differences import find_differences, find_patterns

    first, second = arrays
    if not first.system.same_numbers(second.system):
        raise CommandError(first.system.mismatch(second.system))
    words, fields = (first.words, second.words), first.system
    work = work_on(sources[0].info, "compare-fields", sources[1].info)
    amount: dict[str, Any] = {"numbers": first.size, "nbytes": first.nbytes + second.nbytes}
    with connection(work) as client, fitting(work, client, backend="cpu"), measured() as cost:
        lazy = find_differences(*words, fields)
        found = compute(lazy, client, progress=progress, label="compare", **amount).item()
        patterns: frozenset[_Pattern] = frozenset()
        listed, passes = [], 1
        if found.elements and (order := find_patterns(*words, fields)) is not None:
            patterns = compute(order, client, progress=progress, label="compare", **amount).item()
            passes = 2
        if found.elements and all_:
            listed = _differing(*words, fields, client)
            passes += 1
    nbytes = passes * amount["nbytes"]
    cost.record("compare", first.size, nbytes)
    paths = [source.path for source in sources]
    if as_json:
        facts = _as_json(found, first.size, fields, patterns)
        if all_:
            facts["indices"] = [list(index) for index, *_ in listed]
            facts["primes"] = [str(p) for _, p, *_ in listed]
            facts["values"] = [[str(v) for v in pair] for _, _, *pair in listed]
        print_json({"op": "compare", "stores": paths, **facts, **cost.as_dict(), "bytes_read": nbytes})
    else:
        remark(f"{paths[0]} against {paths[1]}: {counted(first.size, 'elements')} of {fields!r}")
        remark(f"{first.size - found.elements} equal, {found.elements} differ")
        for line in _sentences(found, first.shape, fields, patterns):
            remark(line)
        for index, *values in listed:
            echo("\t".join([",".join(map(str, index)), *map(str, values)]))
        remark(f"({size_text(nbytes)} in {cost_text(nbytes, cost)})")
    if found.elements:
        click.get_current_context().exit(1)


def _as_json(
    found: "FieldDifferences", count: int, fields: "PrimeFields", patterns: frozenset[_Pattern]
) -> dict[str, Any]:
    first, primes = found.first, fields.primes
    return {
        "equal": count - found.elements,
        "different": found.elements,
        "residues": {str(p): count for p, count in zip(primes, found.residues, strict=True)},
        "first_difference": first and first.index,
        "first_prime": first and str(primes[first.row]),
        "first_values": first and [str(value) for value in first.values],
        "positions": [[axis.low, axis.high, axis.step] for axis in found.axes],
        "factors": {str(primes[row]): c if c is None else str(c) for row, c in found.factors.items()},
        "patterns": sorted(map(list, patterns)),
        "count": count,
    }


def _sentences(
    found: "FieldDifferences", shape: tuple[int, ...], fields: "PrimeFields", patterns: frozenset[_Pattern]
) -> Iterator[str]:
    """Lines on what differs, and on what makes B of A."""
    import numpy as np

    if found.first is None:
        return
    *outer, last = (int(i) for i in np.unravel_index(found.first.index, shape)) if shape else (0,)
    before, after = found.first.values
    polynomial = [f"polynomial {outer[0] if len(outer) == 1 else tuple(outer)}"] if outer else []
    where = [*polynomial, f"coefficient {last}", f"modulo {fields.primes[found.first.row]}"]
    yield f"first difference: {', '.join(where)}: {before} against {after}"
    for p, count in zip(fields.primes, found.residues, strict=True):
        if count:
            yield f"modulo {p}: {counted(count, 'residues')} differ{'s' * (count == 1)}"
    for number, (axis, length) in enumerate(zip(found.axes, shape, strict=True)):
        if (axis.low, axis.high, axis.step) != (0, length - 1, 1):
            name = "coefficients" if number == len(shape) - 1 else f"axis {number}"
            steps = f", all {axis.low % axis.step} modulo {axis.step}" if axis.step > 1 else ""
            yield f"{name}: {axis.low if axis.low == axis.high else f'{axis.low} to {axis.high}'}{steps}"
    yield from _factor_texts(found, fields, shape[-1] if shape else 1)
    yield from _pattern_texts(patterns, shape[-1] if shape else 1)


def _factor_texts(found: "FieldDifferences", fields: "PrimeFields", length: int) -> Iterator[str]:
    """Lines on factors; one of a single residue says nothing, unless it is -1."""
    primes = {row: fields.primes[row] for row in found.factors}
    if all(found.factors[row] == p - 1 for row, p in primes.items()):
        yield "B is -A where they differ"
        return
    for row, p in primes.items():
        factor = found.factors[row]
        if factor is not None and found.residues[row] > 1:
            values = {"-1": p - 1, "N": length % p, "2**32": 2**32 % p, "2**64": 2**64 % p}
            values |= {f"1/{name}": pow(c, -1, p) for name, c in values.items() if c and name != "-1"}
            text = next((name for name, c in values.items() if c == factor), None)
            yield f"modulo {p}: B is {factor} A where they differ" + f", and {factor} is {text}" * bool(text)


def _pattern_texts(patterns: frozenset[_Pattern], length: int) -> Iterator[str]:
    """The line on the order of coefficients: the simplest change that makes B's polynomials of A's."""
    names = {name for name, _ in patterns}
    begin = "polynomials of B that differ are A's "
    shifts = {name: min(k for found, k in patterns if found == name) for name in names}
    if "bit-reversed" in names:
        yield f"{begin}in bit-reversed order"
    elif "reversed" in names:
        yield f"{begin}from the last coefficient to the first"
    elif "rotated" in names:
        k = shifts["rotated"]
        place = f"i + {k}" if 2 * k <= length else f"i - {length - k}"
        yield f"{begin}rotated: coefficient i is A's {place}, modulo {length}"
    elif shifts.get("multiplied by x", length) != length:
        yield f"{begin}times x**{shifts['multiplied by x']} modulo x**{length} + 1"
    elif "reordered" in names:
        yield f"{begin}with coefficients in another order"


def _differing(a: Any, b: Any, fields: "PrimeFields", client: Any) -> list[tuple[Any, ...]]:
    """Return index, prime and both residues of each place where words differ."""
    import numpy as np

    from rnsdask.jobs.compute import compute
    from rnsdask.lazy.field_differences import list_differences

    places, *sides = compute(list_differences(a, b), client, label="compare")
    rows, *index = (axis.tolist() for axis in np.unravel_index(places, a.shape))
    primes = [fields.primes[row] for row in rows]
    found = zip(zip(*index, strict=True), primes, *(side.tolist() for side in sides), strict=True)
    return sorted(found)
