// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>

#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/dtype.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/core/host_memory.h"
#include "trainer/core/memory_planner.h"
#include "trainer/core/philox.h"
#include "trainer/core/tensor.h"

namespace trainer {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint32_t Crc32c(const Bytes& bytes) {
  return trainer::Crc32c(std::as_bytes(std::span(bytes)));
}

// Reading from address 0 of a process is EIO.
TEST(ReadAt, OpensAFileThatCannotBeReadOnceMore) {
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "file").string();
  std::ofstream(path) << "0123456789";
  const support::Descriptor broken(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(broken.is_open());
  Bytes bytes(4);
  EXPECT_EQ(tests::Rejection<Error>(
                EX_OSERR, [&] { ReadAt(broken, path, 0, bytes); }, "not refused"),
            "cannot read " + path + ": Input/output error");
  EXPECT_EQ(ReadAt(broken, path, 0, bytes, [&] { return OpenForReading(path); }), 4U);
  EXPECT_EQ(bytes, (Bytes{'0', '1', '2', '3'}));
  // It is the other file now.
  std::filesystem::remove(path);
  EXPECT_EQ(ReadAt(broken, path, 8, bytes), 2U);
  EXPECT_EQ(bytes[0], '8');

  const auto again = [] { return OpenForReading("/proc/self/mem"); };
  const support::Descriptor gone = again();
  EXPECT_EQ(tests::Rejection<Error>(
                EX_OSERR, [&] { ReadAt(gone, path, 0, bytes, again); }, "not refused"),
            "cannot read " + path + ", not even after it was opened again: Input/output error");
  EXPECT_EQ(tests::Rejection<Error>(
                EX_DATAERR,
                [&] {
                  ReadAt(gone, path, 0, bytes, []() -> support::Descriptor {
                    throw Error(EX_DATAERR, "it was replaced");
                  });
                },
                "not refused"),
            "it was replaced");
  const support::Descriptor other(::open(directory.path().c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(tests::Rejection<Error>(
                EX_OSERR, [&] { ReadAt(other, path, 0, bytes, again); }, "not refused"),
            "cannot read " + path + ": Is a directory");
  EXPECT_TRUE(support::MayHelpToReopen(ESTALE));
  EXPECT_FALSE(support::MayHelpToReopen(0));
  EXPECT_FALSE(support::MayHelpToReopen(EISDIR));
}

// RFC 3720, B.4.
TEST(Crc32c, GivesTheVectorsOfTheRfc) {
  EXPECT_EQ(Crc32c(Bytes(32, 0x00)), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(Bytes(32, 0xff)), 0x62a8ab43U);
  Bytes ascending(32);
  std::iota(ascending.begin(), ascending.end(), std::uint8_t{0});
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eU);
  EXPECT_EQ(Crc32c(Bytes(ascending.rbegin(), ascending.rend())), 0x113fdb5cU);
  Bytes read_command(48, 0);
  read_command[0] = 0x01;
  read_command[1] = 0xc0;
  read_command[16] = 0x14;
  read_command[22] = 0x04;
  read_command[27] = 0x14;
  read_command[31] = 0x18;
  read_command[32] = 0x28;
  read_command[40] = 0x02;
  EXPECT_EQ(Crc32c(read_command), 0xd9963a56U);
}

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(Crc32c(Bytes()), 0U); }

TEST(Crc32c, MaskingRotatesAndAdds) {
  const Bytes zeros(32, 0x00);
  // 0x8a9136aa rotated right by 15 is 0x6d551522.
  EXPECT_EQ(MaskedCrc32c(std::as_bytes(std::span(zeros))), 0x6d551522U + 0xa282ead8U);
}

// The examples of IEEE 754 binary16: Wikipedia, "Half-precision floating-point format".
TEST(DType, WidensFloat16) {
  const struct {
    std::uint16_t bits;
    float value;
  } cases[] = {
      {0x0000, 0.0F},       {0x0001, 0x1p-24F}, {0x03ff, 0x3ffp-24F},      {0x0400, 0x1p-14F},
      {0x3555, 0x555p-12F}, {0x3c00, 1.0F},     {0x3c01, 1.0F + 0x1p-10F}, {0x7bff, 65504.0F},
      {0x7c00, INFINITY},   {0xc000, -2.0F},    {0xfc00, -INFINITY}};
  for (const auto& test : cases) EXPECT_EQ(WidenFloat16(test.bits), test.value) << test.bits;
  EXPECT_TRUE(std::isnan(WidenFloat16(0x7e00)));
  EXPECT_TRUE(std::signbit(WidenFloat16(0x8000)));
}

TEST(DType, WidensBFloat16) {
  EXPECT_EQ(WidenBFloat16(0x3f80), 1.0F);
  EXPECT_EQ(WidenBFloat16(0xc049), -0x1.92p1F);
  EXPECT_EQ(WidenBFloat16(0x0001), 0x1p-133F);
  EXPECT_TRUE(std::isinf(WidenBFloat16(0x7f80)));
}

TEST(Error, CarriesItsExitCode) {
  const Error error(EX_DATAERR, "train-00001: bad record");
  EXPECT_EQ(error.exit_code(), EX_DATAERR);
  EXPECT_STREQ(error.what(), "train-00001: bad record");
}

TEST(Error, OsErrorNamesActionAndReason) {
  const Error error = OsError("open /data/train-00000", ENOENT);
  EXPECT_EQ(error.exit_code(), EX_OSERR);
  EXPECT_STREQ(error.what(), "open /data/train-00000: No such file or directory");
}

TEST(Check, NamesFileLineAndCondition) {
  const int answer = 41;
  const std::string rejection =
      tests::Rejection<Error>(EX_SOFTWARE, [&] { DDL_CHECK(answer == 42); });
  EXPECT_THAT(rejection, AllOf(HasSubstr("core_test.cc:"), HasSubstr("answer == 42")));
}

TEST(Check, PassesSilently) { EXPECT_NO_THROW(DDL_CHECK(1 + 1 == 2)); }

TEST(ControlGroup, IsTheOneThatAccountsMemory) {
  const auto version_1 = [](const std::string& path) { return MemoryControlGroup{path, false}; };
  const auto version_2 = [](const std::string& path) { return MemoryControlGroup{path, true}; };
  // As on RHEL 8, with Slurm.
  EXPECT_EQ(ParseControlGroup("12:pids:/user.slice\n"
                              "9:memory:/slurm/uid_1000/job_7/step_0\n"
                              "1:name=systemd:/system.slice/slurmd.service\n"),
            version_1("/slurm/uid_1000/job_7/step_0"));
  EXPECT_EQ(ParseControlGroup("4:cpu,memory:/a\n0::/b\n"), version_1("/a"));
  // As on RHEL 9.
  EXPECT_EQ(ParseControlGroup("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n"),
            version_2("/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"));
  EXPECT_EQ(ParseControlGroup("0::/\n"), version_2("/"));
  EXPECT_EQ(ParseControlGroup("0::/a:b\n"), version_2("/a:b"));
  for (const char* none : {"", "1:name=memory:/x\n", "1:cpu:/x\n", "0::\n", "0::../x\n", "0\n"}) {
    EXPECT_EQ(ParseControlGroup(none), MemoryControlGroup{}) << none;
  }
}

// A root of a file system that holds what the test writes.
class HostMemoryTest : public tests::DirectoryTest {
 protected:
  HostMemoryTest() {
    Write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:    1000 kB\nMemAvailable:    8000 kB\n");
  }

