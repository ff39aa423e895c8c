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
    """Speedup over workers beside the linear one, a panel for each table, a colour for each call."""
    from matplotlib.figure import Figure

    tables = list(dict.fromkeys(row["table"] for row in rows))
    calls = list(dict.fromkeys(row["what"] for row in rows))
    workers = sorted({row["workers"] for row in rows})
    columns = min(3, len(tables))
    lines = -(-len(tables) // columns)
    figure = Figure(figsize=(1.0 + 2.6 * columns, 0.8 + 2.4 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).ravel()
    handles = {}
    for axes, table in zip(panels, tables, strict=False):
        (handles["linear"],) = axes.plot(workers, workers, color="grey", linestyle=":")
        for call in dict.fromkeys(row["what"] for row in rows if row["table"] == table):
            points = [(r["workers"], r["speedup"]) for r in rows if (r["table"], r["what"]) == (table, call)]
            colour = f"C{calls.index(call)}"
            (handles[call],) = axes.plot(*zip(*points, strict=True), marker="o", ms=3, color=colour)
        axes.set(title=table, xticks=workers)
        axes.title.set_fontsize(9)
    for axes in panels[len(tables) :]:
        axes.remove()
    for axes in panels[max(0, len(tables) - columns) : len(tables)]:
        axes.set_xlabel("workers")
    figure.supylabel("speedup", fontsize=9)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8)
    return figure
