// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kCopies[] =
    "# ddlbench copies: 67108864 bytes of the host's memory, the median of 5 copies, ...\n"
    "#  rank  host              device        bridge    from  to device    to host\n"
    "     0  n1                0004:04:00.0  0004:00    all       9.00       9.00\n"
    "     1  n1                0035:03:00.0  0035:00    all      30.00      15.00\n"
    "     0  n1                0004:04:00.0  0004:00  bound      10.00      10.00\n"
    "     1  n1                0035:03:00.0  0035:00  bound      30.00      15.00\n"
    "srun: a word of something else\n"
    "     0  n1                0004:04:00.0  0004:00      0      10.00      10.00\n"
    "     0  n1                0004:04:00.0  0004:00      8      40.00      40.00\n"
    "     1  n1                0035:03:00.0  0035:00      8       0.00      40.00\n";

TEST(ParseCopies, TakesTheRowsAlone) {
  const std::vector<CopyRow> rows = ParseCopies(kCopies);
  ASSERT_THAT(rows, SizeIs(6));
  EXPECT_EQ(rows[0].from, kAll);
  EXPECT_EQ(rows[1].rank, 1);
  EXPECT_EQ(rows[1].host, "n1");
  EXPECT_EQ(rows[1].device, "0035:03:00.0");
  EXPECT_EQ(rows[1].bridge, "0035:00");
  EXPECT_DOUBLE_EQ(rows[1].rate, 20);  // 2 / (1/30 + 1/15)
  EXPECT_EQ(rows[2].from, kBound);
  EXPECT_EQ(rows[5].from, 8);
  EXPECT_THAT(ParseCopies(""), IsEmpty());
}

TEST(CopyRemarks, NameARankThatIsBoundFarFromItsDevice) {
  const std::vector<CopyRow> run = ParseCopies(kCopies);
  EXPECT_THAT(
      CopyRemarks({run, run, run}),
      ElementsAre(
          "copies to devices and back, all ranks at once: 14.5 GB/s in the median, 9.00 GB/s "
          "of rank 0 on n1 (0004:04:00.0)",
          "rank 0 on n1 (0004:04:00.0) is bound far from its device: 10.0 GB/s, from NUMA "
          "node 8 40.0 GB/s",
          "if hwloc does not know better, tell it: export "
          "HWLOC_PCI_LOCALITY=\"0004:00 $(hwloc-calc -p numa:8)\""));
}

// Rank r on n<r / 2>, with a rate where it is bound and one on node 0.
std::vector<CopyRow> Rows(const std::vector<double>& bound, double on_node_0,
                          const std::string& device = "0000:3b:00.0") {
  std::vector<CopyRow> rows;
  for (int rank = 0; rank < static_cast<int>(bound.size()); ++rank) {
    const std::string host = "n" + std::to_string(rank / 2);
    for (const int from : {kAll, kBound}) {
      rows.push_back({rank, host, device, "0000:3a", from, bound[static_cast<std::size_t>(rank)]});
    }
    rows.push_back({rank, host, device, "0000:3a", 0, on_node_0});
  }
  return rows;
}

TEST(CopyRemarks, AreOfNoRankWithinTheScatterOrALittleFaster) {
  EXPECT_THAT(CopyRemarks({Rows({10, 10}, 11.9), Rows({10, 10}, 11.9)}), SizeIs(1));
  EXPECT_THAT(CopyRemarks({Rows({10, 10}, 12.1), Rows({10, 10}, 12.1)}), SizeIs(4));
  // From 5 to 40 GB/s from one run to the next.
  EXPECT_THAT(CopyRemarks({Rows({10, 10}, 5), Rows({10, 10}, 14), Rows({10, 10}, 40)}), SizeIs(1));
}

TEST(CopyRemarks, NameARankWhoseCopiesAreSlow) {
  EXPECT_THAT(
      CopyRemarks({Rows({10, 10, 6.9, 10}, 6)}),
      ElementsAre(HasSubstr("6.90 GB/s of rank 2 on n1 (0000:3b:00.0)"),
                  "rank 2 on n1 (0000:3b:00.0) copies at 6.90 GB/s, the median has 10.0 GB/s: "
                  "is its link narrower, or its memory slower?"));
  EXPECT_THAT(CopyRemarks({Rows({10, 10, 7.1, 10}, 6)}), SizeIs(1));
}

TEST(CopyRemarks, OfMemoryOfTheHostKnowNoNearerNode) {
  EXPECT_THAT(CopyRemarks({Rows({10, 10}, 40, "-")}),
              ElementsAre("copies in the memory of the hosts, all ranks at once: 10.0 GB/s in the "
                          "median, 10.0 GB/s of rank 0 on n0"));
  EXPECT_THAT(CopyRemarks({Rows({10, 1, 10}, 10, "-")}), SizeIs(2));
}

TEST(CopyRemarks, CountWhomTheyDoNotName) {
  const std::vector<std::string> lines = CopyRemarks({Rows(std::vector<double>(10, 10), 40)});
  ASSERT_THAT(lines, SizeIs(1 + kNamedRanks + 1 + 1));
  EXPECT_THAT(lines[kNamedRanks], StartsWith("rank 7 on n3"));
  EXPECT_EQ(lines[kNamedRanks + 1], "so are 2 more ranks: bound far from their devices");
  EXPECT_EQ(CopyRemarks({Rows(std::vector<double>(9, 10), 40)})[kNamedRanks + 1],
            "so is 1 more rank: bound far from their devices");
}

// One variable has all of them, and it is the same on all hosts.
TEST(CopyRemarks, TellHwlocOfEachBridgeOnce) {
  std::vector<CopyRow> run;
  const auto add = [&run](int rank, const std::string& host, const std::string& bridge, int near) {
    for (const int from : {kAll, kBound}) run.push_back({rank, host, "d", bridge, from, 10});
    run.push_back({rank, host, "d", bridge, near, 40});
  };
  add(0, "n1", "0000:3a", 1);
  add(1, "n1", "0000:3a", 1);
  add(2, "n1", "0000:80", 0);
  add(3, "n1", "-", 0);
  EXPECT_THAT(CopyRemarks({run}).back(),
              HasSubstr("HWLOC_PCI_LOCALITY=\"0000:3a $(hwloc-calc -p numa:1);0000:80 "
                        "$(hwloc-calc -p numa:0)\""));
  run.clear();
  add(0, "n1", "0000:3a", 1);
  add(1, "n2", "0000:3a", 0);
  EXPECT_EQ(
      CopyRemarks({run}).back(),
      "if hwloc does not know better, HWLOC_PCI_LOCALITY tells it, on each host (its manual)");
}

TEST(CopyRemarks, AreNoneWithoutFigures) {
  EXPECT_THAT(CopyRemarks({}), IsEmpty());
  EXPECT_THAT(CopyRemarks({{}}), IsEmpty());
  EXPECT_THAT(CopyRemarks({{{0, "n1", "-", "-", 0, 10}}}), IsEmpty());
}

}  // namespace
}  // namespace launcher