  HostMemory Find(HostMemoryOptions options = {}) {
    options.file_system = directory_;
    return FindHostMemory(options);
  }

  void ExpectFound(std::size_t bytes, const std::string& origin, HostMemoryOptions options = {}) {
    const HostMemory found = Find(std::move(options));
    EXPECT_EQ(found.bytes, bytes);
    EXPECT_EQ(found.origin, origin);
  }
};

TEST_F(HostMemoryTest, IsWhatTheMachineHasLeft) {
  ExpectFound(8000 * 1024, "left on this machine (MemAvailable)");
}

TEST_F(HostMemoryTest, IsWithoutLimitWhereNothingIsKnown) {
  fs::remove_all(directory_ / "proc");
  EXPECT_EQ(Find().bytes, std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(Find({.processes = 4}).bytes, std::numeric_limits<std::size_t>::max());
}

// What the kernel would give back of cached files is as good as free.
TEST_F(HostMemoryTest, IsWhatAControlGroupOfVersion1Leaves) {
  Write("proc/self/cgroup", "9:memory:/slurm/job_7/step_0\n");
  const fs::path job = "sys/fs/cgroup/memory/slurm/job_7";
  Write(job / "step_0/memory.limit_in_bytes", "9223372036854771712\n");
  Write(job / "step_0/memory.usage_in_bytes", "1000\n");
  Write(job / "memory.limit_in_bytes", "5000000\n");
  Write(job / "memory.usage_in_bytes", "2000000\n");
  Write(job / "memory.stat",
        "inactive_file 7\ntotal_cache 900000\ntotal_inactive_file 300000\n"
        "total_active_file 200000\n");
  ExpectFound(3500000, "left in the control group /slurm/job_7");
}

TEST_F(HostMemoryTest, IsWhatAControlGroupOfVersion2Leaves) {
  Write("proc/self/cgroup", "0::/job_7/step_0\n");
  const fs::path job = "sys/fs/cgroup/job_7";
  Write(job / "step_0/memory.max", "max\n");
  Write(job / "step_0/memory.current", "1000\n");
  Write(job / "memory.max", "5000000\n");
  Write(job / "memory.current", "2000000\n");
  Write(job / "memory.stat", "anon 1\ninactive_file 300000\nactive_file 200000\n");
  ExpectFound(3500000, "left in the control group /job_7");
  Write(job / "step_0/memory.max", "1001000\n");
  ExpectFound(1000000, "left in the control group /job_7/step_0");
}

// In a container the group's path is not below what is mounted.
TEST_F(HostMemoryTest, IsWhatTheGroupLeavesThatIsMountedInAContainer) {
  Write("proc/self/cgroup", "9:memory:/docker/0123\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
  ExpectFound(2000000, "left in the control group /");
}

TEST_F(HostMemoryTest, AGroupThatHoldsMoreThanItsLimitLeavesNothing) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "1000\n");
  Write("sys/fs/cgroup/memory.current", "2000\n");
  ExpectFound(0, "left in the control group /");
  Write("sys/fs/cgroup/memory.stat", "inactive_file 5000\n");
  ExpectFound(1000, "left in the control group /");
}

TEST_F(HostMemoryTest, IsSharedByTheRanksOfANodeButForTheAddressSpace) {
  ExpectFound(2000 * 1024, "its share of what is left on this machine (MemAvailable)",
              {.processes = 4});
  ExpectFound(3000000, "left of its address space (ulimit -v)",
              {.processes = 2, .address_space_bytes = 3000000});
  ExpectFound(2000 * 1024, "its share of what is left on this machine (MemAvailable)",
              {.processes = 4, .address_space_bytes = 3000000});
}

TEST_F(HostMemoryTest, OfThisMachineIsKnown) {
  const HostMemory memory = FindHostMemory({});
  EXPECT_GT(memory.bytes, std::size_t{10} << 20);
  EXPECT_LT(memory.bytes, std::size_t{1} << 50);
}

TEST(MemoryPlanner, SharesBytesBetweenRequestsThatNeverMeet) {
  MemoryPlanner plan;
  const int early = plan.Reserve("early", 1000, 0, 3);
  const int late = plan.Reserve("late", 1000, 4, 5);
  plan.Solve();
  EXPECT_EQ(plan.offset(early), plan.offset(late));
  EXPECT_EQ(plan.total_bytes(), 1024U);
}

TEST(MemoryPlanner, KeepsApartRequestsThatMeetInOneInstant) {
  MemoryPlanner plan;
  const int first = plan.Reserve("first", 1, 0, 3);
  const int second = plan.Reserve("second", 1, 3, 5);
  plan.Solve();
  EXPECT_NE(plan.offset(first), plan.offset(second));
  EXPECT_EQ(plan.total_bytes(), 2 * MemoryPlanner::kAlignment);
}

TEST(MemoryPlanner, FillsAGapBelowALaterRequest) {
  MemoryPlanner plan;
  plan.Reserve("low, early", 4096, 0, 1);
  plan.Reserve("above it", 2048, 0, 9);
  const int late = plan.Reserve("late", 1024, 5, 6);
  plan.Solve();
  EXPECT_EQ(plan.offset(late), 0U);
  EXPECT_EQ(plan.total_bytes(), 6144U);
}

// Most is in use at tick 4: 2048 bytes that stay, 1024 and 512 that pass.
TEST(MemoryPlanner, KnowsWhatPassesWhenMostIsInUse) {
  MemoryPlanner plan;
  plan.Reserve("stays", 2048, 0, 9);
  plan.Reserve("passes early", 1280, 2, 2);
  plan.Reserve("passes", 1024, 4, 4);
  plan.Reserve("passes too", 500, 4, 4);
  plan.Reserve("stays for two", 256, 5, 6);
  plan.Solve();
  EXPECT_EQ(plan.passing_bytes(), 1024U + 512U);
  EXPECT_EQ(plan.total_bytes(), 2048U + 1024U + 512U);
}

TEST(MemoryPlanner, OfNothingIsEmpty) {
  MemoryPlanner plan;
  plan.Solve();
  EXPECT_EQ(plan.total_bytes(), 0U);
  EXPECT_EQ(plan.passing_bytes(), 0U);
}

TEST(MemoryPlanner, RejectsMisuse) {
  MemoryPlanner plan;
  EXPECT_THROW(plan.Reserve("backwards", 1, 2, 1), Error);
  plan.Solve();
  EXPECT_THROW(plan.Reserve("too late", 1, 0, 1), Error);
  EXPECT_THROW(plan.Solve(), Error);
}

bool Overlap(const MemoryPlanner::Request& a, const MemoryPlanner::Request& b) {
  const bool in_time = a.first_use <= b.last_use && b.first_use <= a.last_use;
  const bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return in_time && in_space;
}

TEST(MemoryPlanner, NeverOverlapsLiveRequests) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    Random random(7, RandomPurpose::kShuffle, round);
    MemoryPlanner plan;
    const std::uint32_t count = 1 + random.Below(60);
    for (std::uint32_t i = 0; i < count; ++i) {
      const int first = static_cast<int>(random.Below(40));
      const int last = first + static_cast<int>(random.Below(20));
      plan.Reserve("request", random.Below(10000), first, last);
    }
    plan.Solve();
    const auto& requests = plan.requests();
    for (std::size_t a = 0; a < requests.size(); ++a) {
      EXPECT_EQ(requests[a].offset % MemoryPlanner::kAlignment, 0U);
      EXPECT_LE(requests[a].offset + requests[a].bytes, plan.total_bytes());
      for (std::size_t b = 0; b < a; ++b) EXPECT_FALSE(Overlap(requests[a], requests[b]));
    }
  }
}

