// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/loader.h"

#include <dlfcn.h>

#include <filesystem>

#include "trainer/backend/cuda/cuda_backend.h"
#include "trainer/core/error.h"
#include "trainer/core/module_path.h"

namespace trainer {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

const LoadedModule& TheModule() {
  static const LoadedModule loaded = [] {
    const std::string problem = DriverProblem(kDriver);
    return problem.empty() ? LoadCudaModule(ModulePath("ddltrain_cuda.so"))
                           : LoadedModule{nullptr, problem};
  }();
  return loaded;
}

}  // namespace

std::string DriverProblem(const std::string& library) {
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return "";
  return std::string("no GPU: there is no NVIDIA driver (") + dlerror() + ")";
}

LoadedModule LoadCudaModule(const std::string& path) {
  const auto rejected = [](const std::string& why) { return LoadedModule{nullptr, why}; };
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return rejected("the cuda back end is not installed: there is no " + path +
                    ", where this program looks for it");
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return rejected(std::string("the cuda back end cannot be loaded: ") + dlerror() +
                    "; it needs CUDA's runtime, cuDNN and cuBLASLt (ldd " + path +
                    " shows which is missing): load their modules, or name their directories in "
                    "LD_LIBRARY_PATH");
  }
  const auto entry = reinterpret_cast<CudaModuleEntry>(dlsym(library, kCudaModuleEntry));
  if (entry == nullptr) return rejected(path + " is not the cuda back end of ddltraind");
  const CudaModule* module = entry();
  if (module->build != std::string(kCudaModuleBuild)) {
    return rejected(path + " is of another build (" + module->build + ") than this program (" +
                    kCudaModuleBuild + "): install both from one");
  }
  return {module, ""};
}

std::string CudaProblem() {
  const LoadedModule& loaded = TheModule();
  return loaded.module == nullptr ? loaded.problem : loaded.module->problem();
}

std::unique_ptr<Backend> MakeCudaBackend(const BackendOptions& options) {
  const LoadedModule& loaded = TheModule();
  if (loaded.module == nullptr) {
    throw Error(EX_UNAVAILABLE, loaded.problem + "; --backend=cpu computes without one");
  }
  return loaded.module->make(options);
}

}  // namespace trainer
