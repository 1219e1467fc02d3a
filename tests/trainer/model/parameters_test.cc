// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::ElementsAre;

ParameterSpec Trained(const std::string& name, std::int64_t elements, bool decay) {
  const Shape shape{elements};
  return {name, shape, RowMajor(shape, DType::kFloat32), Init::kZeros, decay, false};
}

ParameterSpec Statistic(const std::string& name, std::int64_t elements) {
  ParameterSpec spec = Trained(name, elements, false);
  spec.statistic = true;
  return spec;
}

// Two blocks: a filter of 20 with a batch norm of 4; then a filter of 16 and a bias of 3, both
// decayed.
std::vector<BlockParameters> TwoBlocks() {
  return {{"first.",
           {Trained("filter", 20, true), Trained("scale", 4, false), Statistic("mean", 4),
            Statistic("variance", 4)}},
          {"", {Trained("filter", 16, true), Trained("bias", 3, true)}}};
}

TEST(ParameterLayout, NamesAreInForwardOrderWithThePrefixOfTheBlock) {
  std::vector<std::string> names;
  for (const Parameter& p : LayOutParameters(TwoBlocks()).parameters) names.push_back(p.name);
  EXPECT_THAT(names, ElementsAre("first.filter", "first.scale", "first.mean", "first.variance",
                                 "filter", "bias"));
}

TEST(ParameterLayout, MemoryIsInForwardOrderAndAligned) {
  const ParameterLayout layout = LayOutParameters(TwoBlocks());
  const std::vector<Parameter>& p = layout.parameters;
  EXPECT_EQ(p[0].begin, 0);   // filter: 20 elements, padded to 32
  EXPECT_EQ(p[1].begin, 32);  // scale: 4, padded to 16
  EXPECT_EQ(p[4].begin, 48);  // filter of the last block
  EXPECT_EQ(p[5].begin, 64);  // bias: 3, padded to 16
  EXPECT_EQ(layout.elements, 80);
}

TEST(ParameterLayout, StatisticsHaveAMemoryOfTheirOwn) {
  const ParameterLayout layout = LayOutParameters(TwoBlocks());
  EXPECT_EQ(layout.parameters[2].begin, 0);
  EXPECT_EQ(layout.parameters[3].begin, 16);
  EXPECT_EQ(layout.statistic_elements, 32);
}

TEST(ParameterLayout, GradientsCompleteFromTheEndAsBackwardRuns) {
  EXPECT_THAT(LayOutParameters(TwoBlocks()).complete_from, ElementsAre(0, 48));
}

TEST(ParameterLayout, NeighboursWithTheSameDecayAreOneSegmentAndNothingIsLeftOut) {
  const std::vector<ParameterSegment> segments = LayOutParameters(TwoBlocks()).segments;
  ASSERT_EQ(segments.size(), 3);
  EXPECT_EQ(segments[0].begin, 0);
  EXPECT_EQ(segments[0].count, 32);
  EXPECT_TRUE(segments[0].decay);
  EXPECT_EQ(segments[1].begin, 32);
  EXPECT_EQ(segments[1].count, 16);
  EXPECT_FALSE(segments[1].decay);
  EXPECT_EQ(segments[2].begin, 48);  // filter and bias together
  EXPECT_EQ(segments[2].count, 32);
  EXPECT_TRUE(segments[2].decay);
}

TEST(ParameterLayout, EachTensorIsByItselfAndOnlyWeightsHaveTheirNormsInLars) {
  std::vector<BlockParameters> blocks = TwoBlocks();
  for (BlockParameters& block : blocks) {
    ParameterSpec& filter = block.specs[0];
    filter.shape = filter.desc.shape = Shape{filter.shape.elements() / 2, 2};
  }
  const std::vector<ParameterSegment> tensors = LayOutParameters(blocks).tensors;
  ASSERT_EQ(tensors.size(), 4);  // no statistics
  const std::vector<std::size_t> begins = {0, 32, 48, 64};
  const std::vector<std::size_t> counts = {20, 4, 16, 3};  // without the gaps
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tensors[i].begin, begins[i]);
    EXPECT_EQ(tensors[i].count, counts[i]);
    EXPECT_EQ(tensors[i].decay, i % 2 == 0) << "the bias has decay in SGD alone";
  }
}

TEST(ParameterLayout, PaddingOfTheBackEndCounts) {
  std::vector<BlockParameters> blocks = {{"", {Trained("filter", 20, true)}}};
  blocks[0].specs[0].desc.bytes = 40 * sizeof(float);
  EXPECT_EQ(LayOutParameters(blocks).elements, 48);
}

// As a back end has them that computes in 16 bits: filters are, batch norm and biases are not.
std::vector<BlockParameters> TwoBlocksOfTwoTypes() {
  std::vector<BlockParameters> blocks = TwoBlocks();
  for (BlockParameters& block : blocks) {
    ParameterSpec& filter = block.specs[0];
    filter.desc = RowMajor(filter.shape, DType::kFloat16);
  }
  return blocks;
}

TEST(ParameterLayout, WhatIsNotFp32LiesBehindTheRestInForwardOrder) {
  const ParameterLayout layout = LayOutParameters(TwoBlocksOfTwoTypes());
  const std::vector<Parameter>& p = layout.parameters;
  EXPECT_EQ(p[1].begin, 0);   // scale of the first block
  EXPECT_EQ(p[5].begin, 16);  // bias of the last
  EXPECT_EQ(layout.compute_from, 32);
  EXPECT_EQ(p[0].begin, 32);
  EXPECT_EQ(p[4].begin, 64);
  EXPECT_EQ(layout.elements, 80);
  EXPECT_EQ(p[2].begin, 0);  // statistics, as ever
}

TEST(ParameterLayout, GradientsOfTwoTypesCompleteFromTheEndAndFp32WithTheFirstBlock) {
  EXPECT_THAT(LayOutParameters(TwoBlocksOfTwoTypes()).complete_from, ElementsAre(0, 64));
}

TEST(ParameterLayout, NothingIsBehindWhereAllIsFp32) {
  const ParameterLayout layout = LayOutParameters(TwoBlocks());
  EXPECT_EQ(layout.compute_from, layout.elements);
}

TEST(ParameterLayout, CountsElementsOfAnyType) {
  std::vector<BlockParameters> blocks = {{"", {Trained("filter", 20, true)}}};
  blocks[0].specs[0].desc = RowMajor(blocks[0].specs[0].desc.shape, DType::kFloat16);
  EXPECT_EQ(LayOutParameters(blocks).elements, 32);
  EXPECT_EQ(LayOutParameters(blocks).parameters[0].count, 20);
}

}  // namespace
}  // namespace trainer
