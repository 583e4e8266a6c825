"""`ropewalk doctor`: facts of made-up machines, the judgement of facts, and this machine."""

import json
import os
import subprocess
import sys

import pytest

from conftest import elf_file, write_program
from ropewalk import cores, installations, machine, numa
from ropewalk.doctor import command as report
from ropewalk.doctor import dropin, judge, mpi_facts, probes
from support import environment

MIB, GIB = 1 << 20, 1 << 30


def write(root, files):
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_buddyinfo(tmp_path):
    write(
        tmp_path,
        {
            "proc/buddyinfo": "Node 0, zone   Normal  100 0 0 0 0 0 0 0 0 3 2\n"
            "Node 0, zone  DMA32  0 0 0 0 0 0 0 0 0 1 0\n"
            "Node 1, zone   Normal  512 0 0 0 0 0 0 0 0 0 0\n"
        },
    )
    first, second = machine.fragmentation(tmp_path, page_bytes=4096)
    assert (first["node"], first["free_2m_blocks"]) == (0, 3 + 2 * 2 + 1)
    assert first["free_bytes"] == 100 * 4096 + 8 * 2 * MIB
    assert (second["free_2m_blocks"], second["free_bytes"]) == (0, 2 * MIB)
    assert second["whole_share"] == 0


def test_cpu_list():
    assert machine.cpu_list("0-2,7") == [0, 1, 2, 7]
    assert machine.cpu_list("") == []


def test_hardware_threads_are_not_cores(tmp_path):
    for cpu in range(4):
        path = f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        write(tmp_path, {path: f"{cpu % 2},{cpu % 2 + 2}\n"})
    assert cores.allowed_cores(tmp_path, {0, 1, 2, 3}) == 2
    assert cores.allowed_cores(tmp_path, {0, 2}) == 1
    shares = [cores.share_of_rank(rank, 2, tmp_path, range(4)) for rank in range(2)]
    assert shares == [{0, 2}, {1, 3}]
    assert cores.share_of_rank(2, 3, tmp_path, range(4)) == {0, 1, 2, 3}


