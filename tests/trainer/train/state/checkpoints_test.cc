// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/checkpoints.h"

#include <latch>
#include <thread>

#include "tests/support/test.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"
#include "trainer/model/network.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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
    try {
      LookUntil(checkpoints, [] { return false; });
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), exit_code) << error.what();
      return error.what();
    }
    return "none";
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
  ThreadWorld world_{1};
  ThreadCommunicator alone_{world_, 0};
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

TEST_F(CheckpointsTest, WhatTheThreadThrowsIsThrownByTheNextSave) {
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
  const auto model = TensorsOf(CheckpointDirectory(directory_.path(), 1) / "model.safetensors");
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

}  // namespace
}  // namespace trainer
