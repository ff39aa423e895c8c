"""Summary of a chunk's integers in one pass: count, least, greatest, sum, and lengths in bits."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import zip_longest

from rnsdask.backend import Array, count_each, naming_gpu_memory
from rnsdask.core import rows
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy.chunk_reductions import move_to_reduce, reduce_words


@dataclass(frozen=True)
class Summary:
    """Exact statistics of some integers; the least and the greatest are None without numbers.

    `lengths[b]` counts the magnitudes of b bits.
    """

    count: int
    minimum: int | None
    maximum: int | None
    total: int
    lengths: tuple[int, ...]

    @property
    def mean(self) -> Fraction | None:
        """Arithmetic mean; None without numbers."""
        return Fraction(self.total, self.count) if self.count else None


_NOTHING = Summary(0, None, None, 0, ())


def summarize_chunk(block: Array, *, place: Place, system: NumberSystem, backend: str) -> Summary:
    """Summarize the integers of one chunk."""
    if 0 in block.shape:
        return _NOTHING
    with naming_gpu_memory(f"chunk {place.index}"):
        block = move_to_reduce(block, system, backend)
        lowest, highest, total = (reduce_words(name, block, system) for name in ("min", "max", "sum"))
        lengths = system.apply(rows.bit_length, block).ravel()
        lengths = count_each(lengths, int(lengths.max()) + 1)
    counts = tuple(map(int, lengths.tolist()))
    return Summary(total.count, lowest.value, highest.value, total.value, counts)


def combine_summaries(summaries: Sequence[Summary]) -> Summary:
    """Combine the summaries of the parts of an array."""
    return reduce(combine, summaries, _NOTHING)


def combine(a: Summary, b: Summary) -> Summary:
    """Combine the summaries of two parts of an array."""
    lows, highs = (
        [end for end in ends if end is not None] for ends in ((a.minimum, b.minimum), (a.maximum, b.maximum))
    )
    lengths = tuple(map(sum, zip_longest(a.lengths, b.lengths, fillvalue=0)))
    total, count = a.total + b.total, a.count + b.count
    return Summary(count, min(lows, default=None), max(highs, default=None), total, lengths)
