"""A cluster in a box: its plan from facts alone; and, where one can be made, a real one, of which
nothing is left however it ends."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from conftest import real_mpis
from ropewalk import batch
from ropewalk.cluster import box as boxes
from ropewalk.cluster import command as cluster
from ropewalk.cluster import network, session, spaces
from ropewalk.cluster.box import Box
from ropewalk.cluster.network import Network
from ropewalk.errors import CommandError
from support import PACKAGES

PATIENCE = 60.0


# ---- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bits"), [("2gbit", 2e9), ("500mbit", 5e8), ("2.5Gbit", 2.5e9), ("100000kbit", 1e8)]
)
def test_rates(text, bits):
    assert network.bits_per_second(text) == bits


@pytest.mark.parametrize("text", ["2", "2gb", "fast", "0gbit", "-1gbit", "5kbit", "2tbit"])
def test_rates_that_are_none(text):
    with pytest.raises(CommandError, match="--rate"):
        network.bits_per_second(text)


def test_delays():
    assert network.seconds("20us") == pytest.approx(2e-5)
    with pytest.raises(CommandError, match="--delay"):
        network.seconds("20")


def test_every_cable_has_a_bucket_at_both_ends():
    network = Network(nodes=3, rails=2, rate=2e9)
    links = list(network.switch_links([11, 12, 13]))
    assert sum("type veth" in line for line in links) == 6
    assert sum("type bridge" in line for line in links) == 2
    assert any("netns 13" in line for line in links)
    shaped = [line.split()[3] for line in network.switch_shapes()]
    assert sorted(shaped) == ["n0r0", "n0r1", "n1r0", "n1r1", "n2r0", "n2r1"]
    assert [line.split()[3] for line in network.node_shapes()] == ["rail0", "rail1"]
    assert all("rate 2000000000bit" in line for line in network.node_shapes())
    assert network.line_rate_mb == 500


def test_each_rail_is_a_network_of_its_own():
    network = Network(nodes=2, rails=2)
    assert network.address(1, 0).rsplit(".", 1)[0] != network.address(1, 1).rsplit(".", 1)[0]
    hosts = network.hosts().splitlines()
    assert f"{network.address(1, 0)} n1 n1-rail0" in hosts
    assert f"{network.address(1, 1)} n1-rail1" in hosts


def test_delay_is_behind_the_bucket():
    lines = list(Network(delay=2e-5).node_shapes())
    assert "parent 1:1" in lines[1]
    assert "netem delay 20us" in lines[1]


@pytest.mark.parametrize("options", [{"nodes": 0}, {"nodes": 65}, {"rails": 0}, {"mtu": 100}])
def test_limits(options):
    with pytest.raises(CommandError, match="expected"):
        Network(**options)


def test_places():
    assert boxes.places("2", 3) == [2, 2, 2]
    assert boxes.places("2,1", 3) == [2, 1, 2]
    for wrong in ("", "two", "0", "1,2,3,4"):
        with pytest.raises(CommandError, match="--ranks-per-node"):
            boxes.places(wrong, 3)


def siblings(root, *lists):
    """A machine below `root` whose cores have these threads, as "0,4"."""
    for text in lists:
        for cpu in text.split(","):
            folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
            folder.mkdir(parents=True)
            (folder / "thread_siblings_list").write_text(f"{text}\n")
    return [int(cpu) for text in lists for cpu in text.split(",")]


def test_nodes_share_no_core(tmp_path):
    """Threads of one core are numbered far apart (0 and 4) or side by side."""
    cpus = siblings(tmp_path / "far", "0,4", "1,5", "2,6", "3,7")
    assert boxes.cores_of(2, tmp_path / "far", cpus) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert boxes.cores_of(3, tmp_path / "far", cpus) is None
    # One thread of a core is not allowed here: the core counts, and what is allowed of it.
    assert boxes.cores_of(2, tmp_path / "far", cpus[:-1]) == [[0, 1, 4, 5], [2, 3, 6]]
    cpus = siblings(tmp_path / "near", "0,1", "2,3", "4,5", "6,7", "8,9")
    assert boxes.cores_of(2, tmp_path / "near", cpus) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert boxes.cores_of(2, tmp_path / "none", [3, 1, 2, 0]) == [[0, 1], [2, 3]]


def test_queues_fit_what_the_kernel_counts_them_in():
    for one in (Network(rate=1e12), Network(rate=1e10, delay=10), Network(rate=1e12, delay=10)):
        words = next(one.node_shapes()).split()
        assert 0 < int(words[words.index("limit") + 1]) < 1 << 32
        assert 0 < int(words[words.index("burst") + 1]) < 1 << 32


def test_shared_memory_of_all_nodes_is_that_of_one_machine():
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    assert 4 * spaces.shared_memory_bytes(1 / 4) <= whole


def test_environment_is_that_of_no_job():
    base = {"SLURM_JOB_ID": "7", "PMI_RANK": "0", "PATH": "/bin", "MINE": "1"}
    made = boxes.environment(42, Network(rails=2), [2, 1], base)
    assert "SLURM_JOB_ID" not in made
    assert "PMI_RANK" not in made
    assert made["MINE"] == "1"
    assert made["PATH"].endswith(":/bin")
    assert made["ROPEWALK_LINE_RATE"] == "250"
    job = batch.job(made)
    assert (job.system, job.nodes, job.hosts) == ("box", 2, (("n0", 2), ("n1", 1)))


def test_nodes_without_ranks_are_no_hosts():
    assert batch.job({"ROPEWALK_BOX_NODES": "n0:1,n1:0,n2:2"}).hosts == (("n0", 1), ("n2", 2))


@pytest.mark.parametrize(
    ("arguments", "host", "words"),
    [
        (["-x", "n1", '"/bin/proxy"', "--port", "n0:1"], "n1", ['"/bin/proxy"', "--port", "n0:1"]),
        (["-p", "22", "-o", "A=b", "me@n2", "date"], "n2", ["date"]),
        (["n1"], "n1", []),
        ([], None, []),
    ],
)
def test_arguments_of_ssh(arguments, host, words):
    assert session.ssh_words(arguments) == (host, words)


def options(*words):
    return cluster.parse(words)


def test_a_program_is_started_on_all_ranks():
    made = options("--nodes", "2", "--mpi", "mpich", "--plain", "--lanes=2", "--", "./app", "-x")
    command = cluster.command_words(made, made.command[1:])
    assert command[-7:] == ["run", "--mpi=mpich", "--lanes=2", "--no-preload", "--", "./app", "-x"]


@pytest.mark.parametrize("words", [["bash"], ["mpiexec", "-n", "2", "x"], ["/usr/bin/make", "a"]])
def test_what_starts_ranks_itself_runs_once(words):
    assert cluster.command_words(options("--", *words), words) == words


def test_a_command_on_a_node_runs_once():
    assert cluster.command_words(options("--node", "n1", "--", "date"), ["date"]) == ["date"]


def test_ropewalk_in_the_box_is_this_one():
    command = cluster.command_words(options("--", "ropewalk", "bench"), ["ropewalk", "bench"])
    assert command[0] == sys.executable
    assert command[-1] == "bench"


def test_dry_run_shows_all(capsys):
    assert cluster.main(["--nodes", "2", "--rails", "2", "--dry-run", "--", "./app"]) == 0
    shown = capsys.readouterr().out
    for part in ("type veth", "tbf", "10.77.1.2/24", "ROPEWALK_LINE_RATE=250", "run -- ./app"):
        assert part in shown


# ---- a real box ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def box():
    try:
        made = Box(nodes=2, rails=2, rate="1gbit", ranks_per_node="2,1")
    except boxes.NotPermitted as refused:
        pytest.skip(str(refused))
    with made:
        yield made


def test_nodes_are_separate(box):
    names, spaces = [], []
    for node in box.nodes:
        script = (
            "hostname; ls /proc | grep -c '^[0-9]'; ls /sys/class/net; "
            "readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/ipc"
        )
        lines = box.run(["sh", "-c", script], node=node, timeout=PATIENCE).stdout.split()
        names.append(lines[0])
        assert int(lines[1]) < 10
        assert lines[2:5] == ["lo", "rail0", "rail1"]
        spaces += lines[5:]
    assert names == ["n0", "n1"]
    assert len(set(spaces)) == 6


def test_commands_keep_their_user_directory_and_status(box, tmp_path):
    done = box.run(["sh", "-c", "id -u; pwd; echo no >&2; exit 3"], directory=str(tmp_path))
    assert done.returncode == 3
    assert done.stdout.split() == [str(os.getuid()), str(tmp_path)]
    assert done.stderr == "no\n"
    assert box.run(["sh", "-c", "kill -9 $$"]).returncode == 137
    assert box.run(["/nonexistent"]).returncode == 127


def test_ssh_reaches_other_nodes(box):
    done = box.run(["sh", "-c", "ssh n1 hostname; ssh n1-rail1 'exit 4'; echo $?; ssh n9 date"])
    assert done.stdout.split() == ["n1", "4"]
    assert done.returncode == 255
    assert "n9" in done.stderr


def test_a_command_that_takes_too_long_is_killed(box):
    with pytest.raises(subprocess.TimeoutExpired):
        box.run(["sleep", "1000"], timeout=0.2)


CONNECT = """
import socket, sys
listener = socket.create_server(("", 7000))
connection, _ = listener.accept()
connection.sendall(b"hello")
"""
FETCH = """
import socket, sys, time
for _ in range(500):
    try:
        connection = socket.create_connection((sys.argv[1], 7000), timeout=float(sys.argv[2]))
        break
    except ConnectionRefusedError:
        time.sleep(0.02)
    except OSError as error:
        sys.exit("no way: %s" % error)
