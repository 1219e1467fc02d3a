// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/tfrecord_loader.h"

#include "tests/support/test.h"
#include "tests/trainer/data/tfrecord_loader_fixture.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {
namespace {

TEST_F(RecordSourceTest, EpochHasEachImageOnceAndDropsNone) {
  EXPECT_EQ(MakeTfRecordLoader(options_)->samples(), 11);
  const auto images = Take(options_, 0, 11);  // 22 images: two epochs
  std::map<std::int32_t, int> count;
  for (std::size_t i = 0; i < 11; ++i) ++count[images[i].label];
  EXPECT_THAT(count, SizeIs(11));
  for (std::size_t i = 11; i < 22; ++i) ++count[images[i].label];
  EXPECT_THAT(count, Each(Pair(::testing::_, 2)));
}

TEST_F(RecordSourceTest, TwoRanksSeeWhatOneWithTwiceTheBatchSees) {
  TfRecordLoaderOptions one = options_;
  one.batch_size = 4;
  const auto together = Take(one, 0, 3);
  for (int rank = 0; rank < 2; ++rank) {
    TfRecordLoaderOptions two = options_;
    two.rank = rank;
    two.world_size = 2;
    const auto part = Take(two, 0, 3);
    for (std::size_t step = 0; step < 3; ++step) {
      for (std::size_t place = 0; place < 2; ++place) {
        EXPECT_EQ(part[step * 2 + place],
                  together[step * 4 + static_cast<std::size_t>(rank) * 2 + place]);
      }
    }
  }
}

TEST_F(RecordSourceTest, BatchesDoNotDependOnThreadsOrPrefetching) {
  const auto expected = Take(options_, 0, 8);
  TfRecordLoaderOptions other = options_;
  other.threads = 5;
  other.prefetch = 4;
  EXPECT_EQ(Take(other, 0, 8), expected);
}

TEST_F(RecordSourceTest, BatchesAreInTheMemoryThatItIsGiven) {
  std::set<const std::byte*> given;
  options_.allocate = [&](std::size_t bytes) {
    Buffer buffer = AllocateOrdinaryMemory(bytes);
    given.insert(buffer.data());
    return buffer;
  };
  const auto source = MakeTfRecordLoader(options_);
  HostBatch batch;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(source->Next(batch));
    EXPECT_TRUE(given.contains(reinterpret_cast<const std::byte*>(batch.pixels.data())));
  }
}

TEST_F(RecordSourceTest, SeekGoesOnWhereAnotherRunStopped) {
  const auto run = Take(options_, 0, 9);
  EXPECT_EQ(Take(options_, 6, 3), std::vector<Seen>(run.begin() + 12, run.end()));
}

// One rank takes 5 steps of 2 images, then three take 2 steps of 1, then one takes 2 steps of 3:
// the same 22 images, cropped alike, as one rank takes that never stops.
TEST_F(RecordSourceTest, OtherRanksGoOnWithTheImagesThatAreLeft) {
  std::vector<Seen> taken = Take(options_, 0, 5);
  Position position{5, 10};
  TfRecordLoaderOptions three = options_;
  three.batch_size = 1;
  three.world_size = 3;
  std::vector<std::vector<Seen>> of_rank;
  for (three.rank = 0; three.rank < 3; ++three.rank) {
    of_rank.push_back(TakeFrom(three, position, 2));
  }
  for (std::size_t step = 0; step < 2; ++step) {
    for (const auto& images : of_rank) taken.push_back(images.at(step));
  }
  TfRecordLoaderOptions one = options_;
  one.batch_size = 3;
  const auto rest = TakeFrom(one, {7, 16}, 2);
  taken.insert(taken.end(), rest.begin(), rest.end());
  EXPECT_EQ(taken, Take(options_, 0, 11));
}

// Batches of another place have been made ahead when it is told where to go on.
TEST_F(RecordSourceTest, SeeksToAndFro) {
  const auto run = Take(options_, 0, 11);
  const auto source = MakeTfRecordLoader(options_);
  HostBatch batch;
  for (const Position& position : {Position{9, 3}, Position{2, 17}, Position{2, 0}}) {
    source->Seek(position);
    for (std::int64_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(source->Next(batch));
      EXPECT_EQ(batch.step, position.step + i);
      const auto first = run.begin() + position.sample + 2 * i;
      EXPECT_EQ(Images(batch), std::vector<Seen>(first, first + 2));
    }
  }
}

