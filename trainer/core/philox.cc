// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/philox.h"

#include <cmath>
#include <numbers>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// Multipliers and Weyl increments of Philox4x32 (Salmon et al., table 2 and section 3.3).
constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;

std::uint32_t High(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
std::uint32_t Low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

}  // namespace

std::array<std::uint32_t, 4> Philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1),
               High(product0) ^ counter[3] ^ key[1], Low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

Random::Random(std::uint64_t seed, RandomPurpose purpose, std::uint64_t index)
    : key_{Low(seed), High(seed)},
      counter_{0, static_cast<std::uint32_t>(purpose), Low(index), High(index)} {}

std::uint32_t Random::Next() {
  if (used_ == 4) {
    block_ = Philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

double Random::Uniform() { return Next() * 0x1p-32; }

std::uint32_t Random::Below(std::uint32_t bound) {
  DDL_CHECK(bound > 0);
  return High(std::uint64_t{Next()} * bound);
}

double Random::Normal() {
  const double radius = std::sqrt(-2 * std::log(1 - Uniform()));  // 1 - u is never 0
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

double Random::TruncatedNormal() {
  for (;;) {
    const double x = Normal();
    if (std::abs(x) <= 2) return x;
  }
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); below
// shape 1 by their relation Gamma(a) = Gamma(a + 1) * U^(1/a).
double Random::Gamma(double shape) {
  DDL_CHECK(shape > 0);
  if (shape < 1) {
    const double boost = std::pow(1 - Uniform(), 1 / shape);
    return Gamma(shape + 1) * boost;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = Normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - Uniform()) < x * x / 2 + d * (1 - v + std::log(v))) return d * v;
  }
}

double Random::Beta(double a, double b) {
  for (;;) {
    const double x = Gamma(a);
    const double y = Gamma(b);
    if (x + y > 0) return x / (x + y);  // both underflow now and then when a and b are tiny
  }
}

}  // namespace trainer
