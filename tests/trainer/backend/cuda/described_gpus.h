// SPDX-License-Identifier: Apache-2.0
//
// GPUs by their properties, for cuDNN to make plans for without them.

#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/libraries/cudnn_api.h"

namespace trainer {

// Before cuDNN 9.8 no device can be described, and none is.
#if CUDNN_VERSION >= 90800
inline constexpr bool kDevicesCanBeDescribed = true;
inline constexpr auto kDescription = CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR;
inline constexpr auto kDescriptionJson = CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION;
#else
inline constexpr bool kDevicesCanBeDescribed = false;
inline constexpr cudnnBackendDescriptorType_t kDescription{};
inline constexpr cudnnBackendAttributeName_t kDescriptionJson{};
#endif

// A device by its properties, in the JSON that cuDNN writes of one that is there.
inline CudnnTarget DescribedDevice(const std::string& json) {
  auto device = std::make_shared<CudnnDescriptor>(kDescription);
  device->Set(kDescriptionJson, CUDNN_TYPE_CHAR,
              std::vector<char>(json.c_str(), json.c_str() + json.size() + 1));
  device->Finalize();
  return {nullptr, std::move(device)};
}

struct Gpu {
  const char* name;
  int version;  // compute capability * 100
  int processors;
  int shared_memory;                  // bytes that a block can have
  int reserved_shared_memory = 1024;  // bytes, of each block
  int l2_mebibytes = 40, memory_gibibytes = 80;
};

inline constexpr Gpu kV100{"V100", 700, 80, 98304, 0, 6, 16};
inline constexpr Gpu kA100{"A100", 800, 108, 166912};
inline constexpr Gpu kH100{"H100", 900, 132, 232448};

// In the form that cuDNN writes of a GPU that is there (9.8 to 9.19 read it).
inline CudnnTarget Described(const Gpu& gpu) {
  const auto number = [](const std::string& name, std::int64_t value) {
    return "\"" + name + "\":" + std::to_string(value) + ",";
  };
  return DescribedDevice("{" + number("cudaDeviceId", 0) + number("deviceVer", gpu.version) +
                         number("driverVer", 13000) + "\"maxGridSize\":[2147483647,65535,65535]," +
                         "\"maxBlockSize\":[1024,1024,64]," + number("regsPerBlock", 65536) +
                         number("multiProcessorCount", gpu.processors) + number("warpSize", 32) +
                         number("maxSharedMemoryPerBlock", 49152) +
                         number("maxSharedMemoryPerBlockOptin", gpu.shared_memory) +
                         number("reservedSharedMemoryPerBlock", gpu.reserved_shared_memory) +
                         number("maxRegistersPerSM", 65536) + number("maxCtasPerSM", 32) +
                         number("maxThreadsPerBlock", 1024) + number("maxThreadsPerSM", 2048) +
                         number("pciDeviceId", 0) + number("isTccDriver", 0) +
                         number("supportCoopLaunch", 1) + number("smClockRateKHz", 1410000) +
                         number("memClockRateKHz", 1215000) +
                         number("l2CacheSize", gpu.l2_mebibytes << 20) +
                         number("totalGlobalMem", std::int64_t{gpu.memory_gibibytes} << 30) +
                         "\"deviceName\":\"" + gpu.name + "\"}");
}

}  // namespace trainer
