"""Display of arrays: repr, notebooks, xarray, pictures."""

import subprocess
import sys
from typing import Any
from unittest import mock

import dask
import numpy as np
import pytest
import xarray as xr
from conftest import Processor

import rnsdask as rd
from rnsdask.core.integer_text import brief_decimal, to_decimal

LONG = 7**103  # 88 digits


def shown(value: int) -> str:
    """The text of a number among others, from all of its digits."""
    digits = to_decimal(abs(value))
    sign = "-" if value < 0 else ""
    return sign + (digits if len(digits) <= 20 else f"{digits[:5]}…{digits[-5:]} ({len(digits)} digits)")


def lines(x: Any) -> list[str]:
    return repr(x).splitlines()[1:]


SYSTEMS = [
    rd.ModuliSet.for_bits(400),
    rd.RNS(rd.ModuliSet.for_bits(400), signed=True),
    rd.IntervalRNS(rd.ModuliSet.for_bits(400)),
    rd.Positional(400, signed=True),
    rd.PrimeFields(rd.ModuliSet.ntt_primes(400, 64)),
    rd.FermatField(2**28 + 2**22, 16),
]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("chunks", [None, 2])
def test_numbers_in_memory_are_shown(system: Any, chunks: int | None) -> None:
    values = [0, 5, 10**20 - 1, 10**20, 3**90]
    x = rd.from_ints(values, system, chunks=chunks)
    assert " ".join(lines(x)).replace("  ", " ") == f"[{', '.join(map(shown, values))}]"
    assert str(x) == repr(x)
    assert "shape=(5,)" in repr(x).splitlines()[0]


def test_negative_numbers() -> None:
    x = rd.from_ints([-LONG, -1, LONG])
    assert lines(x) == [f"[{shown(-LONG)}, -1, {shown(LONG)}]"]


@pytest.mark.parametrize(
    "value",
    [s * (10**k + d) for k in (1, 19, 20, 21, 22, 23, 30, 500) for d in (-1, 0, 1, 12345) for s in (1, -1)],
)
def test_brief_decimals_agree_with_all_digits(value: int) -> None:
    text, count = brief_decimal(value)
    digits = str(abs(value))
    wanted = (digits, None) if len(digits) <= 20 else (f"{digits[:5]}…{digits[-5:]}", len(digits))
    assert (text.removeprefix("-"), count) == wanted
    assert text.startswith("-") == (value < 0)


def test_long_arrays_are_summarised() -> None:
    x = rd.from_ints(np.arange(1000).reshape(20, 50))
    text = lines(x)
    assert text[0] == "[[0, 1, 2, …, 47, 48, 49],"
    assert text[3] == " …,"
    assert text[-1] == " [950, 951, 952, …, 997, 998, 999]]"
    assert lines(rd.from_ints(np.arange(6).reshape(2, 3))) == ["[[0, 1, 2],", " [3, 4, 5]]"]
    assert lines(rd.from_ints(np.arange(8).reshape(2, 2, 2))) == [
        *("[[[0, 1],", "  [2, 3]],", "", " [[4, 5],", "  [6, 7]]]"),
    ]
    assert lines(rd.from_ints(np.arange(0))) == ["[]"]
    for shape in ((100,), (1000, 2), (3,) * 9, (2,) * 16, (1, 1, 50, 1)):
        words = np.arange(np.prod(shape)).reshape(shape)
        text = repr(rd.from_ints(words, chunks=None))
        assert text.count("[") == text.count("]")
        assert len(text) < 3000


def test_lines_fit_a_terminal() -> None:
    x = rd.from_ints([LONG + i for i in range(30)])
    assert len(lines(x)) > 5
    assert max(map(len, lines(x))) <= 79
    assert lines(x)[1].startswith(f" {shown(LONG + 3)}")


def test_few_numbers_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    x = rd.from_ints(np.arange(10**6), rd.ModuliSet.for_bits(64), chunks=1000)
    converted = []
    decode = rd.RNS.decode
    monkeypatch.setattr(
        rd.RNS, "decode", lambda self, words: converted.append(words.shape[1]) or decode(self, words)
    )
    assert lines(x) == ["[0, 1, 2, …, 999997, 999998, 999999]"]
    assert sum(converted) == 6


def test_numbers_of_many_moduli_are_shown_without_their_tables() -> None:
    value = 3**70_000  # 33399 digits
    x = rd.from_ints([value, -1, -value], chunks=None)
    digits = to_decimal(value)
    one = f"{digits[:5]}…{digits[-5:]} ({len(digits)} digits)"
    assert lines(x) == [f"[{one}, -1, -{one}]"]
    assert ("partial_products" in vars(x.moduli)) is False


