// SPDX-License-Identifier: Apache-2.0

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>
#include <cctype>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tests/support/directories.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/telemetry/meters/kernel_trace.h"
#include "trainer/telemetry/meters/op_profile.h"
#include "trainer/telemetry/meters/step_timer.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;

// A machine whose files under /proc and /sys the test writes.
class HostStateTest : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) { directory_.Write(file, text); }

  TemporaryDirectory directory_;
  HostState host_{directory_.path()};
  HostState::Clock::time_point now_ = HostState::Clock::now();
};

TEST_F(HostStateTest, KnowsNothingWhereLinuxShowsNothing) {
  const DeviceState state = host_.Read(now_);
  EXPECT_FALSE(state.compute_mhz || state.memory_mhz || state.celsius || state.milliwatts ||
               state.limit_milliwatts);
}

TEST_F(HostStateTest, TheClockIsThatOfCpufreqElseOfCpuinfo) {
  Write("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2445.404\nprocessor\t: 1\ncpu MHz\t\t: 9\n");
  EXPECT_EQ(host_.Read(now_).compute_mhz, 2445);
  Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3100900\n");
  EXPECT_EQ(host_.Read(now_).compute_mhz, 3101);
}

TEST_F(HostStateTest, TheTemperatureIsThatOfTheProcessor) {
  Write("sys/class/hwmon/hwmon0/name", "nvme\n");
  Write("sys/class/hwmon/hwmon0/temp1_input", "30000\n");
  Write("sys/class/hwmon/hwmon1/name", "k10temp\n");
  Write("sys/class/hwmon/hwmon1/temp1_input", "61500\n");
  EXPECT_EQ(host_.Read(now_).celsius, 62);
}

