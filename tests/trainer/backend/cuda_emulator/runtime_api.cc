// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/trainer/backend/cuda_emulator/runtime_state.h"

using cuda_emulator::Entered;
using cuda_emulator::Queue;
using cuda_emulator::RejectWhileRecording;
using cuda_emulator::Result;

namespace {

std::atomic<std::size_t> cleared_bytes = 0;

// The driver is a little older, as CUDA allows.
constexpr int kRuntimeVersion = 12040;
constexpr std::size_t kAlignment = 256;  // of cudaMalloc
constexpr std::size_t kPage = 4096;      // traffic.h counts the same each time
constexpr int kWarp = 32;
constexpr int kThreadsPerBlock = 1024;
// An A100's, so that choices by them are as on a real one.
std::atomic<int> capability_major = 8;
std::atomic<int> capability_minor = 0;
std::atomic<cudaError_t> code_of_kernels = cudaSuccess;
std::atomic<int> ptx_version_of_kernels = 90;
std::atomic<int> driver_version = 12020;
std::atomic<int> multiprocessors = 108;
constexpr int kSharedBytes = 163 << 10;  // of a thread block, as an A100

// On the heap: buffers may be released after the statics are gone.
struct DeviceMemory {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> allocations;
  std::size_t used = 0;
  std::map<const std::byte*, std::size_t> pinned;  // of the host
};

DeviceMemory& TheDeviceMemory() {
  static auto* memory = new DeviceMemory;
  return *memory;
}

// Of each OS thread; nothing is thread_local here (shared_memory.h).
struct LastErrors {
  std::mutex mutex;
  std::map<std::thread::id, cudaError_t> of_threads;
};

LastErrors& TheLastErrors() {
  static auto* errors = new LastErrors;
  return *errors;
}

// Returns what was there before.
cudaError_t SetLastError(cudaError_t error) {
  LastErrors& errors = TheLastErrors();
  const std::lock_guard lock(errors.mutex);
  return std::exchange(errors.of_threads[std::this_thread::get_id()], error);
}

// How cuda_emulator::FailAfter has it.
std::atomic<cudaError_t> fault = cudaSuccess;
std::atomic<int> calls_before_fault = 0;

cudaError_t Check(bool valid) { return Result(valid ? cudaSuccess : cudaErrorInvalidValue); }

bool IsIn(const std::map<const std::byte*, std::size_t>& memory, const void* begin,
          std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(begin);
  auto after = memory.upper_bound(first);
  if (after == memory.begin()) return false;
  const auto& [start, size] = *--after;
  const auto offset = static_cast<std::size_t>(first - start);
  return offset <= size && bytes <= size - offset;
}

bool IsOnDevice(const void* begin, std::size_t bytes) {
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  return IsIn(device.allocations, begin, bytes);
}

// Exactly so many bytes: AddressSanitizer sees what goes past them.
void* Aligned(std::size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, bytes < kPage ? kAlignment : kPage, bytes) == 0 ? memory : nullptr;
}

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;  // CUDA's
};

constexpr ErrorText kErrorTexts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& TextOf(cudaError_t error) {
  for (const ErrorText& text : kErrorTexts) {
    if (text.error == error) return text;
  }
  static constexpr ErrorText kOther = {cudaErrorUnknown, "cudaErrorOfNoName",
                                       "an error that the emulator has no text for"};
  return kOther;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) { return TextOf(error).name; }

const char* cudaGetErrorString(cudaError_t error) { return TextOf(error).text; }

