# Copy this file to the folder packages/ropewalk of a Spack repository of your own, as
# docs/how-to/install.md says. Spack gives the names that `from spack.package import *` brings.
from spack.package import *


class Ropewalk(CMakePackage):
    """Line-rate communication for MPI programs, from user space."""

    homepage = "https://example.org/ropewalk"  # replaced where a release is published
    url = "https://example.org/ropewalk/ropewalk-0.1.0.tar.gz"

    license("Apache-2.0")

    # The sum of a release's source archive stands here from its release on.
    version("0.1.0")

    variant("benchmarks", default=True, description="Build the benchmark programs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    with when("+benchmarks"):
        depends_on("fmt@9:")
        depends_on("cli11@2:")
        depends_on("nlohmann-json@3.11:")

    # GCC 12 is what it is tested with; C++20 as used here needs 11.
    conflicts("%gcc@:10", msg="ropewalk needs C++20: GCC 11 or newer")
    conflicts("platform=darwin", msg="ropewalk needs Linux")

    def cmake_args(self):
        return [
            f"-DROPEWALK_BENCH={'ON' if self.spec.satisfies('+benchmarks') else 'OFF'}",
            "-DROPEWALK_TESTS=OFF",
            "-DROPEWALK_EXAMPLES=OFF",
        ]

    def setup_run_environment(self, env):
        env.prepend_path("PATH", join_path(self.prefix.libexec, "ropewalk"))
