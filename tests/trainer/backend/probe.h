// SPDX-License-Identifier: Apache-2.0
//
// An op or block as the contract tests see it: a function from named lists of numbers to named
// lists of numbers, and its gradient.  One generic test then holds every back end to the reference,
// and every gradient to finite differences.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/backend/device.h"

namespace trainer {

using Values = std::map<std::string, Floats>;  // fp32, row-major

// How an input is made up.
enum class Fill : std::uint8_t {
  kNormal,
  kAroundOne,  // 0.5 to 1.5: scales and variances
  kDistinct,   // no two closer than 1/16: max pooling has no ties then, and a clear winner
  kOffset,     // normal around 30: sums of squares lose digits
};

struct Input {
  std::string name;
  Shape shape;
  Fill fill = Fill::kNormal;
  double factor = 1;
};

class Probe {
 public:
  virtual ~Probe() = default;
  virtual std::vector<Input> inputs() const = 0;
  virtual Values Forward(const Values& inputs) = 0;
  // Gradients by the name of the input, of the sum of diff_dst * dst over Forward's result "dst".
  // Belongs to the last Forward.
  virtual Values Backward(const Floats& diff_dst) = 0;
};

struct ProbeCase {
  std::string name;
  std::function<std::unique_ptr<Probe>(Device&)> make;
  // Times the tolerance of the compute type (probe.cc): how much rounding adds up in this op.
  double tolerance_factor = 1;
  // Of finite differences: as large as the curvature allows, since the forward pass is fp32.  0:
  // not differentiable here.
  double step = 1.0 / 128;
  // Has a ReLU or max pool behind a rounding to 16 bits, which may turn a choice of theirs and with
  // it a few gradients altogether.
  bool has_choices = false;
};

// contract_test runs them all.
std::vector<ProbeCase> ConvolutionCases();
std::vector<ProbeCase> BatchNormCases();
std::vector<ProbeCase> PoolingCases();  // and the linear layer
std::vector<ProbeCase> BlockCases();

// Bottlenecks that follow each other, as in a network; join(above, end of the one below) is called
// for each two.
using JoinBlocks = std::function<void(Bottleneck& above, BlockEnd* below)>;
inline void SetBelow(Bottleneck& above, BlockEnd* below) { above.set_below(below); }
struct BottleneckPlan {
  std::int64_t mid, out, stride;
};
std::unique_ptr<Probe> MakeBottleneckProbe(Device& device, Mode mode, const Shape& src,
                                           const std::vector<BottleneckPlan>& plans,
                                           const JoinBlocks& join = SetBelow);

// "2x5x7x6", for names of cases.
std::string Dimensions(const Shape& shape);

double Tolerance(const ProbeCase& probe_case, DType compute_type);

Values MakeInputs(const Probe& probe, std::uint64_t seed);

inline constexpr double kGradientTolerance = 0.05;

// The largest error of `gradients` against central differences of Forward, along single coordinates
// and along random directions, relative to the gradient's root mean square; or the first found that
// is above kGradientTolerance.
double GradientError(Probe& probe, const Values& inputs, const Floats& diff_dst,
                     const Values& gradients, double step);

}  // namespace trainer
