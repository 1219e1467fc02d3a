// SPDX-License-Identifier: Apache-2.0
//
// The part of CUDA's runtime API that a back end needs, over host memory.  Every call is complete
// when it returns, but for RunGraphsLate; streams and events only order what is in order already;
// graphs hold what one stream recorded.  Stricter than CUDA
// where that finds mistakes: memory of the device starts with all bits set, and a copy or memset
// must stay within one allocation where it says that it touches the device.  The device has
// kDeviceBytes.  Numbers of the enumerations are CUDA's.  The GPU can be made to fail.
//
// Threads: any.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorStubLibrary = 34,
  cudaErrorInsufficientDriver = 35,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNvlinkUncorrectable = 220,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorSystemNotReady = 802,
  cudaErrorSystemDriverMismatch = 803,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int major;
  int minor;
  int multiProcessorCount;
  int warpSize;
  int maxThreadsPerBlock;
};
struct cudaFuncAttributes {
  int numRegs;
  int ptxVersion;
};
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0;
inline constexpr unsigned cudaEventBlockingSync = 1;
inline constexpr unsigned cudaEventDisableTiming = 2;
inline constexpr unsigned cudaEventRecordDefault = 0;
inline constexpr unsigned cudaEventRecordExternal = 1;
inline constexpr unsigned cudaGraphInstantiateFlagUseNodePriority = 8;
// NOLINTEND(readability-identifier-naming)

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
// What the last call that failed said; forgets it.
cudaError_t cudaGetLastError();

cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
// cudaSuccess, unless the GPU can run no kernel (PretendToHaveCode).
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
template <typename T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
cudaError_t cudaFree(void* memory);
cudaError_t cudaMallocHost(void** memory, std::size_t bytes);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void* dst, int value, std::size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* dst, int value, std::size_t bytes);

// Of streams: a lower number is a greater priority.  Either may be null.
cudaError_t cudaDeviceGetStreamPriorityRange(int* min, int* greatest);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
// A priority that is out of the range is the nearest one in it.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);

// A recording is what its thread queues on one stream until its end, and on streams that wait for
// an event of it.  The first stream must have waited for all that the others do.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
// With cudaGraphInstantiateFlagUseNodePriority work has the priority of the stream on which it was
// recorded, else that of the stream on which the graph is launched.
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags);
// How many pieces of work there are.  REQUIRES: nodes == nullptr.
struct CUgraphNode_st;
using cudaGraphNode_t = CUgraphNode_st*;  // NOLINT(readability-identifier-naming)
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

// `call` is made when what was queued before it is done, which is now, or each time that a graph is
// launched.
#define CUDART_CB
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*call)(void*), void* data);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
// In milliseconds.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

namespace cuda_emulator {

inline constexpr std::size_t kDeviceBytes = std::size_t{4} << 30;
inline constexpr int kL2CacheBytes = 1 << 20;

// Something for `stream` to do, as a kernel is: done at once, or where the stream records, each
// time that the graph is launched.
void QueueWork(cudaStream_t stream, std::function<void()> work);

// The GPU's clock, which events read, goes on by `time` at once.  Said by queued work, it has taken
// so long, and no test waits.
void PassTime(std::chrono::steady_clock::duration time);

bool IsRecording(cudaStream_t stream);

// Says that the calling thread adds to what `stream` records, until what this returns is gone:
// another thread that uses a stream of the recording meanwhile is refused, and the recording is
// spoilt.  REQUIRES: IsRecording(stream).
std::shared_ptr<void> BeginAdding(cudaStream_t stream);

// That cudaMemset has written so far.
std::size_t ClearedBytes();

// That the calling thread has started so far.
int GraphLaunches();

// Whether graphs that the calling thread starts, and what it queues behind them, run as late as
// they may: when somebody waits for them, or asks whether they are done, and no more of them than
// that.  Set back where none are left.
void RunGraphsLate(bool late);

// How much of QueueWork ran with which priority, since this was last asked.
std::map<int, int> TakeWorkByPriority();

// The next `calls` calls work; from then on the GPU has failed: all calls give `error`, but for
// those that ask for texts and versions, until Mend.  What is given back to a GPU that failed is
// given back all the same.
void FailAfter(int calls, cudaError_t error);
void Mend();

// The GPU is of this compute capability from now on, 8.0 (an A100's) to begin with.
void PretendComputeCapability(int major, int minor);
// And has so many multiprocessors, 108 to begin with.
void PretendMultiprocessors(int count);

// What cudaFuncGetAttributes returns from now on: cudaSuccess where the GPU has code for the
// kernels, else an error such as cudaErrorNoKernelImageForDevice.
void PretendToHaveCode(cudaError_t code);
// And that this is of which compute capability: 90 (9.0) to begin with.
void PretendCodeFor(int ptx_version);
// For which CUDA the driver is: 12020 (12.2) to begin with.
void PretendDriver(int version);

// Whether no recording succeeds from now on; or none of the calling thread.
void RejectToRecord(bool reject);
void RejectThisThreadToRecord(bool reject);

// As long as it is so, no graph can keep priorities, as with drivers before CUDA 11.7.
void ForgetNodePriorities(bool forget);

// Of the device, by all of the process.
std::size_t AllocatedBytes();

// Whether `address` is in memory of cudaMalloc or cudaMallocHost, or just behind it.
bool IsForKernels(const void* address);

}  // namespace cuda_emulator
