// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/watch/hang_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainer {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kHosts = {"n1", "n1", "n2", "n2"};

RankState At(int rank, bool waiting) { return {rank, Activity::kTraining, 17, waiting, 61}; }

TEST(HangReport, NamesTheRankThatDoesNotAnswer) {
  const std::vector<RankState> said = {At(0, true), At(1, true), At(3, true)};
  EXPECT_EQ(HangReport(said[0], said, kHosts),
            "no progress for 61 s in training, step 17: rank 2 on n2 does not answer: stopped, or "
            "the node is out of reach");
}

TEST(HangReport, NamesTheRankThatIsStillAtWork) {
  const std::vector<RankState> said = {At(0, true), At(1, false), At(2, true), At(3, true)};
  EXPECT_THAT(HangReport(said[0], said, kHosts), HasSubstr("rank 1 on n1 is still at work: "));
}

TEST(HangReport, SuspectsTheNetworkWhenAllWait) {
  const std::vector<RankState> said = {At(0, true), At(1, true), At(2, true), At(3, true)};
  EXPECT_THAT(HangReport(said[0], said, kHosts), HasSubstr("all 4 ranks wait for each other: "));
}

TEST(HangReport, AccusesNobodyWhereNothingWasFound) {
  EXPECT_THAT(HangReport(At(1, true), {}, kHosts), HasSubstr(": another rank has said why, or "));
}

TEST(HangReport, CutsLongLists) {
  const std::vector<RankState> said = {At(0, true)};
  EXPECT_THAT(HangReport(said[0], said, std::vector<std::string>(20, "n1")),
              HasSubstr("rank 8 on n1 and 11 more do not answer"));
}

TEST(HangReport, StatesSurviveTheFile) {
  RankState read;
  ASSERT_TRUE(FromText(ToText({3, Activity::kEvaluation, 40, true, 2.5, true, "/a file"}), read));
  EXPECT_TRUE(read.reading);
  EXPECT_EQ(read.file, "/a file");
  ASSERT_TRUE(FromText(ToText({3, Activity::kEvaluation, 40, true, 2.5}), read));
  EXPECT_FALSE(read.reading);
  EXPECT_EQ(read.file, "");
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.activity, Activity::kEvaluation);
  EXPECT_EQ(read.step, 40);
  EXPECT_TRUE(read.waiting);
  EXPECT_EQ(read.seconds, 2.5);
  for (const char* text : {"", "3", "3 9 40 1 2.5 0 ", "3 -1 40 1 2.5 0 ", "3 1 40 1 2.5", "x"}) {
    EXPECT_FALSE(FromText(text, read)) << text;
  }
}

RankState Reading(int rank, double seconds = 61) {
  return {rank, Activity::kTraining, 17, false, seconds, true, "/data/train-00003"};
}

TEST(InputWait, IsNoneWhereARankIsSilentOrAtOtherWork) {
  const std::vector<RankState> heard = {At(0, true), Reading(1), At(2, true), At(3, true)};
  EXPECT_TRUE(IsInputWait(heard, 4));
  EXPECT_FALSE(IsInputWait(heard, 5)) << "rank 4 says nothing";
  const std::vector<RankState> at_work = {At(0, true), Reading(1), At(2, false), At(3, true)};
  EXPECT_FALSE(IsInputWait(at_work, 4));
  const std::vector<RankState> all_wait = {At(0, true), At(1, true)};
  EXPECT_FALSE(IsInputWait(all_wait, 2));
}

TEST(InputWait, IsNoneOfAProcessThatWasStoppedMeanwhile) {
  RankState reader = Reading(1);
  RankState waiter = At(0, true);  // says where it is once
  waiter.unchanged_seconds = 100;
  reader.unchanged_seconds = 59.9;
  EXPECT_EQ(StillHeard(std::vector{waiter, reader}, 60).size(), 2U);
  reader.unchanged_seconds = 60;
  EXPECT_EQ(StillHeard(std::vector{waiter, reader}, 60).size(), 1U);
}

TEST(InputWait, IsSaidInOtherWordsEachTime) {
  EXPECT_NE(ToText(Reading(1, 0.101)), ToText(Reading(1, 0.102)));
}

TEST(InputWait, NamesRankHostTimeAndFile) {
  std::vector<RankState> said = {At(0, true), At(1, true), At(2, true), Reading(3)};
  EXPECT_EQ(InputWaitReport(said[0], said, kHosts),
            "rank 3 on n2 has waited 61 s for its data (reading /data/train-00003); the others "
            "wait for it");
  said[1] = Reading(1);
  said[1].file = "";
  EXPECT_EQ(InputWaitReport(said[0], said, kHosts),
            "rank 1 on n1, rank 3 on n2 have waited 61 s for their data (reading "
            "/data/train-00003); the others wait for them");
  const std::vector<RankState> alone = {Reading(0)};
  EXPECT_EQ(InputWaitReport(alone[0], alone, {"n1"}),
            "rank 0 on n1 has waited 61 s for its data (reading /data/train-00003)");
}

TEST(HangReport, NamesTheFileSystemAfterAllWhenDataNeverCome) {
  const std::vector<RankState> said = {At(0, true), At(1, true), At(2, true), Reading(3)};
  EXPECT_EQ(HangReport(said[0], said, kHosts),
            "no progress for 61 s in training, step 17: rank 3 on n2 has waited 61 s for its data "
            "(reading /data/train-00003): the file system hangs there");
}

TEST(StateInWords, SaysWhereItIsAndForHowLongNothingMoves) {
  EXPECT_EQ(DescribeState(At(0, true)),
            "in training, step 17, waiting for other ranks, no progress for 61 s");
  EXPECT_EQ(DescribeState(Reading(0, 1.9)), "in training, step 17, waiting for its data");
  EXPECT_EQ(DescribeState(Reading(0, 2)),
            "in training, step 17, waiting for its data, no progress for 2 s");
  EXPECT_EQ(DescribeState({}), "before the first step, at work of its own");
}

TEST(OddOne, IsWhoIsNotWhereMostAre) {
  const std::vector<RankState> said = {At(0, true), At(1, true), At(2, true), At(3, true)};
  EXPECT_EQ(DescribeOddOne(said, {"a < b", "a < b", "c", "a < b"}, kHosts),
            "; rank 2 on n2 is in c, most others in a < b");
  EXPECT_EQ(DescribeOddOne(said, {"a", "a", "a", "a"}, kHosts), "");
  EXPECT_EQ(DescribeOddOne(said, {"a", "a", "c", "c"}, kHosts), "") << "no majority";
  EXPECT_EQ(DescribeOddOne(said, {"", "", "", ""}, kHosts), "");
}

TEST(OddOne, IsFirstOfAllWhoIsAtWork) {
  const std::vector<RankState> said = {At(0, true), At(1, false)};
  EXPECT_EQ(DescribeOddOne(said, {"a", "b"}, {"n1", "n1"}), "; rank 1 on n1 is in b");
}

}  // namespace
}  // namespace trainer
