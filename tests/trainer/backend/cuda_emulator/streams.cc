// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and graphs of the emulated runtime.  A graph is a list of what was queued while
// its stream recorded.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/backend/cuda_emulator/runtime_state.h"
#include "tests/trainer/backend/cuda_emulator/traffic.h"

using cuda_emulator::Entered;
using cuda_emulator::Queue;
using cuda_emulator::RejectWhileRecording;
using cuda_emulator::Result;

// Of CUDA's GPUs since Volta.
constexpr int kMinPriority = 0;
constexpr int kGreatestPriority = -5;

struct Piece {
  int priority = 0;
  cuda_emulator::QueuedWork run;
};
using Work = std::vector<Piece>;

struct CUgraph_st {
  Work work;
};
struct CUgraphExec_st {
  Work work;
  bool has_own_priorities = false;
};
struct StreamCapture {
  Work work;
  std::vector<cudaStream_t> streams;  // the first began it, the others have joined
  std::thread::id adder;              // who says that it adds; nobody: everyone may
  bool spoilt = false;                // two threads have added at one time
};
struct CUstream_st {
  int priority = 0;
  std::deque<std::function<cudaError_t()>> late;  // what is still to be done
  std::size_t late_done = 0;                      // of all that was late
  std::shared_ptr<StreamCapture> capture;
  std::size_t queued = 0;      // in this recording
  std::size_t waited_for = 0;  // of it, by others
};

struct CUevent_st {
  bool timed = true;
  std::optional<std::chrono::steady_clock::time_point> recorded = {};
  // In a recording: the point of a stream.
  std::weak_ptr<StreamCapture> capture = {};
  cudaStream_t stream = nullptr;
  std::size_t queued = 0;
  // Else, where it is late: when so much of that stream is done.
  cudaStream_t late_stream = nullptr;
  std::size_t late_until = 0;
};

namespace {

// The threads that record, and whether what they record is still good.
struct Recorders {
  std::mutex mutex;  // and of who adds to a recording
  std::map<std::thread::id, bool> good;
  bool reject = false;
  std::set<std::thread::id> rejected;
};

Recorders& TheRecorders() {
  static auto* recorders = new Recorders;
  return *recorders;
}

struct WorkByPriority {
  std::mutex mutex;
  std::map<int, int> pieces;
};

WorkByPriority& TheWorkByPriority() {
  static auto* work = new WorkByPriority;
  return *work;
}

std::atomic<bool> node_priorities_are_known = true;

thread_local int graph_launches = 0;
thread_local bool graphs_are_late = false;

bool IsLate(cudaStream_t stream) { return stream != nullptr && !stream->late.empty(); }

std::size_t LateSoFar(cudaStream_t stream) { return stream->late_done + stream->late.size(); }

cudaError_t CatchUp(cudaStream_t stream, std::size_t until) {
  while (IsLate(stream) && stream->late_done < until) {
    const std::function<cudaError_t()> work = std::move(stream->late.front());
    stream->late.pop_front();
    ++stream->late_done;
    if (const cudaError_t failed = work(); failed != cudaSuccess) return failed;
  }
  return cudaSuccess;
}

cudaError_t CatchUp(cudaStream_t stream) {
  return IsLate(stream) ? CatchUp(stream, LateSoFar(stream)) : cudaSuccess;
}

cudaError_t CatchUp(cudaEvent_t event) {
  return event != nullptr && event->late_stream != nullptr
             ? CatchUp(event->late_stream, event->late_until)
             : cudaSuccess;
}

int PriorityOf(cudaStream_t stream) { return stream == nullptr ? 0 : stream->priority; }

bool Records(cudaStream_t stream) { return stream != nullptr && stream->capture != nullptr; }

// What a call begins with that adds to what `stream` records, or reads how far that is: for one
// thread at a time, as graphs "are not internally synchronized" (CUDA C++ Programming Guide).
cudaError_t Adding(cudaStream_t stream) {
  if (!Records(stream)) return cudaSuccess;
  StreamCapture& capture = *stream->capture;
  const std::lock_guard lock(TheRecorders().mutex);
  const bool is_alone =
      capture.adder == std::thread::id() || capture.adder == std::this_thread::get_id();
  if (is_alone) return cudaSuccess;
  capture.spoilt = true;
  return Result(cudaErrorStreamCaptureInvalidated);
}

void Join(cudaStream_t stream, std::shared_ptr<StreamCapture> capture) {
  capture->streams.push_back(stream);
  stream->capture = std::move(capture);
  stream->queued = 0;
  stream->waited_for = 0;
}

// Whether the first stream waits for the others' last work, by way of each other or not.
bool AllHaveJoined(const StreamCapture& capture) {
  return std::all_of(capture.streams.begin() + 1, capture.streams.end(),
                     [](cudaStream_t stream) { return stream->waited_for == stream->queued; });
}

// What PassTime has added to the time of day.
std::atomic<std::chrono::steady_clock::duration> time_passed{};

void Mark(cudaEvent_t event) {
  event->recorded = std::chrono::steady_clock::now() + time_passed.load();
}

}  // namespace

