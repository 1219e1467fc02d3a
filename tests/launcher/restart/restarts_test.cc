// SPDX-License-Identifier: Apache-2.0

#include "launcher/restart/restarts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace launcher {
namespace {

namespace fs = std::filesystem;

TEST(ProgressFile, IsWhatWasNamedOrTheCheckpointsOfATraining) {
  const auto of = [](const std::vector<std::string>& program, const std::string& named = "") {
    Options options;
    options.program = program;
    options.progress_file = named;
    return ProgressFile(options);
  };
  EXPECT_EQ(of({"./train"}), "");
  EXPECT_EQ(of({"./train"}, "file"), "file");
  EXPECT_EQ(of({"ddltraind"}), "checkpoints");
  EXPECT_EQ(of({"ddltraind", "--results_dir=a", "--results_dir=r"}), "r/checkpoints");
  EXPECT_EQ(of({"ddltraind", "--results_dir=r"}, "file"), "file");
  EXPECT_EQ(of({"/opt/bin/ddltraind", "--model_dir", "m", "--results_dir", "r"}), "m/checkpoints");
  EXPECT_EQ(of({"apptainer", "exec", "image", "ddltraind", "--mode=train_and_evaluate"}),
            "checkpoints");
  EXPECT_EQ(of({"ddltraind", "--mode=training_benchmark"}), "");
  EXPECT_EQ(of({"ddltraind", "--mode=evaluate"}), "");
}

TEST(Restarts, LeavesOutAsManyNodesAsAreDispensable) {
  Options options;
  options.max_restarts = 1;
  const Environment environment;
  Restarts without_any(options, environment, /*dispensable_nodes=*/0);
  EXPECT_FALSE(without_any.LeaveOut({"n1"}));
  EXPECT_TRUE(without_any.lost_nodes().empty());
  Restarts restarts(options, environment, /*dispensable_nodes=*/2);
  EXPECT_TRUE(restarts.LeaveOut({"n2"}));
  EXPECT_FALSE(restarts.LeaveOut({"n3", "n4"}));
  EXPECT_TRUE(restarts.LeaveOut({"n2", "n4"}));  // one of them is known
  EXPECT_EQ(restarts.lost_nodes(), (std::vector<std::string>{"n2", "n4"}));
  EXPECT_FALSE(restarts.LeaveOut({"n5"}));
}

// A run that ended because this node was lost.
JobResult Lost(const std::string& host) {
  JobResult result;
  result.exit_code = 137;
  result.lost_nodes = {host};
  return result;
}

TEST(Restarts, GoOnUntilNoNodeIsDispensable) {
  Options options;
  options.max_restarts = 9;
  const Environment environment;
  Restarts restarts(options, environment, /*dispensable_nodes=*/2, /*min_nodes=*/2);
  restarts.BeforeRun({});
  const Decision first = restarts.AfterRun(Lost("n2"));
  EXPECT_EQ(first.next, Decision::Next::kStartAgain);
  EXPECT_EQ(first.reason, "starting again in 2 s, restart 1 of 9, without n2");
  restarts.BeforeRun({});
  const Decision second = restarts.AfterRun(Lost("n4"));
  EXPECT_EQ(second.next, Decision::Next::kStartAgain);
  EXPECT_EQ(second.reason, "starting again in 8 s, restart 2 of 9, without n2, n4");
  restarts.BeforeRun({});
  const Decision third = restarts.AfterRun(Lost("n3"));
  EXPECT_EQ(third.next, Decision::Next::kEnd);
  EXPECT_EQ(third.reason, "not started again: 1 node is left, and --min-nodes is 2");
}

// As where two nodes were lost together, and Slurm has said so of one of them first.
TEST(Restarts, GoOnWithoutANodeThatWasLostBeforeTheNextStart) {
  Options options;
  options.max_restarts = 9;
  const Environment environment;
  JobResult result = Lost("n3");
  result.exit_code = EX_CONFIG;
  result.refusal = "the job has 2 nodes now";
  Restarts restarts(options, environment, /*dispensable_nodes=*/1);
  restarts.BeforeRun({});
  EXPECT_EQ(restarts.AfterRun(result).next, Decision::Next::kStartAgain);
  result.lost_nodes.clear();
  restarts.BeforeRun({});
  EXPECT_EQ(restarts.AfterRun(result).next, Decision::Next::kEnd);
  Restarts without_any(options, environment, /*dispensable_nodes=*/0);
  without_any.BeforeRun({});
  EXPECT_EQ(without_any.AfterRun(Lost("n3")).next, Decision::Next::kEnd);
}

// No such Slurm is here: a scontrol that prints what one of 25.11 does.
TEST(Restarts, SayThatAJobOfAnExpeditedRequeueIsHeldAfterAFailure) {
  const fs::path folder = testing::TempDir() + "expedite." + std::to_string(getpid());
  fs::create_directory(folder);
  const auto reason = [&](const std::string& expedited, int exit_code) {
    std::ofstream(folder / "scontrol")
        << "#!/bin/sh\necho 'JobId=7 JobState=RUNNING Requeue=1 NodeList=n1" << expedited << "'\n";
    fs::permissions(folder / "scontrol", fs::perms::owner_all);
    Options options;
    options.max_restarts = 1;
    const Environment environment = {{"PATH", folder.string()}, {"SLURM_JOB_ID", "7"}};
    Restarts restarts(options, environment, /*dispensable_nodes=*/0);
    restarts.BeforeRun({"n1"});
    JobResult result;
    result.exit_code = exit_code;
    return restarts.AfterRun(result).reason;
  };
  const std::string held = "scontrol release";
  EXPECT_NE(reason(" ExpeditedRequeue=Yes", 78).find("; Slurm requeues this job and holds it"),
            std::string::npos);
  EXPECT_TRUE(reason(" ExpeditedRequeue=Yes", 75).starts_with("Slurm requeues this job and holds"));
  EXPECT_EQ(reason("", 78).find(held), std::string::npos);
  EXPECT_EQ(reason(" ExpeditedRequeue=Yes", 1).find(held), std::string::npos);  // starts again
  EXPECT_EQ(reason(" ExpeditedRequeue=Yes", 0), "");
  fs::remove_all(folder);
}

class NewestTimeTest : public testing::Test {
 protected:
  NewestTimeTest() : folder_(testing::TempDir() + "newest." + std::to_string(getpid())) {
    fs::create_directory(folder_);
  }
  ~NewestTimeTest() override { fs::remove_all(folder_); }