using Block = std::array<std::uint32_t, 4>;

// Random123, tests/kat_vectors, "philox4x32 10".
TEST(Philox, MatchesRandom123KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, FollowsItsStatedCounterLayout) {
  const std::uint64_t seed = 0x1122334455667788;
  const std::uint64_t index = 0xAABBCCDD00112233;
  Random random(seed, RandomPurpose::kAugment, index);
  for (std::uint32_t position = 0; position < 3; ++position) {
    const Block block = Philox4x32({position, 3, 0x00112233, 0xAABBCCDD}, {0x55667788, 0x11223344});
    for (const std::uint32_t word : block) EXPECT_EQ(random.Next(), word);
  }
}

TEST(Random, DiffersBySeedPurposeAndIndex) {
  const std::uint32_t first = Random(1, RandomPurpose::kInit, 0).Next();
  EXPECT_NE(Random(2, RandomPurpose::kInit, 0).Next(), first);
  EXPECT_NE(Random(1, RandomPurpose::kShuffle, 0).Next(), first);
  EXPECT_NE(Random(1, RandomPurpose::kInit, 1).Next(), first);
}

TEST(Random, BelowStaysInRangeAndReachesAllValues) {
  Random random(3, RandomPurpose::kShuffle, 0);
  std::array<int, 7> counts{};
  for (int i = 0; i < 7000; ++i) ++counts.at(random.Below(7));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.Below(1), 0U);
  EXPECT_THROW(random.Below(0), Error);
}

