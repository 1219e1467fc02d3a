// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/init.h"

#include <algorithm>
#include <cmath>

#include "trainer/core/error.h"
#include "trainer/core/philox.h"

namespace trainer {
namespace {

constexpr double kDeviationOfNormalCutAt2 = 0.87962566103423978;

double Fan(const Shape& shape, WeightInit weight_init) {
  DDL_CHECK(shape.rank() == 2 || shape.rank() == 4);
  const std::int64_t window = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  return static_cast<double>((weight_init == WeightInit::kFanIn ? shape[1] : shape[0]) * window);
}

}  // namespace

std::vector<float> InitialValues(const ParameterSpec& spec, std::uint64_t number,
                                 std::uint64_t seed, WeightInit weight_init) {
  const auto count = static_cast<std::size_t>(spec.shape.elements());
  if (spec.init != Init::kVarianceScaling) {
    return std::vector<float>(count, spec.init == Init::kOnes ? 1.0F : 0.0F);
  }
  const double stddev = std::sqrt(2.0 / Fan(spec.shape, weight_init)) / kDeviationOfNormalCutAt2;
  Random random(seed, RandomPurpose::kInit, number);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stddev * random.TruncatedNormal());
  return values;
}

void Initialize(Network& network, const Initialization& start, Stream& stream) {
  std::uint64_t number = 0;
  for (const Parameter& parameter : network.parameters()) {
    std::vector<float> values =
        InitialValues(parameter.spec, number++, start.seed, start.weight_init);
    // The batch norm at the end of a bottleneck's residual branch has this name.
    if (start.zero_init_residual && parameter.name.ends_with("bn3.weight")) {
      std::fill(values.begin(), values.end(), 0.0F);
    }
    network.Import(Network::Part::kValue, parameter, values, stream);
  }
}

}  // namespace trainer
