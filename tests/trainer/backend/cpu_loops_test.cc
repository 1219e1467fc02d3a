// SPDX-License-Identifier: Apache-2.0
//
// The loops of the cpu back end compute the same on every instruction set that this machine has;
// the other tests see only the fastest.

#include "tests/support/test.h"
#include "tests/trainer/backend/device.h"
#include "trainer/backend/cpu/loops.h"

namespace trainer::detail {
namespace {

std::vector<const Loops*> LoopsOfThisMachine() {
  std::vector<const Loops*> all{&kGenericLoops};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&kAvx2Loops);
#endif
  if (&BestLoops() != all.back()) all.push_back(&BestLoops());
  return all;
}

// Everything that the loops of batch norm give for one chunk, one after the other.
Floats NormResults(const Loops& loops, const ChunkShape& shape) {
  const auto block = static_cast<std::size_t>(shape.block);
  const auto size = static_cast<std::size_t>(shape.rows) * block;
  const auto count = static_cast<std::int64_t>(size);
  const Floats src = RandomFloats(count, 1);
  const Floats residual = RandomFloats(count, 2);
  const Floats diff_dst = RandomFloats(count, 3);
  const Floats factor = RandomFloats(shape.block, 4);
  const Floats shift = RandomFloats(shape.block, 5);
  Floats mean(block), deviation(block), sum(block), dot(block);
  Floats dst(size), masked(size), diff_src(size);
  Floats results;
  const auto keep = [&results](const Floats& values) {
    results.insert(results.end(), values.begin(), values.end());
  };

  loops.moments(shape, src.data(), mean.data(), deviation.data());
  keep(mean);
  keep(deviation);
  const ChunkNorm norm{mean.data(), factor.data(), shift.data()};
  for (const bool add : {false, true}) {
    loops.normalise(shape, norm, src.data(), add ? residual.data() : nullptr, true, dst.data());
    keep(dst);
  }
  const ChunkGradient in{src.data(), dst.data(), diff_dst.data(), norm};
  for (const ReluMask relu_mask : {ReluMask::kOpen, ReluMask::kSrc, ReluMask::kDst}) {
    loops.gradient_sums(shape, relu_mask, in, masked.data(), sum.data(), dot.data());
    keep(masked);
    keep(sum);
    keep(dot);
    if (relu_mask == ReluMask::kDst) continue;
    loops.gradient_apply(shape, relu_mask, in, shift.data(), factor.data(), diff_src.data());
    keep(diff_src);
  }
  return results;
}

TEST(CpuLoops, NormaliseAlikeOnEveryInstructionSet) {
  for (const ChunkShape& shape : {ChunkShape{7, 16}, {9, 8}, {6, 32}, {5, 3}, {11, 1}}) {
    const Floats expected = NormResults(kGenericLoops, shape);
    for (const Loops* loops : LoopsOfThisMachine()) {
      EXPECT_LE(RelativeError(NormResults(*loops, shape), expected), 1e-5) << shape.block;
    }
  }
}

TEST(CpuLoops, UpdateAlikeOnEveryInstructionSet) {
  const Floats gradient = RandomFloats(1003, 1);
  const UpdateParameters call{0.1F, 0.9F, 0.01F, 0.5F};
  Floats expected;
  for (const Loops* loops : LoopsOfThisMachine()) {
    Floats weight = RandomFloats(1003, 2);
    Floats momentum = RandomFloats(1003, 3);
    loops->update(call, gradient.size(), gradient.data(), weight.data(), momentum.data());
    loops->update_with_rated_momentum(call, gradient.size(), gradient.data(), weight.data(),
                                      momentum.data());
    loops->add(weight.data(), momentum.data(), weight.size());
    momentum.push_back(loops->sum_of_squares(weight.data(), weight.size()));
    if (expected.empty()) expected = momentum;
    EXPECT_LE(RelativeError(momentum, expected), 1e-5);
  }
}

TEST(CpuLoops, FindWhatIsNotFiniteAnywhere) {
  for (const Loops* loops : LoopsOfThisMachine()) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      for (const std::size_t place : {0U, 17U, 66U}) {
        Floats values(67, std::numeric_limits<float>::max());
        EXPECT_TRUE(loops->all_finite(values.data(), values.size()));
        values[place] = bad;
        EXPECT_FALSE(loops->all_finite(values.data(), values.size())) << place;
      }
    }
  }
}

}  // namespace
}  // namespace trainer::detail
