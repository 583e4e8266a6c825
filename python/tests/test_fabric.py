"""The network of made-up machines, and what each MPI is told about it."""

import os

import pytest

from conftest import elf_file
from ropewalk import fabric, installations, loader, run
from support import dry


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def adapter(name, number=4123, state="4: ACTIVE", layer="InfiniBand"):
    folder = f"sys/class/infiniband/{name}"
    return {
        f"{folder}/hca_type": f"MT{number}\n",
        f"{folder}/ports/1/state": f"{state}\n",
        f"{folder}/ports/1/link_layer": f"{layer}\n",
        f"{folder}/ports/1/rate": "200 Gb/sec (4X HDR)\n",
    }


@pytest.fixture
def search(tmp_path, no_libraries):
    """search(SONAME...): a loader that finds these."""

    def make(*sonames):
        for name in sonames:
            elf_file(tmp_path / "system" / name, interpreter=False)
        return loader.Loader({"LD_LIBRARY_PATH": str(tmp_path / "system")})

    return make


@pytest.fixture
def mpi(prefix):
    """mpi(FAMILY, LAYER...): an installation whose library is linked to these layers."""

    def make(family, *layers):
        path = prefix(family)
        name = {"openmpi": "libmpi.so.40"}.get(family, "libmpi.so.12")
        sonames = [{"ofi": "libfabric.so.1", "ucx": "libucp.so.0"}[layer] for layer in layers]
        elf_file(path / "lib" / name, sonames, interpreter=False)
        return installations.recognise(str(path))

    return make


def told(found, one, search, lanes=1, **environment):
    return {
        name: value
        for name, value, reason in fabric.settings(found, one, environment, lanes, search)
        if reason
    }


def test_nothing_but_tcp(tmp_path, mpi, search):
    root = write(tmp_path / "root", {"sys/class/net/eth0/operstate": "up\n"})
    found = fabric.detect(root, search())
    assert found == fabric.Fabric()
    pieces = {"ROPEWALK_PIECE_BYTES": "1048576"}
    for family, expected in (("mpich", pieces), ("openmpi", pieces), ("intel", {})):
        assert told(found, mpi(family, "ofi", "ucx"), search()) == expected


def test_rails_of_tcp(tmp_path, mpi, search, monkeypatch):
    monkeypatch.setenv("ROPEWALK_BOX_RAILS", "rail0,rail1")
    found = fabric.detect(tmp_path, search())
    assert found.rails == 2
    told_mpich = told(found, mpi("mpich", "ofi", "ucx"), search())
    assert told_mpich["MPIR_CVAR_CH4_NETMOD"] == "ucx"
    assert told_mpich["UCX_MAX_EAGER_RAILS"] == "2"
    assert told(found, mpi("openmpi"), search())["OMPI_MCA_btl_tcp_max_send_size"] == "65536"
    assert told(found, mpi("mpich", "ofi"), search()) == {}


def test_rails_are_the_fastest_adapters_that_are_up(tmp_path, search):
    net = "sys/class/net"
    files = {}
    for name, speed, state in (
        ("eth0", "1000", "up"),
        ("eth1", "25000", "up"),
        ("eth2", "25000", "up"),
        ("eth3", "25000", "down"),
    ):
        files[f"{net}/{name}/speed"] = f"{speed}\n"
        files[f"{net}/{name}/operstate"] = f"{state}\n"
        files[f"{net}/{name}/device/vendor"] = "0x8086\n"
    assert fabric.detect(write(tmp_path / "root", files), search()).rails == 2


def test_bridges_lead_nowhere(tmp_path, mpi, search):
    root = write(tmp_path / "root", {"sys/class/net/docker0/bridge/bridge_id": "1\n"})
    found = fabric.detect(root, search())
    value = told(found, mpi("openmpi"), search())["OMPI_MCA_btl_tcp_if_exclude"]
    assert value == "127.0.0.1/8,sppp,docker0"
    assert told(found, mpi("mpich"), search()) == {}


def test_infiniband(tmp_path, mpi, search):
    root = write(tmp_path / "root", {**adapter("mlx5_0"), **adapter("mlx5_1")})
    driver = search("libmlx5.so.1")
    found = fabric.detect(root, driver)
    assert (found.kind, found.devices) == (fabric.INFINIBAND, ("mlx5_0", "mlx5_1"))
    assert found.accelerated
    assert found.tag_matching
    expected = {
        "UCX_TLS": "rc_x,dc_x,ud_x,sm,self",
        "UCX_RC_MLX5_TM_ENABLE": "y",
        "UCX_DC_MLX5_TM_ENABLE": "y",
    }
    assert told(found, mpi("openmpi", "ofi", "ucx"), driver) == expected
    assert told(found, mpi("mpich", "ofi", "ucx"), driver) == {
        "MPIR_CVAR_CH4_NETMOD": "ucx",
        **expected,
    }
    assert told(found, mpi("mpich", "ofi"), driver) == {}  # no UCX in it


