"""Exact reductions over huge arrays of huge integers, held in residue number systems.

The names below are imported when first used, so that a command pays only for what it needs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
