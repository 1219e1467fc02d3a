// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/diagnosis.h"

#include <signal.h>

#include "tests/launcher/diagnose/hanging_job.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(Diagnose, NamesTheRankWhoseGpuHasReportedAnError) {
  struct Case {
    const char* name;
    Tree odd;
    const char* line;
  };
  const Case cases[] = {
      {"waits as the others do",
       {Reduces()},
       "perhaps rank 3 (n2, pid 4711): its GPU has reported an error (GPU 0000:3b:00: Xid 79); 3 "
       "other ranks wait in all_reduce (train.py:50)"},
      {"asleep",
       {Sleeps()},
       "perhaps rank 3 (n2, pid 4711): its GPU has reported an error (GPU 0000:3b:00: Xid 79); 3 "
       "other ranks wait in all_reduce (train.py:50)"},
      {"stopped",
       {Still('T', "")},
       "rank 3 (n2, pid 4711): stopped by SIGSTOP or a terminal (kill -CONT 4711 continues it); 3 "
       "other ranks wait in all_reduce (train.py:50)"},
  };
  for (const Case& test : cases) {
    HangingJob job = WithOdd(Reduces(), test.odd);
    job.nodes[1].ranks[1].gpu_error = "GPU 0000:3b:00: Xid 79";
    EXPECT_EQ(Diagnose(job).line, test.line) << test.name;
  }
}

TEST(NeedsFunctions, IsSoWhereTheKernelDoesNotTell) {
  EXPECT_TRUE(NeedsFunctions(Receives()));
  EXPECT_TRUE(NeedsFunctions(Still('R', "")));
  EXPECT_TRUE(NeedsFunctions(Busy(0.5)));
  EXPECT_FALSE(NeedsFunctions(Busy(0.4)));
  EXPECT_FALSE(NeedsFunctions(Sleeps()));
  EXPECT_FALSE(NeedsFunctions(Still('T', "")));
  EXPECT_FALSE(NeedsFunctions(Still('S', "read", "", "/x")));
}

struct LaunchedCase {
  const char* name;
  std::vector<std::vector<CollectiveCount>> launched;  // by each rank
  const char* line;
};

TEST(Diagnose, NamesTheRankThatHasLaunchedOtherCollectives) {
  const std::vector<CollectiveCount> six = {{"AllReduce", 6}};
  const std::vector<CollectiveCount> five = {{"AllReduce", 5}};
  const std::vector<CollectiveCount> other = {{"AllGather", 1}, {"AllReduce", 5}};
  const LaunchedCase cases[] = {
      {"behind",
       {six, six, five, six},
       "perhaps rank 2 (n2, pid 4711): has launched AllReduce 5 times (others 6); 3 other ranks "
       "wait in all_reduce (train.py:50)"},
      {"ahead",
       {five, six, five, five},
       "perhaps rank 1 (n1, pid 4711): has launched AllReduce 6 times (others 5); 3 other ranks "
       "wait in all_reduce (train.py:50)"},
      {"another collective",
       {six, six, six, other},
       "perhaps rank 3 (n2, pid 4711): has launched AllGather 1 time (others 0), AllReduce 5 times "
       "(others 6); 3 other ranks wait in all_reduce (train.py:50)"},
      {"as many on both sides",
       {six, five},
       "perhaps rank 1 (n1, pid 4711): has launched AllReduce 5 times (others 6); 1 other rank "
       "waits in all_reduce (train.py:50)"},
      {"two of them",
       {five, six, six, five, six},
       "perhaps rank 0 (n1, pid 4711): has launched AllReduce 5 times (others 6); likewise rank 3; "
       "3 other ranks wait in all_reduce (train.py:50)"},
      {"all alike",
       {six, six, six},
       "all 3 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ"},
  };
  for (const LaunchedCase& test : cases) {
    HangingJob job = JobOf(std::vector<Tree>(test.launched.size(), {Reduces()}));
    for (NodeFacts& node : job.nodes) {
      for (RankFacts& rank : node.ranks) {
        // Of another communicator all have done the same.
        rank.communicators = {
            {"0x2", rank.rank, 9, six},
            {"0x1", rank.rank, 9, test.launched[static_cast<std::size_t>(rank.rank)]}};
      }
    }
    EXPECT_EQ(Diagnose(job).line, test.line) << test.name;
  }
}

TEST(Diagnose, SaysThatMemoryWasShortWhereTheKernelHasKilled) {
  ProcessFacts killed = Still('Z', "");
  killed.wait_status = SIGKILL;
  HangingJob job = WithOdd(Reduces(), {Reduces(), ChildOf(Reduces(), killed)});
  job.nodes[1].ranks[1].memory_kills = 2;
  EXPECT_THAT(Diagnose(job).line,
              HasSubstr("was killed by signal 9, as it seems for memory (oom_kill 2); 3 other"));
}

