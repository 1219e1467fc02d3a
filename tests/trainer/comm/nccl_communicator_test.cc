// SPDX-License-Identifier: Apache-2.0
//
// The communicator's own code on an emulated NCCL: ranks are threads, a stream is a queue with a
// thread.

#include "trainer/comm/nccl_communicator.h"

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/comm/conformance.h"
#include "tests/trainer/comm/nccl_emulator/emulated_nccl.h"
#include "tests/trainer/comm/queue_stream.h"
#include "tests/trainer/train/thread_ranks.h"

namespace trainer {
namespace {

using nccl_emulator::Ends;

constexpr std::size_t kCount = 1000;

std::unique_ptr<Communicator> MakeNccl(Communicator& host, const NcclOptions& options = {}) {
  return MakeNcclCommunicator(host,
                              {std::make_unique<QueueStream>(), std::make_unique<QueueEvent>(),
                               std::make_unique<QueueEvent>()},
                              options);
}

class NcclTest : public testing::Test {
 protected:
  NcclTest() {
    nccl_emulator::UseStreams({.queue = [](cudaStream_t stream, std::function<void()> work) {
      reinterpret_cast<QueueStream*>(stream)->Post(std::move(work));
    }});
    nccl_emulator::StartWith(ncclSuccess, "");
    nccl_emulator::SetProblem("");
    nccl_emulator::RegisterWith(ncclSuccess);
    nccl_emulator::TakeEnds();
  }
  ~NcclTest() override { nccl_emulator::UseStreams({}); }
};

// What each rank's Error said, "" if there was none, with its exit code in front.
std::vector<std::string> Errors(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  RunRanks(ranks, [&](Communicator& host) {
    try {
      body(host);
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(host.rank())] =
          std::to_string(error.exit_code()) + " " + error.what();
    }
  });
  return errors;
}

class NcclRanks : public NcclTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, NcclRanks, ::testing::Values(1, 2, 3, 4));

TEST_P(NcclRanks, DoWhatACommunicatorMust) {
  RunRanks(GetParam(), [](Communicator& host) {
    QueueStream stream;
    const auto comm = MakeNccl(host);
    EXPECT_EQ(comm->rank(), host.rank());
    EXPECT_EQ(comm->size(), host.size());
    EXPECT_TRUE(comm->reduces_device_memory());
    ExpectACommunicator(*comm, stream);
  });
  EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = GetParam(), .aborted = 0}));
}

TEST_F(NcclTest, SumsWhatTheProducerHasQueuedAndTheConsumerWaitsForIt) {
  RunRanks(2, [](Communicator& host) {
    QueueStream producer;
    QueueStream consumer;
    const auto comm = MakeNccl(host);
    for (int bucket = 0; bucket < 3; ++bucket) {
      std::vector<float> values(kCount);
      float seen = 0;
      producer.Post([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::fill(values.begin(), values.end(), static_cast<float>(host.rank() + 1 + bucket));
      });
      comm->StartAllReduce(values.data(), values.size(), DType::kFloat32, Reduction::kSum,
                           producer);
      comm->Finish(consumer);
      consumer.Post([&] { seen = values.back(); });
      comm->Synchronize(consumer);
      EXPECT_EQ(seen, static_cast<float>(3 + 2 * bucket));
    }
  });
}

TEST_F(NcclTest, WaitsForOtherRanksOnTheDeviceAlone) {
  RunRanks(2, [](Communicator& host) {
    QueueStream stream;
    const auto comm = MakeNccl(host);
    std::vector<float> values(kCount, 1);
    const auto start = [&] {
      comm->StartAllReduce(values.data(), values.size(), DType::kFloat32, Reduction::kSum, stream);
      comm->StartAllReduce(values.data(), values.size(), DType::kFloat32, Reduction::kSum, stream);
      comm->Finish(stream);
    };
    if (host.rank() == 0) {
      start();
      EXPECT_FALSE(stream.Finished());
    }
    host.Barrier();
    if (host.rank() == 1) start();
    comm->Synchronize(stream);
    EXPECT_THAT(values, Each(4));
  });
}

TEST_F(NcclTest, ReportsARankThatLeavesByAnException) {
  const auto errors = Errors(2, [](Communicator& host) {
    QueueStream stream;
    std::vector<float> values(kCount);
    const auto comm = MakeNccl(host);
    host.Barrier();  // both have started
    if (host.rank() == 1) throw Error(EX_DATAERR, "a bad record");
    comm->StartAllReduce(values.data(), values.size(), DType::kFloat32, Reduction::kSum, stream);
    comm->Finish(stream);
    comm->Synchronize(stream);
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("69 rank 0 cannot sum gradients: remote process exited"),
                               HasSubstr("the first rank that failed says why")));
  EXPECT_EQ(errors[1], "65 a bad record");
  EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = 0, .aborted = 2}));
}

