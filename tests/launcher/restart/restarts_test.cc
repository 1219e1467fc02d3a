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

TEST(Restarts, LeavesOutAsManyNodesAsAreSpare) {
  Options options;
  options.max_restarts = 1;
  const Environment environment;
  Restarts without_spares(options, environment);
  EXPECT_FALSE(without_spares.LeaveOut({"n1"}));
  EXPECT_TRUE(without_spares.lost_nodes().empty());
  options.spare_nodes = 2;
  Restarts restarts(options, environment);
  EXPECT_TRUE(restarts.LeaveOut({"n2"}));
  EXPECT_FALSE(restarts.LeaveOut({"n3", "n4"}));
  EXPECT_TRUE(restarts.LeaveOut({"n2", "n4"}));  // one of them is known
  EXPECT_EQ(restarts.lost_nodes(), (std::vector<std::string>{"n2", "n4"}));
  EXPECT_FALSE(restarts.LeaveOut({"n5"}));
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
