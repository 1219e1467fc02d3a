// SPDX-License-Identifier: Apache-2.0
//
// Holds every op and block of every back end of this build to backend/ops.h: results and gradients
// agree with the reference, gradients agree with finite differences.  A new back end joins by being
// in TestedBackends().

#include <tuple>

#include "tests/support/test.h"
#include "tests/trainer/backend/probe.h"

namespace trainer {
namespace {

std::vector<ProbeCase> AllCases() {
  std::vector<ProbeCase> cases;
  for (const auto make : {ConvolutionCases, BatchNormCases, PoolingCases, BlockCases}) {
    const std::vector<ProbeCase> more = make();
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

std::vector<ProbeCase> DifferentiableCases() {
  std::vector<ProbeCase> cases = AllCases();
  std::erase_if(cases, [](const ProbeCase& probe_case) { return probe_case.step == 0; });
  return cases;
}

// Of a block's gradients in 16 bits.
double ErrorOfTurnedChoices(DType compute_type) {
  return compute_type == DType::kFloat16 ? 0.15 : 0.35;
}

struct Result {
  Values outputs;
  Values gradients;
  Floats diff_dst;
};

Result RunBoth(Probe& probe, const Values& inputs) {
  Result result{.outputs = probe.Forward(inputs)};
  result.diff_dst = RandomFloats(static_cast<std::int64_t>(result.outputs.at("dst").size()), 99);
  result.gradients = probe.Backward(result.diff_dst);
  return result;
}

void ExpectClose(const Values& values, const Values& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (const auto& [name, value] : values) {
    EXPECT_LE(RelativeError(value, expected.at(name)), tolerance) << name;
  }
}

// The error of all values together.
void ExpectCloseOnTheWhole(const Values& values, const Values& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  double errors = 0;
  double squares = 0;
  for (const auto& [name, value] : values) {
    const Floats& right = expected.at(name);
    ASSERT_EQ(value.size(), right.size()) << name;
    for (std::size_t i = 0; i < value.size(); ++i) {
      errors += (double{value[i]} - right[i]) * (double{value[i]} - right[i]);
      squares += double{right[i]} * right[i];
    }
  }
  EXPECT_LE(std::sqrt(errors / std::max(squares, 1e-12)), tolerance);
}

using NameAndCase = std::tuple<std::string, ProbeCase>;

std::string TestName(const testing::TestParamInfo<NameAndCase>& test) {
  return std::get<0>(test.param) + "_" + std::get<1>(test.param).name;
}

class Contract : public testing::TestWithParam<NameAndCase> {};

TEST_P(Contract, AgreesWithTheReference) {
  const auto& [name, probe_case] = GetParam();
  Device reference("reference");
  const auto reference_probe = probe_case.make(reference);
  const Values inputs = MakeInputs(*reference_probe, 1);
  const Result expected = RunBoth(*reference_probe, inputs);

  Device device(name, /*threads=*/2);
  const auto probe = probe_case.make(device);
  const DType compute_type = device.backend().compute_type();
  const double tolerance = Tolerance(probe_case, compute_type);
  const bool turns_choices = probe_case.has_choices && compute_type != DType::kFloat32;
  for (int round = 0; round < 2; ++round) {  // an op is run many times
    const Result result = RunBoth(*probe, inputs);
    ExpectClose(result.outputs, expected.outputs, tolerance);
    if (turns_choices) {
      ExpectCloseOnTheWhole(result.gradients, expected.gradients,
                            ErrorOfTurnedChoices(compute_type));
    } else {
      ExpectClose(result.gradients, expected.gradients, tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllBackends, Contract,
                         testing::Combine(testing::ValuesIn(TestedBackends()),
                                          testing::ValuesIn(AllCases())),
                         TestName);

// A resumed run is to be equal to one that was never stopped: what these back ends promise.
std::vector<std::string> RepeatingBackends() {
  std::vector<std::string> names = TestedBackends();
  std::erase(names, "reference");
  for (std::string& name : names) name += kRepeating;
  return names;
}

class Repetition : public testing::TestWithParam<NameAndCase> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Repetition);  // a build without oneDNN

TEST_P(Repetition, GivesTheSameBits) {
  const auto& [name, probe_case] = GetParam();
  Result results[2];
  for (Result& result : results) {
    Device device(name, /*threads=*/2);
    const auto probe = probe_case.make(device);
    result = RunBoth(*probe, MakeInputs(*probe, 1));
  }
  EXPECT_EQ(results[0].outputs, results[1].outputs);
  EXPECT_EQ(results[0].gradients, results[1].gradients);
}

INSTANTIATE_TEST_SUITE_P(Promised, Repetition,
                         testing::Combine(testing::ValuesIn(RepeatingBackends()),
                                          testing::ValuesIn(AllCases())),
                         TestName);

class Gradient : public testing::TestWithParam<NameAndCase> {};

TEST_P(Gradient, AgreesWithFiniteDifferences) {
  const auto& [name, probe_case] = GetParam();
  Device device(name);
  if (device.backend().compute_type() != DType::kFloat32) {
    GTEST_SKIP() << "differences drown in rounding; Contract covers the gradients";
  }
  const auto probe = probe_case.make(device);
  const Values inputs = MakeInputs(*probe, 2);
  const Result result = RunBoth(*probe, inputs);
  EXPECT_LE(GradientError(*probe, inputs, result.diff_dst, result.gradients, probe_case.step),
            kGradientTolerance);
}

INSTANTIATE_TEST_SUITE_P(AllBackends, Gradient,
                         testing::Combine(testing::ValuesIn(TestedBackends()),
                                          testing::ValuesIn(DifferentiableCases())),
                         TestName);

// The check itself: each gradient in turn made wrong by a quarter, or in every tenth value,
// must be found.
class GradientCheck : public testing::TestWithParam<ProbeCase> {};

TEST_P(GradientCheck, FindsAWrongGradient) {
  Device device("reference");
  const auto probe = GetParam().make(device);
  const Values inputs = MakeInputs(*probe, 2);
  const Result result = RunBoth(*probe, inputs);
  for (const auto& [name, gradient] : result.gradients) {
    Floats scaled = gradient;
    for (float& value : scaled) value = 1.25F * value + std::copysign(0.05F, value);
    EXPECT_GT(GradientError(*probe, inputs, result.diff_dst, {{name, scaled}}, GetParam().step),
              kGradientTolerance)
        << name;
    Floats spoilt = gradient;
    const double typical = std::max(RootMeanSquare(gradient), 0.1);
    for (std::size_t i = 0; i < spoilt.size(); i += 10) spoilt[i] += static_cast<float>(typical);
    EXPECT_GT(GradientError(*probe, inputs, result.diff_dst, {{name, spoilt}}, GetParam().step),
              kGradientTolerance)
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, GradientCheck, testing::ValuesIn(DifferentiableCases()),
                         [](const testing::TestParamInfo<ProbeCase>& test) {
                           return test.param.name;
                         });

}  // namespace

// For GoogleTest's messages.
void PrintTo(const ProbeCase& probe_case, std::ostream* out) { *out << probe_case.name; }

}  // namespace trainer