TEST_F(HostStateTest, PowerIsTheMeanSinceTheCallBefore) {
  Write("sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");
  Write("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "280000000\n");
  EXPECT_FALSE(host_.Read(now_).milliwatts);
  Write("sys/class/powercap/intel-rapl:0/energy_uj", "6000000\n");
  const DeviceState state = host_.Read(now_ + milliseconds(50));
  EXPECT_EQ(state.milliwatts, 100'000);
  EXPECT_EQ(state.limit_milliwatts, 280'000);
  Write("sys/class/powercap/intel-rapl:0/energy_uj", "5\n");
  EXPECT_FALSE(host_.Read(now_ + milliseconds(100)).milliwatts) << "the counter began again";
}

TEST(DeviceState, WordsLeaveOutWhatIsNotKnown) {
  EXPECT_EQ(InWords({}), "");
  EXPECT_EQ(InWords({.compute_mhz = 1980,
                     .memory_mhz = 3201,
                     .celsius = 61,
                     .milliwatts = 411'600,
                     .limit_milliwatts = 700'000}),
            "1980 MHz, memory 3201 MHz, 61 C, 412 of 700 W");
  DeviceState state{.compute_mhz = 2450, .milliwatts = 95'400};
  EXPECT_EQ(InWords(state), "2450 MHz, 95 W");
}

TEST(StateSampler, ReadsAtOnceAndAgainAndAgain) {
  std::atomic<int> reads = 0;
  StateSampler sampler(
      [&] {
        DeviceState state{.celsius = ++reads};
        return state;
      },
      milliseconds(1));
  std::vector<TimedState> all;
  while (all.size() < 3) {
    for (const TimedState& timed : sampler.Take()) all.push_back(timed);
    std::this_thread::yield();
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].state.celsius, static_cast<int>(i) + 1);
    EXPECT_GE(all[i].seconds, i == 0 ? 0 : all[i - 1].seconds);
  }
}

TEST(StateSampler, LeavesOutAReadingThatThrows) {
  std::atomic<int> reads = 0;
  StateSampler sampler(
      [&] {
        if (++reads == 1) throw std::runtime_error("the driver is gone");
        DeviceState state{.celsius = reads};
        return state;
      },
      milliseconds(1));
  std::vector<TimedState> all;
  while (all.empty()) {
    all = sampler.Take();
    std::this_thread::yield();
  }
  EXPECT_EQ(all[0].state.celsius, 2);
}

TEST(StateSampler, EndsWithoutWaitingForItsInterval) {
  const auto start = std::chrono::steady_clock::now();
  {
    StateSampler sampler([] { return DeviceState(); }, std::chrono::hours(1));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
}

const std::string kFakeNvml = tests::BuildDirectory() + "/tests/libfake_energy_nvml.so";

TEST(GpuMeter, ReadsMemoryAndTheMeanPowerSinceItsStart) {
  GpuMeter meter(kFakeNvml, "0000:1B:00.0");
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto figures = meter.Read();
    ASSERT_TRUE(figures);
    EXPECT_EQ(figures->model, "NVIDIA H200");
    EXPECT_EQ(figures->used_bytes, 23'400'000'000U);
    EXPECT_EQ(figures->total_bytes, 150'000'000'000U);
    ASSERT_TRUE(figures->watts);
    EXPECT_NEAR(*figures->watts, 100, 2);
    meter.Restart();
  }
}

TEST(GpuMeter, TellsTheSerialNumberOfABoardThatHasOneAndTheUuid) {
  const auto board = GpuMeter(kFakeNvml, "0000:1B:00.0").Read();
  ASSERT_TRUE(board);
  EXPECT_EQ(board->serial, "1654223001234");
  EXPECT_EQ(board->uuid, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
  const auto other = GpuMeter(kFakeNvml, "0000:1C:00.0").Read();
  ASSERT_TRUE(other);
  EXPECT_EQ(other->serial, "");
}

TEST(GpuMeter, LeavesThePowerOutWhereTheGpuHasNoMeterOfEnergy) {
  const auto figures = GpuMeter(kFakeNvml, "0000:1C:00.0").Read();
  ASSERT_TRUE(figures);
  EXPECT_FALSE(figures->watts);
}

TEST(GpuMeter, TellsClocksTemperatureAndPower) {
  const DeviceState state = GpuMeter(kFakeNvml, "0000:1B:00.0").State();
  EXPECT_EQ(state.compute_mhz, 1980);
  EXPECT_EQ(state.memory_mhz, 3201);
  EXPECT_EQ(state.celsius, 61);
  EXPECT_EQ(state.busy_percent, 97);
  EXPECT_EQ(state.milliwatts, 512'345);
  EXPECT_EQ(state.limit_milliwatts, 700'000);
  EXPECT_FALSE(GpuMeter(kFakeNvml, "0000:1C:00.0").State().milliwatts);
  EXPECT_FALSE(GpuMeter(kFakeNvml, "0000:1D:00.0").State().compute_mhz);
}

TEST(GpuMeter, TellsNothingOfAGpuThatIsNotThere) {
  EXPECT_FALSE(GpuMeter(kFakeNvml, "0000:1D:00.0").Read());
}

TEST(GpuMeter, TellsNothingWithoutNvmlOrItsFunctions) {
  EXPECT_FALSE(GpuMeter("libnvml-of-nobody.so.1", "0000:1B:00.0").Read());
  EXPECT_FALSE(GpuMeter("libc.so.6", "0000:1B:00.0").Read());
}

const std::string kFakeCupti = tests::BuildDirectory() + "/tests/libfake_cupti.so";

// Calls of the fake, which KernelTrace has loaded.
template <typename... Arguments>
void Tell(const char* function, Arguments... arguments) {
  void* const library = ::dlopen(kFakeCupti.c_str(), RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<void (*)(Arguments...)>(::dlsym(library, function))(arguments...);
  ::dlclose(library);
}

void RunKernel(const char* name, std::uint64_t begin, std::uint64_t length) {
  Tell("RunKernel", name, begin, length);
}

TEST(KernelTrace, HasEachKernelByItsBeginAndInNamesOfTheSource) {
  KernelTrace trace({"libno_such_cupti.so", kFakeCupti});
  ASSERT_EQ(trace.problem(), "");
  RunKernel("before the start", 0, 1);
  trace.Start();
  RunKernel("late", 500'000'000, 2'000'000);
  RunKernel("_ZN7trainer6UpdateEif", 250'000'000, 1'500);
  EXPECT_TRUE(trace.Take().empty()) << "CUPTI has not handed the buffer over";
  RunKernel("third", 750'000'000, 1);
  const std::vector<TracedKernel> kernels = trace.Take();
  ASSERT_EQ(kernels.size(), 3);
  EXPECT_EQ(kernels[0].name, "trainer::Update(int, float)");
  EXPECT_DOUBLE_EQ(kernels[0].begin, 0.25);
  EXPECT_DOUBLE_EQ(kernels[0].seconds, 1.5e-6);
  EXPECT_EQ(kernels[1].name, "late");
  EXPECT_EQ(kernels[2].name, "third");
  EXPECT_TRUE(trace.Take().empty());
}

TEST(KernelTrace, HasTheRestAtTheEndAndNothingAfterIt) {
  KernelTrace trace({kFakeCupti});
  trace.Start();
  RunKernel("last", 0, 1);
  Tell("LoseKernels", std::size_t{7});
  const std::vector<TracedKernel> kernels = trace.Stop();
  ASSERT_EQ(kernels.size(), 1);
  EXPECT_EQ(kernels[0].name, "last");
  EXPECT_EQ(trace.lost(), 7);
  RunKernel("after", 0, 1);
  EXPECT_TRUE(trace.Stop().empty());
}

TEST(KernelTrace, SaysWhyThereIsNone) {
  EXPECT_THAT(KernelTrace({"libno_such_cupti.so"}).problem(), StartsWith("CUPTI is not here: "));
  EXPECT_EQ(KernelTrace({"libm.so.6"}).problem(), "CUPTI has no cuptiActivityRegisterCallbacks");
  ::setenv("FAKE_CUPTI_REFUSES", "1", 1);
  EXPECT_EQ(KernelTrace({kFakeCupti}).problem(),
            "CUPTI refuses: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
  ::unsetenv("FAKE_CUPTI_REFUSES");
}

// A machine of 100 GFLOP/s and 10 GB/s, and two steps of three ops.
class OpProfileTest : public testing::Test {
 protected:
  static ProfileHead Head() {
    ProfileHead head;
    head.backend = "a back end";
    head.first_step = 4;
    head.steps = 2;
    head.step_seconds = 0.05;
    head.peaks = {100e9, 10e9};
    return head;
  }
  // By computing 10 ms, by moving 5 ms: a limit of 10 ms, in 20 ms.
  // By computing 1 ms, by moving 4 ms, twice in a step: a limit of 8 ms, in 9 ms.
  // A tenth of its limit.
  static std::vector<ProfiledOp> Ops() {
    return {{"conv1", "convolution forward", "1x2 > 1x3, 1x1", {1e9, 50e6}, 2, 0.04},
            {"bn1", "batch norm forward", "1x3", {0.1e9, 40e6}, 4, 0.018},
            {"conv1", "convolution backward filter", "1x2 > 1x3, 1x1", {1e7, 0}, 2, 0.002}};
  }
  const OpProfile profile_ = AnalyzeOps(Head(), Ops());
};

TEST_F(OpProfileTest, AnOpIsHeldToTheLimitThatTakesLonger) {
  ASSERT_EQ(profile_.ops.size(), 3);
  const ProfileRow& convolution = profile_.ops[0];
  EXPECT_EQ(convolution.op, "convolution forward");
  EXPECT_DOUBLE_EQ(convolution.calls, 1);
  EXPECT_DOUBLE_EQ(convolution.seconds, 0.02);
  EXPECT_DOUBLE_EQ(convolution.limit_seconds, 0.01);
  EXPECT_DOUBLE_EQ(convolution.lost_seconds(), 0.01);
  EXPECT_DOUBLE_EQ(convolution.share(), 0.5);
  EXPECT_STREQ(convolution.bound(), "compute");
  const ProfileRow& norm = profile_.ops[1];
  EXPECT_DOUBLE_EQ(norm.calls, 2);
  EXPECT_DOUBLE_EQ(norm.seconds, 0.009);
  EXPECT_DOUBLE_EQ(norm.limit_seconds, 0.008);
  EXPECT_DOUBLE_EQ(norm.work.bytes, 80e6);
  EXPECT_STREQ(norm.bound(), "memory");
}

TEST_F(OpProfileTest, TheWorstIsTheOneWithTheMostTimeBeyondItsLimit) {
  std::vector<ProfiledOp> ops = Ops();
  EXPECT_EQ(profile_.ops[2].op, "convolution backward filter");  // 0.9 ms, at a share of 10 %
  ops[2].seconds = 1;
  EXPECT_EQ(AnalyzeOps(Head(), ops).ops[0].op, "convolution backward filter");
}

TEST_F(OpProfileTest, SumsByLayerAndByKind) {
  ASSERT_EQ(profile_.layers.size(), 2);
  EXPECT_EQ(profile_.layers[0].layer, "conv1");
  EXPECT_EQ(profile_.layers[0].op, "");
  EXPECT_DOUBLE_EQ(profile_.layers[0].seconds, 0.021);
  EXPECT_DOUBLE_EQ(profile_.layers[0].limit_seconds, 0.0101);
  EXPECT_DOUBLE_EQ(profile_.layers[0].work.flop, 1.01e9);
  EXPECT_EQ(profile_.layers[1].layer, "bn1");
  ASSERT_EQ(profile_.kinds.size(), 3);
  EXPECT_EQ(profile_.kinds[0].op, "convolution forward");
  EXPECT_EQ(profile_.kinds[0].layer, "");
  EXPECT_DOUBLE_EQ(profile_.all.seconds, 0.03);
  EXPECT_DOUBLE_EQ(profile_.all.limit_seconds, 0.0181);
}

TEST_F(OpProfileTest, LinesSayWhatWasMeasuredAndAgainstWhat) {
  const std::vector<std::string> lines = ProfileLines(profile_, 2);
  EXPECT_EQ(lines[0], "Profile of steps 4 to 5 on rank 0, means of a step; a back end");
  EXPECT_EQ(lines[1], "limits   100.0 GFLOP/s and 10.00 GB/s, given by --roofline");
  EXPECT_EQ(lines[2],
            "step     50.000 ms: 30.000 ms in ops, which at their limits take 18.100 ms (60 %); "
            "20.000 ms outside of ops");
  EXPECT_THAT(lines, Contains("Ops, likewise (the first 2 of 3)"));
  EXPECT_THAT(lines, Contains("By layer, likewise"));
  EXPECT_THAT(lines, Contains("    10.000    20.000       40.0        1     1.000     50.00      "
                              "50.0      2.5  compute   50 %  conv1  convolution forward  "
                              "1x2 > 1x3, 1x1"));
  ProfileHead head = Head();
  head.are_peaks_measured = true;
  EXPECT_THAT(ProfileLines(AnalyzeOps(head, Ops()), 2)[1],
              HasSubstr("measured at the start of this run"));
}

TEST_F(OpProfileTest, TitlesStandAboveTheirNumbers) {
  std::string titles;
  std::string numbers;
  const std::vector<std::string> lines = ProfileLines(profile_, 2);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].ends_with("share")) continue;
    titles = lines[i];
    numbers = lines[i + 1];
  }
  for (const char* title : {"lost ms", "% of step", "GFLOP/s", "GB/s"}) {
    const std::size_t end = titles.find(title) + std::string(title).size();
    EXPECT_TRUE(std::isdigit(numbers.at(end - 1))) << title << " of " << numbers;
    EXPECT_EQ(numbers.at(end), ' ') << title << " of " << numbers;
  }
}

TEST_F(OpProfileTest, CsvHasALineForEachOp) {
  std::istringstream lines(ProfileCsv(profile_));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "layer,op,shape,calls,seconds,flop,bytes,limit,limit_seconds,lost_seconds,share");
  std::getline(lines, line);
  EXPECT_EQ(line,
            "conv1,convolution forward,\"1x2 > 1x3, 1x1\",1.0,0.02,1000000000.0,50000000.0,compute,"
            "0.01,0.01,0.5");
  std::getline(lines, line);
  EXPECT_THAT(line, StartsWith("bn1,batch norm forward,1x3,2.0,0.009,"));
}

TEST_F(OpProfileTest, JsonHasAllOfIt) {
  const auto document = nlohmann::json::parse(ProfileJson(profile_));
  EXPECT_EQ(document.at("backend"), "a back end");
  EXPECT_EQ(document.at("first_step"), 4);
  EXPECT_EQ(document.at("steps"), 2);
  EXPECT_EQ(document.at("step_seconds"), 0.05);
  EXPECT_EQ(document.at("op_seconds"), 0.03);
  EXPECT_EQ(document.at("peak_flops"), 100e9);
  EXPECT_EQ(document.at("peak_bytes_per_second"), 10e9);
  EXPECT_EQ(document.at("peaks"), "given");
  ASSERT_EQ(document.at("ops").size(), 3);
  EXPECT_EQ(document["ops"][0].at("layer"), "conv1");
  EXPECT_EQ(document["ops"][0].at("limit"), "compute");
  EXPECT_EQ(document["ops"][0].at("lost_seconds"), 0.01);
  EXPECT_EQ(document.at("layers").size(), 2);
  EXPECT_FALSE(document["layers"][0].contains("op"));
  EXPECT_EQ(document.at("kinds").size(), 3);
}

TEST(OpProfile, OfNoOpsIsEmpty) {
  const OpProfile profile = AnalyzeOps({.peaks = {1, 1}}, {});
  EXPECT_EQ(profile.all.share(), 0);
  EXPECT_TRUE(nlohmann::json::parse(ProfileJson(profile)).at("ops").empty());
}

TEST(PeakFlopsOfCard, GoesByTheNameOfTheDriver) {
  struct Row {
    std::string_view name;
    std::optional<double> flops;
  };
  for (const Row& row : {
           Row{"Tesla V100-SXM2-32GB", 125e12},
           {"Tesla V100-PCIE-16GB", 112e12},
           {"Tesla T4", 65e12},
           {"NVIDIA A10", 125e12},
           {"NVIDIA A100-SXM4-80GB", 312e12},
           {"NVIDIA A100 80GB PCIe", 312e12},
           {"NVIDIA L4", 121e12},
           {"NVIDIA L40", 181e12},
           {"NVIDIA L40S", 362e12},
           {"NVIDIA H100 80GB HBM3", 989e12},
           {"NVIDIA H100 PCIe", 756e12},
           {"NVIDIA H200", 989e12},
           {"NVIDIA H200 NVL", 835e12},
           {"NVIDIA GH200 480GB", 989e12},
           {"NVIDIA GH200 144G HBM3e", 989e12},
           {"NVIDIA B200", 2250e12},
           {"NVIDIA GB200", 2500e12},
           {"NVIDIA GeForce RTX 4090", 165.2e12},
           {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 503.8e12},
           // Others, some of them slower than what their names begin with.
           {"NVIDIA A10G", std::nullopt},
           {"NVIDIA RTX A1000", std::nullopt},
           {"NVIDIA GeForce RTX 3060", std::nullopt},
           {"NVIDIA GeForce RTX 4090 Laptop GPU", std::nullopt},
           {"NVIDIA GeForce RTX 5090 D", std::nullopt},
           {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", std::nullopt},
           {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", std::nullopt},
           {"", std::nullopt},
       }) {
    EXPECT_EQ(PeakFlopsOfCard(row.name), row.flops) << row.name;
  }
}

StepTimes Times(double forward, double step) {
  StepTimes times;
  times[StepPhase::kForward] = forward;
  times.step = step;
  return times;
}

TEST(StepTimer, HasZeroTimesBeforeTheFirstStep) {
  const StepTimer timer;
  EXPECT_EQ(timer.count(), 0U);
  EXPECT_EQ(timer.Mean().step, 0);
  EXPECT_EQ(timer.Median()[StepPhase::kForward], 0);
}

TEST(StepTimer, TakesMeanAndMedianOfEachPhase) {
  StepTimer timer;
  for (const double forward : {1.0, 2.0, 9.0}) timer.Add(Times(forward, 2 * forward));
  EXPECT_DOUBLE_EQ(timer.Mean()[StepPhase::kForward], 4);
  EXPECT_DOUBLE_EQ(timer.Median()[StepPhase::kForward], 2);
  EXPECT_DOUBLE_EQ(timer.Mean().step, 8);
  EXPECT_DOUBLE_EQ(timer.Median().step, 4);
  EXPECT_EQ(timer.Median()[StepPhase::kUpdate], 0);
}

TEST(StepTimer, TakesTheMiddleOfTheMiddleTwo) {
  StepTimer timer;
  for (const double step : {4.0, 1.0, 2.0, 100.0}) timer.Add(Times(0, step));
  EXPECT_DOUBLE_EQ(timer.Median().step, 3);
}

TEST(StepTimer, LooksAtTheLastStepsOnly) {
  StepTimer timer(2);
  for (const double step : {100.0, 1.0, 3.0}) timer.Add(Times(0, step));
  EXPECT_EQ(timer.count(), 2U);
  EXPECT_DOUBLE_EQ(timer.Mean().step, 2);
}

// A benchmark of any length.
TEST(StepTimer, LooksAtAllOfManySteps) {
  StepTimer timer;
  for (int i = 0; i < 3000; ++i) timer.Add(Times(0, i < 1501 ? 1 : 2));
  EXPECT_EQ(timer.count(), 3000U);
  EXPECT_DOUBLE_EQ(timer.Median().step, 1);
}

TEST(StepTimer, DropsTheOldestFirst) {
  StepTimer timer(2);
  for (const double step : {1.0, 2.0, 3.0, 4.0, 5.0}) timer.Add(Times(0, step));
  EXPECT_DOUBLE_EQ(timer.Mean().step, 4.5);
}

TEST(StepTimer, ForgetsOnReset) {
  StepTimer timer(4);
  timer.Add(Times(0, 100));
  timer.Reset();
  timer.Add(Times(0, 1));
  EXPECT_EQ(timer.count(), 1U);
  EXPECT_DOUBLE_EQ(timer.Mean().step, 1);
}

TEST(StepTimer, RejectsAnEmptyWindow) { EXPECT_THROW(StepTimer(0), Error); }

TEST(StepTimer, NamesItsPhases) {
  EXPECT_EQ(NameOf(StepPhase::kInputWait), "input wait");
  EXPECT_EQ(NameOf(StepPhase::kExposedAllReduce), "exposed all-reduce");
}

TEST(StepTimer, WaitingForOtherRanksIsNotOwnTime) {
  StepTimes times{.step = 100};
  double next = 1;
  for (double& phase : times.phases) phase = std::exchange(next, next * 2);
  EXPECT_DOUBLE_EQ(BusySeconds(times), 1 + 2 + 4 + 16);
}

}  // namespace
}  // namespace trainer
