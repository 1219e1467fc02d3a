// SPDX-License-Identifier: Apache-2.0
//
// A test that runs on every back end of this build.

#pragma once

#include "tests/support/test.h"
#include "tests/trainer/backend/device.h"

namespace trainer {

class EachBackend : public testing::TestWithParam<std::string> {
 protected:
  double Tolerance() { return device_.backend().compute_type() == DType::kFloat32 ? 1e-5 : 1e-2; }

  Device device_{GetParam(), /*threads=*/2};
};

}  // namespace trainer

// `suite` is an alias or a child of EachBackend.
#define INSTANTIATE_ON_EACH_BACKEND(suite)                              \
  INSTANTIATE_TEST_SUITE_P(                                             \
      AllBackends, suite, testing::ValuesIn(trainer::TestedBackends()), \
      [](const testing::TestParamInfo<std::string>& test) { return test.param; })
