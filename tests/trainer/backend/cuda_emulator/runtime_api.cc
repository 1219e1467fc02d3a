// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

struct CUstream_st {};

struct CUevent_st {
  bool timed = true;
  std::optional<std::chrono::steady_clock::time_point> recorded;
};

namespace {

constexpr int kVersion = 12040;
constexpr std::size_t kAlignment = 256;  // of cudaMalloc
constexpr int kWarp = 32;
constexpr int kThreadsPerBlock = 1024;
// An A100's, so that choices by them are as on a real one.
constexpr int kMajor = 8;
constexpr int kMinor = 0;
constexpr int kMultiprocessors = 108;

// On the heap: buffers may be released after the statics are gone.
struct DeviceMemory {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> allocations;
  std::size_t used = 0;
};

DeviceMemory& TheDeviceMemory() {
  static auto* memory = new DeviceMemory;
  return *memory;
}

// Of all OS threads together: nothing thread_local here (shared_memory.h).
std::atomic<cudaError_t> last_error = cudaSuccess;

cudaError_t Result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t Check(bool valid) { return Result(valid ? cudaSuccess : cudaErrorInvalidValue); }

bool IsOnDevice(const void* begin, std::size_t bytes) {
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  const auto* first = static_cast<const std::byte*>(begin);
  auto after = device.allocations.upper_bound(first);
  if (after == device.allocations.begin()) return false;
  const auto& [start, size] = *--after;
  const auto offset = static_cast<std::size_t>(first - start);
  return offset <= size && bytes <= size - offset;
}

// Exactly so many bytes: AddressSanitizer sees what goes past them.
void* Aligned(std::size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, kAlignment, bytes) == 0 ? memory : nullptr;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    default:
      return "an error that the emulator never gives";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    default:
      return "an error that the emulator never gives";
  }
}

cudaError_t cudaGetLastError() { return last_error.exchange(cudaSuccess); }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return Result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return Result(cudaErrorInvalidDevice);
  *properties = {.name = "CUDA emulated on the CPU",
                 .totalGlobalMem = cuda_emulator::kDeviceBytes,
                 .major = kMajor,
                 .minor = kMinor,
                 .multiProcessorCount = kMultiprocessors,
                 .warpSize = kWarp,
                 .maxThreadsPerBlock = kThreadsPerBlock};
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (device != 0) return Result(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<std::size_t>(bytes), "0000:00:00.0");
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return Result(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = kThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = kWarp;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = kMajor;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = kMinor;
      return cudaSuccess;
  }
  return Result(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  *total = cuda_emulator::kDeviceBytes;
  *free = *total - device.used;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  if (bytes > cuda_emulator::kDeviceBytes - device.used) return Result(cudaErrorMemoryAllocation);
  void* allocated = Aligned(bytes);
  if (allocated == nullptr) return Result(cudaErrorMemoryAllocation);
  std::memset(allocated, 0xFF, bytes);
  device.allocations.emplace(static_cast<const std::byte*>(allocated), bytes);
  device.used += bytes;
  *memory = allocated;
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  const auto found = device.allocations.find(static_cast<const std::byte*>(memory));
  if (found == device.allocations.end()) return Result(cudaErrorInvalidValue);
  device.used -= found->second;
  device.allocations.erase(found);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  *memory = bytes == 0 ? nullptr : Aligned(bytes);
  return Result(bytes > 0 && *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t /*stream*/) {
  if (bytes == 0) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((to_device && !IsOnDevice(dst, bytes)) || (from_device && !IsOnDevice(src, bytes))) {
    return Result(cudaErrorInvalidValue);
  }
  std::memmove(dst, src, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* dst, int value, std::size_t bytes, cudaStream_t /*stream*/) {
  if (bytes == 0) return cudaSuccess;
  if (!IsOnDevice(dst, bytes)) return Result(cudaErrorInvalidValue);
  std::memset(dst, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* dst, int value, std::size_t bytes) {
  return cudaMemsetAsync(dst, value, bytes);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = new CUstream_st;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) { return cudaSuccess; }

cudaError_t cudaStreamQuery(cudaStream_t /*stream*/) { return cudaSuccess; }

cudaError_t cudaStreamWaitEvent(cudaStream_t /*stream*/, cudaEvent_t event, unsigned /*flags*/) {
  return Check(event != nullptr);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, std::nullopt};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t /*stream*/) {
  event->recorded = std::chrono::steady_clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return Check(event != nullptr); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start->timed || !end->timed || !start->recorded || !end->recorded) {
    return Result(cudaErrorInvalidResourceHandle);
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(*end->recorded - *start->recorded).count();
  return cudaSuccess;
}
