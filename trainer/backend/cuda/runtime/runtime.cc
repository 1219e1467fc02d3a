// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime/runtime.h"

#include <atomic>

#include "trainer/core/error.h"

namespace trainer {
namespace {

std::atomic<bool> allows_programmatic_launch = false;

// "GPU 0 (PCI 0000:65:00.0)": the current one when this is first called.  A GPU that has failed
// would no longer say.
const std::string& NameOfDevice() {
  static const std::string name = [] {
    int device = 0;
    cudaGetDevice(&device);
    const std::string number = "GPU " + std::to_string(device);
    char address[16] = "";
    const cudaError_t result = cudaDeviceGetPCIBusId(address, sizeof address, device);
    return result == cudaSuccess ? number + " (PCI " + address + ")" : number;
  }();
  return name;
}

std::string TextOf(cudaError_t result) {
  return std::string(cudaGetErrorString(result)) + " (" + cudaGetErrorName(result) + ")";
}

// After these nothing works any more on the GPU, in this process at least.  Both a GPU that breaks
// and a kernel that does can be behind them.
bool IsFailureOfDevice(cudaError_t result) {
  switch (result) {
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

int ExitCodeOf(cudaError_t result) {
  switch (result) {
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
      return EX_UNAVAILABLE;
    default:
      return EX_SOFTWARE;
  }
}

class CudaStream final : public Stream {
 public:
  explicit CudaStream(int priority) {
    CheckCuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority),
              "making a stream");
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override { cudaStreamDestroy(stream_); }

  void Synchronize() override {
    CheckCuda(cudaStreamSynchronize(stream_), "waiting for the GPU's work");
  }
  bool Finished() override {
    const cudaError_t result = cudaStreamQuery(stream_);
    if (result == cudaErrorNotReady) {
      cudaGetLastError();  // forget it: the next kernel would be blamed
      return false;
    }
    CheckCuda(result, "looking at the GPU's work");
    return true;
  }
  bool Records() const override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    CheckCuda(cudaStreamIsCapturing(stream_, &status), "asking whether work is recorded");
    return status != cudaStreamCaptureStatusNone;
  }
  void* handle() const override { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent final : public Event {
 public:
  CudaEvent() { CheckCuda(cudaEventCreateWithFlags(&event_, cudaEventDefault), "making an event"); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override { cudaEventDestroy(event_); }

  void Record(Stream& stream) override {
    CheckCuda(cudaEventRecord(event_, HandleOf(stream)), "recording an event");
  }
  void RecordTime(Stream& stream) override {
    const unsigned flags = stream.Records() ? cudaEventRecordExternal : cudaEventRecordDefault;
    CheckCuda(cudaEventRecordWithFlags(event_, HandleOf(stream), flags), "recording an event");
  }
  void MakeWait(Stream& stream) override {
    CheckCuda(cudaStreamWaitEvent(HandleOf(stream), event_, 0), "waiting for an event");
  }
  void Synchronize() override {
    CheckCuda(cudaEventSynchronize(event_), "waiting for the GPU's work");
  }
  double SecondsSince(const Event& earlier) const override {
    float milliseconds = 0;
    CheckCuda(
        cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event_, event_),
        "reading an event");
    return milliseconds / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

void CheckCuda(cudaError_t result, const char* action) {
  if (result == cudaSuccess) return;
  const std::string text = std::string(action) + ": " + TextOf(result);
  if (result == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  if (!IsFailureOfDevice(result)) throw Error(ExitCodeOf(result), text);
  throw Error(EX_OSERR,
              text + ": " + NameOfDevice() +
                  " failed, or a kernel did on it: the kernel log of its machine knows more "
                  "(dmesg | grep Xid); the same command resumes from the last checkpoint, and "
                  "ddlrun --max-restarts gives it by itself");
}

void CheckDevice(const std::string& action) {
  const cudaError_t result = cudaGetLastError();
  if (IsFailureOfDevice(result)) CheckCuda(result, action.c_str());
}

void TakeDevice(int device) {
  cudaError_t result = cudaSetDevice(device);
  // Before CUDA 12 the GPU is not asked for until somebody uses it.
  if (result == cudaSuccess) result = cudaFree(nullptr);
  if (result != cudaSuccess) {
    throw Error(EX_UNAVAILABLE, "GPU " + std::to_string(device) + " cannot be used: " +
                                    TextOf(result) + "; nvidia-smi shows who else uses it");
  }
  NameOfDevice();
}

namespace {

int AttributeOfCurrent(cudaDeviceAttr attribute, const char* action) {
  int device = 0;
  int value = 0;
  CheckCuda(cudaGetDevice(&device), "asking for the current GPU");
  CheckCuda(cudaDeviceGetAttribute(&value, attribute, device), action);
  return value;
}

}  // namespace

int SmCount() {
  return AttributeOfCurrent(cudaDevAttrMultiProcessorCount, "asking for the GPU's multiprocessors");
}

int ComputeCapabilityMajor() {
  return AttributeOfCurrent(cudaDevAttrComputeCapabilityMajor,
                            "asking for the GPU's compute capability");
}

std::size_t L2CacheBytes() {
  return static_cast<std::size_t>(
      AttributeOfCurrent(cudaDevAttrL2CacheSize, "asking for the GPU's L2 cache"));
}
std::size_t MaxSharedBytes() {
  return static_cast<std::size_t>(AttributeOfCurrent(cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                                     "asking for the GPU's shared memory"));
}

std::unique_ptr<Stream> MakeCudaStream() {
  constexpr int kDefaultPriority = 0;
  return std::make_unique<CudaStream>(kDefaultPriority);
}

std::unique_ptr<Stream> MakeHighPriorityCudaStream() {
  int greatest = 0;
  CheckCuda(cudaDeviceGetStreamPriorityRange(nullptr, &greatest),
            "asking for the priorities of streams");
  return std::make_unique<CudaStream>(greatest);
}

std::unique_ptr<Event> MakeCudaEvent() { return std::make_unique<CudaEvent>(); }

cudaStream_t HandleOf(Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }

void AllowProgrammaticLaunch(bool allow) { allows_programmatic_launch = allow; }
bool AllowsProgrammaticLaunch() { return allows_programmatic_launch; }

}  // namespace trainer
