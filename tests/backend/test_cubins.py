"""Kernels that come compiled: what they are made of, which a GPU takes, and what is compiled instead."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import build_cubins
import nvrtc
import pytest

from rnsdask.backend import cuda
from rnsdask.backend.cuda import cubins, layout, sources, variants
from rnsdask.backend.cuda.ntt_shapes import matrix_shape
from rnsdask.constants import byte_proof_constants
from rnsdask.core.moduli import ModuliSet

MODULES = sorted(Path(cuda.__file__).parent.glob("*.py"))
SCRIPT = Path(build_cubins.__file__)
LIBRARY = nvrtc.find_library()
needs_nvrtc = pytest.mark.skipif(LIBRARY is None, reason="there is no NVRTC")
CACHED = (sources.kernels_directory, sources.whole_source, cubins.identity_of, cubins.installed)


def forget() -> None:
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the kernels' folder, in the place of the installed one."""
    folder = tmp_path / "kernels"
    for part in ("include", "cuda"):
        shutil.copytree(sources.kernels_directory() / part, folder / part)
    monkeypatch.setattr(sources, "kernels_directory", lambda: folder)
    for function in CACHED[1:]:
        function.cache_clear()
    yield folder
    monkeypatch.undo()
    forget()


def identities() -> dict[tuple[str, tuple[str, ...]], str]:
    return {module: cubins.identity_of(*module) for module in cubins.declared_modules(90)}


# ---- sources -----------------------------------------------------------------------------------------------


def test_text_holds_each_header_once() -> None:
    for name in sources.source_names():
        text = sources.whole_source(name)
        assert "#include" not in text, name
        assert "#pragma once" not in text, name
        starts = re.findall(r'^#line 1 "(.*)"$', text, re.MULTILINE)
        assert len(starts) == len(set(starts)), name
        assert starts[0] == f"cuda/{name}.cu"
        assert str(sources.kernels_directory()) not in text, name
        assert set(sources.source(name).splitlines()) - set(text.splitlines()) <= {
            line for line in sources.source(name).splitlines() if line.startswith("#include")
        }


def test_lines_of_messages_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "inner.cuh").write_text("#pragma once\nint inner;\n")
    (tmp_path / "outer.cuh").write_text('#pragma once\n#include "inner.cuh"\nint outer;\n')
    source = tmp_path / "x.cu"
    source.write_text('#include "outer.cuh"\n#include "inner.cuh"\n#include <host>\nint last;\n')
    found, name, number = {}, "", 0
    for line in sources.inline(source).splitlines():
        if placed := re.fullmatch(r'#line (\d+) "(.*)"', line):
            number, name = int(placed[1]), placed[2]
            continue
        found[line] = name, number
        number += 1
    assert found["int inner;"] == ("inner.cuh", 2)
    assert found["int outer;"] == ("outer.cuh", 3)
    assert found["int last;"] == ("x.cu", 4)
    assert found["#include <host>"] == ("x.cu", 3)


def test_changed_header_makes_its_own_modules_stale(checkout: Path) -> None:
    before = identities()
    header = checkout / "include" / "rns" / "gcd.cuh"
    header.write_text(header.read_text() + "// changed\n")
    for function in CACHED[1:3]:
        function.cache_clear()
    after = identities()
    assert {module for module, _ in before if before[module, _] != after[module, _]} == {"positional_gcd"}


def test_header_of_a_header_makes_its_modules_stale(checkout: Path) -> None:
    before = identities()
    header = checkout / "cuda" / "elimination_panel.cuh"
    text = '#include "elimination_panel.cuh"'
    includers = [p for p in (checkout / "cuda").glob("*.cuh") if text in p.read_text()]
    direct = {p.stem for p in (checkout / "cuda").glob("*.cu") if text in p.read_text()}
    through = {
        p.stem
        for p in (checkout / "cuda").glob("*.cu")
        if any(f'#include "{h.name}"' in p.read_text() for h in includers)
    }
    header.write_text(header.read_text() + "// changed\n")
    for function in CACHED[1:3]:
        function.cache_clear()
    after = identities()
    assert {module for module, _ in before if before[module, _] != after[module, _]} == direct | through


def test_identities_tell_options_and_modules_apart() -> None:
    found = identities()
    assert len(set(found.values())) == len(found)
    assert cubins.identity("text", ("-a", "-b")) != cubins.identity("text", ("-a-b",))


# ---- options -----------------------------------------------------------------------------------------------


def macros(module: str) -> set[str]:
    """Names that a source takes of the compiler's options."""
    text = sources.whole_source(module)
    return set(re.findall(r"^#ifn?def (RNS_\w+)", text, re.MULTILINE))