namespace cuda_emulator {

cudaError_t Queue(cudaStream_t stream, QueuedWork work) {
  const int priority = PriorityOf(stream);
  if (!Records(stream) && IsLate(stream)) {
    stream->late.push_back([work = std::move(work), priority] { return work(priority); });
    return cudaSuccess;
  }
  if (!Records(stream)) return work(priority);
  if (const cudaError_t rejected = Adding(stream); rejected != cudaSuccess) return rejected;
  stream->capture->work.push_back({priority, std::move(work)});
  ++stream->queued;
  return cudaSuccess;
}

void QueueWork(cudaStream_t stream, std::function<void()> work) {
  Queue(stream, [work = std::move(work)](int priority) {
    {
      const std::lock_guard lock(TheWorkByPriority().mutex);
      ++TheWorkByPriority().pieces[priority];
    }
    RunCounted(work);
    return cudaSuccess;
  });
}

bool IsRecording(cudaStream_t stream) { return Records(stream); }

int GraphLaunches() { return graph_launches; }

void RunGraphsLate(bool late) { graphs_are_late = late; }

void PassTime(std::chrono::steady_clock::duration time) { time_passed = time_passed.load() + time; }

std::shared_ptr<void> BeginAdding(cudaStream_t stream) {
  const std::shared_ptr<StreamCapture> capture = stream->capture;
  const auto set = [capture](std::thread::id adder) {
    const std::lock_guard lock(TheRecorders().mutex);
    capture->adder = adder;
  };
  if (Adding(stream) == cudaSuccess) set(std::this_thread::get_id());
  return {nullptr, [set](std::nullptr_t) { set({}); }};
}

std::map<int, int> TakeWorkByPriority() {
  const std::lock_guard lock(TheWorkByPriority().mutex);
  return std::exchange(TheWorkByPriority().pieces, {});
}

cudaError_t RejectWhileRecording() {
  Recorders& recorders = TheRecorders();
  const std::lock_guard lock(recorders.mutex);
  const auto own = recorders.good.find(std::this_thread::get_id());
  if (own == recorders.good.end()) return cudaSuccess;
  own->second = false;
  return Result(cudaErrorStreamCaptureUnsupported);
}

void RejectThisThreadToRecord(bool reject) {
  Recorders& recorders = TheRecorders();
  const std::lock_guard lock(recorders.mutex);
  recorders.rejected.erase(std::this_thread::get_id());
  if (reject) recorders.rejected.insert(std::this_thread::get_id());
}

void RejectToRecord(bool reject) {
  Recorders& recorders = TheRecorders();
  const std::lock_guard lock(recorders.mutex);
  recorders.reject = reject;
}

void ForgetNodePriorities(bool forget) { node_priorities_are_known = !forget; }

}  // namespace cuda_emulator

cudaError_t cudaDeviceGetStreamPriorityRange(int* min, int* greatest) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (min != nullptr) *min = kMinPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned /*flags*/, int priority) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  *stream = new CUstream_st;
  (*stream)->priority = std::clamp(priority, kGreatestPriority, kMinPriority);
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  *priority = PriorityOf(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  CatchUp(stream);
  delete stream;
  return Entered();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  return cudaStreamQuery(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t failed = RejectWhileRecording(); failed != cudaSuccess) return failed;
  return CatchUp(stream);
}

