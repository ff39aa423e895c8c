"""What is right, in plain Python integers: what the tests compare with. Nothing of the package is used here.

Ranges and what overflow makes of a result are in `fuzzing.oracle`, which the fuzzer shares.
"""