def test_options_are_made_in_one_place() -> None:
    """A launch with other options than the declared kind would not be compiled beforehand, nor checked."""
    for path in MODULES:
        literals = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        found = [node.value for node in literals if str(node.value).startswith("-DRNS_")]
        assert not found or path.name == "variants.py", path


def launches() -> Iterator[tuple[Path, ast.Call]]:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("launch") and node.args:
                yield path, node


def test_every_launch_with_options_is_declared() -> None:
    """Sources that a launch gives options have their variants, and all others are compiled without."""
    with_options, without = set(), set()
    for _, call in launches():
        first = call.args[0]
        names = {keyword.arg for keyword in call.keywords}
        if isinstance(first, ast.Constant) and first.value in sources.source_names():
            is_general = "defines" in names or None in names or ast.unparse(call.func) != "launching.launch"
            (with_options if is_general else without).add(first.value)
    declared = {name for name, options in variants.VARIANTS.items() if options != ((),)}
    by_way = {"positional_multiply", "positional_karatsuba"}  # named beside their options, in a _Way
    assert with_options <= declared
    assert declared <= with_options | by_way
    assert not without & {name for name, options in variants.VARIANTS.items() if () not in options}


def test_variants_are_of_macros_that_sources_have() -> None:
    taking = {name for name in sources.source_names() if macros(name)}
    assert taking - set(variants.VARIANTS) == {"eliminate_whole"}  # by no cluster, as its header has it
    assert set(variants.VARIANTS) <= taking
    for module, options in variants.VARIANTS.items():
        assert len(set(options)) == len(options), module
        text = sources.whole_source(module)
        for define in {define for defines in options for define in defines}:
            name = define.removeprefix("-D").partition("=")[0]
            assert re.search(rf"\b{name}\b", text), (module, define)


def test_fermat_fields_are_those_declared() -> None:
    fields = tuple(map(layout.field_options, layout.COMMON_FIELDS))
    assert variants.VARIANTS["fermat"] == variants.VARIANTS["fermat_fft"] == fields


def test_proofs_of_common_moduli_come_compiled() -> None:
    for bits in (64, 128, 256, 1024, 4096, 8192):
        tables = byte_proof_constants(ModuliSet.for_bits(bits), 0, 2 ** (bits - 2)).tables
        for is_kept in (True, False):
            options = variants.proof_options(tables.bytes, tables.words, tables.is_wide, is_kept)
            assert options in variants.VARIANTS["byte_proof"], bits


def test_shapes_of_matrices_are_those_of_all_gpus() -> None:
    """The least and the most shared memory of a block, from sm_80 on."""
    for log in range(7, 12):
        for field, word in variants.FIELDS.items():
            for most in (99 * 1024, 227 * 1024):
                options = variants.transform_options(matrix_shape(log, 5, most, word), field)
                assert options in variants.VARIANTS["ntt_columns"]


# ---- architectures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        (75, None), (80, 80), (86, 86), (89, 89), (90, 90), (100, 100), (103, 100), (120, 120), (121, 120),
        (70, None), (87, None), (88, 86), (101, None), (110, None), (130, None),
    ],
)  # fmt: skip
def test_architecture_of_a_gpu(capability: int, expected: int | None) -> None:
    assert cubins.architecture_for(capability, cubins.ARCHITECTURES) == expected


def test_architecture_of_few() -> None:
    assert cubins.architecture_for(89, [80, 90]) == 80
    assert cubins.architecture_for(80, [86, 89]) is None
    assert cubins.architecture_for(90, []) is None
    assert cubins.architecture_for(87, [80, 87]) == 87
    assert cubins.architecture_for(88, [80, 87]) == 80


def test_clusters_and_overlapped_passes_are_for_the_gpus_that_have_them() -> None:
    assert not variants.is_launched("ntt_overlapped", (), 100)
    assert not variants.is_launched("eliminate_panel", variants.cluster_options(2), 89)
    assert variants.is_launched("eliminate_panel", variants.cluster_options(1), 80)
    assert ("ntt_overlapped", variants.VARIANTS["ntt_overlapped"][0]) in cubins.declared_modules(90)


# ---- manifest ----------------------------------------------------------------------------------------------


def manifest_of(folder: Path, module: str = "scan", nvrtc: tuple[int, int] = (12, 9)) -> cubins.Manifest:
    entry = cubins.Entry(module, (), cubins.identity_of(module, ()), {80: 5, 90: 6})
    return cubins.Manifest(folder, nvrtc, {entry.identity: entry})


