// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/libraries/convolution_algorithm.h"

#include "trainer/backend/cuda/libraries/convolution_gemm.h"
#include "trainer/core/error.h"

namespace trainer {

void ConvolutionAlgorithm::Run(cudnnHandle_t handle, ConvolutionPass pass,
                               const ConvolutionOperands& operands, void* workspace,
                               cudaStream_t stream) const {
  if (plan_) {
    CheckCudnn(cudnnSetStream(handle, stream), "cuDNN: setting the stream");
    plan_->Execute(handle, operands, workspace);
  } else {
    DDL_CHECK(operands.sums == nullptr && operands.relu_mask == nullptr);
    const GemmOperands matrices = OperandsOf(pass, operands.src, operands.filter, operands.dst);
    product_->Run(matrices.a, matrices.b, nullptr, matrices.d, workspace, stream);
  }
}

}  // namespace trainer
