// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "support/descriptor.h"
#include "tests/support/other_user.h"
#include "tests/support/temporary_directory.h"
#include "trainer/control/control_socket.h"
#include "trainer/control/run_control.h"
#include "trainer/control/run_status.h"
#include "trainer/control/stack_dump_request.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

RankMetrics Said(double seconds, int percent) {
  RankMetrics said = {.input_wait_seconds = seconds, .device = {}, .is_known = true};
  said.device.busy_percent = percent;
  said.device.compute_mhz = 1980;
  said.device.celsius = 61;
  return said;
}

TEST(RankLoads, AreUnknownAtFirst) {
  RankLoads loads;
  EXPECT_THAT(loads.Slowest(), IsEmpty());
  EXPECT_TRUE(std::isnan(loads.Median()));
  loads.Add(std::vector<double>{0, NAN}, {});
  EXPECT_THAT(loads.Slowest(), IsEmpty());
  EXPECT_TRUE(std::isnan(loads.Median()));
}

TEST(RankLoads, HaveHostsTimesAndWhatWasSaid) {
  RankLoads loads;
  loads.SetHosts({"n1", std::string(200, 'x')});
  const std::vector<RankMetrics> said = {Said(0.25, 98), {}};
  loads.Add(std::vector<double>{2, 4}, said);
  const std::vector<RankLoad> all = loads.Slowest();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].rank, 0);
  EXPECT_EQ(all[0].host, "n1");
  EXPECT_EQ(all[0].busy_seconds, 2);
  EXPECT_EQ(all[0].input_wait_seconds, 0.25);
  EXPECT_EQ(all[0].gpu_percent, 98);
  EXPECT_EQ(all[0].compute_mhz, 1980);
  EXPECT_EQ(all[0].celsius, 61);
  EXPECT_EQ(all[1].host.size(), RankLoads::kLetters);
  EXPECT_EQ(all[1].busy_seconds, 4);
  EXPECT_TRUE(std::isnan(all[1].input_wait_seconds));
  EXPECT_FALSE(all[1].gpu_percent || all[1].compute_mhz || all[1].celsius);
  EXPECT_EQ(loads.Median(), 2) << "the lower of two";
}

TEST(RankLoads, AreMeansThatForgetWhatIsLongAgo) {
  RankLoads loads;
  loads.Add(std::vector<double>{1}, {});
  loads.Add(std::vector<double>{3}, {});
  EXPECT_EQ(loads.Median(), 2);
  loads.Add(std::vector<double>{0}, {});
  EXPECT_EQ(loads.Median(), 2) << "not known";
  for (int i = 0; i < 200; ++i) loads.Add(std::vector<double>{8}, {});
  EXPECT_NEAR(loads.Median(), 8, 0.001);
  loads.Add(std::vector<double>{28}, {});
  EXPECT_NEAR(loads.Median(), 9, 0.001) << "a twentieth of it counts";
}

TEST(RankLoads, OfManyRanksAreTheSlowest) {
  RankLoads loads;
  std::vector<double> seconds(100, 1);
  seconds[99] = 3;
  seconds[50] = 2;
  loads.Add(seconds, {});
  const std::vector<RankLoad> logged = loads.Slowest();
  ASSERT_EQ(logged.size(), RankLoads::kMax);
  EXPECT_EQ(logged[61].rank, 61);
  EXPECT_EQ(logged[62].rank, 62) << "50 is among the first";
  EXPECT_EQ(logged[63].rank, 99);
  EXPECT_EQ(loads.Median(), 1);
}

// By state and event: the first letters of the state after it, - where it cannot happen.
const std::map<std::string, std::string> kTransitions = {
    {"starting", "tr ch ev - st do fa"},
    {"training", "tr ch ev pa st do fa"},
    {"evaluating", "tr ch ev - st do fa"},
    {"checkpointing", "tr ch ev pa st do fa"},
    {"paused", "tr ch - pa st - fa"},
    {"stopping", "- st - - st do fa"},
    {"done", "- - - - - - -"},
    {"failed", "- - - - - - -"},
};

