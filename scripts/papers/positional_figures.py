"""Figures of A. Carlessi and S. Kashani for bench_positional_variants.py (EPFL project, 2013, chapter 4).

They give no numbers but registers and which algorithm was quicker.
"""

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


def project_rows() -> list[dict[str, object]]:
    """The project's figures as rows of a table."""
    columns = ("figure", "bits", "it shows", "registers, schoolbook", "registers, Karatsuba")
    table = {"table": "Carlessi and Kashani, 2013"}
    return [table | dict(zip(columns, row, strict=True)) for row in PROJECT]
