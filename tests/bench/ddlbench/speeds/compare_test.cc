// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/speeds/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bench/ddlbench/unreadable_folder.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class CompareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  static std::string Report(const std::string& name, const std::string& speed) {
    return "{\"name\": \"" + name + "\", \"train_item\": {\"avg\": " + speed + "}}";
  }

  int CodeOfReadTargets(const std::string& path) {
    try {
      ReadTargets(path, complaints_);
    } catch (const trainer::Error& error) {
      message_ = error.what();
      return error.exit_code();
    }
    return EX_OK;
  }

  fs::path folder_;
  std::string message_;
  std::vector<std::string> told_;
  Complaints complaints_{[this](const std::string& text) { told_.push_back(text); }};
};

TEST_F(CompareTest, ReadsMilasTable) {
  const Targets targets =
      ReadTargets(Write("v100.csv",
                        "bench,target,perf_target,sd_target\r\nconvnet,215.00,0.5,0.05\r\n\r\n"
                        "scaling,1.00,0.85,0.02\n"),
                  complaints_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_EQ(targets.at("convnet").items_per_second, 215);
  EXPECT_EQ(targets.at("convnet").least_share, 0.5);
  EXPECT_EQ(targets.at("scaling").largest_sd, 0.02);
}

TEST_F(CompareTest, ATableMayHaveOtherColumnsInAnotherOrder) {
  const Targets targets = ReadTargets(Write("t.csv", "unit,target,bench\nx,3,a"), complaints_);
  EXPECT_EQ(targets.at("a").items_per_second, 3);
  EXPECT_EQ(targets.at("a").least_share, std::nullopt);
  EXPECT_EQ(targets.at("a").largest_sd, std::nullopt);
}

TEST_F(CompareTest, ATableMayBeginWithAByteOrderMark) {
  const Targets targets = ReadTargets(Write("t.csv",
                                            "\xEF\xBB\xBF"
                                            "bench,target\r\na,3\r\n"),
                                      complaints_);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(targets.at("a").items_per_second, 3);
}

TEST_F(CompareTest, NamesRowsThatAreWrongAndKeepsTheRest) {
  const std::string path =
      Write("t.csv", "bench,target\na,1\nb,x\nc\nd,0\ne,-1\na,2\nf,nan\ng,7\n");
  const Targets targets = ReadTargets(path, complaints_);
  EXPECT_EQ(targets.size(), 2U);
  EXPECT_EQ(targets.at("a").items_per_second, 1);
  EXPECT_THAT(told_, ElementsAre(HasSubstr(path + ":3: target is 'x', which is no number"),
                                 HasSubstr(":4: 1 cells, but the header has 2"),
                                 HasSubstr(":5: target is 0"), HasSubstr(":6: target is '-1'"),
                                 HasSubstr(":7: a has a row already"), HasSubstr(":8: target")));
  EXPECT_EQ(complaints_.exit_code(), EX_DATAERR);
}

TEST_F(CompareTest, RefusesATableThatIsNone) {
  EXPECT_EQ(CodeOfReadTargets((folder_ / "none.csv").string()), EX_NOINPUT);
  EXPECT_EQ(CodeOfReadTargets(Write("empty.csv", "")), EX_DATAERR);
  EXPECT_EQ(CodeOfReadTargets(Write("t.csv", "name,target\na,1\n")), EX_DATAERR);
  EXPECT_THAT(message_, HasSubstr("t.csv:1: the first line must have columns bench and target"));
}

TEST_F(CompareTest, ReadsFilesAndFoldersByName) {
  Write("r/fast.convnet.R0.D0.20261123-025723-000123.json", Report("convnet", "200.0"));
  Write("r/deep/fast.convnet.R1.D0.20261123-025723-000124.json", Report("convnet", "210.5"));
  Write("r/results/x/log.json", "DLLL {}");
  const std::string other = Write("any name", Report("vae", "7500"));
  const auto results = ReadReports({(folder_ / "r").string(), other}, complaints_);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(results, UnorderedElementsAre(Pair("convnet", UnorderedElementsAre(200.0, 210.5)),
                                            Pair("vae", ElementsAre(7500.0))));
}

TEST_F(CompareTest, NamesReportsThatAreNoneAndKeepsTheRest) {
  const std::string half = Write("r/fast.a.R0.D0.1.json", Report("a", "1.0").substr(0, 20));
  Write("r/fast.b.R0.D0.1.json", Report("b", "2.0"));
  Write("r/fast.c.R0.D0.1.json", std::string(70'000, '['));
  Write("r/fast.d.R0.D0.1.json", "{\"name\": \"caf\xe9\", \"train_item\": {\"avg\": 1}}");
  Write("r/fast.e.R0.D0.1.json", "");
  fs::resize_file(folder_ / "r/fast.e.R0.D0.1.json", 20'000'000);
  fs::create_directories(folder_ / "empty");
  const auto results = ReadReports(
      {(folder_ / "r").string(), (folder_ / "empty").string(), (folder_ / "none").string()},
      complaints_);
  EXPECT_THAT(results, ElementsAre(Pair("b", ElementsAre(2.0))));
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr(half + ": it is no report of a benchmark of Mila's: it is "
                                           "no JSON; it is left out"),
                          HasSubstr("so long a line is no report's"),
                          HasSubstr("fast.d.R0.D0.1.json: it is no report"),
                          HasSubstr("more than 16 MiB are no report"),
                          HasSubstr("empty: there is no report such as"),
                          HasSubstr("none: cannot be read")));
}

TEST_F(CompareTest, NamesAFolderThatCannotBeReadAndKeepsTheRest) {
  Write("r/a/fast.a.R0.D0.1.json", Report("a", "1.0"));
  Write("r/b/fast.b.R0.D0.1.json", Report("b", "2.0"));
  Write("r/c/fast.c.R0.D0.1.json", Report("c", "3.0"));
  const UnreadableFolder unreadable(folder_ / "r/b");
  if (!unreadable.works()) GTEST_SKIP() << "every folder can be read here";
  EXPECT_THAT(ReadReports({(folder_ / "r").string()}, complaints_),
              ElementsAre(Pair("a", ElementsAre(1.0)), Pair("c", ElementsAre(3.0))));
  EXPECT_THAT(told_, ElementsAre(HasSubstr((folder_ / "r/b").string() + ": cannot be read")));
  EXPECT_EQ(complaints_.exit_code(), EX_NOINPUT);
}

TEST(FormatComparison, HasMeanSpreadDifferenceAndWhetherItPasses) {
  const Targets targets = {{"convnet", {215, 0.5, 0.05}},
                           {"slow", {100, 0.85, 0.05}},
                           {"wild", {100, 0.5, 0.05}},
                           {"plain", {100, std::nullopt, std::nullopt}}};
  EXPECT_EQ(FormatComparison({{"convnet", {200, 204, 208}},
                              {"new", {1}},
                              {"plain", {150}},
                              {"slow", {84}},
                              {"wild", {100, 120}}},
                             targets),
            "| bench                | target    | result    | sd       | sd%    | diff     | runs "
            "| pass |\n"
            "| -------------------- | --------- | --------- | -------- | ------ | -------- | ---- "
            "| ---- |\n"
            "| convnet              | 215.00    | 204.00    | 4.00     | 1.96   | -5.12 %  | 3    "
            "| yes  |\n"
            "| new                  | -         | 1.00      | -        | -      | -        | 1    "
            "| -    |\n"
            "| plain                | 100.00    | 150.00    | -        | -      | +50.00 % | 1    "
            "| -    |\n"
            "| slow                 | 100.00    | 84.00     | -        | -      | -16.00 % | 1    "
            "| no   |\n"
            "| wild                 | 100.00    | 110.00    | 14.14    | 12.86  | +10.00 % | 2    "
            "| no   |\n");
}

TEST_F(CompareTest, NotesWhatHasNoTarget) {
  CompareOptions options;
  options.targets = Write("t.csv", "bench,target\na,1\n");
  options.reports = {Write("b", Report("b", "2"))};
  EXPECT_THAT(Compare(options, complaints_), HasSubstr("| b  "));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("note: " + options.targets + " has no target of b")));
  EXPECT_EQ(complaints_.exit_code(), EX_OK);
}

}  // namespace
}  // namespace bench
