// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/control_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "tests/trainer/temporary_folder.h"
#include "trainer/checkpoint/names.h"
#include "trainer/control/control_client.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ControlPointTest : public testing::Test {
 protected:
  ControlPointTest() {
    options_.mode = RunMode::kTrain;
    options_.results_dir = (folder_.path() / "run").string();
    options_.display_every = 7;
    std::filesystem::create_directory(options_.results_dir);
    std::filesystem::create_directory(folder_.path() / "tmp");
    environment_ = {{"TMPDIR", (folder_.path() / "tmp").string()}, {"SLURM_JOB_ID", "17"}};
    rank_.world_size = 2;
    rank_.host = "n1";
  }
  std::unique_ptr<ControlPoint> Make(StacksOnRequest* stacks = nullptr) {
    const EnvironmentLookup get = [&](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional(found->second);
    };
    return MakeControlPoint(options_, rank_, get, "1.2", MakeLogger(log_, 0, "info"), stacks);
  }
  ControlAddress Address() const { return ReadAddress(options_.results_dir).value(); }
  bool LeavesNothing() const { return std::filesystem::is_empty(folder_.path() / "tmp"); }

  const TemporaryFolder folder_;
  Options options_;
  launcher::RankInfo rank_;
  std::map<std::string, std::string> environment_;
  std::ostringstream log_;
};

TEST_F(ControlPointTest, TakesOrdersForStacksWhereThereIsWhoObeysThem) {
  {
    const auto point = Make();
    EXPECT_NE(Ask(Address().socket, {ControlOrder::kStacks}).refusal, "");
  }
  StacksOnRequestOptions options;
  options.request = folder_.path() / "none";
  options.model_dir = folder_.path();
  StacksOnRequest stacks(options);
  const auto point = Make(&stacks);
  const ControlAnswer answer = Ask(Address().socket, {ControlOrder::kStacks});
  EXPECT_EQ(answer.refusal, "");
  EXPECT_GT(answer.stacks_order, 0U);
}

TEST_F(ControlPointTest, IsFoundByTheFileAndAnswers) {
  const auto point = Make();
  const ControlAddress address = Address();
  EXPECT_EQ(address.host, HostName());
  EXPECT_EQ(address.node, "n1");
  EXPECT_EQ(address.job, "17");
  EXPECT_EQ(address.pid, ::getpid());
  EXPECT_FALSE(address.last);
  const RunStatus status = Ask(address.socket, {}).status;
  EXPECT_EQ(status.state, RunState::kStarting);
  EXPECT_EQ(status.display_every, 7);
  EXPECT_EQ(status.identity.ranks, 2);
  EXPECT_EQ(status.identity.host, "n1");
  EXPECT_EQ(status.identity.version, "1.2");
  Ask(address.socket, {ControlOrder::kStop});
  EXPECT_TRUE(point->control().Look().stop);
  EXPECT_EQ(log_.str(), "");
}

TEST_F(ControlPointTest, HasLastWords) {
  const auto point = Make();
  point->control().Happened(RunEvent::kStep);
  point->control().Saved(3);
  point->End(RunEvent::kEnd);
  ASSERT_TRUE(Address().last);
  EXPECT_EQ(Address().last->state, RunState::kDone);
  EXPECT_EQ(Address().last->checkpoint_step, 3);
  EXPECT_TRUE(LeavesNothing());
  EXPECT_THROW(Ask(Address().socket, {}), NobodyListens);
}

TEST_F(ControlPointTest, OfATrainingThatThrowsHasFailed) {
  Make().reset();
  EXPECT_EQ(Address().last->state, RunState::kFailed);
  EXPECT_TRUE(LeavesNothing());
}

TEST_F(ControlPointTest, PrefersTheRunDirectoryThenThePlacesOfTheUser) {
  environment_["XDG_RUNTIME_DIR"] = "/run/user/1";
  const auto get = [&](const std::string& name) -> std::optional<std::string> {
    return environment_.count(name) > 0 ? std::optional(environment_[name]) : std::nullopt;
  };
  rank_.run_dir = "/tmp/ddlrun.abcdef";
  const ControlPointOptions point = MakeControlPointOptions(options_, rank_, get, "1");
  EXPECT_EQ(point.folder.run_directory, "/tmp/ddlrun.abcdef");
  EXPECT_THAT(point.folder.bases, ElementsAre("/run/user/1", environment_["TMPDIR"], "/tmp"));
}

TEST_F(ControlPointTest, ATrainingGoesOnWithoutIt) {
  std::filesystem::create_directory(std::filesystem::path(options_.results_dir) /
                                    kControlAddressName);
  const auto point = Make();
  EXPECT_THAT(log_.str(), HasSubstr("warning: ddlctl cannot reach this training: cannot write "));
  EXPECT_TRUE(LeavesNothing());
  point->control().Happened(RunEvent::kStep);
  point->End(RunEvent::kEnd);
}

TEST_F(ControlPointTest, ModesThatKeepNoWeightsHaveNone) {
  for (const RunMode mode : {RunMode::kEvaluate, RunMode::kPredict, RunMode::kTrainingBenchmark,
                             RunMode::kInferenceBenchmark}) {
    options_.mode = mode;
    EXPECT_EQ(Make(), nullptr);
  }
}

}  // namespace
}  // namespace trainer
