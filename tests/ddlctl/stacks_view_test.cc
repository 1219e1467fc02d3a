// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/stacks_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ddlctl {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kAllReduce[] =
    "  #1 trainer::MpiCommunicator::AllReduceSum(std::span<double>) in /bin/d(+0x2)\n"
    "  #2 trainer::TrainingStep::Run() in /bin/d(+0x3)\n"
    "  #3 main in /bin/d(+0x4)\n";
constexpr char kRead[] =
    "  #0 __read in /lib/c(+0x9)\n"
    "  #1 trainer::(anonymous namespace)::RecordSource::Read() in /bin/d(+0x5)\n"
    "  #2 trainer::TrainingStep::Run() in /bin/d(+0x3)\n"
    "  #3 main in /bin/d(+0x4)\n";

// A rank that has answered so: its main thread, and another.
RankAnswer Answer(const std::string& host, const std::string& doing, const std::string& frames) {
  return {
      .host = host,
      .pid = 7,
      .stacks = trainer::RankStacks{.headline = "rank 9 on x, process 7: " + doing,
                                    .order = 1,
                                    .stacks = "thread 7 (ddltraind)\n" + frames +
                                              "\nthread 8 (other)\n  #0 poll in /lib/c(+0x8)\n"}};
}

RankAnswer Waiting(const std::string& host, const std::string& innermost) {
  return Answer(host, "in training, step 17, waiting for other ranks",
                "  #0 " + innermost + " in /lib/mpi(+0x1)\n" + kAllReduce);
}

RankAnswer Reading(const std::string& host) {
  return Answer(host, "in training, step 17, waiting for its data, no progress for 12 s", kRead);
}

TEST(GroupedStacks, NameTheSilentThenTheOddOneThenTheOthers) {
  const std::vector<RankAnswer> ranks = {Waiting("n1", "poll"),
                                         Waiting("n1", "progress"),
                                         {.host = "n2", .pid = 12, .stacks = std::nullopt},
                                         Reading("n2"),
                                         Waiting("n3", "poll")};
  EXPECT_EQ(GroupedStacksText(ranks, 11),
            "rank 2 on n2 has not answered within 11 s: stopped, or its node or file system is out "
            "of reach\n"
            "\n"
            "rank 3 on n2 (1 of 5): in training, step 17, waiting for its data, no progress for 12 "
            "s\n"
            "  #0 __read in c(+0x9)\n"
            "  #1 trainer::RecordSource::Read in d(+0x5)\n"
            "  #2 trainer::TrainingStep::Run in d(+0x3)\n"
            "  #3 main in d(+0x4)\n"
            "\n"
            "ranks 0-1 on n1, 4 on n3 (3 of 5): in training, step 17, waiting for other ranks\n"
            "  #0 poll in mpi(+0x1)\n"
            "  #1 trainer::MpiCommunicator::AllReduceSum in d(+0x2)\n"
            "  #2 trainer::TrainingStep::Run in d(+0x3)\n"
            "  #3 main in d(+0x4)\n");
}

TEST(GroupedStacks, SayWhatLinuxSaysOfASilentOne) {
  EXPECT_EQ(GroupedStacksText({{.host = "n2", .pid = 12, .stacks = {}, .state = "stopped"}}, 11),
            "rank 0 on n2 has not answered within 11 s: process 12 is stopped\n");
  EXPECT_EQ(GroupedStacksText({{.host = "n2", .pid = 12, .stacks = {}, .state = "is gone"}}, 11),
            "rank 0 on n2 has not answered within 11 s: process 12 is gone\n");
}

TEST(GroupedStacks, OfEqualGroupsBeginWithWhoDoesNotWait) {
  const std::string text = GroupedStacksText({Waiting("n1", "poll"), Reading("n2")}, 11);
  EXPECT_THAT(text, StartsWith("rank 1 on n2 (1 of 2): "));
  EXPECT_THAT(text, HasSubstr("\n\nrank 0 on n1 (1 of 2): "));
}

TEST(GroupedStacks, OfOneRankNeedNoCount) {
  EXPECT_THAT(GroupedStacksText({Reading("n2")}, 11), StartsWith("rank 0 on n2: in training, "));
}

TEST(GroupedStacks, TellApartWhatHasNoFramesOrNoNames) {
  const std::string text = GroupedStacksText(
      {Answer("n1", "x", "  cannot be asked: runs\n"),
       Answer("n1", "x", "  #0 ? in /bin/d(+0x1)\n"), Answer("n1", "x", "  #0 ? in /bin/d(+0x2)\n"),
       Answer("n1", "x", "  #0 ? in /bin/d(+0x2)\n"), Answer("n1", "x", "")},
      11);
  EXPECT_THAT(text, HasSubstr("ranks 2-3 on n1 (2 of 5): x\n  #0 ? in d(+0x2)\n"));
  EXPECT_THAT(text, HasSubstr("rank 1 on n1 (1 of 5): x\n  #0 ? in d(+0x1)\n"));
  EXPECT_THAT(text, HasSubstr("rank 0 on n1 (1 of 5): x\n  cannot be asked: runs\n"));
  EXPECT_THAT(text, HasSubstr("rank 4 on n1 (1 of 5): x\n\n"));
}

TEST(GroupedStacks, TakeCodeThatWasMadeAtRunTimeForTheSameWhereverItLies) {
  EXPECT_THAT(GroupedStacksText({Answer("n1", "x", "  #0 ? in (0x7f01)\n"),
                                 Answer("n1", "x", "  #0 ? in (0x7f02)\n")},
                                11),
              StartsWith("ranks 0-1 on n1 (2 of 2): x\n  #0 ? in (0x7f01)\n"));
}

TEST(GroupedStacks, CutLongListsOfHosts) {
  std::vector<RankAnswer> ranks;
  for (int i = 0; i < 10; ++i) ranks.push_back(Waiting("n" + std::to_string(i), "poll"));
  EXPECT_THAT(
      GroupedStacksText(ranks, 11),
      StartsWith("ranks 0 on n0, 1 on n1, 2 on n2, 3 on n3, 4 on n4, 5 on n5, 6 on n6, 7 on "
                 "n7 and those of 2 hosts more (10 of 10): "));
}

TEST(GroupedStacks, MoveNoCursor) {
  EXPECT_THAT(GroupedStacksText({Answer("n\x1b", "\x1b[2J", "  #0 \x1b[2J in /x(+0x1)\n")}, 11),
              Not(HasSubstr("\x1b")));
  EXPECT_THAT(AllStacksText({Answer("n\x1b", "\x1b[2J", "  #0 \x1b[2J in /x(+0x1)\n")}, 11),
              Not(HasSubstr("\x1b")));
}

TEST(AllStacks, AreAllThreadsOfAllRanks) {
  EXPECT_EQ(
      AllStacksText({Reading("n1"), {.host = "n2", .pid = 3, .stacks = std::nullopt}}, 11),
      "rank 1 on n2 has not answered within 11 s: stopped, or its node or file system is out "
      "of reach\n"
      "\n"
      "rank 9 on x, process 7: in training, step 17, waiting for its data, no progress for 12 "
      "s\n"
      "thread 7 (ddltraind)\n" +
          std::string(kRead) + "\nthread 8 (other)\n  #0 poll in /lib/c(+0x8)\n");
}

}  // namespace
}  // namespace ddlctl