TEST_F(RecordSourceTest, AugmentationDiffersBetweenEpochsAndSeeds) {
  TfRecordLoaderOptions in_order = options_;
  in_order.shuffle = false;
  in_order.batch_size = 11;
  const auto epochs = Take(in_order, 0, 2);
  EXPECT_EQ(epochs[0].label, epochs[11].label);
  EXPECT_NE(epochs[0].pixels, epochs[11].pixels);
  in_order.seed = 2;
  EXPECT_NE(Take(in_order, 0, 1)[0].pixels, epochs[0].pixels);
}

TEST_F(RecordSourceTest, WithoutShufflingAndAugmentationItIsTheFilesCentre) {
  TfRecordLoaderOptions plain = options_;
  plain.shuffle = false;
  plain.augment = Augment::kNone;
  plain.batch_size = 11;
  const auto epochs = Take(plain, 0, 2);
  EXPECT_THAT(Labels(epochs),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_EQ(epochs[0], epochs[11]);
  TfRecordLoaderOptions evaluation = Evaluation();
  evaluation.split = Split::kTrain;
  EXPECT_EQ(Take(evaluation, 0, 1)[0], epochs[0]);
}

TEST_F(RecordSourceTest, EvaluationCountsEachImageOnceAndEndsForAllRanksAtOnce) {
  TfRecordLoaderOptions evaluation = Evaluation();
  evaluation.world_size = 2;
  std::vector<std::int32_t> labels;
  for (const int rank : {0, 1}) {
    evaluation.rank = rank;
    const auto source = MakeTfRecordLoader(evaluation);
    HostBatch batch;
    std::vector<std::int64_t> valid;
    while (source->Next(batch)) {
      valid.push_back(batch.valid);
      for (const Seen& image : Images(batch)) labels.push_back(image.label);
    }
    // 5 images in steps of 4: the second step has one image, on rank 0.
    EXPECT_THAT(valid, ElementsAre(2, rank == 0 ? 1 : 0));
    source->Seek({});
    EXPECT_TRUE(source->Next(batch));
  }
  EXPECT_THAT(labels, UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST_F(RecordSourceTest, IndexFilesGiveTheSameRecords) {
  const TemporaryDirectory index;
  for (const char* name :
       {"train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"}) {
    WriteText(index / name, FormatIndex(RecordFile(dir_ / name, true).Scan()));
  }
  TfRecordLoaderOptions indexed = options_;
  indexed.data_idx_dir = index.path();
  EXPECT_EQ(Take(indexed, 0, 6), Take(options_, 0, 6));
  // Some, or all, as the loop that NVIDIA shows calls them.
  for (const char* name :
       {"train-00001-of-00003", "train-00000-of-00003", "train-00002-of-00003"}) {
    fs::rename(index / name, index / name + ".idx");
    EXPECT_EQ(Take(indexed, 0, 6), Take(options_, 0, 6));
  }
  // The one that training makes use of is that of the same name.
  fs::copy(index / "train-00000-of-00003.idx", index / "train-00000-of-00003");
  WriteText(index / "train-00000-of-00003.idx", "0 100\n");
  EXPECT_EQ(Take(indexed, 0, 6), Take(options_, 0, 6));
}

TEST_F(RecordSourceTest, FactsAreThoseOfTheFilesWhereverTheyLie) {
  const TemporaryDirectory copy;
  fs::copy(dir_.path(), copy.path());
  const std::vector<ConsistencyItem> items = MakeTfRecordLoader(options_)->items();
  ASSERT_THAT(items, SizeIs(3));
  EXPECT_EQ(items[0].name, "train-00000-of-00003");
  EXPECT_THAT(items[0].text, StartsWith("train-00000-of-00003 of "));
  EXPECT_THAT(items[0].text, HasSubstr(" bytes with 4 records (offsets "));
  options_.data_dir = copy.path();
  EXPECT_EQ(MakeTfRecordLoader(options_)->items(), items);

  // Same bytes and number of records, other places.
  std::vector<std::string> records = Records(1, 4);
  ASSERT_NE(records[0].size(), records[3].size());
  std::swap(records[0], records[3]);
  WriteRecords(copy / "train-00000-of-00003", records);
  const std::vector<ConsistencyItem> swapped = MakeTfRecordLoader(options_)->items();
  EXPECT_NE(swapped[0], items[0]);
  EXPECT_EQ(swapped[1], items[1]);

  // A set of two files is another one, however alike the files are.
  fs::remove(copy / "train-00002-of-00003");
  for (const char* number : {"0", "1"}) {
    fs::rename(copy / (std::string("train-0000") + number + "-of-00003"),
               copy / (std::string("train-0000") + number + "-of-00002"));
  }
  EXPECT_THAT(MakeTfRecordLoader(options_)->items(), SizeIs(2));
}

TEST_F(RecordSourceTest, FactsDoNotDependOnIndexFiles) {
  const TemporaryDirectory index;
  for (const char* name :
       {"train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"}) {
    WriteText(index / name, FormatIndex(RecordFile(dir_ / name, true).Scan()));
  }
  const std::vector<ConsistencyItem> scanned = MakeTfRecordLoader(options_)->items();
  options_.data_idx_dir = index.path();
  EXPECT_EQ(MakeTfRecordLoader(options_)->items(), scanned);
}

TEST_F(RecordSourceTest, PlacesWithoutAnImageAreBlack) {
  TfRecordLoaderOptions evaluation = Evaluation();
  evaluation.batch_size = 8;
  const auto source = MakeTfRecordLoader(evaluation);
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.valid, 5);
  EXPECT_THAT(batch.pixels.subspan(5 * 24 * 24 * 3), Each(0));
  EXPECT_THAT(batch.labels.subspan(5), Each(0));
}

TEST_F(RecordSourceTest, EndsWhileImagesAreBeingDecoded) {
  for (int i = 0; i < 10; ++i) MakeTfRecordLoader(options_);
}

TEST_F(RecordSourceTest, TellsTheHighestLabelOfRecordsAllOverItsFiles) {
  EXPECT_EQ(MakeTfRecordLoader(options_)->SampleHighestLabel(), 11);
  options_.split = Split::kValidation;
  EXPECT_EQ(MakeTfRecordLoader(options_)->SampleHighestLabel(), 5);
  // More than are looked at, in the order of their labels.
  std::vector<std::string> many;
  for (int i = 0; i < 300; ++i) many.push_back(MakeImageRecord(1 + i / 30, 1));
  fs::remove(dir_ / "validation-00000-of-00001");
  WriteRecords(dir_ / "validation-00000-of-00001", many);
  EXPECT_EQ(MakeTfRecordLoader(options_)->SampleHighestLabel(), 10);
  fs::remove(dir_ / "validation-00000-of-00001");
  WriteRecords(dir_ / "validation-00000-of-00001", {"no example"});
  EXPECT_EQ(MakeTfRecordLoader(options_)->SampleHighestLabel(), std::nullopt);
}

// What a source does about data that it cannot use.

TEST_F(RecordSourceTest, RejectsIndexThatDoesNotFit) {
  const TemporaryDirectory index;
  TfRecordLoaderOptions indexed = options_;
  indexed.data_idx_dir = index.path();
  EXPECT_EQ(Rejection(indexed),
            index.path().string() + " has no index of " + dir_ / "train-00000-of-00003" +
                ", neither train-00000-of-00003 nor train-00000-of-00003.idx; make it with: "
                "ddldata index DATA_DIR INDEX_DIR");
  for (const char* name :
       {"train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"}) {
    WriteText(index / name, "0 100\n");
  }
  EXPECT_THAT(Rejection(indexed),
              StartsWith(index / "train-00000-of-00003" + ":2: the index ends at byte 100"));
}

TEST_F(RecordSourceTest, RejectsDirectoriesWithoutData) {
  TfRecordLoaderOptions options = options_;
  options.data_dir = "/no/such/directory";
  EXPECT_EQ(Rejection(options),
            "cannot read the data directory /no/such/directory: No such file or directory");
  const TemporaryDirectory empty;
  options.data_dir = empty.path();
  EXPECT_THAT(Rejection(options), StartsWith("the data directory " + empty.path().string() +
                                             " has no file train-*; expected"));
  options.data_dir = dir_ / "train-00000-of-00003";
  EXPECT_THAT(Rejection(options), HasSubstr("Not a directory"));
}

TEST_F(RecordSourceTest, RejectsEmptyAndTruncatedFiles) {
  const std::string path = dir_ / "train-00001-of-00003";
  fs::resize_file(path, fs::file_size(path) - 5);
  EXPECT_THAT(Rejection(options_), HasSubstr("the file is truncated"));
  fs::resize_file(path, 0);
  EXPECT_EQ(Rejection(options_), DescribeEmptyFile(path));
}

constexpr char kSkip[] = "; --bad_records=skip leaves such records out";

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
    EXPECT_EQ(Rejection(options_), path + ", record at offset " + std::to_string(good.size() + 16) +
                                       ": " + problem + kSkip);
  }
}

