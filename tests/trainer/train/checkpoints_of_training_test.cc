// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints (train/state/checkpoints.h) of whole trainings.

#include <csignal>
#include <future>
#include <thread>

#include "tests/support/test.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"
#include "trainer/train/state/checkpoints.h"

namespace trainer {
namespace {

TrainConfig SavingConfig(const fs::path& model_dir, std::int64_t every) {
  TrainConfig config = SmallConfig(model_dir);
  config.checkpoint_every = every;
  config.keep_checkpoints = 100;
  return config;
}

// Returns what is logged.
std::string Train(const TrainConfig& config, const WriteHook& hook,
                  const std::function<void(std::int64_t)>& before_step = {}) {
  OneRank alone;
  std::ostringstream log;
  RunRank(config, alone, log, 0, "reference", nullptr, before_step, hook);
  return log.str();
}

std::map<std::string, std::string> BytesOfAll(const fs::path& model_dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(model_dir)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), model_dir).string()] = tests::TextOf(entry.path());
    }
  }
  return files;
}

TEST(CheckpointsOfATraining, AreTheSameBytesWithAndWithoutBackground) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const auto files = [&](bool in_background) {
      const TemporaryDirectory directory;
      TrainConfig config = SavingConfig(directory.path(), 1);
      config.checkpoint_in_background = in_background;
      RunRanks(ranks, [&](Communicator& communicator) {
        std::ostringstream log;
        // Slower than a step.
        RunRank(config, communicator, log, 0, "reference", nullptr, {}, [](std::string_view call) {
          if (call == "mkdir") std::this_thread::sleep_for(std::chrono::milliseconds(20));
        });
      });
      return BytesOfAll(directory.path());
    };
    const auto with = files(true);
    EXPECT_EQ(with.size(), 6U * 3);
    EXPECT_TRUE(with == files(false));
  }
}

TEST(CheckpointsOfATraining, AreWrittenWhileItGoesOn) {
  const TemporaryDirectory directory;
  std::promise<void> went_on;
  std::future<void> continues = went_on.get_future();
  bool waited = false;
  Train(
      SavingConfig(directory.path(), 2),
      [&](std::string_view) {
        if (std::exchange(waited, true)) return;
        EXPECT_EQ(continues.wait_for(std::chrono::seconds(60)), std::future_status::ready);
      },
      [&](std::int64_t step) {
        if (step == 3) went_on.set_value();
      });
  EXPECT_TRUE(waited);
  EXPECT_TRUE(fs::exists(CheckpointDirectory(directory.path(), 2)));
}

TEST(CheckpointsOfATraining, KeepsEveryMthForEver) {
  const TemporaryDirectory directory;
  TrainConfig config = SavingConfig(directory.path(), 1);
  config.keep_checkpoints = 1;
  config.keep_every = 2;
  config.schedule.num_iter = 5;
  Train(config, {});
  EXPECT_THAT(Listing(directory.path()),
              ElementsAre("step-0000000002", "step-0000000004", "step-0000000005"));
}

// One that is written in background at the latest after the step behind the next one, with the
// weights of then.
TEST(CheckpointsOfATraining, ThatCannotBeWrittenEndIt) {
  for (const bool in_background : {true, false}) {
    const TemporaryDirectory directory;
    TrainConfig config = SavingConfig(directory.path(), 2);
    config.checkpoint_in_background = in_background;
    config.schedule.num_iter = 100;
    int renames = 0;
    std::int64_t last_step = 0;
    std::string message;
    try {
      Train(
          config,
          [&](std::string_view call) {
            if (call == "rename" && ++renames == 2) throw Error(EX_OSERR, "the disk is full");
          },
          [&](std::int64_t step) { last_step = step; });
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_OSERR);
      message = error.what();
    }
    if (in_background) {
      EXPECT_EQ(message,
                fmt::format("the disk is full; the weights of step {} were saved", last_step + 1));
      EXPECT_LE(last_step, 7);
      EXPECT_EQ(Listing(directory.path()).back(), fmt::format("step-{:010}", last_step + 1));
    } else {
      EXPECT_EQ(message, "the disk is full");
      EXPECT_LE(last_step, 3);
      EXPECT_THAT(Listing(directory.path()), ElementsAre("step-0000000002"));
    }
  }
}

// The steps at which the thread that writes is killed, with the whole process: each call but the
// many writes of a file, of which the first stands for all.
TEST(CheckpointsOfATraining, GoOnBitEqualFromAKillBeforeEachCallThatWrites) {
  const TemporaryDirectory whole;
  std::vector<std::string> calls;
  Train(SavingConfig(whole.path(), 2), [&](std::string_view call) { calls.emplace_back(call); });
  const auto end_of_first = std::ranges::find(calls, "rename");
  ASSERT_NE(end_of_first, calls.end());
  const auto end_of_second = std::find(end_of_first + 2, calls.end(), "rename");
  ASSERT_NE(end_of_second, calls.end());
  int kills = 0;
  for (auto call = end_of_first + 2; call <= end_of_second + 1; ++call) {
    if (*call == "write" && *(call - 1) != "open") continue;
    const std::ptrdiff_t fatal = call - calls.begin();
    SCOPED_TRACE(*call + ", number " + std::to_string(fatal));
    const TemporaryDirectory directory;
    const TrainConfig config = SavingConfig(directory.path(), 2);
    const int status = RunInChild([&] {
      std::ptrdiff_t number = 0;
      Train(config, [&](std::string_view) {
        if (number++ == fatal) std::raise(SIGKILL);
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_FALSE(fs::exists(CheckpointDirectory(directory.path(), 6)));
    EXPECT_THAT(Train(config, {}), HasSubstr("resumed from step "));
    const auto bytes = BytesOfAll(CheckpointDirectory(directory.path(), 6));
    EXPECT_TRUE(bytes == BytesOfAll(CheckpointDirectory(whole.path(), 6)));
    ++kills;
  }
  EXPECT_EQ(kills, 16);
}

}  // namespace
}  // namespace trainer
