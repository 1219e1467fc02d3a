// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include "tests/support/directories.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/train/deferred_backend.h"
#include "trainer/backend/registry.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/control_socket.h"
#include "trainer/core/error.h"
#include "trainer/data/class_list.h"
#include "trainer/program/control_endpoint.h"
#include "trainer/program/data_loaders.h"
#include "trainer/program/early_stop.h"
#include "trainer/program/run_profile.h"
#include "trainer/program/setup.h"
#include "trainer/program/startup.h"

namespace trainer {
namespace {

class ControlPointTest : public testing::Test {
 protected:
  ControlPointTest() {
    options_.mode = RunMode::kTrain;
    options_.results_dir = (directory_.path() / "run").string();
    options_.display_every = 7;
    fs::create_directory(options_.results_dir);
    fs::create_directory(directory_.path() / "tmp");
    environment_ = {{"TMPDIR", (directory_.path() / "tmp").string()}, {"SLURM_JOB_ID", "17"}};
    rank_.world_size = 2;
    rank_.host = "n1";
  }
  std::unique_ptr<ControlPoint> Make(StackDumpService* stacks = nullptr) {
    const EnvironmentLookup get = [&](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional(found->second);
    };
    return MakeControlPoint(options_, rank_, get, "1.2", MakeLogger(log_, 0, "info"), stacks);
  }
  ControlAddress Address() const { return ReadAddress(options_.results_dir).value(); }
  bool LeavesNothing() const { return fs::is_empty(directory_.path() / "tmp"); }

