"""Compilation of the kernels that did not come compiled, before they are used."""

from rnsdask.backend import gpu_count
from rnsdask.jobs.progress import metered


def warm(*, shown: bool = False) -> dict[str, int]:
    """Compile all missing kernels for the GPUs of this process into CuPy's cache.

    Returns how many modules it were for each architecture, such as ``"sm_90"``. `shown` shows the progress.
    """
    from rnsdask.backend.cuda import launching

    devices = {launching.capability(index): index for index in reversed(range(gpu_count()))}
    missing = {index: launching.modules_to_compile(index) for index in devices.values()}
    with metered("compiling", sum(map(len, missing.values())), shown=shown) as meter:
        for index, modules in missing.items():
            launching.prepare(modules, index, meter.advance)
    return {f"sm_{capability}": len(missing[index]) for capability, index in sorted(devices.items())}
