// SPDX-License-Identifier: Apache-2.0
//
// Makes the emulated GPU a V100 for the tests that are linked with it.

#include <gtest/gtest.h>

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/runtime/tensor_cores.h"

namespace trainer {
namespace {

const bool is_volta = [] {
  cuda_emulator::PretendComputeCapability(7, 0);
  return true;
}();

TEST(QuadPairs, AreWhatTheGpuHas) {
  EXPECT_TRUE(is_volta);
  EXPECT_EQ(TensorCoresOf(ComputeCapabilityMajor()), TensorCores::kQuadPairs);
}

}  // namespace
}  // namespace trainer
