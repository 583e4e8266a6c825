"""`ropewalk run`: what it warns of before the ranks start, which start all the same."""

import os
import shutil
import sys

import pytest

pytest.importorskip("ropewalk._core")

from support import environment, run


@pytest.fixture
def noted(prefix):
    """noted(PROGRAM, WORD...): what a run that ends with status 0 says of itself."""
    path = str(prefix("mpich"))

    def start(program, *words, **more):
        command = [sys.executable, "-m", "ropewalk", "run", "--mpi", path, *words, program]
        done = run(command, env={**environment(), **more})
        assert done.returncode == 0, done.stderr
        again = run([*command[:4], "--dry-run", *command[4:]], env={**environment(), **more})
        notes = done.stderr.splitlines()
        assert all(
            one.removeprefix("ropewalk run: ") in again.stdout or "PRELOAD" in one for one in notes
        ), again.stdout
        return notes

    return start


def test_nothing_is_noted(noted, program):
    assert noted(program, "--no-preload") == []


def test_a_value_that_cannot_be_understood(noted, program):
    (note,) = noted(program, "--no-preload", ROPEWALK_XPMEM="foo")
    assert note.startswith('ropewalk run: note: ROPEWALK_XPMEM: found "foo", expected auto or off')
    (note,) = noted(program, "--no-preload", "--env", "ROPEWALK_XPMEM=foo")
    assert "ROPEWALK_XPMEM" in note
    (note,) = noted(program, "--no-preload", ROPEWALK_LANES=os.fsdecode(b"\xff"))
    assert "ROPEWALK_LANES" in note
    (note,) = noted(program, "--no-preload", **{os.fsdecode(b"ROPEWALK_\xff"): "1"})
    assert "unknown" in note


@pytest.mark.parametrize("contents", [None, b"nonsense\n", b"\xff\xfe = \xff\n"])
def test_a_profile_that_cannot_be_understood(noted, program, tmp_path, contents):
    path = tmp_path / "profile"
    if contents is not None:
        path.write_bytes(contents)
    (note,) = noted(program, "--no-preload", ROPEWALK_PROFILE=str(path))
    assert note.startswith(f"ropewalk run: note: ROPEWALK_PROFILE: {path}:")


def test_a_profile_beside_another_malformed_setting(noted, program, tmp_path):
    path = tmp_path / "profile"
    path.write_bytes(b"")
    given = {"ROPEWALK_PROFILE": str(path), "ROPEWALK_PROFILE_MACHINE": "all"}
    assert any("ROPEWALK_PROFILE_MACHINE" in note for note in noted(program, **given))


def test_statistics_of_nobody(noted, program, tmp_path):
    (note,) = noted(program, "--plain", "--stats")
    assert "--stats: nothing counts in these ranks" in note and "--no-preload" in note
    (note,) = noted(program, ROPEWALK_PRELOAD=str(tmp_path))
    assert f"ROPEWALK_PRELOAD: '{tmp_path}' has no libraries, expected libropewalk-malloc" in note
    first, second = noted(program, "--stats", ROPEWALK_PRELOAD=str(tmp_path))
    assert first == note and "--stats: nothing counts" in second


@pytest.mark.parametrize("name", ["mpiexec", "mpirun", "mpiexec.hydra", "prterun", "srun"])
def test_a_launcher_as_the_program(noted, program, name):
    launcher = program.with_name(name)
    shutil.copy(program, launcher)
    (note,) = noted(launcher, "--no-preload", "-n", "2")
    assert f"PROGRAM: {name} starts ranks itself" in note
    assert noted(launcher, "--no-preload") == []


@pytest.mark.parametrize("of", ["PMI_", "OMPI_COMM_WORLD_"])
def test_a_launcher_around(noted, program, of):
    words = (program, "--no-preload")
    (note,) = noted(*words, **{f"{of}SIZE": "2", f"{of}RANK": "0"})
    assert f"this is one of 2 ranks that another launcher has started ({of}SIZE)" in note
    assert noted(*words, **{f"{of}SIZE": "2", f"{of}RANK": "1"}) == []
    assert noted(*words, **{f"{of}SIZE": "1"}) == []
    assert noted(*words, **{f"{of}SIZE": "2", "ROPEWALK_SET": "{}"}) == []


def test_a_program_that_is_not_on_path(tmp_path):
    (tmp_path / "hm").write_text("")
    done = run([sys.executable, "-m", "ropewalk", "run", "hm"], cwd=tmp_path)
    assert done.returncode == 127
    assert "PROGRAM: hm: not found on PATH; give its path, as in ./hm" in done.stderr
