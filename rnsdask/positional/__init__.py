"""Positional numbers of any fixed precision, as limbs, in one NumPy or CuPy array."""
