// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Resnet, DepthIsThreeConvolutionsPerBottleneckAndTwoMore) {
  EXPECT_EQ(BottlenecksOf(FindArchitecture("resnet50")).size() * 3 + 2, 50);
  EXPECT_EQ(BottlenecksOf(FindArchitecture("resnet101")).size() * 3 + 2, 101);
  EXPECT_EQ(BottlenecksOf(FindArchitecture("resnet152")).size() * 3 + 2, 152);
}

TEST(Resnet, StrideIsInTheFirstBlockOfAStage) {
  const std::vector<BottleneckPlace> places = BottlenecksOf(FindArchitecture("resnet50"));
  EXPECT_EQ(places[0].name, "layer1.0");
  EXPECT_EQ(places[0].stride, 1);
  EXPECT_EQ(places[0].out_channels, 256);
  EXPECT_EQ(places[3].name, "layer2.0");
  EXPECT_EQ(places[3].stride, 2);
  EXPECT_EQ(places[4].stride, 1);
  EXPECT_EQ(places[15].name, "layer4.2");
  EXPECT_EQ(places[15].out_channels, 2048);
}

TEST(Resnet, RefusesAnUnknownNameWithTheListOfNames) {
  try {
    FindArchitecture("resnet51");
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    EXPECT_THAT(error.what(), HasSubstr("'resnet51'"));
    EXPECT_THAT(error.what(), HasSubstr("resnet50, resnet101, resnet152"));
    EXPECT_THAT(error.what(), Not(HasSubstr("resnet_tiny")));
  }
}

TEST(Resnet, EveryListedNameIsFound) {
  for (const std::string& name : ArchitectureNames()) EXPECT_EQ(FindArchitecture(name).name, name);
}

}  // namespace
}  // namespace trainer
