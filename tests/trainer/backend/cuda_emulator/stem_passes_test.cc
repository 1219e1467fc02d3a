// SPDX-License-Identifier: Apache-2.0
//
// The stem without its convolution's result in memory, by each instruction of tensor cores, against
// the passes that read it there.  Inputs are small integers, of which sums are exact in any order:
// whatever is not a sum of rounded numbers must come out in the same bits.

#include "trainer/backend/cuda/stem/stem_passes.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <random>

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/device_vector.h"
#include "trainer/backend/cuda/runtime/element.cuh"

namespace trainer {
namespace {

using cuda_emulator::DeviceVector;

constexpr int kPadded = 64;
constexpr int kChannels = 60;
constexpr int kPaddedBlock = 16;
constexpr int kTaps = kBlockKernel * kBlockKernel;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <typename Type, TensorCores tensor_cores>
struct Instruction {
  using T = Type;
  static constexpr TensorCores kCores = tensor_cores;
};

template <typename T>
DeviceVector<T> Narrowed(const DeviceVector<float>& values) {
  DeviceVector<T> narrow(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) Assign(narrow[i], values[i]);
  return narrow;
}

template <typename T>
DeviceVector<float> Widened(const DeviceVector<T>& values) {
  DeviceVector<float> wide(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) wide[i] = ToFloat(values[i]);
  return wide;
}

// Of what is not a number any is as good as another.
template <typename T>
void ExpectSameNumbers(const DeviceVector<T>& values, const DeviceVector<T>& expected,
                       const std::string& what) {
  ASSERT_EQ(values.size(), expected.size());
  int wrong = 0;
  for (std::size_t i = 0; i < values.size() && wrong < 3; ++i) {
    const float a = ToFloat(values[i]);
    const float b = ToFloat(expected[i]);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ++wrong;
    ADD_FAILURE() << what << ", element " << i << ": " << a << " instead of " << b;
  }
}

// All that the stem writes.
template <typename T>
struct Results {
  DeviceVector<T> dst, chosen;
  DeviceVector<std::uint8_t> winners, mask;
  DeviceVector<float> saved, statistics, diff_scale, diff_shift;
  DeviceVector<float> diff_filter;
};

template <typename Instruction>
class StemPasses : public testing::Test {
 protected:
  using T = typename Instruction::T;

  // One multiprocessor: each block has several tiles.
  void SetUpImages(const StemImages& images, std::uint64_t seed = 1) {
    size_.images = images;
    size_.norm = {.pixels = images.samples * images.height * images.width,
                  .channels = kChannels,
                  .padded = kPadded,
                  .dtype = std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16};
    size_.cores = Instruction::kCores;
    for (DeviceVector<float>* of : {&scale_, &shift_, &mean_, &variance_}) of->clear();
    std::mt19937_64 engine(seed);
    const auto any = [&](int from, int to) {
      return static_cast<float>(std::uniform_int_distribution<int>(from, to)(engine));
    };
    DeviceVector<float> blocks;
    for (std::int64_t i = 0; i < images.samples * Down() * Across(); ++i) {
      for (int c = 0; c < kPaddedBlock; ++c) blocks.push_back(c < kBlockChannels ? any(-2, 2) : 0);
    }
    blocks_ = Narrowed<T>(blocks);
    DeviceVector<float> filter(std::size_t{kPadded} * 7 * 7 * 8);
    for (std::size_t i = 0; i < std::size_t{kChannels} * 7 * 7 * 8; ++i) {
      filter[i] = any(0, 3) == 0 ? any(-1, 1) : 0;
    }
    filter_ = Narrowed<T>(filter);
    for (int c = 0; c < kChannels; ++c) {
      scale_.push_back((c % 3 == 1 ? -1.0F : 1.0F) * (0.25F + any(0, 7) / 4));
      shift_.push_back(any(-4, 4) / 4);
      mean_.push_back(any(-4, 4) / 2);
      variance_.push_back(10 + any(0, 20));
    }
    DeviceVector<float> diff_dst(Windows() * kPadded);
    for (std::size_t i = 0; i < diff_dst.size(); ++i) {
      diff_dst[i] = i % kPadded < kChannels ? any(-4, 4) / 4 : 0;
    }
    diff_dst_ = Narrowed<T>(diff_dst);
  }

