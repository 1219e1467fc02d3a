// SPDX-License-Identifier: Apache-2.0
//
// Batch norms in front of a 1x1 convolution, forward, in its kernel, against loops and against the
// passes of batch norm: on the GPU, and on the emulator by the instructions of all generations.

#include "trainer/backend/cuda/bottleneck/conv1x1_forward.h"

#include <span>
#include <tuple>
#include <type_traits>

#include "tests/trainer/backend/cuda/bottleneck/kernel_values.h"
#include "trainer/backend/cuda/norms/dual_batch_norm_kernels.h"

namespace trainer {
namespace {

std::size_t Padded(std::size_t channels) { return (channels + 7) / 8 * 8; }

struct ForwardSize {
  std::size_t pixels, channels, filters;  // filters padded

  std::size_t padded() const { return Padded(channels); }
};

// What a batch norm has read, and its parameters.
template <typename T>
struct ForwardNorm {
  std::vector<T> z;
  std::vector<float> scale, shift, mean, variance, sums;

  ForwardNorm(const ForwardSize& size, ValueKind kind, unsigned seed)
      : scale(size.channels),
        shift(Draw(kind, size.channels, seed + 1, 0.5F)),
        mean(Draw(kind, size.channels, seed + 2, 0.5F)),
        variance(size.channels, 1),
        sums(2 * size.padded()) {
    const std::size_t padded = size.padded();
    std::vector<float> values = Draw(kind, size.pixels * padded, seed, 1);
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (at % padded >= size.channels) values[at] = 0;
    }
    z = Stored<T>(values);
    const auto pixels = static_cast<float>(size.pixels);
    for (std::size_t c = 0; c < size.channels; ++c) {
      scale[c] = static_cast<float>(c % 4) - 1;
      // Another mean than that of the running ones; the variance is 1.
      const float of_batch = 1 - mean[c];
      sums[c] = of_batch * pixels;
      sums[padded + c] = (1 + of_batch * of_batch) * pixels;
    }
  }
};

template <typename T>
struct ForwardOperands {
  ForwardSize size;
  ForwardNorm<T> first, second;
  std::vector<T> residual, filter;

  explicit ForwardOperands(const ForwardSize& of, ValueKind kind = ValueKind::kIntegers)
      : size(of),
        first(of, kind, 10),
        second(of, kind, 20),
        residual(Stored<T>(Draw(kind, of.pixels * of.padded(), 1, 1))),
        filter(Stored<T>(Draw(kind, of.filters * of.padded(), 2, 0.1F))) {
    for (std::size_t at = 0; at < residual.size(); ++at) {
      if (at % of.padded() >= of.channels) Assign(residual[at], 0);
    }
  }
};

// Where the statistics come from: the running ones, or of the batch its sums, or z.
enum class From { kRunning, kSums, kValues };

struct ForwardRun {
  int capability = 8;
  int sms = 2;
  NormsInFront norms = NormsInFront::kNormAndResidual;
  From from = From::kRunning;
  bool keeps = true;
  bool writes = true;  // what the convolution reads

  bool is_dual() const { return norms == NormsInFront::kDualNorm; }
};

struct ForwardResults {
  Doubles src, dst;  // what the convolution reads, and gives
  std::vector<std::uint8_t> mask;
  std::vector<float> saved, running;
  Doubles sums;  // of dst, then of its squares

  // All but what is the convolution's.
  auto end() const { return std::tie(src, mask, saved, running); }
};

// What is in front of a convolution, in device memory.
template <typename T>
class ForwardFront {
 public:
  ForwardFront(const ForwardOperands<T>& of, const ForwardRun& run)
      : run_(run),
        norms_{Norm(of.first), Norm(of.second)},
        residual_(of.residual),
        dst_(of.residual.size()),
        saved_(of.size.padded() * (run.is_dual() ? 8 : 4)),
        mask_(of.residual.size() / 8),
        scratch_(static_cast<std::size_t>(DualNormScratchFloats(ShapeOf(of.size, run)))) {
    call.first = CallOf(norms_[0]);
    if (run.is_dual()) call.second = CallOf(norms_[1]);
    if (run.norms == NormsInFront::kNormAndResidual) call.residual = residual_.data();
    if (run.writes) call.dst = dst_.data();
    call.of_batch = run.from != From::kRunning;
    if (!run.keeps) return;
    call.saved = saved_.data();
    call.mask = mask_.data();
  }

