"""Each command that takes --backend: what it prints and writes on a GPU is what it does on the CPU."""

import json
import shlex
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from commands import call, contents, without_measures

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.cli.reductions import REDUCTIONS

MODULI = rd.ModuliSet.for_bits(300)
PRIMES = [4294967291, 2147483647, 65537]

OF_ONE = [*(command.name for command in REDUCTIONS), "prod", "stats", "hist"]
"""Commands that print what they find in one store of integers."""

OF_ORDER = ["cumsum", "cummax", "cummin", "sort"]

COMMANDS = [
    *(f"{name} {store}" for name in OF_ONE for store in ("x", "whole", "intervals", "limbs")),
    *(f"topk {k} {store}" for k in (3, -3) for store in ("x", "intervals", "limbs")),
    "compare x y",
    "compare x y --all",
    *(f"group small --by ones --op {name}" for name in ("sum", "max", "min", "gcd", "count")),
    *(f"group {store} --by x -o out" for store in ("x", "intervals", "limbs")),
    "group elements --by elements -o out",
    "filter x 'x > y' y=y -o out",
    "compare intervals intervals",
    "compare limbs limbs",
    *(f"{name} {store} out" for name in OF_ORDER for store in ("x", "intervals", "limbs")),
    "bound x --write",
    "prod x --overflow wrap",
    "prod ones",
    "hist x --bins 5",
    "sum squares",
    "extend x -o out --bits 500",
    "shrink small -o out --bits 120",
    *(f"convert {store} -o out --to rns" for store in ("intervals", "limbs", "elements")),
    *(f"convert {store} -o out --to interval" for store in ("x", "limbs")),
    *(f"convert {store} -o out --to positional" for store in ("x", "intervals")),
    f"convert x -o out --to field --primes {','.join(map(str, PRIMES))}",
    "convolve small small -o out",
    "convolve elements elements -o out --mode cyclic",
    "ntt lines -o out",
    "ntt lines -o out --inverse --negacyclic",
    "ntt lines -o out --axis 0",
    "powmod powers 65537 1000003 -o out",
    f"powmod powers {2**100 + 1} {2**127 - 1} -o out",
    "powmod powers powers powers -o out",
    "batchgcd powers -o out",
    "eval 'where(a > b, a - b, a + 3*b) % 1000007' a=x b=y -o out",
    "eval 'a*b' a=x b=y --overflow wrap --max --min --sum --argmax --argmin",
    "eval 'a > b' a=x b=y --count",
    "eval 'a*b' a=intervals b=intervals --overflow wrap -o out",
    "eval 'a*b + a' a=limbs b=limbs --overflow wrap -o out",
    "eval 'a*b + a' a=elements b=elements -o out",
    "eval 'mod_power(a, a, a + 2)' a=powers -o out",
    *(f"{name} {store}" for name in ("det", "rank", "charpoly") for store in ("matrices", "parts", "one")),
    *(
        f"{name} {store}"
        for name in ("det", "rank", "charpoly")
        for store in ("fields", "field_parts", "field")
    ),
    *(f"{name} field_parts -o out" for name in ("det", "charpoly", "rref", "nullspace")),
    "rref parts",
    "nullspace parts",
    "rank fields -o out",
    *(f"{name} matrices -o out" for name in ("det", "rank", "charpoly")),
    "det polynomials --variables 1",
    "det field_polynomials --variables 1",
    "solve matrices vectors",
    "solve parts matrices -o out --denominators denominators",
    "solve matrices vectors --any",
    f"solve matrices vectors --modulo {2**61 - 1}",
    "solve fields field_vectors",
    "solve field_parts fields -o out",
    "resultant rows rows_too",
    "resultant field_rows field_rows",
    "resultant matrices parts --variables 2",
]


