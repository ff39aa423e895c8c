"""Text such as ``a*b + c``: parsed, bounded, and made into lazy arrays."""
