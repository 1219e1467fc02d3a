// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

// As ddlbench prints it, behind lines of ddlrun.
constexpr char kTable[] =
    "ddlrun: starting 2 ranks with the srun launcher\n"
    "# ddlbench allreduce: MPI (Open MPI v4.1.4), 2 ranks\n"
    "#       (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
    "       65536         16384     float     sum      -1      N/A     N/A     N/A    N/A    40.00 "
    "   "
    "1.59    1.59      0\n"
    "     1048576        262144     float     sum      -1      N/A     N/A     N/A    N/A    "
    "1000.0    "
    "4.06    4.06      0\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 3.7916 \n";

TEST(Figures, AreReadFromTheTable) {
  const std::vector<SizeTime> times = ParseAllReduce(kTable);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].bytes, 65536);
  EXPECT_DOUBLE_EQ(times[0].microseconds, 40);
  EXPECT_DOUBLE_EQ(times[1].microseconds, 1000);
  EXPECT_NEAR(ScoreOf(times), 200, 1e-9);
  EXPECT_FALSE(IsOfNccl(kTable));
  EXPECT_TRUE(IsOfNccl("# ddlbench allreduce: NCCL 2.18.5, 8 ranks\n"));
}

TEST(Figures, OfATableThatIsNotWholeOrWrongAreNone) {
  const std::string table = kTable;
  EXPECT_TRUE(ParseAllReduce("").empty());
  EXPECT_TRUE(ParseAllReduce(table.substr(0, table.find("# Avg"))).empty());
  std::string wrong = table;
  wrong.replace(wrong.find("      0\n"), 8, "      1\n");
  EXPECT_TRUE(ParseAllReduce(wrong).empty());
}

TEST(Summary, OfFiveLeavesTheOddOnesOutOfTheScatter) {
  const Summary summary = Summarize({100, 10, 12, 11, 1});
  EXPECT_DOUBLE_EQ(summary.median, 11);
  EXPECT_DOUBLE_EQ(summary.scatter, 2);
  EXPECT_DOUBLE_EQ(Summarize({3, 1}).median, 2);
  EXPECT_DOUBLE_EQ(Summarize({3, 1}).scatter, 2);
  EXPECT_DOUBLE_EQ(Summarize({7}).median, 7);
  EXPECT_DOUBLE_EQ(Summarize({7}).scatter, 0);
}

TEST(IsBetter, NeedsMoreThanTheScatterOfEither) {
  EXPECT_TRUE(IsBetter({80, 10}, {100, 10}));
  EXPECT_FALSE(IsBetter({80, 20}, {100, 1}));
  EXPECT_FALSE(IsBetter({80, 1}, {100, 20}));
  EXPECT_FALSE(IsBetter({100, 0}, {80, 0}));
  EXPECT_FALSE(IsBetter({98, 0}, {100, 0}));
  EXPECT_TRUE(IsBetter({96, 0}, {100, 0}));
}

TEST(Texts, HaveUnits) {
  EXPECT_EQ(MicrosecondsText(9.5), "9.50 us");
  EXPECT_EQ(MicrosecondsText(450), "450 us");
  EXPECT_EQ(MicrosecondsText(12345), "12.3 ms");
  EXPECT_EQ(MicrosecondsText(2.5e6), "2.50 s");
  EXPECT_EQ(SummaryText({1200, 30}), "1.20 ms (scatter 30.0 us)");
}

}  // namespace
}  // namespace launcher