// "starting" and "stopping" begin alike; nothing leads to the first.
std::string ShortName(std::optional<RunState> state) {
  return state ? std::string(NameOf(*state).substr(0, 2)) : "-";
}

TEST(RunState, LeadsWhereItShould) {
  for (std::size_t i = 0; i < kRunStates; ++i) {
    const auto state = static_cast<RunState>(i);
    std::string row;
    for (std::size_t event = 0; event < kRunEvents; ++event) {
      const auto after = StateAfter(state, static_cast<RunEvent>(event));
      EXPECT_NE(after, RunState::kStarting);
      row += (event == 0 ? "" : " ") + ShortName(after);
    }
    EXPECT_EQ(row, kTransitions.at(std::string(NameOf(state)))) << NameOf(state);
  }
}

TEST(RunState, TakesOrdersWhileTheyCanBeObeyed) {
  const std::map<std::string, std::vector<std::string>> taken = {
      {"starting", {"pause", "resume", "checkpoint", "stop", "set", "stacks"}},
      {"training", {"pause", "resume", "checkpoint", "evaluate", "stop", "set", "stacks"}},
      {"evaluating", {"resume", "stop", "set", "stacks"}},
      {"checkpointing", {"pause", "resume", "checkpoint", "evaluate", "stop", "set", "stacks"}},
      {"paused", {"pause", "resume", "checkpoint", "stop", "set", "stacks"}},
      {"stopping", {"stop", "stacks"}},
      {"done", {}},
      {"failed", {}}};
  for (std::size_t i = 0; i < kRunStates; ++i) {
    const auto state = static_cast<RunState>(i);
    std::vector<std::string> orders;
    for (std::size_t command = 0; command < kControlCommands; ++command) {
      const auto which = static_cast<ControlCommand>(command);
      if (Takes(state, which)) orders.emplace_back(NameOf(which));
    }
    EXPECT_EQ(orders, taken.at(std::string(NameOf(state)))) << NameOf(state);
  }
}

TEST(RunState, EveryStateButTheLastTwoCanFailAndOnlyTheyAreEnds) {
  for (std::size_t i = 0; i < kRunStates; ++i) {
    const auto state = static_cast<RunState>(i);
    EXPECT_EQ(IsEnd(state), !StateAfter(state, RunEvent::kFailure)) << NameOf(state);
  }
  EXPECT_TRUE(IsEnd(RunState::kDone) && IsEnd(RunState::kFailed));
}

TEST(RunState, NamesAreReadBack) {
  for (std::size_t i = 0; i < kRunStates; ++i) {
    const auto state = static_cast<RunState>(i);
    EXPECT_EQ(ParseRunState(NameOf(state)), state);
  }
  for (std::size_t i = 0; i < kControlCommands; ++i) {
    const auto command = static_cast<ControlCommand>(i);
    EXPECT_EQ(ParseControlCommand(NameOf(command)), command);
  }
  EXPECT_EQ(ParseRunState("Training"), std::nullopt);
  EXPECT_EQ(ParseControlCommand("status"), std::nullopt);
}