TEST_F(RecordSourceTest, NamesDamagedRecords) {
  const std::string path = dir_ / "train-00000-of-00003";
  std::string bytes = tests::TextOf(path);
  bytes[200] ^= 1;
  WriteText(path, bytes);
  EXPECT_EQ(Rejection(options_), path +
                                     ", record at offset 0: the checksum of the data is wrong: the "
                                     "file is damaged" +
                                     kSkip);
}

TEST_F(RecordSourceTest, SkippedRecordsPlaceGoesToTheNextGoodOne) {
  const std::string path = dir_ / "train-00000-of-00003";
  WriteRecords(path, {MakeImageRecord(1, 1), "bad", "also bad", MakeImageRecord(4, 4)});
  std::vector<std::string> logged;
  TfRecordLoaderOptions options = options_;
  options.shuffle = false;
  options.bad_records = BadRecords::kSkip;
  options.max_bad_records = 2;
  options.on_bad_record = [&](const std::string& message) { logged.push_back(message); };
  const auto images = Take(options, 0, 8);  // 16 images: the bad ones come twice
  EXPECT_THAT(Labels(images), ElementsAre(0, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 0, 3, 3, 3, 4));
  EXPECT_THAT(logged, SizeIs(2));
  EXPECT_THAT(logged[0], StartsWith(path + ", record at offset "));

  options.max_bad_records = 1;
  EXPECT_THAT(Rejection(options),
              HasSubstr("; this is one bad record more than the 1 that may be skipped"));
}

