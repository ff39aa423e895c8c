"""Ask a built documentation site what readers look for: the first three results must hold the right page.

    python scripts/check_search.py build/docs

The scripts that the site sends to a browser search its index here, in QuickJS, as they do there.
"""

import json
import sys
from pathlib import Path
from typing import Any

import quickjs

FIRST = 3  # results that a reader sees without scrolling
HOW_DO_I = "how-do-i#to-"  # a row of a table there

QUERIES = {
    # people who use NumPy, Dask, Zarr, xarray
    "gpu": "clusters",
    "memory limit": "clusters#memory",
    "out of memory": "clusters#memory",
    "dask cluster": "clusters",
    "progress bar": "clusters#seeing-what-it-does",
    "resume": "failures#jobs-that-write-resume",
    "s3": "remote",
    "csv": "inputs#files-on-the-command-line",
    "parquet": "inputs#pandas-arrow-parquet-and-floats",
    "numpy array": HOW_DO_I + "a-numpy-array",
    "xarray": "xarray",
    "save to zarr": HOW_DO_I + "write-a-store",
    "sum by group": HOW_DO_I + "sums-of-groups",
    "np.unique": HOW_DO_I + "distinct-numbers",
    "histogram": "api/generated/rnsdask.histogram",
    "sort": "api/generated/rnsdask.sort",
    "overflow": "growing",
    "install": "getting-started#install",
    "how fast": "speed",
    # number theorists and people of computer algebra
    "modular inverse": HOW_DO_I + "modular-inverses",
    "matrix inverse": HOW_DO_I + "inverses-of-matrices-modulo-any-integer",
    "determinant": HOW_DO_I + "a-determinant",
    "characteristic polynomial": HOW_DO_I + "a-characteristic-polynomial",
    "null space": HOW_DO_I + "null-vectors",
    "gcd": "api/generated/rnsdask.gcd",
    "powmod": HOW_DO_I + "modular-powers",
    "chinese remainder theorem": "glossary#term-Chinese-remainder-theorem",
    "rational reconstruction": "fractions",
    "polynomial multiplication": HOW_DO_I + "products-of-polynomials",
    "sparse matrix": "sparse",
    # people of homomorphic encryption
    "ntt": "api/generated/rnsdask.ntt",
    "fft": "transforms",
    "base conversion": HOW_DO_I + "residues-under-my-moduli",
    "homomorphic encryption": "homomorphic-encryption",
    # what is not here: the line that says so, and who has it
    "smith normal form": HOW_DO_I + "smith-normal-form",
    "lattice reduction": HOW_DO_I + "lattice-reduction-lll",
    "factor integers": HOW_DO_I + "factors-of-integers",
    "primality test": HOW_DO_I + "tests-of-primality",
    "discrete logarithm": HOW_DO_I + "discrete-logarithms",
    "eigenvalues": HOW_DO_I + "eigenvalues",
    "floating point": HOW_DO_I + "floating-point-numbers-of-many-digits",
}
"""Searches as readers type them, and the page, or the place in a page, that answers each."""

BROWSER = """
var window = globalThis, SPHINX_HIGHLIGHT_ENABLED = false;
var document = { getElementById: () => null };
var _ = (text) => text, _ready = () => {};  // as doctools.js has them
"""


def open_search(site: Path) -> quickjs.Context:
    """Return a JavaScript engine that holds the search of a site."""
    engine = quickjs.Context()
    engine.eval(BROWSER)
    for script in ("_static/language_data.js", "_static/searchtools.js", "searchindex.js"):
        engine.eval((site / script).read_text(encoding="utf-8"))
    return engine


def search(engine: quickjs.Context, query: str) -> list[str]:
    """Return the results, best first: pages, with the anchor of a place in them."""
    found: list[list[Any]] = json.loads(
        engine.eval(f"JSON.stringify(Search._performSearch(...Search._parseQuery({json.dumps(query)})))")
    )
    return [page + anchor for page, _, anchor, *_ in reversed(found)]  # the browser shows the last one first


def answers(result: str, wanted: str) -> bool:
    """Return whether a result is the wanted place, or any place in a wanted page."""
    return result == wanted or ("#" not in wanted and result.partition("#")[0] == wanted)


def main() -> int:
    engine = open_search(Path(sys.argv[1]))
    wrong = 0
    for query, wanted in QUERIES.items():
        results = search(engine, query)[:FIRST]
        if not any(answers(result, wanted) for result in results):
            print(f"search for {query!r}: {wanted} is not among {results}", file=sys.stderr)
            wrong += 1
    print(f"{len(QUERIES)} searches, {wrong} without the right page among the first {FIRST} results")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
