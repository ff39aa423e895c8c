"""Tables and plots of the rows of bench_peers.py: the libraries side by side."""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


def peer_tables(rows: list[Row]) -> list[Row]:
    """A row for each operation and number of threads, with the libraries' times in ms as columns.

    "quickest peer by rnsdask" is the quickest other library's time by this package's on the CPU.
    """
    tables: dict[tuple[Any, ...], Row] = {}
    others = []
    for row in rows:
        if "operation" not in row:
            others.append(row)
            continue
        key = (row["table"], row["operation"], row["threads"])
        table = tables.setdefault(key, dict(zip(("table", "operation", "threads"), key, strict=True)))
        table[f"{row['library']}, ms"] = row["ms"]
    return [with_quickest(table) for table in tables.values()] + others


def with_quickest(table: Row) -> Row:
    times = {k: v for k, v in table.items() if k.endswith(", ms") and not k.startswith("rnsdask")}
    own = table.get("rnsdask, ms")
    return table | {"quickest peer by rnsdask": min(times.values()) / own if own and times else None}


def plots(rows: list[Row]) -> dict[str, Callable[[], Any]]:
    timed = [row for row in rows if row.get("by_rnsdask") and row["threads"] == 1]
    return {"peers": lambda: draw_peers(timed)} if timed else {}


def draw_peers(rows: list[Row]) -> Any:
    """Each library's time by this package's, one thread, a panel for each table."""
    from matplotlib.figure import Figure

    tables: dict[str, list[Row]] = {}
    for row in rows:
        if row["library"] != "rnsdask":
            tables.setdefault(row["table"], []).append(row)
    columns = min(2, len(tables))
    lines = -(-len(tables) // columns)
    figure = Figure(figsize=(4.0 * columns, 2.4 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    libraries = list(dict.fromkeys(row["library"] for table in tables.values() for row in table))
    for axes, (name, table) in zip(panels, tables.items(), strict=False):
        operations = list(dict.fromkeys(row["operation"] for row in table))
        width = 0.8 / len(libraries)
        for k, library in enumerate(libraries):
            points = [
                (operations.index(r["operation"]), r["by_rnsdask"]) for r in table if r["library"] == library
            ]
            at = [place + (k - (len(libraries) - 1) / 2) * width for place, _ in points]
            axes.bar(at, [value for _, value in points], width, label=library)
        axes.set_xticks(range(len(operations)), operations, fontsize=7)
        axes.axhline(1, color="0.3", linewidth=0.8)
        axes.set(yscale="log", title=name, ylabel="time by rnsdask's")
        axes.title.set_fontsize(8)
    for axes in panels[len(tables) :]:
        axes.remove()
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(libraries), fontsize=7)
    return figure
