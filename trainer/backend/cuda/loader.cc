// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/loader.h"

#include <dlfcn.h>

#include <filesystem>

#include "trainer/backend/cuda/cuda_backend.h"
#include "trainer/core/error.h"
#include "trainer/core/module_path.h"

// Of the C++ library that this program is linked with; its own headers declare it or not.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" void* __cxa_get_globals();

namespace trainer {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kModule = "ddltrain_cuda.so";
constexpr bool kIsOfWheel = *DDLRUN_CUDA_EXTRA != '\0';
constexpr const char* kPip = "pip install 'ddlrun[" DDLRUN_CUDA_EXTRA "]'";

std::string PathOfModule() {
  if (!kIsOfWheel) return ModulePath(kModule);
  const std::string name = std::string("ddlrun_train_" DDLRUN_CUDA_EXTRA "/") + kModule;
  const std::string packages = PackagesBeside(name);
  return packages.empty() ? "" : packages + "/" + name;
}

bool IsThere(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string HowToInstall(const std::string& path) {
  return kIsOfWheel ? std::string(kPip) + " brings it"
                    : "there is no " + path + ", where this program looks for it";
}

const LoadedModule& TheModule() {
  static const LoadedModule loaded = [] {
    const std::string problem = DriverProblem(kDriver);
    return problem.empty() ? LoadCudaModule(PathOfModule()) : LoadedModule{nullptr, problem};
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
  if (!IsThere(path)) {
    return rejected("the cuda back end is not installed: " + HowToInstall(path));
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return rejected(std::string("the cuda back end cannot be loaded: ") + dlerror() +
                    "; it needs CUDA's runtime, cuDNN and cuBLASLt (ldd " + path +
                    " shows which is missing): " +
                    (kIsOfWheel ? std::string(kPip) + " brings them"
                                : "load their modules, or name their directories in "
                                  "LD_LIBRARY_PATH"));
  }
  if (auto* share = reinterpret_cast<ShareExceptions>(dlsym(library, kShareExceptions))) {
    share(__cxa_get_globals);
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

std::string CudaModuleFile() {
  const std::string path = PathOfModule();
  return IsThere(path) ? path : "not installed: " + HowToInstall(path);
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
