// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime/graph.h"

#include "trainer/backend/cuda/runtime/runtime.h"

namespace trainer {
namespace {

class CudaGraph final : public CapturedGraph {
 public:
  explicit CudaGraph(cudaGraph_t graph) {
    // Work of an urgent stream stays urgent, whatever stream the graph is started on.  A driver
    // before CUDA 11.7 does not know how, which is no reason to go without a graph.
    cudaError_t result =
        cudaGraphInstantiateWithFlags(&executable_, graph, cudaGraphInstantiateFlagUseNodePriority);
    if (result == cudaErrorInvalidValue) {
      cudaGetLastError();
      result = cudaGraphInstantiateWithFlags(&executable_, graph, 0);
    }
    CheckCuda(result, "preparing recorded work");
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override { cudaGraphExecDestroy(executable_); }

  void Queue(Stream& stream) override {
    CheckCuda(cudaGraphLaunch(executable_, HandleOf(stream)), "starting recorded work");
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

// Records on a stream as long as it lives.
class StreamCapture {
 public:
  explicit StreamCapture(cudaStream_t stream) : stream_(stream) {
    CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
              "starting to record work");
  }
  StreamCapture(const StreamCapture&) = delete;
  StreamCapture& operator=(const StreamCapture&) = delete;
  ~StreamCapture() {
    if (capture_) cudaStreamEndCapture(stream_, &graph_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  cudaGraph_t End() {
    capture_ = false;
    CheckCuda(cudaStreamEndCapture(stream_, &graph_), "recording work");
    return graph_;
  }

 private:
  const cudaStream_t stream_;
  bool capture_ = true;
  cudaGraph_t graph_ = nullptr;
};

}  // namespace

std::unique_ptr<CapturedGraph> CaptureCudaGraph(Stream& stream,
                                                const std::function<void()>& queue) {
  try {
    StreamCapture capture(HandleOf(stream));
    queue();
    return std::make_unique<CudaGraph>(capture.End());
  } catch (...) {
    // Who goes on without a graph is not to meet this error again after the next kernel.
    cudaGetLastError();
    throw;
  }
}

}  // namespace trainer