cudaError_t cudaGetLastError() {
  Entered();
  return SetLastError(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = driver_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  return Result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (device != 0) return Result(cudaErrorInvalidDevice);
  *properties = {.name = "CUDA emulated on the CPU",
                 .totalGlobalMem = cuda_emulator::kDeviceBytes,
                 .major = capability_major,
                 .minor = capability_minor,
                 .multiProcessorCount = multiprocessors,
                 .warpSize = kWarp,
                 .maxThreadsPerBlock = kThreadsPerBlock};
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (kernel == nullptr) return Result(cudaErrorInvalidDeviceFunction);
  *attributes = {.numRegs = 32, .ptxVersion = ptx_version_of_kernels};
  return Result(code_of_kernels);
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (device != 0) return Result(cudaErrorInvalidDevice);
  return Check(std::snprintf(id, static_cast<std::size_t>(bytes), "0000:65:00.0") < bytes);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (device != 0) return Result(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = kThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = kWarp;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = multiprocessors;
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = cuda_emulator::kL2CacheBytes;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = kSharedBytes;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = capability_major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = capability_minor;
      return cudaSuccess;
  }
  return Result(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  return RejectWhileRecording();
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  *total = cuda_emulator::kDeviceBytes;
  *free = *total - device.used;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (const cudaError_t failed = RejectWhileRecording(); failed != cudaSuccess) return failed;
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
  if (memory == nullptr) return Entered();
  if (const cudaError_t failed = RejectWhileRecording(); failed != cudaSuccess) return failed;
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  const auto found = device.allocations.find(static_cast<const std::byte*>(memory));
  if (found == device.allocations.end()) return Result(cudaErrorInvalidValue);
  device.used -= found->second;
  device.allocations.erase(found);
  std::free(memory);
  return Entered();
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (const cudaError_t failed = RejectWhileRecording(); failed != cudaSuccess) return failed;
  *memory = bytes == 0 ? nullptr : Aligned(bytes);
  if (*memory == nullptr) return Result(bytes > 0 ? cudaErrorMemoryAllocation : cudaSuccess);
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  device.pinned.emplace(static_cast<const std::byte*>(*memory), bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  {
    DeviceMemory& device = TheDeviceMemory();
    const std::lock_guard lock(device.mutex);
    device.pinned.erase(static_cast<const std::byte*>(memory));
  }
  std::free(memory);
  return Entered();
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (bytes == 0) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return Queue(stream, [=](int /*priority*/) {
    if ((to_device && !IsOnDevice(dst, bytes)) || (from_device && !IsOnDevice(src, bytes))) {
      return Result(cudaErrorInvalidValue);
    }
    std::memmove(dst, src, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* dst, int value, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (bytes == 0) return cudaSuccess;
  return Queue(stream, [=](int /*priority*/) {
    if (!IsOnDevice(dst, bytes)) return Result(cudaErrorInvalidValue);
    std::memset(dst, value, bytes);
    cleared_bytes += bytes;
    return cudaSuccess;
  });
}

std::size_t cuda_emulator::ClearedBytes() { return cleared_bytes; }

cudaError_t cudaMemset(void* dst, int value, std::size_t bytes) {
  return cudaMemsetAsync(dst, value, bytes);
}

namespace cuda_emulator {

cudaError_t Result(cudaError_t error) {
  if (error != cudaSuccess) SetLastError(error);
  return error;
}

cudaError_t Entered() {
  if (fault == cudaSuccess || calls_before_fault.fetch_sub(1) > 0) return cudaSuccess;
  calls_before_fault = 0;
  return Result(fault);
}

void FailAfter(int calls, cudaError_t error) {
  calls_before_fault = calls;
  fault = error;
}

void Mend() {
  fault = cudaSuccess;
  SetLastError(cudaSuccess);
}

void PretendMultiprocessors(int count) { multiprocessors = count; }

void PretendComputeCapability(int major, int minor) {
  capability_major = major;
  capability_minor = minor;
}

void PretendToHaveCode(cudaError_t code) { code_of_kernels = code; }
void PretendCodeFor(int ptx_version) { ptx_version_of_kernels = ptx_version; }
void PretendDriver(int version) { driver_version = version; }

std::map<const std::byte*, std::size_t> DeviceAllocations() {
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  return device.allocations;
}

std::size_t AllocatedBytes() {
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  return device.used;
}

bool IsForKernels(const void* address) {
  DeviceMemory& device = TheDeviceMemory();
  const std::lock_guard lock(device.mutex);
  return IsIn(device.allocations, address, 0) || IsIn(device.pinned, address, 0);
}

}  // namespace cuda_emulator