def test_manifest_is_read_as_written(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path)
    manifest.write()
    assert cubins.read_manifest(tmp_path) == manifest
    assert manifest.architectures == [80, 90]


def test_folder_without_manifest_has_no_kernels(tmp_path: Path) -> None:
    manifest = cubins.read_manifest(tmp_path / "none")
    assert manifest.find("scan", (), 90, 13000) is None
    assert manifest.architectures == []


def test_file_of_a_module(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path)
    found = manifest.find("scan", (), 89, 12040)
    assert found is not None
    assert found.parent == tmp_path / "sm_80"
    assert found.name.startswith("scan-")
    assert manifest.find("scan", ("-DX",), 90, 13000) is None
    assert manifest.find("sum", (), 90, 13000) is None
    assert manifest.find("scan", (), 120, 13000) is None


def test_drivers_older_than_the_compiler_take_no_code(tmp_path: Path) -> None:
    assert manifest_of(tmp_path, nvrtc=(13, 0)).find("scan", (), 90, 12090) is None
    assert manifest_of(tmp_path, nvrtc=(13, 0)).find("scan", (), 90, 13000) is not None
    assert manifest_of(tmp_path, nvrtc=(12, 9)).find("scan", (), 90, 12020) is not None


def test_edited_source_takes_no_code(checkout: Path, tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path)
    (entry,) = manifest.entries.values()
    assert entry.is_current()
    source = checkout / "cuda" / "scan.cu"
    source.write_text(source.read_text() + "\n")
    for function in CACHED[1:3]:
        function.cache_clear()
    assert manifest.find("scan", (), 90, 13000) is None
    assert not entry.is_current()
    source.unlink()
    for function in CACHED[1:3]:
        function.cache_clear()
    assert not entry.is_current()


# ---- builds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()), ("none", ()), ("all", cubins.ARCHITECTURES), ("90", (90,)), ("sm_90; 80", (80, 90)),
    ],
)  # fmt: skip
def test_architectures_of_the_variable(text: str, expected: tuple[int, ...]) -> None:
    assert build_cubins.wanted_architectures(text) == expected


def built_by_script(folder: Path, value: str | None) -> subprocess.CompletedProcess[str]:
    """Run the script as a build does: with a Python that has no libraries."""
    command = [sys.executable, "-S", "-E", str(SCRIPT), str(folder / "cubin")]
    named = {} if value is None else {"RNSDASK_CUDA_ARCHITECTURES": value}
    environment = {**named, "CUDA_HOME": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("value", [None, "none"])
def test_build_without_kernels_needs_no_library(value: str | None, tmp_path: Path) -> None:
    done = built_by_script(tmp_path, value)
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "cubin").iterdir()) == []


def test_wrong_architectures_end_the_build(tmp_path: Path) -> None:
    done = built_by_script(tmp_path, "hopper")
    assert done.returncode == 1
    assert done.stderr == (
        "error: RNSDASK_CUDA_ARCHITECTURES is a list such as 80;90, or all, or none, got 'hopper'\n"
    )


@needs_nvrtc
def test_build_of_a_module(tmp_path: Path) -> None:
    assert LIBRARY is not None
    compiler = nvrtc.NVRTC(LIBRARY)
    output, kept = tmp_path / "cubin", tmp_path / "kept"
    output.mkdir()
    kept.mkdir()
    (kept / "old").write_bytes(b"of an earlier source")
    manifest = build_cubins.build(output, kept, compiler, [90], "divide")
    assert cubins.read_manifest(output) == manifest
    assert manifest.nvrtc == compiler.version
    ((entry),) = manifest.entries.values()
    assert (entry.module, entry.defines, entry.is_current()) == ("divide", (), True)
    cubin = (output / cubins.file_name(entry, 90)).read_bytes()
    assert nvrtc.compiled_entry_points(cubin) == sources.entry_points("divide")
    assert entry.sizes == {90: len(cubin)}
    assert len(list(kept.iterdir())) == 1
    files = [path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file()]
    assert sorted(files) == ["manifest.json", f"sm_90/divide-{entry.identity[:16]}.cubin"]
    # Once more: of what is kept.
    (before,) = kept.iterdir()
    before.write_bytes(b"kept")
    shutil.rmtree(output)
    output.mkdir()
    again = build_cubins.build(output, kept, compiler, [90], "divide")
    assert (output / cubins.file_name(entry, 90)).read_bytes() == b"kept"
    assert [entry.sizes for entry in again.entries.values()] == [{90: 4}]


