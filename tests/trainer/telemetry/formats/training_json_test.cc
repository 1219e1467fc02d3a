// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/training_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/trainer/temporary_folder.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::ordered_json;

class TrainingJsonTest : public ::testing::Test {
 protected:
  Json Read() const {
    std::ifstream file(folder_.path() / "training.json");
    return Json::parse(file);
  }
  // `steps` of the launch from the `first`-th on, every third of which is displayed; each is of an
  // epoch of five.
  void Steps(std::int64_t first, std::int64_t steps) {
    for (std::int64_t step = first; step < first + steps; ++step) {
      const auto number = static_cast<double>(step);
      log_.Step({.launch_step = step,
                 .epoch = step / 5,
                 .ends_epoch = step % 5 == 4,
                 .is_displayed = step % 3 == 0,
                 .images_per_second = 100 + number,
                 .cross_entropy = 7 - number,
                 .l2_loss = 0.25,
                 .total_loss = 7.25 - number,
                 .learning_rate = 0.5});
    }
  }

  TemporaryFolder folder_;
  TimePoint now_{std::chrono::seconds(1593597600)};
  std::vector<int> losses_;
  TrainingJson log_{folder_.path() / "training.json",
                    [this](int error) { losses_.push_back(error); }, [this] { return now_; }};
};

std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST_F(TrainingJsonTest, HasTheKeysOfNvidiasInTheirOrder) {
  log_.EndTraining({});
  EXPECT_THAT(KeysOf(Read()), ElementsAre("run", "epoch", "iter", "event"));
  EXPECT_THAT(KeysOf(Read()["epoch"]),
              ElementsAre("x", "epoch", "final_cross_entropy", "final_l2_loss", "final_total_loss",
                          "final_learning_rate"));
  EXPECT_THAT(KeysOf(Read()["iter"]), ElementsAre("x", "iteration", "imgs_per_sec", "cross_entropy",
                                                  "l2_loss", "total_loss", "learning_rate"));
}

TEST_F(TrainingJsonTest, HasAListOfIterationsForEachEpoch) {
  Steps(0, 5);
  Steps(5, 5);
  Steps(10, 1);
  log_.EndTraining({});
  const Json iterations = Read()["iter"];
  EXPECT_EQ(iterations["iteration"], Json::parse("[[0, 3], [6, 9], []]"));
  // Counted from the start of the epoch.
  EXPECT_EQ(iterations["x"], Json::parse("[[0, 3], [1, 4], []]"));
  EXPECT_EQ(iterations["imgs_per_sec"], Json::parse("[[100.0, 103.0], [106.0, 109.0], []]"));
  EXPECT_EQ(iterations["cross_entropy"], Json::parse("[[7.0, 4.0], [1.0, -2.0], []]"));
  EXPECT_EQ(iterations["l2_loss"], Json::parse("[[0.25, 0.25], [0.25, 0.25], []]"));
  EXPECT_EQ(iterations["total_loss"], Json::parse("[[7.25, 4.25], [1.25, -1.75], []]"));
  EXPECT_EQ(iterations["learning_rate"], Json::parse("[[0.5, 0.5], [0.5, 0.5], []]"));
  const Json epochs = Read()["epoch"];
  EXPECT_EQ(epochs["x"], Json::parse("[0, 1]"));
  EXPECT_EQ(epochs["epoch"], Json::parse("[0, 1]"));
  EXPECT_EQ(epochs["final_cross_entropy"], Json::parse("[3.0, -2.0]"));
  EXPECT_EQ(epochs["final_l2_loss"], Json::parse("[0.25, 0.25]"));
  EXPECT_EQ(epochs["final_total_loss"], Json::parse("[3.25, -1.75]"));
  EXPECT_EQ(epochs["final_learning_rate"], Json::parse("[0.5, 0.5]"));
}

TEST_F(TrainingJsonTest, IsWrittenWhenAnEpochEndsButNotTooOften) {
  now_ += std::chrono::seconds(4);
  Steps(0, 5);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "training.json"));
  now_ += std::chrono::seconds(1);
  Steps(5, 5);
  EXPECT_EQ(Read()["epoch"]["x"].size(), 2U);
  now_ -= std::chrono::hours(2);
  Steps(10, 5);
  EXPECT_EQ(Read()["epoch"]["x"].size(), 3U);
  EXPECT_THAT(losses_, ElementsAre());
}

TEST_F(TrainingJsonTest, WhatCannotBeWrittenIsTold) {
  std::filesystem::create_directory(folder_.path() / ".training.json.tmp");
  log_.EndTraining({});
  EXPECT_THAT(losses_, ElementsAre(EISDIR));
}

}  // namespace
}  // namespace trainer
