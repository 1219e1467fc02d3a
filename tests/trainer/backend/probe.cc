// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace trainer {
namespace {

// A shuffle of multiples of 1/16 around 0.
Floats DistinctFloats(std::int64_t count, std::uint64_t seed) {
  Random random(seed, RandomPurpose::kShuffle, 0);
  Floats values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<double>(i) - static_cast<double>(count) / 2) / 16;
    std::swap(values[i], values[random.Below(static_cast<std::uint32_t>(i + 1))]);
  }
  return values;
}

Floats FillInput(const Input& input, std::uint64_t seed) {
  const std::int64_t count = input.shape.elements();
  if (input.fill == Fill::kDistinct) return DistinctFloats(count, seed);
  Floats values = RandomFloats(count, seed);
  for (float& value : values) {
    if (input.fill == Fill::kAroundOne) value = 1 + value / 4;
    if (input.fill == Fill::kOffset) value += 30;
    value *= static_cast<float>(input.factor);
  }
  return values;
}

double Dot(const Floats& a, const Floats& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                            [](float x, float y) { return double{x} * y; });
}

// Of the sum of diff_dst * dst when input `name` moves along `direction`.
double CentralDifference(Probe& probe, const Values& inputs, const Floats& diff_dst,
                         const std::string& name, const Floats& direction, double step) {
  const auto functional_at = [&](double distance) {
    Values moved = inputs;
    Floats& values = moved.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(values[i] + distance * direction[i]);
    }
    return Dot(probe.Forward(moved).at("dst"), diff_dst);
  };
  return (functional_at(step) - functional_at(-step)) / (2 * step);
}

// Unit vectors of a few coordinates, and a few of length 1 that point everywhere.
std::vector<Floats> Directions(std::size_t size) {
  std::vector<Floats> directions;
  Random random(5, RandomPurpose::kShuffle, size);
  for (std::size_t i = 0; i < std::min<std::size_t>(size, 6); ++i) {
    directions.emplace_back(size, 0.0F);
    directions.back()[random.Below(static_cast<std::uint32_t>(size))] = 1;
  }
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    directions.push_back(RandomFloats(static_cast<std::int64_t>(size), seed));
    const double length = std::sqrt(Dot(directions.back(), directions.back()));
    for (float& value : directions.back()) value = static_cast<float>(value / (length + 1e-9));
  }
  return directions;
}

}  // namespace

std::string Dimensions(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += 'x';
    text += std::to_string(shape[axis]);
  }
  return text;
}

double Tolerance(const ProbeCase& probe_case, DType compute_type) {
  // Some tens of roundings, relative to a typical value: 2^-24, 2^-11, 2^-8 each.
  const double base = compute_type == DType::kFloat32   ? 1e-5
                      : compute_type == DType::kFloat16 ? 1e-2
                                                        : 8e-2;
  return base * probe_case.tolerance_factor;
}

Values MakeInputs(const Probe& probe, std::uint64_t seed) {
  Values values;
  for (const Input& input : probe.inputs()) values[input.name] = FillInput(input, seed++);
  return values;
}

double GradientError(Probe& probe, const Values& inputs, const Floats& diff_dst,
                     const Values& gradients, double step) {
  double largest = 0;
  for (const auto& [name, gradient] : gradients) {
    const double typical = std::max(RootMeanSquare(gradient), 0.1);
    for (const Floats& direction : Directions(gradient.size())) {
      // A step is too long where the kink of a ReLU lies within it, and too short where the forward
      // pass rounds: the best of three counts.
      double error = std::numeric_limits<double>::infinity();
      for (double h = step; h >= step / 64 && error > kGradientTolerance; h /= 8) {
        const double expected = CentralDifference(probe, inputs, diff_dst, name, direction, h);
        const double distance = std::abs(Dot(gradient, direction) - expected);
        error = std::min(error, distance / typical);
      }
      largest = std::max(largest, error);
      if (largest > kGradientTolerance) return largest;
    }
  }
  return largest;
}

}  // namespace trainer