  std::int64_t Down() const { return size_.images.height + kBlockKernel - 1; }
  std::int64_t Across() const { return size_.images.width + kBlockKernel - 1; }
  std::size_t Windows() const {
    return static_cast<std::size_t>(size_.images.samples * WindowsAcross(size_.images.height) *
                                    WindowsAcross(size_.images.width));
  }
  std::size_t Pixels() const { return static_cast<std::size_t>(size_.norm.pixels); }

  // Calls use(pixel, tap, the first element of the block) for all taps of all pixels.
  template <typename Use>
  void ForEachTap(const Use& use) const {
    const StemImages& images = size_.images;
    for (std::size_t pixel = 0; pixel < Pixels(); ++pixel) {
      const auto i = static_cast<std::int64_t>(pixel);
      const std::int64_t n = i / (images.height * images.width);
      for (int tap = 0; tap < kTaps; ++tap) {
        const std::int64_t h = i / images.width % images.height + tap / kBlockKernel;
        const std::int64_t w = i % images.width + tap % kBlockKernel;
        use(pixel, tap, static_cast<std::size_t>(((n * Down() + h) * Across() + w) * kPaddedBlock));
      }
    }
  }

  DeviceVector<float> Convolved() const {
    DeviceVector<T> filter(std::size_t{kPadded} * kFilterLine);
    FilterToLines(filter_.data(), size_.norm.dtype, kPadded, filter.data(), nullptr);
    const DeviceVector<float> lines = Widened(filter);
    const DeviceVector<float> blocks = Widened(blocks_);
    DeviceVector<float> x(Pixels() * kPadded);
    ForEachTap([&](std::size_t pixel, int tap, std::size_t block) {
      const float* from = blocks.data() + block;
      for (std::size_t k = 0; k < kPadded; ++k) {
        const float* by = lines.data() + k * kFilterLine + tap * kBlockChannels;
        float sum = 0;
        for (std::size_t c = 0; c < kBlockChannels; ++c) sum += from[c] * by[c];
        x[pixel * kPadded + k] += sum;
      }
    });
    return x;
  }

  DeviceVector<float> Sums() const {
    DeviceVector<T> lines(std::size_t{kPadded} * kFilterLine);
    FilterToLines(filter_.data(), size_.norm.dtype, kPadded, lines.data(), nullptr);
    DeviceVector<float> sums(std::size_t{2} * kPadded, kNaN);
    DeviceVector<float> scratch(static_cast<std::size_t>(StemScratchFloats(size_)), kNaN);
    RunBnStats(size_, {blocks_.data(), lines.data()}, scratch.data(), sums.data(), nullptr);
    return sums;
  }