def test_no_user_space_driver_leaves_ucx_its_choice(tmp_path, mpi, search):
    root = write(tmp_path / "root", adapter("mlx5_0"))
    found = fabric.detect(root, search())
    assert told(found, mpi("openmpi", "ucx"), search()) == {}


def test_gpus_keep_their_transports(tmp_path, mpi, search):
    root = write(tmp_path / "root", {**adapter("mlx5_0"), "dev/nvidiactl": "", "dev/kfd": ""})
    driver = search("libmlx5.so.1")
    value = told(fabric.detect(root, driver), mpi("openmpi", "ucx"), driver)["UCX_TLS"]
    assert value.endswith(",cuda,rocm")


@pytest.mark.parametrize(("number", "matches"), [(4115, False), (4119, True), (4129, True)])
def test_tag_matching_by_adapter(tmp_path, search, number, matches):
    root = write(tmp_path / "root", adapter("mlx5_0", number))
    assert fabric.detect(root, search("libmlx5.so.1")).tag_matching == matches


def test_one_old_adapter_is_enough_to_leave_tags_alone(tmp_path, search):
    root = write(tmp_path / "root", {**adapter("mlx5_0"), **adapter("mlx5_1", 4115)})
    assert not fabric.detect(root, search("libmlx5.so.1")).tag_matching


def test_adapter_known_by_its_pci_number(tmp_path, search):
    files = adapter("mlx5_0")
    del files["sys/class/infiniband/mlx5_0/hca_type"]
    files["sys/class/infiniband/mlx5_0/device/vendor"] = "0x15b3\n"
    files["sys/class/infiniband/mlx5_0/device/device"] = "0x1017\n"
    found = fabric.detect(write(tmp_path / "root", files), search("libmlx5.so.1"))
    assert found.tag_matching


def test_an_adapter_that_is_down_does_not_count(tmp_path, search):
    root = write(tmp_path / "root", adapter("mlx5_0", state="1: DOWN"))
    assert fabric.detect(root, search()).kind == fabric.TCP


def test_omnipath(tmp_path, mpi, search):
    root = write(tmp_path / "root", {**adapter("hfi1_0"), **adapter("hfi1_1")})
    psm2 = search("libpsm2.so.2")
    found = fabric.detect(root, psm2)
    assert found.kind == fabric.OMNIPATH
    assert found.scalable_endpoints
    assert told(found, mpi("mpich", "ofi", "ucx"), psm2) == {
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "PSM2_MULTIRAIL": "1",
    }
    assert told(found, mpi("openmpi", "ofi"), psm2, lanes=4) == {
        "OMPI_MCA_pml": "cm",
        "OMPI_MCA_mtl": "ofi",
        "PSM2_MULTIRAIL": "1",
    }
    assert "OMPI_MCA_mtl" not in told(found, mpi("openmpi", "ofi"), psm2, lanes=1)


def test_omnipath_without_psm2(tmp_path, mpi, search, no_libraries):
    found = fabric.detect(write(tmp_path / "root", adapter("hfi1_0")), search())
    assert told(found, mpi("openmpi", "ofi"), loader.Loader({})) == {}


def test_intel_gets_a_provider_that_it_has(tmp_path, mpi, search):
    one = mpi("intel")
    psm2 = search("libpsm2.so.2")
    found = fabric.detect(write(tmp_path / "root", adapter("hfi1_0")), psm2)
    assert told(found, one, psm2) == {}
    (tmp_path / "intel/lib/libopx-fi.so").write_text("")
    assert told(found, one, psm2) == {"I_MPI_OFI_PROVIDER": "opx"}
    (tmp_path / "intel/lib/libpsmx2-fi.so").write_text("")
    assert told(found, one, psm2) == {"I_MPI_OFI_PROVIDER": "psm2"}


def test_slingshot(tmp_path, mpi, search):
    root = write(tmp_path / "root", {"sys/class/cxi/cxi0/x": "", **adapter("mlx5_0")})
    found = fabric.detect(root, search())
    assert found.kind == fabric.SLINGSHOT
    assert not found.scalable_endpoints
    assert told(found, mpi("mpich", "ofi"), search()) == {"FI_CXI_RX_MATCH_MODE": "hybrid"}


