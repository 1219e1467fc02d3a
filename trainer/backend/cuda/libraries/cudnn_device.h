// SPDX-License-Identifier: Apache-2.0
//
// Autotuning of convolutions: which algorithm computes a pass on one device, what PlanCache has or
// the fastest of those that cuDNN recommends and of cuBLASLt's product of matrices.

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/libraries/cublaslt.h"
#include "trainer/backend/cuda/libraries/cudnn_graph.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

// Which algorithm is the fastest for a pass of a convolution on the current device.  For
// construction only, as FastestOf, and in memory of its own.

// One algorithm for one pass of a convolution on the current device.
class ConvolutionAlgorithm {
 public:
  explicit ConvolutionAlgorithm(CudnnExecutionPlan plan) : plan_(std::move(plan)) {}
  ConvolutionAlgorithm(const MatmulSpec& product, const DevicePlanCache& plans)
      : product_(std::make_unique<Matmul>(product, plans)) {}

  std::size_t workspace_bytes() const {
    return plan_ ? plan_->workspace_bytes() : product_->workspace_bytes();
  }

  // Of cuDNN; none if it is the product of matrices.
  std::optional<EngineConfigId> engine_config_id() const {
    return plan_ ? std::optional(plan_->id()) : std::nullopt;
  }

  // Queues the pass on `stream`.
  void Run(cudnnHandle_t handle, ConvolutionPass pass, const ConvolutionOperands& operands,
           void* workspace, cudaStream_t stream) const;

 private:
  std::optional<CudnnExecutionPlan> plan_;
  std::unique_ptr<Matmul> product_;  // if there is no plan
};

// Throws Error (EX_UNAVAILABLE) if none of them runs.
std::size_t Fastest(cudnnHandle_t handle, const ConvolutionGraph& graph,
                    const std::vector<ConvolutionAlgorithm>& candidates);

// For graphs that do more than a convolution: the fastest of the candidates.  None if the best
// plain convolutions and passes for the rest are faster.

// `without` is that of the graph without sums.
std::optional<std::size_t> AutotuneWithBnStats(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                               const std::vector<ConvolutionAlgorithm>& candidates,
                                               const ConvolutionAlgorithm& without);

// The graph is that of a dgrad with dReLU, `unmasked` that of the plain one.
std::optional<std::size_t> AutotuneDgradDrelu(cudnnHandle_t handle, const ConvolutionGraph& graph,
                                              const std::vector<ConvolutionAlgorithm>& candidates,
                                              const ConvolutionAlgorithm& unmasked);

// Convolutions that are products of matrices.  Pure.

// As a product of matrices: a convolution with a 1x1 kernel and stride 1, of images whose
// channels-last memory is a matrix of pixels x channels.  None if it is not such a one.
std::optional<MatmulSpec> GemmOf(const ConvolutionGraph& graph, const EngineRules& rules);

// What the product reads and writes.  src, filter, dst: as CudnnExecutionPlan::Execute has them.
struct GemmOperands {
  const void* a;
  const void* b;
  void* d;
};
GemmOperands OperandsOf(ConvolutionPass pass, void* src, void* filter, void* dst);

// cuDNN on one device, for one back end.  Used from one thread at a time, as the back end is: a
// handle of cuDNN has one current stream, and cuDNN does not promise that a plan may run in two
// threads at once.  So its convolutions take no lock.
class CudnnDevice {
 public:
  // What is the fastest for a graph: a plan of cuDNN; if none, the product of matrices, or for a
  // graph that does more than a convolution the best plain one and passes for the rest.  Never the
  // thing itself, which is of one back end and goes with it.
  using Winner = std::optional<EngineConfigId>;

  explicit CudnnDevice(DevicePlanCache plans);

  cudnnHandle_t handle() const { return handle_.get(); }
  const DevicePlanCache& plans() const { return plans_; }

  // Found once for each graph and rules; stays where it is as long as this lives.
  const ConvolutionAlgorithm& Choose(const ConvolutionGraph& graph, const EngineRules& rules);
  // Of the forward pass `graph`, which has no sums, one that gives them with it: null if there is
  // none that is faster than Choose(graph) and adding up.
  const ConvolutionAlgorithm* ChooseWithBnStats(const ConvolutionGraph& graph,
                                                const EngineRules& rules);
  // Of the backward data of the forward pass `graph`, one that goes on through the ReLU before it
  // and sums for the batch norm there: null if there is none that is faster than backward data and
  // a pass of sums.
  const ConvolutionAlgorithm* ChooseDgradDrelu(const ConvolutionGraph& graph,
                                               const EngineRules& rules);

 private:
  struct Choice {
    ConvolutionGraph graph;
    EngineRules rules;
    std::optional<ConvolutionAlgorithm> algorithm;  // none: passes for the rest
  };
  struct Destroy {
    void operator()(cudnnHandle_t handle) const;
  };

  CudnnTarget target() const { return {handle(), nullptr}; }
  const Choice* Known(const ConvolutionGraph& graph, const EngineRules& rules) const;
  ConvolutionAlgorithm Find(const ConvolutionGraph& graph, const EngineRules& rules) const;
  std::optional<ConvolutionAlgorithm> Again(const ConvolutionGraph& graph, const EngineRules& rules,
                                            const Winner& winner) const;
  std::optional<ConvolutionAlgorithm> Kept(const ConvolutionGraph& graph,
                                           const EngineRules& rules) const;
  ConvolutionAlgorithm Autotune(const ConvolutionGraph& graph, const EngineRules& rules) const;
  // Which of the candidates is the fastest; none if passes for the rest are.
  using FusedAutotune =
      std::function<std::optional<std::size_t>(const std::vector<ConvolutionAlgorithm>&)>;
  // Of a graph that does more than a convolution: what an earlier process kept, or `autotune` says.
  // Null if there are passes for the rest.
  const ConvolutionAlgorithm* ChooseFused(const ConvolutionGraph& graph, const EngineRules& rules,
                                          const FusedAutotune& autotune);
  Winner AutotuneFused(const ConvolutionGraph& graph, const EngineRules& rules,
                       const FusedAutotune& autotune) const;
  std::vector<ConvolutionAlgorithm> CandidatesFor(const ConvolutionGraph& graph,
                                                  const EngineRules& rules) const;

  const DevicePlanCache plans_;
  int device_ = 0;
  // Outlives the plans that were made with it.
  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Destroy> handle_;
  std::deque<Choice> choices_;  // algorithms stay where they are
};

}  // namespace trainer
