"""Chunks of numbers as residues, each in one NumPy or CuPy array, and computation with them, without Dask.

Conventions of this package, of :mod:`.interval_rns` and of :mod:`.positional`, unless a function says more:

- Residues are uint32 of shape (n, *shape), each below its modulus; a matrix of them has the shape (n, N).
  Other systems have words (rows, *shape). Results are on the operands' processor.
- Shapes of several operands broadcast, and a NumPy block of one number also combines with CuPy blocks.
- Limbs are uint32, the least significant first.
- `system` is the numbers' system; where it has a bound, fewer moduli are read.
- `mode` says what happens if an exact result is out of range: ``"raise"`` is an RNSOverflowError,
  ``"wrap"`` the result modulo M, and ``"flag"`` adds a row to it, 1 where it is out of range, else 0.
- `locate` turns the flat index of a number in its chunk into the index that an error names.
"""
