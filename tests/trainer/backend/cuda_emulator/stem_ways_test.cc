// SPDX-License-Identifier: Apache-2.0
//
// Which way of the stem is taken, and that one with other results never is.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "tests/support/test.h"
#include "trainer/backend/cuda/libraries/cuda_libraries.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/stem/stem_autotune.h"

namespace trainer {
namespace {

using namespace std::chrono_literals;

constexpr const char* kName = "stem of 1x4x5x64, F16";

// The emulated convolution, slower than what it is timed beside; faster, for it computes but once;
// or with wrong results.
enum class Kind { kSlow, kFast, kWrongForward, kWrongBackward, kNotANumber };
class OddConvolution final : public Convolution {
 public:
  OddConvolution(std::unique_ptr<Convolution> right, Kind kind)
      : right_(std::move(right)), kind_(kind) {}

  const TensorDesc& filter() const override { return right_->filter(); }
  const TensorDesc& dst() const override { return right_->dst(); }
  std::size_t workspace_bytes() const override { return right_->workspace_bytes(); }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& stream) override {
    const auto compute = [&] { right_->Forward(src, filter, dst, workspace, stream); };
    Once(dst_, dst, compute, stream);
    if (kind_ == Kind::kNotANumber) Queue(stream, [=] { dst.As<__half>()[0] = {0x7FFF}; });
    if (kind_ == Kind::kWrongForward) DoubleSome(dst, stream);
    if (kind_ == Kind::kSlow) Queue(stream, [] { cuda_emulator::PassTime(1h); });
  }
  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& stream) override {
    const auto compute = [&] {
      right_->BackwardFilter(src, diff_dst, diff_filter, workspace, stream);
    };
    Once(diff_filter_, diff_filter, compute, stream);
    if (kind_ == Kind::kWrongBackward) DoubleSome(diff_filter, stream);
  }
  void BackwardData(const Tensor& /*diff_dst*/, const Tensor& /*filter*/,
                    const Tensor& /*diff_src*/, void* /*workspace*/, Stream& /*stream*/) override {
    FAIL() << "nobody needs the gradient of the image";
  }

 private:
  using Bytes = std::vector<std::byte>;

  static void Queue(Stream& stream, std::function<void()> work) {
    cuda_emulator::QueueWork(HandleOf(stream), std::move(work));
  }
  void Once(Bytes& known, const Tensor& tensor, const std::function<void()>& compute,
            Stream& stream) const {
    auto* data = tensor.As<std::byte>();
    if (kind_ != Kind::kFast || known.empty()) {
      compute();
      stream.Synchronize();
      known.assign(data, data + tensor.desc.bytes);
    }
    Queue(stream, [&known, data] { std::copy(known.begin(), known.end(), data); });
  }
  static void DoubleSome(const Tensor& tensor, Stream& stream) {
    Queue(stream, [=] {
      for (std::size_t i = 0; i < tensor.desc.bytes / sizeof(__half); i += 10) {
        __half& value = tensor.As<__half>()[i];
        value = __float2half_rn(2 * __half2float(value));
      }
    });
  }

  const std::unique_ptr<Convolution> right_;
  const Kind kind_;
  Bytes dst_, diff_filter_;
};

class StemWaysTest : public testing::Test {
 protected:
  StemWaysTest() {
    size_.images = {.samples = 1, .height = 4, .width = 5};
    size_.norm = {.pixels = 20, .channels = 64, .padded = 64, .dtype = DType::kFloat16};
  }

  std::unique_ptr<Convolution> Right() const {
    const DType dtype = size_.norm.dtype;
    const auto libraries = MakeCudaLibraries({.storage = dtype}, false, nullptr, "");
    return libraries->MakeConvolution({.src = CudaImages({1, kBlockChannels, 7, 8}, dtype),
                                       .out_channels = 64,
                                       .kernel = kBlockKernel});
  }
  StemVariant Choose(Kind kind) {
    OddConvolution convolution(Right(), kind);
    PlanAutotuner autotuner(plans_);
    return FasterStemVariant(autotuner, convolution, size_);
  }

  StemSize size_;
  DevicePlanCache plans_{std::make_shared<PlanCache>(), "a GPU"};
};

TEST_F(StemWaysTest, AgreeWithinRounding) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    size_.norm.dtype = dtype;
    const double difference = StemVariantError(*Right(), size_);
    EXPECT_LT(difference, AllowedStemDifference(dtype) / 4);
    EXPECT_GT(difference, 0);
  }
}

TEST_F(StemWaysTest, TheFasterOneIsTakenAndKept) {
  EXPECT_EQ(Choose(Kind::kSlow), StemVariant::kRecompute);
  EXPECT_EQ(plans_.Find(kName), "computed again");
}

TEST_F(StemWaysTest, TheSlowerOneIsNot) {
  EXPECT_EQ(Choose(Kind::kFast), StemVariant::kStored);
  EXPECT_EQ(plans_.Find(kName), "stored");
}

TEST_F(StemWaysTest, OneWithOtherResultsIsNotTaken) {
  for (const Kind kind : {Kind::kWrongForward, Kind::kWrongBackward, Kind::kNotANumber}) {
    plans_ = {std::make_shared<PlanCache>(), "a GPU"};
    EXPECT_EQ(Choose(kind), StemVariant::kStored);
    EXPECT_EQ(plans_.Find(kName), "stored");
  }
}

TEST_F(StemWaysTest, AreThoseThatAreKnown) {
  plans_.Add(kName, "computed again");
  EXPECT_EQ(Choose(Kind::kWrongForward), StemVariant::kRecompute);
  plans_.Add(kName, "stored");
  EXPECT_EQ(Choose(Kind::kSlow), StemVariant::kStored);
}

TEST_F(StemWaysTest, RaceAgainForATextOfAnotherVersion) {
  plans_.Add(kName, "by magic");
  EXPECT_EQ(Choose(Kind::kWrongForward), StemVariant::kStored);
  EXPECT_EQ(plans_.Find(kName), "stored");
}

}  // namespace
}  // namespace trainer
