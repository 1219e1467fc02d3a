// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/load_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/control/sample_status.h"

namespace ddlctl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> LinesOf(const trainer::RunStatus& status) {
  std::vector<std::string> lines;
  for (const LoadRow& row : LoadRows(status)) {
    lines.push_back(row.name + "|" + row.time + "|" + row.rest);
  }
  return lines;
}

// So many ranks, each 1 ms slower than the one before it, rank 0 but for that the quickest.
trainer::RunStatus ManyRanks(int ranks) {
  trainer::RunStatus status;
  status.identity.ranks = ranks;
  status.median_own_seconds = 0.1;
  for (int rank = 0; rank < ranks; ++rank) {
    status.loads.push_back({.rank = rank, .host = "n1", .own_seconds = 0.1 + rank * 0.001});
  }
  return status;
}

TEST(LoadRows, AreNoneWhereNothingIsKnown) { EXPECT_THAT(LinesOf({}), IsEmpty()); }

TEST(LoadRows, OfFewRanksAreAllOfThemInTheirOrder) {
  EXPECT_THAT(LinesOf(trainer::SampleStatus()),
              ElementsAre("own time, median|550.0 ms|of 2 ranks; >: slowest",
                          "  rank 0, gpu025|550.0 ms|  +0 %  data  2 %  GPU 98 %  1980 MHz  61 C",
                          "> rank 1, gpu026|688.0 ms| +25 %  data 40 %"));
  EXPECT_THAT(LinesOf(ManyRanks(6)), testing::SizeIs(7));
}

TEST(LoadRows, OfOneRankNameNoneAsTheSlowest) {
  trainer::RunStatus status = ManyRanks(1);
  status.loads[0].host = "";
  EXPECT_THAT(LinesOf(status),
              ElementsAre("own time, median|100.0 ms|of 1 rank", "  rank 0|100.0 ms|  +0 %"));
}

TEST(LoadRows, OfManyRanksAreTheSlowestAndASummary) {
  EXPECT_THAT(LinesOf(ManyRanks(32)),
              ElementsAre("own time, median|100.0 ms|of 32 ranks; >: slowest",
                          "> rank 31, n1|131.0 ms| +31 %", "  rank 30, n1|130.0 ms| +30 %",
                          "  rank 29, n1|129.0 ms| +29 %", "  rank 28, n1|128.0 ms| +28 %",
                          "  28 more, up to|127.0 ms| +27 %"));
  trainer::RunStatus status = ManyRanks(7);
  EXPECT_EQ(LinesOf(status).back(), "  3 more, up to|102.0 ms|  +2 %");
  // Of more than are told.
  status.identity.ranks = 1024;
  EXPECT_EQ(LinesOf(status).back(), "  1020 more, up to|102.0 ms|  +2 %");
}

TEST(LoadRows, KeepToTheirColumnAndMoveNoCursor) {
  trainer::RunStatus status = ManyRanks(2);
  status.loads[1].rank = 1023;
  status.loads[1].host = "\x1b[2Jvery-long-name-of-a-node.cluster.example";
  EXPECT_EQ(LoadRows(status)[2].name, "> rank 1023, ?[2Jver");
}

TEST(SlowestText, IsSaidFromFivePercentOn) {
  EXPECT_EQ(SlowestText(trainer::SampleStatus()), "slowest rank 1 on gpu026 +25 %");
  trainer::RunStatus status = ManyRanks(2);
  EXPECT_EQ(SlowestText(status), "");
  status.loads[1].own_seconds = 0.1051;
  EXPECT_EQ(SlowestText(status), "slowest rank 1 on n1 +5 %");
  status.loads.resize(1);
  EXPECT_EQ(SlowestText(status), "");
  EXPECT_EQ(SlowestText({}), "");
}

}  // namespace
}  // namespace ddlctl
