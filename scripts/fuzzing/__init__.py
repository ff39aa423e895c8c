"""Differential testing of everything public against exact integers; ``scripts/fuzz.py`` runs it.

`inputs` draws moduli sets, numbers, shapes and chunks, the awkward ones first; `oracles.integers` says what
is right and knows nothing of the package; a `case` holds arrays that operations share; `checking` compares.
The other modules hold the operations: each is a function of a case and a random generator that checks results
and returns how many. A new one needs no more than the decorator `checking.operation`, and its module in
`OPERATION_MODULES` of `runner`.
"""
