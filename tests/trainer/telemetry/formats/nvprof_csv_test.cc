// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/nvprof_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace trainer {
namespace {

constexpr const char* kDevice = "Tesla V100-SXM2-16GB (1)";

// As nvprof itself printed them in the study's repository (its out/pagerank_GPU-...csv).
constexpr const char* kTitles =
    R"("Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z",)"
    R"("Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","SrcMemType",)"
    R"("DstMemType","Device","Context","Stream","System","Name","Correlation_ID")";

// The readers of the study split at each comma and strip quotes.
std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream text(line + ",");
  for (std::string cell; std::getline(text, cell, ',');) {
    std::erase(cell, '"');
    cells.push_back(cell);
  }
  return cells;
}

TEST(NvprofCsv, BeginsWithWhatReadersSkipTitlesAndUnits) {
  std::stringstream head(NvprofHead(1234, "a program"));
  std::string line;
  std::getline(head, line);
  EXPECT_EQ(line, "==1234== a program");
  std::getline(head, line);
  EXPECT_THAT(line, testing::StartsWith("==1234== "));
  std::getline(head, line);
  EXPECT_EQ(line, kTitles);
  std::getline(head, line);
  EXPECT_EQ(line, "s,ms,,,,,,,,B,B,MB,GB/s,,,,,,,,");
  EXPECT_EQ(CellsOf(line).size(), CellsOf(kTitles).size());
  EXPECT_FALSE(std::getline(head, line));
}

TEST(NvprofCsv, AKernelHasACellForEachTitle) {
  const std::string row = NvprofKernel(kDevice, 0.5266584, 0.0012345678, "volta_sgemm", 42);
  EXPECT_EQ(row,
            "0.526658,1.234568,,,,,,,,,,,,,,\"Tesla V100-SXM2-16GB (1)\",\"1\",\"1\",,"
            "\"volta_sgemm\",42\n");
  EXPECT_EQ(CellsOf(row.substr(0, row.size() - 1)).size(), CellsOf(kTitles).size());
}

TEST(NvprofCsv, NamesHaveNothingThatReadersStumbleOver) {
  const std::string row = NvprofKernel(kDevice, 1, 2, "f(int, \"a\")\n", 1);
  EXPECT_EQ(CellsOf(row.substr(0, row.size() - 1)).size(), CellsOf(kTitles).size());
  EXPECT_EQ(std::count(row.begin(), row.end(), '\n'), 1);
}

TEST(NvprofCsv, AStateHasARowForEachThing) {
  const DeviceState state = {1530, 877, 61, 250'123, 300'000};
  const std::string rows = NvprofState(kDevice, 0.25, state);
  EXPECT_EQ(rows,
            "0.250000,,,,,,,,,,,,,,,\"Tesla V100-SXM2-16GB (1)\",,,\"1530/877\",\"[SM/Memory "
            "Clock (MHz)]\",\n"
            "0.250000,,,,,,,,,,,,,,,\"Tesla V100-SXM2-16GB (1)\",,,\"61\",\"[Temperature (C)]\",\n"
            "0.250000,,,,,,,,,,,,,,,\"Tesla V100-SXM2-16GB (1)\",,,\"250123/300000\","
            "\"[Power/Limit (mW)]\",\n");
  std::stringstream lines(rows);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(CellsOf(line).size(), CellsOf(kTitles).size());
  }
}

TEST(NvprofCsv, WhatIsNotKnownIsLeftOutOrZero) {
  EXPECT_EQ(NvprofState(kDevice, 1, {}), "");
  DeviceState state;
  state.compute_mhz = 2445;
  state.milliwatts = 90'000;
  const std::string rows = NvprofState("CPU cores (0)", 1, state);
  EXPECT_THAT(rows, testing::HasSubstr("\"2445/0\""));
  EXPECT_THAT(rows, testing::HasSubstr("\"90000/0\""));
  EXPECT_THAT(rows, testing::Not(testing::HasSubstr("Temperature")));
}

}  // namespace
}  // namespace trainer