  const TemporaryDirectory directory_;
  Options options_;
  launcher::RankInfo rank_;
  std::map<std::string, std::string> environment_;
  std::ostringstream log_;
};

TEST_F(ControlPointTest, TakesOrdersForStacksWhereThereIsWhoObeysThem) {
  {
    const auto point = Make();
    EXPECT_NE(Ask(Address().socket, {ControlCommand::kStacks}).rejection, "");
  }
  StackDumpService stacks({.request = directory_.path() / "none", .model_dir = directory_.path()});
  const auto point = Make(&stacks);
  const ControlAnswer answer = Ask(Address().socket, {ControlCommand::kStacks});
  EXPECT_EQ(answer.rejection, "");
  EXPECT_GT(answer.stack_dump_command, 0U);
}

TEST_F(ControlPointTest, IsFoundByTheFileAndAnswers) {
  const auto point = Make();
  const ControlAddress address = Address();
  EXPECT_EQ(address.host, HostName());
  EXPECT_EQ(address.node, "n1");
  EXPECT_EQ(address.job, "17");
  EXPECT_EQ(address.pid, ::getpid());
  EXPECT_FALSE(address.last);
  const RunStatus status = Ask(address.socket, {}).status;
  EXPECT_EQ(status.state, RunState::kStarting);
  EXPECT_EQ(status.display_every, 7);
  EXPECT_EQ(status.identity.ranks, 2);
  EXPECT_EQ(status.identity.host, "n1");
  EXPECT_EQ(status.identity.version, "1.2");
  Ask(address.socket, {ControlCommand::kStop});
  EXPECT_TRUE(point->control().Look().stop);
  EXPECT_EQ(log_.str(), "");
}

TEST_F(ControlPointTest, HasFinalStatus) {
  const auto point = Make();
  point->control().OnEvent(RunEvent::kStep);
  point->control().OnCheckpointSaved(3);
  point->End(RunEvent::kEnd);
  ASSERT_TRUE(Address().last);
  EXPECT_EQ(Address().last->state, RunState::kDone);
  EXPECT_EQ(Address().last->checkpoint_step, 3);
  EXPECT_TRUE(LeavesNothing());
  EXPECT_THROW(Ask(Address().socket, {}), NobodyListens);
}

TEST_F(ControlPointTest, OfATrainingThatThrowsHasFailed) {
  Make().reset();
  EXPECT_EQ(Address().last->state, RunState::kFailed);
  EXPECT_TRUE(LeavesNothing());
}

TEST_F(ControlPointTest, PrefersTheRunDirectoryThenThePlacesOfTheUser) {
  environment_["XDG_RUNTIME_DIR"] = "/run/user/1";
  const auto get = [&](const std::string& name) -> std::optional<std::string> {
    return environment_.count(name) > 0 ? std::optional(environment_[name]) : std::nullopt;
  };
  rank_.run_dir = "/tmp/ddlrun.abcdef";
  const ControlPointOptions point = MakeControlPointOptions(options_, rank_, get, "1");
  EXPECT_EQ(point.directory.run_directory, "/tmp/ddlrun.abcdef");
  EXPECT_THAT(point.directory.bases, ElementsAre("/run/user/1", environment_["TMPDIR"], "/tmp"));
}

TEST_F(ControlPointTest, ATrainingGoesOnWithoutIt) {
  fs::create_directory(fs::path(options_.results_dir) / kControlAddressName);
  const auto point = Make();
  EXPECT_THAT(log_.str(), HasSubstr("warning: ddlctl cannot reach this training: cannot write "));
  EXPECT_TRUE(LeavesNothing());
  point->control().OnEvent(RunEvent::kStep);
  point->End(RunEvent::kEnd);
}

TEST_F(ControlPointTest, ModesThatKeepNoWeightsHaveNone) {
  for (const RunMode mode : {RunMode::kEvaluate, RunMode::kPredict, RunMode::kTrainingBenchmark,
                             RunMode::kInferenceBenchmark}) {
    options_.mode = mode;
    EXPECT_EQ(Make(), nullptr);
  }
}

constexpr std::int64_t kNow = 1'795'330'000;  // seconds since 1970

class EarlyEndTest : public testing::Test {
 protected:
  EarlyEndTest() {
    options_.mode = RunMode::kTrain;
    options_.results_dir = directory_.path();
  }
  std::unique_ptr<RunRequests> Make(const std::optional<std::string>& end_time) {
    const EnvironmentLookup get = [&](const std::string& name) {
      EXPECT_EQ(name, "SLURM_JOB_END_TIME");
      return end_time;
    };
    const WallClock clock = [] { return TimePoint(std::chrono::seconds(kNow)); };
    return MakeRunRequests(options_, get, clock, MakeLogger(log_, 0, "info"));
  }
  int End(const StopCause& cause) {
    const auto alone = MakeSingleCommunicator();
    return EndStopped(options_, 7, cause, *alone, MakeLogger(log_, 0, "info"));
  }