  enum class Way { kStored, kAgain };
  // `sums`: of the batch's statistics; null: the running ones.
  Results<T> Run(Way variant, const float* sums) {
    Results<T> to;
    to.dst.resize(Windows() * kPadded);
    to.chosen.resize(Windows() * kPadded);
    to.winners.resize(Windows() * kPadded);
    to.mask.resize(Windows() * kPadded / 8);
    to.saved.resize(static_cast<std::size_t>(NormSavedFloats(size_.norm)));
    to.statistics = mean_;
    to.statistics.insert(to.statistics.end(), variance_.begin(), variance_.end());
    to.diff_scale.resize(kChannels);
    to.diff_shift.resize(kChannels);
    DeviceVector<float> scratch(
        static_cast<std::size_t>(NormScratchFloats(size_.norm) + StemScratchFloats(size_)), kNaN);
    const NormParameters parameters = {.scale = scale_.data(),
                                       .shift = shift_.data(),
                                       .running_mean = to.statistics.data(),
                                       .running_variance = to.statistics.data() + kChannels,
                                       .epsilon = 1e-5F,
                                       .kept = 0.75F};
    PooledNormForward forward;
    forward.norm.src.sums = sums;
    forward.norm.of_batch = sums != nullptr;
    forward.norm.saved = to.saved.data();
    forward.norm.scratch = scratch.data();
    forward.dst = to.dst.data();
    forward.chosen = to.chosen.data();
    forward.winners = to.winners.data();
    forward.mask = to.mask.data();
    PooledNormBackward backward;
    backward.norm.of_batch = sums != nullptr;
    backward.norm.saved = to.saved.data();
    backward.norm.scratch = scratch.data();
    backward.norm.diff_scale = to.diff_scale.data();
    backward.norm.diff_shift = to.diff_shift.data();
    backward.diff_dst = diff_dst_.data();
    backward.chosen = to.chosen.data();
    backward.winners = to.winners.data();
    backward.mask = to.mask.data();
    if (variant == Way::kStored) {
      DeviceVector<T> x = Narrowed<T>(Convolved());
      forward.norm.src.values = x.data();
      RunPooledNormForward(size_.norm, size_.images, parameters, forward, nullptr);
      backward.norm.src = backward.norm.diff_src = x.data();
      RunPooledNormBackward(size_.norm, size_.images, scale_.data(), backward, nullptr);
      to.diff_filter = FilterGradient(x);
    } else {
      DeviceVector<T> lines(std::size_t{kPadded} * kFilterLine);
      FilterToLines(filter_.data(), size_.norm.dtype, kPadded, lines.data(), nullptr);
      // What is read of the blocks must not be their padding.
      DeviceVector<T> blocks = blocks_;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % kPaddedBlock >= kBlockChannels) Assign(blocks[i], kNaN);
      }
      const StemOperands operands = {blocks.data(), lines.data()};
      RunConvolvedForward(size_, operands, parameters, forward, nullptr);
      DeviceVector<T> diff_filter(filter_.size());
      RunConvolvedBackward(size_, operands, scale_.data(), backward, diff_filter.data(), nullptr);
      for (const T value : diff_filter) to.diff_filter.push_back(ToFloat(value));
    }
    return to;
  }

  // In double.
  DeviceVector<float> FilterGradient(const DeviceVector<T>& diff_convolved) const {
    DeviceVector<double> gradient(std::size_t{kPadded} * kTaps * kPaddedBlock);
    const DeviceVector<float> blocks = Widened(blocks_);
    const DeviceVector<float> diff = Widened(diff_convolved);
    ForEachTap([&](std::size_t pixel, int tap, std::size_t block) {
      const float* from = blocks.data() + block;
      for (std::size_t k = 0; k < kPadded; ++k) {
        const double by = diff[pixel * kPadded + k];
        double* to = gradient.data() + (k * kTaps + tap) * kPaddedBlock;
        for (std::size_t c = 0; c < kBlockChannels; ++c) to[c] += by * from[c];
      }
    });
    DeviceVector<float> filter(filter_.size());
    const DeviceVector<float> floats(gradient.begin(), gradient.end());
    FilterFromBlocks(floats.data(), DType::kFloat32, kPadded, filter.data(), nullptr);
    return filter;
  }

  void ExpectTheSame(const Results<T>& again, const Results<T>& stored) const {
    ExpectSameNumbers(again.dst, stored.dst, "dst");
    ExpectSameNumbers(again.chosen, stored.chosen, "chosen");
    EXPECT_TRUE(again.winners == stored.winners);
    EXPECT_TRUE(again.mask == stored.mask);
    ExpectSameNumbers(again.saved, stored.saved, "saved");
    ExpectSameNumbers(again.statistics, stored.statistics, "statistics");
    ExpectSameNumbers(again.diff_scale, stored.diff_scale, "diff_scale");
    ExpectSameNumbers(again.diff_shift, stored.diff_shift, "diff_shift");
    const double rounding = std::is_same_v<T, __half> ? 0x1p-11 : 0x1p-8;
    double largest = 0;
    for (const float value : stored.diff_filter)
      largest = std::max(largest, std::abs(double{value}));
    // A compiler that multiplies and adds at once (POWER9, CUDA) rounds some gradients of pixels to
    // the neighbour of what other compilers do.
    const double neighbours = largest * 5e-5;
    for (std::size_t i = 0; i < stored.diff_filter.size(); ++i) {
      const double right = stored.diff_filter[i];
      ASSERT_NEAR(again.diff_filter[i], right, std::abs(right) * rounding + neighbours) << i;
    }
  }

  StemSize size_;
  DeviceVector<T> blocks_, filter_, diff_dst_;
  DeviceVector<float> scale_, shift_, mean_, variance_;
};

