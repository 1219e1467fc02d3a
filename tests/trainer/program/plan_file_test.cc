// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/trainer/temporary_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class PlanFileTest : public testing::Test {
 protected:
  PlanFile Open() { return {path_, MakeLogger(said_, 0, "info")}; }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "plans.txt";
  std::ostringstream said_;
};

TEST_F(PlanFileTest, IsReadByTheNextRun) {
  PlanFile first = Open();
  first.Keep();
  EXPECT_FALSE(std::filesystem::exists(path_));  // there is nothing to keep
  first.plans()->Add("forward", "1");
  first.Keep();
  PlanFile second = Open();
  EXPECT_EQ(second.plans()->Find("forward"), "1");
  second.plans()->Add("backward", "2");
  second.Keep();
  PlanFile third = Open();
  EXPECT_EQ(third.plans()->Find("forward"), "1");
  EXPECT_EQ(third.plans()->Find("backward"), "2");
  EXPECT_EQ(said_.str(), "");
}

TEST_F(PlanFileTest, OneThatIsDamagedIsSaid) {
  std::ofstream(path_) << "ddltraind plans 1, crc32c 00000000\nforward\t1\n";
  EXPECT_EQ(Open().plans()->Find("forward"), std::nullopt);
  EXPECT_THAT(said_.str(), HasSubstr("cannot read " + path_.string() +
                                     " (--plan_cache): its "
                                     "checksum is wrong; algorithms are timed again"));
}

TEST_F(PlanFileTest, OneOfANewerFormatIsSaidAndLeftAsItIs) {
  const std::string text =
      std::string(kPlanBeginning) + std::to_string(kPlanFormat + 1) + "\nmore\n";
  std::ofstream(path_) << text;
  PlanFile newer = Open();
  EXPECT_THAT(said_.str(),
              HasSubstr("cannot read " + path_.string() + " (--plan_cache): plans of format " +
                        std::to_string(kPlanFormat + 1) + ", and this program reads format " +
                        std::to_string(kPlanFormat) +
                        ": use the version of ddlrun that has written it, or a newer one; this run "
                        "times algorithms and keeps nothing"));
  newer.plans()->Add("forward", "1");
  newer.Keep();
  EXPECT_EQ(newer.plans()->Find("forward"), "1");
  std::ostringstream now;
  now << std::ifstream(path_).rdbuf();
  EXPECT_EQ(now.str(), text);
}

TEST_F(PlanFileTest, WithoutAPathThereIsNone) {
  path_.clear();
  PlanFile none = Open();
  none.plans()->Add("forward", "1");
  none.Keep();
  EXPECT_EQ(none.plans()->Find("forward"), "1");
  EXPECT_EQ(said_.str(), "");
}

TEST_F(PlanFileTest, OneThatCannotBeReadOrWrittenIsSaidOnce) {
  std::filesystem::create_directory(path_);
  PlanFile folder = Open();
  EXPECT_THAT(said_.str(), HasSubstr("cannot read " + path_.string() +
                                     " (--plan_cache): it is no "
                                     "regular file; algorithms are timed again"));
  said_.str("");
  folder.plans()->Add("forward", "1");
  folder.Keep();
  EXPECT_THAT(said_.str(), HasSubstr("cannot write " + path_.string() + " (--plan_cache): "));
  said_.str("");
  folder.plans()->Add("backward", "1");
  folder.Keep();
  EXPECT_EQ(said_.str(), "");
}

TEST_F(PlanFileTest, OneThatIsTooLongIsNotRead) {
  std::ofstream(path_).close();
  std::filesystem::resize_file(path_, (std::uintmax_t{16} << 20) + 1);
  EXPECT_EQ(Open().plans()->Find("forward"), std::nullopt);
  EXPECT_THAT(said_.str(), HasSubstr("it is longer than 16 MiB"));
}

TEST(PlanPath, IsBesideTheCheckpointsUnlessItIsGiven) {
  Options options;
  options.results_dir = "results";
  options.mode = RunMode::kTrain;
  EXPECT_EQ(PlanPath(options), "results/plans.txt");
  options.model_dir = "model";
  EXPECT_EQ(PlanPath(options), "model/plans.txt");
  options.mode = RunMode::kTrainingBenchmark;
  EXPECT_EQ(PlanPath(options), "");
  options.plan_cache = "/scratch/plans";
  EXPECT_EQ(PlanPath(options), "/scratch/plans");
  options.plan_cache = "off";
  options.mode = RunMode::kTrain;
  EXPECT_EQ(PlanPath(options), "");
}

}  // namespace
}  // namespace trainer