struct JobCase {
  const char* name;
  HangingJob job;
  HangCause cause;
  std::vector<int> ranks;
  bool is_sure;
  const char* line;
};

TEST(Diagnose, KnowsWhatIsNotTheFaultOfASingleRank) {
  const Tree stopped = {Still('T', "")};
  const Tree asleep = {Sleeps()};
  const Tree waits = {Reduces()};
  const Tree barrier = {Still('S', "futex", "", "", {"barrier (a.py:1)"})};
  HangingJob silent = JobOf({waits, waits}, 4);
  silent.hosts = {"n1", "n1", "n2", "n2"};
  HangingJob without_process = silent;
  without_process.nodes.push_back({.host = "n2"});
  HangingJob with_end = without_process;
  HangingJob silent_node = silent;
  silent_node.silent_nodes = {"n2"};
  with_end.ended = {{2, 0}, {3, 0}};
  HangingJob one_end = JobOf({waits, waits, waits}, 4);
  one_end.hosts = silent.hosts;
  one_end.ended = {{3, 0}};
  HangingJob lost = one_end;
  lost.ended.clear();
  HangingJob most_ended = JobOf({asleep}, 4);
  most_ended.hosts = {"n1", "n1", "n1", "n1"};
  most_ended.ended = {{1, 0}, {2, 0}, {3, 0}};
  HangingJob unseen = JobOf({waits, asleep}, 3);
  const JobCase cases[] = {
      {"all stopped",
       JobOf({stopped, stopped}),
       HangCause::kAlike,
       {},
       false,
       "all 2 ranks are stopped: no single rank is to blame; rank 0: stopped by SIGSTOP or a "
       "terminal (kill -CONT 4711 continues it)"},
      {"all asleep",
       JobOf({asleep, asleep}),
       HangCause::kAlike,
       {},
       false,
       "all 2 ranks are in the same state (asleep): no single rank is to blame; rank 0: asleep "
       "(clock_nanosleep)"},
      {"two stopped",
       JobOf({stopped, waits, waits, stopped}),
       HangCause::kStopped,
       {0, 3},
       true,
       "rank 0 (n1, pid 4711): stopped by SIGSTOP or a terminal (kill -CONT 4711 continues it); "
       "likewise rank 3; 2 other ranks wait in all_reduce (train.py:50)"},
      {"two asleep",
       JobOf({asleep, waits, waits, asleep}),
       HangCause::kAsleep,
       {0, 3},
       false,
       "perhaps rank 0 (n1, pid 4711): asleep (clock_nanosleep); likewise rank 3; 2 "
       "other ranks wait in all_reduce (train.py:50)"},
      {"the stronger of two",
       JobOf({waits, asleep, stopped}),
       HangCause::kStopped,
       {2},
       true,
       "rank 2 (n2, pid 4711): stopped by SIGSTOP or a terminal (kill -CONT 4711 continues it); 1 "
       "other rank waits in all_reduce (train.py:50); 1 other rank does something else (-v)"},
      {"one asleep and one busy",
       JobOf({waits, asleep, {Busy(1)}}),
       HangCause::kAsleep,
       {1},
       false,
       "perhaps rank 1 (n1, pid 4711): asleep (clock_nanosleep); 1 other rank waits in all_reduce "
       "(train.py:50); 1 other rank does something else (-v)"},
      {"alone",
       JobOf({asleep}),
       HangCause::kAsleep,
       {0},
       false,
       "perhaps rank 0 (n1, pid 4711): asleep (clock_nanosleep)"},
      {"alone in a collective",
       JobOf({waits}),
       HangCause::kNetwork,
       {},
       false,
       "rank 0 waits in all_reduce (train.py:50): perhaps the network, or sizes that differ"},
      {"half and half",
       JobOf({waits, waits, barrier, barrier}),
       HangCause::kUnknown,
       {},
       false,
       "all 4 ranks wait, but in 2 different places (-v shows them): perhaps they call collectives "
       "in different orders"},
      {"nodes that nobody has asked",
       silent,
       HangCause::kNetwork,
       {},
       false,
       "all 2 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ; "
       "ranks 2 and 3 were not looked at: ask on n2 too"},
      {"a node that does not answer",
       silent_node,
       HangCause::kSilentNode,
       {2, 3},
       false,
       "perhaps rank 2 (n2): its node does not answer; likewise rank 3; 2 other ranks "
       "wait in all_reduce (train.py:50)"},
      {"ranks without processes",
       without_process,
       HangCause::kMissing,
       {2, 3},
       false,
       "perhaps rank 2 (n2): no process of it was found there; likewise rank 3; 2 other "
       "ranks wait in all_reduce (train.py:50)"},
      {"half have ended",
       with_end,
       HangCause::kNetwork,
       {},
       false,
       "all 2 ranks wait in all_reduce (train.py:50): perhaps the network, or sizes that differ; 2 "
       "of 4 ranks have ended"},
      {"one has ended",
       one_end,
       HangCause::kEnded,
       {3},
       true,
       "rank 3 (n2): has ended with exit code 0; 3 other ranks wait in all_reduce (train.py:50)"},
      {"one is not found",
       lost,
       HangCause::kMissing,
       {3},
       false,
       "perhaps rank 3 (n2): no process of it was found there; 3 other ranks wait in all_reduce "
       "(train.py:50)"},
      {"all others have ended",
       most_ended,
       HangCause::kAsleep,
       {0},
       false,
       "perhaps rank 0 (n1, pid 4711): asleep (clock_nanosleep); 3 of 4 ranks have ended"},
      {"asleep beside one that nobody has looked at",
       unseen,
       HangCause::kAsleep,
       {1},
       false,
       "perhaps rank 1 (n1, pid 4711): asleep (clock_nanosleep); 1 other rank waits in all_reduce "
       "(train.py:50); rank 2 was not looked at"},
      {"all run",
       JobOf({{Moving(Reduces())}, {Moving(Sleeps())}}),
       HangCause::kAsleep,
       {1},
       false,
       "perhaps rank 1 (n1, pid 4711): asleep (clock_nanosleep); 1 other rank waits in all_reduce "
       "(train.py:50); all ranks ran between two looks: perhaps nothing hangs"},
      {"one does not run",
       JobOf({{Reduces()}, {Moving(Sleeps())}}),
       HangCause::kAsleep,
       {1},
       false,
       "perhaps rank 1 (n1, pid 4711): asleep (clock_nanosleep); 1 other rank waits in all_reduce "
       "(train.py:50)"},
      {"nobody", HangingJob{}, HangCause::kUnknown, {}, false, "no rank was found"},
  };
  for (const JobCase& test : cases) {
    const Diagnosis diagnosis = Diagnose(test.job);
    EXPECT_EQ(diagnosis.line, test.line) << test.name;
    EXPECT_STREQ(NameOf(diagnosis.cause), NameOf(test.cause)) << test.name;
    EXPECT_EQ(diagnosis.ranks, test.ranks) << test.name;
    EXPECT_EQ(diagnosis.is_sure, test.is_sure) << test.name;
  }
}

