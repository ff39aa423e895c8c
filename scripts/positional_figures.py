"""Figures of others for positional numbers on GPUs, to stand beside our own.

CGBN on an H200, each operation with the number of threads for a number that is best there (4 to 16 of them),
operands in registers for products modulo a number. A. Carlessi and S. Kashani (EPFL semester project, 2013,
chapter 4) give no numbers but registers and which algorithm was quicker.
"""

CGBN = {
    "add": {256: 34.3, 1024: 11.4, 2048: 5.7, 4096: 2.8},
    "low product": {256: 37.8, 1024: 4.5, 2048: 1.17, 4096: 0.40},
    "exact product": {256: 21.2, 1024: 4.1, 2048: 1.11, 4096: 0.36},
    "Montgomery product": {256: 15.6, 1024: 2.5, 2048: 0.67, 4096: 0.21},
    "mod_power": {256: 0.0104, 1024: 0.0006},
}
"""Billions of numbers a second, by operation and bits."""

PROJECT = (
    ("4.1, Kepler", 239, "sums modulo a number in registers are quicker than in global memory", None, None),
    ("4.2, Kepler", 131, "Karatsuba is quicker from 512 blocks and 256 threads on", 25, 34),
    (
        "4.2, Kepler",
        239,
        "schoolbook is quicker for all grids and blocks: Karatsuba's registers spill",
        33,
        49,
    ),
    ("4.3, Fermi", 131, "few blocks of many threads are quicker than many of few", None, None),
    ("4.3, Fermi", 239, "few blocks of many threads are quicker than many of few", None, None),
)
"""Figure and GPU, bits, what it shows, registers of schoolbook and of Karatsuba products."""


def beside(operation: str, bits: int, rate: float) -> dict[str, float]:
    """How many times CGBN's rate a rate is, in numbers a second, where there is one."""
    known = CGBN.get(operation, {}).get(bits)
    return {} if known is None else {"of CGBN": rate / 1e9 / known}


def project_rows() -> list[dict[str, object]]:
    """The project's figures as rows of a table."""
    columns = ("figure", "bits", "it shows", "registers, schoolbook", "registers, Karatsuba")
    table = {"table": "Carlessi and Kashani, 2013"}
    return [table | dict(zip(columns, row, strict=True)) for row in PROJECT]
