"""`ropewalk explain`: what it says of calls, halos and thresholds, as text and as JSON."""

import json

import pytest

pytest.importorskip("ropewalk._core")

from ropewalk import _core, command


def shown(capsys, *words, status=0):
    """(standard output, standard error) of the verb."""
    assert command.main(["explain", *words]) == status
    return capsys.readouterr()


def as_json(capsys, *words):
    return json.loads(shown(capsys, *words, "--json").out)


def taken(answer):
    (one,) = [one for one in answer["alternatives"] if one["taken"]]
    return one


def test_a_call_is_explained_by_the_row_that_decides(capsys):
    answer = as_json(capsys, "allreduce", "-s", "1M", "-n", "2", "--memory", "private")
    assert answer["asked"]["size"] == 1 << 20
    assert answer["path"] == "cma"
    assert answer["why"] == "the vector (1M) is at least node.cma_bytes (16K)"
    assert taken(answer)["threshold"] == "node.cma_bytes"
    (smaller,) = answer["smaller"]
    rows = {row["name"]: row for row in answer["thresholds"]}
    most = rows["node.piecewise_alone_bytes"]["value"]
    assert (smaller["bytes"], smaller["path"]) == (most, "staged")
    assert rows["node.cma_bytes"]["value"] == 1 << 14
    assert rows["node.cma_bytes"]["given_by"] == ""
    assert rows["node.cma_bytes"]["origin"]


def test_without_cma_it_is_staged(capsys):
    answer = as_json(capsys, "allreduce", "--memory", "private", "--no-cma")
    assert answer["path"] == "staged"
    (refused,) = [one for one in answer["alternatives"] if one["path"] == "cma"]
    assert refused["why"] == "the kernel does not let ranks read each other"


def test_the_text_names_path_reason_changes_and_origin(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text, errors = shown(capsys, "allreduce", "-s", "1MiB", "-n", "2", "--nodes", "4")
    assert errors == ""
    lines = text.splitlines()
    assert lines[0] == (
        "allreduce, the vector of 1M, 2 ranks on each of 4 nodes, buffers in the arenas"
    )
    assert " ".join(lines[2:4]) == (
        "nodes: a ring of leaders (2 leaders a node, chunks of up to 128K), because the vector "
        "(1M) is at least nodes.ring_bytes (256K)"
    )
    assert "262143 or less" in text
    assert "nodes.ring_bytes  256K   default" in text
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("name", _core.explained_collectives())
def test_every_collective_is_explained(capsys, name):
    for nodes in ("1", "4"):
        answer = as_json(capsys, name.replace("_", "-"), "-s", "4096", "--nodes", nodes)
        assert answer["path"] in ("inlined", "mapped", "cma", "staged", "nodes", "mpi")
        assert taken(answer)["path"] == answer["path"]
        assert answer["assumed"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bcast", "broadcast"),
        ("MPI_Bcast", "broadcast"),
        ("reduce_scatter_block", "reduce_scatter"),
        ("Alltoallv", "alltoallv"),
    ],
)
def test_a_collective_may_have_the_name_that_mpi_gives_it(capsys, name, meant):
    answer = as_json(capsys, name)
    assert answer["asked"]["subject"] == meant
    assert answer["path"] == as_json(capsys, meant)["path"]


def test_the_counts_of_the_mpi_decide_about_blocks_of_any_size(capsys):
    words = ("gatherv", "--nodes", "4", "--crowded")
    assert as_json(capsys, *words)["path"] == "mpi"
    answer = as_json(capsys, *words, "--int-counts")
    assert answer["path"] == "nodes"
    assert answer["why"] == "the MPI's own call, of int counts, begins with an agreement"
    assert "the MPI's counts are ints" in answer["assumed"]


def test_a_profile_changes_the_answer_and_is_named(capsys, monkeypatch, tmp_path):
    profile = tmp_path / "slow.profile"
    profile.write_text("# two sockets\nnode.inlined_bytes = 2K\n")
    before = as_json(capsys, "allreduce", "-s", "1K")
    monkeypatch.setenv("ROPEWALK_PROFILE", str(profile))
    after = as_json(capsys, "allreduce", "-s", "1K")
    assert (before["path"], after["path"]) == ("mapped", "inlined")
    (row,) = [row for row in after["thresholds"] if row["name"] == "node.inlined_bytes"]
    assert (row["value"], row["given_by"]) == (2048, f"{profile}:2")
    assert f" {profile}:2 " in shown(capsys, "allreduce", "-s", "1K").out


def test_a_malformed_profile_is_one_line(capsys, monkeypatch, tmp_path):
    profile = tmp_path / "wrong.profile"
    profile.write_text("node.inlined = 2K\n")
    monkeypatch.setenv("ROPEWALK_PROFILE", str(profile))
    for words in (("allreduce",), ("halo",), ("thresholds",)):
        text, errors = shown(capsys, *words, status=1)
        assert text == ""
        assert errors == (
            f'ropewalk explain: ROPEWALK_PROFILE: {profile}:1: "node.inlined" is unknown, expected '
            "a name that `ropewalk explain thresholds` lists; did you mean node.inlined_bytes?\n"
        )