TEST_F(NcclTest, LeavesNothingWaitingOnTheDeviceWhenItFails) {
  RunRanks(2, [](Communicator& host) {
    QueueStream stream;
    std::vector<float> values(kCount);
    std::unique_ptr<Communicator> comm =
        MakeNccl(host, {.stall_seconds = host.rank() == 0 ? 0.2 : 20});
    if (host.rank() == 0) {
      comm->StartAllReduce(values.data(), values.size(), DType::kFloat32, Reduction::kSum, stream);
      comm->Finish(stream);
      EXPECT_THAT(tests::Rejection<Error>(EX_UNAVAILABLE, [&] { comm->Synchronize(stream); }),
                  HasSubstr("the others have not answered in time"));
      stream.Synchronize();
    }
    host.Barrier();
  });
  EXPECT_EQ(nccl_emulator::TakeEnds().aborted, 2);
}

TEST_F(NcclTest, SaysAgainHowItHasFailed) {
  const auto errors = Errors(1, [](Communicator& host) {
    QueueStream stream;
    const auto comm = MakeNccl(host, {.stall_seconds = 0.05});
    stream.Post([] { std::this_thread::sleep_for(std::chrono::milliseconds(200)); });
    EXPECT_THROW(comm->Synchronize(stream), Error);
    comm->Finish(stream);
  });
  EXPECT_THAT(errors, ElementsAre(HasSubstr("69 rank 0 cannot sum gradients: the others have not "
                                            "answered in time")));
}

TEST_F(NcclTest, DoesNotWaitForeverForRanksThatDoNotStart) {
  const auto errors = Errors(2, [](Communicator& host) {
    if (host.rank() == 0) MakeNccl(host, {.start_seconds = 0.2});
    ncclUniqueId id;
    host.Broadcast(&id, sizeof id, 0);
  });
  EXPECT_THAT(errors,
              ElementsAre(HasSubstr("69 rank 0 cannot start NCCL: the others have not"), ""));
  EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = 0, .aborted = 1}));
}

TEST_F(NcclTest, SaysWhatNcclSays) {
  nccl_emulator::StartWith(ncclInvalidUsage, "Duplicate GPU detected : rank 0 and rank 1\nboth");
  EXPECT_THAT(Errors(2, [](Communicator& host) { MakeNccl(host); }),
              Each(AllOf(HasSubstr("78 rank "),
                         HasSubstr(" cannot start NCCL: invalid usage (Duplicate GPU detected : "
                                   "rank 0 and rank 1 both)"),
                         HasSubstr("--comm=mpi does without NCCL"))));
  nccl_emulator::StartWith(ncclUnhandledCudaError, "");
  EXPECT_THAT(Errors(1, [](Communicator& host) { MakeNccl(host); }),
              ElementsAre(HasSubstr("70 rank 0 cannot start NCCL: unhandled cuda error;")));
  EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = 0, .aborted = 3}));
}

TEST_F(NcclTest, TakesNoMoreMultiprocessorsThanItMay) {
  RunRanks(1, [](Communicator& host) { MakeNccl(host, {.max_ctas = 8}); });
  EXPECT_EQ(nccl_emulator::LastMaxCtas(), 8);
  RunRanks(1, [](Communicator& host) { MakeNccl(host); });
  EXPECT_EQ(nccl_emulator::LastMaxCtas(), INT_MIN);
}

// The largest number of fp16 from each rank: the sum would be infinite.
TEST_F(NcclTest, TakesTheMeanOf16BitNumbersWithoutOverflow) {
  static constexpr std::uint16_t kLargestFp16 = 0x7BFF;
  constexpr std::uint16_t kOneAndAHalfBf16 = 0x3FC0;
  RunRanks(4, [](Communicator& host) {
    QueueStream stream;
    const auto comm = MakeNccl(host);
    std::vector<std::uint16_t> fp16(kCount, kLargestFp16);
    std::vector<std::uint16_t> bf16(kCount, host.rank() == 0 ? kOneAndAHalfBf16 : 0);
    std::vector<float> fp32(kCount, static_cast<float>(host.rank()));
    comm->StartAllReduce(fp16.data(), kCount, DType::kFloat16, Reduction::kMean, stream);
    comm->StartAllReduce(bf16.data(), kCount, DType::kBFloat16, Reduction::kMean, stream);
    comm->StartAllReduce(fp32.data(), kCount, DType::kFloat32, Reduction::kMean, stream);
    comm->Finish(stream);
    comm->Synchronize(stream);
    EXPECT_THAT(fp16, Each(kLargestFp16));
    EXPECT_THAT(bf16, Each(0x3EC0));  // 0.375
    EXPECT_THAT(fp32, Each(1.5F));
  });
}

