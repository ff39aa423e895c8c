"""Signed multiple-precision integers with stored interval evaluations."""
