// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/training_json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/report/report_test_folder.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrainingJsonTest : public ReportFolderTest {
 protected:
  RunMeasures Read(const std::string& text) {
    RunRecord run;
    ReadTrainingJson(Write("training.json", text), run, complaints_);
    return run.measures;
  }
};

TEST_F(TrainingJsonTest, HasTheIterationsOfAllEpochs) {
  const RunMeasures measures = Read(
      R"({"run": {}, "epoch": {}, "iter": {"x": [[0, 1], [0], []], "iteration": [[0, 1], [2], []],)"
      R"("imgs_per_sec": [[10.0, 20.0], [40.0], []], "cross_entropy": [[3.0, NaN], [2.0], []]}})");
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(measures.last_step, 2);
  EXPECT_EQ(measures.seconds_per_image_statistics.Sample().count, 3U);
  EXPECT_DOUBLE_EQ(measures.seconds_per_image_statistics.Sample().mean, (0.1 + 0.05 + 0.025) / 3);
  EXPECT_EQ(measures.strange_losses, 1);
  EXPECT_EQ(measures.last_cross_entropy, 2);
}

TEST_F(TrainingJsonTest, NamesWhatIsNone) {
  EXPECT_EQ(Read("{\"iter\": ").last_step, -1);
  EXPECT_EQ(Read("[]").last_step, -1);
  EXPECT_EQ(Read("{\"iter\": {\"iteration\": [[1]]}}").last_step, -1);
  Write("large/training.json", "");
  std::filesystem::resize_file(folder_ / "large/training.json", 650000000ULL);
  RunRecord run;
  ReadTrainingJson(folder_ / "large/training.json", run, complaints_);
  ReadTrainingJson(folder_ / "large", run, complaints_);
  EXPECT_THAT(
      told_,
      ElementsAre(HasSubstr("it is no training.json"), HasSubstr("it is no training.json"),
                  HasSubstr("its rows are of different lengths"),
                  HasSubstr("more than 64 MiB are left out"), HasSubstr("it is no regular file")));
}

}  // namespace
}  // namespace bench
