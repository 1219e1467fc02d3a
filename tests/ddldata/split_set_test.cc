// SPDX-License-Identifier: Apache-2.0

#include "ddldata/split_set.h"

#include <atomic>

#include "ddldata/convert_plan.h"
#include "ddldata/inspect.h"
#include "ddldata/shard_directory.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/core/thread.h"
#include "trainer/data/class_list.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/data_set.h"

namespace trainer {
namespace {

TEST(DrawRecords, DrawsSoManyInOrderByASeed) {
  const std::vector<std::uint32_t> drawn = DrawRecords(1000, 100, 1);
  EXPECT_EQ(drawn.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(drawn));
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 100U);
  EXPECT_LT(drawn.back(), 1000U);
  EXPECT_EQ(DrawRecords(1000, 100, 1), drawn);
  EXPECT_NE(DrawRecords(1000, 100, 2), drawn);
  EXPECT_TRUE(DrawRecords(10, 0, 1).empty());
  EXPECT_THAT(DrawRecords(3, 3, 1), ElementsAre(0, 1, 2));
}

// Each of 20 records is among 5 in a quarter of 4,000 draws: 1,000, with a deviation of 27.
TEST(DrawRecords, GivesEachTheSameChance) {
  std::vector<int> counts(20);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    for (const std::uint32_t record : DrawRecords(20, 5, seed)) ++counts[record];
  }
  EXPECT_GT(*std::ranges::min_element(counts), 880);
  EXPECT_LT(*std::ranges::max_element(counts), 1120);
}

// So many records, each an image and a class of its own.
std::vector<RecordIdentity> Identities(std::int64_t count) {
  std::vector<RecordIdentity> records;
  for (std::int64_t i = 0; i < count; ++i) records.push_back({static_cast<std::uint64_t>(i), -1});
  return records;
}

TEST(DrawApart, IsDrawRecordsWhereNothingIsInTheWay) {
  std::vector<RecordIdentity> records = Identities(100);
  EXPECT_EQ(DrawApart(records, 30, 5), DrawRecords(100, 30, 5));
  for (RecordIdentity& record : records) record.label = 1;
  EXPECT_EQ(DrawApart(records, 99, 5), DrawRecords(100, 99, 5));
}

TEST(DrawApart, KeepsEqualImagesTogetherAndLeavesEachClassOne) {
  // 61 records: 20 images twice, one class of one image, one of two equal ones.
  std::vector<RecordIdentity> records = Identities(61);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].label = static_cast<std::int64_t>(i % 4);
    if (i < 20) records[i + 20].image = records[i].image;
  }
  records[60].label = 9;
  records[58].label = records[59].label = 10;
  records[58].image = records[59].image;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<std::uint32_t> drawn = DrawApart(records, 25, seed);
    EXPECT_EQ(drawn, DrawApart(records, 25, seed));
    EXPECT_EQ(drawn.size(), 25U) << seed;
    EXPECT_TRUE(std::ranges::is_sorted(drawn));
    const std::set<std::uint32_t> validation(drawn.begin(), drawn.end());
    EXPECT_EQ(validation.size(), drawn.size());
    std::set<std::uint64_t> images;
    for (const std::uint32_t record : drawn) images.insert(records[record].image);
    std::set<std::int64_t> left;
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      if (validation.contains(i)) continue;
      left.insert(records[i].label);
      EXPECT_FALSE(images.contains(records[i].image)) << seed << " " << i;
    }
    EXPECT_THAT(left, ElementsAre(0, 1, 2, 3, 9, 10)) << seed;
  }
}

TEST(DrawApart, DrawsFewerWhereItMust) {
  std::vector<RecordIdentity> records = Identities(10);
  for (std::size_t i = 0; i < records.size(); ++i) records[i].label = static_cast<int>(i / 2);
  EXPECT_EQ(DrawApart(records, 9, 1).size(), 5U);
  for (RecordIdentity& record : records) record.image = 7;
  EXPECT_THAT(DrawApart(records, 9, 1), IsEmpty());
}

