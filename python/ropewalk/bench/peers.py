"""The MPIs that figures are compared with."""

from collections.abc import Mapping

# Name of a peer: the MPI, and the variables that make it this peer.
PEERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "mpich": ("mpich", {}),
    "mpich-nodevice": ("mpich", {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"}),
    "openmpi": ("openmpi", {}),
    "openmpi-ucx": (
        "openmpi",
        {
            "OMPI_MCA_pml": "ucx",
            "OMPI_MCA_pml_ucx_tls": "any",
            "OMPI_MCA_pml_ucx_devices": "any",
        },
    ),
    "intel": ("intel", {}),
}