def test_what_is_yet_to_be_computed_is_not_shown() -> None:
    x = rd.from_ints([1, LONG], chunks=1)
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("something was computed")):
        for lazy in (x + x, (x + x)[:1], rd.random(rd.ModuliSet.for_bits(64), 5, chunks=5), x[x > 0]):
            assert lines(lazy) == []
            assert "<pre>" not in lazy._repr_html_()
    assert lines((x + x).persist()) == [f"[2, {shown(2 * LONG)}]"]


def test_html_has_the_axes_of_the_user() -> None:
    x = rd.from_ints(np.arange(60).reshape(6, 10), rd.ModuliSet.for_bits(300), chunks=(4, 3))
    for array in (x, x + 0):
        html = array._repr_html_()
        assert "(6, 10)" in html
        assert "<td>(4, 3), 8 chunks</td>" in html
        assert f"({x.system.rows}, 6, 10)" not in html
        assert html.count("<svg") == 1
    assert "<pre>[[0, 1, 2, …, 7, 8, 9]" in x._repr_html_()
    assert "<svg" not in x.compute()._repr_html_()
    assert "<svg" not in rd.from_ints([], rd.ModuliSet.for_bits(64))._repr_html_()


def test_xarray_shows_numbers_in_a_line() -> None:
    x = rd.from_ints([LONG, 2, 3, 4, 5, 6, 7, -LONG], chunks=8)
    digits = str(LONG)
    brief = f"{digits[:5]}…{digits[-5:]}"
    assert x._repr_inline_(40) == f"{brief} 2 3 ... 6 7 -{brief}"
    assert x._repr_inline_(30) == f"{brief} ... -{brief}"
    assert len(x._repr_inline_(5)) <= 5
    assert (x + 0)._repr_inline_(40) == "RNSArray<chunksize=(8,)>"
    assert brief in repr(xr.Dataset({"a": ("i", x)}))
    assert brief in repr(xr.DataArray(x, dims="i"))


def test_results_never_raise() -> None:
    huge = 10**5000
    x = rd.from_ints([huge, 1], chunks=2)
    assert "10000…00000 (5001 digits)" in repr(x)
    for result in (x.reduce("max").compute(), x.compute().reduce("sum")):
        assert "(5001 digits)" in repr(result)
    number = x.max().compute()
    assert repr(number) == repr([number])[1:-1] == "10000…00000 (5001 digits)"
    assert str(number) == "1" + "0" * 5000
    small = x.min().compute()
    assert (repr(small), str(small), f"{small}", repr([small])) == ("1", "1", "1", "[1]")


def test_numbers_of_each_processor_are_shown(on_each_processor: Processor) -> None:
    a = np.arange(-50, 50).reshape(10, 10)
    for system in (rd.RNS(rd.ModuliSet.for_bits(300), True), rd.IntervalRNS(rd.ModuliSet.for_bits(300))):
        x = rd.from_ints(a, system, chunks=None)
        y = type(x)(on_each_processor.xp.asarray(x.words), x.system)
        assert lines(y) == lines(x)
        assert y._repr_inline_(40) == x._repr_inline_(40)


def test_notebooks_show_integers_of_any_length() -> None:
    """Python's limit on digits holds for repr; IPython asks the printer of each item of a list."""
    pytest.importorskip("IPython")
    script = """
import IPython.core.interactiveshell as shell
ip = shell.InteractiveShell.instance()
import rnsdask as rd
x = rd.from_ints([10**5000, -7], chunks=2)
show = lambda value: ip.display_formatter.format(value)[0]["text/plain"]
for value in (x.tolist(), x.compute().max(), x.to_ints(), x.max().compute(), {"a": (10**5000,)}, [1, 2], x):
    print(show(value))
from fractions import Fraction
print(show([Fraction(10**5000, 3)]))
import numpy as np
print(show(np.arange(3)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    one = "10000…00000 (5001 digits)"
    assert done.stdout.splitlines()[:6] == [
        f"[{one}, -7]",
        one,
        f"array([{one}, -7], dtype=object)",
        one,
        f"{{'a': ({one},)}}",
        "[1, 2]",
    ]
    assert done.stdout.splitlines()[-2:] == [f"[Fraction({one}, 3)]", "array([0, 1, 2])"]


# ---- pictures ---------------------------------------------------------------------------------------------


@pytest.fixture
def ax() -> Any:
    pytest.importorskip("matplotlib").use("agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()  # every axis can be drawn
    plt.close(figure)


@pytest.mark.parametrize("chunks", [None, 100])
def test_pictures_of_histograms(chunks: int | None, ax: Any) -> None:
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


def test_pictures_of_logarithms(ax: Any) -> None:
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
    ax.plot(large.log2())


def test_pictures_that_are_refused(ax: Any) -> None:
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
