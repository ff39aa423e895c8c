"""Tables and plots of the rows of bench_interval_rns.py: Figures 4 to 6 of the addition paper."""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]

DETAILS = "Additions, each way"
DATASETS = ("non-negative", "non-positive", "mixed")
BITS_PER_MODULUS = 16
COPY = "copy"  # the limit, which adds nothing


def by_dataset(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of additions, by dataset in the paper's order."""
    return {
        name: chosen
        for name in DATASETS
        if (chosen := [row for row in rows if row.get("dataset") == name and row["what"] != COPY])
    }


def label(row: Row) -> str:
    """The way and, on a CPU, its threads."""
    threads = row.get("threads")
    return row["what"] if threads is None else f"{row['what']}, {threads} core{'s' * (threads > 1)}"


def title(dataset: str) -> str:
    number = DATASETS.index(dataset) + 1
    return f"Dataset-{number} (Figure {number + 3}): {dataset} inputs"


def interval_rns_tables(rows: list[Row]) -> list[Row]:
    """Millions of additions a second of each dataset, with the ways as columns; then every row."""
    tables: dict[tuple[str, int], Row] = {}
    for dataset, chosen in by_dataset(rows).items():
        for row in chosen:
            facts = {"table": f"{title(dataset)}, million additions/s", "bits": row["bits"]}
            table = tables.setdefault((dataset, row["bits"]), facts)
            table[label(row)] = row["additions_per_s"] / 1e6
    return [*tables.values(), *rows]


def plots(rows: list[Row]) -> dict[str, Callable[[], Any]]:
    return {"interval-rns": lambda: draw_additions(rows)} if by_dataset(rows) else {}


def draw_additions(rows: list[Row]) -> Any:
    """Additions a second over the precision, a panel for each dataset."""
    from matplotlib.figure import Figure

    datasets = by_dataset(rows)
    figure = Figure(figsize=(1.0 + 3.4 * len(datasets), 3.8), layout="constrained")
    panels = figure.subplots(1, len(datasets), squeeze=False, sharey=True).ravel()
    for axes, (dataset, chosen) in zip(panels, datasets.items(), strict=True):
        for name in dict.fromkeys(map(label, chosen)):
            points = [(row["bits"], row["additions_per_s"]) for row in chosen if label(row) == name]
            axes.plot(*zip(*points, strict=True), marker="o", ms=3, label=name)
        axes.set(xlabel="precision, bits", title=title(dataset))
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.title.set_fontsize(8)
    panels[0].set_ylabel("additions a second")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2 * len(datasets), fontsize=7)
    return figure
