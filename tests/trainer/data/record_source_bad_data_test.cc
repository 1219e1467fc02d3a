// SPDX-License-Identifier: Apache-2.0
//
// What a source does about data that it cannot use.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/data/record_source_fixture.h"
#include "trainer/data/files/record_index.h"
#include "trainer/data/files/tfrecord.h"
#include "trainer/data/record_source.h"

namespace trainer {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(RecordSourceTest, RefusesIndexThatDoesNotFit) {
  const TempDir index;
  RecordSourceOptions indexed = options_;
  indexed.data_idx_dir = index.path();
  EXPECT_EQ(Refusal(indexed),
            index.path() + " has no index of " + dir_ / "train-00000-of-00003" +
                ", neither train-00000-of-00003 nor train-00000-of-00003.idx; make it with: "
                "ddldata index DATA_DIR INDEX_DIR");
  for (const char* name :
       {"train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"}) {
    WriteText(index / name, "0 100\n");
  }
  EXPECT_THAT(Refusal(indexed),
              StartsWith(index / "train-00000-of-00003" + ":2: the index ends at byte 100"));
}

TEST_F(RecordSourceTest, RefusesDirectoriesWithoutData) {
  RecordSourceOptions options = options_;
  options.data_dir = "/no/such/directory";
  EXPECT_EQ(Refusal(options),
            "cannot read the data directory /no/such/directory: No such file or directory");
  const TempDir empty;
  options.data_dir = empty.path();
  EXPECT_THAT(Refusal(options),
              StartsWith("the data directory " + empty.path() + " has no file train-*; expected"));
  options.data_dir = dir_ / "train-00000-of-00003";
  EXPECT_THAT(Refusal(options), HasSubstr("Not a directory"));
}

TEST_F(RecordSourceTest, RefusesEmptyAndTruncatedFiles) {
  const std::string path = dir_ / "train-00001-of-00003";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
  EXPECT_THAT(Refusal(options_), HasSubstr("the file is truncated"));
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(Refusal(options_), path + " is empty: it has no record");
}

TEST_F(RecordSourceTest, NamesBadRecordsByFileAndOffset) {
  const std::string path = dir_ / "train-00001-of-00003";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"not an example", "the data is not a tf.train.Example"},
      {MakeRecordOf("plain text"),
       "the image is not a JPEG file: it is text that begins with "
       "\"plain text\""},
      {MakeRecordOf(MakeJpeg({40, 30}), 12), "the label 12 is out of range: allowed is 1 to 11"},
      {MakeRecordOf(MakeJpeg({40, 30}), 0),
       "the label 0 is out of range: allowed is 1 to 11; labels count from 1, as "
       "build_imagenet_data.py writes them, those of TF-slim and TFDS from 0: make such a set anew "
       "of its images, by ddldata convert"},
  };
  for (const auto& [record, problem] : cases) {
    const std::string good = MakeImageRecord(1);
    WriteRecords(path, {good, record});
    EXPECT_EQ(Refusal(options_),
              path + ", record at offset " + std::to_string(good.size() + 16) + ": " + problem);
  }
}

TEST_F(RecordSourceTest, NamesDamagedRecords) {
  const std::string path = dir_ / "train-00000-of-00003";
  std::string bytes = ReadText(path);
  bytes[200] ^= 1;
  WriteText(path, bytes);
  EXPECT_EQ(Refusal(options_), path +
                                   ", record at offset 0: the checksum of the data is wrong: the "
                                   "file is damaged");
}

TEST_F(RecordSourceTest, SkippedRecordsPlaceGoesToTheNextGoodOne) {
  const std::string path = dir_ / "train-00000-of-00003";
  WriteRecords(path, {MakeImageRecord(1, 1), "bad", "also bad", MakeImageRecord(4, 4)});
  std::vector<std::string> told;
  RecordSourceOptions options = options_;
  options.shuffle = false;
  options.bad_records = BadRecords::kSkip;
  options.max_bad_records = 2;
  options.on_bad_record = [&](const std::string& message) { told.push_back(message); };
  const auto images = Take(options, 0, 8);  // 16 images: the bad ones come twice
  EXPECT_THAT(Labels(images), ElementsAre(0, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 0, 3, 3, 3, 4));
  EXPECT_THAT(told, SizeIs(2));
  EXPECT_THAT(told[0], StartsWith(path + ", record at offset "));

  options.max_bad_records = 1;
  EXPECT_THAT(Refusal(options),
              HasSubstr("; this is one bad record more than the 1 that may be skipped"));
}

// Whatever may be skipped: with fewer records than that, too, and without reading them for ever.
TEST_F(RecordSourceTest, RefusesToTrainOnNothingButBadRecords) {
  for (const char* name :
       {"train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"}) {
    WriteRecords(dir_ / name, {"bad", "also bad", "bad as well"});
  }
  RecordSourceOptions options = options_;
  options.bad_records = BadRecords::kSkip;
  for (const int cap : {9, 100, 1 << 30}) {
    options.max_bad_records = cap;
    EXPECT_THAT(Refusal(options),
                AllOf(StartsWith(dir_.path() + ": none of the 9 records of train-* can be used; " +
                                 dir_.path() + "/train-0000"),
                      HasSubstr(": the data is not a tf.train.Example; " + dir_.path())));
  }
  options.max_bad_records = 8;
  EXPECT_THAT(Refusal(options), HasSubstr("; this is one bad record more than the 8 that may be"));
}

TEST_F(RecordSourceTest, OneGoodRecordIsEnough) {
  WriteRecords(dir_ / "train-00000-of-00003", {"bad", "also bad"});
  WriteRecords(dir_ / "train-00001-of-00003", {"bad", MakeImageRecord(7), "bad"});
  WriteRecords(dir_ / "train-00002-of-00003", {"bad"});
  RecordSourceOptions options = options_;
  options.bad_records = BadRecords::kSkip;
  EXPECT_THAT(Labels(Take(options, 0, 8)), AllOf(SizeIs(16), Each(6)));
}

TEST_F(RecordSourceTest, SkippedRecordsDoNotCountInEvaluation) {
  const std::string good = MakeImageRecord(5, 5);
  WriteRecords(dir_ / "validation-00000-of-00001",
               {"bad", good, "bad", MakeImageRecord(2, 2), good});
  RecordSourceOptions evaluation = Evaluation();
  evaluation.bad_records = BadRecords::kSkip;
  EXPECT_THAT(Labels(Take(evaluation, 0, 3)), ElementsAre(4, 1, 4));
}

}  // namespace
}  // namespace trainer