// In a recording, for an event of the same one alone; a stream that records nothing joins it.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (event == nullptr) return Result(cudaErrorInvalidValue);
  const std::shared_ptr<StreamCapture> capture = event->capture.lock();
  if (Records(stream) && capture != stream->capture) {
    return Result(cudaErrorStreamCaptureIsolation);
  }
  if (capture == nullptr && event->late_stream != nullptr && event->late_stream != stream) {
    stream->late.push_back(
        [late = event->late_stream, until = event->late_until] { return CatchUp(late, until); });
  }
  if (capture == nullptr || event->stream == stream) return cudaSuccess;
  if (const cudaError_t rejected = Adding(event->stream); rejected != cudaSuccess) return rejected;
  event->stream->waited_for = std::max(event->stream->waited_for, event->queued);
  if (!Records(stream)) Join(stream, capture);
  ++stream->queued;  // it waits
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (stream == nullptr || Records(stream) || mode != cudaStreamCaptureModeThreadLocal) {
    return Result(cudaErrorInvalidValue);
  }
  Recorders& recorders = TheRecorders();
  const std::lock_guard lock(recorders.mutex);
  if (!recorders.good.emplace(std::this_thread::get_id(), true).second) {
    return Result(cudaErrorInvalidValue);
  }
  Join(stream, std::make_shared<StreamCapture>());
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!Records(stream) || stream->capture->streams.front() != stream) {
    return Result(cudaErrorInvalidValue);
  }
  Adding(stream);
  const std::shared_ptr<StreamCapture> capture = stream->capture;
  for (cudaStream_t joined : capture->streams) joined->capture.reset();
  Recorders& recorders = TheRecorders();
  const std::lock_guard lock(recorders.mutex);
  const auto own = recorders.good.extract(std::this_thread::get_id());
  const bool reject = recorders.reject || recorders.rejected.contains(std::this_thread::get_id());
  if (reject || own.empty() || !own.mapped() || capture->spoilt)
    return Result(cudaErrorStreamCaptureInvalidated);
  if (!AllHaveJoined(*capture)) return Result(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->work)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = Records(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (nodes != nullptr) return Result(cudaErrorInvalidValue);
  *count = graph->work.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  const bool has_own_priorities = flags == cudaGraphInstantiateFlagUseNodePriority;
  const bool is_known = has_own_priorities && node_priorities_are_known;
  if (flags != 0 && !is_known) return Result(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->work, has_own_priorities};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (Records(stream)) return Result(cudaErrorStreamCaptureUnsupported);
  ++graph_launches;
  const bool is_late = stream != nullptr && (graphs_are_late || IsLate(stream));
  for (const Piece& piece : executable->work) {
    const int priority = executable->has_own_priorities ? piece.priority : PriorityOf(stream);
    if (is_late) {
      stream->late.push_back([run = piece.run, priority] { return run(priority); });
    } else if (const cudaError_t failed = piece.run(priority); failed != cudaSuccess) {
      return failed;
    }
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return Entered();
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return Entered();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*call)(void*), void* data) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  cuda_emulator::QueueWork(stream, [call, data] { call(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, std::nullopt};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return Entered();
}

// In a recording, of use to order streams in it, and not to tell time.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  event->recorded.reset();
  event->capture.reset();
  event->late_stream = nullptr;
  if (!Records(stream) && IsLate(stream)) {
    stream->late.push_back([event] {
      Mark(event);
      return cudaSuccess;
    });
    event->late_stream = stream;
    event->late_until = LateSoFar(stream);
    return cudaSuccess;
  }
  if (!Records(stream)) {
    Mark(event);
    return cudaSuccess;
  }
  if (const cudaError_t rejected = Adding(stream); rejected != cudaSuccess) return rejected;
  event->capture = stream->capture;
  event->stream = stream;
  event->queued = stream->queued;
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordDefault) return cudaEventRecord(event, stream);
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (flags != cudaEventRecordExternal || !Records(stream)) return Result(cudaErrorInvalidValue);
  return Queue(stream, [event](int /*priority*/) {
    Mark(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (const cudaError_t failed = RejectWhileRecording(); failed != cudaSuccess) return failed;
  if (const cudaError_t failed = CatchUp(event); failed != cudaSuccess) return failed;
  return Result(event == nullptr ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t failed = Entered(); failed != cudaSuccess) return failed;
  if (!start->timed || !end->timed || !start->recorded || !end->recorded) {
    return Result(cudaErrorInvalidResourceHandle);
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(*end->recorded - *start->recorded).count();
  return cudaSuccess;
}
