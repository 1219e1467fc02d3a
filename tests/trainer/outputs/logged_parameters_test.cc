// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/logged_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace trainer {
namespace {

std::map<std::string, LogValue> ParametersOf(std::vector<std::string> arguments) {
  arguments.emplace_back("--batch_size=8");
  const LogFields fields = LoggedParameters(ParseOptions(arguments).options);
  return {fields.begin(), fields.end()};
}

TEST(LoggedParameters, HaveTheTypesThatTheirValuesHave) {
  const auto parameters = ParametersOf({"--use_cosine_lr", "--data_dir=/data/1"});
  EXPECT_EQ(parameters.at("batch_size"), LogValue(std::int64_t{8}));
  EXPECT_EQ(parameters.at("lr_init"), LogValue(0.1));
  EXPECT_EQ(parameters.at("use_cosine_lr"), LogValue(true));
  EXPECT_EQ(parameters.at("deterministic"), LogValue(false));
  EXPECT_EQ(parameters.at("mode"), LogValue("train_and_evaluate"));
  EXPECT_EQ(parameters.at("data_dir"), LogValue("/data/1"));
  EXPECT_EQ(parameters.at("seed"), LogValue(std::int64_t{1}));
  const auto large = ParametersOf({"--seed=18446744073709551615"});
  EXPECT_EQ(large.at("seed"), LogValue(std::uint64_t{18446744073709551615U}));
}

TEST(LoggedParameters, LeaveOutWhatHasNoValueAndOtherNamesOfOptions) {
  const auto parameters = ParametersOf({"--amp"});
  EXPECT_EQ(parameters.count("data_dir"), 0U);
  EXPECT_EQ(parameters.count("amp"), 0U);
  EXPECT_EQ(parameters.at("precision"), LogValue("fp16"));
}

}  // namespace
}  // namespace trainer
