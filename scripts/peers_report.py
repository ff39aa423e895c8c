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
    found: dict[str, Callable[[], Any]] = {"peers": lambda: draw_peers(timed)} if timed else {}
    return found | ({"summary": lambda: draw_summary(timed)} if gains(timed) else {})


def gains(rows: list[Row]) -> dict[str, dict[str, float]]:
    """The quickest other library's time by this package's, for each length and processor, by operation."""
    found: dict[str, dict[str, float]] = {}
    for table, operation in dict.fromkeys((row["table"], row["operation"]) for row in rows):
        times = {r["library"]: r["ms"] for r in rows if (r["table"], r["operation"]) == (table, operation)}
        peers = [times[name] for name in times if not name.startswith("rnsdask")]
        size, _, bits = table.rpartition(" of ")
        name = f"{operation}, {size.removesuffix(' matrices')}" if "matrices" in size else operation
        for own in ("rnsdask", "rnsdask, GPU"):
            if peers and own in times:
                series = bits + own.removeprefix("rnsdask")
                found.setdefault(series, {})[name] = min(peers) / times[own]
    return found


def draw_summary(rows: list[Row]) -> Any:
    """Draw how many times as fast as the quickest other library it is, narrow enough for a telephone."""
    from matplotlib.figure import Figure

    series = gains(rows)
    operations = list(dict.fromkeys(name for values in series.values() for name in values))
    height = 0.8 / len(series)
    figure = Figure(figsize=(4.8, 1.2 + 0.14 * len(operations) * (1 + len(series))), layout="constrained")
    axes = figure.subplots()
    for k, (name, values) in enumerate(series.items()):
        at = [operations.index(operation) + (k - (len(series) - 1) / 2) * height for operation in values]
        bars = axes.barh(at, [value - 1 for value in values.values()], height, left=1, label=name)
        axes.bar_label(
            bars, [f"{float(f'{value:.2g}'):g}" for value in values.values()], fontsize=7, padding=2
        )
    axes.axvline(1, color="0.3", linewidth=0.8)
    axes.set_yticks(range(len(operations)), operations)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="times as fast as the quickest other library")
    axes.margins(x=0.14, y=0.02)
    axes.xaxis.set_major_formatter("{x:g}")
    figure.legend(loc="outside upper center", ncols=len(series), fontsize=8)
    return figure


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