def make_stores(rng: np.random.Generator) -> None:
    """Stores of each system, of several chunks unless they say otherwise, in the current folder."""

    def drawn(*shape: int, bits: int = 100) -> Any:
        values = [int.from_bytes(rng.bytes(bits // 8)) for _ in range(int(np.prod(shape)))]
        return (np.array(values, object) - (1 << bits - 1)).reshape(shape)

    def signed(values: Any) -> Any:
        return rd.from_ints(values, MODULI, signed=True)

    x, fields = signed(drawn(90)), rd.PrimeFields(PRIMES)
    x.to_zarr("x", chunks=20)
    x.to_zarr("whole")
    signed(drawn(90)).to_zarr("y", chunks=30)
    signed(drawn(40, bits=40)).to_zarr("small", chunks=15)
    (signed(drawn(40, bits=40)) ** 2).to_zarr("squares", chunks=15)
    signed(1 - 2 * (drawn(40) % 2)).to_zarr("ones", chunks=15)
    rd.IntervalRNSArray.from_rns(x).to_zarr("intervals", chunks=20)
    x.to_positional(256).to_zarr("limbs", chunks=20)
    rd.from_ints(abs(drawn(30)) + 2, MODULI).to_positional(128, False).to_zarr("powers", chunks=11)
    elements = rd.random(fields, (60,), seed=1)
    elements.to_zarr("elements", chunks=25)
    rd.random(rd.PrimeFields(rd.ModuliSet.ntt_primes(64, 128)), (8, 64), seed=2).to_zarr(
        "lines", chunks=(4, 16)
    )
    matrices = signed(drawn(4, 6, 6, bits=48))
    matrices.to_zarr("matrices", chunks=(1, 6, 6))
    matrices.to_zarr("parts", chunks=(3, 4, 5))
    matrices[0].to_zarr("one", chunks=4)
    signed(drawn(4, 6, 2, bits=48)).to_zarr("vectors", chunks=(2, 4, 1))
    over = rd.random(fields, (4, 6, 6), seed=3)
    over.to_zarr("fields", chunks=(1, 6, 6))
    over.to_zarr("field_parts", chunks=(3, 4, 5))
    over[0].to_zarr("field", chunks=4)
    rd.random(fields, (4, 6, 2), seed=4).to_zarr("field_vectors", chunks=(2, 4, 1))
    signed(drawn(2, 3, 3, 2, bits=24)).to_zarr("polynomials", chunks=(1, 2, 3, 2))
    rd.random(fields, (2, 3, 3, 2), seed=5).to_zarr("field_polynomials", chunks=(1, 2, 3, 2))
    signed(drawn(5, 4, bits=24)).to_zarr("rows", chunks=(2, 3))
    signed(drawn(5, 3, bits=24)).to_zarr("rows_too", chunks=(2, 3))
    rd.random(fields, (5, 4), seed=6).to_zarr("field_rows", chunks=(2, 3))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        make_stores(np.random.default_rng(20261127))
    return folder


def outcome(command: str, backend: str) -> tuple[Any, Any]:
    """Output of a command, but for measures, and all that it writes."""
    options = ["--overwrite"] if "out" in command.split() else []
    result = call(*shlex.split(command), "--backend", backend, "--json", *options)
    assert result.exit_code in (0, 1), result.output  # what is found may be an error, or a difference
    printed = result.stderr
    if result.stdout:
        printed = without_measures(json.loads(result.stdout))
        found = [printed, *printed.get("results", {}).values()]
        assert {one.pop("backend", backend) for one in found} == {backend}
    return printed, {name: contents(name) for name in ("out", "denominators") if Path(name).exists()}


@pytest.mark.gpu
@pytest.mark.parametrize("command", COMMANDS)
def test_a_gpu_does_what_the_cpu_does(command: str, stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stores)
    assert outcome(command, "cuda") == outcome(command, "cpu")


def test_each_command_that_takes_a_backend_is_tried() -> None:
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    taking = {name for name, one in commands.items() if one and "backend" in {p.name for p in one.params}}
    assert taking == {command.split()[0] for command in COMMANDS}
