"""Pages and plots of docs/benchmarks, from the results of bench_all.py and nothing else."""

import ast
import importlib.util
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fermat_report
import interval_rns_report
import paper_report
import peers_report
import scaling_report
from benchmarking import cell, markdown, tables_of

Row = dict[str, Any]

SCRIPTS = Path(__file__).resolve().parent
FOLDERS = SCRIPTS, SCRIPTS / "papers"
OF_A_RUN = ("date", "commit", "load")  # in the record of the machine

HEADINGS = {
    "bench_arith.py": "Arithmetic, comparison, division, scans",
    "bench_chunks.py": "Arrays in chunks",
    "bench_convolve.py": "Convolution",
    "bench_costs.py": "Calls that may cost more than they seem",
    "bench_eliminations.py": "One great matrix",
    "bench_fermat.py": "Fermat fields",
    "bench_groups.py": "Sums and maxima of groups",
    "bench_interval_rns.py": "Additions with intervals, and the paper's",
    "bench_jobs.py": "Whole commands",
    "bench_linalg.py": "Linear algebra",
    "bench_long_numbers.py": "Few long numbers",
    "bench_modular.py": "Ways to multiply residues",
    "bench_ntt.py": "Number-theoretic transforms",
    "bench_paper.py": "MAX by published methods",
    "bench_peers.py": "Beside gmpy2, python-flint and NumPy",
    "bench_pipelines.py": "Whole pipelines, and power series",
    "bench_positional.py": "Positional numbers",
    "bench_positional_variants.py": "Other forms of positional numbers",
    "bench_products.py": "Products by transforms",
    "bench_protocols.py": "Workers that exchange chunks",
    "bench_reduce.py": "MAX, MIN and SUM in memory",
    "bench_reduce.py zarr": "MAX, MIN and SUM of a store",
    "bench_resultant.py": "A resultant, step by step",
    "bench_scaling.py": "More and more workers",
    "bench_sparse.py": "Sparse matrices",
    "bench_starts.py": "Starts of commands",
    "bench_storage.py": "Reading a store",
    "bench_trees.py": "Batch gcd and modular products",
}
"""The heading of each script, or of a script with its first argument."""

CAPTIONS = {
    "summary": "One thread, and the GPU if any, beside the quickest of gmpy2, python-flint and NumPy.",
    "times": "MAX by rnsdask, by published methods and by a plain read of the same residues.",
    "scaling": "Speedup by more workers of a Dask cluster.",
    "fermat": "Transforms of Fermat fields, beside those of small primes.",
    "interval-rns": "Additions of signed numbers with intervals, beside GMP's.",
    "gains": "Published methods and rnsdask beside one another.",
    "refinement": "Steps that bound X = 1, by published methods and here.",
    "peers": "Every library's time divided by rnsdask's on one thread.",
}
"""Captions of pictures, in the order of a page."""

FACTS = {
    "cpu": "CPU",
    "gpu": "GPU",
    "gpu_memory_GiB": "GPU memory, GiB",
    "cuda_driver": "CUDA of the driver",
    "cuda_runtime": "CUDA that kernels are compiled with",
    "driver": "driver of the GPU",
    "system": "operating system",
}
"""Names of facts of a machine, in words; the others are names of libraries."""

INDEX = """# Machines side by side

The table shows MAX on each machine; the pages of the machines have all else. To measure another one:

    pip install -e ".[bench]"            # in a checkout
    python scripts/bench_all.py          # the CPU
    python scripts/bench_all.py --gpu    # the GPU

`scripts/bench_all.py` writes these pages from the `.json` files beside them; do not edit them. Every time
is the median of calls after a warm-up; *spread* is (greatest - least) / median of these calls, *calls* is
how many they were, *load* how many programs wanted to run when the script ended. The limit is measured in
the same run: *read* and *plain read* go over the same residues and do nothing with them. What a column
means is said by the script that is named above the table. The paper's methods are for GPUs: on a CPU they
are scalar code in a plain loop, with directed rounding done in software, beside vectorised loops.

MAX of random numbers, in milliseconds ([scripts/papers/bench_paper.py](../../scripts/papers/bench_paper.py)):

| machine | n | numbers | plain read | rnsdask | proposed | proposed, interleaved | naive | mixed-radix |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class View:
    """How the rows of a benchmark are shown: the tables made of them, and plots by name."""

    tables: Callable[[list[Row]], list[Row]] = lambda rows: rows
    plots: Callable[[list[Row]], dict[str, Callable[[], Any]]] = lambda _: {}


VIEWS = {
    "bench_fermat.py": View(plots=fermat_report.plots),
    "bench_interval_rns.py": View(interval_rns_report.interval_rns_tables, interval_rns_report.plots),
    "bench_paper.py": View(paper_report.paper_tables, paper_report.plots),
    "bench_peers.py": View(peers_report.peer_tables, peers_report.plots),
    "bench_scaling.py": View(plots=scaling_report.plots),
}


def view_of(run: dict[str, Any]) -> View:
    return VIEWS.get(run["script"], View())


def machine_name(machine: dict[str, Any]) -> str:
    """The GPU's name, or the CPU's with its threads; no host's."""
    if "gpu" in machine:
        return str(machine["gpu"])
    name = re.sub(r"\(.*?\)|\bCPU\b|\bProcessor\b|@.*", " ", machine["cpu"])
    return f"{' '.join(name.split())}, {machine['threads']} threads"


