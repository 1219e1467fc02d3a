// SPDX-License-Identifier: Apache-2.0
//
// The engines of cuDNN's graph API that can compute a convolution, also with a batch-norm
// statistics epilogue, and an execution plan for each.  Needs no GPU if it is described (cuDNN 9.8
// and later).

#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/cuda/libraries/cudnn_api.h"
#include "trainer/core/dtype.h"

namespace trainer {

// What one pass of a convolution computes on channels-last memory, with what may be done together
// with it.  Pure.

// One convolution (backend/ops.h) on channels-last memory.  Channels and filters are counted with
// their padding (layout.h).  Sums are fp32.
struct ConvolutionGraph {
  std::int64_t images = 0, channels = 0, height = 0, width = 0;
  std::int64_t filters = 0, kernel = 1, stride = 1, padding = 0;
  DType dtype = DType::kFloat32;
  ConvolutionPass pass = ConvolutionPass::kForward;
  bool adds = false;  // to its output, instead of overwriting it
  // Forward only: also of each filter the sum of the result over images and pixels, and then of
  // each the sum of squares, in fp32.
  bool sums = false;
  // Backward data only, and not adding: src is a ReLU over a batch norm, and the result is the
  // gradient before that ReLU; what the batch norm needs of it is summed.
  bool masked = false;

  std::int64_t dst_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t dst_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  bool operator==(const ConvolutionGraph&) const = default;
};

// "backward data of a convolution 256x64x56x56 to 64 channels, kernel 3, stride 1, padding 1, F16".
std::string ToString(const ConvolutionGraph& graph);

// What a pass of a convolution reads and writes, all aligned to kTensorAlignment.  src, filter,
// dst: tensors or their gradients, as the pass has it; the output is overwritten or added to.
struct ConvolutionOperands {
  void* src = nullptr;
  void* filter = nullptr;
  void* dst = nullptr;
  // Null unless the graph has them: 2 x filters floats if it has sums, kGradientSumArrays x
  // channels if it is masked.
  void* sums = nullptr;
  // Null unless it is masked: what the batch norm has read, and its mean, 1 / deviation, scale and
  // shift, of all channels each.
  const void* norm_src = nullptr;
  const float* statistics = nullptr;
};

// Of a GPU with so much memory: a 64th of it, which lets those engines in that fuse most on an A100
// and on Blackwell (some 400 MB for a layer of 256 images), and on a small GPU at least as much as
// cuDNN's engines for single convolutions want.
inline constexpr std::size_t kMinWorkspaceLimit = std::size_t{256} << 20;
constexpr std::size_t WorkspaceLimitOf(std::size_t device_bytes) {
  return std::max(kMinWorkspaceLimit, device_bytes / 64);
}

// Which engines may be taken.  Never those that convert their inputs to a smaller type, sum in less
// than fp32, or are Winograd's with large tiles.
struct EngineRules {
  bool tf32 = false;           // tensor cores for kFloat32
  bool deterministic = false;  // the same bits each time
  std::size_t workspace_limit = kMinWorkspaceLimit;

  bool operator==(const EngineRules&) const = default;
};

// A plan among those that cuDNN can build for a graph under some rules on a device: the same one
// with each handle of a process.
struct EngineConfigId {
  cudnnBackendHeurMode_t mode{};  // how cuDNN was asked
  std::size_t number = 0;         // among what it then recommends and the rules allow
  std::int64_t engine = 0;        // cuDNN's number of it

  bool operator==(const EngineConfigId&) const = default;
};

// As a plan of PlanCache: "cudnn", the three numbers.  None of a plan that is no such.
std::string PlanOf(const EngineConfigId& id);
std::optional<EngineConfigId> EngineConfigIdOf(const std::string& plan);

// Runs in one thread at a time, with a handle of that thread; lives without the graph.
class CudnnExecutionPlan {
 public:
  CudnnExecutionPlan(CudnnDescriptor plan, const EngineConfigId& id, bool tensor_cores,
                     const ConvolutionGraph& graph);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  const EngineConfigId& id() const { return id_; }
  // Whether that engine computes with tensor cores.
  bool tensor_cores() const { return tensor_cores_; }

  // Queues the work on the handle's stream.
  void Execute(cudnnHandle_t handle, const ConvolutionOperands& operands, void* workspace) const;

 private:
  CudnnDescriptor plan_;
  EngineConfigId id_;
  bool tensor_cores_;
  ConvolutionGraph graph_;
  std::size_t workspace_bytes_;
};

// Up to `most` plans: the one that cuDNN expects to be the fastest, then others in that order, few
// of each engine as long as there are more engines.  Its last resorts are there only if nothing
// else is.  Throws Error (EX_UNAVAILABLE), which names the graph, if there is none.
std::vector<CudnnExecutionPlan> FindPlans(const CudnnTarget& target, const ConvolutionGraph& graph,
                                          const EngineRules& rules, std::size_t max);

// The plan that FindPlans has called `id` for such a target, graph and rules.  None if cuDNN has
// another one in its place by now, or cannot build it any more.
std::optional<CudnnExecutionPlan> FindPlanAgain(const CudnnTarget& target,
                                                const ConvolutionGraph& graph,
                                                const EngineRules& rules, const EngineConfigId& id);

// A convolution as a graph of cuDNN's operations: one, or several where more is done together with
// it.

// `handle` is null for a device that is described.
CudnnDescriptor MakeOperationGraph(const ConvolutionGraph& graph, cudnnHandle_t handle);

// Of the tensors of such a graph that are in memory.
TensorPointers PointersOf(const ConvolutionGraph& graph, const ConvolutionOperands& operands);

}  // namespace trainer
