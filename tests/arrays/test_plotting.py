"""Pictures of numbers: what Matplotlib is given, by its own functions too."""

import sys
from typing import Any
from unittest import mock

import numpy as np
import pytest

import rnsdask as rd

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def ax() -> Any:
    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()  # every axis can be drawn
    plt.close(figure)


@pytest.mark.parametrize("chunks", [None, 100])
def test_histograms(chunks: int | None, ax: Any) -> None:
    a = np.random.default_rng().integers(0, 50, 1000)
    x = rd.from_ints(a, chunks=chunks)
    assert x.plot.hist(bins=[0, 10, 20, 50], ax=ax) is ax
    data = ax.patches[0].get_data()
    assert data.values.tolist() == np.histogram(a, [0, 10, 20, 50])[0].tolist()
    assert data.edges.tolist() == [0, 10, 20, 50]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("numbers", "count")


def test_numbers_beyond_doubles_are_scaled(ax: Any) -> None:
    x = rd.from_ints([0, 2**5000, -(2**4999)])
    x.plot.hist(bins=[-(2**5000), 0, 2**5000], ax=ax)
    data = ax.patches[0].get_data()
    assert data.values.tolist() == [1, 2]
    assert data.edges.tolist() == [-0.5, 0, 0.5]
    assert ax.get_xlabel() == "numbers / 2**5001"
    x.plot.line(ax=ax, marker="o")
    assert ax.lines[0].get_ydata().tolist() == [0, 0.5, -0.25]
    assert ax.get_ylabel() == "number / 2**5001"


def test_logarithms(ax: Any) -> None:
    x = rd.from_ints([2**k for k in range(0, 3000, 10)], chunks=50)
    x.plot.line(log2=True, ax=ax)
    assert ax.lines[0].get_ydata().tolist() == list(range(0, 3000, 10))
    x.plot.hist(bins=10, log2=True, ax=ax)
    assert ax.patches[0].get_data().values.tolist() == [30] * 10
    with pytest.raises(ValueError, match="the one at flat index 1 is not"):
        rd.from_ints([1, 0, 2], chunks=None).plot.line(log2=True, ax=ax)


def test_matplotlibs_own_functions(ax: Any) -> None:
    small = rd.from_ints([1, 2, 2, 9])
    counts, _, _ = ax.hist(small, bins=[0, 2, 10])
    assert counts.tolist() == [1, 3]
    ax.plot(small)
    assert ax.lines[0].get_ydata().tolist() == [1, 2, 2, 9]
    assert rd.from_ints([2**64 - 1]).to_numpy().dtype == np.uint64
    large = rd.from_ints([1, 2**70])
    for draw in (ax.hist, ax.plot):
        with pytest.raises(OverflowError, match=r"x\.plot\.hist\(\)"):
            draw(large)
    ax.hist(large.log2(), bins=3)
    ax.plot(large.log2().compute())


def test_wrong_calls(ax: Any) -> None:
    with pytest.raises(ValueError, match="along one axis"):
        rd.from_ints([[1, 2]]).plot.line(ax=ax)
    with pytest.raises(ValueError, match=r"x\[::3\]\.plot\.line"):
        rd.from_ints(np.arange(2_000_001), chunks=None).plot.line(ax=ax)
    with (
        mock.patch.dict(sys.modules, {"matplotlib": None}),
        pytest.raises(ImportError, match=r"rnsdask\[plot"),
    ):
        rd.from_ints([1]).plot.hist()
    assert not hasattr(rd.FieldArray, "plot")
