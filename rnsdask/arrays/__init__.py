"""Arrays of numbers as users see them, and the ways to make one."""

# Imported together, so that an array of one kind can make one of another, whichever is imported first.
from rnsdask.arrays import field_array, interval_rns_array, positional_array, rns_array  # noqa: F401
from rnsdask.arrays.showing import show_long_integers

show_long_integers()