class SocketDirectoryTest : public testing::Test {
 protected:
  SocketDirectoryTest() { fs::create_directory(base()); }
  fs::path base() const { return directory_.path() / "base"; }
  fs::path MakeDirectory(const std::string& name, mode_t mode) const {
    const fs::path path = base() / name;
    fs::create_directory(path);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat info = {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  const TemporaryDirectory directory_;
};

TEST_F(SocketDirectoryTest, TakesTheRunDirectoryAndLeavesItThere) {
  const fs::path run = MakeDirectory("ddlrun.abcdef", 0700);
  {
    const SocketDirectory directory({run, {base()}});
    EXPECT_EQ(directory.path(), run);
    EXPECT_EQ(directory.socket().parent_path(), run);
  }
  EXPECT_TRUE(exists(run));
}

TEST_F(SocketDirectoryTest, MakesOneWhereTheRunDirectoryIsNotHereOrNotPrivate) {
  const fs::path open = MakeDirectory("open", 0750);
  const fs::path target = MakeDirectory("target", 0700);
  fs::create_directory_symlink(target, base() / "link");
  for (const fs::path& run : {fs::path(), base() / "none", open, base() / "link"}) {
    fs::path made;
    {
      const SocketDirectory directory({run, {base()}});
      made = directory.path();
      EXPECT_THAT(made.string(), StartsWith((base() / "ddltraind.").string())) << run;
      EXPECT_EQ(ModeOf(made), 0700);
    }
    EXPECT_FALSE(exists(made));
  }
}

TEST_F(SocketDirectoryTest, TakesTheFirstPlaceThatIsOne) {
  const fs::path deep = base() / std::string(100, 'd');
  fs::create_directory(deep);
  const SocketDirectory directory({"", {"relative", base() / "none", deep, base()}});
  EXPECT_EQ(directory.path().parent_path(), base());
  EXPECT_THROW(SocketDirectory({"", {base() / "none"}}), Error);
  EXPECT_THROW(SocketDirectory({"", {}}), Error);
}

TEST_F(SocketDirectoryTest, RemovesWhatKilledTrainingsHaveLeftAndNothingElse) {
  const fs::path left = MakeDirectory("ddltraind.left", 0700);
  { const support::Descriptor gone = ListenAt((left / "1.socket").string()); }
  const fs::path living = MakeDirectory("ddltraind.living", 0700);
  const support::Descriptor listener = ListenAt((living / "2.socket").string());
  const fs::path empty = MakeDirectory("ddltraind.empty", 0700);
  const fs::path with_file = MakeDirectory("ddltraind.file", 0700);
  std::ofstream(with_file / "3.socket") << "text";
  const fs::path open = MakeDirectory("ddltraind.open", 0755);
  { const support::Descriptor gone = ListenAt((open / "4.socket").string()); }
  const fs::path other = MakeDirectory("other", 0700);
  { const support::Descriptor gone = ListenAt((other / "5.socket").string()); }
  const SocketDirectory directory({"", {base()}});
  EXPECT_FALSE(exists(left));
  for (const fs::path& path : {living / "2.socket", empty, with_file / "3.socket",
                               open / "4.socket", other / "5.socket"}) {
    EXPECT_TRUE(exists(path)) << path;
  }
}

class StacksRequestTest : public testing::Test {
 protected:
  fs::path file() const { return directory_.path() / kStackDumpRequestName; }
  void Write(const std::string& text) const { std::ofstream(file()) << text; }

  const TemporaryDirectory directory_;
  const StackDumpRequest request_ = {
      .command = 0, .directory = "/scratch/my run/stacks", .ranks = {{"n1", 4711}, {"n2", 12}}};
};

TEST_F(StacksRequestTest, IsWhatTheHeaderSaysAndIsReadBack) {
  MakeStackDumpRequest(file(), request_);
  std::ifstream stream(file());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}),
            "00000000000000000000\n/scratch/my run/stacks\nn1 4711\nn2 12\n");
  const auto read = ReadStackDumpRequest(file());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->command, 0U);
  EXPECT_EQ(read->directory, "/scratch/my run/stacks");
  ASSERT_EQ(read->ranks.size(), 2U);
  EXPECT_EQ(read->ranks[0].host, "n1");
  EXPECT_EQ(read->ranks[1].pid, 12);
}

TEST_F(StacksRequestTest, AnOrderIsWrittenOverTheOneBefore) {
  MakeStackDumpRequest(file(), request_);
  EXPECT_EQ(ReadStackDumpCommand(file()), 0U);
  EXPECT_EQ(WriteStackDumpCommand(file(), 1764000000000000), 0);
  EXPECT_EQ(WriteStackDumpCommand(file(), 17), 0);
  EXPECT_EQ(ReadStackDumpCommand(file()), 17U);
  const auto read = ReadStackDumpRequest(file());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->command, 17U);
  EXPECT_EQ(read->ranks.size(), 2U);
}

