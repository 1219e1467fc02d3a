// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/shared_memory.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/trainer/comm/conformance.h"
#include "tests/trainer/comm/ranks.h"

namespace trainer {
namespace {

class SharedMemory : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, SharedMemory, ::testing::Values(1, 2, 3, 4));

TEST_P(SharedMemory, DoesWhatACommunicatorMust) {
  LocalRanks ranks(GetParam());
  EXPECT_THAT(ranks.Run([](const CommOptions& options) {
    const auto comm = MakeSharedMemoryCommunicator(options);
    EXPECT_EQ(comm->rank(), options.rank);
    EXPECT_EQ(comm->size(), options.size);
    NoStream stream;
    ExpectACommunicator(*comm, stream);
  }),
              Each(0));
  EXPECT_TRUE(fs::is_empty(ranks.run_dir()));
}

TEST(SharedMemorySpans, AreTheSumsOfGradientsAlone) {
  LocalRanks ranks(2);
  EXPECT_THAT(ranks.Run([](const CommOptions& options) {
    SpanRecorder spans(10);
    CommOptions with_spans = options;
    with_spans.spans = &spans;
    const auto comm = MakeSharedMemoryCommunicator(with_spans);
    std::vector<float> values(300);
    const auto sum = [&](std::size_t count) {
      NoStream stream;
      comm->StartAllReduce(values.data(), count, DType::kFloat32, Reduction::kSum, stream);
      comm->Finish(stream);
    };
    sum(100);
    spans.Start();
    sum(300);
    comm->Barrier();
    spans.Stop();
    sum(200);
    const std::vector<Span> found = spans.Spans();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, SpanKind::kAllReduce);
    EXPECT_EQ(found[0].number, 1200);  // bytes
    EXPECT_LE(found[0].begin, found[0].end);
  }),
              Each(0));
}

TEST(SharedMemoryFile, IsPrivateAndGoneOnceTheRanksHaveMet) {
  LocalRanks ranks(2);
  EXPECT_THAT(ranks.Run([&](const CommOptions& options) {
    const std::string path = options.run_dir + "/ranks-0.shm";
    if (options.rank == 1) {
      struct stat status {};
      while (::stat(path.c_str(), &status) != 0) ::usleep(1000);
      EXPECT_EQ(status.st_mode & 0777U, 0600U);
    }
    const auto comm = MakeSharedMemoryCommunicator(options);
    comm->Barrier();
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
  }),
              Each(0));
}

// Rank 1 comes to its end by `death`; the others wait for it in a sum.  Returns the exit codes.
std::vector<int> RunWithDeath(LocalRanks& ranks, const std::function<void(Communicator&)>& death) {
  return ranks.Run([&](const CommOptions& options) {
    const auto comm = MakeSharedMemoryCommunicator(options);
    comm->Barrier();
    if (options.rank == 1) return death(*comm);
    NoStream stream;
    std::vector<float> values(1'000'000);
    comm->StartAllReduce(values.data(), values.size(), DType::kFloat32, Reduction::kSum, stream);
    comm->Finish(stream);
  });
}

// Robust mutexes, by which the kernel tells of a death.  QEMU does not emulate them.
bool KernelTellsOfDeaths() {
  void* head = nullptr;
  std::size_t length = 0;
  return ::syscall(SYS_get_robust_list, 0, &head, &length) == 0;
}

TEST(SharedMemoryFailure, NamesARankThatIsKilledWithinSeconds) {
  if (!KernelTellsOfDeaths()) GTEST_SKIP() << "robust mutexes are not emulated";
  LocalRanks ranks(3);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(RunWithDeath(ranks, [](Communicator&) { ::raise(SIGKILL); }),
              ElementsAre(EX_UNAVAILABLE, 128 + SIGKILL, EX_UNAVAILABLE));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  for (const int rank : {0, 2}) {
    EXPECT_THAT(ranks.ErrorOf(rank), HasSubstr("rank 1 (process "));
    EXPECT_THAT(ranks.ErrorOf(rank), HasSubstr(") died while rank " + std::to_string(rank)));
  }
}

TEST(SharedMemoryFailure, NamesARankThatExitsInTheMiddle) {
  if (!KernelTellsOfDeaths()) GTEST_SKIP() << "robust mutexes are not emulated";
  LocalRanks ranks(2);
  EXPECT_THAT(RunWithDeath(ranks, [](Communicator&) { ::_exit(3); }),
              ElementsAre(EX_UNAVAILABLE, 3));
  EXPECT_THAT(ranks.ErrorOf(0), HasSubstr(") died while"));
}

