// SPDX-License-Identifier: Apache-2.0
//
// Options of --mode=predict.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/options/options_refusal.h"
#include "trainer/options/options.h"

namespace trainer {
namespace {

using ::testing::HasSubstr;

TEST(Options, APredictionTakesSeveralImagesAndFolders) {
  using Paths = std::vector<std::filesystem::path>;
  const auto images = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--mode=predict");
    return ParseOptions(arguments).options.to_predict;
  };
  EXPECT_EQ(images({"--to_predict=a.jpg"}), (Paths{"a.jpg"}));
  EXPECT_EQ(images({"--to_predict", "a.jpg", "b, c.png", "dir", "--json"}),
            (Paths{"a.jpg", "b, c.png", "dir"}));
  EXPECT_EQ(images({"--to_predict=a.jpg", "b.jpg", "--to_predict=c.jpg"}),
            (Paths{"a.jpg", "b.jpg", "c.jpg"}));
  const Options options =
      ParseOptions({"--mode=predict", "--json", "--labels=x", "--to_predict", "[a].jpg", "b"})
          .options;
  EXPECT_EQ(options.to_predict, (Paths{"[a].jpg", "b"}));
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.labels, "x");
}

TEST(Options, WhatAPredictionPrintsIsRefusedElsewhere) {
  EXPECT_THAT(
      Refusal({"--batch_size=8", "--json"}),
      HasSubstr("--json is about what --mode=predict prints, not --mode=train_and_evaluate"));
  EXPECT_THAT(Refusal({"--batch_size=8", "--mode=evaluate", "--labels=x"}),
              HasSubstr("--labels is about what --mode=predict prints, not --mode=evaluate"));
  EXPECT_EQ(ParseOptions({"--batch_size=8", "--label=0.1"}).options.label_smoothing, 0.1);
}

}  // namespace
}  // namespace trainer
