// SPDX-License-Identifier: Apache-2.0
//
// On a GPU: the engines of cuDNN that do more than a convolution give what a plain one gives with
// the rest done apart.  Which of them a training takes is a matter of speed, so all are run that
// cuDNN recommends for two images.

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <random>

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda/resnet50_layers.h"
#include "trainer/backend/cuda/libraries/cudnn_graph.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using Values = std::vector<float>;

// Evenly spread, of half precision.
Values Spread(std::int64_t count, float middle, float deviation, std::uint32_t seed) {
  std::minstd_rand generator(seed);
  const float range = std::sqrt(3.0F) * deviation;
  Values values(static_cast<std::size_t>(count));
  for (float& value : values) {
    const float share = static_cast<float>(generator() % 65536) / 32768 - 1;
    value = __half2float(__float2half(middle + range * share));
  }
  return values;
}

// Device memory with numbers of half precision in it, or without.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    if (cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)) != cudaSuccess) data_ = nullptr;
    EXPECT_NE(data_, nullptr) << bytes << " bytes";
    cudaMemset(data_, 0xFF, bytes);  // not-a-number
  }
  explicit DeviceMemory(const Values& numbers) : DeviceMemory(numbers.size() * sizeof(__half)) {
    std::vector<__half> halves(numbers.size());
    std::transform(numbers.begin(), numbers.end(), halves.begin(), __float2half);
    cudaMemcpy(data_, halves.data(), bytes_, cudaMemcpyHostToDevice);
  }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* data() const { return data_; }
  template <typename T>
  std::vector<T> Download() const {
    std::vector<T> values(bytes_ / sizeof(T));
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }
  Values DownloadHalves() const {
    const auto halves = Download<__half>();
    Values numbers(halves.size());
    std::transform(halves.begin(), halves.end(), numbers.begin(), __half2float);
    return numbers;
  }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

// What one convolution reads, and the statistics of a batch norm before it.
struct Operands {
  std::int64_t dst_count;
  Values src, filter, diff_dst;
  Values statistics;  // fp32

  explicit Operands(const ConvolutionGraph& graph)
      : dst_count(graph.images * graph.dst_height() * graph.dst_width() * graph.filters),
        src(Spread(graph.images * graph.height * graph.width * graph.channels, 0.5F, 1, 1)),
        filter(Spread(
            graph.filters * graph.kernel * graph.kernel * graph.channels, 0,
            1 / std::sqrt(static_cast<float>(graph.kernel * graph.kernel * graph.channels)), 2)),
        diff_dst(Spread(dst_count, 0, 0.125F, 3)),
        statistics(Spread(4 * graph.channels, 0.75F, 0.25F, 5)) {}
};

class FusedEngines : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    cudaDeviceProp properties = {};
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    has_engines_ = properties.major == 9;
  }
  void TearDown() override {
    if (handle_ != nullptr) cudnnDestroy(handle_);
  }

  // All that there are for the graph: none on a V100, but some on an H100.
  std::vector<CudnnExecutionPlan> Plans(const ConvolutionGraph& graph) {
    try {
      return FindPlans({handle_, nullptr}, graph, {}, 100);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE) << error.what();
      EXPECT_FALSE(has_engines_) << error.what();
      return {};
    }
  }

  struct Forward {
    Values dst, sums;
  };
  Forward RunForward(const ConvolutionGraph& graph, const CudnnExecutionPlan& plan,
                     const Operands& operands) {
    const DeviceMemory src(operands.src), filter(operands.filter);
    const DeviceMemory dst(static_cast<std::size_t>(operands.dst_count) * sizeof(__half));
    const DeviceMemory sums(2 * static_cast<std::size_t>(graph.filters) * sizeof(float));
    Run(plan, {.src = src.data(), .filter = filter.data(), .dst = dst.data(), .sums = sums.data()});
    return {dst.DownloadHalves(), sums.Download<float>()};
  }
  struct BackwardData {
    Values diff_src, sums;
  };
  BackwardData RunBackwardData(const ConvolutionGraph& graph, const CudnnExecutionPlan& plan,
                               const Operands& operands) {
    const DeviceMemory norm_src(operands.src), filter(operands.filter), diff_dst(operands.diff_dst);
    const DeviceMemory diff_src(operands.src.size() * sizeof(__half));
    const DeviceMemory sums(kGradientSumArrays * static_cast<std::size_t>(graph.channels) *
                            sizeof(float));
    const DeviceMemory statistics(operands.statistics.size() * sizeof(float));
    cudaMemcpy(statistics.data(), operands.statistics.data(),
               operands.statistics.size() * sizeof(float), cudaMemcpyHostToDevice);
    Run(plan, {.src = diff_src.data(),
               .filter = filter.data(),
               .dst = diff_dst.data(),
               .sums = sums.data(),
               .norm_src = norm_src.data(),
               .statistics = static_cast<const float*>(statistics.data())});
    return {diff_src.DownloadHalves(), sums.Download<float>()};
  }

 private:
  // A plan takes of the operands what its graph has.
  void Run(const CudnnExecutionPlan& plan, const ConvolutionOperands& operands) {
    const DeviceMemory workspace(plan.workspace_bytes());
    ASSERT_NO_THROW(plan.Execute(handle_, operands, workspace.data()));
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  cudnnHandle_t handle_ = nullptr;
  bool has_engines_ = false;  // for every graph here
};