  static NormShape ShapeOf(const ForwardSize& size, const ForwardRun& run) {
    return {.pixels = static_cast<std::int64_t>(size.pixels),
            .channels = static_cast<int>(size.channels),
            .padded = static_cast<int>(size.padded()),
            .dtype = std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16,
            .sms = run.sms};
  }
  float* scratch() const { return scratch_.data(); }

  void Download(ForwardResults& to) const {
    to.src = Loaded(dst_.Download());
    if (run_.keeps) {
      to.mask = mask_.Download();
      to.saved = saved_.Download();
    }
    for (std::size_t n = 0; n < (run_.is_dual() ? 2 : 1); ++n) {
      for (const DeviceValues<float>* values : {&norms_[n].mean, &norms_[n].variance}) {
        const std::vector<float> moved = values->Download();
        to.running.insert(to.running.end(), moved.begin(), moved.end());
      }
    }
  }

  NormsForward call;

 private:
  struct Norm {
    explicit Norm(const ForwardNorm<T>& of)
        : z(of.z),
          scale(of.scale),
          shift(of.shift),
          mean(of.mean),
          variance(of.variance),
          sums(of.sums) {}
    DeviceValues<T> z;
    DeviceValues<float> scale, shift, mean, variance, sums;
  };
  NormsForward::Norm CallOf(const Norm& norm) const {
    return {{norm.z.data(), run_.from == From::kSums ? norm.sums.data() : nullptr},
            {norm.scale.data(), norm.shift.data(), norm.mean.data(), norm.variance.data(),
             /*epsilon=*/0, /*kept=*/0.5F}};
  }

