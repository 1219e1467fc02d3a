// SPDX-License-Identifier: Apache-2.0
//
// NVML is NVIDIA's management library, which is loaded at run time.  nvml.cc has the few
// declarations of nvml.h that are needed.  What an older driver has no function for stays unknown.

#pragma once

#include <dlfcn.h>

#include <array>
#include <string>
#include <vector>

#include "launcher/health/node_info.h"

namespace launcher {

// NVML, loaded at run time, for the files that ask it.  The few types that are needed are from
// nvml.h of CUDA 11.8, or of the version that they say; these have the same layout and values in
// every later version.

using NvmlDevice = struct nvmlDevice_st*;
using NvmlReturn = int;
inline constexpr NvmlReturn kNvmlSuccess = 0;

struct NvmlPciInfo {  // nvmlPciInfo_t
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};

class NvmlLibrary {
 public:
  explicit NvmlLibrary(const std::string& name)
      : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  // Never unloaded: the driver's threads may still be in it.
  bool is_open() const { return handle_ != nullptr; }

  // Calls a function of the library; false when it is missing or fails.
  template <typename... Arguments>
  bool Call(const char* name, Arguments... arguments) const {
    return Result(name, arguments...) == kNvmlSuccess;
  }
  template <typename... Arguments>
  NvmlReturn Result(const char* name, Arguments... arguments) const {
    using Function = NvmlReturn (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(dlsym(handle_, name));
    return function == nullptr ? -1 : function(arguments...);
  }
  std::string ErrorText(NvmlReturn error) const {
    using Function = const char* (*)(NvmlReturn);
    const auto function = reinterpret_cast<Function>(dlsym(handle_, "nvmlErrorString"));
    return function == nullptr ? "error " + std::to_string(error) : function(error);
  }

 private:
  void* handle_;
};

struct FoundGpu {
  GpuInfo info;
  std::string uuid;  // "GPU-...", "" not known
};

// The GPUs in the order of NVML, which is that of their PCI bus ids.  None when `library` is not
// there, or when it fails; only then `problem` says why.
std::vector<FoundGpu> ReadNvml(const std::string& library, std::string& problem);

}  // namespace launcher