TEST(Diagnose, CutsLongListsAndMovesNoCursor) {
  std::vector<Tree> ranks(12, {Still('T', "")});
  ranks.push_back({Reduces()});
  HangingJob job = JobOf(ranks);
  job.nodes[0].ranks[0].host = "n\x1b[31m1";
  const std::string line = Diagnose(job).line;
  EXPECT_THAT(line, HasSubstr("likewise ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 more; 1 other"));
  EXPECT_THAT(line, StartsWith("rank 0 (n\\x1b[31m1, pid 4711): "));
}

TEST(Diagnose, TakesGeneralNamesForCollectivesInLibrariesAlone) {
  const auto waits_in = [](const std::string& frame) {
    return Diagnose(JobOf({{Still('S', "futex", "", "", {frame})}})).cause;
  };
  EXPECT_EQ(waits_in("wait (torch/distributed/distributed_c10d.py:7)"), HangCause::kNetwork);
  EXPECT_EQ(waits_in("synchronize (torch/cuda/__init__.py:7)"), HangCause::kNetwork);
  EXPECT_EQ(waits_in("wait (python3.12/threading.py:7)"), HangCause::kAlike);
  EXPECT_EQ(waits_in("all_reduce (me/own.py:7)"), HangCause::kNetwork);
}

TEST(RankTable, HasEachRankAndWhatCouldNotBeSeen) {
  HangingJob job = JobOf({{Receives()}, {Still('T', "")}}, 3);
  job.hosts = {"n1", "n1", "n9"};
  job.nodes[0].notes = {"no py-spy is in PATH"};
  EXPECT_EQ(RankTable(job),
            "  rank host                  pid state  CPUs what\n"
            "     0 n1                   4711 S       0.0 waits: recvfrom of a socket\n"
            "     1 n1                   4711 T       0.0 stopped by SIGSTOP or a terminal (kill "
            "-CONT 4711 continues it)\n"
            "     2 n9                      - -         - not looked at\n"
            "n1: no py-spy is in PATH\n");
}

}  // namespace
}  // namespace launcher
