// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm computes a pass of a convolution on one device: what PlanCache has, or the
// fastest of those that cuDNN recommends and of cuBLASLt's product of matrices.

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/cublaslt.h"
#include "trainer/backend/cuda/cudnn_graph.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

// One algorithm for one pass of a convolution on the current device.
class ConvolutionAlgorithm {
 public:
  explicit ConvolutionAlgorithm(ConvolutionPlan plan) : plan_(std::move(plan)) {}
  ConvolutionAlgorithm(const MatmulSpec& product, const DevicePlans& plans)
      : product_(std::make_unique<Matmul>(product, plans)) {}

  std::size_t workspace_bytes() const {
    return plan_ ? plan_->workspace_bytes() : product_->workspace_bytes();
  }

  // Of cuDNN; none if it is the product of matrices.
  std::optional<PlanId> plan_id() const {
    return plan_ ? std::optional(plan_->id()) : std::nullopt;
  }

  // Queues the pass on `stream`.
  void Run(cudnnHandle_t handle, ConvolutionPass pass, const ConvolutionOperands& operands,
           void* workspace, cudaStream_t stream) const;

 private:
  std::optional<ConvolutionPlan> plan_;
  std::unique_ptr<Matmul> product_;  // if there is no plan
};

// cuDNN on one device, for one back end.  Used from one thread at a time, as the back end is: a
// handle of cuDNN has one current stream, and cuDNN does not promise that a plan may run in two
// threads at once.  So its convolutions take no lock.
class CudnnDevice {
 public:
  // What is the fastest for a graph: a plan of cuDNN; if none, the product of matrices, or for a
  // graph that does more than a convolution the best plain one and passes for the rest.  Never the
  // thing itself, which is of one back end and goes with it.
  using Winner = std::optional<PlanId>;

  explicit CudnnDevice(DevicePlans plans);

  cudnnHandle_t handle() const { return handle_.get(); }

  // Found once for each graph and rules; stays where it is as long as this lives.
  const ConvolutionAlgorithm& Choose(const ConvolutionGraph& graph, const EngineRules& rules);
  // Of the forward pass `graph`, which has no sums, one that gives them with it: null if there is
  // none that is faster than Choose(graph) and adding up.
  const ConvolutionAlgorithm* ChooseWithSums(const ConvolutionGraph& graph,
                                             const EngineRules& rules);
  // Of the forward pass `graph` with sums, and of its backward filter, those that apply the batch
  // norm before it.  None if there are none, or if a pass that applies it and the best without are
  // faster together.
  struct WithNorm {
    const ConvolutionAlgorithm* forward;
    const ConvolutionAlgorithm* backward_filter;
  };
  std::optional<WithNorm> ChooseWithNorm(const ConvolutionGraph& graph, const EngineRules& rules);

 private:
  struct Choice {
    ConvolutionGraph graph;
    EngineRules rules;
    std::optional<ConvolutionAlgorithm> algorithm;  // none: passes for the rest
  };
  // The best for a graph without the batch norm before it; with_sums is null if a pass adds up.
  struct WithoutNorm {
    const ConvolutionAlgorithm* forward;
    const ConvolutionAlgorithm* with_sums;
    const ConvolutionAlgorithm* backward_filter;
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
  ConvolutionAlgorithm Race(const ConvolutionGraph& graph, const EngineRules& rules) const;
  // Of a graph that does more than a convolution: what `race` says, or an earlier process.  Null if
  // there are passes for the rest.
  const ConvolutionAlgorithm* ChooseFused(const ConvolutionGraph& graph, const EngineRules& rules,
                                          const std::function<Winner()>& race);
  Winner RaceWithSums(const ConvolutionGraph& graph, const EngineRules& rules,
                      const ConvolutionAlgorithm& without) const;
  Winner RaceFilterWithNorm(const ConvolutionGraph& graph, const EngineRules& rules) const;
  Winner RaceWithNorm(const ConvolutionGraph& graph, const EngineRules& rules,
                      const WithoutNorm& without,
                      const ConvolutionAlgorithm& backward_filter) const;
  std::vector<ConvolutionAlgorithm> FusedCandidates(const ConvolutionGraph& graph,
                                                    const EngineRules& rules) const;
  std::vector<ConvolutionAlgorithm> CandidatesFor(const ConvolutionGraph& graph,
                                                  const EngineRules& rules) const;
  std::size_t Fastest(const ConvolutionGraph& graph,
                      const std::vector<ConvolutionAlgorithm>& candidates) const;

  const DevicePlans plans_;
  int device_ = 0;
  // Outlives the plans that were made with it.
  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Destroy> handle_;
  std::deque<Choice> choices_;  // algorithms stay where they are
};

}  // namespace trainer