TEST_F(NcclTest, SaysThatOtherTypesAreNotSummed) {
  const auto errors = Errors(1, [](Communicator& host) {
    QueueStream stream;
    std::int32_t value = 0;
    MakeNccl(host)->StartAllReduce(&value, 1, DType::kInt32, Reduction::kSum, stream);
  });
  EXPECT_THAT(errors, ElementsAre(HasSubstr("70 ")));
}

// The communicator and what it has allocated, either of which may go first.
TEST_F(NcclTest, RegistersTheMemoryThatItGives) {
  const int pieces = nccl_emulator::AllocatedPieces();
  for (const bool buffer_goes_first : {true, false}) {
    nccl_emulator::TakeSummed();
    RunRanks(2, [&](Communicator& host) {
      QueueStream stream;
      std::unique_ptr<Communicator> comm = MakeNccl(host);
      Buffer first = comm->AllocateReduced(kCount * sizeof(float));
      Buffer second = comm->AllocateReduced(2 * kCount);
      EXPECT_EQ(first.bytes(), kCount * sizeof(float));
      EXPECT_EQ(comm->AllocateReduced(0).bytes(), 0);
      auto* const values = reinterpret_cast<float*>(first.data());
      std::fill_n(values, kCount, static_cast<float>(host.rank() + 1));
      comm->StartAllReduce(values + 10, kCount - 10, DType::kFloat32, Reduction::kSum, stream);
      float other = 1;
      comm->StartAllReduce(&other, 1, DType::kFloat32, Reduction::kSum, stream);
      comm->Finish(stream);
      comm->Synchronize(stream);
      EXPECT_EQ(values[9], host.rank() + 1);
      EXPECT_THAT(std::span(values + 10, kCount - 10), Each(3));
      if (buffer_goes_first) first = {};
      comm.reset();
    });
    EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = 2, .aborted = 0}));
    EXPECT_EQ(nccl_emulator::TakeSummed(),
              (nccl_emulator::Summed{.registered = kCount - 10, .other = 1}));
    EXPECT_EQ(nccl_emulator::AllocatedPieces(), pieces);
  }
}

// The one before NCCL 2.19, the other with NCCL_LOCAL_REGISTER=0.
TEST_F(NcclTest, DoesWithoutRegisteredMemory) {
  const int pieces = nccl_emulator::AllocatedPieces();
  nccl_emulator::HaveRegistration(false);
  RunRanks(1, [](Communicator& host) { EXPECT_EQ(MakeNccl(host)->AllocateReduced(8).bytes(), 0); });
  nccl_emulator::HaveRegistration(true);
  nccl_emulator::RegisterWith(ncclSuccess, /*null_handle=*/true);
  RunRanks(1, [](Communicator& host) {
    const auto comm = MakeNccl(host);
    EXPECT_EQ(comm->AllocateReduced(8).bytes(), 8);
  });
  EXPECT_EQ(nccl_emulator::AllocatedPieces(), pieces);
  EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = 2, .aborted = 0}));
}

TEST_F(NcclTest, SaysWhereMemoryCannotBeRegistered) {
  nccl_emulator::RegisterWith(ncclUnhandledCudaError);
  const auto errors =
      Errors(1, [](Communicator& host) { MakeNccl(host)->AllocateReduced(kCount); });
  EXPECT_THAT(errors, ElementsAre(HasSubstr("70 rank 0 cannot allocate memory for gradients by "
                                            "ncclMemAlloc: unhandled cuda error;")));
  EXPECT_EQ(nccl_emulator::TakeEnds(1), (Ends{.destroyed = 0, .aborted = 1}));
}

// NCCL may use it until the process ends.
TEST_F(NcclTest, KeepsTheMemoryOfACommunicatorThatWasAborted) {
  const int pieces = nccl_emulator::AllocatedPieces();
  Errors(2, [](Communicator& host) {
    Buffer memory;
    const auto comm = MakeNccl(host);
    memory = comm->AllocateReduced(kCount);
    host.Barrier();
    throw Error(EX_DATAERR, "a bad record");
  });
  EXPECT_EQ(nccl_emulator::TakeEnds(2), (Ends{.destroyed = 0, .aborted = 2}));
  EXPECT_EQ(nccl_emulator::AllocatedPieces(), pieces + 2);
}

class AbortingHost final : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;
  [[noreturn]] void Abort(int exit_code) override { throw exit_code; }
};

TEST_F(NcclTest, IsAbortedBeforeTheJobIs) {
  ThreadWorld world(1);
  AbortingHost host(world, 0);
  const auto comm = MakeNccl(host);
  try {
    comm->Abort(EX_DATAERR);
  } catch (int exit_code) {
    EXPECT_EQ(exit_code, EX_DATAERR);
  }
  EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = 0, .aborted = 1}));
}

}  // namespace
}  // namespace trainer
