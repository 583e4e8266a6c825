"""Which network joins the nodes, and the variables that an MPI needs to use it well.

Found in /sys/class and /dev below a root folder, so tests show it made-up machines. Beside each
variable stands where it comes from. MPIs and their libraries find the network by themselves: only
what they do not do by themselves is set. Nothing of it concerns ranks that share a node.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import elf, machine, numa
from .cores import Root
from .installations import Installation
from .loader import Loader
from .plan import SettingWords, providers

Settings = Iterator[SettingWords]

OMNIPATH, INFINIBAND, SLINGSHOT, EFA, TCP = "Omni-Path", "InfiniBand", "Slingshot", "EFA", "TCP"

# ConnectX-5 and later have PCI device numbers from this one on, and match tags in hardware: /sys
# writes MT<decimal> (linux/drivers/net/ethernet/mellanox/mlx5/core/main.c, mlx5_core_pci_table).
_FIRST_WITH_TAG_MATCHING = 4119


@dataclass(frozen=True)
class Fabric:
    """The network of this node, as far as settings depend on it."""

    kind: str = TCP
    devices: tuple[str, ...] = ()
    tag_matching: bool = False  # every adapter matches tags in hardware
    accelerated: bool = False  # mlx5 adapters, and their user-space driver is here
    gpus: tuple[str, ...] = ()  # UCX's names of the GPU transports that belong here
    rails: int = 1  # TCP: interfaces that lead to the same nodes
    virtual: tuple[
        str, ...
    ] = ()  # interfaces that lead nowhere: bridges of containers and virtual machines

    @property
    def scalable_endpoints(self) -> bool:
        """libfabric's one endpoint with many contexts: psm2 has it (fi_psm2(7)); cxi does not
        (fi_cxi(7), "SEPs support is not enabled"), nor does efa (fi_efa(7))."""
        return self.kind not in (SLINGSHOT, EFA)


def detect(root: Root = "/", loader: Loader | None = None) -> Fabric:
    """The fastest network of this node that is up."""
    adapters = [one for one in machine.fabrics(root) if one["state"] in (None, "ACTIVE")]
    by_kind: dict[str, list[str]] = {}
    for one in adapters:
        kind = INFINIBAND if one["kind"] == "RoCE" else one["kind"]
        by_kind.setdefault(kind, []).append(one["device"])
    kind = next((one for one in (SLINGSHOT, OMNIPATH, EFA, INFINIBAND) if one in by_kind), TCP)
    devices = tuple(dict.fromkeys(by_kind.get(kind, ())))
    driver = (loader or Loader()).find("libmlx5.so.1") if kind == INFINIBAND else None
    return Fabric(
        kind=kind,
        devices=devices,
        tag_matching=bool(devices) and all(_matches_tags(root, one) for one in devices),
        accelerated=bool(driver) and all(_is_mlx5(root, one) for one in devices),
        gpus=_gpus(root),
        rails=_rails(root) if kind == TCP else 1,
        virtual=_virtual(root),
    )


def _adapter_number(root: Root, device: str) -> int:
    """4119 of `MT4119` in hca_type, or of the PCI device number."""
    folder = os.path.join(root, "sys/class/infiniband", device)
    kind = machine.text(os.path.join(folder, "hca_type")) or ""
    if kind.startswith("MT") and kind[2:].isdigit():
        return int(kind[2:])
    vendor = machine.text(os.path.join(folder, "device/vendor"))
    number = machine.text(os.path.join(folder, "device/device")) or ""
    if vendor == "0x15b3" and number.startswith("0x"):
        return int(number, 16)
    return 0


def _is_mlx5(root: Root, device: str) -> bool:
    return device.startswith("mlx5") or _adapter_number(root, device) >= 4113  # Connect-IB


def _matches_tags(root: Root, device: str) -> bool:
    return _adapter_number(root, device) >= _FIRST_WITH_TAG_MATCHING


def _gpus(root: Root) -> tuple[str, ...]:
    names = machine.entries(os.path.join(root, "dev"))
    found = ["cuda"] if "nvidiactl" in names else []
    return (*found, "rocm") if "kfd" in names else tuple(found)


def _rails(root: Root) -> int:
    """Those of a `ropewalk cluster`, or the adapters that are up and have the highest speed."""
    if os.environ.get("ROPEWALK_BOX_RAILS"):
        return len(os.environ["ROPEWALK_BOX_RAILS"].split(","))
    top, speeds = os.path.join(root, "sys/class/net"), []
    for name in machine.entries(top):
        folder = os.path.join(top, name)
        if not os.path.exists(os.path.join(folder, "device")):
            continue
        speed = machine.text(os.path.join(folder, "speed")) or ""
        if machine.text(os.path.join(folder, "operstate")) == "up" and speed.isdigit():
            speeds.append(int(speed))
    return max(1, speeds.count(max(speeds, default=0)))


def adapter_cpus(root: Root = "/") -> list[int]:
    """The CPUs of the NUMA nodes where the adapters between nodes sit, ascending; none where the
    kernel does not say. The library finds the same (src/topology/adapters.cc)."""
    top = os.path.join(root, "sys/class")
    used = {one["device"] for one in machine.fabrics(root) if one["state"] in (None, "ACTIVE")}
    places = [
        os.path.join(top, kind, name)
        for kind in ("infiniband", "cxi")
        for name in machine.entries(os.path.join(top, kind))
        if name in used
    ]
    found = {machine.number(os.path.join(one, "device/numa_node")) for one in places}
    if not places:
        found = _interface_nodes(os.path.join(top, "net"))
    return sorted(
        cpu
        for one in numa.nodes(root)
        if one["node"] in found
        for cpu in machine.cpu_list(one["cpus"])
    )


def _interface_nodes(top: str) -> set[int | None]:
    """NUMA nodes of the fastest interfaces that are up."""
    speeds: dict[int, set[int | None]] = {}
    for name in machine.entries(top):
        folder = os.path.join(top, name)
        speed = machine.number(os.path.join(folder, "speed")) or 0
        is_up = machine.text(os.path.join(folder, "operstate")) == "up"
        if is_up and speed > 0 and os.path.exists(os.path.join(folder, "device")):
            node = machine.number(os.path.join(folder, "device/numa_node"))
            speeds.setdefault(speed, set()).add(node)
    return speeds[max(speeds)] if speeds else set()


def _virtual(root: Root) -> tuple[str, ...]:
    """Bridges: they have the folder `bridge`, and most have the same address on every node."""
    top = os.path.join(root, "sys/class/net")
    return tuple(
        name for name in machine.entries(top) if os.path.isdir(os.path.join(top, name, "bridge"))
    )


# ---- settings ------------------------------------------------------------------------------------


def settings(
    fabric: Fabric,
    installation: Installation,
    environment: Mapping[str, str] | None = None,
    lanes: int = 1,
    loader: Loader | None = None,
) -> tuple[SettingWords, ...]:
    """(name, value, reason) for ranks on several nodes."""
    environment = os.environ if environment is None else environment
    layers = network_layers(installation.library)
    make = {
        OMNIPATH: _omnipath,
        INFINIBAND: _infiniband,
        SLINGSHOT: _slingshot,
        EFA: _efa,
        TCP: _tcp,
    }[fabric.kind]
    found = list(make(fabric, installation, layers, lanes, loader or Loader(environment)))
    return tuple(found + list(_fork_safety(fabric, environment)))


def network_layers(library: str) -> tuple[str, ...]:
    """ "ofi" and "ucx", as far as the MPI's library is linked to libfabric and to UCX."""
    names = elf.needed(os.path.realpath(library))
    return tuple(
        layer
        for layer, prefix in (("ofi", "libfabric.so"), ("ucx", "libucp.so"))
        if any(name.startswith(prefix) for name in names)
    )