def test_quota_of_both_cgroup_versions(tmp_path):
    unified = write(
        tmp_path / "2",
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a/memory.max": "1073741824\n",
        },
    )
    assert cores.quota(unified) == 1.5
    assert machine.memory_limit(unified) == GIB
    legacy = write(
        tmp_path / "1",
        {
            "proc/self/cgroup": "4:memory:/m\n1:cpu,cpuacct:/c\n",
            "sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert cores.quota(legacy) == 3
    assert machine.memory_limit(legacy) is None
    assert cores.quota(tmp_path / "none") is None


def test_fabrics(tmp_path):
    port = "sys/class/infiniband/{}/ports/1/{}"
    write(
        tmp_path,
        {
            port.format("mlx5_0", "link_layer"): "InfiniBand\n",
            port.format("mlx5_0", "state"): "4: ACTIVE\n",
            port.format("mlx5_0", "rate"): "100 Gb/sec (4X EDR)\n",
            port.format("hfi1_0", "rate"): "100 Gb/sec\n",
            "dev/hfi1_0": "",
            "dev/hfi1_1": "",
            "sys/class/net/eth0/speed": "25000\n",
            "sys/class/net/eth0/operstate": "up\n",
            "sys/class/net/eth0/device/vendor": "",
            "sys/class/net/br0/speed": "10\n",
        },
    )
    found = {one["device"]: one for one in machine.fabrics(tmp_path)}
    assert set(found) == {"mlx5_0", "hfi1_0", "hfi1_1"}
    assert found["mlx5_0"]["state"] == "ACTIVE"
    assert found["hfi1_1"]["kind"] == "Omni-Path"
    assert machine.interfaces(tmp_path) == [
        {"interface": "eth0", "state": "up", "mbit_per_s": 25000}
    ]


def test_empty_root_gives_facts_all_the_same(tmp_path):
    found = machine.facts(tmp_path)
    assert numa.nodes(tmp_path) == []
    assert found["hugetlb"] == []
    assert found["shared_memory"] is None
    json.dumps(found)


def node_facts(number=0, **others):
    return {
        "node": number,
        "cpus": "0-7",
        "package": 0,
        "memory_bytes": GIB,
        "free_bytes": GIB,
        "distances": [10],
        "tier": None,
        "memory_side_cache_bytes": None,
        "read_mb_per_s": None,
        "write_mb_per_s": None,
        "read_latency_ns": None,
        **others,
    }


@pytest.fixture
def good():
    """A machine with nothing to complain of."""
    return {
        "kernel": "6.8",
        "architecture": "x86_64",
        "processor": {
            "model": "a processor",
            "hardware_threads": 8,
            "hardware_threads_allowed": 8,
            "cores_allowed": 4,
            "quota_cores": None,
        },
        "caches": [{"level": 1, "bytes": 32768, "line_bytes": 64, "shared_by": 2}],
        "numa": [node_facts()],
        "numa_balancing": 0,
        "memory": {"total_bytes": GIB, "available_bytes": GIB, "cgroup_limit_bytes": None},
        "transparent_huge_pages": {
            "enabled": "madvise",
            "shmem_enabled": "never",
            "defrag": "madvise",
        },
        "hugetlb": [
            {"page_bytes": 2 * MIB, "total": 0, "free": 0, "overcommit": 0, "available": 0}
        ],
        "fragmentation": [
            {"node": 0, "free_bytes": GIB, "free_2m_blocks": 400, "whole_share": 0.78}
        ],
        "memlock": {"soft_bytes": None, "hard_bytes": None},
        "ptrace_scope": 0,
        "shared_memory": {"bytes": GIB, "free_bytes": GIB},
        "fabrics": [
            {"device": "hfi1_0", "kind": "Omni-Path", "port": "1", "state": "ACTIVE", "rate": "100"}
        ],
        "interfaces": [{"interface": "eth0", "state": "up", "mbit_per_s": None}],
        "features": {
            name: {"works": True, "detail": ""}
            for name in (
                "madv_collapse",
                "hugetlb_memfd",
                "madv_populate_write",
                "memfd_seals",
                "pagemap_scan",
                "cma",
                "pidfd_getfd",
                "xpmem",
            )
        },
        "mpi": [
            {
                "family": "mpich",
                "version": "5.0.2",
                "abi": "MPICH",
                "mpi5_abi": True,
                "prefix": "/p",
                "library": "/p/lib/libmpi.so.12",
                "origin": "o",
                "providers": [],
                "thread_level": "multiple",
                "fortran": {"library": "/p/f.so", "intercepted": True, "detail": "f.so calls"},
            }
        ],
        "drop_in": {
            "libraries": {"malloc": "/p/m.so", "mpi": "/p/i.so"},
            "looked_in": ["/p"],
            "complaint": None,
            "tools": [],
        },
    }


def fail(facts, feature, detail="EPERM"):
    facts["features"][feature] = {"works": False, "detail": detail}


def test_nothing_falls_short(good):
    assert judge.judge(good) == []


def _collapse(facts):
    fail(facts, "madv_collapse", "madvise(MADV_COLLAPSE): EINVAL")


def _cma(facts):
    fail(facts, "cma")
    facts["ptrace_scope"] = 1


def _memlock(facts):
    facts["memlock"]["soft_bytes"] = 8 * MIB


def _not_built(facts):
    facts["drop_in"]["libraries"]["mpi"] = None


def _refused(facts):
    facts["drop_in"]["complaint"] = "ERROR: ld.so: object cannot be preloaded"


def _tool(facts):
    facts["drop_in"]["tools"] = ["/opt/libmpiP.so"]


def _fortran(facts):
    facts["mpi"][0]["fortran"] = {
        "library": "/p/libmpi_mpifh.so.40",
        "intercepted": False,
        "detail": "libmpi_mpifh.so.40 calls PMPI_*",
    }


def _fragmented(facts):
    facts["fragmentation"][0].update(free_2m_blocks=3, whole_share=0.01)


def _balancing(facts):
    facts["numa_balancing"] = 1
    facts["numa"] *= 2


@pytest.mark.parametrize(
    ("spoil", "subject", "words"),
    [
        (_collapse, "pages", ["EINVAL", "Linux 6.1", "ropewalk hugepages reserve"]),
        (_cma, "peers", ["ptrace_scope is 1", "yama/ptrace_scope"]),
        (lambda f: fail(f, "cma"), "peers", ["SYS_PTRACE"]),
        (lambda f: fail(f, "pidfd_getfd"), "peers", ["sockets"]),
        (lambda f: fail(f, "pagemap_scan"), "inspection", ["smaps", "6.7"]),
        (lambda f: fail(f, "madv_populate_write"), "memory", ["5.14"]),
        (_memlock, "memlock", ["8 MiB", "limits.conf"]),
        (_fragmented, "fragmentation", ["3 whole", "compact_memory"]),
        (_balancing, "NUMA", ["numa_balancing"]),
        (lambda f: f["processor"].update(quota_cores=1.5), "cores", ["1.5 of 4", "1 ranks"]),
        (lambda f: f.update(shared_memory=None), "/dev/shm", ["tmpfs"]),
        (
            lambda f: f.update(shared_memory={"bytes": 64 * MIB, "free_bytes": 64 * MIB}),
            "/dev/shm",
            ["64 MiB", "--shm-size"],
        ),
        (lambda f: f["memory"].update(cgroup_limit_bytes=MIB), "memory", ["ARENA_BYTES"]),
        (lambda f: f["transparent_huge_pages"].update(enabled="never"), "pages", ["madvise"]),
        (lambda f: f.update(mpi=[]), "MPI", ["none found", "apt install"]),
        (lambda f: f["mpi"][0].update(thread_level="single"), "MPI", ["MPI_THREAD_MULTIPLE"]),
        (lambda f: f["mpi"][0].update(error="no"), "MPI", ["did not start"]),
        (_not_built, "drop-in", ["libropewalk-mpi.so", "ROPEWALK_PRELOAD"]),
        (_refused, "drop-in", ["cannot be preloaded", "plain MPI"]),
        (_tool, "drop-in", ["libmpiP.so", "--no-preload"]),
        (_fortran, "drop-in", ["mpich 5.0.2", "calls PMPI_*"]),
        (lambda f: f.update(timeout="off"), "deaths", ["ROPEWALK_TIMEOUT", "for ever"]),
    ],
)
def test_each_shortfall_has_consequence_and_remedy(good, spoil, subject, words):
    spoil(good)
    (found,) = judge.judge(good)
    assert found["subject"] == subject
    assert found["consequence"]
    text = " ".join(found.values())
    for word in words:
        assert word in text


def test_a_pool_stands_in_for_collapse(good):
    _collapse(good)
    good["hugetlb"][0]["available"] = 5
    assert judge.judge(good) == []


def test_memlock_matters_with_a_fabric_only(good):
    _memlock(good)
    good["fabrics"] = []
    assert judge.judge(good) == []


def test_report(good, capsys, monkeypatch):
    monkeypatch.setattr(judge, "collect", lambda run_mpi, tell: good)
    fail(good, "pagemap_scan")
    report.main(["--quick"])
    text = capsys.readouterr().out
    assert "2 MiB pages without a pool" in text
    assert "remedy: Linux 6.7" in text
    report.main(["--json", "--quick"])
    assert json.loads(capsys.readouterr().out)["findings"][0]["subject"] == "inspection"
    report._print_tables(report.sections(good), judge.judge(good))
    assert "1 to improve" in capsys.readouterr().out


def test_fortran_bindings(prefix, tmp_path):
    """Open MPI's calls PMPI_*, MPICH's MPI_*; a library with the Fortran names takes both."""
    own = elf_file(tmp_path / "own.so", defines=["MPI_Allreduce"])
    names = elf_file(tmp_path / "names.so", defines=["MPI_Allreduce", "mpi_allreduce_"])
    one = installations.recognise(str(prefix("openmpi")))
    assert dropin.fortran(one, own)["intercepted"] is None
    elf_file(
        tmp_path / "openmpi/lib/libmpi_mpifh.so.40",
        defines=["mpi_allreduce_"],
        uses=["PMPI_Allreduce"],
    )
    found = dropin.fortran(one, own)
    assert (found["intercepted"], "PMPI_*" in found["detail"]) == (False, True)
    assert dropin.fortran(one, names)["intercepted"] is True
    assert dropin.fortran(one, None)["intercepted"] is False
    one = installations.recognise(str(prefix("mpich")))
    path = tmp_path / "mpich/lib/libmpifort.so.12"
    elf_file(path, defines=["mpi_allreduce_"], uses=["MPI_Allreduce"])
    assert dropin.fortran(one, own)["intercepted"] is True


def test_tools_in_ld_preload(tmp_path):
    tool = str(elf_file(tmp_path / "libtool.so", defines=["MPI_Init"]))
    other = str(elf_file(tmp_path / "libother.so", defines=["malloc"]))
    environment = {"LD_PRELOAD": f"{other}:{tool} libnone.so"}
    assert dropin.tools(environment) == [tool]
    assert dropin.tools(environment, (tool,)) == []
    assert dropin.tools({}) == []


def test_a_library_that_the_loader_refuses(tmp_path):
    path = tmp_path / "libbroken.so"
    path.write_bytes(b"\x7fELF and no more")
    assert "libbroken.so" in dropin.complaint([str(path)], {})
    assert dropin.complaint([], {}) is None


def test_probes_of_this_machine():
    for name, result in probes.every().items():
        assert isinstance(result["works"], bool), name
        assert result["works"] or result["detail"], name


def test_xpmem_is_asked_and_none_is_no_shortfall(good):
    assert probes.xpmem("/nonexistent/xpmem") == (
        False,
        "/nonexistent/xpmem: No such file or directory (ENOENT)",
    )
    assert not probes.xpmem("/dev/null")[0]  # another device is not taken for it
    fail(good, "xpmem")
    assert judge.judge(good) == []


def test_probes_leave_nothing():
    before = sorted(os.listdir("/proc/self/fd"))
    probes.every()
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_thread_level_of_a_broken_mpi(prefix):
    from ropewalk import installations

    found = mpi_facts.describe(installations.recognise(str(prefix("openmpi"))))
    assert found["error"]
    assert found["version"] == "9.8.7"


def test_a_level_that_is_none_is_an_error(prefix):
    from ropewalk import installations

    path = prefix("mpich")
    write_program(path / "bin/mpiexec", """#!/bin/sh\necho 'ropewalk:{"level": -1}'\n""")
    found = mpi_facts.describe(installations.recognise(str(path)))
    assert "MPI_Init_thread" in found["error"] and "thread_level" not in found


@pytest.mark.parametrize("user", [None, 65534])
def test_this_machine(user):
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ropewalk", "doctor", "--json", "--quick"],
            env=environment(),
            capture_output=True,
            text=True,
            user=user,
            timeout=60,
        )
    except PermissionError:
        pytest.skip("the other user may not start this Python")
    if user is not None and "No module named" in done.stderr:
        pytest.skip("the other user may not read this tree")
    found = json.loads(done.stdout)
    assert found["processor"]["cores_allowed"] >= 1
    assert set(found["features"]) == set(report._FEATURES)
