"""The paper's tables and figures from the rows of bench_paper.py, beside the paper's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

DETAILS = "MAX, each way"
REFINEMENT = "Refinement steps for powers of two"
BASELINES = ("proposed", "naive", "mixed-radix")
WAYS = ("read", "rnsdask", "proposed", "proposed, interleaved", "naive", "mixed-radix")

PAPER = json.loads((Path(__file__).parent / "paper_figures.json").read_text(encoding="utf-8"))
COUNTERS = ("original", "improved", "floating-point", "fixed-point, F=96", "fixed-point, F=128")


def by_set(rows: list[dict[str, Any]], field: str) -> dict[int, dict[str, Any]]:
    """A field of the measured rows, by number of moduli and way."""
    values: dict[int, dict[str, Any]] = {}
    for row in rows:
        if row.get("table") == DETAILS:
            values.setdefault(row["n"], {})[row["what"]] = row[field]
    return values


def paper_tables(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tables 3 and 4, the gains of Figure 5, and the steps from X = 1 of Figures 2 and 3."""
    times, memory = by_set(rows, "ms"), by_set(rows, "auxiliary_MiB")
    numbers = max((row["numbers"] for row in rows if row.get("table") == DETAILS), default=0)
    tables = [
        {"table": f"Table 3: MAX of {numbers:,} numbers, ms (paper: 5,000,000, RTX 2080)", "n": n}
        | ways
        | {f"paper: {name}": PAPER["Table 3, ms"][str(n)][name] for name in BASELINES}
        for n, ways in times.items()
    ]
    tables += [
        {"table": f"Table 4: auxiliary memory for {numbers:,} numbers, MiB (paper: 5,000,000)", "n": n}
        | {name: value for name, value in ways.items() if name != "read"}
        | {f"paper: {name}": PAPER["Table 4, MiB"][str(n)][name] for name in BASELINES}
        for n, ways in memory.items()
    ]
    tables += [gains(n, ways) for n, ways in times.items()]
    tables += [
        {"table": "Figures 2 and 3: refinement steps from X = 1"}
        | {name: value for name, value in row.items() if name not in ("table", "log2_X")}
        for row in rows
        if row.get("table") == REFINEMENT and row["log2_X"] == 0
    ]
    return tables + [row for row in rows if row.get("table") == DETAILS]


def gains(n: int, times: dict[str, float]) -> dict[str, Any]:
    """How many times as long the others take: than the proposed way, as in Figure 5, and than rnsdask."""

    def ratio(of: dict[str, Any], slow: str, quick: str) -> float | None:
        return of[slow] / of[quick] if of.get(slow) and of.get(quick) else None

    row: dict[str, Any] = {"table": "Figure 5: gains in time", "n": n}
    paper = PAPER["Table 3, ms"][str(n)]
    for name in BASELINES[1:]:
        row[f"proposed over {name}"] = ratio(times, name, "proposed")
        row[f"paper: over {name}"] = ratio(paper, name, "proposed")
    for name in ("proposed", "proposed, interleaved", *BASELINES[1:], "read"):
        row[f"rnsdask over {name}"] = ratio(times, name, "rnsdask")
    return row


# ---- plots -------------------------------------------------------------------------------------------------


def plots(rows: list[dict[str, Any]]) -> dict[str, Callable[[], Any]]:
    """The plots for which there are rows: functions that draw them, by name."""
    found: dict[str, Callable[[], Any]] = {}
    if by_set(rows, "ms"):
        found |= {"times": lambda: draw_times(rows), "gains": lambda: draw_gains(rows)}
    if any(row.get("table") == REFINEMENT for row in rows):
        found["refinement"] = lambda: draw_refinement(rows)
    return found


STYLES = {
    "read": ("0.6", ":", "plain read"),
    "rnsdask": ("tab:blue", "-", "rnsdask"),
    "proposed, interleaved": ("tab:green", "--", "paper: proposed, interleaved"),
    "proposed": ("tab:orange", "-", "paper: proposed"),
    "naive": ("tab:red", "--", "paper: naive"),
    "mixed-radix": ("tab:purple", "-.", "paper: mixed-radix"),
}


def draw_times(rows: list[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    times = by_set(rows, "ms")
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for name, (colour, style, label) in STYLES.items():
        points = [(n, ways[name]) for n, ways in times.items() if name in ways]
        if points:
            axes.plot(
                *zip(*points, strict=True), color=colour, linestyle=style, marker="o", ms=3, label=label
            )
    axes.set(xscale="log", yscale="log", xlabel="number of moduli n", ylabel="time of MAX, ms")
    axes.set_xticks(list(times), [str(n) for n in times], minor=False)
    axes.minorticks_off()
    numbers = max(row["numbers"] for row in rows if row.get("table") == DETAILS)
    axes.set_title(f"Greatest of {numbers:,} numbers, every method on the same machine")
    axes.legend(fontsize=8)
    return figure


def draw_gains(rows: list[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    tables = [gains(n, ways) for n, ways in by_set(rows, "ms").items()]
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    columns = [name for name in tables[0] if " over " in name or name.startswith("paper: over")]
    columns.remove("rnsdask over read")
    width = 0.8 / len(columns)
    for k, name in enumerate(columns):
        at = [i + (k - (len(columns) - 1) / 2) * width for i in range(len(tables))]
        axes.bar(at, [row[name] or 0 for row in tables], width, label=name)
    axes.set_xticks(range(len(tables)), [str(row["n"]) for row in tables])
    axes.axhline(1, color="0.4", linewidth=0.8)
    axes.set(yscale="log", xlabel="number of moduli n", ylabel="times as fast")
    axes.set_title('Gains in time; "paper" are those of Figure 5, of an RTX 2080')
    figure.legend(loc="outside lower center", ncols=3, fontsize=7)
    return figure


def draw_refinement(rows: list[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    sets: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("table") == REFINEMENT:
            sets.setdefault(row["n"], []).append(row)
    height = 2.7 * -(-len(sets) // 2)
    figure = Figure(figsize=(7.2, height), layout="constrained")
    panels = figure.subplots(-(-len(sets) // 2), 2, squeeze=False).ravel()
    for axes, (n, points) in zip(panels, sets.items(), strict=False):
        exponents = [row["log2_X"] for row in points]
        for name, style in zip(COUNTERS, ("--", "-", "-", "-", "-"), strict=True):
            axes.step(
                exponents, [row[name] for row in points], where="mid", linestyle=style, lw=1.2, label=name
            )
        axes.set(xlabel="log2 X", ylabel="refinement steps", title=f"{n} moduli")
    for axes in panels[len(sets) :]:
        axes.remove()
    panels[0].legend(fontsize=7)
    return figure