using Instructions = testing::Types<Instruction<__half, TensorCores::kQuadPairs>,
                                    Instruction<__half, TensorCores::kWholeWarp>,
                                    Instruction<__nv_bfloat16, TensorCores::kWholeWarp>>;
TYPED_TEST_SUITE(StemPasses, Instructions);

// Of images of 32x32, 33x47, and of fewer, more and as many pixels as tiles.
const StemImages kSizes[] = {{1, 16, 16}, {2, 17, 24}, {1, 1, 1}, {3, 5, 2}, {1, 35, 33}};

TYPED_TEST(StemPasses, SumsAreThoseOfTheResult) {
  for (const StemImages& images : kSizes) {
    this->SetUpImages(images);
    const DeviceVector<float> x = this->Convolved();
    const DeviceVector<float> sums = this->Sums();
    for (std::size_t c = 0; c < kPadded; ++c) {
      double sum = 0;
      double squares = 0;
      for (std::size_t i = c; i < x.size(); i += kPadded) {
        sum += x[i];
        squares += double{x[i]} * x[i];
      }
      EXPECT_EQ(sums[c], static_cast<float>(sum)) << c;
      EXPECT_NEAR(sums[kPadded + c], squares, squares * 1e-6) << c;
    }
  }
}

TYPED_TEST(StemPasses, AgreeWithThoseThatReadTheResult) {
  for (const StemImages& images : kSizes) {
    SCOPED_TRACE(std::to_string(images.samples) + "x" + std::to_string(images.height) + "x" +
                 std::to_string(images.width));
    this->SetUpImages(images);
    const DeviceVector<float> sums = this->Sums();
    using Way = typename TestFixture::Way;
    for (const float* of : {sums.data(), static_cast<const float*>(nullptr)}) {
      this->ExpectTheSame(this->Run(Way::kAgain, of), this->Run(Way::kStored, of));
    }
  }
}

TYPED_TEST(StemPasses, KeepWhatIsNotANumber) {
  this->SetUpImages({1, 20, 18});
  using Way = typename TestFixture::Way;
  Assign(this->blocks_[(9 * 21 + 9) * kPaddedBlock + 4], kNaN);
  const auto again = this->Run(Way::kAgain, nullptr);
  const auto stored = this->Run(Way::kStored, nullptr);
  ExpectSameNumbers(again.dst, stored.dst, "dst");
  EXPECT_TRUE(again.winners == stored.winners);
  EXPECT_TRUE(again.mask == stored.mask);
  EXPECT_TRUE(std::isnan(ToFloat(again.dst[(4 * 9 + 4) * kPadded])));
}

// What has no scale has no gradient, whichever pixel of a window is said to be the largest.
TYPED_TEST(StemPasses, AChannelWithoutScaleIsItsShift) {
  this->SetUpImages({1, 20, 18});
  this->scale_[5] = this->scale_[6] = 0;
  this->shift_[5] = 1;
  this->shift_[6] = -1;
  using Way = typename TestFixture::Way;
  const auto again = this->Run(Way::kAgain, nullptr);
  const auto stored = this->Run(Way::kStored, nullptr);
  ExpectSameNumbers(again.dst, stored.dst, "dst");
  EXPECT_TRUE(again.mask == stored.mask);
  ExpectSameNumbers(again.diff_shift, stored.diff_shift, "diff_shift");
  for (std::size_t i = 0; i < std::size_t{7} * 7 * 8; ++i) {
    ASSERT_EQ(again.diff_filter[5 * 7 * 7 * 8 + i], 0);
  }
}

TEST(HasStemPasses, GoesByTypeChannelsAndInstruction) {
  StemSize size;
  size.norm.padded = 64;
  size.norm.dtype = DType::kFloat16;
  EXPECT_TRUE(HasStemPasses(size));
  size.norm.dtype = DType::kFloat32;
  EXPECT_FALSE(HasStemPasses(size));
  size.norm.dtype = DType::kBFloat16;
  EXPECT_TRUE(HasStemPasses(size));
  size.cores = TensorCores::kQuadPairs;
  EXPECT_FALSE(HasStemPasses(size));
  size.norm.dtype = DType::kFloat16;
  EXPECT_TRUE(HasStemPasses(size));
  size.norm.padded = 56;
  EXPECT_FALSE(HasStemPasses(size));
}

}  // namespace
}  // namespace trainer
