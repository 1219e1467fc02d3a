// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/gpu_samples_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/report/report_test_folder.h"
#include "trainer/telemetry/formats/nvprof_csv.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTitles[] =
    "==4711== NVPROF is profiling process 4711\n"
    "\"Start\",\"Duration\",\"Grid X\",\"Device\",\"System\",\"Name\",\"Correlation_ID\"\n";

class GpuSamplesTest : public ReportFolderTest {
 protected:
  static std::string Row(const std::string& start, int gpu, const std::string& value,
                         const std::string& name) {
    return start + ",,,\"Tesla V100-SXM2-16GB (" + std::to_string(gpu) + ")\",\"" + value +
           "\",\"[" + name + "]\",\n";
  }
};

TEST_F(GpuSamplesTest, AreThoseOfEachGpu) {
  const auto path = Write(
      "gpu.csv",
      std::string(kTitles) + "s,ms,,,,,\n" + Row("0.5", 0, "1530/877", "SM/Memory Clock (MHz)") +
          "0.6,0.1,80,\"Tesla V100-SXM2-16GB (0)\",,\"void kernel<a, \"\"b\"\">(int)\",12\n" +
          Row("0.5", 0, "41", "Temperature (C)") +
          Row("1.0", 0, "100000/300000", "Power/Limit (mW)") +
          Row("2.0", 0, "200000/300000", "Power/Limit (mW)") +
          Row("4.0", 0, "300000/300000", "Power/Limit (mW)") +
          Row("1.5", 1, "1380/877", "SM/Memory Clock (MHz)"));
  const auto gpus = ReadGpuSamples(path, complaints_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].name, "Tesla V100-SXM2-16GB (0)");
  EXPECT_THAT(gpus[0].sm_clock.points(), ElementsAre(SeriesPoint{0.5, 1530, 1530, 1530, 1}));
  EXPECT_THAT(gpus[0].memory_clock.points(), ElementsAre(SeriesPoint{0.5, 877, 877, 877, 1}));
  EXPECT_THAT(gpus[0].temperature.points(), ElementsAre(SeriesPoint{0.5, 41, 41, 41, 1}));
  EXPECT_EQ(gpus[0].power.count(), 3);
  EXPECT_DOUBLE_EQ(gpus[0].energy, 150 + 2 * 250);
  EXPECT_DOUBLE_EQ(gpus[0].power_seconds, 3);
  EXPECT_EQ(gpus[1].sm_clock.points().front().mean, 1380);
}

TEST_F(GpuSamplesTest, AreReadFromWhatATrainingWrites) {
  trainer::DeviceState state;
  state.compute_mhz = 1980;
  state.memory_mhz = 3201;
  state.celsius = 61;
  state.milliwatts = 512'345;
  state.limit_milliwatts = 700'000;
  const std::string gpu = "NVIDIA H200 (1)";
  const auto path = Write("resnet_7_1795343400_c1-7.csv",
                          trainer::NvprofHead(7, "ddltraind") +
                              trainer::NvprofKernel(gpu, 0.1, 0.002, "update(int, float)", 1) +
                              trainer::NvprofState(gpu, 0.25, state));
  const auto gpus = ReadGpuSamples(path, complaints_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].name, gpu);
  EXPECT_THAT(gpus[0].sm_clock.points(), ElementsAre(SeriesPoint{0.25, 1980, 1980, 1980, 1}));
  EXPECT_EQ(gpus[0].memory_clock.points().front().mean, 3201);
  EXPECT_EQ(gpus[0].temperature.points().front().mean, 61);
  EXPECT_EQ(gpus[0].power.points().front().mean, 512.345);
}

TEST_F(GpuSamplesTest, KnowTheUnitOfTheirTimes) {
  const auto gpus = ReadGpuSamples(Write("gpu.csv", std::string(kTitles) + "ms,us,,,,,\n" +
                                                        Row("500", 0, "41", "Temperature (C)")),
                                   complaints_);
  EXPECT_EQ(gpus.at(0).temperature.points().front().x, 0.5);
}

TEST_F(GpuSamplesTest, NameRowsThatAreWrong) {
  const auto path =
      Write("gpu.csv", std::string(kTitles) + "s,ms,,,,,\n" + Row("x", 0, "41", "Temperature (C)") +
                           Row("1", 0, "-4", "Temperature (C)") + "1,\"[Temperature (C)]\"\n" +
                           Row("1", 0, "41", "Temperature (C)") + "2,,,\"Tes");
  EXPECT_EQ(ReadGpuSamples(path, complaints_).at(0).temperature.count(), 1);
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr("gpu.csv:4: 'x' is no number from 0"),
                          HasSubstr(":5: '-4' is no number"),
                          HasSubstr(":6: 2 cells, but the titles are 7"), HasSubstr("note: ")));
  EXPECT_THAT(told_.back(), HasSubstr("gpu.csv:8: the file ends within this line"));
}

TEST_F(GpuSamplesTest, AreNoneOfOtherTables) {
  EXPECT_THAT(ReadGpuSamples(Write("t.csv", "bench,target\na,1\n"), complaints_), IsEmpty());
  EXPECT_THAT(ReadGpuSamples(Write("t.csv", ""), complaints_), IsEmpty());
  EXPECT_THAT(told_, IsEmpty());
  ReadGpuSamples(Write("t.csv", std::string(kTitles) + "hours,,,,,,\n"), complaints_);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("t.csv:3: the unit of Start is 'hours'")));
}

}  // namespace
}  // namespace bench