struct Moments {
  double mean;
  double variance;
};

// Of 200000 draws: the standard error of the mean is below 0.003 of a deviation.
Moments Measure(const std::function<double(Random&)>& draw) {
  Random random(11, RandomPurpose::kInit, 5);
  const int draws = 200000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = draw(random);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / draws;
  return {mean, squares / draws - mean * mean};
}

TEST(Random, DistributionsHaveTheirMoments) {
  const Moments uniform = Measure([](Random& random) { return random.Uniform(); });
  EXPECT_NEAR(uniform.mean, 0.5, 0.005);
  EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.001);

  const Moments normal = Measure([](Random& random) { return random.Normal(); });
  EXPECT_NEAR(normal.mean, 0, 0.015);
  EXPECT_NEAR(normal.variance, 1, 0.02);

  // Variance of a standard normal cut at 2: 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.77374.
  const Moments truncated = Measure([](Random& random) { return random.TruncatedNormal(); });
  EXPECT_NEAR(truncated.mean, 0, 0.015);
  EXPECT_NEAR(truncated.variance, 0.77374, 0.015);

  for (const double shape : {0.2, 1.0, 3.5}) {
    const Moments gamma = Measure([=](Random& random) { return random.Gamma(shape); });
    EXPECT_NEAR(gamma.mean, shape, 0.02 * std::sqrt(shape));
    EXPECT_NEAR(gamma.variance, shape, 0.05 * shape);
  }

  // Beta(a, a): mean 1/2, variance 1 / (4 (2a + 1)).
  const Moments beta = Measure([](Random& random) { return random.Beta(0.2, 0.2); });
  EXPECT_NEAR(beta.mean, 0.5, 0.005);
  EXPECT_NEAR(beta.variance, 1 / (4 * 1.4), 0.003);
}