  const TemporaryDirectory directory_;
  Options options_;
  std::ostringstream log_;
};

TEST_F(EarlyEndTest, OutsideSlurmNoTimeIsWatchedAndNothingIsSaid) {
  const auto requests = Make({});
  ASSERT_NE(requests, nullptr);
  EXPECT_FALSE(requests->Look().stop);
  EXPECT_EQ(log_.str(), "");
}

TEST_F(EarlyEndTest, StopsAsLongBeforeTheEndAsItIsTold) {
  options_.stop_margin = "120";
  EXPECT_FALSE(Make(std::to_string(kNow + 121))->Look().stop);
  EXPECT_TRUE(Make(std::to_string(kNow + 120))->Look().stop);
  options_.stop_margin = "auto";
  EXPECT_FALSE(Make(std::to_string(kNow + 120))->Look().stop);
  options_.stop_margin = "off";
  log_.str("");
  EXPECT_FALSE(Make(std::to_string(kNow + 1))->Look().stop);
  EXPECT_EQ(log_.str(), "");
}

TEST_F(EarlyEndTest, ATimeThatIsOverOrNoneIsSaidAndNotWatched) {
  EXPECT_FALSE(Make(std::to_string(kNow))->Look().stop);
  EXPECT_THAT(log_.str(), HasSubstr("warning: SLURM_JOB_END_TIME=1795330000 is over: the end of "
                                    "the job's time is not watched"));
  for (const char* text : {"", "tomorrow", "12x"}) {
    log_.str("");
    EXPECT_FALSE(Make(text)->Look().stop);
    EXPECT_THAT(log_.str(), HasSubstr("is no time in seconds since 1970"));
  }
}

TEST_F(EarlyEndTest, ModesThatKeepNoWeightsAreNotAskedForAny) {
  for (const RunMode mode : {RunMode::kEvaluate, RunMode::kPredict, RunMode::kTrainingBenchmark,
                             RunMode::kInferenceBenchmark}) {
    options_.mode = mode;
    EXPECT_EQ(Make(std::to_string(kNow + 1)), nullptr);
  }
}

TEST_F(EarlyEndTest, SaysWhatHasStoppedTheRunAndEndsWith75) {
  EXPECT_EQ(End({0, "by the file run/stop"}), EX_TEMPFAIL);
  EXPECT_THAT(log_.str(), HasSubstr("stopped by the file run/stop after step 7: give the same "
                                    "command again to resume"));
  EXPECT_EQ(End({15, "for the end of the job's time"}), EX_TEMPFAIL);
  EXPECT_THAT(log_.str(), HasSubstr("stopped by signal 15 after step 7"));
  options_.resume = false;
  End({15, ""});
  EXPECT_THAT(log_.str(), HasSubstr("without --resume=never"));
}

TEST_F(EarlyEndTest, ARunWithoutACheckpointEndsWithItsSignal) {
  options_.mode = RunMode::kEvaluate;
  EXPECT_EQ(End({10, ""}), 138);
  EXPECT_THAT(log_.str(), HasSubstr("--mode=evaluate writes no checkpoint"));
}

class LabelledSource final : public DataLoader {
 public:
  explicit LabelledSource(std::optional<std::int64_t> highest) : highest_(highest) {}
  std::int64_t samples() const override { return 1; }
  std::optional<std::int64_t> SampleHighestLabel() const override { return highest_; }
  void Seek(const Position& /*position*/) override {}
  bool Next(HostBatch& /*batch*/) override { return false; }

 private:
  std::optional<std::int64_t> highest_;
};

class FewLabelsTest : public testing::Test {
 protected:
  std::string Describe(int classes, std::optional<std::int64_t> highest) {
    Options options;
    options.classes = classes;
    options.data_dir = directory_.path().string();
    return DescribeFewLabels({.training = std::make_unique<LabelledSource>(highest)}, options);
  }
  const TemporaryDirectory directory_;
};

TEST_F(FewLabelsTest, AreSaidWhereTheyAreBelowHalfOfTheClasses) {
  EXPECT_THAT(Describe(1000, 10),
              AllOf(HasSubstr("end at 10 (in some records of all its files)"),
                    HasSubstr("--classes is 1000"), HasSubstr("--classes=10 ")));
  EXPECT_THAT(Describe(1000, 1),
              AllOf(HasSubstr("nothing to learn with one class; ddldata stats /"),
                    Not(HasSubstr("--classes=1 "))));
  EXPECT_THAT(Describe(1000, 2), HasSubstr("--classes=2 trains for these"));
  EXPECT_NE(Describe(1000, 499), "");
  EXPECT_NE(Describe(1001, 500), "");
  for (const std::int64_t enough : {500, 999, 1000, 1001, 5000}) {
    EXPECT_EQ(Describe(1000, enough), "") << enough;
  }
  EXPECT_EQ(Describe(2, 1), "");
  EXPECT_EQ(Describe(1000, std::nullopt), "");
  EXPECT_EQ(Describe(1000, 0), "");  // is refused when its turn comes
}

TEST_F(FewLabelsTest, AreThoseOfLabelsTxtWhereItIsOurs) {
  WriteLabels(directory_.path().string(), {{"a", ""}, {"b", ""}, {"c", ""}});
  EXPECT_THAT(Describe(10, 9), HasSubstr("end at 3 (by labels.txt there)"));
  EXPECT_EQ(Describe(3, 1), "");
  EXPECT_EQ(Describe(5, 1), "");
  std::filesystem::remove(directory_.path() / "labels.txt");
  WriteLabels(directory_.path().string(), {{"a", ""}});
  EXPECT_THAT(Describe(2, 1), HasSubstr("nothing to learn with one class"));
  std::ofstream(directory_.path() / "labels.txt") << "0:daisy\n";
  EXPECT_EQ(Describe(10, 9), "");
}

TEST_F(FewLabelsTest, AreNotSaidOfMadeUpImages) {
  Options options;
  DataLoaders sources;
  EXPECT_EQ(DescribeFewLabels(sources, options), "");
  sources.evaluation = std::make_unique<LabelledSource>(1);
  EXPECT_EQ(DescribeFewLabels(sources, options), "");
}

constexpr char kNoLibrary[] = "libno-such-nvml.so.1";

TEST(ConfigOfLaunch, ARestartResumesFromTheNewestCheckpoint) {
  TrainConfig config;
  config.resume = false;
  EXPECT_FALSE(ConfigOfLaunch(config, 0, "1").resume);
  EXPECT_TRUE(ConfigOfLaunch(config, 1, "1").resume);
  config.resume_from = 5;
  EXPECT_EQ(ConfigOfLaunch(config, 0, "1").resume_from, 5);
  EXPECT_EQ(ConfigOfLaunch(config, 1, "1").resume_from, -1);
}

TEST(LocalDevice, NamesTheCpuWhereItIsTheDevice) {
  const auto backend = MakeBackend("reference", {});
  EXPECT_THAT(LocalDevice(*backend).Describe(), StartsWith("CPU"));
}

// A GPU whose driver answers the first question alone.
class Gpu : public DeferredBackend {
 public:
  std::string device_id() const override {
    if (++requested_ > 1) throw Error(EX_OSERR, "asking for the GPU's PCI bus id");
    return "0000:1B:00.0";
  }