TEST_F(StacksRequestTest, WithoutTheFileThereIsNoOrder) {
  EXPECT_EQ(ReadStackDumpCommand(file()), 0U);
  EXPECT_FALSE(ReadStackDumpRequest(file()));
  EXPECT_EQ(WriteStackDumpCommand(file(), 1), ENOENT);
  EXPECT_THROW(MakeStackDumpRequest(directory_.path() / "none" / "file", request_), Error);
}

TEST_F(StacksRequestTest, TakesNoOtherFile) {
  const std::string command = "00000000000000000001\n";
  Write(command + "/a\nn1 1\n");
  EXPECT_TRUE(ReadStackDumpRequest(file()));
  const std::vector<std::string> others = {"",
                                           "x",
                                           command,
                                           command + "/a",
                                           command + "/a\n",
                                           command + "a\nn1 1\n",
                                           "1\n/a\nn1 1\n",
                                           "0000000000000000000x\n/a\nn1 1\n",
                                           command + "/a\nn1 1",
                                           command + "/a\nn1\n",
                                           command + "/a\nn1 0\n",
                                           command + "/a\nn1 1x\n",
                                           command + "/a\n 1\n",
                                           command + "/a\nn1 1\n\n"};
  for (const std::string& text : others) {
    Write(text);
    EXPECT_FALSE(ReadStackDumpRequest(file())) << text;
  }
  for (const char* text : {"", "17", "0000000000000000000x\n", "99999999999999999999\n"}) {
    Write(text);
    EXPECT_EQ(ReadStackDumpCommand(file()), 0U) << text;
  }
}

TEST_F(StacksRequestTest, IsReadAndWrittenThroughNoLink) {
  MakeStackDumpRequest(directory_.path() / "other", request_);
  EXPECT_EQ(WriteStackDumpCommand(directory_.path() / "other", 17), 0);
  fs::create_symlink("other", file());
  EXPECT_EQ(ReadStackDumpCommand(file()), 0U);
  EXPECT_FALSE(ReadStackDumpRequest(file()));
  EXPECT_EQ(WriteStackDumpCommand(file(), 1), ELOOP);
}

