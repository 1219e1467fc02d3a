// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/report/readers/read_run.h"
#include "tests/bench/report/report_test_folder.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunFilesTest : public ReportFolderTest {
 protected:
  std::vector<std::string> Found(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back((folder_ / name).string());
    std::vector<std::string> found;
    files_ = FindRuns(paths, complaints_);
    for (const RunFiles& files : files_) {
      found.push_back(std::filesystem::path(files.path).lexically_relative(folder_).string());
    }
    return found;
  }
  std::vector<RunFiles> files_;
};

TEST_F(RunFilesTest, AreFoundHoweverDeepByName) {
  Write("sweep/1n2g/results/b/log.json", "");
  Write("sweep/1n1g/results/a/log.json", "");
  Write("sweep/1n1g/a.log", "");
  Write("sweep/old/training.json", "");
  EXPECT_THAT(Found({"sweep"}),
              ElementsAre("sweep/1n1g/results/a", "sweep/1n2g/results/b", "sweep/old"));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(RunFilesTest, AreAllThatARunLeft) {
  Write("run/log.json", "");
  Write("run/training.json", "");
  Write("run/trace.json", "");
  Write("run/metrics/ddltraind-rank-00000.prom", "");
  Write("run/ddltraind-rank-00001.prom", "");
  Write("run/gpu.csv", "");
  Write("run/other/log.json", "");
  Write("run/other/gpu.csv", "");
  EXPECT_THAT(Found({"run/"}), ElementsAre("run"));
  EXPECT_EQ(files_[0].log.filename(), "log.json");
  EXPECT_EQ(files_[0].training_json.filename(), "training.json");
  EXPECT_EQ(files_[0].trace.filename(), "trace.json");
  EXPECT_EQ(files_[0].prometheus.size(), 2U);
  EXPECT_EQ(files_[0].gpu_samples.size(), 1U);
}

TEST_F(RunFilesTest, MayBeNamedByTheirLogs) {
  Write("run/log.json", "");
  Write("slurm-1.out", "");
  EXPECT_THAT(Found({"run/log.json", "slurm-1.out"}), ElementsAre("run", "slurm-1.out"));
}

TEST_F(RunFilesTest, AreNamedWhereThereAreNone) {
  std::filesystem::create_directories(folder_ / "empty/in/it");
  Write("run/log.json", "");
  EXPECT_THAT(Found({"empty", "nowhere", "run", "run/../run"}), ElementsAre("run"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("empty: there is no run in it"),
                                 HasSubstr("nowhere: there is no such folder"),
                                 HasSubstr("is named twice; it counts once")));
  EXPECT_EQ(complaints_.exit_code(), EX_DATAERR);
}

TEST_F(RunFilesTest, ARunIsWhatCanBeReadOfIt) {
  Write("run/log.json", LoggedOptions(R"("batch_size": 8)"));
  Write("run/trace.json", "{\"cat\": \"step\"");
  Write("run/ddltraind-rank-00001.prom", "ddltraind_step_seconds{rank=\"1\",host=\"a\"} 0.25\n");
  Found({"run"});
  const auto run = ReadRun(files_[0], 0, complaints_);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->times_from, "files for Prometheus");
  EXPECT_EQ(run->ranks, 1);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("trace.json:1: "), HasSubstr("it has no step; "),
                                 HasSubstr("run: it has no step, so there is no speed")));
}

TEST_F(RunFilesTest, ARunOfNothingIsNone) {
  Write("run/log.json", "no words of ours\n");
  Found({"run"});
  EXPECT_FALSE(ReadRun(files_[0], 0, complaints_));
  std::filesystem::remove(folder_ / "run/log.json");
  EXPECT_FALSE(ReadRun(files_[0], 0, complaints_));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("no line of DLLogger's"), HasSubstr("cannot be read")));
}

}  // namespace
}  // namespace bench
