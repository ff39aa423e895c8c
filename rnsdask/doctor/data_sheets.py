"""Rates of known cards, from the makers' data sheets."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """Greatest rates of a card.

    Attributes
    ----------
    read : float
        Bytes a second of its memory.
    int8 : float
        Operations a second on dense matrices of 8 bits.
    copy : float
        Bytes a second of its PCIe link, one way.
    """

    read: float
    int8: float
    copy: float


_PCIE_3, _PCIE_4, _PCIE_5 = 16e9, 32e9, 64e9
"""Bytes a second of 16 lanes, rounded up."""

SHEETS = {
    r"B200": Sheet(8e12, 4500e12, _PCIE_5),
    r"H200 NVL": Sheet(4.8e12, 1671e12, _PCIE_5),
    r"H200": Sheet(4.8e12, 1979e12, _PCIE_5),
    r"H100 NVL": Sheet(3.9e12, 1671e12, _PCIE_5),
    r"H100 PCIe": Sheet(2.0e12, 1513e12, _PCIE_5),
    r"H100": Sheet(3.35e12, 1979e12, _PCIE_5),
    r"A100.*80GB": Sheet(1.93e12, 624e12, _PCIE_4),
    r"A100": Sheet(1.55e12, 624e12, _PCIE_4),
    r"A10\b": Sheet(0.6e12, 250e12, _PCIE_4),
    r"L40S": Sheet(0.864e12, 733e12, _PCIE_4),
    r"L40": Sheet(0.864e12, 362e12, _PCIE_4),
    r"L4\b": Sheet(0.3e12, 242e12, _PCIE_4),
    r"T4\b": Sheet(0.32e12, 130e12, _PCIE_3),
    r"RTX 5090": Sheet(1.79e12, 838e12, _PCIE_5),
    r"RTX 4090": Sheet(1.01e12, 661e12, _PCIE_4),
    r"RTX 3090": Sheet(0.936e12, 284e12, _PCIE_4),
}
"""Data sheets by patterns of names, the first that fits."""


def sheet_of(name: str) -> Sheet | None:
    """Return the data sheet of a card of a name, as CUDA gives it, or None for one that is not known."""
    return next((sheet for pattern, sheet in SHEETS.items() if re.search(rf"\b(?:{pattern})", name)), None)