@needs_nvrtc
def test_messages_of_the_compiler_name_file_and_line(checkout: Path) -> None:
    assert LIBRARY is not None
    header = checkout / "cuda" / "grid.cuh"
    line = len(header.read_text().splitlines()) + 1
    header.write_text(header.read_text() + "int wrong = missing;\n")
    with pytest.raises(nvrtc.CompilationError, match=rf"cuda/grid\.cuh\({line}\): error"):
        build_cubins.compile_task(nvrtc.NVRTC(LIBRARY), ("divide", (), 90))


# ---- on a GPU ----------------------------------------------------------------------------------------------

on_gpu = pytest.mark.gpu


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], cubins.Manifest]:
    """Return a function that compiles a source for the GPU, and has launches find it and nothing else."""
    from rnsdask.backend.cuda import launching

    if LIBRARY is None:
        pytest.skip("there is no NVRTC")

    def build(module: str) -> cubins.Manifest:
        output = tmp_path / "cubin"
        output.mkdir()
        compiler = nvrtc.NVRTC(str(LIBRARY))
        if not (major := compiler.version[0]) <= launching.driver() // 1000:
            pytest.skip(f"the driver runs no code of CUDA {major}")
        manifest = build_cubins.build(output, tmp_path / "kept", compiler, [launching.capability(0)], module)
        monkeypatch.setattr(cubins, "installed", lambda: manifest)
        return manifest

    return build


def raw_module(module: str) -> Any:
    from rnsdask.backend.cuda import launching

    return launching.raw_module(module, (), 0)


@on_gpu
def test_code_of_a_file_has_the_same_kernels(
    built: Callable[[str], cubins.Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    with monkeypatch.context() as context:  # what was installed may have come compiled
        context.setattr(cubins, "installed", lambda: cubins.read_manifest(tmp_path / "none"))
        of_source = raw_module("transpose")
    built("transpose")
    of_file = raw_module("transpose")
    assert of_file.file_path is not None
    assert of_source.file_path is None
    name = min(sources.entry_points("transpose"))
    assert of_file.get_function(name).num_regs > 0
    assert of_source.get_function(name).num_regs > 0
    assert of_file.get_function(name).binary_version // 10 == cupy.cuda.runtime.deviceGetAttribute(75, 0)


@on_gpu
def test_results_of_a_file_and_of_a_source(built: Callable[[str], cubins.Manifest]) -> None:
    """In new processes, for this one has its kernels loaded."""
    manifest = built("scan")
    program = (
        "import sys, json, numpy as np, cupy\n"
        "from pathlib import Path\n"
        "from rnsdask.backend.cuda import cubins, keyed, launching\n"
        "folder = Path(sys.argv[1])\n"
        "cubins.installed = lambda: cubins.read_manifest(folder)\n"
        "x = np.random.default_rng(1).integers(0, 2**62, 100_000).astype(np.uint64)\n"
        "found = keyed.running_maximum(cupy.asarray(x)).get()\n"
        "path = launching.raw_module('scan', (), 0).file_path\n"
        "print(json.dumps([path is not None, bool((found == np.maximum.accumulate(x)).all())]))\n"
    )
    for folder, is_file in ((manifest.folder, True), (manifest.folder / "none", False)):
        command = [sys.executable, "-P", "-c", program, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == [is_file, True]


@on_gpu
def test_edited_source_is_compiled(built: Callable[[str], cubins.Manifest], checkout: Path) -> None:
    built("scan")
    assert raw_module("scan").file_path is not None
    source = checkout / "cuda" / "scan.cu"
    source.write_text(source.read_text() + "// edited\n")
    for function in CACHED[1:3]:
        function.cache_clear()
    assert raw_module("scan").file_path is None


@on_gpu
def test_threads_compile_modules_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> None:
    from rnsdask.backend.cuda import launching

    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cubins, "installed", lambda: cubins.read_manifest(tmp_path))
    modules = ["scan", "divide", "transpose", "candidates"]
    for name in modules:  # other texts, which no process has loaded
        source = checkout / "cuda" / f"{name}.cu"
        source.write_text(source.read_text() + f"// {tmp_path}\n")
    for function in CACHED[1:3]:
        function.cache_clear()
    monkeypatch.setattr(launching, "loaded_modules", {})
    done: list[int] = []
    launching.prepare([(name, ()) for name in modules], 0, lambda: done.append(1))
    assert len(done) == 4
    with ThreadPoolExecutor(8) as pool:
        names = [(name, min(sources.entry_points(name))) for name in modules] * 4
        list(pool.map(lambda one: launching.load(*one), names))
    launching.prepare([(name, ()) for name in modules], 0, lambda: done.append(1))
    assert len(done) == 4
