// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "trainer/backend/cuda/libraries/cublaslt.h"
#include "trainer/backend/cuda/libraries/cudnn_graph.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

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

}  // namespace trainer