def machine_slug(machine: dict[str, Any]) -> str:
    """Name of a machine for file names."""
    return re.sub(r"[^a-z0-9]+", "-", machine_name(machine).lower()).strip("-")


def can_draw() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def render(folder: Path) -> list[Path]:
    """Write the pages and plots of all results in a folder; needs matplotlib. Returns the pages."""
    for path in results_in(folder):
        for run in json.loads(path.read_text(encoding="utf-8"))["runs"]:
            save_plots(view_of(run).plots(run.get("rows", [])), folder, f"{path.stem}-")
    pages = pages_of(folder)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)


def results_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def save_plots(plots: Mapping[str, Callable[[], Any]], folder: Path, prefix: str = "") -> None:
    """Write figures, each under its name, in a folder that is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in plots.items():
        save_plot(draw, folder, prefix + name)


def save_plot(draw: Callable[[], Any], folder: Path, name: str) -> None:
    """Write a figure as SVG, the same bytes for the same figures."""
    import matplotlib as mpl

    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.size": 9,
        "axes.grid": True,
        "grid.alpha": 0.3,
    }
    with mpl.rc_context({**style, "axes.spines.top": False, "axes.spines.right": False}):
        draw().savefig(folder / f"{name}.svg", metadata={"Date": None})


def pages_of(folder: Path) -> dict[Path, str]:
    """The text of each page: one for each machine, and the index."""
    results = {path: json.loads(path.read_text(encoding="utf-8")) for path in results_in(folder)}
    pages = {path.with_suffix(".md"): page(result, path.stem) for path, result in results.items()}
    lines = [line for path, result in results.items() for line in index_lines(result, path.stem)]
    pages[folder / "README.md"] = INDEX + "\n".join(lines) + "\n"
    return pages


def index_lines(result: dict[str, Any], stem: str) -> list[str]:
    lines = []
    for run in result["runs"]:
        if run["script"] != "bench_paper.py":
            continue
        rows = run.get("rows", [])
        numbers = {row["n"]: row["numbers"] for row in rows if "numbers" in row}
        for n, times in paper_report.by_set(rows, "ms").items():
            cells = [f"[{machine_name(result['machine'])}]({stem}.md)", str(n), f"{numbers[n]:,}"]
            cells += [cell(times.get(name)) for name in paper_report.WAYS]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def page(result: dict[str, Any], stem: str) -> str:
    """The page of one machine."""
    lines = [f"# {machine_name(result['machine'])}", ""]
    drawn = {name for run in result["runs"] for name in view_of(run).plots(run.get("rows", []))}
    for name in sorted(drawn, key=list(CAPTIONS).index):
        lines += [f"![{CAPTIONS[name]}]({stem}-{name}.svg)", "", CAPTIONS[name], ""]
    lines += ["[All machines, and what is measured how](README.md)", "", "## The machine", ""]
    facts = [f"| {FACTS.get(name, name)} | {value} |" for name, value in result["machine"].items()]
    lines += ["| | |", "|---|---|", *facts, ""]
    for run in result["runs"]:
        lines += section(run)
    return "\n".join(lines).rstrip() + "\n"


def heading(run: dict[str, Any]) -> str:
    """Return what a run measured, in words, or the name of a script that is gone."""
    script, arguments = run["script"], run["arguments"].split()
    words = HEADINGS.get(" ".join([script, *arguments[:1]])) or HEADINGS.get(script, script)
    return f"{words}, one thread" if arguments[-2:] == ["--threads", "1"] else words


def section(run: dict[str, Any]) -> list[str]:
    """The heading and tables of one run."""
    lines = [f"## {heading(run)}", "", purpose(run["script"]), ""]
    command = f"`{run['script']} {run['arguments']}".rstrip() + "`"
    if run["outcome"] != "done":
        return [*lines, f"{command}: **{run['outcome']}**", ""]
    facts = ", ".join(f"{name} {run['machine'][name]}" for name in OF_A_RUN if name in run["machine"])
    lines += [f"{command}: {facts}, {run['seconds']:.0f} s in all, {run['warm_ups']} warm-up.", ""]
    for name, table in tables_of(view_of(run).tables(run.get("rows", []))).items():
        lines += [f"**{name[0].upper()}{name[1:]}**", ""] if name else []
        lines += [*markdown([{key.replace("_", " "): row[key] for key in row} for row in table]), ""]
    return lines


def purpose(name: str) -> str:
    """The first sentence of a script's description, or no text where the script is gone."""
    found = [path for folder in FOLDERS if (path := folder / name).exists()]
    text = ast.get_docstring(ast.parse(found[0].read_text(encoding="utf-8"))) if found else ""
    return (text or "").partition("\n\n")[0].replace("\n", " ")