// A set of 10 training records in three files, and 3 for validation in one.
class SplitSetTest : public ::testing::Test {
 protected:
  SplitSetTest() {
    fs::create_directory(from_);
    WriteRecords(from_ + "/train-00000-of-00003", {"t0", "t1", "t2", "t3"});
    WriteRecords(from_ + "/train-00001-of-00003", {"t4", "t5", "t6"});
    WriteRecords(from_ + "/train-00002-of-00003", {"t7", "t8", "t9"});
    WriteRecords(from_ + "/validation-00000-of-00001", {"v0", "v1", "v2"});
    MakeShardManifest(from_, false, 1);
  }

  std::string Path(const std::string& name) const { return dir_ / name; }
  SplitSetOptions OptionsFor(const std::string& name) const {
    return {.from = from_, .dir = Path(name)};
  }
  static SplitSetSummary Run(
      const SplitSetOptions& options, const std::function<bool()>& stop = [] { return false; }) {
    std::ostringstream ignored;
    return Run(options, ignored, stop);
  }
  static SplitSetSummary Run(const SplitSetOptions& options, std::ostream& shown,
                             const std::function<bool()>& stop) {
    ConvertProgress progress({}, shown);
    return SplitDataSet(options, progress, stop);
  }
  static std::pair<int, std::string> RejectionOf(const SplitSetOptions& options) {
    try {
      Run(options);
    } catch (const Error& error) {
      return {error.exit_code(), error.what()};
    }
    ADD_FAILURE() << "not refused";
    return {};
  }

  void RemoveValidation() const {
    fs::remove(from_ + "/validation-00000-of-00001");
    fs::remove(from_ + "/ddldata.manifest");
  }

  // The records of each file.
  std::map<std::string, std::vector<std::string>> RecordsOf(const std::string& name) const {
    std::map<std::string, std::vector<std::string>> records;
    for (const auto& entry : fs::directory_iterator(Path(name))) {
      const std::string file = entry.path().filename().string();
      if (file.starts_with("ddldata.")) continue;
      const RecordFile records_of_file(entry.path().string(), true);
      std::vector<std::uint8_t> buffer;
      for (const RecordPlace& place : records_of_file.Scan()) {
        const auto data = records_of_file.Read(place, buffer);
        records[file].emplace_back(data.begin(), data.end());
      }
    }
    return records;
  }
  std::map<std::string, std::string> BytesOf(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(Path(name))) {
      files[entry.path().filename().string()] = tests::TextOf(entry.path().string());
    }
    return files;
  }

  TemporaryDirectory dir_;
  const std::string from_ = dir_ / "from";
};

TEST_F(SplitSetTest, DividesRecordsInTheirOrder) {
  SplitSetOptions options = OptionsFor("set");
  options.shards = 4;
  options.validation_shards = 2;
  const SplitSetSummary summary = Run(options);
  EXPECT_EQ(summary.train_images, 10);
  EXPECT_EQ(summary.validation_images, 3);
  EXPECT_EQ(summary.files, 6);
  EXPECT_EQ(summary.files_before, 0);
  const std::map<std::string, std::vector<std::string>> expected = {
      {"train-00000-of-00004", {"t0", "t1"}}, {"train-00001-of-00004", {"t2", "t3", "t4"}},
      {"train-00002-of-00004", {"t5", "t6"}}, {"train-00003-of-00004", {"t7", "t8", "t9"}},
      {"validation-00000-of-00002", {"v0"}},  {"validation-00001-of-00002", {"v1", "v2"}}};
  EXPECT_EQ(RecordsOf("set"), expected);
  EXPECT_EQ(ReadShardManifest(Path("set"))->size(), 6U);
}

TEST_F(SplitSetTest, HasTheLabelsOfTheOther) {
  SplitSetOptions options = OptionsFor("none");
  Run(options);
  EXPECT_FALSE(fs::exists(Path("none/labels.txt")));
  WriteLabels(from_, {{"cat", "a cat"}, {"dog", ""}});
  options.dir = Path("some");
  Run(options);
  EXPECT_EQ(tests::TextOf(Path("some/labels.txt")), tests::TextOf(from_ + "/labels.txt"));
}