TEST(Random, BetaOfTinyParametersIsANumber) {
  Random random(1, RandomPurpose::kMixup, 0);
  for (int i = 0; i < 1000; ++i) {
    const double x = random.Beta(1e-4, 1e-4);
    EXPECT_GE(x, 0);
    EXPECT_LE(x, 1);
  }
}

TEST(Random, TruncatedNormalStaysWithinTwoDeviations) {
  Random random(1, RandomPurpose::kInit, 0);
  for (int i = 0; i < 10000; ++i) EXPECT_LE(std::abs(random.TruncatedNormal()), 2);
}

TEST(DType, HasSizeAndSafetensorsName) {
  EXPECT_EQ(SizeOf(DType::kFloat32), 4U);
  EXPECT_EQ(SizeOf(DType::kFloat16), 2U);
  EXPECT_EQ(SizeOf(DType::kBFloat16), 2U);
  EXPECT_EQ(SizeOf(DType::kUint8), 1U);
  EXPECT_EQ(SizeOf(DType::kInt32), 4U);
  EXPECT_EQ(SizeOf(DType::kInt64), 8U);
  EXPECT_EQ(NameOf(DType::kFloat32), "F32");
  EXPECT_EQ(NameOf(DType::kBFloat16), "BF16");
  EXPECT_EQ(NameOf(DType::kInt64), "I64");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({64, 3, 7, 7}).elements(), 64 * 3 * 7 * 7);
  EXPECT_EQ(Shape({5, 0}).elements(), 0);
}

TEST(Shape, ComparesByRankAndDimensions) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 0}));
}

TEST(Shape, PrintsLikePython) {
  EXPECT_EQ(ToString(Shape({64, 3, 7, 7})), "(64, 3, 7, 7)");
  EXPECT_EQ(ToString(Shape()), "()");
}

TEST(Shape, RejectsNegativeDimensionsAndFiveOfThem) {
  EXPECT_THROW(Shape({1, -1}), Error);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1}), Error);
}

TEST(Tensor, DenseDescriptionsCountBytes) {
  EXPECT_EQ(RowMajor({3, 5}, DType::kFloat16).bytes, 30U);
  EXPECT_EQ(ChannelsLast({2, 3, 5, 7}, DType::kFloat32).bytes, 840U);
  EXPECT_EQ(ChannelsLast({2, 3, 5, 7}, DType::kFloat32).layout, Layout::kChannelsLast);
  EXPECT_THROW(ChannelsLast({3, 5}, DType::kFloat32), Error);
}

TEST(Tensor, IsEmptyWithoutData) {
  float value = 1;
  EXPECT_FALSE(Tensor{});
  const Tensor tensor{RowMajor({1}, DType::kFloat32), &value};
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor.As<float>()[0], 1);
}

}  // namespace
}  // namespace trainer