def test_efa(tmp_path, mpi, search):
    found = fabric.detect(write(tmp_path / "root", adapter("rdmap0s6", 0)), search())
    assert found.kind == fabric.EFA
    assert told(found, mpi("mpich", "ofi", "ucx"), search()) == {"MPIR_CVAR_CH4_NETMOD": "ofi"}
    settings = told(found, mpi("mpich", "ofi"), search(), FI_EFA_FORK_SAFE="1")
    assert settings == {"ROPEWALK_PAGES": "never"}


def test_tags_in_hardware_say_how_to_turn_them_off(tmp_path, mpi, search):
    driver = search("libmlx5.so.1")
    found = fabric.detect(write(tmp_path / "root", adapter("mlx5_0")), driver)
    reasons = {n: why for n, _, why in fabric.settings(found, mpi("mpich", "ucx"), {}, 1, driver)}
    for name in ("UCX_RC_MLX5_TM_ENABLE", "UCX_DC_MLX5_TM_ENABLE"):
        assert f"off with {name}=n" in reasons[name]


def test_fork_safety_of_verbs(tmp_path, mpi, search):
    found = fabric.detect(write(tmp_path / "root", adapter("mlx5_0")), search())
    settings = told(found, mpi("mpich", "ofi"), search(), RDMAV_FORK_SAFE="1")
    assert settings == {"RDMAV_HUGEPAGES_SAFE": "1"}


# ---- in a plan -----------------------------------------------------------------------------------


@pytest.fixture
def slingshot(monkeypatch):
    found = fabric.Fabric(kind=fabric.SLINGSHOT, devices=("cxi0",))
    monkeypatch.setattr(fabric, "detect", lambda: found)
    monkeypatch.setattr(run, "usable_cores", lambda: 64)


def test_only_between_nodes_and_your_own_wins(capsys, slingshot, prefix, program, monkeypatch):
    path = prefix("mpich")
    assert "FI_CXI" not in dry(capsys, "-n", 2, "--mpi", path, program)
    text = dry(capsys, "-n", 2, "--nodes", "a,b", "--mpi", path, program)
    assert "FI_CXI_RX_MATCH_MODE=hybrid" in text
    monkeypatch.setenv("FI_CXI_RX_MATCH_MODE", "software")
    text = dry(capsys, "-n", 2, "--nodes", "a,b", "--mpi", path, program)
    assert "FI_CXI_RX_MATCH_MODE=software" in text
    assert "your own setting, kept" in text


def test_no_scalable_endpoints_where_there_are_none(capsys, slingshot, prefix, program):
    path = prefix("openmpi")
    assert "mtl_ofi_enable_sep" in dry(capsys, "--lanes", 3, "--mpi", path, program)
    text = dry(capsys, "-n", 2, "--nodes", "a,b", "--lanes", 3, "--mpi", path, program)
    assert "mtl_ofi_enable_sep" not in text


def test_this_machine():
    found = fabric.detect()
    assert found.kind in (
        fabric.TCP,
        fabric.INFINIBAND,
        fabric.OMNIPATH,
        fabric.EFA,
        fabric.SLINGSHOT,
    )
    assert all(os.path.isdir(f"/sys/class/net/{name}") for name in found.virtual)


# ---- where adapters sit: the machines of tests/topology/adapters_test.cc -------------------------

NODES = {
    "sys/devices/system/node/node0/cpulist": "0-3,8-11\n",
    "sys/devices/system/node/node1/cpulist": "4-7,12-15\n",
}
SECOND = [4, 5, 6, 7, 12, 13, 14, 15]


def on_node(name, node, **options):
    return {
        **adapter(name, **options),
        f"sys/class/infiniband/{name}/device/numa_node": f"{node}\n",
    }


def interface(name, node, state, speed):
    folder = f"sys/class/net/{name}"
    return {
        f"{folder}/device/numa_node": f"{node}\n",
        f"{folder}/operstate": f"{state}\n",
        f"{folder}/speed": f"{speed}\n",
    }


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, []),
        (
            {
                **on_node("mlx5_0", 1),
                **on_node("mlx5_1", 0, state="1: DOWN"),
                **interface("eth0", 0, "up", 100000),
            },
            SECOND,
        ),
        ({"sys/class/cxi/cxi0/device/numa_node": "1\n"}, SECOND),
        (
            {
                **interface("eth0", 0, "up", 1000),
                **interface("eth1", 1, "up", 25000),
                **interface("eth2", 0, "down", 100000),
                "sys/class/net/br0/speed": "100000\n",
                "sys/class/net/br0/operstate": "up\n",
            },
            SECOND,
        ),
        ({**on_node("mlx5_0", -1), **interface("eth0", 1, "up", -1)}, []),
    ],
)
def test_cpus_near_the_adapter(tmp_path, files, cpus):
    assert fabric.adapter_cpus(write(tmp_path, {**NODES, **files})) == cpus
