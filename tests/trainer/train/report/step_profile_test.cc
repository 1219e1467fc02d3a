// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/report/step_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/trainer/train/training_run.h"
#include "trainer/backend/measured_backend.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Trainings of six steps; the profile is of the third and fourth.
class StepProfileTest : public testing::Test {
 protected:
  TrainResult Train() {
    const auto backend = MakeBackend("reference", {});
    OpRecorder recorder([&] { return backend->MakeEvent(); });
    const auto measured = MakeMeasuredBackend(*backend, recorder);
    ThreadWorld world(1);
    ThreadCommunicator communicator(world, 0);
    GeneratedSourceOptions options;
    options.batch = config_.batch_size;
    options.classes = config_.classes;
    GeneratedSource training(options);
    std::ostringstream log_text;
    TrainParts parts{
        *measured, communicator, &training, nullptr, {MakeLogger(log_text, 0, "info")}};
    const ProfileParts profile = {&recorder, backend->description(), {1e9, 1e9}, true};
    parts.profile = &profile;
    TrainResult result = RunTrainer(config_, parts);
    log_ = log_text.str();
    return result;
  }
  nlohmann::json Document() const {
    std::ifstream file(config_.results_dir / "profile.json");
    return nlohmann::json::parse(file);
  }

  TrainConfig MakeConfig() const {
    TrainConfig config = SmallConfig(folder_.path());
    config.profile = {.first = 3, .count = 2};
    config.results_dir = folder_.path();
    return config;
  }

  TemporaryFolder folder_;
  TrainConfig config_ = MakeConfig();
  std::string log_;
};

TEST_F(StepProfileTest, IsOfTheStepsThatWereAskedFor) {
  const TrainResult result = Train();
  ASSERT_FALSE(result.profile.empty());
  EXPECT_THAT(result.profile[0], StartsWith("Profile of steps 3 to 4 on rank 0"));
  EXPECT_THAT(result.profile[1], HasSubstr("measured"));
  const auto document = Document();
  EXPECT_EQ(document.at("first_step"), 3);
  EXPECT_EQ(document.at("steps"), 2);
  // Of resnet_tiny: 16 convolutions and batch norms, each forward and backward, the first without
  // the gradient of its image; 9 others.
  double calls = 0;
  std::set<std::string> layers;
  for (const auto& op : document.at("ops")) {
    calls += op.at("calls").get<double>();
    layers.insert(op.at("layer"));
  }
  EXPECT_EQ(calls, 16 + 15 + 16 + 32 + 9);
  EXPECT_THAT(layers, Contains("layer1.0.conv1"));
  EXPECT_THAT(layers, Contains("layer2.0.downsample.1"));
  EXPECT_THAT(layers, Contains("fc"));
  EXPECT_THAT(layers, Not(Contains(HasSubstr("weight"))));
  EXPECT_LE(document.at("op_seconds"), document.at("step_seconds"));
  EXPECT_THAT(log_, HasSubstr("profile written: " + (folder_.path() / "profile.csv").string()));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "profile.csv"));
}

TEST_F(StepProfileTest, IsOfThoseOfThemThatTheLaunchMakes) {
  config_.profile = {.first = 6, .count = 10};
  const TrainResult result = Train();
  EXPECT_THAT(result.profile.at(0), StartsWith("Profile of steps 6 to 6 "));
}

TEST_F(StepProfileTest, WarnsWhereThereAreNone) {
  config_.profile = {.first = 7, .count = 2};
  EXPECT_THAT(Train().profile, IsEmpty());
  EXPECT_THAT(log_, HasSubstr("warning: --profile shows nothing: steps 7 to 8 are not among the "
                              "steps 1 to 6 of this launch"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "profile.json"));
}

TEST_F(StepProfileTest, AFileThatCannotBeWrittenIsAWarning) {
  config_.results_dir = folder_.path() / "x";
  EXPECT_THAT(Train().profile, Not(IsEmpty()));
  EXPECT_THAT(log_, HasSubstr("profile.csv: cannot be written: No such file or directory; the run "
                              "goes on without it"));
}

// Steps of one op, which the test makes itself; the profile is of the third and fourth.
class StepProfileOfStepsTest : public StepProfileTest {
 protected:
  void Compute(std::int64_t step) {
    profile_.Before(step);
    recorder_.Run(op_, nullptr, *stream_, [] {});
  }
  // Of step `first` up to, but not, `end`; each takes `seconds`.
  void Make(std::int64_t first, std::int64_t end, double seconds) {
    for (std::int64_t step = first; step < end; ++step) {
      Compute(step);
      StepRecord record;
      record.step = step;
      record.times.step = seconds;
      profile_.After(record);
    }
  }

  const std::unique_ptr<Backend> backend_ = MakeBackend("reference", {});
  const std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  OpRecorder recorder_{[&] { return backend_->MakeEvent(); }};
  const int op_ = recorder_.Add({"conv1", "forward", "1x2", {3, 4}});
  const ProfileParts parts_ = {&recorder_, "reference", {1e9, 1e9}, true};
  Network network_{*backend_, {"resnet_tiny", 4, 32, 32, 4, 0}};
  std::ostringstream log_text_;
  StepProfile profile_{config_, &parts_, network_, MakeLogger(log_text_, 0, "info")};
};

TEST_F(StepProfileOfStepsTest, StartsAnewWhereTheTrainingGoesBackOnTheWay) {
  Make(0, 3, 8);
  Compute(3);  // finds a loss that is no number
  profile_.RolledBack();
  Make(0, 2, 8);
  EXPECT_FALSE(recorder_.is_on());
  Make(2, 6, 2);
  const auto document = Document();
  EXPECT_EQ(document.at("first_step"), 3);
  EXPECT_EQ(document.at("steps"), 2);
  EXPECT_EQ(document.at("step_seconds"), 2);
  EXPECT_EQ(document.at("ops").at(0).at("calls"), 1) << "in each step";
}

TEST_F(StepProfileOfStepsTest, StartsAnewBehindACheckpointAmongThem) {
  Make(0, 3, 8);
  Compute(3);
  profile_.RolledBack();
  Make(3, 6, 2);
  EXPECT_THAT(profile_.lines().at(0), StartsWith("Profile of steps 4 to 4 "));
}

TEST_F(StepProfileOfStepsTest, IsOfWhatWasMadeWhereTheTrainingEndsByGoingBack) {
  Make(0, 3, 8);
  Compute(3);
  profile_.RolledBack();
  Make(0, 1, 8);
  profile_.End();
  ASSERT_THAT(profile_.lines(), Not(IsEmpty()));
  EXPECT_THAT(profile_.lines()[0], StartsWith("Profile of steps 3 to 3 "));
  EXPECT_EQ(Document().at("ops").at(0).at("calls"), 1) << "not that of the step that failed";
}

TEST_F(StepProfileOfStepsTest, IsOfNoneWhereNoneEnded) {
  Make(0, 2, 8);
  Compute(2);
  profile_.RolledBack();
  profile_.End();
  EXPECT_THAT(profile_.lines(), IsEmpty());
}

TEST_F(StepProfileTest, ChangesNoWeight) {
  Train();
  TemporaryFolder other;
  RunAlone(SmallConfig(other.path()));
  const auto weights = [](const TemporaryFolder& folder) {
    return TensorsOf(CheckpointFolder(folder.path(), 6) / "model.safetensors");
  };
  EXPECT_EQ(weights(folder_), weights(other));
}

}  // namespace
}  // namespace trainer
