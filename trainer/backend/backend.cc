// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/backend.h"

#include "trainer/core/error.h"

namespace trainer {

void Convolution::ForwardWithBnStats(const Tensor& /*src*/, const Tensor& /*filter*/,
                                     const Tensor& /*dst*/, void* /*sums*/, void* /*workspace*/,
                                     Stream& /*stream*/) {
  DDL_CHECK(bn_stats_bytes() > 0);
}

void Convolution::BackwardDataDreluBnStats(const Tensor& /*diff_dst*/, const Tensor& /*filter*/,
                                           const NormInput& /*before*/, const Tensor& /*diff_src*/,
                                           void* /*sums*/, void* /*workspace*/,
                                           Stream& /*stream*/) {
  DDL_CHECK(bn_backward_stats_bytes() > 0);
}

void Convolution::BackwardWithBnApply(const GradientBeforeBnBackward& /*diff_dst*/,
                                      const Tensor& /*filter*/, const NormInput& /*before*/,
                                      const Tensor& /*diff_filter*/, const Tensor& /*diff_src*/,
                                      void* /*sums*/, void* /*workspace*/, Stream& /*stream*/) {
  DDL_CHECK(applies_norm_backward());
}

GradientBeforeBnBackward BatchNorm::BackwardStatsOnly(
    Mode /*mode*/, const Tensor& /*src*/, const Tensor& /*diff_dst*/,
    const BatchNormParameters& /*parameters*/, const void* /*saved*/,
    const Tensor& /*diff_residual*/, const Tensor& /*diff_scale*/, const Tensor& /*diff_shift*/,
    void* /*coefficients*/, void* /*workspace*/, Stream& /*stream*/) {
  DDL_CHECK(!"a back end whose convolutions apply no batch norm backward");
  return {};
}

GradientBeforeBnBackward DualBatchNorm::BackwardFirstStatsOnly(
    Mode /*mode*/, const Operand& /*first*/, const Operand& /*second*/, const Tensor& /*diff_dst*/,
    const void* /*saved*/, const Gradients& /*diff_first*/, const Gradients& /*diff_second*/,
    void* /*coefficients*/, void* /*workspace*/, Stream& /*stream*/) {
  DDL_CHECK(!"a back end whose convolutions apply no batch norm backward");
  return {};
}

void BatchNorm::BackwardWithBnStats(Mode /*mode*/, const Tensor& /*src*/,
                                    const TensorWithBnStats& /*diff_dst*/,
                                    const BatchNormParameters& /*parameters*/,
                                    const void* /*saved*/, const Tensor& /*diff_src*/,
                                    const Tensor& /*diff_scale*/, const Tensor& /*diff_shift*/,
                                    void* /*workspace*/, Stream& /*stream*/) {
  DDL_CHECK(!"a back end whose convolutions sum no gradients");
}

std::unique_ptr<CapturedGraph> Backend::Capture(Stream& /*stream*/,
                                                const std::function<void()>& /*queue*/) {
  DDL_CHECK(can_capture());
  return nullptr;
}

}  // namespace trainer
