// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/device_state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <stdexcept>

#include "tests/trainer/temporary_folder.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;

// A machine whose files under /proc and /sys the test writes.
class HostStateTest : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  TemporaryFolder folder_;
  HostState host_{folder_.path()};
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
  DeviceState state;
  state.compute_mhz = 2450;
  state.milliwatts = 95'400;
  EXPECT_EQ(InWords(state), "2450 MHz, 95 W");
}

TEST(StateSampler, ReadsAtOnceAndAgainAndAgain) {
  std::atomic<int> reads = 0;
  StateSampler sampler(
      [&] {
        DeviceState state;
        state.celsius = ++reads;
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
        DeviceState state;
        state.celsius = reads;
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

}  // namespace
}  // namespace trainer
