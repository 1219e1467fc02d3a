// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/all_reduce_forms.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

}  // namespace
}  // namespace bench
