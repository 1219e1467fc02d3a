// SPDX-License-Identifier: Apache-2.0

#include "scaling/memory.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "scaling/gpus.h"
#include "support/number.h"

namespace scaling {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kRest = 1.5 * kGigabyte;

// Of the plan: weights, gradients and momentum, and what each image adds.
struct MemoryModel {
  double network = 0;
  double image = 0;
};

MemoryModel PlanIn(std::string_view precision) {
  const bool is_half = precision == "fp16" || precision == "bf16" || precision == "amp";
  return is_half ? MemoryModel{0.42e9, 41.8e6} : MemoryModel{0.32e9, 85.2e6};
}

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The number before "GB", or 0.
double NamedGigabytes(std::string_view name) {
  const std::size_t unit = name.find("GB");
  if (unit == std::string_view::npos) return 0;
  std::size_t begin = unit;
  while (begin > 0 && IsDigit(name[begin - 1])) --begin;
  return support::WholeNumber<double>(name.substr(begin, unit - begin)).value_or(0);
}

}  // namespace

double EstimateMemory(std::string_view precision, std::int64_t batch) {
  const MemoryModel plan = PlanIn(precision);
  return kRest + plan.network + plan.image * static_cast<double>(batch);
}

std::int64_t LargestBatch(std::string_view precision, double memory) {
  const double eights = (memory - EstimateMemory(precision, 0)) / (8 * PlanIn(precision).image);
  return 8 * std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(eights)));
}

double MemoryOf(std::string_view gpu) {
  if (const double named = NamedGigabytes(gpu); named > 0) return named * kGigabyte;
  const Gpu* known = FindGpu(gpu);
  return known == nullptr ? 0 : known->gigabytes * kGigabyte;
}

}  // namespace scaling