 private:
  mutable int requested_ = 0;
};

TEST(LocalDevice, AsksForTheNameOfAGpuAtOnceAndNoMore) {
  const Gpu gpu;
  LocalDevice device(gpu, kNoLibrary);
  EXPECT_EQ(device.Describe(), "GPU at 0000:1B:00.0");
  EXPECT_EQ(device.Describe(), "GPU at 0000:1B:00.0");
}

TEST(LocalDevice, IsToldFromAllOthersByItsSerialNumberAndUuid) {
  const Gpu gpu;
  LocalDevice device(gpu, tests::BuildDirectory() + "/tests/libfake_energy_nvml.so");
  EXPECT_THAT(device.Describe(), StartsWith("NVIDIA H200 at 0000:1B:00.0: 1980 MHz"));
  EXPECT_THAT(device.Identify(),
              StartsWith("NVIDIA H200 at 0000:1B:00.0, serial number 1654223001234, "
                         "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6: 1980 MHz"));
  const Gpu unknown;
  EXPECT_EQ(LocalDevice(unknown, kNoLibrary).Identify(), "GPU at 0000:1B:00.0");
}

// Not on the thread of the watch, where it would end the process.
TEST(DeviceStatePoller, ThrowsAtOnceWhereTheGpuHasNoName) {
  const Gpu gpu;
  gpu.device_id();
  EXPECT_THROW(DeviceStatePoller(gpu, kNoLibrary), Error);
}

class PlanFileTest : public testing::Test {
 protected:
  PlanCacheFile Open() { return {path_, MakeLogger(said_, 0, "info")}; }