TEST(SharedMemoryFailure, NamesARankThatLeavesEarly) {
  LocalRanks ranks(2);
  EXPECT_THAT(RunWithDeath(ranks, [](Communicator&) {}), ElementsAre(EX_UNAVAILABLE, 0));
  EXPECT_THAT(ranks.ErrorOf(0), HasSubstr(") left while"));
}

TEST(SharedMemoryFailure, PassesOnWhoAbortedAndWithWhichCode) {
  LocalRanks ranks(3);
  EXPECT_THAT(RunWithDeath(ranks, [](Communicator& comm) { comm.Abort(EX_DATAERR); }),
              ElementsAre(EX_UNAVAILABLE, EX_DATAERR, EX_UNAVAILABLE));
  EXPECT_THAT(ranks.ErrorOf(2), HasSubstr("ended the job with exit code 65"));
}

TEST(SharedMemoryFailure, NamesTheRanksThatStall) {
  LocalRanks ranks(2);
  const auto codes = ranks.Run([](CommOptions options) {
    options.stall_seconds = 0.5;
    const auto comm = MakeSharedMemoryCommunicator(options);
    if (options.rank == 1) ::usleep(2'000'000);
    comm->Barrier();
  });
  EXPECT_EQ(codes[0], EX_UNAVAILABLE);
  EXPECT_THAT(ranks.ErrorOf(0), HasSubstr("rank 0 has waited"));
  EXPECT_THAT(ranks.ErrorOf(0), HasSubstr("for these ranks: 1"));
}

TEST(SharedMemoryFailure, NamesTheRanksThatNeverCame) {
  LocalRanks ranks(3);
  const auto codes = ranks.Run([](CommOptions options) {
    options.rendezvous_seconds = 0.5;
    if (options.rank != 2) MakeSharedMemoryCommunicator(options);
  });
  EXPECT_THAT(codes, ElementsAre(EX_UNAVAILABLE, EX_UNAVAILABLE, 0));
  EXPECT_THAT(ranks.ErrorOf(0) + ranks.ErrorOf(1), HasSubstr("seconds: 2"));
}

TEST(SharedMemoryFailure, NoticesThatRank0NeverCame) {
  LocalRanks ranks(2);
  const auto codes = ranks.Run([](CommOptions options) {
    options.rendezvous_seconds = 0.3;
    if (options.rank == 1) MakeSharedMemoryCommunicator(options);
  });
  EXPECT_THAT(codes, ElementsAre(0, EX_UNAVAILABLE));
  EXPECT_THAT(ranks.ErrorOf(1), HasSubstr("rank 0 did not appear within"));
}

TEST(SharedMemoryFailure, RejectsTwoProcessesOfOneRank) {
  LocalRanks ranks(3);
  const auto codes = ranks.Run([](CommOptions options) {
    options.rendezvous_seconds = 1;
    options.rank = std::min(options.rank, 1);  // 0, 1, 1
    MakeSharedMemoryCommunicator(options);
  });
  EXPECT_THAT(codes, Contains(EX_CONFIG));
  EXPECT_THAT(ranks.ErrorOf(1) + ranks.ErrorOf(2),
              HasSubstr("two processes say that they are rank 1"));
}

TEST(SharedMemoryFailure, RejectsRanksThatDisagreeOnTheirNumber) {
  LocalRanks ranks(2);
  const auto codes = ranks.Run([](CommOptions options) {
    options.rendezvous_seconds = 1;
    if (options.rank == 0) options.size = 3;
    MakeSharedMemoryCommunicator(options);
  });
  EXPECT_EQ(codes[1], EX_CONFIG);
  EXPECT_THAT(ranks.ErrorOf(1), HasSubstr("has a world of 2 ranks, rank 0 of 3"));
}

TEST(SharedMemoryFailure, RejectsAFileThatIsThereAlready) {
  LocalRanks ranks(1);
  const auto codes = ranks.Run([](const CommOptions& options) {
    const auto first = MakeSharedMemoryCommunicator(options);
    ::symlink("/dev/null", (options.run_dir + "/ranks-0.shm").c_str());
    MakeSharedMemoryCommunicator(options);
  });
  EXPECT_THAT(codes, ElementsAre(EX_OSERR));
  EXPECT_THAT(ranks.ErrorOf(0), HasSubstr("ranks-0.shm"));
}

TEST(SharedMemoryFailure, SaysThatOtherTypesAreNotSummed) {
  LocalRanks ranks(1);
  const auto codes = ranks.Run([](const CommOptions& options) {
    NoStream stream;
    std::uint16_t value = 0;
    MakeSharedMemoryCommunicator(options)->StartAllReduce(&value, 1, DType::kFloat16,
                                                          Reduction::kSum, stream);
  });
  EXPECT_THAT(codes, ElementsAre(EX_SOFTWARE));
}

}  // namespace
}  // namespace trainer
