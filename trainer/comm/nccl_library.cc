// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/nccl_library.h"

#include <dlfcn.h>

#include <stdexcept>

#include "trainer/core/module_path.h"

namespace trainer {
namespace {

// Of the first release with non-blocking communicators that end as this project needs it.
constexpr int kOldestVersion = NCCL_VERSION(2, 18, 1);
constexpr int kRegistersMemory = NCCL_VERSION(2, 19, 1);

// As ncclGetVersion writes it since 2.9: 22809.
std::string ToText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

// Of a wheel: PyPI's, beside the module for CUDA.
std::string LibraryOfPackages() {
  if (*DDLRUN_CUDA_EXTRA == '\0') return "";
  const std::string packages =
      PackagesBeside("ddlrun_train_" DDLRUN_CUDA_EXTRA "/ddltrain_cuda.so");
  return packages.empty() ? "" : packages + "/nvidia/nccl/lib/libnccl.so.2";
}

void* OpenLibrary() {
  const std::string of_packages = LibraryOfPackages();
  std::string problem;
  // The last is where it was when this program was built.
  for (const char* name : {of_packages.c_str(), "libnccl.so.2", DDLRUN_NCCL_LIBRARY}) {
    if (*name == '\0') continue;
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    if (problem.empty()) problem = dlerror();
  }
  throw std::runtime_error("NCCL cannot be loaded: " + problem);
}

template <typename Function>
void Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error("NCCL has no " + std::string(name));
}

NcclLibrary Load() {
  NcclLibrary nccl;
  try {
    void* library = OpenLibrary();
    decltype(&ncclGetVersion) get_version = nullptr;
    Find(library, "ncclGetVersion", get_version);
    int version = 0;
    get_version(&version);
    nccl.version = ToText(version);
    if (version < kOldestVersion) {
      throw std::runtime_error("NCCL " + nccl.version + " is older than 2.18");
    }
    Find(library, "ncclGetUniqueId", nccl.get_unique_id);
    Find(library, "ncclCommInitRankConfig", nccl.comm_init_rank_config);
    Find(library, "ncclCommGetAsyncError", nccl.comm_get_async_error);
    Find(library, "ncclAllReduce", nccl.all_reduce);
    Find(library, "ncclCommFinalize", nccl.comm_finalize);
    Find(library, "ncclCommDestroy", nccl.comm_destroy);
    Find(library, "ncclCommAbort", nccl.comm_abort);
    Find(library, "ncclGetErrorString", nccl.get_error_string);
    Find(library, "ncclGetLastError", nccl.get_last_error);
    if (version < kRegistersMemory) return nccl;
    Find(library, "ncclMemAlloc", nccl.mem_alloc);
    Find(library, "ncclMemFree", nccl.mem_free);
    Find(library, "ncclCommRegister", nccl.comm_register);
    Find(library, "ncclCommDeregister", nccl.comm_deregister);
  } catch (const std::runtime_error& error) {
    nccl.problem = error.what();
  }
  return nccl;
}

}  // namespace

const NcclLibrary& TheNcclLibrary() {
  static const NcclLibrary nccl = Load();
  return nccl;
}

}  // namespace trainer
