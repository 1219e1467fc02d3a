// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/shard_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ddldata/inspect.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/files/record_index.h"

namespace trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kText[] =
    "ddldata manifest 1\n"
    "train-00000-of-00002 1250 143721084 5d8a01f3\n"
    "train-00001-of-00002 1251 143802131 08c1e0a9\n"
    "end 2 ";

const std::vector<ShardSummary> kShards = {{"train-00000-of-00002", 1250, 143721084, 0x5d8a01f3},
                                           {"train-00001-of-00002", 1251, 143802131, 0x08c1e0a9}};

TEST(ShardManifest, IsTextThatIsReadBack) {
  const std::string text = FormatShardManifest(kShards);
  EXPECT_THAT(text, StartsWith(kText));
  EXPECT_EQ(text.size(), std::string(kText).size() + 9);
  EXPECT_EQ(ParseShardManifest(text, "m"), kShards);
  EXPECT_TRUE(ParseShardManifest(FormatShardManifest({}), "m").empty());
}

std::string RefusalOfShardManifest(const std::string& text) {
  return DataErrorOf([&] { ParseShardManifest(text, "d/ddldata.manifest"); });
}

TEST(ShardManifest, RefusesOtherTextByItsLine) {
  const std::string text = FormatShardManifest(kShards);
  EXPECT_THAT(RefusalOfShardManifest(""),
              StartsWith("d/ddldata.manifest:1: expected \"ddldata manifest 1\""));
  EXPECT_THAT(RefusalOfShardManifest("ddldata manifest 0\n"),
              StartsWith("d/ddldata.manifest:1: expected \"ddldata manifest 1\""));
  EXPECT_THAT(RefusalOfShardManifest(text.substr(0, 40)),
              StartsWith("d/ddldata.manifest:2: the end is missing"));
  EXPECT_THAT(RefusalOfShardManifest("ddldata manifest 1\ntrain-0 x 1 00000000\n"),
              AllOf(StartsWith("d/ddldata.manifest:2: expected \"NAME RECORDS BYTES CHECKSUM\""),
                    HasSubstr("make a new one: ddldata manifest d")));
}

TEST(ShardManifest, RefusesEveryTextWithABitTurnedOrAByteLess) {
  const std::string text = FormatShardManifest(kShards);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    RefusalOfShardManifest(other);
    RefusalOfShardManifest(text.substr(0, i) + text.substr(i + 1));
  }
  RefusalOfShardManifest(text + "\n");
}

// A set of two shards of three records, and one of validation, with its manifest.
class ManifestOfASet : public ::testing::Test {
 protected:
  ManifestOfASet() {
    WriteRecords(one_, {"a", "b", "c"});
    WriteRecords(two_, {"d", "e", "f"});
    WriteRecords(dir_ / "validation-00000-of-00001", {"g"});
    MakeShardManifest(dir_.path(), false, 2);
  }

  void Open(const std::string& index_dir = "", const RankShare& share = {}) {
    DataSet(dir_.path(), index_dir, Split::kTrain, 2, share);
  }
  std::string RefusalOfShardManifest(const std::string& index_dir = "",
                                     const RankShare& share = {}) {
    return DataErrorOf([&] { Open(index_dir, share); });
  }

  TempDir dir_;
  const std::string one_ = dir_ / "train-00000-of-00002";
  const std::string two_ = dir_ / "train-00001-of-00002";
  const std::string manifest_ = dir_ / "ddldata.manifest";
};

TEST_F(ManifestOfASet, ListsTheFilesOfBothSplits) {
  const auto manifest = ReadShardManifest(dir_.path());
  ASSERT_TRUE(manifest);
  ASSERT_EQ(manifest->size(), 3U);
  EXPECT_EQ((*manifest)[0].name, "train-00000-of-00002");
  EXPECT_EQ((*manifest)[0].records, 3U);
  EXPECT_EQ((*manifest)[0].bytes, 3U * 17);
  Open();
}

TEST_F(ManifestOfASet, IsNotNeeded) {
  std::filesystem::remove(manifest_);
  EXPECT_FALSE(ReadShardManifest(dir_.path()));
  WriteRecords(two_, {"d"});
  Open();
}

TEST_F(ManifestOfASet, TellsOfRecordsThatAreMissingOrDoubled) {
  WriteRecords(two_, {"d", "f"});
  EXPECT_EQ(RefusalOfShardManifest(),
            two_ + " has 2 records, not the 3 of " + manifest_ +
                ": restore the file, or, if the folder is as it should be, make a new "
                "manifest: ddldata manifest " +
                dir_.path());
  WriteRecords(two_, {"d", "e", "e", "f"});
  EXPECT_THAT(RefusalOfShardManifest(), StartsWith(two_ + " has 4 records, not the 3 of "));
  WriteRecords(two_, {"d", "e", "long"});
  EXPECT_THAT(RefusalOfShardManifest(), StartsWith(two_ + " has 54 bytes, not the 51 of "));
}

TEST_F(ManifestOfASet, TellsOfRecordsThatAreExchanged) {
  for (const std::vector<std::string>& records :
       {std::vector<std::string>{"d", "f", "e"}, {"d", "e", "e"}, {"a", "b", "c"}}) {
    WriteRecords(two_, records);
    EXPECT_THAT(RefusalOfShardManifest(),
                StartsWith(two_ + " has other records than those, or in another order"));
  }
}

TEST_F(ManifestOfASet, TellsOfFilesThatAreMissingOrNew) {
  std::filesystem::remove(two_);
  std::filesystem::rename(one_, dir_ / "train-00000-of-00001");
  EXPECT_THAT(RefusalOfShardManifest(),
              StartsWith(dir_ / "train-00000-of-00001" + " is not in " + manifest_));
  std::filesystem::rename(dir_ / "train-00000-of-00001", dir_ / "train-a");
  WriteText(manifest_, FormatShardManifest(std::vector<ShardSummary>{
                           {"train-a", 3, 51, ReadShardManifest(dir_.path())->front().checksum},
                           {"train-b", 3, 51, 0}}));
  EXPECT_THAT(RefusalOfShardManifest(),
              StartsWith(dir_.path() + " has no file train-b, which is in " + manifest_));
}

// With index files each rank reads the checksums of its share: together, all.
TEST_F(ManifestOfASet, IsComparedByShareWhereThereAreIndexFiles) {
  const TempDir index;
  MakeIndexFiles(dir_.path(), index.path(), 1);
  Open(index.path());
  WriteRecords(two_, {"d", "f", "e"});
  EXPECT_THAT(RefusalOfShardManifest(index.path()), StartsWith(two_));
  EXPECT_THAT(RefusalOfShardManifest(index.path(), {.rank = 1, .ranks = 2}), StartsWith(two_));
  Open(index.path(), {.rank = 0, .ranks = 2});
}

TEST_F(ManifestOfASet, IsRefusedWhereItIsDamaged) {
  std::string text = ReadText(manifest_);
  text[text.size() / 2] ^= 1;
  WriteText(manifest_, text);
  EXPECT_THAT(RefusalOfShardManifest(), StartsWith(manifest_ + ":"));
}

TEST_F(ManifestOfASet, IsNotMadeOfNamesThatItCannotHold) {
  const TempDir dir;
  WriteRecords(dir / "train-a b", {"a"});
  EXPECT_THAT(DataErrorOf([&] { MakeShardManifest(dir.path(), false, 1); }),
              StartsWith(dir / "train-a b" + ": a name with a blank cannot be in a manifest"));
}

}  // namespace
}  // namespace trainer
