// SPDX-License-Identifier: Apache-2.0
//
// Whether the kernel of conv3_backward.h takes the place of passes: only where it is faster, and
// only where it gives what they give.

#include "trainer/backend/cuda/expansion/expansion_autotune.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "tests/support/test.h"

namespace trainer {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kIn = kConv3Channels;
constexpr std::int64_t kOut = kConv3Filters;

void Assign(__half& dst, float value) { dst = __float2half_rn(value); }
float ToFloat(__half value) { return __half2float(value); }

// Each test has pixels of its own: what a process has found it does not look for again.
Conv3BackwardShape ShapeOf(std::int64_t pixels) {
  return {.pixels = pixels, .dtype = DType::kFloat16, .sms = 2, .compute_capability = 8};
}
std::string NameOf(std::int64_t pixels) {
  return "backward of " + std::to_string(pixels) +
         " pixels from 256 to 64 channels between batch norms, F16";
}

using Operands = ExpansionPasses::Operands;

const __half* Halves(const void* data) { return static_cast<const __half*>(data); }

// Loops, as slow as they are told to be.
ExpansionPasses Passes(std::int64_t pixels, std::chrono::seconds time) {
  ExpansionPasses passes;
  passes.backward_filter = [=](const Operands& of, cudaStream_t) {
    cuda_emulator::PassTime(time);
    for (std::int64_t k = 0; k < kOut; ++k) {
      for (std::int64_t c = 0; c < kIn; ++c) {
        float sum = 0;
        for (std::int64_t p = 0; p < pixels; ++p) {
          sum += ToFloat(Halves(of.diff_dst)[p * kOut + k]) * ToFloat(Halves(of.src)[p * kIn + c]);
        }
        Assign(static_cast<__half*>(of.diff_filter)[k * kIn + c], sum);
      }
    }
  };
  passes.backward_data = [=](const Operands& of, cudaStream_t) {
    for (std::int64_t p = 0; p < pixels; ++p) {
      for (std::int64_t c = 0; c < kIn; ++c) {
        float sum = 0;
        for (std::int64_t k = 0; k < kOut; ++k) {
          sum +=
              ToFloat(Halves(of.diff_dst)[p * kOut + k]) * ToFloat(Halves(of.filter)[k * kIn + c]);
        }
        Assign(static_cast<__half*>(of.diff_src)[p * kIn + c], sum);
      }
    }
  };
  return passes;
}
// More than the kernel takes on any machine.
constexpr std::chrono::seconds kSlow = 3600s;

class KernelOrPasses : public testing::Test {
 protected:
  bool Takes(std::int64_t pixels, const ExpansionPasses& passes) {
    return TakesExpansionKernel(ShapeOf(pixels), passes, plans_);
  }
  const DevicePlanCache plans_{std::make_shared<PlanCache>(), "a GPU"};
};

// A plan of another version is none.
TEST_F(KernelOrPasses, TakesTheKernelWhereItIsFasterAndRunsOnce) {
  plans_.Add(NameOf(50), "kernel 2");
  EXPECT_TRUE(Takes(50, Passes(50, kSlow)));
  EXPECT_EQ(plans_.Find(NameOf(50)), "kernel");
  EXPECT_TRUE(TakesExpansionKernel(ShapeOf(50), {}, {nullptr, "a GPU"}));
}

// Nothing that the passes do takes time.
TEST_F(KernelOrPasses, TakesThePassesWhereTheKernelIsSlower) {
  ExpansionPasses passes = Passes(200, 0s);
  int runs = 0;
  const ExpansionPasses first = passes;
  passes.backward_filter = [&](const Operands& of, cudaStream_t stream) {
    if (++runs == 1) first.backward_filter(of, stream);
  };
  passes.backward_data = [&](const Operands& of, cudaStream_t stream) {
    if (runs == 1) first.backward_data(of, stream);
  };
  EXPECT_FALSE(Takes(200, passes));
  EXPECT_EQ(plans_.Find(NameOf(200)), "separate");
}

// However slow they are.
TEST_F(KernelOrPasses, TakesThePassesWhereTheKernelGivesSomethingElse) {
  ExpansionPasses passes = Passes(51, 0s);
  const auto right = passes.backward_filter;
  passes.backward_filter = [&](const Operands& of, cudaStream_t stream) {
    right(of, stream);
    auto* diff_filter = static_cast<__half*>(of.diff_filter);
    for (std::int64_t i = 0; i < kOut * kIn; ++i) {
      Assign(diff_filter[i], 1.02F * ToFloat(diff_filter[i]));
    }
    cuda_emulator::PassTime(kSlow);
  };
  EXPECT_FALSE(Takes(51, passes));
  passes = Passes(52, 0s);
  const auto data = passes.backward_data;
  passes.backward_data = [&](const Operands& of, cudaStream_t stream) {
    data(of, stream);
    Assign(static_cast<__half*>(of.diff_src)[7], 1000);
    cuda_emulator::PassTime(kSlow);
  };
  EXPECT_FALSE(Takes(52, passes));
  passes = Passes(53, 0s);
  const auto numbers = passes.backward_data;
  passes.backward_data = [&](const Operands& of, cudaStream_t stream) {
    numbers(of, stream);
    Assign(static_cast<__half*>(of.diff_src)[7], NAN);
    cuda_emulator::PassTime(kSlow);
  };
  EXPECT_FALSE(Takes(53, passes));
}

TEST_F(KernelOrPasses, IsAsThePlansHaveIt) {
  plans_.Add(NameOf(54), "kernel");
  plans_.Add(NameOf(55), "separate");
  EXPECT_TRUE(Takes(54, {}));
  EXPECT_FALSE(Takes(55, {}));
}

// The other way that passes may have.
TEST_F(KernelOrPasses, KnowsPassesThatGoBackThroughTheRelu) {
  const std::int64_t pixels = 58;
  ExpansionPasses passes = Passes(pixels, kSlow);
  passes.gates = true;
  const auto data = passes.backward_data;
  passes.backward_data = [&](const Operands& of, cudaStream_t stream) {
    data(of, stream);
    auto* gradient = static_cast<__half*>(of.diff_src);
    std::fill_n(of.sums, 2 * kIn, 0.0F);
    for (std::int64_t i = 0; i < pixels * kIn; ++i) {
      const std::int64_t c = i % kIn;
      const float normalized = (ToFloat(Halves(of.before)[i]) - of.saved[c]) * of.saved[kIn + c];
      if (normalized * of.saved[2 * kIn + c] + of.saved[3 * kIn + c] <= 0) Assign(gradient[i], 0);
      of.sums[c] += ToFloat(gradient[i]) * normalized;
      of.sums[kIn + c] += ToFloat(gradient[i]);
    }
  };
  EXPECT_TRUE(Takes(pixels, passes));
}

}  // namespace
}  // namespace trainer
