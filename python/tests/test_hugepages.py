"""`ropewalk hugepages` against a made-up sysfs, and the helper's checks of its arguments."""

import multiprocessing
import os
import pathlib
import shutil
import subprocess

import pytest

from ropewalk import command, hugepages
from ropewalk.errors import CommandError

MIB = 1 << 20
HELPER = pathlib.Path(__file__).resolve().parents[2] / "packaging/hugepages/ropewalk-hugepages.c"


def make_pools(root, sizes=(2048, 1048576), total=10, free=8):
    for size in sizes:
        folder = root / f"sys/kernel/mm/hugepages/hugepages-{size}kB"
        folder.mkdir(parents=True)
        values = {"nr": total, "free": free, "resv": 1, "surplus": 0, "nr_overcommit": 3}
        for name, value in values.items():
            (folder / f"{name}_hugepages").write_text(f"{value}\n")
    return root


def total(root, size=2048):
    return int((root / f"sys/kernel/mm/hugepages/hugepages-{size}kB/nr_hugepages").read_text())


@pytest.fixture
def root(tmp_path):
    return make_pools(tmp_path)


def test_read(root):
    pool = hugepages.read(2 * MIB, root)
    assert (pool.total, pool.free, pool.reserved, pool.overcommit) == (10, 8, 1, 3)
    assert pool.available == 8 - 1 + 3
    assert hugepages.read(1 << 20, root) is None


@pytest.mark.parametrize(
    ("text", "pages"), [("64", 64), ("64M", 32), ("1G", 512), ("1GiB", 512), ("4096k", 2)]
)
def test_pages_of(text, pages):
    assert hugepages.pages_of(text, 2 * MIB) == pages


@pytest.mark.parametrize("text", ["0", "-1", "x", "3M", "1.5G", "", "64B", "0G"])
def test_pages_of_wrong(text):
    with pytest.raises(CommandError, match=r"^N: "):
        hugepages.pages_of(text, 2 * MIB)


def test_reserve_and_release(root):
    change = hugepages.reserve(5, 2 * MIB, root)
    assert (change.done, change.total, total(root)) == (5, 15, 15)
    assert "5 pages of 2M were reserved by ropewalk" in "\n".join(hugepages.status_lines(root))
    hugepages.reserve(2, 2 * MIB, root)
    (change,) = hugepages.release(root)
    assert (change.done, total(root)) == (7, 10)
    assert hugepages.release(root) == []
    assert not (root / "run/ropewalk").exists()


def test_release_leaves_what_others_added(root):
    hugepages.reserve(5, 2 * MIB, root)
    (root / "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").write_text("20\n")
    hugepages.release(root)
    assert total(root) == 15


def in_sysfs(root, name, value=None):
    file = root / f"sys/kernel/mm/hugepages/hugepages-2048kB/{name}_hugepages"
    if value is not None:
        file.write_text(f"{value}\n")
    return int(file.read_text())


@pytest.fixture
def kernel(root, monkeypatch):
    """Changes the made-up pool as the kernel does: pages in use become surplus when the pool
    shrinks, and surplus is taken first when it grows, up to `most` pages in all."""
    limit = {"most": 10_000}

    def write(where, page_bytes, pages):
        total, free, surplus = (in_sysfs(root, name) for name in ("nr", "free", "surplus"))
        used = total - free
        if pages > total - surplus:
            now = min(max(total, pages), limit["most"])
            surplus = max(0, now - pages)
        else:
            now = max(pages, used)
            surplus = now - pages
        for name, value in (("nr", now), ("free", now - used), ("surplus", surplus)):
            in_sysfs(root, name, value)

    monkeypatch.setattr(hugepages, "_write", write)
    return limit


def ended(root):
    """Those who used pages have ended: the kernel frees the surplus."""
    lasting = in_sysfs(root, "nr") - in_sysfs(root, "surplus")
    for name, value in (("nr", lasting), ("free", lasting), ("surplus", 0)):
        in_sysfs(root, name, value)


def test_kernel_gives_fewer(root, kernel):
    kernel["most"] = 12
    change = hugepages.reserve(5, 2 * MIB, root)
    assert (change.asked, change.done) == (5, 2)
    assert "fragmented" in "\n".join(hugepages.reserve_lines(change))


