// SPDX-License-Identifier: Apache-2.0
//
// The engines of cuDNN's graph API that can compute a convolution, and an execution plan for each.
// Asking needs no GPU when the device is described (cuDNN 9.8 and later).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/cuda/libraries/convolution_graph.h"
#include "trainer/backend/cuda/libraries/cudnn_descriptor.h"

namespace trainer {

// Which engines may be taken.  Never those that convert their inputs to a smaller type, sum in less
// than fp32, or are Winograd's with large tiles.
struct EngineRules {
  bool tf32 = false;           // tensor cores for kFloat32
  bool deterministic = false;  // the same bits each time
  std::size_t workspace_limit = std::size_t{256} << 20;

  bool operator==(const EngineRules&) const = default;
};

// The device that plans are made for.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;           // a device that is here, or
  std::shared_ptr<CudnnDescriptor> device;  // one that is described, from cuDNN 9.8 on
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

}  // namespace trainer
