// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/data_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kWayOut[] = "; if a part of the set is meant, say so: ddldata manifest --part d";

std::vector<std::string> Missing(const std::vector<std::string>& names, bool may_be_part = false) {
  return FindMissingShards("d", "train-", names, may_be_part);
}

TEST(MissingShards, NoneOfACompleteSet) {
  EXPECT_THAT(Missing({"train-00000-of-00002", "train-00001-of-00002"}), IsEmpty());
  EXPECT_THAT(Missing({"train-0-of-1"}), IsEmpty());
  EXPECT_THAT(Missing({}), IsEmpty());
}

TEST(MissingShards, NoneOfNamesWithoutNumbers) {
  EXPECT_THAT(Missing({"train-a", "train-b", "train-0", "train-0-of-", "train--of-1"}), IsEmpty());
}

TEST(MissingShards, NamesTheFirstThatIsMissing) {
  EXPECT_THAT(Missing({"train-00000-of-00004"}),
              ElementsAre(std::string("d has 1 of the 4 files train-*-of-00004: "
                                      "train-00001-of-00004 is missing, and others") +
                          kWayOut));
  EXPECT_THAT(Missing({"train-00000-of-00003", "train-00001-of-00003"}),
              ElementsAre(std::string("d has 2 of the 3 files train-*-of-00003: "
                                      "train-00002-of-00003 is missing") +
                          kWayOut));
  EXPECT_THAT(Missing({"train-1-of-2"}),
              ElementsAre(std::string("d has 1 of the 2 files train-*-of-2: train-0-of-2 is "
                                      "missing") +
                          kWayOut));
}

TEST(MissingShards, APartMayLackFilesAndNothingElse) {
  EXPECT_THAT(Missing({"train-00000-of-00004"}, true), IsEmpty());
  EXPECT_THAT(Missing({"train-00000-of-00004", "train-00001-of-00002"}, true), SizeIs(1));
  EXPECT_THAT(Missing({"train-00000-of-00004", "train-00004-of-00004"}, true), SizeIs(1));
}

TEST(MissingShards, RefusesTwoSetsInOneFolder) {
  EXPECT_THAT(Missing({"train-00000-of-00001", "train-00000-of-00002", "train-00001-of-00002"}),
              ElementsAre("d has files of two sets, train-00000-of-00001 and "
                          "train-00000-of-00002: leave those of one"));
}

TEST(MissingShards, RefusesNumbersThatCannotBe) {
  EXPECT_THAT(Missing({"train-00000-of-00001", "train-00001-of-00001"}),
              ElementsAre("d/train-00001-of-00001 cannot be: numbers begin at 0 and end before 1"));
  EXPECT_THAT(Missing({"train-0-of-1", "train-00-of-1"}),
              ElementsAre("d has one file under two names, train-0-of-1 and train-00-of-1"));
}

TEST(MissingShards, RefusesANameWithoutANumberAmongOthers) {
  EXPECT_THAT(Missing({"train-00000-of-00001", "train-00000-of-00001~"}),
              ElementsAre(StartsWith("d/train-00000-of-00001~ is not numbered as "
                                     "train-00000-of-00001 is")));
}

class DataFilesTest : public ::testing::Test {
 protected:
  DataFilesTest() {
    WriteRecords(dir_ / "train-00000-of-00002", {"a"});
    WriteRecords(dir_ / "elsewhere", {"b"});
  }
  std::string Refusal() {
    return DataErrorOf([&] { FindDataFiles(dir_.path(), Split::kTrain); });
  }
  TempDir dir_;
  const std::string second_ = dir_ / "train-00001-of-00002";
};

TEST_F(DataFilesTest, TakesLinksToFiles) {
  std::filesystem::create_symlink("elsewhere", second_);
  EXPECT_THAT(FindDataFiles(dir_.path(), Split::kTrain),
              ElementsAre(dir_ / "train-00000-of-00002", second_));
}

TEST_F(DataFilesTest, RefusesALinkToNothing) {
  std::filesystem::create_symlink("nowhere", second_);
  EXPECT_EQ(Refusal(), second_ +
                           " is a link to nowhere, which is not there: mend it, or take it out of "
                           "the folder");
}

TEST_F(DataFilesTest, RefusesFoldersAndPipes) {
  std::filesystem::create_directory(second_);
  EXPECT_THAT(Refusal(), StartsWith(second_ + " is a folder: "));
  std::filesystem::remove(second_);
  ASSERT_EQ(::mkfifo(second_.c_str(), 0600), 0);
  EXPECT_THAT(Refusal(), StartsWith(second_ + " is a named pipe: "));
}

TEST_F(DataFilesTest, RefusesAnIncompleteSet) {
  EXPECT_THAT(Refusal(), HasSubstr("train-00001-of-00002 is missing"));
}

TEST_F(DataFilesTest, LeavesOtherSplitsAlone) {
  EXPECT_THAT(ListDataFiles(dir_.path(), Split::kValidation, false).problems, IsEmpty());
}

}  // namespace
}  // namespace trainer
