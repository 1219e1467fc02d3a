// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime.h"

#include "trainer/core/error.h"

namespace trainer {
namespace {

int ExitCodeOf(cudaError_t result) {
  switch (result) {
    case cudaErrorMemoryAllocation:
      return EX_OSERR;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
      return EX_UNAVAILABLE;
    default:
      return EX_SOFTWARE;
  }
}

class CudaStream final : public Stream {
 public:
  CudaStream() {
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override { cudaStreamDestroy(stream_); }

  void Synchronize() override {
    CheckCuda(cudaStreamSynchronize(stream_), "waiting for the GPU's work");
  }
  bool Finished() override {
    const cudaError_t result = cudaStreamQuery(stream_);
    if (result == cudaErrorNotReady) return false;
    CheckCuda(result, "looking at the GPU's work");
    return true;
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

void CheckCuda(cudaError_t result, const std::string& action) {
  if (result == cudaSuccess) return;
  throw Error(ExitCodeOf(result),
              action + ": " + cudaGetErrorString(result) + " (" + cudaGetErrorName(result) + ")");
}

int Multiprocessors() {
  int device = 0;
  int count = 0;
  CheckCuda(cudaGetDevice(&device), "asking for the current GPU");
  CheckCuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
            "asking for the GPU's multiprocessors");
  return count;
}

std::unique_ptr<Stream> MakeCudaStream() { return std::make_unique<CudaStream>(); }

std::unique_ptr<Event> MakeCudaEvent() { return std::make_unique<CudaEvent>(); }

cudaStream_t HandleOf(Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }

}  // namespace trainer
