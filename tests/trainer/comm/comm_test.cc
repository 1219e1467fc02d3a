// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "tests/trainer/comm/conformance.h"
#include "tests/trainer/comm/ranks.h"
#include "trainer/comm/factory.h"
#include "trainer/comm/ordered_worker.h"
#include "trainer/comm/single.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OrderedWorker, RunsEverythingInOrder) {
  std::vector<int> seen;
  {
    OrderedWorker worker;
    for (int i = 0; i < 1000; ++i) {
      worker.Post([&seen, i] { seen.push_back(i); });
      if (i % 100 == 0) {
        worker.Wait();
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(i) + 1);
      }
    }
  }  // the destructor runs what is queued
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(OrderedWorker, StopsAtTheFirstExceptionAndPassesItOn) {
  OrderedWorker worker;
  std::atomic<bool> ran_on = false;
  std::atomic<bool> go = false;
  worker.Post([&] {
    while (!go) std::this_thread::yield();
    throw Error(EX_UNAVAILABLE, "rank 1 died");
  });
  worker.Post([&] { ran_on = true; });
  go = true;
  EXPECT_THROW(worker.Wait(), Error);
  EXPECT_THROW(worker.Wait(), Error);
  EXPECT_THROW(worker.Post([] {}), Error);
  EXPECT_FALSE(ran_on);
}

TEST(SingleCommunicator, DoesWhatACommunicatorMust) {
  const auto comm = MakeSingleCommunicator();
  NoStream stream;
  ExpectACommunicator(*comm, stream);
}

CommOptions Options(int rank, int size, const std::string& launcher) {
  CommOptions options;
  options.rank = rank;
  options.size = size;
  options.launcher = launcher;
  return options;
}

std::string Refusal(const CommOptions& options, int exit_code = EX_CONFIG) {
  try {
    MakeCommunicator(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), exit_code);
    return error.what();
  }
  return "";
}

TEST(MakeCommunicator, NeedsNothingForAWorldOfOne) {
  EXPECT_EQ(MakeCommunicator(Options(0, 1, ""))->size(), 1);
  EXPECT_EQ(MakeCommunicator(Options(0, 1, "srun"))->size(), 1);
}

TEST(MakeCommunicator, RefusesToBecomeManyWorldsOfOne) {
  CommOptions options = Options(0, 1, "");
  options.started_tasks = 4;
  EXPECT_THAT(Refusal(options), HasSubstr("started 4 times"));
  EXPECT_THAT(Refusal(options), HasSubstr("put ddlrun in front"));
  options = Options(0, 4, "local");
  options.started_tasks = 2;
  EXPECT_THAT(Refusal(options), HasSubstr("WORLD_SIZE says 4"));
}

TEST(MakeCommunicator, RefusesRanksThatNobodyStarted) {
  EXPECT_THAT(Refusal(Options(1, 4, "")), HasSubstr("start them with ddlrun -n 4"));
  EXPECT_THAT(Refusal(Options(1, 4, "local")), HasSubstr("DDLRUN_RUN_DIR is not set"));
}

TEST(MakeCommunicator, RefusesNumbersThatMakeNoSense) {
  EXPECT_THAT(Refusal(Options(4, 4, "local")), HasSubstr("rank 4 of 4"));
  EXPECT_THAT(Refusal(Options(-1, 4, "local")), HasSubstr("makes no sense"));
  EXPECT_THAT(Refusal(Options(0, 0, "")), HasSubstr("makes no sense"));
  CommOptions options = Options(0, 1000, "local");
  options.run_dir = "/nonexistent";
  EXPECT_THAT(Refusal(options), HasSubstr("more than 256"));
}

TEST(MakeCommunicator, RefusesSeveralNodesWithoutPmix) {
  for (const char* pmi : {"none", "pmi2"}) {
    CommOptions options = Options(1, 4, "srun");
    options.pmi = pmi;
    options.run_dir = "/nonexistent";
    const auto says_what_is_needed =
        AllOf(HasSubstr("--mpi=" + std::string(pmi) + ", and ddltraind needs PMIx"),
              HasSubstr("--launcher=mpirun"));
    EXPECT_THAT(Refusal(options, EX_UNAVAILABLE), says_what_is_needed);
    options.is_one_node = true;  // and no run directory on it
    options.run_dir = "";
    EXPECT_THAT(Refusal(options, EX_UNAVAILABLE), says_what_is_needed);
  }
}

TEST(MakeCommunicator, LetsRanksOfSrunWithoutPmixMeetOnOneNode) {
  LocalRanks ranks(2);
  EXPECT_THAT(ranks.Run([](CommOptions options) {
    options.launcher = "srun";
    options.pmi = "none";
    options.is_one_node = true;
    EXPECT_EQ(MakeCommunicator(options)->description(), "shared memory, 2 ranks");
  }),
              ElementsAre(0, 0));
}

TEST(MakeCommunicator, LetsLocalRanksMeetThroughSharedMemory) {
  LocalRanks ranks(2);
  EXPECT_THAT(ranks.Run([](const CommOptions& options) {
    EXPECT_EQ(MakeCommunicator(options)->description(), "shared memory, 2 ranks");
  }),
              ElementsAre(0, 0));
}

}  // namespace
}  // namespace trainer
