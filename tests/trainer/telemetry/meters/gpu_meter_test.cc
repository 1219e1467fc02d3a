// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/gpu_meter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/folders.h"

namespace trainer {
namespace {

const std::string kFakeNvml = tests::BuildFolder() + "/tests/libfake_energy_nvml.so";

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

}  // namespace
}  // namespace trainer