def _netmod(installation: Installation, layers: Sequence[str], wanted: str, what: str) -> Settings:
    """MPIR_CVAR_CH4_NETMOD: MPICH's src/mpid/ch4 (MPICH 4 and 5 list it). Only where there is a
    choice: a name it was not built with ends the program."""
    if installation.family == "mpich" and set(layers) == {"ofi", "ucx"}:
        yield "MPIR_CVAR_CH4_NETMOD", wanted, f"{what} is reached through {_NAMES[wanted]}"


_NAMES = {"ofi": "libfabric", "ucx": "UCX"}


def _intel_provider(installation: Installation, names: Iterable[tuple[str, str]]) -> Settings:
    """I_MPI_OFI_PROVIDER: Intel MPI's developer reference, "OFI-capable network fabrics control".
    Only a provider whose file it has."""
    folder = providers(installation.prefix) if installation.family == "intel" else None
    files = os.listdir(folder) if folder else ()
    for name, file in names:
        if f"lib{file}-fi.so" in files:
            yield "I_MPI_OFI_PROVIDER", name, f"libfabric's provider for it ({file})"
            return


def _omnipath(
    fabric: Fabric, installation: Installation, layers: Sequence[str], lanes: int, loader: Loader
) -> Settings:
    yield from _netmod(installation, layers, "ofi", OMNIPATH)
    psm2 = loader.find("libpsm2.so.2")
    names = [("psm2", "psmx2")] if psm2 else []
    yield from _intel_provider(installation, [*names, ("opx", "opx")])
    if installation.family == "openmpi" and psm2:
        # fi_opx(7): with Open MPI, no UCX and no BTL on Omni-Path; the `cm` PML is the other way.
        yield "OMPI_MCA_pml", "cm", "Omni-Path matches messages itself"
        if lanes > 1 and "ofi" in layers:
            # PSM2's own MTL opens one endpoint a process; the ofi MTL one for each context.
            yield "OMPI_MCA_mtl", "ofi", "an endpoint for every lane needs libfabric's psm2"
    if psm2 and len(fabric.devices) > 1:
        # Open MPI's documentation, "Omni-Path": off by default; 1 is all adapters.
        yield "PSM2_MULTIRAIL", "1", f"all {len(fabric.devices)} adapters carry a rank's messages"


