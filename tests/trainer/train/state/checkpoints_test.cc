// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/checkpoints.h"

#include <sys/resource.h>

#include <latch>
#include <numeric>
#include <thread>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "tests/trainer/core/few_threads.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"
#include "trainer/model/network.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/state/snapshot.h"

namespace trainer {
namespace {

constexpr auto kForCopy = Checkpoints::Wait::kForCopy;
constexpr auto kForFile = Checkpoints::Wait::kForFile;

int CountIn(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// With one rank and a network that nobody trains; checkpoints_of_training_test.cc has those of a
// training.

class CheckpointsTest : public testing::Test {
 protected:
  CheckpointsTest() {
    config_.keep_checkpoints = 100;
    Initialize(network_, {config_.seed, config_.weight_init, false}, *stream_);
  }

  // What is done before each call that writes.
  std::unique_ptr<Checkpoints> Make(const WriteHook& hook = {}, RunRequests* requests = nullptr) {
    const SnapshotDeps deps{config_, network_, alone_, *stream_, log_};
    return std::make_unique<Checkpoints>(
        CheckpointManagerDeps{deps, *backend_, 64, requests, hook});
  }
  void Save(Checkpoints& checkpoints, std::int64_t step, Checkpoints::Wait wait) {
    checkpoints.Save(Position{step, 4 * step}, LossScale::Static(1), wait);
  }
  // Looks until what is being written is done.
  static void LookUntil(Checkpoints& checkpoints, const std::function<bool()>& is_done) {
    for (int i = 0; i < 60'000 && !is_done(); ++i) {
      checkpoints.Look();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(is_done());
  }
  // The message of the Error that looking ends with.
  static std::string FailureOf(Checkpoints& checkpoints, int exit_code) {
    return tests::Rejection<Error>(
        exit_code, [&] { LookUntil(checkpoints, [] { return false; }); }, "none");
  }
  void BreakTheWeights() {
    const Parameter& first = network_.parameters().front();
    std::vector<float> values(static_cast<std::size_t>(first.spec.shape.elements()), NAN);
    network_.Import(Network::Part::kValue, first, values, *stream_);
  }
  bool Has(std::int64_t step) const {
    return fs::exists(CheckpointDirectory(directory_.path(), step) / "manifest.json");
  }

  const TemporaryDirectory directory_;
  TrainConfig config_ = SmallConfig(directory_.path());
  std::ostringstream text_;
  const Logger log_ = MakeLogger(text_, 0, "info");
  const std::unique_ptr<Backend> backend_ = MakeBackend("reference", {.threads = 1});
  Network network_{*backend_, NetworkSpecOf(config_)};
  const std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  OneRank alone_;
};

TEST_F(CheckpointsTest, OneThatIsWaitedForIsThereAndIsSaid) {
  const auto checkpoints = Make();
  Save(*checkpoints, 3, kForFile);
  EXPECT_TRUE(Has(3));
  EXPECT_THAT(text_.str(), HasSubstr("checkpoint of step 3 written: " +
                                     CheckpointDirectory(directory_.path(), 3).string()));
}

TEST_F(CheckpointsTest, OneInTheBackgroundIsSaidWhenItIsThere) {
  std::latch end(1);
  const auto checkpoints = Make([&](std::string_view call) {
    if (call == "rename") end.wait();
  });
  Save(*checkpoints, 3, kForCopy);
  checkpoints->Look();
  EXPECT_FALSE(Has(3));
  EXPECT_EQ(text_.str(), "");
  end.count_down();
  LookUntil(*checkpoints, [&] { return !text_.str().empty(); });
  EXPECT_TRUE(Has(3));
  EXPECT_EQ(CountIn(text_.str(), "checkpoint of step 3 written: "), 1);
}

TEST_F(CheckpointsTest, WithoutBackgroundEachIsWaitedFor) {
  config_.checkpoint_in_background = false;
  const std::thread::id own = std::this_thread::get_id();
  const auto checkpoints =
      Make([&](std::string_view) { EXPECT_EQ(std::this_thread::get_id(), own); });
  Save(*checkpoints, 3, kForCopy);
  EXPECT_TRUE(Has(3));
}

// What was written before the next copy is taken is whole, in the order of the steps.
TEST_F(CheckpointsTest, TheNextWaitsForTheLastAndSaysSoOnce) {
  std::vector<std::string> calls;
  const auto checkpoints = Make([&](std::string_view call) {
    if (call == "open" && (calls.empty() || calls.back() == "rename")) calls.emplace_back("begin");
    if (call != "rename") return;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    calls.emplace_back(call);
  });
  for (std::int64_t step = 1; step <= 3; ++step) {
    Save(*checkpoints, step, kForCopy);
    EXPECT_TRUE(step == 1 || Has(step - 1));
  }
  Save(*checkpoints, 4, kForFile);
  EXPECT_THAT(calls, ElementsAre("begin", "rename", "begin", "rename", "begin", "rename", "begin",
                                 "rename"));
  EXPECT_THAT(text_.str(), HasSubstr("warning: the checkpoint of step 1 was still being written "
                                     "when that of step 2 was due: training waited "));
  EXPECT_EQ(CountIn(text_.str(), "training waited"), 1);
  for (int step = 1; step <= 4; ++step) {
    EXPECT_EQ(CountIn(text_.str(), "checkpoint of step " + std::to_string(step) + " written"), 1);
  }
}

TEST_F(CheckpointsTest, AWaitOfTheLastOneIsNotSaid) {
  const auto checkpoints = Make([&](std::string_view call) {
    if (call == "rename") std::this_thread::sleep_for(std::chrono::milliseconds(150));
  });
  Save(*checkpoints, 1, kForCopy);
  Save(*checkpoints, 2, kForFile);
  EXPECT_TRUE(Has(1) && Has(2));
  EXPECT_THAT(text_.str(), Not(HasSubstr("training waited")));
}

TEST_F(CheckpointsTest, WhatTheThreadThrowsIsThrownBetweenSteps) {
  int renames = 0;
  const auto checkpoints = Make([&](std::string_view call) {
    if (call == "rename" && ++renames == 2) throw Error(EX_OSERR, "cannot rename: a disk fails");
  });
  Save(*checkpoints, 1, kForCopy);
  Save(*checkpoints, 2, kForCopy);
  EXPECT_EQ(FailureOf(*checkpoints, EX_OSERR), "cannot rename: a disk fails");
  EXPECT_THAT(Listing(directory_.path()), ElementsAre("step-0000000001"));
  EXPECT_THAT(text_.str(), Not(HasSubstr("step 2 written")));
}

TEST_F(CheckpointsTest, OneThatCouldNotBeWrittenIsNotInTheWayOfTheNext) {
  int renames = 0;
  const auto checkpoints = Make([&](std::string_view call) {
    if (call == "rename" && ++renames == 1) throw Error(EX_OSERR, "cannot rename: a disk fails");
  });
  Save(*checkpoints, 1, kForCopy);
  Save(*checkpoints, 2, kForCopy);
  EXPECT_EQ(FailureOf(*checkpoints, EX_OSERR), "cannot rename: a disk fails");
  LookUntil(*checkpoints, [this] { return CountIn(text_.str(), "step 2 written") == 1; });
  EXPECT_THAT(Listing(directory_.path()), ElementsAre("step-0000000002"));
}

TEST_F(CheckpointsTest, OneThatCouldNotBeWrittenIsAWarningWhereTheLastOneIs) {
  int renames = 0;
  const auto checkpoints = Make([&](std::string_view call) {
    if (call == "rename" && ++renames == 1) throw Error(EX_OSERR, "cannot rename: a disk fails");
  });
  Save(*checkpoints, 1, kForCopy);
  Save(*checkpoints, 2, kForFile);
  checkpoints->Finish();
  EXPECT_THAT(text_.str(), HasSubstr("warning: cannot rename: a disk fails; a newer checkpoint was "
                                     "written"));
  EXPECT_THAT(Listing(directory_.path()), ElementsAre("step-0000000002"));
}

TEST_F(CheckpointsTest, WhatTheLastSaveThrowsIsItsOwnFailure) {
  const auto checkpoints = Make([&](std::string_view call) {
    if (call == "rename") throw Error(EX_OSERR, "cannot rename: a disk fails");
  });
  Save(*checkpoints, 1, kForCopy);
  EXPECT_THROW(Save(*checkpoints, 2, kForFile), Error);
  EXPECT_THAT(Listing(directory_.path()), IsEmpty());
}

// Where another error ends the run, nobody looks any more.
TEST_F(CheckpointsTest, TheEndWaitsForTheFileAndLogsWhatBecameOfIt) {
  auto checkpoints = Make();
  Save(*checkpoints, 1, kForCopy);
  checkpoints.reset();
  EXPECT_TRUE(Has(1));
  EXPECT_THAT(text_.str(), HasSubstr("info: checkpoint of step 1 written: "));
  checkpoints = Make([](std::string_view call) {
    if (call == "rename") throw Error(EX_OSERR, "cannot rename: a disk fails");
  });
  Save(*checkpoints, 2, kForCopy);
  checkpoints.reset();
  EXPECT_FALSE(Has(2));
  EXPECT_THAT(text_.str(), HasSubstr("error: cannot rename: a disk fails"));
}

TEST_F(CheckpointsTest, WeightsThatAreNoNumbersAreNotWritten) {
  const auto checkpoints = Make();
  BreakTheWeights();
  Save(*checkpoints, 1, kForCopy);
  EXPECT_THAT(FailureOf(*checkpoints, EX_SOFTWARE),
              AllOf(HasSubstr("the weights are not written: conv1.weight has the value nan"),
                    HasSubstr("diverged")));
  EXPECT_FALSE(fs::exists(directory_.path() / "checkpoints"));
}

// A run that can go back is about to find them in its next step; one that does not, ends.
TEST_F(CheckpointsTest, WeightsThatAreNoNumbersAreLeftOutOnceByARunThatCanGoBack) {
  config_.on_nan = OnNan::kRollback;
  const auto checkpoints = Make();
  BreakTheWeights();
  Save(*checkpoints, 1, kForCopy);
  checkpoints->FinishForRollback();
  EXPECT_THAT(text_.str(), HasSubstr("warning: the weights are not written: conv1.weight has"));
  // Gone back: the next is the first again.
  Save(*checkpoints, 2, kForCopy);
  checkpoints->Finish();
  Save(*checkpoints, 3, kForCopy);
  EXPECT_THAT(FailureOf(*checkpoints, EX_SOFTWARE), HasSubstr("the weights are not written"));
  EXPECT_FALSE(fs::exists(directory_.path() / "checkpoints"));
}

// The weights may become anything once the copy is taken.
TEST_F(CheckpointsTest, WhatIsWrittenIsTheStateOfItsStep) {
  std::latch end(1);
  const auto checkpoints = Make([&](std::string_view call) {
    if (call == "mkdir") end.wait();
  });
  Save(*checkpoints, 1, kForCopy);
  BreakTheWeights();
  end.count_down();
  LookUntil(*checkpoints, [&] { return Has(1) && !text_.str().empty(); });
  const auto model = TensorsAt(directory_.path(), 1);
  EXPECT_TRUE(std::isfinite(model.at("conv1.weight").front()));
}

TEST_F(CheckpointsTest, AnOrderIsObeyedWhenItsFileIsWritten) {
  const TemporaryDirectory orders;
  RunRequests requests({.directory = orders.path(), .limit = {}, .log = log_});
  std::ofstream(orders.path() / "checkpoint");
  std::latch end(1);
  const auto checkpoints = Make(
      [&](std::string_view call) {
        if (call == "rename") end.wait();
      },
      &requests);
  EXPECT_TRUE(requests.Look().save);
  Save(*checkpoints, 1, kForCopy);
  EXPECT_FALSE(requests.Look().save);
  EXPECT_TRUE(fs::exists(orders.path() / "checkpoint"));
  end.count_down();
  LookUntil(*checkpoints, [&] { return Has(1) && !fs::exists(orders.path() / "checkpoint"); });
}

// What both threads use is no atomic: who is done has handed it over.
TEST(BackgroundThread, RunsOnePieceAfterTheOtherAndHandsOverWhatItMade) {
  BackgroundThread thread("a thread");
  std::vector<int> made;
  for (int i = 0; i < 3; ++i) {
    thread.Start([&made, i] { made.push_back(i); });
    EXPECT_TRUE(thread.has_work());
    thread.Wait();
    EXPECT_FALSE(thread.has_work());
  }
  EXPECT_THAT(made, ElementsAre(0, 1, 2));
}

TEST(BackgroundThread, RunsBesideTheThreadThatGivesIt) {
  BackgroundThread thread("a thread");
  std::latch begun(1);
  std::latch end(1);
  const std::thread::id giver = std::this_thread::get_id();
  std::thread::id runner;
  thread.Start([&] {
    runner = std::this_thread::get_id();
    begun.count_down();
    end.wait();
  });
  begun.wait();
  EXPECT_FALSE(thread.Done());
  EXPECT_TRUE(thread.has_work());
  end.count_down();
  while (!thread.Done()) std::this_thread::yield();
  EXPECT_FALSE(thread.has_work());
  EXPECT_NE(runner, giver);
}

TEST(BackgroundThread, TakesNoSecondPieceBeforeTheFirstWasTakenBack) {
  BackgroundThread thread("a thread");
  std::latch end(1);
  thread.Start([&] { end.wait(); });
  EXPECT_THROW(thread.Start([] {}), Error);
  end.count_down();
  thread.Wait();
  thread.Start([] {});
  thread.Wait();
}

TEST(BackgroundThread, ThrowsOnceWhatTheWorkThrew) {
  BackgroundThread thread("a thread");
  const auto message_of = [](const auto& call) { return tests::Rejection<Error>(call); };
  thread.Start([] { throw Error(EX_OSERR, "the disk is full"); });
  EXPECT_EQ(message_of([&] { thread.Wait(); }), "the disk is full");
  EXPECT_FALSE(thread.has_work());
  thread.Start([] { throw Error(EX_OSERR, "so it is"); });
  EXPECT_EQ(message_of([&] {
              while (!thread.Done()) std::this_thread::yield();
            }),
            "so it is");
  thread.Start([] {});
  EXPECT_EQ(message_of([&] { thread.Wait(); }), "");
}

TEST(BackgroundThread, EndsWhenItsWorkIsDone) {
  bool is_done = false;
  bool has_failed = false;
  {
    BackgroundThread thread("a thread");
    thread.Start([&] { is_done = true; });
  }
  EXPECT_TRUE(is_done);
  {
    BackgroundThread thread("a thread");
    thread.Start([&] {
      has_failed = true;
      throw Error(EX_OSERR, "nobody is told");
    });
  }
  EXPECT_TRUE(has_failed);
}

TEST(BackgroundThread, IsOfALowerPriority) {
  BackgroundThread thread("a thread");
  const int own = ::getpriority(PRIO_PROCESS, 0);
  int of_thread = -100;
  thread.Start([&] { of_thread = ::getpriority(PRIO_PROCESS, 0); });
  thread.Wait();
  EXPECT_EQ(of_thread, std::min(own + 10, 19));
}

TEST(BackgroundThread, IsNamedWhereItCannotBeHad) {
  EXPECT_EXIT(WithFewThreads([] {
                std::vector<std::unique_ptr<BackgroundThread>> threads;
                try {
                  for (int i = 0; i < 100; ++i) {
                    threads.push_back(std::make_unique<BackgroundThread>("the hundredth thread"));
                  }
                } catch (const Error& error) {
                  return std::string(error.what()).starts_with("cannot start the hundredth thread");
                }
                return false;
              }),
              testing::ExitedWithCode(0), "");
}

using ValuesByName = std::map<std::string, std::vector<float>>;

ValuesByName ValuesIn(std::span<const TensorReader> tensors) {
  ValuesByName values;
  for (const TensorReader& tensor : tensors) {
    const auto* data = static_cast<const float*>(tensor.data);
    values[tensor.name] = {data, data + tensor.shape.elements()};
  }
  return values;
}

ValuesByName ValuesIn(const std::vector<HostTensor>& tensors) {
  ValuesByName values;
  for (const HostTensor& tensor : tensors) values[tensor.name] = tensor.values;
  return values;
}

CheckpointState StateOfRanks(int ranks, std::int64_t step) {
  CheckpointState state{.step = step, .world_size = ranks};
  return state;
}

// A network with numbers in all of its parts, of two seeds that can be told from each other.
class NetworkToCopy {
 public:
  explicit NetworkToCopy(const std::string& backend)
      : backend_(MakeBackend(backend, {.threads = 1})),
        network_(*backend_, {"resnet_tiny", 2, 32, 32, 4, 0}),
        stream_(backend_->MakeStream()) {
    Fill(1);
  }

  void Fill(std::uint64_t seed) {
    Initialize(network_, {seed, WeightInit::kFanOut, false}, *stream_);
    for (const Parameter& parameter : network_.parameters()) {
      if (parameter.spec.statistic) continue;
      std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
      std::iota(values.begin(), values.end(), static_cast<float>(seed));
      network_.Import(Network::Part::kMomentum, parameter, values, *stream_);
    }
  }

  Backend& backend() { return *backend_; }
  Network& network() { return network_; }
  Stream& stream() { return *stream_; }
  std::vector<float> statistics() { return ExportStatistics(network_, *stream_); }
  ValuesByName part(Network::Part part) {
    return ValuesIn(ExportPart(network_, part, "", *stream_));
  }

 private:
  std::unique_ptr<Backend> backend_;
  Network network_;
  std::unique_ptr<Stream> stream_;
};

TEST(SnapshotCopy, HasTheBitsOfTheStateOnEveryBackEndWhateverTheNextStepDoes) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    NetworkToCopy source(backend);
    SnapshotCopy copy(source.backend(), source.network());
    const ValuesByName values = source.part(Network::Part::kValue);
    const ValuesByName momentum = source.part(Network::Part::kMomentum);
    copy.Take(source.network(), StateOfRanks(1, 7), {source.statistics(), {}}, source.stream());
    source.Fill(2);
    EXPECT_EQ(copy.state().step, 7);
    EXPECT_EQ(ValuesIn(copy.model()), values);
    EXPECT_EQ(ValuesIn(copy.optimizer()), momentum);

    copy.Take(source.network(), StateOfRanks(1, 8), {source.statistics(), {}}, source.stream());
    EXPECT_EQ(ValuesIn(copy.model()), source.part(Network::Part::kValue));
    EXPECT_NE(ValuesIn(copy.model()), values);
  }
}

TEST(SnapshotCopy, HasTheMeanOfTheStatisticsAndThoseOfEachRank) {
  NetworkToCopy source("reference");
  SnapshotCopy copy(source.backend(), source.network());
  const std::size_t count = source.statistics().size();
  std::vector<float> rows(count, 2);
  rows.resize(2 * count, 4);
  for (int i = 0; i < 2; ++i) {
    copy.Take(source.network(), StateOfRanks(2, i), {rows, {}}, source.stream());
    EXPECT_THAT(ValuesIn(copy.model()).at("bn1.running_mean"), Each(3.0F));
    EXPECT_EQ(ValuesIn(copy.model()).at("conv1.weight"),
              source.part(Network::Part::kValue).at("conv1.weight"));
    const TensorReader& all = copy.optimizer().back();
    EXPECT_EQ(all.name, "rank_statistics");
    EXPECT_EQ(all.shape, Shape({2, static_cast<std::int64_t>(count)}));
    EXPECT_EQ(ValuesIn(copy.optimizer()).at("rank_statistics"), rows);
    EXPECT_EQ(copy.optimizer().size(), source.part(Network::Part::kMomentum).size() + 1);
  }
}

}  // namespace
}  // namespace trainer
