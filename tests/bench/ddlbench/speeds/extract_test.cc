// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/speeds/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/ddlbench/unreadable_folder.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;

class ExtractTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A log of `lines` steps that count, all of this speed.
  static std::string Log(int lines, const std::string& speed, int ranks = 1, int batch = 4) {
    std::string text =
        ":::NVLOGv0.2.3 resnet 1.5 (runner.py:373) Num GPUs: " + std::to_string(ranks) +
        "\n:::NVLOGv0.2.3 resnet 1.5 (runner.py:374) Per-GPU Batch Size: " + std::to_string(batch) +
        "\n";
    for (int i = 0; i < lines; ++i) {
      text += "DLL 2020-07-01 10:00:0" + std::to_string(i % 10) + ".000000 - (0, " +
              std::to_string(i) + ") imgs_per_sec : " + speed + "  cross_entropy : 7.0 \n";
    }
    return text;
  }

  fs::path Write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string RunExtract() {
    options_.folders = {folder_.string()};
    options_.train_batches = 25;
    return Extract(options_, complaints_);
  }

  std::string Json(const fs::path& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  fs::path folder_;
  ExtractOptions options_;
  std::vector<std::string> told_;
  Complaints complaints_{[this](const std::string& text) { told_.push_back(text); }};
};

TEST_F(ExtractTest, MakesTablesAndJsonOfAFolderOfLogFolders) {
  Write("bz4_fp32/1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("bz4_fp32/1n1g/r50_b4_fp32_2.log", Log(5, "20.0"));
  Write("bz4_fp32/1n2g/r50_b4_fp32_1.log", Log(5, "27.0", 2));
  Write("bz4_fp32/1n1g/results/r50_b4_fp32_1/log.json", "");
  Write("bz4_fp16/1n1g/r50_b4_fp16_1.log", Log(5, "3.0"));
  Write("slurm-1_1.out", "");
  const std::string text = RunExtract();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(complaints_.exit_code(), EX_OK);
  EXPECT_THAT(text, HasSubstr("## bz4_fp32: r50\n"));
  EXPECT_THAT(text,
              HasSubstr("| 1        | 2       | 27.00     | 1.80    | 27.00     | 1    | 4 "));
  EXPECT_THAT(text, HasSubstr("## bz4_fp16: r50\n"));
  EXPECT_EQ(Json("result/bz4_fp32_result.json"),
            "{\"r50\": {\"1n1g\": {\"average_speed\": 15.0, \"batch_size_per_device\": 4, "
            "\"median_speed\": 15.0, \"speedup\": 1.0}, \"1n2g\": {\"average_speed\": 27.0, "
            "\"batch_size_per_device\": 4, \"median_speed\": 27.0, \"speedup\": 1.8}}}");
  EXPECT_THAT(Json("result/bz4_fp16_result.json"), HasSubstr("3.0"));
}

TEST_F(ExtractTest, ALogFolderItselfMayBeGiven) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  options_.output_dir = (folder_ / "there").string();
  EXPECT_THAT(RunExtract(), HasSubstr("10.00"));
  EXPECT_THAT(Json("there/ALogFolderItselfMayBeGiven_result.json"), HasSubstr("10.0"));
  EXPECT_FALSE(fs::exists(folder_ / "result"));
}

TEST_F(ExtractTest, ByTimeGoesByTheTimesOfTheLines) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  options_.rule = "time";
  EXPECT_THAT(RunExtract(), HasSubstr("| 4.00      | 1.00"));  // 4 images in a second
}

TEST_F(ExtractTest, NamesAnEmptyFolder) {
  EXPECT_THAT(RunExtract(), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr(folder_.string() + ": there is no log")));
  EXPECT_EQ(complaints_.exit_code(), EX_DATAERR);
}

TEST_F(ExtractTest, NamesAFolderThatIsNotThere) {
  fs::remove_all(folder_);
  EXPECT_THAT(RunExtract(), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr(folder_.string() + ": cannot be read")));
  EXPECT_EQ(complaints_.exit_code(), EX_NOINPUT);
}

TEST_F(ExtractTest, NamesACaseWithoutLogs) {
  fs::create_directories(folder_ / "1n1g");
  EXPECT_THAT(RunExtract(), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr(folder_.string() + ": there is no log")));
}

TEST_F(ExtractTest, LeavesHalfALogOutAndShowsTheRest) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  const std::string whole = Log(5, "99.0");
  Write("1n1g/r50_b4_fp32_2.log", whole.substr(0, whole.size() - 1));
  const fs::path half = Write("1n1g/r50_b4_fp32_3.log", Log(2, "99.0"));
  Write("1n1g/r50_b4_fp32_4.log", "");
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("r50_b4_fp32_2.log:7: the log ends after 4 lines"),
                                 AllOf(HasSubstr(half.string() + ":4: the log ends after 2 lines"),
                                       HasSubstr("of 5; it is left out")),
                                 HasSubstr("r50_b4_fp32_4.log: the log ends after 0 lines")));
  EXPECT_EQ(complaints_.exit_code(), EX_DATAERR);
}

TEST_F(ExtractTest, MoreLinesThanNeededDoNotCount) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0") + Log(5, "1000.0") + " imgs_per_sec : x \n");
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(ExtractTest, NamesTheLineThatHasNoNumber) {
  Write("1n1g/r50_b4_fp32_1.log", Log(2, "10.0") + " imgs_per_sec : 1e+16 \n" + Log(5, "10.0"));
  EXPECT_THAT(RunExtract(), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr("r50_b4_fp32_1.log:5: imgs_per_sec has no number"),
                                 HasSubstr("there is no log")));
}

