"""Checks of GPUs: driver, CuPy, each card, its burn-in and its rates."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from rnsdask.backend import gpu_count
from rnsdask.core.messages import size_text
from rnsdask.doctor.burn_in import KINDS, BurnIn, Size, Workload, burn_in
from rnsdask.doctor.data_sheets import Sheet, sheet_of
from rnsdask.doctor.findings import Finding, fault, warning
from rnsdask.doctor.installation import installed_version
from rnsdask.doctor.machine import kernel_cache
from rnsdask.doctor.nvml import Card, read_card

DRIVER_FILE = Path("/proc/driver/nvidia/version")
"""File in which Linux says which NVIDIA driver is loaded."""

CUPY_PACKAGES = ("cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "cupy")

_FIRST_DRIVERS = {13: 580, 12: 525}
"""First drivers of each major version of CUDA."""

_ENOUGH = 0.5
"""Share of a data sheet's rate below which a card is slow."""

_TICK_SECONDS = 0.5
"""Time between two steps of the progress of a burn-in."""


def driver_version(file: Path = DRIVER_FILE) -> str | None:
    """Return the version of the NVIDIA driver that is loaded, or None."""
    try:
        found = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", file.read_text(encoding="utf-8"))
    except OSError:
        return None
    return found[1] if found else None


def extra_for(driver: str) -> str:
    """Return the extra of the package for a driver: ``cu13`` or ``cu12``."""
    major = int(driver.partition(".")[0])
    return next((f"cu{cuda}" for cuda, first in _FIRST_DRIVERS.items() if major >= first), "cu12")


def check_gpus(needed: bool, found: list[int], driver_file: Path = DRIVER_FILE) -> Iterator[Finding]:
    """Check driver, CUDA and CuPy, and each GPU; put the numbers of those that can compute into `found`.

    Without a GPU that is a fault only if one is `needed`.
    """
    driver = driver_version(driver_file)
    packages = [name for name in CUPY_PACKAGES if installed_version(name)]
    if not packages:
        yield _without_cupy(driver, needed)
        return
    if len(packages) > 1:
        names = " ".join(packages)
        way = f"pip uninstall {names}, then install one of them anew"
        yield fault("CuPy", f"{names} are installed over one another", way)
        return
    try:
        from rnsdask.backend.cuda import devices
    except Exception as error:  # libraries of CUDA that are missing, for one
        way = f'pip install "rnsdask[{extra_for(driver or "")}]"' if driver else "install the NVIDIA driver"
        yield fault("CuPy", f"{packages[0]} cannot be imported: {error}", way)
        return
    yield from _check_cuda(packages[0], driver, *devices.cuda_versions())
    try:
        count = devices.count_devices()
    except RuntimeError as error:
        yield _without_gpu(str(error), needed)
        return
    for number in range(count):
        yield _describe(number, devices.describe_device(number))
        found.append(number)
    yield check_kernels()


def _without_cupy(driver: str | None, needed: bool) -> Finding:
    if driver:
        text, way = f"driver {driver} is there, and no CuPy", f'pip install "rnsdask[{extra_for(driver)}]"'
        return (fault if needed else warning)("GPU", text, way)
    text = "neither an NVIDIA driver nor CuPy"
    if needed:
        return fault("GPU", text, 'install the driver, then pip install "rnsdask[cu13]", or leave out --gpu')
    return Finding("GPU", f"{text}: jobs run on the CPU")


def _check_cuda(package: str, driver: str | None, of_driver: int, runtime: int) -> Iterator[Finding]:
    """Compare the CUDA version that the driver takes with that of CuPy's runtime."""
    versions = f"{package} {installed_version(package)}, CUDA {_cuda(runtime)}"
    if not of_driver:
        yield fault("CuPy", f"{versions}, and no NVIDIA driver", "install the driver, or run it where one is")
    elif runtime // 1000 > of_driver // 1000:
        way = f'pip uninstall {package}, then pip install "rnsdask[cu{of_driver // 1000}]"; or a newer driver'
        text = f"{versions}, and driver {driver or ''} takes CUDA {_cuda(of_driver)}"
        yield fault("CuPy", " ".join(text.split()), way)
    else:
        text = f"{versions}; driver {driver or ''} for CUDA {_cuda(of_driver)}"
        yield Finding("CuPy", " ".join(text.split()), facts={"driver": driver, "cuda": _cuda(of_driver)})


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _without_gpu(reason: str, needed: bool) -> Finding:
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        text, way = f"CUDA_VISIBLE_DEVICES={hidden} leaves none: {reason}", "unset CUDA_VISIBLE_DEVICES"
    else:
        text, way = f"CUDA sees none: {reason}", "give the job or the container a GPU (docker run --gpus all)"
    if needed:
        return fault("GPU", text, way)
    return Finding("GPU", f"{text}; jobs run on the CPU")


def _describe(number: int, device: dict[str, Any]) -> Finding:
    """Describe a card, and say what its memory lacks."""
    subject, card = f"GPU {number}", read_card(device["bus"])
    memory = f"{size_text(device['free_bytes'])} of {size_text(device['bytes'])} free"
    text = f"{device['name']}, compute capability {device['capability']}, {memory}, {_place(device, card)}"
    if card.has_mig:
        text += ", divided by MIG"
    facts = {"number": number, **device, "uuid": card.uuid}
    if card.uncorrected:
        text += f"; errors of its memory that ECC could not correct: {card.uncorrected}"
        return fault(subject, text, "take it out of service, and reset it", **facts)
    if card.awaits_reset:
        text += "; rows of its memory are to be replaced"
        return warning(subject, text, "reset it (nvidia-smi --gpu-reset)", **facts)
    if device["free_bytes"] < device["bytes"] // 2:
        return warning(subject, text, "end the processes that nvidia-smi shows on it", **facts)
    return Finding(subject, text, facts=facts)


