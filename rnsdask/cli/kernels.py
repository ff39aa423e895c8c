"""The command ``kernels``, which lists kernels that came compiled, and compiles others before their use."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import Command
from rnsdask.cli.options import json_option
from rnsdask.cli.printing import CommandError, echo, print_json, print_table, size_text

if TYPE_CHECKING:
    from rich.table import Table

    from rnsdask.backend.cuda.cubins import Entry, Manifest


@click.command(cls=Command)
@click.argument("action", type=click.Choice(["list", "warm"]))
@json_option
def kernels(action: str, as_json: bool) -> None:
    """List the kernels for GPUs, or compile the missing ones.

    list prints those that came compiled with the installation, and what the GPUs of this machine use of them.
    warm compiles all others that common calls need into CuPy's cache (CUPY_CACHE_DIR), side by side, for
    images of containers and before workers start.
    """
    if action == "list":
        _list(as_json)
    else:
        _warm(as_json)


def _list(as_json: bool) -> None:
    from rnsdask.backend import gpu_count
    from rnsdask.backend.cuda.cubins import installed

    manifest = installed()
    gpus = [_gpu(index) for index in range(gpu_count())]
    entries = sorted(manifest.entries.values(), key=lambda entry: (entry.module, entry.defines))
    if as_json:
        print_json(
            {
                "op": "kernels",
                "nvrtc": _version(manifest),
                "architectures": [f"sm_{one}" for one in manifest.architectures],
                "kernels": [_as_json(entry) for entry in entries],
                "gpus": gpus,
            }
        )
        return
    for line in (*_summary(manifest), *map(_gpu_line, gpus)):
        echo(line)
    if not gpus:
        echo("gpu       none that CuPy sees")
    if entries:
        echo("")
        print_table(_table(entries, manifest.architectures))


def _summary(manifest: "Manifest") -> list[str]:
    if not manifest.entries:
        return ["compiled  none: kernels are compiled at first use"]
    lines = [f"compiled  by NVRTC {_version(manifest)}"]
    for one in manifest.architectures:
        sizes = [entry.sizes[one] for entry in manifest.entries.values() if one in entry.sizes]
        lines.append(f"sm_{one:<7}{len(sizes)} modules, {size_text(sum(sizes))}")
    return lines


def _gpu_line(gpu: dict[str, Any]) -> str:
    uses = f"uses {gpu['uses']}" if gpu["uses"] else "uses none of them"
    return (
        f"gpu {gpu['index']:<6}{gpu['architecture']}, {uses}; {gpu['count']} modules to compile at first use"
    )


def _table(entries: Sequence["Entry"], architectures: Sequence[int]) -> "Table":
    """Make a table of the modules: options, and the size of the code for each architecture."""
    from rich.table import Table
    from rich.text import Text

    table = Table("module", "options", box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
    for one in architectures:
        table.add_column(f"sm_{one}", justify="right", no_wrap=True)
    for entry in entries:
        defines = [define.removeprefix("-DRNS_") for define in entry.defines]
        stale = [] if entry.is_current() else ["(source has changed since)"]
        sizes = [size_text(entry.sizes[one]) if one in entry.sizes else "" for one in architectures]
        table.add_row(entry.module, Text(" ".join(defines + stale)), *sizes)
    return table


def _version(manifest: "Manifest") -> str | None:
    return ".".join(map(str, manifest.nvrtc)) if manifest.nvrtc else None


def _as_json(entry: "Entry") -> dict[str, Any]:
    return {
        "module": entry.module,
        "defines": list(entry.defines),
        "is_current": entry.is_current(),
        "cubins": [{"architecture": f"sm_{one}", "bytes": n} for one, n in sorted(entry.sizes.items())],
    }


def _gpu(index: int) -> dict[str, Any]:
    """Describe a GPU: its architecture, the one whose code it uses, and how many modules are missing."""
    from rnsdask.backend.cuda import cubins, launching

    manifest, capability = cubins.installed(), launching.capability(index)
    used = None
    if manifest.is_for_driver(launching.driver()):
        used = cubins.architecture_for(capability, manifest.architectures)
    return {
        "index": index,
        "architecture": f"sm_{capability}",
        "uses": used and f"sm_{used}",
        "count": len(launching.modules_to_compile(index)),
    }


def _warm(as_json: bool) -> None:
    from rnsdask.backend import has_gpu

    if not has_gpu():
        raise CommandError("warm needs CuPy and a GPU: this process sees none")
    from rnsdask.jobs.kernels import warm

    counts = warm(shown=not as_json)
    if as_json:
        made = [{"architecture": name, "count": count} for name, count in counts.items()]
        print_json({"op": "kernels", "compiled": made})
        return
    for name, count in counts.items():
        echo(f"{name}: {count} modules compiled, or found in CuPy's cache")
