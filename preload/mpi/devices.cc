#include "devices.hpp"

#include <dlfcn.h>
#include <link.h>
#include <strings.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "mpi/library.hpp"
#include "settings/value.hpp"

namespace ropewalk::preload {
namespace {

// What makes memory of devices: the drivers' own libraries. Whatever runtime a program uses, it
// loads one of them before it has such memory.
constexpr std::array runtimes = {"libcuda.so", "libamdhip64.so", "libhsa-runtime64.so",
                                 "libze_loader.so"};

// By these functions, MPIs of the Open MPI family tell that they accept such memory. They take no
// argument.
constexpr std::array queries = {"MPIX_Query_cuda_support", "MPIX_Query_rocm_support",
                                "MPIX_Query_hip_support", "MPIX_Query_ze_support"};
// MPICH has MPIX_GPU_query_support(kind, &flag).
constexpr int mpich_kinds = 3;  // MPIX_GPU_SUPPORT_CUDA, _ZE, _HIP

// These variables switch it on in MPIs that have no function to ask: Intel MPI, Cray MPICH,
// MVAPICH, Open MPI 4, PSM2 underneath others.
constexpr std::array switches = {"I_MPI_OFFLOAD",
                                 "MPICH_GPU_SUPPORT_ENABLED",
                                 "MV2_USE_CUDA",
                                 "MV2_USE_ROCM",
                                 "MVP_USE_CUDA",
                                 "MVP_USE_ROCM",
                                 "PSM2_CUDA",
                                 "PSM3_GPUDIRECT",
                                 "MPIR_CVAR_ENABLE_GPU",
                                 "OMPI_MCA_opal_cuda_support"};

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// The name in `runtimes` of one that is loaded; null: none.
const char* loaded_runtime() {
  const char* found = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        const char* name = base_name(info->dlpi_name == nullptr ? "" : info->dlpi_name);
        for (const char* runtime : runtimes) {
          if (std::strncmp(name, runtime, std::strlen(runtime)) != 0) continue;
          *static_cast<const char**>(out) = runtime;
          return 1;
        }
        return 0;
      },
      &found);
  return found;
}

void* symbol(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  void* file = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return file == nullptr ? nullptr : dlsym(file, name);
}

bool mpich_says() {
  auto* query = reinterpret_cast<int (*)(int, int*)>(symbol("MPIX_GPU_query_support"));
  if (query == nullptr) return false;
  for (int kind = 0; kind < mpich_kinds; ++kind) {
    int flag = 0;
    if (query(kind, &flag) == 0 && flag != 0) return true;
  }
  return false;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return false;
  for (const char* no : {"0", "no", "off", "false", "disable"}) {
    if (strcasecmp(value, no) == 0) return false;
  }
  return true;
}

// What says that the MPI takes a device's memory; null: nothing does.
const char* awareness() {
  for (const char* name : queries) {
    auto* query = reinterpret_cast<int (*)()>(symbol(name));
    if (query != nullptr && query() == 1) return name;
  }
  if (mpich_says()) return "MPIX_GPU_query_support";
  for (const char* variable : switches) {
    if (is_set(variable)) return variable;
  }
  return nullptr;
}

}  // namespace

std::string device_memory() {
  if (settings::read(settings::Id::device_buffers).is("off")) return "";
  const char* runtime = loaded_runtime();
  const char* aware = runtime == nullptr ? nullptr : awareness();
  if (aware == nullptr) return "";
  return std::string(runtime) + " is loaded, and " + aware + " says that MPI takes its memory";
}

}  // namespace ropewalk::preload