def _infiniband(
    fabric: Fabric, installation: Installation, layers: Sequence[str], lanes: int, loader: Loader
) -> Settings:
    yield from _netmod(installation, layers, "ucx", INFINIBAND)
    if not fabric.accelerated or ("ucx" not in layers and installation.family != "intel"):
        return
    if installation.family == "intel":
        yield from _intel_provider(installation, [("mlx", "mlx")])
    # UCX's FAQ, "List of main transports and aliases"; ud_x is how rc_x and dc_x get connected.
    transports = ",".join(("rc_x", "dc_x", "ud_x", "sm", "self", *fabric.gpus))
    yield "UCX_TLS", transports, "the adapter's accelerated transports, never plain verbs"
    if fabric.tag_matching:
        # The source is UCX's wiki, "UCX environment parameters"; the prefixes are in
        # uct/ib/mlx5/{rc,dc}. It is off by default.
        reason = "the adapter matches messages in hardware (ConnectX-5 and later)"
        for name in ("UCX_RC_MLX5_TM_ENABLE", "UCX_DC_MLX5_TM_ENABLE"):
            yield name, "y", f"{reason}; off with {name}=n"


def _slingshot(
    fabric: Fabric, installation: Installation, layers: Sequence[str], lanes: int, loader: Loader
) -> Settings:
    yield from _netmod(installation, layers, "ofi", SLINGSHOT)
    # fi_cxi(7): hardware alone stops the flow of messages while the adapter's lists are full.
    yield (
        "FI_CXI_RX_MATCH_MODE",
        "hybrid",
        "matching goes on in software when the adapter's lists are full",
    )


def _efa(
    fabric: Fabric, installation: Installation, layers: Sequence[str], lanes: int, loader: Loader
) -> Settings:
    yield from _netmod(installation, layers, "ofi", EFA)
    yield from _intel_provider(installation, [("efa", "efa")])


# Found in a `ropewalk cluster` of two rails (docs/explanation/line-rate.md).
_OB1_SIZES = (
    ("eager_limit", 32768),
    ("rndv_eager_limit", 32768),
    ("max_send_size", 65536),
    ("min_rdma_pipeline_size", 32768),
    ("rdma_pipeline_frag_size", 32768),
    ("rdma_pipeline_send_length", 32768),
)


def _uses_ucx(installation: Installation, layers: Sequence[str]) -> bool:
    return installation.family == "mpich" and "ucx" in layers


def _tcp(
    fabric: Fabric, installation: Installation, layers: Sequence[str], lanes: int, loader: Loader
) -> Settings:
    # MPICH's libfabric netmod uses one interface: only adapters on the PCI bus count as several
    # (MPIDI_OFI_fill_prov_use in src/mpid/ch4/netmod/ofi/ofi_nic.c).
    if fabric.rails > 1:
        rails = f"{fabric.rails} interfaces"
        yield from _netmod(installation, layers, "ucx", f"TCP over {rails}")
        if installation.family == "openmpi":
            reason = f"{rails} share messages from 32 KiB on"
            for name, size in _OB1_SIZES:
                yield f"OMPI_MCA_btl_tcp_{name}", str(size), reason
        if installation.family == "openmpi" or _uses_ucx(installation, layers):
            yield "UCX_MAX_EAGER_RAILS", str(fabric.rails), f"UCX: {rails} carry a message"
            yield "UCX_MAX_RNDV_RAILS", str(fabric.rails), f"UCX: {rails} carry a message"
            yield "UCX_RNDV_THRESH", "16384", "UCX: only a rendezvous is shared by them"
    if installation.family == "openmpi" or _uses_ucx(installation, layers):
        reason = "UCX over TCP sends larger messages in one direction at a time"
        yield "ROPEWALK_PIECE_BYTES", "1048576", reason
    if installation.family == "openmpi" and fabric.virtual:
        # Open MPI's btl_tcp_if_exclude, whose default is the first two (ompi_info).
        names = ",".join(("127.0.0.1/8", "sppp", *fabric.virtual))
        yield "OMPI_MCA_btl_tcp_if_exclude", names, "bridges here do not lead to other nodes"


def _fork_safety(fabric: Fabric, environment: Mapping[str, str]) -> Settings:
    """ibv_fork_init(3): with fork safety asked for and huge pages in use, RDMAV_HUGEPAGES_SAFE is
    required. EFA refuses both together (fi_efa(7), FI_EFA_FORK_SAFE)."""
    asked = any(environment.get(name) for name in ("RDMAV_FORK_SAFE", "IBV_FORK_SAFE"))
    if fabric.kind == EFA and (asked or environment.get("FI_EFA_FORK_SAFE", "0") not in ("0", "")):
        yield "ROPEWALK_PAGES", "never", "EFA takes fork safety or huge pages, not both"
    elif fabric.kind == INFINIBAND and asked:
        yield "RDMAV_HUGEPAGES_SAFE", "1", "fork safety of verbs has to know about huge pages"
