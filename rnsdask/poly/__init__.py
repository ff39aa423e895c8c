"""Polynomials as arrays of coefficients along the last axis, that of degree 0 first, exact."""

from rnsdask.poly.multiply import multiply

__all__ = ["multiply"]