def test_pages_in_use_are_given_back_once(root, kernel):
    hugepages.reserve(64, 2 * MIB, root)
    in_sysfs(root, "free", 0)
    (change,) = hugepages.release(root)
    assert (change.asked, change.done, change.total, change.in_use) == (64, 64, 74, 64)
    assert "64 of them are in use" in "\n".join(hugepages.release_lines([change]))
    assert hugepages.release(root) == []
    ended(root)
    assert hugepages.release(root) == []
    assert total(root) == 10


def test_surplus_of_others_does_not_stay(root, kernel):
    for name, value in (("nr", 1010), ("free", 0), ("surplus", 1000)):
        in_sysfs(root, name, value)
    change = hugepages.reserve(4, 2 * MIB, root)
    assert (change.done, in_sysfs(root, "surplus")) == (4, 996)
    hugepages.release(root)
    ended(root)
    assert total(root) == 10


def test_each_job_gives_back_its_own(root):
    hugepages.reserve(5, 2 * MIB, root, "1")
    hugepages.reserve(7, 2 * MIB, root, "2")
    hugepages.reserve(1, 2 * MIB, root)
    assert hugepages.reserved(root) == {2 * MIB: 13}
    (change,) = hugepages.release(root, job="2")
    assert (change.done, total(root)) == (7, 16)
    assert hugepages.release(root, job="2") == []
    (change,) = hugepages.release(root)
    assert (change.done, total(root)) == (6, 10)


def test_a_number_of_pages_beyond_the_pool(root, kernel):
    (change,) = hugepages.release(root, pages=50)
    assert (change.done, total(root)) == (10, 2)
    assert "no more pages" in "\n".join(hugepages.release_lines([change]))


def _reserve_often(root):
    for _ in range(20):
        hugepages.reserve(1, 2 * MIB, root)


