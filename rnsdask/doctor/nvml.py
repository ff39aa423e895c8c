"""Facts about a card from NVIDIA's management library, where pynvml (nvidia-ml-py) is installed."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Card:
    """A card, as far as the library tells; None where it does not.

    Attributes
    ----------
    uuid : str
    uncorrected : int
        Errors of its memory since the driver was loaded that ECC could not correct.
    awaits_reset : bool
        Whether rows of its memory are to be replaced when it is reset.
    has_mig : bool
        Whether it is divided into instances (MIG).
    width, most_width : int
        Lanes of its PCIe link now, and at most.
    slowed_by : tuple of str
        Why its clocks are lowered now.
    processes : int
        How many processes compute on it, this one among them.
    """

    uuid: str | None = None
    uncorrected: int | None = None
    awaits_reset: bool | None = None
    has_mig: bool | None = None
    width: int | None = None
    most_width: int | None = None
    slowed_by: tuple[str, ...] = ()
    processes: int | None = None


def read_card(bus: str) -> Card:
    """Return what is known of the card of a PCI bus id, as CUDA writes it."""
    try:
        import pynvml
    except ImportError:
        return Card()

    def ask(function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the answer, or None if this card or driver has none."""
        with suppress(pynvml.NVMLError):
            return function(*arguments)
        return None

    if ask(lambda: (pynvml.nvmlInit(), True)) is None:
        return Card()
    handle = ask(pynvml.nvmlDeviceGetHandleByPciBusId, bus)
    if handle is None:
        return Card()
    kinds = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    mig, rows = ask(pynvml.nvmlDeviceGetMigMode, handle), ask(pynvml.nvmlDeviceGetRemappedRows, handle)
    reasons = ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    causes = {
        "heat": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
        | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
        "its power limit": pynvml.nvmlClocksThrottleReasonSwPowerCap,
        "the power supply": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    }
    running = ask(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return Card(
        uuid=ask(pynvml.nvmlDeviceGetUUID, handle),
        uncorrected=ask(pynvml.nvmlDeviceGetTotalEccErrors, handle, *kinds),
        awaits_reset=None if rows is None else bool(rows[2] or rows[3]),
        has_mig=None if mig is None else mig[0] == 1,
        width=ask(pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        most_width=ask(pynvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
        slowed_by=tuple(name for name, bits in causes.items() if reasons & bits),
        processes=None if running is None else len(running),
    )
