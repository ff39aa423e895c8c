"""Oracles in plain Python integers, which use nothing of the package.

Ranges and what overflow makes of a result are in `integers`.
"""
