"""Plot of the rows of bench_scaling.py: how many times the rate of the fewest workers more of them reach."""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


def plots(rows: list[Row]) -> dict[str, Callable[[], Any]]:
    """A plot if there is more than one number of workers."""
    rows = [row for row in rows if "scaling" in row["table"]]
    several = len({row["workers"] for row in rows}) > 1
    return {"scaling": lambda: draw_speedups(rows)} if several else {}


def draw_speedups(rows: list[Row]) -> Any:
    """Speedup over workers beside the linear one, a panel for each table."""
    from matplotlib.figure import Figure

    tables = list(dict.fromkeys(row["table"] for row in rows))
    workers = sorted({row["workers"] for row in rows})
    figure = Figure(figsize=(1.0 + 2.6 * len(tables), 3.2), layout="constrained")
    panels = figure.subplots(1, len(tables), squeeze=False, sharey=True).ravel()
    for axes, table in zip(panels, tables, strict=True):
        chosen = [row for row in rows if row["table"] == table]
        axes.plot(workers, workers, color="grey", linestyle=":", label="linear")
        for operation in dict.fromkeys(row["what"] for row in chosen):
            points = [(row["workers"], row["speedup"]) for row in chosen if row["what"] == operation]
            axes.plot(*zip(*points, strict=True), marker="o", ms=3, label=operation)
        axes.set(xlabel="workers", title=table, xticks=workers)
        axes.title.set_fontsize(8)
    panels[0].set_ylabel("speedup")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=7)
    return figure
