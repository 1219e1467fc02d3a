// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/session.h"
#include "ddlctl/stacks.h"
#include "ddlctl/status_text.h"
#include "tests/support/test.h"
#include "tests/trainer/control/sample_status.h"

namespace ddlctl {
namespace {

std::vector<std::string> LinesOf(const trainer::RunStatus& status) {
  std::vector<std::string> lines;
  for (const LoadRow& row : LoadRows(status)) {
    lines.push_back(row.name + "|" + row.time + "|" + row.rest);
  }
  return lines;
}

// So many ranks, each 1 ms slower than the one before it, rank 0 but for that the quickest.
trainer::RunStatus ManyRanks(int ranks) {
  trainer::RunStatus status;
  status.identity.ranks = ranks;
  status.median_busy_seconds = 0.1;
  for (int rank = 0; rank < ranks; ++rank) {
    status.loads.push_back({.rank = rank, .host = "n1", .busy_seconds = 0.1 + rank * 0.001});
  }
  return status;
}

TEST(LoadRows, AreNoneWhereNothingIsKnown) { EXPECT_THAT(LinesOf({}), IsEmpty()); }

TEST(LoadRows, OfFewRanksAreAllOfThemInTheirOrder) {
  EXPECT_THAT(LinesOf(trainer::SampleStatus()),
              ElementsAre("own time, median|550.0 ms|of 2 ranks; >: slowest",
                          "  rank 0, gpu025|550.0 ms|  +0 %  data  2 %  GPU 98 %  1980 MHz  61 C",
                          "> rank 1, gpu026|688.0 ms| +25 %  data 40 %"));
  EXPECT_THAT(LinesOf(ManyRanks(6)), SizeIs(7));
}

TEST(LoadRows, OfOneRankNameNoneAsTheSlowest) {
  trainer::RunStatus status = ManyRanks(1);
  status.loads[0].host = "";
  EXPECT_THAT(LinesOf(status),
              ElementsAre("own time, median|100.0 ms|of 1 rank", "  rank 0|100.0 ms|  +0 %"));
}

TEST(LoadRows, OfManyRanksAreTheSlowestAndASummary) {
  EXPECT_THAT(LinesOf(ManyRanks(32)),
              ElementsAre("own time, median|100.0 ms|of 32 ranks; >: slowest",
                          "> rank 31, n1|131.0 ms| +31 %", "  rank 30, n1|130.0 ms| +30 %",
                          "  rank 29, n1|129.0 ms| +29 %", "  rank 28, n1|128.0 ms| +28 %",
                          "  28 more, up to|127.0 ms| +27 %"));
  trainer::RunStatus status = ManyRanks(7);
  EXPECT_EQ(LinesOf(status).back(), "  3 more, up to|102.0 ms|  +2 %");
  // Of more than are told.
  status.identity.ranks = 1024;
  EXPECT_EQ(LinesOf(status).back(), "  1020 more, up to|102.0 ms|  +2 %");
}

TEST(LoadRows, KeepToTheirColumnAndMoveNoCursor) {
  trainer::RunStatus status = ManyRanks(2);
  status.loads[1].rank = 1023;
  status.loads[1].host = "\x1b[2Jvery-long-name-of-a-node.cluster.example";
  EXPECT_EQ(LoadRows(status)[2].name, "> rank 1023, ?[2Jver");
}

TEST(SlowestText, IsSaidFromFivePercentOn) {
  EXPECT_EQ(SlowestText(trainer::SampleStatus()), "slowest rank 1 on gpu026 +25 %");
  trainer::RunStatus status = ManyRanks(2);
  EXPECT_EQ(SlowestText(status), "");
  status.loads[1].busy_seconds = 0.1051;
  EXPECT_EQ(SlowestText(status), "slowest rank 1 on n1 +5 %");
  status.loads.resize(1);
  EXPECT_EQ(SlowestText(status), "");
  EXPECT_EQ(SlowestText({}), "");
}

TEST(StatusText, SaysEverything) {
  EXPECT_EQ(StatusText(trainer::SampleStatus()),
            "state          training\n"
            "progress       step 1200/25000, epoch 3/50\n"
            "speed          365.1 images/s, 700.0 ms a step\n"
            "own time, median       550.0 ms  of 2 ranks; >: slowest\n"
            "  rank 0, gpu025       550.0 ms    +0 %  data  2 %  GPU 98 %  1980 MHz  61 C\n"
            "> rank 1, gpu026       688.0 ms   +25 %  data 40 %\n"
            "loss           2.4141\n"
            "eta            0:42:07\n"
            "checkpoint     step 1000\n"
            "display_every  10\n"
            "asked for      pause, checkpoint\n"
            "ranks          2\n"
            "rank 0         process 4711 on gpu025, job 123\n"
            "version        ddltraind 0.1.0\n");
}

TEST(StatusText, SaysWhatIsNotKnown) {
  trainer::RunStatus status;
  status.times.step = trainer::RunStatus::kUnknown;
  const std::string text = StatusText(status);
  EXPECT_THAT(text, HasSubstr("speed          ? images/s, ? ms a step\n"));
  EXPECT_THAT(text, HasSubstr("loss           ?\neta            ?\ncheckpoint     none\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("progress       step 0/0\n"), Not(HasSubstr("job"))));
  EXPECT_THAT(text, Not(HasSubstr("asked for")));
}

TEST(StatusLine, SaysWhatChanges) {
  trainer::RunStatus status = trainer::SampleStatus();
  EXPECT_EQ(StatusLine(status),
            "training step 1200/25000 epoch 3/50 365.1 images/s loss 2.4141 eta 0:42:07 "
            "checkpoint 1000 slowest rank 1 on gpu026 +25 % asked for pause, checkpoint");
  status.requested.clear();
  status.loads.clear();
  status.epochs = 0;
  status.checkpoint_step = -1;
  EXPECT_EQ(StatusLine(status),
            "training step 1200/25000 365.1 images/s loss 2.4141 eta 0:42:07 checkpoint none");
}

TEST(EpochText, StaysAtTheLastOneAtTheEnd) {
  trainer::RunStatus status = trainer::SampleStatus();
  status.epoch = 50;
  EXPECT_EQ(EpochText(status), "epoch 50/50");
}

TEST(Harmless, MovesNoCursor) { EXPECT_EQ(Harmless("a b~\x1b[2J\n\x7f\xc3"), "a b~?[2J???"); }

std::size_t LettersOf(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80;
  }));
}

// Speeds rise and losses fall over so many steps.
Seen SeenSteps(int steps) {
  Seen seen;
  trainer::RunStatus status = trainer::SampleStatus();
  for (int i = 0; i < steps; ++i) {
    status.step = i;
    status.images_per_second = i;
    status.loss = -i;
    seen.Add(status);
  }
  return seen;
}

TEST(Sparkline, RisesFromTheLeastToTheMost) {
  EXPECT_EQ(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8, false), "_.-~=+*#");
  EXPECT_EQ(Sparkline({10, -10}, 8, false), "#_");
}