TEST_F(StacksRequestTest, WaitsForNoPipeInItsPlace) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(ReadStackDumpCommand(file()), 0U);
  EXPECT_FALSE(ReadStackDumpRequest(file()));
  EXPECT_EQ(WriteStackDumpCommand(file(), 1), ENXIO);
  const support::Descriptor reader(::open(file().c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(WriteStackDumpCommand(file(), 1), EPERM);
}

TEST_F(StacksRequestTest, OfAnotherUserIsNone) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can give a file to another user";
  MakeStackDumpRequest(file(), request_);
  EXPECT_EQ(WriteStackDumpCommand(file(), 17), 0);
  ASSERT_EQ(::chown(file().c_str(), tests::kNobody, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(ReadStackDumpCommand(file()), 0U);
  EXPECT_FALSE(ReadStackDumpRequest(file()));
  EXPECT_EQ(WriteStackDumpCommand(file(), 1), EPERM);
}

TEST_F(StacksRequestTest, IsForThisUserAlone) {
  MakeStackDumpRequest(file(), request_);
  using fs::perms;
  EXPECT_EQ(fs::status(file()).permissions(), perms::owner_read | perms::owner_write);
}

TEST(StacksOrder, RisesAlsoWhereTheClockDoesNot) {
  const std::uint64_t first = NextStackDumpCommand(0);
  EXPECT_GT(first, 1700000000000000U);
  EXPECT_GT(NextStackDumpCommand(first), first);
  EXPECT_EQ(NextStackDumpCommand(4000000000000000), 4000000000000001U);
}

TEST(StacksLooks, OfAllRanksAreNoMoreThanSixtyFourASecond) {
  EXPECT_EQ(StackDumpPollSeconds(1), 1);
  EXPECT_EQ(StackDumpPollSeconds(64), 1);
  EXPECT_EQ(StackDumpPollSeconds(640), 10);
}

TEST(RankStacksText, IsReadBack) {
  const std::string text = FormatRankStackTraces(
      {"rank 1 on n2, process 7: in training", 17, "thread 7 (x)\n  #0 f in p\n"});
  EXPECT_EQ(text,
            "rank 1 on n2, process 7: in training\nasked for by ddlctl, order 17\n\n"
            "thread 7 (x)\n  #0 f in p\n");
  const auto read = ParseRankStackTraces(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->headline, "rank 1 on n2, process 7: in training");
  EXPECT_EQ(read->command, 17U);
  EXPECT_EQ(read->stacks, "thread 7 (x)\n  #0 f in p\n");
  const auto unasked = ParseRankStackTraces(FormatRankStackTraces({"rank 1 on n2", 0, "thread\n"}));
  ASSERT_TRUE(unasked);
  EXPECT_EQ(unasked->command, 0U);
  EXPECT_EQ(unasked->stacks, "thread\n");
}

TEST(RankStacksText, OfAnyOtherKindIsNone) {
  for (const char* text :
       {"", "rank 1", "rank 1\n", "rank 1\nthread\n", "Rank 1\n\nthread\n",
        "rank 1\nasked for by ddlctl, order 0\n\n", "rank 1\nasked for by ddlctl, order x\n\n",
        "rank 1\nasked for by ddlctl, order 1\n", "rank 1\nasked for by ddlctl, order 1\nx\n"}) {
    EXPECT_FALSE(ParseRankStackTraces(text)) << text;
  }
  EXPECT_EQ(StackDumpFileName(12), "rank-12.txt");
}

constexpr double kStart = 1'000'000;

TEST(TimeLimit, KeepsAMinuteUntilACheckpointWasTimed) {
  TimeLimit limit(kStart, kStart + 3600, {});
  EXPECT_EQ(limit.margin(), 60);
  EXPECT_FALSE(limit.IsDue(kStart + 3539.9));
  EXPECT_TRUE(limit.IsDue(kStart + 3540));
}

TEST(TimeLimit, KeepsTwiceTheLongestOfTheLastFiveCheckpointsAndTenSeconds) {
  TimeLimit limit(kStart, kStart + 3600, {});
  limit.CheckpointTook(100);
  EXPECT_EQ(limit.margin(), 210);
  for (const double seconds : {1, 2, 7, 4}) limit.CheckpointTook(seconds);
  EXPECT_EQ(limit.margin(), 210);
  limit.CheckpointTook(5);
  EXPECT_EQ(limit.margin(), 24);
}

// One that is being written is finished first.
TEST(TimeLimit, CountsCheckpointsTwiceWhileOneIsBeingWritten) {
  TimeLimit limit(kStart, kStart + 3600, {});
  limit.CheckpointBegan();
  EXPECT_EQ(limit.margin(), 60);
  limit.CheckpointTook(100);
  EXPECT_EQ(limit.margin(), 210);
  limit.CheckpointBegan();
  EXPECT_EQ(limit.margin(), 410);
  limit.CheckpointTook(1);
  EXPECT_EQ(limit.margin(), 210);
}

TEST(TimeLimit, KeepsTheLongestOfTheLastStepsToo) {
  TimeLimit limit(kStart, kStart + 3600, {});
  limit.StepTook(30);
  limit.StepTook(2);
  EXPECT_EQ(limit.margin(), 90);
  for (int i = 0; i < 19; ++i) limit.StepTook(3);
  EXPECT_EQ(limit.margin(), 63);
}

// Else a job of a minute would end as soon as it began.
TEST(TimeLimit, KeepsAQuarterOfAShortJob) {
  TimeLimit limit(kStart, kStart + 20, {});
  EXPECT_EQ(limit.margin(), 5);
  limit.CheckpointTook(1);
  EXPECT_EQ(limit.margin(), 7);
}

TEST(TimeLimit, KeepsWhatItIsToldAndAStep) {
  TimeLimit limit(kStart, kStart + 3600, 300);
  limit.CheckpointTook(1000);
  limit.StepTook(2);
  EXPECT_EQ(limit.margin(), 302);
}

}  // namespace
}  // namespace trainer
