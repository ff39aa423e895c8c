"""Chunks of signed integers whose residues carry an interval of their size."""