TEST(Sparkline, ShowsTheLastValuesAsFarAsThereIsRoom) {
  EXPECT_EQ(Sparkline({100, 0, 7}, 2, false), "_#");
  EXPECT_EQ(Sparkline({1, 2}, 0, false), "");
  EXPECT_EQ(Sparkline({}, 5, false), "");
}

TEST(Sparkline, OfOneValueOrNoneIsInTheMiddleOrBlank) {
  EXPECT_EQ(Sparkline({3, 3}, 5, false), "==");
  EXPECT_EQ(Sparkline({NAN, 0, INFINITY, 7}, 5, false), " _ #");
  EXPECT_EQ(Sparkline({NAN}, 5, false), " ");
}

TEST(SeenSteps, CountsEachStepOnceAndForgetsTheOldest) {
  Seen seen = SeenSteps(3);
  EXPECT_THAT(seen.speeds(), ElementsAre(0, 1, 2));
  EXPECT_THAT(seen.losses(), ElementsAre(0, -1, -2));
  trainer::RunStatus status = trainer::SampleStatus();
  status.step = 2;
  seen.Add(status);
  seen.Add({.step = 9});
  EXPECT_EQ(seen.speeds().size(), 3U);
  seen = SeenSteps(static_cast<int>(Seen::kMax) + 5);
  EXPECT_EQ(seen.speeds().size(), Seen::kMax);
  EXPECT_EQ(seen.losses().size(), Seen::kMax);
  EXPECT_EQ(seen.speeds().front(), 5);
}