def _place(device: dict[str, Any], card: Card) -> str:
    return f"at {device['bus']}" + (f", {card.uuid}" if card.uuid else "")


def check_kernels() -> Finding:
    """Say where the kernels of the GPUs come from."""
    from rnsdask.backend.cuda import launching

    missing = max(len(launching.modules_to_compile(index)) for index in range(gpu_count()))
    if not missing:
        return Finding("kernels", "compiled, installed with rnsdask")
    where = f"compiled at first use and kept in {kernel_cache()}"
    return Finding("kernels", f"{missing} modules {where}; rnsdask kernels warm does so now")


# ---- burn-in ----------------------------------------------------------------------------------------------


def check_by_burn_in(
    numbers: Sequence[int],
    seconds: float,
    seed: int,
    advance: Callable[[float], object],
    kinds: Sequence[type[Workload]] = KINDS,
) -> Iterator[Finding]:
    """Compute on all GPUs side by side, and name those that compute wrong; tell `advance` the seconds."""
    with ThreadPoolExecutor(len(numbers)) as pool:
        running = [pool.submit(_burn_in_on, number, seconds, seed, kinds) for number in numbers]
        _await(running, advance)
    from rnsdask.backend.cuda import devices

    for number, future in zip(numbers, running, strict=True):
        device = devices.describe_device(number)
        where = f"{device['name']} {_place(device, read_card(device['bus']))}"
        yield judge(f"GPU {number} burn-in", where, future.result())


def _await(running: list[Future[BurnIn]], advance: Callable[[float], object]) -> None:
    waiting, seconds = set(running), 0.0
    while waiting:
        _, waiting = wait(waiting, _TICK_SECONDS)
        seconds += _TICK_SECONDS
        advance(seconds)


def _burn_in_on(number: int, seconds: float, seed: int, kinds: Sequence[type[Workload]]) -> BurnIn:
    from rnsdask.backend.cuda import devices

    with devices.use_device(number):
        return burn_in("cuda", Size.of_gpu(), seconds, seed, kinds)


def judge(subject: str, where: str, result: BurnIn) -> Finding:
    """Say what came of a burn-in; `where` names the card."""
    counts = ", ".join(f"{count} x {name}" for name, count in result.runs.items())
    facts = {"runs": dict(result.runs), "differences": [str(wrong) for wrong in result.differences]}
    way = "take this card out of service; results that it computed may be wrong"
    if result.differences:
        count = len(result.differences)
        times = "" if count == 1 else f"; {count} rounds were wrong"
        text = f"{where} computes wrong: {result.differences[0]}{times}"
        return fault(subject, text, way, **facts)
    if result.error:
        way = "look for Xid in dmesg, and reset the card or take it out of service"
        if result.lacked_memory:
            way = "end the processes that nvidia-smi shows on it"
        return fault(subject, f"{where} fails: {result.error}", way, **facts)
    return Finding(subject, f"all right: {counts}", facts=facts)


# ---- rates ------------------------------------------------------------------------------------------------


def check_rates(numbers: Sequence[int]) -> Iterator[Finding]:
    """Measure the rates of each GPU, one after the other, and compare them with the data sheets."""
    from rnsdask.backend.cuda import devices

    for number in numbers:
        device = devices.describe_device(number)
        sheet = None if read_card(device["bus"]).has_mig else sheet_of(device["name"])
        measures = {
            "read": (devices.read_rate, "of its memory"),
            "copy": (devices.copy_rate, "from pinned memory of the host"),
            "int8": (devices.int8_rate, "of 8-bit matrices"),
        }
        with devices.use_device(number):
            for kind, (measure, what) in measures.items():
                rate = measure()
                yield compare_rate(f"GPU {number} {kind}", kind, rate, what, sheet, read_card(device["bus"]))


def compare_rate(subject: str, kind: str, rate: float, what: str, sheet: Sheet | None, card: Card) -> Finding:
    """Compare a rate with that of a card's data sheet; less than half is a warning."""
    text, facts = f"{_rate(kind, rate)} {what}", {"rate": rate}
    if sheet is None:
        return Finding(subject, f"{text}; no figure is known of such a card", facts=facts)
    most = getattr(sheet, kind)
    text += f": {rate / most:.0%} of {_rate(kind, most)}, its data sheet's"
    facts["data_sheet_rate"] = most
    if rate >= _ENOUGH * most:
        return Finding(subject, text, facts=facts)
    return warning(subject, text, "; ".join(_causes(kind, card)), **facts)


def _rate(kind: str, rate: float) -> str:
    return f"{rate / 1e12:.3g} TOPS" if kind == "int8" else f"{size_text(float(f'{rate:.3g}'))}/s"


def _causes(kind: str, card: Card) -> list[str]:
    """Name likely causes of a low rate, those that the card itself reports first."""
    causes = []
    if card.processes is not None and card.processes > 1:
        causes.append(f"end other processes ({card.processes} compute on it)")
    if kind == "copy":
        if card.width and card.most_width and card.width < card.most_width:
            causes.append(f"its PCIe link has {card.width} of {card.most_width} lanes: seat it anew")
        causes.append("see that its slot has PCIe lanes enough (nvidia-smi -q -d PCIE), and its NUMA node")
    else:
        if card.slowed_by:
            causes.append(f"its clocks are lowered by {' and '.join(card.slowed_by)}")
        causes.append("look for throttling and other processes (nvidia-smi -q -d PERFORMANCE)")
    return causes