  fs::file_time_type Make(const std::string& name, int age_seconds) {
    std::ofstream(folder_ / name) << "x";
    const auto time = fs::file_time_type::clock::now() - std::chrono::seconds(age_seconds);
    fs::last_write_time(folder_ / name, time);
    return fs::last_write_time(folder_ / name);
  }

  fs::path folder_;
};

TEST_F(NewestTimeTest, IsThatOfAFile) {
  const auto time = Make("model.pt", 100);
  EXPECT_EQ(NewestTime(folder_ / "model.pt"), time);
}

TEST_F(NewestTimeTest, IsThatOfTheNewestEntryOfAFolder) {
  Make("step-1", 100);
  const auto time = Make("step-2", 50);
  Make("step-0", 200);
  EXPECT_EQ(NewestTime(folder_), time);
}

TEST_F(NewestTimeTest, PassesOverWhatIsHalfWritten) {
  const auto time = Make("step-1", 100);
  Make(".step-2", 10);
  EXPECT_EQ(NewestTime(folder_), time);
}

TEST_F(NewestTimeTest, IsNothingWhereThereIsNothing) {
  EXPECT_FALSE(NewestTime(folder_));
  EXPECT_FALSE(NewestTime(folder_ / "not-there"));
}

}  // namespace
}  // namespace launcher