  TemporaryDirectory directory_;
  fs::path path_ = directory_.path() / "plans.txt";
  std::ostringstream said_;
};

TEST_F(PlanFileTest, IsReadByTheNextRun) {
  PlanCacheFile first = Open();
  first.Keep();
  EXPECT_FALSE(fs::exists(path_));  // there is nothing to keep
  first.plans()->Add("forward", "1");
  first.Keep();
  PlanCacheFile second = Open();
  EXPECT_EQ(second.plans()->Find("forward"), "1");
  second.plans()->Add("backward", "2");
  second.Keep();
  PlanCacheFile third = Open();
  EXPECT_EQ(third.plans()->Find("forward"), "1");
  EXPECT_EQ(third.plans()->Find("backward"), "2");
  EXPECT_EQ(said_.str(), "");
}

TEST_F(PlanFileTest, OneThatIsDamagedIsSaid) {
  std::ofstream(path_) << "ddltraind plans 1, crc32c 00000000\nforward\t1\n";
  EXPECT_EQ(Open().plans()->Find("forward"), std::nullopt);
  EXPECT_THAT(said_.str(), HasSubstr("cannot read " + path_.string() +
                                     " (--plan_cache): its "
                                     "checksum is wrong; algorithms are timed again"));
}

TEST_F(PlanFileTest, OneOfANewerFormatIsSaidAndLeftAsItIs) {
  const std::string text =
      std::string(kPlanBeginning) + std::to_string(kPlanFormat + 1) + "\nmore\n";
  std::ofstream(path_) << text;
  PlanCacheFile newer = Open();
  EXPECT_THAT(said_.str(),
              HasSubstr("cannot read " + path_.string() + " (--plan_cache): plans of format " +
                        std::to_string(kPlanFormat + 1) + ", and this program reads format " +
                        std::to_string(kPlanFormat) +
                        ": use the version of ddlrun that has written it, or a newer one; this run "
                        "times algorithms and keeps nothing"));
  newer.plans()->Add("forward", "1");
  newer.Keep();
  EXPECT_EQ(newer.plans()->Find("forward"), "1");
  std::ostringstream now;
  now << std::ifstream(path_).rdbuf();
  EXPECT_EQ(now.str(), text);
}

TEST_F(PlanFileTest, WithoutAPathThereIsNone) {
  path_.clear();
  PlanCacheFile none = Open();
  none.plans()->Add("forward", "1");
  none.Keep();
  EXPECT_EQ(none.plans()->Find("forward"), "1");
  EXPECT_EQ(said_.str(), "");
}

TEST_F(PlanFileTest, OneThatCannotBeReadOrWrittenIsSaidOnce) {
  fs::create_directory(path_);
  PlanCacheFile directory = Open();
  EXPECT_THAT(said_.str(), HasSubstr("cannot read " + path_.string() +
                                     " (--plan_cache): it is no "
                                     "regular file; algorithms are timed again"));
  said_.str("");
  directory.plans()->Add("forward", "1");
  directory.Keep();
  EXPECT_THAT(said_.str(), HasSubstr("cannot write " + path_.string() + " (--plan_cache): "));
  said_.str("");
  directory.plans()->Add("backward", "1");
  directory.Keep();
  EXPECT_EQ(said_.str(), "");
}

TEST_F(PlanFileTest, OneThatIsTooLongIsNotRead) {
  std::ofstream(path_).close();
  fs::resize_file(path_, (std::uintmax_t{16} << 20) + 1);
  EXPECT_EQ(Open().plans()->Find("forward"), std::nullopt);
  EXPECT_THAT(said_.str(), HasSubstr("it is longer than 16 MiB"));
}

TEST(PlanPath, IsBesideTheCheckpointsUnlessItIsGiven) {
  Options options;
  options.results_dir = "results";
  options.mode = RunMode::kTrain;
  EXPECT_EQ(PlanPath(options), "results/plans.txt");
  options.model_dir = "model";
  EXPECT_EQ(PlanPath(options), "model/plans.txt");
  options.mode = RunMode::kTrainingBenchmark;
  EXPECT_EQ(PlanPath(options), "");
  options.plan_cache = "/scratch/plans";
  EXPECT_EQ(PlanPath(options), "/scratch/plans");
  options.plan_cache = "off";
  options.mode = RunMode::kTrain;
  EXPECT_EQ(PlanPath(options), "");
}

}  // namespace
}  // namespace trainer
