// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>

#include <latch>
#include <thread>

#include "tests/support/test.h"
#include "tests/trainer/core/few_threads.h"
#include "trainer/core/error.h"
#include "trainer/train/state/checkpoints.h"

namespace trainer {
namespace {

using testing::ElementsAre;

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
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
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

}  // namespace
}  // namespace trainer
