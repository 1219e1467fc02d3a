// SPDX-License-Identifier: Apache-2.0

#include "ddldata/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class StatsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ / name; }
  void Write(const std::string& name, const std::vector<std::string>& records) const {
    WriteRecords(Path(name), records);
  }
  DataStats Measure() const { return MeasureDataSet(dir_.path(), 2); }

  TempDir dir_;
};

TEST_F(StatsTest, CountsImagesClassesAndSizes) {
  Write("train-0", {MakeImageRecord(1, 1, {40, 30}), MakeImageRecord(1, 2, {20, 50})});
  Write("train-1", {MakeImageRecord(3, 3, {60, 10}), MakeImageRecord(1, 4, {40, 20})});
  // One without bounding boxes.
  Write("validation-0", {MakeImageRecord(2, 5, {16, 16}), MakeRecordOf(MakeJpeg({20, 20}, 9), 2)});
  const DataStats stats = Measure();
  ASSERT_THAT(stats.splits, SizeIs(2));
  const SplitStats& train = stats.splits[0];
  EXPECT_EQ(train.name, "train");
  EXPECT_EQ(train.files, 2);
  EXPECT_EQ(train.records, 4);
  EXPECT_EQ(train.bytes, std::filesystem::file_size(Path("train-0")) +
                             std::filesystem::file_size(Path("train-1")));
  EXPECT_EQ(train.classes, 2);
  EXPECT_EQ(train.images_per_class.min, 1);
  EXPECT_EQ(train.images_per_class.max, 3);
  EXPECT_EQ(train.width.min, 20);
  EXPECT_EQ(train.width.median, 40);
  EXPECT_EQ(train.width.max, 60);
  EXPECT_EQ(train.height.median, 20);
  EXPECT_EQ(train.images_with_boxes, 4);
  EXPECT_EQ(stats.splits[1].records, 2);
  EXPECT_EQ(stats.splits[1].images_with_boxes, 1);
  EXPECT_THAT(stats.duplicates, SizeIs(0));
  const std::string text = FormatStats(stats);
  EXPECT_THAT(text, HasSubstr("  bounding boxes    of 4 images\n"));
  EXPECT_THAT(text, HasSubstr("  bounding boxes    of 1 image\n"));
  EXPECT_THAT(text, HasSubstr("  images per class  1 to 3, median 1\n"));
  EXPECT_THAT(text, HasSubstr("  width, pixels     20 to 60, median 40\n"));
  EXPECT_THAT(text, HasSubstr("0 images more than once; 0 in both splits, 0 with two labels\n"));
}

TEST_F(StatsTest, FindsImagesThatAreThereAgain) {
  const std::string once = MakeImageRecord(1, 1);
  Write("train-0", {once, MakeImageRecord(2, 2), MakeImageRecord(2, 3)});
  Write("train-1", {MakeImageRecord(2, 2), MakeImageRecord(1, 3)});
  Write("validation-0", {MakeImageRecord(2, 2), MakeImageRecord(1, 9)});
  const DataStats stats = Measure();
  ASSERT_THAT(stats.duplicates, SizeIs(2));
  const std::string second =
      Path("train-0") + ", record at offset " + std::to_string(once.size() + 16);
  EXPECT_THAT(stats.duplicates[0].records,
              ElementsAre(second, Path("train-1") + ", record at offset 0",
                          Path("validation-0") + ", record at offset 0"));
  EXPECT_TRUE(stats.duplicates[0].is_in_both_splits);
  EXPECT_FALSE(stats.duplicates[0].has_two_labels);
  EXPECT_THAT(stats.duplicates[1].records, SizeIs(2));
  EXPECT_FALSE(stats.duplicates[1].is_in_both_splits);
  EXPECT_TRUE(stats.duplicates[1].has_two_labels);
  const std::string text = FormatStats(stats);
  EXPECT_THAT(text, HasSubstr("2 images more than once; 1 in both splits, 1 with two labels\n  " +
                              second + "\n    = " + Path("train-1") + ", record at offset 0\n"));
}

TEST_F(StatsTest, HasAllOfItAsJson) {
  Write("train-0", {MakeImageRecord(1, 1), MakeImageRecord(2, 1)});
  const auto json = nlohmann::json::parse(FormatStatsAsJson(Measure()));
  EXPECT_EQ(json["splits"]["train"]["records"], 2);
  EXPECT_EQ(json["splits"]["train"]["images_with_boxes"], 2);
  EXPECT_EQ(json["splits"]["train"]["width"]["max"], 40);
  EXPECT_FALSE(json["splits"].contains("validation"));
  EXPECT_EQ(json["duplicates"][0]["records"].size(), 2U);
  EXPECT_EQ(json["duplicates"][0]["two_labels"], true);
}

TEST_F(StatsTest, NamesTheFirstFewDuplicates) {
  std::vector<std::string> records;
  for (std::uint64_t seed = 1; seed <= 7; ++seed) {
    records.push_back(MakeImageRecord(1, seed));
    records.push_back(records.back());
  }
  Write("train-0", records);
  EXPECT_THAT(FormatStats(Measure()), HasSubstr("\n  ...: --json lists all\n"));
  Write("train-0", std::vector<std::string>(6, MakeImageRecord(1)));
  EXPECT_THAT(FormatStats(Measure()), HasSubstr("\n    and 2 more\n"));
}

TEST_F(StatsTest, RefusesWhatCannotBeRead) {
  EXPECT_THAT(DataErrorOf([&] { Measure(); }), HasSubstr("has no file train-* or validation-*"));
  Write("train-0", {MakeImageRecord(1, 1), MakeRecordOf("text")});
  EXPECT_THAT(
      DataErrorOf([&] { Measure(); }),
      HasSubstr("train-0, record at offset " + std::to_string(MakeImageRecord(1, 1).size() + 16) +
                ": the image is not a JPEG file"));
}

}  // namespace
}  // namespace trainer
