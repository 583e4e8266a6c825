"""`ropewalk config`: the table, its origins and errors, as text and as JSON."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("ropewalk._core")

from conftest import make_prefix
from ropewalk import command, nested

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/environment.md"


def shown(capsys, *words, status=0):
    """(standard output, standard error) of the verb."""
    assert command.main(["config", *words]) == status
    return capsys.readouterr()


def as_json(capsys, *words, status=0):
    return json.loads(shown(capsys, *words, "--json", status=status).out)


def one(found, name):
    (row,) = [row for row in found["settings"] if row["name"] == name]
    return row


def test_every_setting_has_a_line_with_its_value(capsys, monkeypatch):
    monkeypatch.setenv("ROPEWALK_TIMEOUT", "5")
    monkeypatch.setenv("COLUMNS", "120")
    text, errors = shown(capsys)
    lines = text.splitlines()
    assert errors == ""
    assert lines[0].split() == ["name", "value", "origin", "scope", "meaning"]
    assert max(map(len, lines)) <= 120
    named = {line.split()[0]: line for line in lines[1:]}
    assert set(named) == {row["name"] for row in rows()}
    assert named["ROPEWALK_TIMEOUT"].split()[1:5] == ["5", "environment", "all", "ranks"]
    assert named["ROPEWALK_PAGES"].split()[1:4] == ["prefer", "default", "rank"]


def rows():
    from ropewalk import _core

    return _core.settings()


def test_the_page_of_docs_has_the_same_names():
    text = PAGE.read_text()
    for row in rows():
        assert f"| `{row['name']}` |" in text


def test_json_has_values_origins_and_unknown_names(capsys, monkeypatch):
    monkeypatch.setenv("ROPEWALK_LANES", "3")
    monkeypatch.setenv("ROPEWALK_FORK", "")  # as if it were not set
    monkeypatch.setenv("ROPEWALK_LANE", "3")
    monkeypatch.setenv("ROPEWALK_TEST_ANYTHING", "1")  # of the tests of the tree
    found = as_json(capsys)
    lanes = one(found, "ROPEWALK_LANES")
    assert (lanes["value"], lanes["origin"], lanes["error"]) == ("3", "environment", "")
    assert (lanes["scope"], lanes["expected"]) == ("all ranks", "auto, or 1 to 64")
    assert one(found, "ROPEWALK_FORK")["origin"] == "default"
    assert one(found, "ROPEWALK_MPI")["scope"] == "command"
    (unknown,) = found["unknown"]
    assert unknown.startswith("ROPEWALK_LANE: unknown") and "ROPEWALK_LANES?" in unknown


def test_what_cannot_be_understood_is_an_error(capsys, monkeypatch):
    monkeypatch.setenv("ROPEWALK_ARENA_BYTES", "much")
    assert one(as_json(capsys, status=1), "ROPEWALK_ARENA_BYTES")["value"] == "much"
    assert (
        'ROPEWALK_ARENA_BYTES: found "much", expected auto, or bytes' in shown(capsys, status=1).err
    )


@pytest.mark.parametrize("name", ["ROPEWALK_TIMEOUT", "timeout", "TIMEOUT"])
def test_one_in_full(capsys, name):
    text = shown(capsys, name).out
    assert text.startswith("ROPEWALK_TIMEOUT\n")
    for part in ("60 (default)", "off, or seconds, 1 to 86400", "the same on all ranks"):
        assert part in text
    assert "docs/explanation/dead-ranks.md" in text and "](" not in text


def test_another_name_is_an_error_with_the_nearest(capsys):
    assert "did you mean ROPEWALK_TIMEOUT?" in shown(capsys, "time-out", status=2).err


def test_what_run_has_set_is_told_apart(capsys, monkeypatch):
    monkeypatch.setenv("ROPEWALK_LANES", "2")
    monkeypatch.setenv("ROPEWALK_STATS", "compare")  # changed since
    given = {"ROPEWALK_LANES": "2", "ROPEWALK_STATS": "1"}
    monkeypatch.setenv(nested.MARK, nested.mark(given, {}))
    found = as_json(capsys)
    assert one(found, "ROPEWALK_LANES")["origin"] == "ropewalk run"
    assert one(found, "ROPEWALK_STATS")["origin"] == "environment"
    assert os.environ["ROPEWALK_LANES"] == "2"


def test_run_reports_unknown_names(capsys, monkeypatch, tmp_path):
    prefix = make_prefix(tmp_path / "mpich", "mpich")
    monkeypatch.setenv("ROPEWALK_TIMOUT", "5")
    words = ["--dry-run", "--no-preload", "--mpi", str(prefix), "--env", "ROPEWALK_XYZZY=1"]
    assert command.main(["run", *words, "/bin/true"]) == 0
    text = capsys.readouterr().out
    assert "# note: ROPEWALK_TIMOUT: unknown" in text and "did you mean ROPEWALK_TIMEOUT?" in text
    assert "# note: ROPEWALK_XYZZY: unknown" in text


def test_a_profile_is_looked_at(capsys, monkeypatch):
    monkeypatch.setenv("ROPEWALK_PROFILE", "nope")
    error = "ropewalk config: ROPEWALK_PROFILE: nope: "
    assert shown(capsys, "profile", status=1).err.startswith(error)


def test_bytes_that_are_not_utf_8(capsys, monkeypatch):
    monkeypatch.setenv("ROPEWALK_LANES", os.fsdecode(b"\xff"))
    monkeypatch.setenv(os.fsdecode(b"ROPEWALK_\xff"), "1")
    monkeypatch.setenv("ROPEWALK_MPI_LIBRARY", os.fsdecode(b"/\xff"))
    assert 'ROPEWALK_LANES: found "\ufffd", expected' in shown(capsys, "lanes", status=1).err
    found = as_json(capsys, status=1)
    assert one(found, "ROPEWALK_MPI_LIBRARY")["value"] == "/\ufffd"
    assert found["unknown"][0].startswith("ROPEWALK_\ufffd: unknown")


def test_it_needs_neither_an_mpi_nor_numpy():
    """In a process of its own, whose modules are counted at the end."""
    script = (
        "import sys; from ropewalk.command import main; status = main(['config']); "
        "sys.exit(status or 'numpy' in sys.modules or 'libmpi' in open('/proc/self/maps').read())"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ROPEWALK_")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