def test_a_halo_is_measured_where_several_ways_are_possible(capsys):
    answer = as_json(capsys, "halo", "-s", "64K", "--layout", "fields")
    assert answer["path"] == "automatic"
    possible = [one["path"] for one in answer["alternatives"] if one["possible"]]
    assert possible == ["direct", "concurrent", "threaded"]
    assert "? " in shown(capsys, "halo").out


def test_a_halo_that_cannot_be_made(capsys):
    answer = as_json(capsys, "halo", "--strategy", "put", "--layout", "fields")
    assert answer["path"] == "error"
    assert answer["why"] == "the faces are not in buffers of the halo"


def test_a_halo_in_private_memory_is_served(capsys):
    answer = as_json(capsys, "halo", "--strategy", "direct", "--memory", "private")
    assert answer["path"] == "direct"
    assert "copied by the kernel (CMA)" in answer["how"]
    names = [one["name"] for one in answer["thresholds"]]
    assert names[-4:] == [
        "halo.kernel_bytes",
        "halo.kernel_small_pages_bytes",
        "halo.kernel_run_bytes",
        "halo.worker_bytes",
    ]


def test_what_leaves_a_node_is_counted(capsys):
    words = ("halo", "-s", "1K", "-n", "4", "--nodes", "16", "--grid", "8.8")
    answer = as_json(capsys, *words)
    inside = {"crossing": 0, "crossing_bytes": 0}
    # Ranks 0 to 3 are half a row: all their faces up and down leave, and two at the ends.
    assert answer["traffic"] == [
        {"order": "row_major", "faces": 16, "leaving": 10, "bytes": 10 << 10} | inside,
        {"order": "by_node", "faces": 16, "leaving": 8, "bytes": 8 << 10} | inside,
    ]
    text = shown(capsys, *words).out
    assert "8 x 8 ranks" in text
    assert "by_node" in text
    assert "8 of 16 faces, 8K" in text
    assert "cache domain" not in text
    words = ("halo", "-s", "1K", "-n", "64", "--domains", "16", "--grid", "8.8")
    counts = [(one["leaving"], one["crossing"]) for one in as_json(capsys, *words)["traffic"]]
    assert counts == [(0, 160), (0, 128)]
    text = shown(capsys, *words).out
    assert "to another cache domain of the same node:" in text
    assert "128 of 256 faces, 128K" in text
    errors = shown(capsys, "halo", "-n", "4", "--grid", "3.1", status=2)[1]
    assert "grid: has 3 ranks, expected 1 to 6 extents whose product is the 4 ranks" in errors
    assert "expected extents" in shown(capsys, "halo", "--grid", "3x1", status=2)[1]


def test_thresholds_are_listed_and_shown_in_full(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    rows = as_json(capsys, "thresholds")["thresholds"]
    text = shown(capsys, "thresholds").out
    for row in rows:
        assert f"  {row['name']} " in text
        assert row["least"] <= row["value"] <= row["most"]
    full = shown(capsys, "thresholds", "nodes.slices").out
    assert full.splitlines()[0] == "nodes.slices"
    assert "bounds    1 to 16" in full


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("allsum",), "SUBJECT: 'allsum', expected halo, thresholds, barrier"),
        (("allreduce", "-s", "1Q"), "-s/--size: '1Q', expected bytes, as in 4096, 64K or 1M"),
        (("allreduce", "-n", "0"), "ranks: found 0, expected 1 or more on a node"),
        (("allreduce", "--domains", "3"), "domains: found 3, expected 1 to the ranks of a node"),
        (("thresholds", "node.cma"), "NAME: 'node.cma', no threshold (did you mean node.cma_"),
        (("allreduce", "node.cma"), "NAME: 'node.cma', expected behind `thresholds` only"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_one_line(capsys, words, error):
    text, errors = shown(capsys, *words, status=2)
    assert text == ""
    assert errors.startswith(f"ropewalk explain: {error}")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["-s", "99999999T"], "-s/--size: '99999999T', expected at most 1048576T bytes"),
        (["-s", "9" * 5000], "expected at most 1048576T bytes"),
        (["-n", "9" * 20], "expected at most 2147483647"),
        (["--grid", "9" * 20 + ".2"], "expected at most 2147483647"),
    ],
)
def test_numbers_have_bounds(capsys, words, problem):
    assert problem in shown(capsys, "allreduce", *words, status=2).err


def test_a_profile_of_bytes_is_no_traceback(capsys, monkeypatch, tmp_path):
    profile = tmp_path / "profile"
    profile.write_bytes(bytes(range(128, 256)))
    monkeypatch.setenv("ROPEWALK_PROFILE", str(profile))
    error = shown(capsys, "allreduce", status=1).err
    assert error.startswith(f"ropewalk explain: ROPEWALK_PROFILE: {profile}:1: ")
