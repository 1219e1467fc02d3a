// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/recorded_collectives.h"

#include "tests/launcher/diagnose/hanging_job.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

RecordedCollective One(long long number, std::string name = "all_reduce",
                       std::string sizes = "[[3]]", std::string state = "started") {
  return {number, std::move(name), std::move(state), std::move(sizes), "Float", ""};
}
RecordedGroup Default(std::vector<RecordedCollective> collectives) {
  return {"0", "default_pg", std::move(collectives)};
}
RecordedGroup Group(std::string name, std::vector<RecordedCollective> collectives) {
  return {std::move(name), "undefined", std::move(collectives)};
}

using Records = std::vector<std::vector<RecordedGroup>>;  // by each rank
HangingJob JobOfRecords(const Records& records) {
  HangingJob job = JobOf(std::vector<Tree>(records.size(), {Reduces()}));
  for (NodeFacts& node : job.nodes) {
    for (RankFacts& rank : node.ranks) rank.recorded = records[static_cast<std::size_t>(rank.rank)];
  }
  return job;
}

struct RecordsCase {
  const char* name;
  Records records;
  std::map<int, std::string> otherwise;
  const char* common;
};

TEST(CompareRecords, NamesTheRankThatHasCalledOtherCollectives) {
  const std::vector<RecordedGroup> at12 = {Default({One(11), One(12)})};
  const std::vector<RecordedGroup> at11 = {Default({One(10), One(11)})};
  const RecordsCase cases[] = {
      {"behind",
       {at12, at12, at11, at12},
       {{2,
         "has not started all_reduce number 12 of process group 0 (default_pg), which the "
         "others have"}},
       ""},
      {"far behind",
       {at12, {Default({One(8), One(9)})}, at12},
       {{1,
         "has not started collective number 10 of process group 0 (default_pg), 3 behind the "
         "others"}},
       ""},
      {"two behind, of which the next is known",
       {at12, {Default({One(10)})}, at12},
       {{1,
         "has not started all_reduce number 11 of process group 0 (default_pg), 2 behind the "
         "others"}},
       ""},
      {"ahead",
       {at11, at12, at11},
       {{1,
         "has started all_reduce number 12 of process group 0 (default_pg), which the others "
         "have not"}},
       ""},
      {"as many on both sides: who is behind",
       {at12, at11},
       {{1,
         "has not started all_reduce number 12 of process group 0 (default_pg), which the "
         "others have"}},
       ""},
      {"another collective, and others have gone on",
       {at12, at12, {Default({One(11, "broadcast")})}},
       {{2, "has broadcast as number 11 of process group 0 (default_pg) (others all_reduce)"}},
       ""},
      {"another size",
       {at12, {Default({One(11), One(12, "all_reduce", "[[4]]")})}},
       {{1,
         "has all_reduce of [[4]] Float as number 12 of process group 0 (default_pg) (others "
         "all_reduce of [[3]] Float)"}},
       ""},
      {"most have another one than the first rank",
       {{Default({One(12, "barrier")})}, at12, at12},
       {{0, "has barrier as number 12 of process group 0 (default_pg) (others all_reduce)"}},
       ""},
      {"another size that all have done",
       {{Default({One(11, "all_reduce", "[[4]]", "completed"), One(12)})},
        {Default({One(11, "all_reduce", "[[3]]", "completed"), One(12)})}},
       {},
       "all_reduce number 12 of process group 0 (default_pg)"},
      {"sizes of its own",
       {{Default({One(3, "all_to_all", "[[4]]")})}, {Default({One(3, "all_to_all", "[[5]]")})}},
       {},
       "all_to_all number 3 of process group 0 (default_pg)"},
      {"gathered sizes of its own",
       {{Default({One(3, "gather", "[[4]]")})}, {Default({One(3, "gather", "[[5]]")})}},
       {},
       "gather number 3 of process group 0 (default_pg)"},
      {"scattered sizes of its own",
       {{Default({One(3, "scatter", "[[4]]")})}, {Default({One(3, "scatter", "[[5]]")})}},
       {},
       "scatter number 3 of process group 0 (default_pg)"},
      {"all alike", {at12, at12, at12}, {}, "all_reduce number 12 of process group 0 (default_pg)"},
      {"over", {{Default({One(12, "all_reduce", "[[3]]", "completed")})}, at12}, {}, ""},
      {"of one rank nothing is known", {at12, at12, {}}, {}, ""},
      {"each in a group of its own", {{Group("1", {One(5)})}, {Group("2", {One(4)})}}, {}, ""},
      // Rank 0 has not come to the next of group 2 since rank 1 keeps it waiting in group 1.
      {"who waits in another group is no cause",
       {{Group("1", {One(5)}), Group("2", {One(7)})},
        {Group("1", {One(4)})},
        {Group("2", {One(8)})}},
       {{1, "has not started all_reduce number 5 of process group 1, which the others have"}},
       ""},
      {"each waits for the other",
       {{Group("1", {One(5)}), Group("2", {One(7)})}, {Group("1", {One(4)}), Group("2", {One(8)})}},
       {{0, "has not started all_reduce number 8 of process group 2, which the others have"},
        {1, "has not started all_reduce number 5 of process group 1, which the others have"}},
       ""},
  };
  for (const RecordsCase& test : cases) {
    const RecordedVerdict verdict = CompareRecords(JobOfRecords(test.records).nodes);
    EXPECT_EQ(verdict.otherwise, test.otherwise) << test.name;
    EXPECT_EQ(verdict.common, test.common) << test.name;
  }
}

TEST(CompareRecords, IsInTheLineWithPerhaps) {
  const std::vector<RecordedGroup> at12 = {Default({One(12)})};
  HangingJob job = JobOfRecords({at12, at12, {Default({One(11)})}});
  // NCCL's counts say less.
  for (NodeFacts& node : job.nodes) {
    for (RankFacts& rank : node.ranks)
      rank.communicators = {{"0x1", rank.rank, 3, {{"AllReduce", rank.rank == 0 ? 5 : 6}}}};
  }
  EXPECT_EQ(
      Diagnose(job).line,
      "perhaps rank 2 (n2, pid 4711): has not started all_reduce number 12 of process group "
      "0 (default_pg), which the others have; 2 other ranks wait in all_reduce (train.py:50)");
  EXPECT_FALSE(Diagnose(job).is_sure);
  job = JobOfRecords({at12, at12});
  EXPECT_EQ(Diagnose(job).line,
            "all 2 ranks wait in all_reduce (train.py:50), all_reduce number 12 of process group 0 "
            "(default_pg): perhaps the network");
  for (NodeFacts& node : job.nodes) {
    for (RankFacts& rank : node.ranks) rank.processes = {Receives()};
  }
  EXPECT_EQ(Diagnose(job).line,
            "all 2 ranks wait in all_reduce number 12 of process group 0 (default_pg): perhaps the "
            "network");
  EXPECT_EQ(Diagnose(job).cause, HangCause::kNetwork);
}

TEST(RankTable, HasTheLastRecordedCollective) {
  RecordedCollective last = One(12);
  last.place = "sync (train.py:50)";
  EXPECT_THAT(RankTable(JobOfRecords({{Default({One(11), last}), Group("1", {One(3)})}})),
              HasSubstr("\nrank 0: all_reduce number 12 of process group 0 (default_pg), started, "
                        "[[3]] Float, called in sync (train.py:50)\n"
                        "rank 0: all_reduce number 3 of process group 1, started, [[3]] Float\n"));
}

}  // namespace
}  // namespace launcher