// Whatever may be skipped: with fewer records than that, too, and without reading them for ever.
TEST_F(RecordSourceTest, RejectsToTrainOnNothingButBadRecords) {
  for (const char* name :
       {"train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"}) {
    WriteRecords(dir_ / name, {"bad", "also bad", "bad as well"});
  }
  TfRecordLoaderOptions options = options_;
  options.bad_records = BadRecords::kSkip;
  for (const int cap : {9, 100, 1 << 30}) {
    options.max_bad_records = cap;
    EXPECT_THAT(
        Rejection(options),
        AllOf(StartsWith(dir_.path().string() + ": none of the 9 records of train-* can be used; " +
                         dir_.path().string() + "/train-0000"),
              HasSubstr(": the data is not a tf.train.Example; " + dir_.path().string())));
  }
  options.max_bad_records = 8;
  EXPECT_THAT(Rejection(options),
              HasSubstr("; this is one bad record more than the 8 that may be"));
}

TEST_F(RecordSourceTest, OneGoodRecordIsEnough) {
  WriteRecords(dir_ / "train-00000-of-00003", {"bad", "also bad"});
  WriteRecords(dir_ / "train-00001-of-00003", {"bad", MakeImageRecord(7), "bad"});
  WriteRecords(dir_ / "train-00002-of-00003", {"bad"});
  TfRecordLoaderOptions options = options_;
  options.bad_records = BadRecords::kSkip;
  EXPECT_THAT(Labels(Take(options, 0, 8)), AllOf(SizeIs(16), Each(6)));
}

TEST_F(RecordSourceTest, SkippedRecordsDoNotCountInEvaluation) {
  const std::string good = MakeImageRecord(5, 5);
  WriteRecords(dir_ / "validation-00000-of-00001",
               {"bad", good, "bad", MakeImageRecord(2, 2), good});
  TfRecordLoaderOptions evaluation = Evaluation();
  evaluation.bad_records = BadRecords::kSkip;
  EXPECT_THAT(Labels(Take(evaluation, 0, 3)), ElementsAre(4, 1, 4));
}

}  // namespace
}  // namespace trainer