TEST(Draw, FitsAScreenOfEightyColumns) {
  EXPECT_THAT(
      Draw(trainer::SampleStatus(), SeenSteps(8), {.is_utf8 = false}),
      ElementsAre("training  step 1200/25000  epoch 3/50                           2 ranks, gpu025",
                  "[==>                                                    ]   4.8 %, 0:42:07 left",
                  "images/s                  365.1  _.-~=+*#",  //
                  "loss                     2.4141  #*+=~-._",  //
                  "step                   700.0 ms",            //
                  "  input wait            10.0 ms  #",         //
                  "  forward              200.0 ms  #############",
                  "  backward             400.0 ms  ##########################",
                  "  exposed all-reduce    20.0 ms  #",  //
                  "  update                70.0 ms  #####",
                  "own time, median       550.0 ms  of 2 ranks; >: slowest",
                  "  rank 0, gpu025       550.0 ms    +0 %  data  2 %  GPU 98 %  1980 MHz  61 C",
                  "> rank 1, gpu026       688.0 ms   +25 %  data 40 %",
                  "checkpoint of step 1000; asked for: pause, checkpoint"));
}

TEST(Draw, FillsTheRoomThereIsAndNoMore) {
  trainer::RunStatus status = trainer::SampleStatus();
  status.times.phases[2] = status.times.step;
  for (const bool is_utf8 : {true, false}) {
    for (const int columns : {1, 2, 20, 40, 79, 80, 81, 132, 300}) {
      std::size_t longest = 0;
      for (const std::string& line :
           Draw(status, SeenSteps(512), {.columns = columns, .is_utf8 = is_utf8})) {
        longest = std::max(longest, LettersOf(line));
      }
      EXPECT_LT(longest, std::max<std::size_t>(static_cast<std::size_t>(columns), 2)) << columns;
      if (columns >= 80) {
        EXPECT_EQ(longest, static_cast<std::size_t>(columns) - 1);
      }
    }
  }
}

TEST(Draw, HasFewerLinesThanTheScreen) {
  const auto lines_of = [](int rows) {
    return Draw(trainer::SampleStatus(), SeenSteps(3), {.rows = rows});
  };
  const std::vector<std::string> all = lines_of(0);
  ASSERT_GT(all.size(), 6U);
  const auto wanted = static_cast<int>(all.size());
  EXPECT_EQ(lines_of(wanted + 1), all);
  EXPECT_EQ(lines_of(wanted).size(), all.size() - 1);
  for (const int rows : {2, 3, 6}) {
    const auto count = rows - 1;
    EXPECT_EQ(lines_of(rows), std::vector<std::string>(all.begin(), all.begin() + count)) << rows;
  }
  EXPECT_EQ(lines_of(1).size(), 1U);
}

TEST(Draw, LeavesOutWhatIsNotKnownYet) {
  const std::vector<std::string> lines = Draw({}, {}, {});
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines[0], HasSubstr("starting  step 0/0"));
  EXPECT_THAT(lines[1], HasSubstr("0.0 %, ? left"));
  EXPECT_THAT(lines[2], HasSubstr("?"));
  EXPECT_EQ(lines[4], "no checkpoint yet");
}