// The largest difference, over the root mean square of what is right; infinite for not-a-number.
double LargestError(const Values& values, const Values& expected) {
  double squares = 0;
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(double{values.at(i)} - expected[i]);
    if (!(error <= largest)) largest = std::isnan(error) ? HUGE_VAL : error;
    squares += double{expected[i]} * expected[i];
  }
  return largest / std::sqrt(squares / static_cast<double>(expected.size()));
}

// The larger error of the sums of each filter and of the sums of squares.
double ErrorOfSums(const Values& sums, const Values& dst, std::int64_t filters) {
  const auto count = static_cast<std::size_t>(filters);
  std::vector<double> expected(2 * count);
  for (std::size_t i = 0; i < dst.size(); ++i) {
    expected[i % count] += dst[i];
    expected[count + i % count] += double{dst[i]} * dst[i];
  }
  const auto error = [&](std::size_t begin) {
    const auto half = [&](const auto& both) {
      const auto first = both.begin() + static_cast<std::ptrdiff_t>(begin);
      return Values(first, first + filters);
    };
    return LargestError(half(sums), half(expected));
  };
  return std::max(error(0), error(count));
}

constexpr double kTolerance = 2e-2;  // as of the contract tests for half precision

TEST_F(FusedEngines, GiveWhatPlainOnesGive) {
  for (const Layer& layer : ResNet50(/*images=*/2)) {
    if (layer.channels == 3) continue;
    const ConvolutionGraph plain = GraphOf(layer, DType::kFloat16);
    const Operands operands(plain);
    const Values expected = RunForward(plain, Plans(plain).at(0), operands).dst;
    ConvolutionGraph fused = plain;
    fused.sums = true;
    for (const CudnnExecutionPlan& plan : Plans(fused)) {
      const Forward forward = RunForward(fused, plan, operands);
      EXPECT_LE(LargestError(forward.dst, expected), kTolerance)
          << ToString(fused) << ": " << PlanOf(plan.id());
      EXPECT_LE(ErrorOfSums(forward.sums, forward.dst, fused.filters), kTolerance)
          << "sums of the " << ToString(fused) << ": " << PlanOf(plan.id());
    }
  }
}

// The gradient before the ReLU, where that lets it through, and the sums for the batch norm.
TEST_F(FusedEngines, ThatGoBackThroughAReluGiveItsGradientAndSums) {
  for (const Layer& layer : ResNet50(/*images=*/2)) {
    if (layer.channels == 3) continue;
    ConvolutionGraph plain = GraphOf(layer, DType::kFloat16);
    plain.pass = ConvolutionPass::kBackwardData;
    const Operands operands(plain);
    Values expected = RunBackwardData(plain, Plans(plain).at(0), operands).diff_src;
    const auto channels = static_cast<std::size_t>(plain.channels);
    std::vector<float> normalized(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float* of_channel = operands.statistics.data() + i % channels;
      normalized[i] = (operands.src[i] - of_channel[0]) * of_channel[channels];
      const float before = normalized[i] * of_channel[2 * channels] + of_channel[3 * channels];
      if (before <= 0) expected[i] = 0;
    }
    ConvolutionGraph masked = plain;
    masked.masked = true;
    for (const CudnnExecutionPlan& plan : Plans(masked)) {
      const BackwardData result = RunBackwardData(masked, plan, operands);
      EXPECT_LE(LargestError(result.diff_src, expected), kTolerance)
          << ToString(masked) << ": " << PlanOf(plan.id());
      std::vector<double> sums(2 * channels);
      for (std::size_t i = 0; i < result.diff_src.size(); ++i) {
        sums[i % channels] += double{result.diff_src[i]} * normalized[i];
        sums[channels + i % channels] += result.diff_src[i];
      }
      const auto of = [&](const auto& all, std::size_t first) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        return Values(begin, begin + plain.channels);
      };
      for (const std::size_t first : {std::size_t{0}, channels}) {
        EXPECT_LE(LargestError(of(result.sums, first), of(sums, first)), kTolerance)
            << "sums of the " << ToString(masked) << ": " << PlanOf(plan.id());
      }
    }
  }
}

}  // namespace
}  // namespace trainer
