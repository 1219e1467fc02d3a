// SPDX-License-Identifier: Apache-2.0

#include <sched.h>
#include <sys/syscall.h>

#include "bench/microbenchmarks/all_reduce.h"
#include "bench/microbenchmarks/loader.h"
#include "bench/microbenchmarks/memcpy.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/comm/ranks.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

AllReduceTimes TimesOfSum(std::int64_t bytes, double seconds) {
  return {.bytes = bytes,
          .mean_seconds = seconds,
          .min_seconds = seconds / 2,
          .max_seconds = seconds * 2,
          .iterations = 20,
          .wrong = 0};
}

TEST(Bandwidth, IsThatOfNcclTests) {
  // 1 GB in 0.1 s; each link of a ring of 4 carries 2 * 3/4 of it.
  EXPECT_DOUBLE_EQ(AlgorithmBandwidth(1'000'000'000, 0.1), 10);
  EXPECT_DOUBLE_EQ(BusBandwidth(10, 4), 15);
  EXPECT_DOUBLE_EQ(BusBandwidth(10, 2), 10);
  EXPECT_EQ(BusBandwidth(10, 1), 0);
  EXPECT_EQ(AlgorithmBandwidth(8, 0), 0);
}

TEST(FormatNcclRow, HasTheColumnsOfItsHead) {
  // The columns of nccl-tests' own line for 1 MiB of 2 ranks in 105.7 us, those of sums that are
  // not in place aside.
  EXPECT_EQ(FormatNcclRow(TimesOfSum(1048576, 105.7e-6), 2),
            "     1048576        262144     float     sum      -1      N/A     N/A     N/A    N/A"
            "    105.7    9.92    9.92      0\n");
  EXPECT_EQ(FormatNcclRow(TimesOfSum(8, 0.2e-6), 4),
            "           8             2     float     sum      -1      N/A     N/A     N/A    N/A"
            "     0.20    0.04    0.06      0\n");
  EXPECT_EQ(FormatNcclRow(TimesOfSum(10737418240, 0.091945), 8),
            " 10737418240    2684354560     float     sum      -1      N/A     N/A     N/A    N/A"
            "    91945  116.78  204.37      0\n");
  AllReduceTimes wrong = TimesOfSum(8, 1e-6);
  wrong.wrong = 3;
  EXPECT_TRUE(FormatNcclRow(wrong, 2).ends_with("      3\n"));
}

TEST(FormatNcclHead, NamesSizesCountsAndDevices) {
  const AllReduceOptions options;
  const std::vector<std::string> devices = {FormatNcclDevice({.rank = 0,
                                                              .pid = 5092,
                                                              .host = "GENOA-06",
                                                              .device = 0,
                                                              .pci = "0000:C1:00.0",
                                                              .name = "GPU"}),
                                            FormatNcclDevice({.rank = 11,
                                                              .pid = 374,
                                                              .host = "a-longer-name",
                                                              .device = 3,
                                                              .pci = "",
                                                              .name = "CPU"})};
  const std::string head = FormatNcclHead(options, "ddlbench", devices);
  EXPECT_EQ(
      head,
      "# ddlbench\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 "
      "iters: 20 agg iters: 1 validation: 1 graph: 0\n"
      "#\n"
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid   5092 on   GENOA-06 device  0 [0xc1] GPU\n"
      "#  Rank 11 Group  0 Pid    374 on a-longer-name device  3 [0x00] CPU\n"
      "#\n"
      "#                                                              out-of-place                "
      "       in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)       \n");
}

TEST(FormatNcclTail, HasTheMeanOfTheBandwidthsAndWhatWasWrong) {
  std::vector<AllReduceTimes> all = {TimesOfSum(1'000'000, 1e-3), TimesOfSum(3'000'000, 1e-3)};
  EXPECT_EQ(FormatNcclTail(all, 2),
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 2 \n#\n");
  all[1].wrong = 7;
  EXPECT_TRUE(FormatNcclTail(all, 2).starts_with("# Out of bounds values : 7 FAILED\n"));
}

TEST(FormatOsu, IsThatOfItsFullForm) {
  EXPECT_EQ(FormatOsuHead(),
            "\n# OSU MPI Allreduce Latency Test v5.9\n"
            "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n");
  EXPECT_EQ(FormatOsuRow(TimesOfSum(1048576, 104.3e-6)),
            "1048576               104.30             52.15            208.60          20\n");
}

std::string AllReduceRejection(const std::function<void(AllReduceOptions&)>& change) {
  AllReduceOptions options;
  change(options);
  return tests::Rejection<trainer::Error>(EX_USAGE, [&] { CheckAllReduceOptions(options); });
}

TEST(CheckAllReduceOptions, RejectsWhatMakesNoSense) {
  EXPECT_EQ(AllReduceRejection([](auto&) {}), "");
  EXPECT_THAT(AllReduceRejection([](auto& o) { o.min_bytes = 3; }), HasSubstr("--min_bytes=3"));
  EXPECT_EQ(AllReduceRejection([](auto& o) { o.min_bytes = o.max_bytes = 4; }), "");
  EXPECT_THAT(AllReduceRejection([](auto& o) { o.max_bytes = 7; }), HasSubstr("--max_bytes=7"));
  EXPECT_THAT(AllReduceRejection([](auto& o) { o.max_bytes = (1LL << 40) + 1; }), HasSubstr("1T"));
  EXPECT_THAT(AllReduceRejection([](auto& o) { o.factor = 1; }), HasSubstr("--factor=1"));
  EXPECT_THAT(AllReduceRejection([](auto& o) { o.iterations = 0; }), HasSubstr("--iterations=0"));
  EXPECT_EQ(AllReduceRejection([](auto& o) { o.warmup_iterations = 0; }), "");
  EXPECT_THAT(AllReduceRejection([](auto& o) { o.warmup_iterations = -1; }),
              HasSubstr("--warmup_iterations=-1"));
}

TEST(SizesOf, AreWholeNumbersUpToTheLargest) {
  AllReduceOptions options{.max_bytes = 64};
  EXPECT_THAT(SizesOf(options), ElementsAre(8, 16, 32, 64));
  options.max_bytes = 63;
  EXPECT_THAT(SizesOf(options), ElementsAre(8, 16, 32));
  options.min_bytes = 10;
  options.max_bytes = 95;
  options.factor = 3;
  EXPECT_THAT(SizesOf(options), ElementsAre(8, 28, 88));
}

TEST(SumOf, IsThatOfTheSharesOfAllRanks) {
  EXPECT_EQ(ShareOf(0, 0), 1);
  EXPECT_EQ(ShareOf(2, 8), 3 * 2);
  EXPECT_EQ(ShareOf(16, 6), 7);
  EXPECT_EQ(SumOf(1, 6), 7);
  EXPECT_EQ(SumOf(4, 1), 2 * (1 + 2 + 3 + 4));
}

// Sums nothing, and counts what it is told.
class CountingCommunicator : public trainer::Communicator {
 public:
  explicit CountingCommunicator(int ranks) : ranks_(ranks) {}
  int rank() const override { return 0; }
  int size() const override { return ranks_; }
  std::string description() const override { return "counting"; }
  void StartAllReduce(void*, std::size_t count, trainer::DType dtype, trainer::Reduction reduction,
                      trainer::Stream&) override {
    EXPECT_EQ(dtype, trainer::DType::kFloat32);
    EXPECT_EQ(reduction, trainer::Reduction::kSum);
    counts.push_back(count);
  }
  void Finish(trainer::Stream&) override { ++waits; }
  void AllReduceSum(std::span<double>) override {}
  void AllReduceMax(std::span<double>) override {}
  void Broadcast(void*, std::size_t, int) override {}
  void Barrier() override { ++barriers; }
  void Abort(int exit_code) override { std::exit(exit_code); }

  std::vector<std::size_t> counts;
  int waits = 0;
  int barriers = 0;

 private:
  int ranks_;
};

TEST(AllReduceBench, CountsNumbersThatAreNotTheSum) {
  const auto backend = trainer::MakeBackend("reference", {});
  CountingCommunicator communicator(3);
  AllReduceBench bench(communicator, *backend, 64);
  const AllReduceTimes times = bench.Measure(40, 0, 1, Waiting::kAtTheEnd);
  EXPECT_EQ(times.wrong, 10);
  CountingCommunicator alone(1);
  EXPECT_EQ(AllReduceBench(alone, *backend, 64).Measure(40, 0, 1, Waiting::kAtTheEnd).wrong, 0);
  EXPECT_THROW(bench.Measure(68, 0, 1, Waiting::kAtTheEnd), trainer::Error);
}

TEST(AllReduceBench, WaitsAtTheEndOrForEachSum) {
  const auto backend = trainer::MakeBackend("reference", {});
  CountingCommunicator communicator(2);
  AllReduceBench bench(communicator, *backend, 64);
  const AllReduceTimes times = bench.Measure(64, 3, 5, Waiting::kAtTheEnd);
  EXPECT_EQ(times.bytes, 64);
  EXPECT_EQ(times.iterations, 5);
  EXPECT_EQ(communicator.counts.size(), 1U + 3 + 5);  // the check, warm-up, those timed
  EXPECT_THAT(communicator.counts, Each(16U));
  EXPECT_EQ(communicator.waits, 3);
  EXPECT_EQ(communicator.barriers, 2);
  bench.Measure(64, 3, 5, Waiting::kEach);
  EXPECT_EQ(communicator.waits, 3 + 1 + 3 + 5);
  EXPECT_EQ(communicator.barriers, 2 + (1 + 3) + (1 + 5));
}

// Real ranks: the sums are right, and every rank has the same times.
TEST(AllReduceBench, MeasuresRanksThatMeetInSharedMemory) {
  trainer::LocalRanks ranks(3);
  const std::vector<int> codes = ranks.Run([](const trainer::CommOptions& options) {
    const auto communicator = trainer::MakeCommunicator(options);
    const auto backend = trainer::MakeBackend("reference", {});
    AllReduceBench bench(*communicator, *backend, 1 << 20);
    for (const Waiting waiting : {Waiting::kAtTheEnd, Waiting::kEach}) {
      const AllReduceTimes times = bench.Measure(1 << 20, 1, 3, waiting);
      DDL_CHECK(times.wrong == 0);
      DDL_CHECK(times.min_seconds > 0 && times.min_seconds <= times.mean_seconds);
      DDL_CHECK(times.mean_seconds <= times.max_seconds * (1 + 1e-12));
      std::array<double, 2> own = {times.mean_seconds, -times.mean_seconds};
      communicator->AllReduceMax(own);
      DDL_CHECK(own[0] == -own[1]);
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(codes[static_cast<std::size_t>(rank)], 0) << ranks.ErrorOf(rank);
  }
}

std::string CopiesRejection(const std::function<void(MemcpyBenchOptions&)>& change) {
  MemcpyBenchOptions options;
  change(options);
  return tests::Rejection<trainer::Error>(EX_USAGE, [&] { CheckCopiesOptions(options); });
}

TEST(CheckCopiesOptions, RejectsWhatMakesNoSense) {
  EXPECT_EQ(CopiesRejection([](auto&) {}), "");
  EXPECT_EQ(CopiesRejection([](auto& o) { o.bytes = o.rounds = 1; }), "");
  EXPECT_THAT(CopiesRejection([](auto& o) { o.bytes = 0; }), HasSubstr("--bytes=0 must be"));
  EXPECT_THAT(CopiesRejection([](auto& o) { o.bytes = (1LL << 34) + 1; }), HasSubstr("to 16G"));
  EXPECT_THAT(CopiesRejection([](auto& o) { o.rounds = 0; }), HasSubstr("--rounds=0 must be"));
}

TEST(MeasureMemcpy, AreRatesOfBothWaysOnAllRanks) {
  trainer::RunRanks(2, [](trainer::Communicator& communicator) {
    const auto backend = trainer::MakeBackend("reference", {.threads = 1});
    MemcpyBenchOptions options{.bytes = 100'001, .rounds = 3};
    int copies = 0;
    const CopyRates rates = MeasureMemcpy(options, *backend, [&] {
      ++copies;
      communicator.Barrier();
    });
    EXPECT_EQ(copies, 2 * (1 + options.rounds));
    EXPECT_GT(rates.to_device, 0);
    EXPECT_GT(rates.to_host, 0);
  });
}

TEST(FormatCopyRow, IsARowThatTuneReads) {
  EXPECT_EQ(FormatCopyRow(3, "n2", "0004:04:00.0", "0004:00", "bound", {12.345, 6}),
            "     3  n2                0004:04:00.0  0004:00  bound      12.35       6.00\n");
}

std::string LoaderRejection(const std::function<void(LoaderOptions&)>& change) {
  LoaderOptions options;
  change(options);
  return tests::Rejection<trainer::Error>(EX_USAGE, [&] { CheckLoaderOptions(options); });
}

TEST(CheckLoaderOptions, RejectsWhatMakesNoSense) {
  EXPECT_EQ(LoaderRejection([](auto&) {}), "");
  EXPECT_THAT(LoaderRejection([](auto& o) { o.batch_size = 0; }), HasSubstr("--batch_size=0"));
  EXPECT_THAT(LoaderRejection([](auto& o) { o.image_size = 0; }), HasSubstr("--image_size=0"));
  EXPECT_THAT(LoaderRejection([](auto& o) { o.prefetch = 0; }), HasSubstr("--prefetch=0"));
  EXPECT_THAT(LoaderRejection([](auto& o) { o.steps = 0; }), HasSubstr("--steps=0"));
  EXPECT_EQ(LoaderRejection([](auto& o) { o.warmup_steps = 0; }), "");
  EXPECT_THAT(LoaderRejection([](auto& o) { o.warmup_steps = -1; }),
              HasSubstr("--warmup_steps=-1"));
  EXPECT_THAT(LoaderRejection([](auto& o) { o.rounds = 0; }), HasSubstr("--rounds=0"));
  EXPECT_THAT(LoaderRejection([](auto& o) { o.take_rate = -1; }), HasSubstr("--take_rate=-1"));
  EXPECT_THAT(LoaderRejection([](auto& o) { o.threads = {2, 0}; }), HasSubstr("--threads=0"));
}

TEST(RecordOptions, AreThoseOfATraining) {
  LoaderOptions options;
  options.data_dir = "/images";
  options.data_idx_dir = "/index";
  options.batch_size = 12;
  options.image_size = 64;
  options.prefetch = 5;
  const trainer::TfRecordLoaderOptions records = RecordOptions(options, 3, 1, 4);
  EXPECT_EQ(records.data_dir, "/images");
  EXPECT_EQ(records.data_idx_dir, "/index");
  EXPECT_EQ(records.split, trainer::Split::kTrain);
  EXPECT_TRUE(records.training);
  EXPECT_TRUE(records.shuffle);
  EXPECT_EQ(records.augment, trainer::Augment::kTrain);
  EXPECT_EQ(records.batch_size, 12);
  EXPECT_EQ(records.image_size, 64);
  EXPECT_EQ(records.threads, 3);
  EXPECT_EQ(records.rank, 1);
  EXPECT_EQ(records.world_size, 4);
  EXPECT_EQ(records.prefetch, 5);
  EXPECT_EQ(records.bad_records, trainer::BadRecords::kStop);
  EXPECT_EQ(records.augmentation, trainer::Augmentation::kTensorFlow);
  options.augmentation = "torchvision";
  EXPECT_EQ(RecordOptions(options, 1, 0, 1).augmentation, trainer::Augmentation::kTorchvision);
  options.bad_records = "skip";
  EXPECT_EQ(RecordOptions(options, 1, 0, 1).bad_records, trainer::BadRecords::kSkip);
}

// Of an AC922: the memory of its GPUs is nodes without CPUs.
TEST(ReadNumaCpus, AreTheNodesThatHaveCpus) {
  const TemporaryDirectory directory;
  const fs::path nodes = directory.path() / "sys/devices/system/node";
  for (const auto& [name, list] : {std::pair("node8", "80-159\n"),
                                   {"node0", "0-3,8\n"},
                                   {"node255", "\n"},
                                   {"node1x", "1\n"},
                                   {"power", "1\n"}}) {
    fs::create_directories(nodes / name);
    std::ofstream(nodes / name / "cpulist") << list;
  }
  const std::vector<NumaCpus> found = ReadNumaCpus(directory.path().string());
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].number, 0);
  EXPECT_THAT(found[0].cpus, ElementsAre(0, 1, 2, 3, 8));
  EXPECT_EQ(found[1].number, 8);
  EXPECT_THAT(found[1].cpus, SizeIs(80));
  EXPECT_THAT(ReadNumaCpus((directory.path() / "nothing").string()), IsEmpty());
}

// As on most machines: the device is behind a root port, and that behind the host bridge.
TEST(HostBridgeOf, IsFoundThroughOtherBridges) {
  const TemporaryDirectory directory;
  const fs::path sys = directory.path() / "sys";
  const fs::path device = sys / "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  fs::create_directories(device);
  fs::create_directories(sys / "bus/pci/devices");
  fs::create_symlink(device, sys / "bus/pci/devices/0000:3b:00.0");
  const std::string root = directory.path().string();
  EXPECT_EQ(HostBridgeOf(root, "0000:3B:00.0"), "0000:3a");
  EXPECT_EQ(HostBridgeOf(root, "0000:3b:00.0"), "0000:3a");
  EXPECT_EQ(HostBridgeOf(root, "0000:3c:00.0"), "-");
  EXPECT_EQ(HostBridgeOf(root, ""), "-");
}

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(OnCpus, RunsThereAndThenWhereItDidBefore) {
  const std::vector<int> before = AllowedCpus();
  ASSERT_FALSE(before.empty());
  {
    const OnCpus last({before.back()});
    EXPECT_TRUE(last.are_allowed());
    EXPECT_THAT(AllowedCpus(), ElementsAre(before.back()));
    {
      // A rank that is bound may go elsewhere.
      const OnCpus first({before.front()});
      EXPECT_TRUE(first.are_allowed());
      EXPECT_THAT(AllowedCpus(), ElementsAre(before.front()));
    }
    EXPECT_THAT(AllowedCpus(), ElementsAre(before.back()));
  }
  EXPECT_EQ(AllowedCpus(), before);
}

// As ddlrun has it of a rank that it binds.
TEST(OnCpus, TakesMemoryOfWhereItRunsAndThenAsBefore) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED
  const auto policy = [] {
    int mode = -1;
    ::syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0);
    return mode;
  };
  const unsigned long node_0 = 1;
  if (::syscall(SYS_set_mempolicy, kPreferred, &node_0, 64) != 0)
    GTEST_SKIP() << "not allowed here";
  {
    const OnCpus there(AllowedCpus());
    EXPECT_EQ(policy(), 0);
  }
  EXPECT_EQ(policy(), kPreferred);
  ::syscall(SYS_set_mempolicy, 0, nullptr, 0);
}

TEST(OnCpus, StaysWhereThereAreNone) {
  const std::vector<int> before = AllowedCpus();
  for (const std::vector<int>& cpus : {std::vector<int>{}, {8191}, {70000}}) {
    const OnCpus nowhere(cpus);
    EXPECT_FALSE(nowhere.are_allowed());
    EXPECT_EQ(AllowedCpus(), before);
  }
}

using namespace std::chrono_literals;

const FixedRateConsumer::Clock::time_point kStart{1h};

TEST(FixedRateConsumer, ABatchIsDueWhenTheDeviceIsDoneWithTheLast) {
  FixedRateConsumer consumer(kStart, 10ms);
  EXPECT_EQ(consumer.due(), kStart);
  consumer.Came(0ms);
  EXPECT_EQ(consumer.due(), kStart + 10ms);
  consumer.Came(0ms);
  EXPECT_EQ(consumer.due(), kStart + 20ms);
  EXPECT_EQ(consumer.waited(), 0ms);
}

TEST(FixedRateConsumer, ALateBatchMakesAllLaterOnesLaterForADeviceCannotCatchUp) {
  FixedRateConsumer consumer(kStart, 10ms);
  consumer.Came(3ms);
  consumer.Came(0ms);
  consumer.Came(4ms);
  EXPECT_EQ(consumer.due(), kStart + 37ms);
  EXPECT_EQ(consumer.waited(), 7ms);
}

TEST(FixedRateConsumer, WithoutATimeToBeBusyTheNextIsDueAtOnce) {
  FixedRateConsumer consumer(kStart, 0ms);
  consumer.Came(5ms);
  EXPECT_EQ(consumer.due(), kStart + 5ms);
}

}  // namespace
}  // namespace bench
