# Copy this file to the folder packages/py-ropewalk of a Spack repository of your own, as
# docs/how-to/install.md says. Spack gives the names that `from spack.package import *` brings.
from spack.package import *


class PyRopewalk(PythonPackage):
    """Line-rate communication for NumPy, mpi4py and PyTorch, and the command `ropewalk`."""

    homepage = "https://example.org/ropewalk"  # replaced where a release is published
    url = "https://example.org/ropewalk/ropewalk-0.1.0.tar.gz"

    license("Apache-2.0")

    # The sum of a release's source archive stands here from its release on.
    version("0.1.0")

    variant("mpi4py", default=True, description="Bring communicators of Python along")
    variant("torch", default=False, description="Bring PyTorch along, for its backend")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("py-nanobind@2.4:", type="build")
    # The benchmark programs are part of the package where these are found.
    depends_on("fmt@9:")
    depends_on("cli11@2:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-numpy@1.24:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-mpi4py@4.1:", type=("build", "run"), when="+mpi4py")
    depends_on("py-torch@2.6:", type=("build", "run"), when="+torch")

    conflicts("%gcc@:10", msg="ropewalk needs C++20: GCC 11 or newer")
    conflicts("platform=darwin", msg="ropewalk needs Linux")
