"""Random positional numbers. No Dask in here."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnsdask.positional.resize import trimmed
from rnsdask.positional.system import Positional


def random_limbs(
    system: Positional, shape: Sequence[int], generator: np.random.Generator
) -> NDArray[np.uint32]:
    """Limbs (k, *shape) of numbers that are uniform in the whole range."""
    words = generator.integers(2**32, size=(system.rows, *shape), dtype=np.uint32)
    words[-1] = trimmed(words[-1], system.top_bits, system.signed)
    return words
