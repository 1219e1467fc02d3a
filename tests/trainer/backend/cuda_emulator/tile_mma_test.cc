// SPDX-License-Identifier: Apache-2.0
//
// Tiles multiplied by the instructions of tensor cores, against plain loops.

#include "trainer/backend/cuda/runtime/tile_mma.cuh"

#include <random>
#include <stdexcept>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/device_vector.h"
#include "trainer/backend/cuda/runtime/element.cuh"

namespace trainer {
namespace {

using cuda_emulator::DeviceVector;

constexpr int kEdge = 16;
constexpr int kDepth = 48;
constexpr int kPart = 8;
// Lines lie apart by an odd number of parts.
constexpr int kLine = kDepth + kPart;
constexpr int kElements = kDepth * kLine;  // of either way to lay a matrix out

// Where element (edge, depth) of an operand lies.
constexpr int PlaceOf(Major major, int edge, int depth) {
  return major == Major::kK ? edge * kLine + depth : depth * kLine + edge;
}

template <typename T, TensorCores cores, Major of_a, Major of_b>
__global__ void MultiplyTiles(const T* a, const T* b, float* out) {
  alignas(16) __shared__ T in_shared[2][kElements];
  for (int i = static_cast<int>(threadIdx.x); i < kElements; i += 32) {
    in_shared[0][i] = a[i];
    in_shared[1][i] = b[i];
  }
  __syncthreads();
  TileSum sum;
  for (int i = 0; i < 8; ++i) {
    sum.values[i] = out[TileRow<cores>(i) * kEdge + TileColumn<cores>(i)];
  }
  for (int first = 0; first < kDepth; first += 16) {
    const auto from = [&](int side, Major major) {
      return [=](int line, int part) {
        return in_shared[side] + (major == Major::kK ? PlaceOf(major, line, first + part * kPart)
                                                     : PlaceOf(major, part * kPart, first + line));
      };
    };
    Operand<T, cores, Side::kA, of_a> left;
    Operand<T, cores, Side::kB, of_b> right;
    LoadOperand(from(0, of_a), left);
    LoadOperand(from(1, of_b), right);
    if constexpr (of_a == Major::kK) {  // another way to the same
      LoadOperandFromAnywhere(
          [=](int line, int part) { return a + PlaceOf(of_a, line, first + part * kPart); }, left);
    }
    MultiplyAdd(left, right, sum);
  }
  for (int i = 0; i < 8; ++i) {
    out[TileRow<cores>(i) * kEdge + TileColumn<cores>(i)] = sum.values[i];
  }
}

DeviceVector<float> Noise(unsigned seed, int count) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  DeviceVector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(engine);
  return values;
}

template <typename T, TensorCores cores, Major of_a, Major of_b>
void ExpectTheProduct() {
  DeviceVector<T> a(kElements);
  DeviceVector<T> b(kElements);
  const DeviceVector<float> noise = Noise(1, 2 * kElements);
  for (int i = 0; i < kElements; ++i) {
    Assign(a[i], noise[i]);
    Assign(b[i], noise[kElements + i]);
  }
  const DeviceVector<float> before = Noise(2, kEdge * kEdge);
  DeviceVector<float> out = before;
  Launch(MultiplyTiles<T, cores, of_a, of_b>, 1, 32, nullptr, a.data(), b.data(), out.data());
  for (int row = 0; row < kEdge; ++row) {
    for (int column = 0; column < kEdge; ++column) {
      double sum = before[row * kEdge + column];
      double magnitude = std::abs(sum);
      for (int k = 0; k < kDepth; ++k) {
        const double product = double{ToFloat(a[PlaceOf(of_a, row, k)])} *
                               double{ToFloat(b[PlaceOf(of_b, column, k)])};
        sum += product;
        magnitude += std::abs(product);
      }
      EXPECT_NEAR(out[row * kEdge + column], sum, magnitude * kDepth * 0x1p-24)
          << row << ", " << column;
    }
  }
}

template <typename T, TensorCores cores>
void ExpectProductsOfAllLayouts() {
  ExpectTheProduct<T, cores, Major::kK, Major::kK>();
  ExpectTheProduct<T, cores, Major::kK, Major::kMN>();
  ExpectTheProduct<T, cores, Major::kMN, Major::kK>();
  ExpectTheProduct<T, cores, Major::kMN, Major::kMN>();
}

TEST(TileProduct, OfFp16ByQuadPairs) {
  ExpectProductsOfAllLayouts<__half, TensorCores::kQuadPairs>();
}
TEST(TileProduct, OfFp16ByTheWholeWarp) {
  ExpectProductsOfAllLayouts<__half, TensorCores::kWholeWarp>();
}
TEST(TileProduct, OfBf16ByTheWholeWarp) {
  ExpectProductsOfAllLayouts<__nv_bfloat16, TensorCores::kWholeWarp>();
}

TEST(TileProduct, TheInstructionGoesByTheComputeCapability) {
  EXPECT_EQ(TensorCoresOf(7), TensorCores::kQuadPairs);
  EXPECT_EQ(TensorCoresOf(8), TensorCores::kWholeWarp);
  EXPECT_EQ(TensorCoresOf(10), TensorCores::kWholeWarp);
}

// The lane that asks for nothing at all, and one address that is not aligned.
__global__ void LoadUnaligned(const __half* src, int off) {
  unsigned words[4];
  LoadMatrices<false>(src + (threadIdx.x == 7 ? off : 0), words);
}
__global__ void MultiplyInPartOfAWarp() {
  if (threadIdx.x == 9) return;
  const unsigned a[4] = {};
  const unsigned b[2] = {};
  float sum[4] = {};
  MultiplyM16N8K16<__half>(a, b, sum);
}

template <typename... Parameters, typename... Arguments>
std::string Failure(void (*kernel)(Parameters...), int threads, Arguments... arguments) {
  return tests::Rejection<std::runtime_error>(
      [&] { Launch(kernel, 1, static_cast<unsigned>(threads), nullptr, arguments...); });
}

TEST(TileProduct, NeedsAlignedRowsAndWholeWarps) {
  const DeviceVector<__half> src(16);
  EXPECT_EQ(Failure(LoadUnaligned, 32, src.data(), 8), "");
  EXPECT_THAT(Failure(LoadUnaligned, 32, src.data(), 4), HasSubstr("not aligned to 16 bytes"));
  EXPECT_THAT(Failure(MultiplyInPartOfAWarp, 32),
              AllOf(HasSubstr("waits in an instruction of its warp at"),
                    HasSubstr("thread (9, 0, 0) has returned")));
  EXPECT_THAT(Failure(MultiplyInPartOfAWarp, 8), HasSubstr("not of whole warps"));
}

}  // namespace
}  // namespace trainer
