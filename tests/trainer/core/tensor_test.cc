// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/tensor.h"

#include <gtest/gtest.h>

#include "trainer/core/error.h"

namespace trainer {
namespace {

TEST(DType, HasSizeAndSafetensorsName) {
  EXPECT_EQ(SizeOf(DType::kFloat32), 4U);
  EXPECT_EQ(SizeOf(DType::kFloat16), 2U);
  EXPECT_EQ(SizeOf(DType::kBFloat16), 2U);
  EXPECT_EQ(SizeOf(DType::kUint8), 1U);
  EXPECT_EQ(SizeOf(DType::kInt32), 4U);
  EXPECT_EQ(SizeOf(DType::kInt64), 8U);
  EXPECT_EQ(NameOf(DType::kFloat32), "F32");
  EXPECT_EQ(NameOf(DType::kBFloat16), "BF16");
  EXPECT_EQ(NameOf(DType::kInt64), "I64");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({64, 3, 7, 7}).elements(), 64 * 3 * 7 * 7);
  EXPECT_EQ(Shape({5, 0}).elements(), 0);
}

TEST(Shape, ComparesByRankAndDimensions) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 0}));
}

TEST(Shape, PrintsLikePython) {
  EXPECT_EQ(ToString(Shape({64, 3, 7, 7})), "(64, 3, 7, 7)");
  EXPECT_EQ(ToString(Shape()), "()");
}

TEST(Shape, RefusesNegativeDimensionsAndFiveOfThem) {
  EXPECT_THROW(Shape({1, -1}), Error);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1}), Error);
}

TEST(Tensor, DenseDescriptionsCountBytes) {
  EXPECT_EQ(RowMajor({3, 5}, DType::kFloat16).bytes, 30U);
  EXPECT_EQ(ChannelsLast({2, 3, 5, 7}, DType::kFloat32).bytes, 840U);
  EXPECT_EQ(ChannelsLast({2, 3, 5, 7}, DType::kFloat32).layout, Layout::kChannelsLast);
  EXPECT_THROW(ChannelsLast({3, 5}, DType::kFloat32), Error);
}

TEST(Tensor, IsEmptyWithoutData) {
  float value = 1;
  EXPECT_FALSE(Tensor{});
  const Tensor tensor{RowMajor({1}, DType::kFloat32), &value};
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor.As<float>()[0], 1);
}

}  // namespace
}  // namespace trainer