  const ForwardRun run_;
  const Norm norms_[2];
  const DeviceValues<T> residual_, dst_;
  const DeviceValues<float> saved_;
  const DeviceValues<std::uint8_t> mask_;
  const DeviceValues<float> scratch_;
};

template <typename T>
ForwardResults RunForward(const ForwardOperands<T>& of, const ForwardRun& run) {
  const ForwardFront<T> front(of, run);
  const Conv1x1ForwardShape shape = {.src = ForwardFront<T>::ShapeOf(of.size, run),
                                     .filters = static_cast<int>(of.size.filters),
                                     .norms = run.norms,
                                     .compute_capability = run.capability,
                                     .max_shared_bytes = kSharedBytes};
  EXPECT_TRUE(HasConv1x1Forward(shape));
  const int blocks = Conv1x1ForwardBlocks(shape);
  EXPECT_LE(blocks, run.sms);
  const std::size_t filters = of.size.filters;
  const DeviceValues<T> filter(of.filter);
  const DeviceValues<T> dst(of.size.pixels * filters);
  const DeviceValues<float> partial(2 * filters * static_cast<std::size_t>(blocks));
  Conv1x1Forward call;
  call.front = front.call;
  call.filter = filter.data();
  call.dst = dst.data();
  call.partial_sums = partial.data();
  call.scratch = front.scratch();
  RunConv1x1Forward(shape, call, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ForwardResults results;
  front.Download(results);
  results.dst = Loaded(dst.Download());
  results.sums.resize(2 * filters);
  const std::vector<float> values = partial.Download();
  for (std::size_t i = 0; i < values.size(); ++i) results.sums[i % (2 * filters)] += values[i];
  return results;
}

// What is in front alone, by the passes.
template <typename T>
ForwardResults RunPasses(const ForwardOperands<T>& of, const ForwardRun& run) {
  const ForwardFront<T> memory(of, run);
  const NormsForward& front = memory.call;
  const NormShape shape = ForwardFront<T>::ShapeOf(of.size, run);
  if (run.is_dual()) {
    RunDualNormForward(shape, front.first.parameters, front.second.parameters,
                       {front.first.src, front.second.src, front.dst, front.of_batch, front.saved,
                        front.mask, memory.scratch()},
                       nullptr);
  } else {
    NormForward call;
    call.src = front.first.src;
    call.residual = front.residual;
    call.dst = front.dst;
    call.relu = true;
    call.of_batch = front.of_batch;
    call.saved = front.saved;
    call.mask = front.mask;
    call.scratch = memory.scratch();
    RunNormForward(shape, front.first.parameters, call, nullptr);
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ForwardResults results;
  memory.Download(results);
  return results;
}

// Of what the convolution has read.
template <typename T>
Doubles ExpectedDst(const ForwardOperands<T>& of, const Doubles& src) {
  const std::size_t padded = of.size.padded();
  const Doubles filter = Loaded(of.filter);
  Doubles dst;
  for (std::size_t pixel = 0; pixel < of.size.pixels; ++pixel) {
    for (std::size_t k = 0; k < of.size.filters; ++k) {
      double value = 0;
      for (std::size_t c = 0; c < padded; ++c) {
        value += src[pixel * padded + c] * filter[k * padded + c];
      }
      dst.push_back(Rounded<T>(value));
    }
  }
  return dst;
}
Doubles SumsOf(const Doubles& dst, std::size_t filters) {
  Doubles sums(2 * filters);
  for (std::size_t at = 0; at < dst.size(); ++at) {
    sums[at % filters] += dst[at];
    sums[filters + at % filters] += dst[at] * dst[at];
  }
  return sums;
}

// Of variances that are 1.
template <typename T>
Doubles ExpectedSrc(const ForwardOperands<T>& of, NormsInFront norms, bool of_batch) {
  const std::size_t padded = of.size.padded();
  Doubles src(of.size.pixels * padded);
  for (std::size_t at = 0; at < src.size(); ++at) {
    const std::size_t c = at % padded;
    if (c >= of.size.channels) continue;
    const auto normalized = [&](const ForwardNorm<T>& norm) {
      const double mean = of_batch ? 1 - norm.mean[c] : norm.mean[c];
      return (ToFloat(norm.z[at]) - mean) * norm.scale[c] + norm.shift[c];
    };
    double value = normalized(of.first);
    if (norms == NormsInFront::kDualNorm) value += normalized(of.second);
    if (norms == NormsInFront::kNormAndResidual) value += ToFloat(of.residual[at]);
    src[at] = std::max(0.0, value);
  }
  return src;
}

// Fewer pixels than a tile has, several tiles of a block, a rest in each direction, padding; a
// filter in registers, partly in shared memory, and in chunks; several blocks across.
constexpr ForwardSize kForwardSizes[] = {
    {1, 8, 8},      {31, 12, 40},   {33, 256, 64},   {150, 72, 64},  {130, 256, 128},
    {70, 130, 72},  {97, 512, 128}, {40, 264, 16},  // and with one batch norm alone
    {150, 64, 256}, {65, 60, 264},  {200, 128, 512}, {33, 65, 520},  // but those in chunks
    {1, 8, 136},    {300, 60, 200}, {129, 520, 256}, {65, 1018, 136}};

bool HasKernel(const ForwardSize& size, NormsInFront norms, int capability, bool is_half) {
  if (capability < 8 && !is_half) return false;
  if (norms == NormsInFront::kNorm) return size.channels <= (capability < 8 ? 64 : 128);
  if (capability < 8) return size.channels <= 256 && size.filters <= 64;
  return size.channels <= 1024 && size.filters <= 256;
}

std::vector<ForwardRun> RunsOf(const ForwardSize& size, bool is_half) {
  std::vector<ForwardRun> runs;
  for (const int capability : Capabilities()) {
    for (const NormsInFront norms :
         {NormsInFront::kNorm, NormsInFront::kNormAndResidual, NormsInFront::kDualNorm}) {
      if (!HasKernel(size, norms, capability, is_half)) continue;
      for (const int sms : {1, 3, 108}) {
        if (sms > 3 && size.filters > 128 && norms != NormsInFront::kNorm)
          continue;  // one tile each
        runs.push_back({capability, sms, norms});
      }
    }
  }
  return runs;
}
std::string Describe(const ForwardSize& size, const ForwardRun& run) {
  return std::to_string(size.pixels) + " x " + std::to_string(size.channels) + " x " +
         std::to_string(size.filters) + ", " + std::to_string(run.capability) + ", " +
         std::to_string(run.sms) + ", norms " + std::to_string(static_cast<int>(run.norms));
}

template <typename T>
void ExpectExactForward() {
  for (const ForwardSize& size : kForwardSizes) {
    const ForwardOperands<T> operands(size);
    for (ForwardRun run : RunsOf(size, std::is_same_v<T, __half>)) {
      SCOPED_TRACE(Describe(size, run));
      run.from = run.sms == 3 ? From::kRunning : From::kSums;
      const ForwardResults results = RunForward(operands, run);
      const Doubles src = ExpectedSrc(operands, run.norms, run.from == From::kSums);
      EXPECT_EQ(results.src, src);
      for (std::size_t at = 0; at < src.size(); ++at) {
        ASSERT_EQ((results.mask[at / 8] >> at % 8 & 1) != 0, src[at] > 0) << at;
      }
      const Doubles dst = ExpectedDst(operands, src);
      EXPECT_EQ(results.dst, dst);
      EXPECT_EQ(results.sums, SumsOf(dst, size.filters));
    }
  }
}

using Conv1x1ForwardKernel = SharedMemoryTest;

TEST_F(Conv1x1ForwardKernel, IsExactForSmallIntegersInFp16) { ExpectExactForward<__half>(); }
TEST_F(Conv1x1ForwardKernel, IsExactForSmallIntegersInBf16) { ExpectExactForward<__nv_bfloat16>(); }

// What the convolution reads need not be written.
template <typename T>
void ExpectTheSameUnwritten() {
  for (const ForwardSize& size : {ForwardSize{100, 60, 264}, ForwardSize{70, 8, 8}}) {
    const ForwardOperands<T> operands(size);
    for (ForwardRun run : RunsOf(size, std::is_same_v<T, __half>)) {
      SCOPED_TRACE(Describe(size, run));
      run.from = From::kSums;
      const ForwardResults expected = RunForward(operands, run);
      run.writes = false;
      const ForwardResults results = RunForward(operands, run);
      EXPECT_TRUE(std::ranges::all_of(results.src, [](double value) { return std::isnan(value); }));
      EXPECT_EQ(
          std::tie(results.dst, results.sums, results.mask, results.saved, results.running),
          std::tie(expected.dst, expected.sums, expected.mask, expected.saved, expected.running));
    }
  }
}
TEST_F(Conv1x1ForwardKernel, WritesWhatItReadsWhereThatIsAskedForInFp16) {
  ExpectTheSameUnwritten<__half>();
}
TEST_F(Conv1x1ForwardKernel, WritesWhatItReadsWhereThatIsAskedForInBf16) {
  ExpectTheSameUnwritten<__nv_bfloat16>();
}

// Statistics, mask, what is kept for backward and what moves are those of the passes, to the bit.
template <typename T>
void ExpectResultsOfPasses() {
  for (const ForwardSize& size : {ForwardSize{100, 76, 64}, ForwardSize{70, 512, 72},
                                  ForwardSize{100, 60, 520}, ForwardSize{140, 196, 136}}) {
    const ForwardOperands<T> operands(size, ValueKind::kNoise);
    for (ForwardRun run : RunsOf(size, std::is_same_v<T, __half>)) {
      for (const From from : {From::kRunning, From::kSums, From::kValues}) {
        SCOPED_TRACE(Describe(size, run) + ", " + std::to_string(static_cast<int>(from)));
        run.from = from;
        run.keeps = run.sms != 3 || from != From::kRunning;
        const ForwardResults results = RunForward(operands, run);
        EXPECT_EQ(results.end(), RunPasses(operands, run).end());
        ExpectNear(results.dst, ExpectedDst(operands, results.src),
                   std::is_same_v<T, __half> ? 1e-3 : 8e-3, "dst");
        ExpectNear(results.sums, SumsOf(results.dst, size.filters), 2e-6, "sums");
      }
    }
  }
}
TEST_F(Conv1x1ForwardKernel, NormalizesAsThePassesInFp16) { ExpectResultsOfPasses<__half>(); }
TEST_F(Conv1x1ForwardKernel, NormalizesAsThePassesInBf16) {
  ExpectResultsOfPasses<__nv_bfloat16>();
}

// It passes the ReLU, which does not pass it back.
TEST_F(Conv1x1ForwardKernel, KeepsWhatIsNotANumber) {
  for (const int capability : Capabilities()) {
    for (const std::size_t filters : {64, 136}) {
      if (capability < 8 && filters > 64) continue;
      ForwardOperands<__half> operands({40, 64, filters});
      Assign(operands.first.z[5 * 64 + 9], NAN);
      const ForwardResults results = RunForward(operands, {.capability = capability});
      EXPECT_TRUE(std::isnan(results.src[5 * 64 + 9]));
      EXPECT_EQ(results.mask[5 * 8 + 1] >> 1 & 1, 0);
      EXPECT_TRUE(std::isnan(results.dst[5 * filters]));
      EXPECT_FALSE(std::isnan(results.dst[4 * filters]));
      EXPECT_TRUE(std::isnan(results.sums[0]));
    }
  }
}

// Without a GPU too.
TEST(HasConv1x1Forward, IsForWhatFitsIntoRegistersAndSharedMemory) {
  constexpr auto kHalf = DType::kFloat16;
  const auto has = [](NormsInFront norms, DType dtype, int capability, int channels, int filters,
                      int shared_kb) {
    return HasConv1x1Forward({.src = {.padded = channels, .dtype = dtype},
                              .filters = filters,
                              .norms = norms,
                              .compute_capability = capability,
                              .max_shared_bytes = static_cast<std::size_t>(shared_kb) << 10});
  };
  for (const NormsInFront norms : {NormsInFront::kNormAndResidual, NormsInFront::kDualNorm}) {
    EXPECT_FALSE(has(norms, kHalf, 6, 64, 64, 163));
    EXPECT_TRUE(has(norms, kHalf, 7, 256, 64, 64));
    EXPECT_FALSE(has(norms, kHalf, 7, 264, 64, 96));
    EXPECT_FALSE(has(norms, kHalf, 7, 256, 72, 96));
    EXPECT_FALSE(has(norms, DType::kBFloat16, 7, 256, 64, 96));
    EXPECT_TRUE(has(norms, kHalf, 8, 256, 128, 99));
    EXPECT_FALSE(has(norms, kHalf, 8, 264, 128, 152));
    EXPECT_TRUE(has(norms, kHalf, 8, 264, 128, 157));
    EXPECT_TRUE(has(norms, DType::kBFloat16, 12, 512, 128, 163));
    EXPECT_TRUE(has(norms, kHalf, 8, 1024, 256, 163));
    EXPECT_TRUE(has(norms, DType::kBFloat16, 9, 520, 64, 128));
    EXPECT_FALSE(has(norms, kHalf, 9, 256, 136, 119));
    EXPECT_FALSE(has(norms, kHalf, 9, 1032, 64, 227));
    EXPECT_FALSE(has(norms, kHalf, 9, 256, 264, 227));
    EXPECT_FALSE(has(norms, DType::kFloat32, 9, 64, 64, 227));
  }
  EXPECT_FALSE(has(NormsInFront::kNorm, kHalf, 6, 64, 256, 163));
  EXPECT_TRUE(has(NormsInFront::kNorm, kHalf, 7, 64, 256, 64));
  EXPECT_FALSE(has(NormsInFront::kNorm, kHalf, 7, 72, 256, 96));
  EXPECT_FALSE(has(NormsInFront::kNorm, DType::kBFloat16, 7, 64, 256, 96));
  EXPECT_TRUE(has(NormsInFront::kNorm, kHalf, 8, 128, 2048, 99));
  EXPECT_FALSE(has(NormsInFront::kNorm, kHalf, 8, 128, 8, 82));
  EXPECT_TRUE(has(NormsInFront::kNorm, DType::kBFloat16, 9, 64, 256, 85));
  EXPECT_FALSE(has(NormsInFront::kNorm, kHalf, 9, 136, 256, 227));
}

}  // namespace
}  // namespace trainer
