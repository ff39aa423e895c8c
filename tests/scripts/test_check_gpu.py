"""The comparison of whole commands, where several run at a time in one folder."""

from pathlib import Path

import check_gpu
import pytest

import rnsdask as rd


@pytest.mark.slow
def test_a_job_takes_only_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rd.from_ints([3, 1, 2]).to_zarr(tmp_path / "y")
    monkeypatch.setitem(check_gpu.ALL_JOBS, "sort", "sort y -o OUTPUT")
    (tmp_path / "cpu-sort-of-integers").mkdir()
    of_another = tmp_path / "cpu-sort-of-integers" / "0"
    of_another.write_text("is being written")
    found = check_gpu.outcome("sort", tmp_path, "cpu-sort", "--backend", "cpu")
    assert found["status"] == 0
    assert any(place.startswith("OUTPUT/") for place in found)
    assert not any("integers" in place for place in found)
    assert of_another.exists()
    assert not (tmp_path / "cpu-sort").exists()
