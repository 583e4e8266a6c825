-- A module for Lmod: copy it to MODULEPATH/ropewalk/VERSION.lua and set `prefix` to where
-- `make install PREFIX=...` put the libraries.
help([[Line-rate communication for MPI programs, from user space. `module load` starts nothing and
changes no program: LD_PRELOAD stays as it is. Programs that link ropewalk find it; unchanged ones
are started with the drop-in: LD_PRELOAD=$LD_PRELOAD_ROPEWALK mpiexec -n 4 ./program. The command
`ropewalk` is in the Python package.]])
whatis("Name: ropewalk")
whatis("Version: 0.1.0")
whatis("Category: library, MPI")

local prefix = "/opt/ropewalk/0.1.0"
local lib = pathJoin(prefix, "lib")

prepend_path("PATH", pathJoin(prefix, "libexec/ropewalk"))
prepend_path("LD_LIBRARY_PATH", lib)
setenv("LD_PRELOAD_ROPEWALK",
       pathJoin(lib, "libropewalk-malloc.so") .. ":" .. pathJoin(lib, "libropewalk-mpi.so"))
prepend_path("LIBRARY_PATH", lib)
prepend_path("CPATH", pathJoin(prefix, "include"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
prepend_path("PKG_CONFIG_PATH", pathJoin(lib, "pkgconfig"))