TEST_F(SplitSetTest, HasAsManyFilesAsBeforeUnlessToldOtherwise) {
  fs::remove(from_ + "/ddldata.manifest");
  Run(OptionsFor("set"));
  const auto records = RecordsOf("set");
  EXPECT_EQ(records.size(), 4U);
  EXPECT_THAT(records.at("train-00000-of-00003"), ElementsAre("t0", "t1", "t2"));
  EXPECT_THAT(records.at("validation-00000-of-00001"), ElementsAre("v0", "v1", "v2"));
}

// How many files there are of each split.
TEST_F(SplitSetTest, HasSoManyFiles) {
  struct Case {
    int shards, validation_shards;
    std::int64_t validation_images;
    int train, validation;
  };
  int made = 0;
  const auto expect_files = [&](const std::vector<Case>& cases) {
    for (const Case& one : cases) {
      const std::string name = "set" + std::to_string(made++);
      SplitSetOptions options = OptionsFor(name);
      options.shards = one.shards;
      options.validation_shards = one.validation_shards;
      options.validation_images = one.validation_images;
      options.threads = kMaxThreads;
      EXPECT_EQ(Run(options).files, one.train + one.validation) << name;
      EXPECT_TRUE(fs::exists(Path(name) + "/" + ShardName(Split::kTrain, 0, one.train))) << name;
      EXPECT_TRUE(fs::exists(Path(name) + "/" + ShardName(Split::kValidation, 0, one.validation)))
          << name;
    }
  };
  expect_files({{1, 1, 0, 1, 1}, {10, 3, 0, 10, 3}});
  RemoveValidation();
  expect_files({{0, 0, 8, 2, 1}});
  std::vector<std::string> many;
  for (int i = 0; i < 13'000; ++i) many.push_back("u" + std::to_string(i));
  WriteRecords(from_ + "/train-00000-of-00003", many);
  expect_files({{1, 0, kImagesOfShard, 1, 1},
                {1, 0, kImagesOfShard + 1, 1, 2},
                {0, 0, 12'801, 3, kMaxValidationShards}});
}

TEST_F(SplitSetTest, ShowsHowMuchIsLeftToCopy) {
  SplitSetOptions options = OptionsFor("set");
  options.shards = 5;
  std::atomic<int> left = 4;
  EXPECT_THROW(Run(options, [&] { return left-- <= 0; }), Error);
  std::ostringstream shown;
  Run(options, shown, [] { return false; });
  EXPECT_THAT(shown.str(), HasSubstr(" 9/9 images 100.0 % "));
}

// By its manifest a part of a set is one.
TEST_F(SplitSetTest, TakesAPartThatHasAManifest) {
  fs::remove(from_ + "/train-00001-of-00003");
  MakeShardManifest(from_, true, 1);
  Run(OptionsFor("set"));
  EXPECT_THAT(RecordsOf("set").at("train-00001-of-00002"), ElementsAre("t3", "t7", "t8", "t9"));
}

TEST_F(SplitSetTest, DrawsAValidationPart) {
  RemoveValidation();
  SplitSetOptions options = OptionsFor("set");
  options.validation_images = 4;
  options.shards = 2;
  const SplitSetSummary summary = Run(options);
  EXPECT_EQ(summary.train_images, 6);
  EXPECT_EQ(summary.validation_images, 4);
  EXPECT_EQ(summary.files, 3);
  const auto records = RecordsOf("set");
  std::vector<std::string> train = records.at("train-00000-of-00002");
  std::ranges::copy(records.at("train-00001-of-00002"), std::back_inserter(train));
  const std::vector<std::string> validation = records.at("validation-00000-of-00001");
  std::vector<std::string> drawn;
  for (const std::uint32_t record : DrawRecords(10, 4, options.seed)) {
    drawn.push_back("t" + std::to_string(record));
  }
  EXPECT_EQ(validation, drawn);
  EXPECT_TRUE(std::ranges::is_sorted(train));
  std::vector<std::string> all;
  std::ranges::merge(train, validation, std::back_inserter(all));
  EXPECT_EQ(all.size(), 10U);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 10U);
}

// Half of the records are there twice.
TEST_F(SplitSetTest, SaysThatEqualImagesAreDrawnTogether) {
  RemoveValidation();
  WriteRecords(from_ + "/train-00001-of-00003", {"t0", "t1", "t2"});
  MakeShardManifest(from_, false, 1);
  SplitSetOptions options = OptionsFor("set");
  options.validation_images = 5;
  std::ostringstream shown;
  EXPECT_EQ(Run(options, shown, [] { return false; }).validation_images, 5);
  EXPECT_THAT(shown.str(), HasSubstr("equal images are drawn together"));
  EXPECT_THAT(tests::TextOf(Path("set/ddldata.conversion")),
              HasSubstr("drawn with seed 12345, equal images together\n"));
  std::set<std::string> train;
  std::set<std::string> validation;
  for (const auto& [name, records] : RecordsOf("set")) {
    (name.starts_with("train-") ? train : validation).insert(records.begin(), records.end());
  }
  for (const std::string& record : validation) EXPECT_FALSE(train.contains(record)) << record;
  WriteRecords(from_ + "/train-00000-of-00003", {"t", "t", "t"});
  WriteRecords(from_ + "/train-00001-of-00003", {"t", "t", "t"});
  WriteRecords(from_ + "/train-00002-of-00003", {"t", "t", "t"});
  MakeShardManifest(from_, false, 1);
  options.dir = Path("none");
  EXPECT_THAT(RejectionOf(options), Pair(EX_USAGE, HasSubstr("no image can be drawn")));
}

TEST_F(SplitSetTest, BytesDependOnOptionsAlone) {
  RemoveValidation();
  SplitSetOptions options = OptionsFor("one");
  options.validation_images = 4;
  Run(options);
  options.dir = Path("four");
  options.threads = 4;
  Run(options);
  EXPECT_EQ(BytesOf("one"), BytesOf("four"));
  options.dir = Path("seed");
  options.seed = 7;
  Run(options);
  EXPECT_NE(BytesOf("one")["validation-00000-of-00001"],
            BytesOf("seed")["validation-00000-of-00001"]);
}

TEST_F(SplitSetTest, GoesOnWhereItWasStopped) {
  SplitSetOptions options = OptionsFor("whole");
  options.shards = 5;
  Run(options);
  for (int records = 0; records <= 13; ++records) {
    options.dir = Path("set" + std::to_string(records));
    std::atomic<int> left = records;
    EXPECT_THAT(
        tests::Rejection<Error>(EX_TEMPFAIL, [&] { Run(options, [&] { return left-- <= 0; }); }),
        HasSubstr("the same command continues with the rest"));
    WriteText(options.dir + "/.train-00004-of-00005.tmp", "begun by one that was killed");
    const SplitSetSummary summary = Run(options);
    EXPECT_EQ(summary.files_before, std::min(records / 2, 5) + (records == 13 ? 1 : 0));
    EXPECT_EQ(BytesOf("set" + std::to_string(records)), BytesOf("whole"));
  }
}

TEST_F(SplitSetTest, NeverOverwritesAnything) {
  SplitSetOptions options = OptionsFor("set");
  Run(options);
  const auto before = BytesOf("set");
  EXPECT_EQ(Run(options).files_before, 4);
  options.shards = 2;
  auto rejection = RejectionOf(options);
  EXPECT_EQ(rejection.first, EX_USAGE);
  EXPECT_THAT(
      rejection.second,
      HasSubstr("set is of another conversion: there it is \"train-* 10 records, 3 files\", "
                "now it would be \"train-* 10 records, 2 files\""));
  // Another set of the same names and sizes.
  options.shards = 0;
  WriteRecords(from_ + "/train-00001-of-00003", {"t4", "tX", "t6"});
  fs::remove(from_ + "/ddldata.manifest");
  rejection = RejectionOf(options);
  EXPECT_EQ(rejection.first, EX_USAGE);
  EXPECT_THAT(rejection.second, HasSubstr("there it is \"from train-* 10 records, 3 files, list "));
  EXPECT_EQ(BytesOf("set"), before);
  // Onto itself.
  options.dir = from_;
  const auto itself = BytesOf("from");
  EXPECT_THAT(RejectionOf(options).second, HasSubstr("from already has data files (4, one is "));
  EXPECT_EQ(BytesOf("from"), itself);
  // The same number of other images.
  RemoveValidation();
  options = OptionsFor("drawn");
  options.validation_images = 4;
  Run(options);
  ++options.seed;
  EXPECT_THAT(RejectionOf(options).second, HasSubstr("now it would be \"drawn with seed 12346\""));
}

TEST_F(SplitSetTest, StopsAtADamagedRecord) {
  std::string bytes = tests::TextOf(from_ + "/train-00001-of-00003");
  bytes[12] ^= 1;
  WriteText(from_ + "/train-00001-of-00003", bytes);
  const auto rejection = RejectionOf(OptionsFor("set"));
  EXPECT_EQ(rejection.first, EX_DATAERR);
  EXPECT_THAT(rejection.second,
              StartsWith(from_ + "/train-00001-of-00003, record at offset 0: the checksum of"));
  EXPECT_FALSE(fs::exists(Path("set") + "/ddldata.manifest"));
}

TEST_F(SplitSetTest, RejectsWhatMakesNoSense) {
  const auto rejection = [&](const std::function<void(SplitSetOptions&)>& change) {
    SplitSetOptions options = OptionsFor("set");
    change(options);
    const auto [code, message] = RejectionOf(options);
    EXPECT_EQ(code, EX_USAGE) << message;
    EXPECT_FALSE(fs::exists(Path("set")));
    return message;
  };
  EXPECT_EQ(rejection([](SplitSetOptions& options) { options.shards = 11; }),
            "--shards must be at most 10, not 11: a file needs an image");
  EXPECT_EQ(rejection([](SplitSetOptions& options) { options.validation_shards = 4; }),
            "--validation_shards must be at most 3, not 4: a file needs an image");
  EXPECT_EQ(rejection([](SplitSetOptions& options) { options.shards = -1; }),
            "--shards must be 0 to 99999, not -1");
  EXPECT_EQ(rejection([](SplitSetOptions& options) { options.shards = 99'999; }),
            "--shards must be at most 10, not 99999: a file needs an image");
  EXPECT_EQ(rejection([](SplitSetOptions& options) { options.shards = 100'000; }),
            "--shards must be 0 to 99999, not 100000");
  EXPECT_EQ(rejection([](SplitSetOptions& options) { options.threads = 0; }),
            "--threads must be 1 to 1024, not 0");
  EXPECT_EQ(rejection([](SplitSetOptions& options) { options.validation_images = -2; }),
            "--validation_images must be 0 or more, not -2");
  EXPECT_THAT(rejection([](SplitSetOptions& options) { options.validation_images = 2; }),
              HasSubstr("from already has validation-* files: --validation_images makes some"));
  RemoveValidation();
  EXPECT_EQ(rejection([](SplitSetOptions& options) { options.validation_images = 10; }),
            "--validation_images must be less than the 10 training images, not 10");
  EXPECT_THAT(rejection([](SplitSetOptions& options) { options.validation_shards = 1; }),
              HasSubstr("from has no validation-* files: --validation_shards needs"));
}

TEST_F(SplitSetTest, OneSplitAloneWillDo) {
  for (int i = 0; i < 3; ++i) {
    fs::remove(from_ + "/train-0000" + std::to_string(i) + "-of-00003");
  }
  fs::remove(from_ + "/ddldata.manifest");
  SplitSetOptions shards = OptionsFor("set");
  shards.shards = 2;
  SplitSetOptions images = OptionsFor("set");
  images.validation_images = 2;
  for (const SplitSetOptions& options : {shards, images}) {
    EXPECT_THAT(RejectionOf(options).second,
                HasSubstr("from has no train-* files, which --shards and"));
  }
  Run(OptionsFor("set"));
  EXPECT_EQ(RecordsOf("set").size(), 1U);
  fs::remove(from_ + "/validation-00000-of-00001");
  EXPECT_THAT(RejectionOf(OptionsFor("other")),
              Pair(EX_DATAERR, HasSubstr("from has no file train-* or validation-*")));
}

}  // namespace
}  // namespace trainer
