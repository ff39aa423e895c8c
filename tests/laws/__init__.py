"""Laws of arrays of numbers: one statement of each, for every number system, processor, layout and chunking.

A `System` says what the laws have to know of a number system; a law is a function of a `Case`, which draws
numbers, the adversarial ones first, and makes arrays of them. What is right is said by Python's integers:
`Range` says what the system makes of a result out of range, and nothing of the package is asked.

`LAWS` hold for every number system, `SUBJECTS` for some kinds. The suite checks them with few numbers
(`tests/test_laws.py`), and ``scripts/fuzz.py`` for as long as it is told, with greater shapes and any moduli.
"""

from importlib import import_module

from laws.case import LAWS as LAWS
from laws.case import LAYOUTS as LAYOUTS
from laws.case import SUBJECTS as SUBJECTS
from laws.case import Case as Case
from laws.case import Numbers as Numbers
from laws.case import System as System
from laws.case import check as check

for _name in (
    *("ring", "order", "division", "reductions", "shapes", "collections", "conversions", "expressions"),
    *("matrices", "limbs", "fields", "linear_algebra", "polynomials", "series", "sparse"),
    *("pipelines", "files"),
):
    import_module(f"laws.{_name}")