def test_several_at_once(root):
    start = multiprocessing.get_context("fork").Process
    children = [start(target=_reserve_often, args=(root,)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert total(root) == 10 + 80
    assert hugepages.reserved(root) == {2 * MIB: 80}


def test_a_lock_that_is_held(root, monkeypatch):
    monkeypatch.setattr(hugepages, "_LOCK_SECONDS", 0.05)
    with hugepages._alone(root), pytest.raises(CommandError, match="another process has changed"):
        hugepages.reserve(1, 2 * MIB, root)
    hugepages.reserve(1, 2 * MIB, root)


def test_what_the_kernel_refuses(root, monkeypatch):
    monkeypatch.setattr(hugepages, "_folder", lambda root, size: str(root / "nowhere"))
    with pytest.raises(CommandError, match="the kernel refuses 7 pages"):
        hugepages._write(root, 2 * MIB, 7)


def test_unknown_size(root):
    with pytest.raises(CommandError, match="--page-size"):
        hugepages.reserve(1, 4 * MIB, root)


def test_ordinary_user_is_told_what_to_set_up(root, monkeypatch):
    monkeypatch.setattr(hugepages, "may_write", lambda size, root: False)
    monkeypatch.setattr(hugepages, "find_helper", lambda: None)
    with pytest.raises(CommandError) as error:
        hugepages.reserve(5, 2 * MIB, root)
    for word in ("nr_hugepages", "hugepagesz=2M hugepages=15", "ropewalk-hugepages"):
        assert word in str(error.value)


def test_status_command(capsys):
    assert command.main(["hugepages", "status"]) == 0
    assert capsys.readouterr().out


# ---- the helper ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def helper(tmp_path_factory):
    """helper(configuration) -> run(*arguments): compiled for a tree of its own."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    top = tmp_path_factory.mktemp("helper")
    program = top / "ropewalk-hugepages"
    flags = ["-O1", "-Wall", "-Wextra", "-Wshadow", "-Werror", f'-DROPEWALK_TEST_ROOT="{top}"']
    subprocess.run([compiler, *flags, "-o", program, HELPER], check=True)
    make_pools(top)
    (top / "etc/ropewalk").mkdir(parents=True)
    file = top / "etc/ropewalk/hugepages.conf"

    def configured(text="minimum_2M = 4\nmaximum_2M = 100\n", mode=0o644):
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
            file.chmod(mode)
        in_sysfs(top, "nr", 10)
        in_sysfs(top, "surplus", 0)

        def run(*arguments):
            return subprocess.run(
                [program, *arguments], capture_output=True, text=True, env={}, timeout=30
            )

        run.root = top
        return run

    return configured


def test_helper_sets_the_pool(helper):
    run = helper()
    done = run("set", "20", "2M")
    assert (done.returncode, done.stdout, done.stderr) == (0, "20\n", "")
    assert str(total(run.root)).startswith("20")


def test_helper_sets_the_minimum(helper):
    run = helper("minimum_2M = 14\nmaximum_2M = 100\n")
    done = run("set", "minimum", "2M")
    assert (done.returncode, done.stdout, done.stderr) == (0, "14\n", "")
    assert total(run.root) == 14


def test_helper_counts_no_surplus(helper):
    run = helper()
    in_sysfs(run.root, "surplus", 3)
    done = run("set", "20", "2M")
    assert (done.returncode, done.stdout) == (3, "17\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["set"],
        ["set", "5"],
        ["set", "5", "2M", "more"],
        ["set", "-5", "2M"],
        ["set", "+5", "2M"],
        ["set", " 5", "2M"],
        ["set", "5 ", "2M"],
        ["set", "0x5", "2M"],
        ["set", "5;id", "2M"],
        ["set", "", "2M"],
        ["set", "99999999999999999999", "2M"],
        ["set", "least", "2M"],
        ["set", "5", "4M"],
        ["set", "5", "../../2M"],
        ["reserve", "5", "2M"],
        ["status", "x"],
    ],
)
def test_helper_refuses_the_command_line(helper, arguments):
    run = helper()
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert total(run.root) == 10


@pytest.mark.parametrize(
    ("pages", "word"), [("101", "above the maximum"), ("3", "below the minimum")]
)
def test_helper_keeps_to_the_limits(helper, pages, word):
    run = helper()
    done = run("set", pages, "2M")
    assert done.returncode == 1
    assert word in done.stderr
    assert total(run.root) == 10


@pytest.mark.parametrize(
    ("text", "mode", "word"),
    [
        (None, 0o644, "cannot be opened"),
        ("", 0o644, "no maximum"),
        ("maximum_2M = 100\n", 0o666, "nobody else writes"),
        ("maximum_2M = 100\n", 0o664, "nobody else writes"),
        ("maximum_2M = 100 200\n", 0o644, "a line is not"),
        ("maximum_2M = -1\n", 0o644, "a line is not"),
        ("maximum_3M = 1\n", 0o644, "a line is not"),
        ("anything\n", 0o644, "a line is not"),
        ("maximum_2M = 999999999999\n", 0o644, "a line is not"),
        ("maximum_1G = 5\n", 0o644, "no maximum"),
    ],
)
def test_helper_wants_a_sound_configuration(helper, text, mode, word):
    run = helper(text, mode)
    done = run("set", "5", "2M")
    assert done.returncode == 1
    assert word in done.stderr
    assert total(run.root) == 10


def test_helper_follows_no_links(helper):
    run = helper()
    file = run.root / "etc/ropewalk/hugepages.conf"
    file.rename(run.root / "elsewhere")
    file.symlink_to(run.root / "elsewhere")
    assert run("set", "5", "2M").returncode == 1
    assert total(run.root) == 10


def test_helper_comments_and_status(helper):
    run = helper("# limits\n\n  maximum_2M = 50 # pages\n")
    done = run("status")
    assert done.returncode == 0
    assert "2M 10 pages, 8 free, 0 to 50 allowed" in done.stdout
    assert "1G 10 pages, 8 free, no limit configured" in done.stdout


def test_front_end_uses_the_helper(helper, monkeypatch):
    run = helper()
    monkeypatch.setattr(hugepages, "may_write", lambda size, root: False)
    monkeypatch.setattr(hugepages, "_HELPERS", (str(run.root / "ropewalk-hugepages"),))
    change = hugepages.reserve(5, 2 * MIB, run.root)
    assert (change.done, change.total) == (5, 15)
    assert os.path.basename(change.by) == "ropewalk-hugepages"
    with pytest.raises(CommandError, match="above the maximum"):
        hugepages.reserve(500, 2 * MIB, run.root)