print(connection.recv(5).decode())
"""


def fetch(box, host, seconds="20"):
    server = box.start([sys.executable, "-c", CONNECT], node="n1", own=True)
    try:
        return box.run([sys.executable, "-c", FETCH, host, seconds], timeout=PATIENCE)
    finally:
        server.signal(signal.SIGKILL)
        server.status()
        server.close()


def test_every_rail_carries_until_it_is_cut(box):
    assert fetch(box, "n1-rail0").stdout == "hello\n"
    box.cut("n1", rail=1)
    try:
        assert fetch(box, "n1-rail0").stdout == "hello\n"
        assert "no way" in fetch(box, "n1-rail1", "0.3").stderr
    finally:
        box.restore("n1")
    assert fetch(box, "n1-rail1").stdout == "hello\n"
    with pytest.raises(CommandError, match="--rail: 2"):
        box.cut("n1", rail=2)
    with pytest.raises(CommandError, match="n7"):
        box.cut("n7")


def test_two_boxes_do_not_meet(box):
    with Box(nodes=2) as other:
        other.kill("n1")
        assert other.ask({"do": "describe"})["alive"] == ["n0"]
        assert box.ask({"do": "describe"})["alive"] == ["n0", "n1"]
        with pytest.raises(CommandError, match="n1 is gone"):
            other.run(["true"], node="n1")


def test_the_highest_rate_can_be_made(box):
    with Box(rate="1tbit") as fast:
        assert fast.run(["true"], node="n1", timeout=PATIENCE).returncode == 0


def test_nodes_share_the_memory_of_the_machine(box):
    code = "import os; s = os.statvfs('/dev/shm'); print(s.f_blocks * s.f_frsize)"
    sizes = [int(box.run([sys.executable, "-c", code], node=node).stdout) for node in box.nodes]
    assert sum(sizes) <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2


def test_delay_works_or_says_why(box):
    try:
        Box(delay="1ms").close()
    except CommandError as error:
        assert "--delay" in str(error)


@pytest.mark.parametrize("prefix", real_mpis(), ids=lambda prefix: prefix.name)
def test_launchers_start_ranks_on_all_nodes(box, prefix):
    words = ["run", "--mpi", str(prefix), "--no-preload", "--", "hostname"]
    done = box.run([*cluster.own_command(), *words], timeout=PATIENCE)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["n0", "n0", "n1"]), done.stderr


# ---- nothing is left -----------------------------------------------------------------------------


def begin(*arguments):
    """A box whose first line of output is the process ids of what runs in it, seen from here."""
    running = subprocess.Popen(
        [sys.executable, "-m", "ropewalk", "cluster", *arguments],
        env={**os.environ, "PYTHONPATH": PACKAGES},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout.readline() == "up\n"
    return running, descendants(running.pid)


def descendants(process):
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = pathlib.Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(name))
    found, front = [], [process]
    while front:
        more = children.get(front.pop(), [])
        found += more
        front += more
    return found


def is_gone(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def wait_until_gone(processes):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if all(is_gone(process) for process in processes):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(box, number):
    stubborn = "ssh n1 sleep 1000 & (trap '' INT TERM HUP; sleep 1000) & "
    script = (stubborn if number == signal.SIGKILL else "") + "echo up; exec sleep 1000"
    running, inside = begin("--", "sh", "-c", script)
    with running:
        assert len(inside) >= 5  # guard, switch, two nodes, what runs on them
        running.send_signal(number)
        status = running.wait(PATIENCE)
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    assert wait_until_gone(inside)


def test_nothing_is_left_when_the_command_dies(box):
    running, inside = begin("--", "sh", "-c", "ssh n1 sleep 1000 & echo up; sleep 0.3; kill -9 $$")
    with running:
        assert running.wait(PATIENCE) == 137
    assert wait_until_gone(inside)


def test_interfaces_stay_inside(box):
    outside = pathlib.Path("/sys/class/net")
    assert not [entry for entry in outside.iterdir() if entry.name.startswith("rail")]


def test_refusal_is_one_sentence():
    told = boxes._explain("an unprivileged user namespace: Operation not permitted")
    assert told.startswith("no box here: it takes root, or user namespaces")
    assert "\n" not in told