TEST(Draw, ShowsNothingThatMovesACursor) {
  trainer::RunStatus status = trainer::SampleStatus();
  status.identity.host = "\x1b[2Jgpu";
  EXPECT_THAT(Draw(status, {}, {})[0], HasSubstr("2 ranks, ?[2Jgpu"));
}

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
  return {.host = host,
          .pid = 7,
          .stacks = trainer::RankStackTraces{
              .headline = "rank 9 on x, process 7: " + doing,
              .command = 1,
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
  EXPECT_EQ(GroupedStackTraces(ranks, 11),
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
  EXPECT_EQ(GroupedStackTraces({{.host = "n2", .pid = 12, .stacks = {}, .state = "stopped"}}, 11),
            "rank 0 on n2 has not answered within 11 s: process 12 is stopped\n");
  EXPECT_EQ(GroupedStackTraces({{.host = "n2", .pid = 12, .stacks = {}, .state = "is gone"}}, 11),
            "rank 0 on n2 has not answered within 11 s: process 12 is gone\n");
}

TEST(GroupedStacks, OfEqualGroupsBeginWithWhoDoesNotWait) {
  const std::string text = GroupedStackTraces({Waiting("n1", "poll"), Reading("n2")}, 11);
  EXPECT_THAT(text, StartsWith("rank 1 on n2 (1 of 2): "));
  EXPECT_THAT(text, HasSubstr("\n\nrank 0 on n1 (1 of 2): "));
}

TEST(GroupedStacks, OfOneRankNeedNoCount) {
  EXPECT_THAT(GroupedStackTraces({Reading("n2")}, 11), StartsWith("rank 0 on n2: in training, "));
}

TEST(GroupedStacks, TellApartWhatHasNoFramesOrNoNames) {
  const std::string text = GroupedStackTraces(
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
  EXPECT_THAT(GroupedStackTraces({Answer("n1", "x", "  #0 ? in (0x7f01)\n"),
                                  Answer("n1", "x", "  #0 ? in (0x7f02)\n")},
                                 11),
              StartsWith("ranks 0-1 on n1 (2 of 2): x\n  #0 ? in (0x7f01)\n"));
}

TEST(GroupedStacks, CutLongListsOfHosts) {
  std::vector<RankAnswer> ranks;
  for (int i = 0; i < 10; ++i) ranks.push_back(Waiting("n" + std::to_string(i), "poll"));
  EXPECT_THAT(
      GroupedStackTraces(ranks, 11),
      StartsWith("ranks 0 on n0, 1 on n1, 2 on n2, 3 on n3, 4 on n4, 5 on n5, 6 on n6, 7 on "
                 "n7 and those of 2 hosts more (10 of 10): "));
}

TEST(GroupedStacks, MoveNoCursor) {
  EXPECT_THAT(GroupedStackTraces({Answer("n\x1b", "\x1b[2J", "  #0 \x1b[2J in /x(+0x1)\n")}, 11),
              Not(HasSubstr("\x1b")));
  EXPECT_THAT(AllStackTraces({Answer("n\x1b", "\x1b[2J", "  #0 \x1b[2J in /x(+0x1)\n")}, 11),
              Not(HasSubstr("\x1b")));
}

TEST(AllStacks, AreAllThreadsOfAllRanks) {
  EXPECT_EQ(
      AllStackTraces({Reading("n1"), {.host = "n2", .pid = 3, .stacks = std::nullopt}}, 11),
      "rank 1 on n2 has not answered within 11 s: stopped, or its node or file system is out "
      "of reach\n"
      "\n"
      "rank 9 on x, process 7: in training, step 17, waiting for its data, no progress for 12 "
      "s\n"
      "thread 7 (ddltraind)\n" +
          std::string(kRead) + "\nthread 8 (other)\n  #0 poll in /lib/c(+0x8)\n");
}

const trainer::ControlAddress kThere = {.host = "n2.example.org",
                                        .node = "n2",
                                        .job = "17",
                                        .pid = 1,
                                        .socket = "/tmp/s",
                                        .last = std::nullopt};

TEST(SrunCommand, RunsTheSameThereAndNoFurther) {
  const RemoteCall call = {"/opt/bin/ddlctl", {"pause", "my run"}, "17", false};
  EXPECT_THAT(SrunCommand(kThere, call),
              ElementsAre("srun", "--overlap", "--jobid=17", "--nodelist=n2", "--nodes=1",
                          "--ntasks=1", "--mem=0", "--gres=none", "--mpi=none", "--quiet",
                          "--input=none", "/opt/bin/ddlctl", "pause", "my run", "--srun=never"));
}

TEST(SrunCommand, HasATerminalWhereItDraws) {
  const auto command = SrunCommand(kThere, {"/ddlctl", {"watch", "RUN"}, "17", true});
  EXPECT_THAT(command, AllOf(Contains("--pty"), Not(Contains("--input=none"))));
}

TEST(SrunCommand, NamesTheHostWhereTheJobNamesNoNode) {
  trainer::ControlAddress address = kThere;
  address.node = "";
  EXPECT_THAT(SrunCommand(address, {"/ddlctl", {"status", "RUN"}, "9", false}),
              Contains("--nodelist=n2.example.org"));
}

TEST(SrunCommand, IsNoneWithoutAJob) {
  EXPECT_THAT(SrunCommand(kThere, {"/ddlctl", {"status", "RUN"}, "", false}), IsEmpty());
}

TEST(WhatToType, CanBePastedIntoAShell) {
  EXPECT_EQ(WhatToType(kThere, {"/ddlctl", {"status", "my run"}, "", false}),
            "log in to n2.example.org and type: ddlctl status 'my run'");
}

}  // namespace
}  // namespace ddlctl
