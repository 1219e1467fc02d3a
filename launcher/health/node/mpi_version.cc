// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/mpi_version.h"

#include <dlfcn.h>

#include <vector>

namespace launcher {

std::string FindMpiVersion() {
  // The libraries of Open MPI 4 and 5, of Spectrum MPI, and of MPICH and those made of it.
  for (const char* name : {"libmpi.so.40", "libmpi_ibm.so.3", "libmpi.so.12"}) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    // By the MPI standard this may be called before MPI_Init.
    using Function = int (*)(char*, int*);
    const auto get = reinterpret_cast<Function>(dlsym(library, "MPI_Get_library_version"));
    std::vector<char> text(16384);  // MPI_MAX_LIBRARY_VERSION_STRING is 256 or 8192
    int length = 0;
    if (get == nullptr || get(text.data(), &length) != 0) continue;
    const std::string version = text.data();
    return version.substr(0, version.find_first_of(",\n"));
  }
  return "";
}

}  // namespace launcher