TEST_F(ExtractTest, BytesThatAreNoUtf8AreNamedAndDoNoHarm) {
  Write("1n1g/r50_b4_fp32_1.log", "caf\xe9\n\xff\n" + Log(5, "10.0"));
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(told_,
              ElementsAre(AllOf(HasSubstr("note: "), HasSubstr("r50_b4_fp32_1.log:1: bytes"))));
  EXPECT_EQ(complaints_.exit_code(), EX_OK);
}

TEST_F(ExtractTest, RunsOfAnotherShapeThanTheirNamesAreLeftOut) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("1n1g/r50_b4_fp32_2.log", Log(5, "99.0", 2));
  Write("1n1g/r50_b4_fp32_3.log", Log(5, "99.0", 1, 8));
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(
      told_,
      ElementsAre(HasSubstr("r50_b4_fp32_2.log:1: Num GPUs is 2, but the folder's name says 1"),
                  HasSubstr("r50_b4_fp32_3.log:2: Per-GPU Batch Size is 8, but the file's "
                            "name says 4")));
  EXPECT_EQ(complaints_.exit_code(), EX_DATAERR);
}

TEST_F(ExtractTest, RunsThatDoNotBelongTogetherAreLeftOut) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("1n1g/r50_b4_fp16_1.log", Log(5, "20.0"));
  Write("1n1g/r50_b8_fp32_2.log", Log(5, "99.0", 1, 8));
  Write("1n1g/notes.log", "");
  EXPECT_THAT(RunExtract(), HasSubstr("| 20.00     | 1    |"));
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr("notes.log: its name is none such as"),
                          HasSubstr("r50_b4_fp32_1.log: there is another log of r50, repeat 1"),
                          HasSubstr("r50_b8_fp32_2.log: its batch is 8, that of the logs "
                                    "before it 4")));
}

TEST_F(ExtractTest, WithoutTheCase1n1gSpeedupsAreMissing) {
  Write("1n2g/r50_b4_fp32_1.log", Log(5, "10.0", 2));
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | -       |"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("r50 has no log of 1n1g that can be used")));
  EXPECT_EQ(complaints_.exit_code(), EX_OK);
}

TEST_F(ExtractTest, TwoFoldersOfOneNameNeedTwoPlaces) {
  Write("a/logs/1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("b/logs/1n1g/r50_b4_fp32_1.log", Log(5, "20.0"));
  options_.folders = {(folder_ / "a").string(), (folder_ / "b").string()};
  options_.output_dir = (folder_ / "out").string();
  options_.train_batches = 25;
  EXPECT_THAT(Extract(options_, complaints_), AllOf(HasSubstr("10.00"), HasSubstr("20.00")));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("give each its own --output_dir")));
  EXPECT_THAT(Json("out/logs_result.json"), HasSubstr("10.0"));
}

TEST_F(ExtractTest, TablesAreShownAlsoWhereTheirFileCannotBeWritten) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("result", "a file in its place");
  EXPECT_THAT(RunExtract(), AllOf(HasSubstr("| 10.00     | 1    |"), Not(HasSubstr("Saving"))));
  EXPECT_THAT(
      told_, ElementsAre(AllOf(HasSubstr("cannot make the folder " + (folder_ / "result").string()),
                               HasSubstr("; give ddlbench extract --output_dir DIR"))));
  EXPECT_EQ(complaints_.exit_code(), EX_OSERR);
}

TEST_F(ExtractTest, NamesALogFolderThatCannotBeReadAndShowsTheRest) {
  options_.output_dir = (folder_ / "result").string();
  fs::create_directories(folder_ / "result");
  fs::permissions(folder_ / "result", fs::perms::all);
  Write("a/1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("b/1n1g/r50_b4_fp32_1.log", Log(5, "20.0"));
  const UnreadableFolder unreadable(folder_ / "a");
  if (!unreadable.works()) GTEST_SKIP() << "every folder can be read here";
  EXPECT_THAT(RunExtract(), HasSubstr("| 20.00     | 1    |"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr((folder_ / "a").string() + ": cannot be read")));
  EXPECT_EQ(complaints_.exit_code(), EX_NOINPUT);
}

TEST_F(ExtractTest, NamesACaseThatCannotBeReadAndShowsTheRest) {
  options_.output_dir = (folder_ / "result").string();
  fs::create_directories(folder_ / "result");
  fs::permissions(folder_ / "result", fs::perms::all);
  Write("a/1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("a/1n2g/r50_b4_fp32_1.log", Log(5, "20.0", 2));
  const UnreadableFolder unreadable(folder_ / "a/1n2g");
  if (!unreadable.works()) GTEST_SKIP() << "every folder can be read here";
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr((folder_ / "a/1n2g").string() + ": cannot be read")));
  EXPECT_EQ(complaints_.exit_code(), EX_NOINPUT);
}

TEST(WindowOf, RefusesWindowsWithoutSteps) {
  const auto refuses = [](const std::string& rule, int warmup, int steps) {
    ExtractOptions options;
    options.rule = rule;
    options.warmup_batches = warmup;
    options.train_batches = steps;
    try {
      WindowOf(options);
    } catch (const trainer::Error& error) {
      return error.exit_code() == EX_USAGE;
    }
    return false;
  };
  EXPECT_TRUE(refuses("rate", 19, 120));
  EXPECT_TRUE(refuses("rate", 20, 20));
  EXPECT_FALSE(refuses("rate", 20, 21));
  EXPECT_TRUE(refuses("time", 20, 21));
  EXPECT_FALSE(refuses("time", 20, 22));
}

}  // namespace
}  // namespace bench
