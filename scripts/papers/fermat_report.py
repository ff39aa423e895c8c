"""Plot of the rows of bench_fermat.py: transforms modulo one big prime beside those modulo small ones."""

from collections.abc import Callable
from typing import Any

from small_prime_ffts import VARIANTS

Row = dict[str, Any]


def plots(rows: list[Row]) -> dict[str, Callable[[], Any]]:
    """A plot if there are transforms of more than one length."""
    transforms = [row for row in rows if row["table"] == "transforms"]
    several = len({row["N"] for row in transforms}) > 1
    return {"fermat": lambda: draw_transforms(transforms)} if several else {}


def draw_transforms(rows: list[Row]) -> Any:
    """Time of a number over the length, a panel for each field."""
    from matplotlib.figure import Figure

    fields = list(dict.fromkeys(row["field"] for row in rows))
    columns = min(3, len(fields))
    lines = -(-len(fields) // columns)
    figure = Figure(figsize=(2.8 * columns, 2.4 * lines + 0.4), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, field in zip(panels, fields, strict=False):
        chosen = [row for row in rows if row["field"] == field]
        for label, parts in {
            "one big prime": ("p ms",),
            "small primes": ("primes ms",),
            "small primes, mixed radix": ("primes ms", "mixed radix ms"),
            **{f"{name}, mixed radix": (f"{name} ms", "mixed radix ms") for name in VARIANTS},
        }.items():
            points = [
                (row["N"], sum(row[part] for part in parts) * 1e6 / row["N"])
                for row in chosen
                if all(row.get(part) is not None for part in parts)
            ]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", ms=3, label=label)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="N",
            ylabel="ns a number",
            title=f"{field}, {chosen[0]['bits']} bits",
        )
        axes.title.set_fontsize(8)
    for axes in panels[len(fields) :]:
        axes.remove()
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=7)
    return figure
