// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/stacks_request.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "support/descriptor.h"
#include "tests/support/other_user.h"
#include "tests/trainer/temporary_folder.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

class StacksRequestTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / kStacksRequestName; }
  void Write(const std::string& text) const { std::ofstream(file()) << text; }

  const TemporaryFolder folder_;
  const StacksRequest request_ = {
      .order = 0, .folder = "/scratch/my run/stacks", .ranks = {{"n1", 4711}, {"n2", 12}}};
};

TEST_F(StacksRequestTest, IsWhatTheHeaderSaysAndIsReadBack) {
  MakeStacksRequest(file(), request_);
  std::ifstream stream(file());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}),
            "00000000000000000000\n/scratch/my run/stacks\nn1 4711\nn2 12\n");
  const auto read = ReadStacksRequest(file());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->order, 0U);
  EXPECT_EQ(read->folder, "/scratch/my run/stacks");
  ASSERT_EQ(read->ranks.size(), 2U);
  EXPECT_EQ(read->ranks[0].host, "n1");
  EXPECT_EQ(read->ranks[1].pid, 12);
}

TEST_F(StacksRequestTest, AnOrderIsWrittenOverTheOneBefore) {
  MakeStacksRequest(file(), request_);
  EXPECT_EQ(ReadStacksOrder(file()), 0U);
  EXPECT_EQ(WriteStacksOrder(file(), 1764000000000000), 0);
  EXPECT_EQ(WriteStacksOrder(file(), 17), 0);
  EXPECT_EQ(ReadStacksOrder(file()), 17U);
  const auto read = ReadStacksRequest(file());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->order, 17U);
  EXPECT_EQ(read->ranks.size(), 2U);
}

TEST_F(StacksRequestTest, WithoutTheFileThereIsNoOrder) {
  EXPECT_EQ(ReadStacksOrder(file()), 0U);
  EXPECT_FALSE(ReadStacksRequest(file()));
  EXPECT_EQ(WriteStacksOrder(file(), 1), ENOENT);
  EXPECT_THROW(MakeStacksRequest(folder_.path() / "none" / "file", request_), Error);
}

TEST_F(StacksRequestTest, TakesNoOtherFile) {
  const std::string order = "00000000000000000001\n";
  Write(order + "/a\nn1 1\n");
  EXPECT_TRUE(ReadStacksRequest(file()));
  const std::vector<std::string> others = {"",
                                           "x",
                                           order,
                                           order + "/a",
                                           order + "/a\n",
                                           order + "a\nn1 1\n",
                                           "1\n/a\nn1 1\n",
                                           "0000000000000000000x\n/a\nn1 1\n",
                                           order + "/a\nn1 1",
                                           order + "/a\nn1\n",
                                           order + "/a\nn1 0\n",
                                           order + "/a\nn1 1x\n",
                                           order + "/a\n 1\n",
                                           order + "/a\nn1 1\n\n"};
  for (const std::string& text : others) {
    Write(text);
    EXPECT_FALSE(ReadStacksRequest(file())) << text;
  }
  for (const char* text : {"", "17", "0000000000000000000x\n", "99999999999999999999\n"}) {
    Write(text);
    EXPECT_EQ(ReadStacksOrder(file()), 0U) << text;
  }
}

TEST_F(StacksRequestTest, IsReadAndWrittenThroughNoLink) {
  MakeStacksRequest(folder_.path() / "other", request_);
  EXPECT_EQ(WriteStacksOrder(folder_.path() / "other", 17), 0);
  std::filesystem::create_symlink("other", file());
  EXPECT_EQ(ReadStacksOrder(file()), 0U);
  EXPECT_FALSE(ReadStacksRequest(file()));
  EXPECT_EQ(WriteStacksOrder(file(), 1), ELOOP);
}

TEST_F(StacksRequestTest, WaitsForNoPipeInItsPlace) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(ReadStacksOrder(file()), 0U);
  EXPECT_FALSE(ReadStacksRequest(file()));
  EXPECT_EQ(WriteStacksOrder(file(), 1), ENXIO);
  const support::Descriptor reader(::open(file().c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(WriteStacksOrder(file(), 1), EPERM);
}

TEST_F(StacksRequestTest, OfAnotherUserIsNone) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can give a file to another user";
  MakeStacksRequest(file(), request_);
  EXPECT_EQ(WriteStacksOrder(file(), 17), 0);
  ASSERT_EQ(::chown(file().c_str(), tests::kNobody, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(ReadStacksOrder(file()), 0U);
  EXPECT_FALSE(ReadStacksRequest(file()));
  EXPECT_EQ(WriteStacksOrder(file(), 1), EPERM);
}

TEST_F(StacksRequestTest, IsForThisUserAlone) {
  MakeStacksRequest(file(), request_);
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(file()).permissions(), perms::owner_read | perms::owner_write);
}

TEST(StacksOrder, RisesAlsoWhereTheClockDoesNot) {
  const std::uint64_t first = NextStacksOrder(0);
  EXPECT_GT(first, 1700000000000000U);
  EXPECT_GT(NextStacksOrder(first), first);
  EXPECT_EQ(NextStacksOrder(4000000000000000), 4000000000000001U);
}

TEST(StacksLooks, OfAllRanksAreNoMoreThanSixtyFourASecond) {
  EXPECT_EQ(SecondsBetweenStacksLooks(1), 1);
  EXPECT_EQ(SecondsBetweenStacksLooks(64), 1);
  EXPECT_EQ(SecondsBetweenStacksLooks(640), 10);
}

TEST(RankStacksText, IsReadBack) {
  const std::string text =
      FormatRankStacks({"rank 1 on n2, process 7: in training", 17, "thread 7 (x)\n  #0 f in p\n"});
  EXPECT_EQ(text,
            "rank 1 on n2, process 7: in training\nasked for by ddlctl, order 17\n\n"
            "thread 7 (x)\n  #0 f in p\n");
  const auto read = ParseRankStacks(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->headline, "rank 1 on n2, process 7: in training");
  EXPECT_EQ(read->order, 17U);
  EXPECT_EQ(read->stacks, "thread 7 (x)\n  #0 f in p\n");
  const auto unasked = ParseRankStacks(FormatRankStacks({"rank 1 on n2", 0, "thread\n"}));
  ASSERT_TRUE(unasked);
  EXPECT_EQ(unasked->order, 0U);
  EXPECT_EQ(unasked->stacks, "thread\n");
}

TEST(RankStacksText, OfAnyOtherKindIsNone) {
  for (const char* text :
       {"", "rank 1", "rank 1\n", "rank 1\nthread\n", "Rank 1\n\nthread\n",
        "rank 1\nasked for by ddlctl, order 0\n\n", "rank 1\nasked for by ddlctl, order x\n\n",
        "rank 1\nasked for by ddlctl, order 1\n", "rank 1\nasked for by ddlctl, order 1\nx\n"}) {
    EXPECT_FALSE(ParseRankStacks(text)) << text;
  }
  EXPECT_EQ(StacksFileName(12), "rank-12.txt");
}

}  // namespace
}  // namespace trainer
