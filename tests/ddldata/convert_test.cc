// SPDX-License-Identifier: Apache-2.0

#include "ddldata/convert.h"

#include <atomic>

#include "tests/ddldata/convert_fixture.h"
#include "tests/ddldata/tar_text.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/data/files/data_set.h"

namespace trainer {
namespace {

TEST_F(ConvertTest, StoresEveryImageAsItIs) {
  const ImageFiles images = MakeImageFiles(kSynsets, 5);
  WriteImageFiles(Path("images"), images);
  WriteText(Path("texts"), "n01 tench, Tinca tinca\nn02 goldfish\nn03\n");
  ConvertOptions options = OptionsFor("set");
  options.class_list = Path("texts");
  const ConvertSummary summary = Convert(options);
  EXPECT_EQ(summary.train_images, 15);
  EXPECT_EQ(summary.left_out, 0);
  EXPECT_EQ(summary.classes, 3);
  EXPECT_EQ(summary.files, 4);
  EXPECT_EQ(ProblemsOf("set", 3), 0);

  std::multiset<std::string> stored;
  const DataSet data(Path("set"), "", Split::kTrain, 1);
  std::vector<std::uint8_t> buffer;
  for (std::int64_t i = 0; i < data.records(); ++i) {
    const auto record = data.Read(i, buffer);
    const std::string text(record.begin(), record.end());
    const ImageExample example = ParseExample(record);
    stored.insert(std::to_string(example.label) + example.encoded);
    EXPECT_THAT(text, HasSubstr("image/class/synset"));
    EXPECT_EQ(text.find("tench, Tinca tinca") != std::string::npos, example.label == 1);
    EXPECT_THAT(text, HasSubstr("n0" + std::to_string(example.label) + "_"));
  }
  std::multiset<std::string> expected;
  for (const auto& [name, content] : images) expected.insert(name.substr(2, 1) + content);
  EXPECT_EQ(stored, expected);
}

TEST_F(ConvertTest, BytesDependNeitherOnThreadsNorOnWhereTheImagesLie) {
  const ImageFiles images = MakeImageFiles(kSynsets, 7);
  WriteImageFiles(Path("images"), images);
  ConvertOptions options = OptionsFor("one");
  Convert(options);
  const auto expected = FilesOf("one");
  EXPECT_EQ(expected.size(), 7U);  // four files, the manifest, the conversion, the labels

  options.dir = Path("four");
  options.threads = 4;
  Convert(options);
  EXPECT_EQ(FilesOf("four"), expected);

  WriteText(Path("flat.tar"), TarOf(images));
  options.dir = Path("tar");
  options.train.sources = {Path("flat.tar")};
  Convert(options);
  EXPECT_EQ(FilesOf("tar"), expected);

  std::map<std::string, ImageFiles> by_class;
  for (const auto& [name, content] : images) {
    by_class[name.substr(0, 3)].emplace_back(name.substr(4), content);
  }
  ImageFiles tars;
  for (const auto& [name, files] : by_class) tars.emplace_back(name + ".tar", TarOf(files));
  WriteText(Path("nested.tar"), TarOf(tars));
  options.dir = Path("nested");
  options.train.sources = {Path("nested.tar")};
  Convert(options);
  EXPECT_EQ(FilesOf("nested"), expected);

  options.dir = Path("seed");
  options.seed = 1;
  Convert(options);
  EXPECT_NE(FilesOf("seed")["train-00000-of-00004"], expected.at("train-00000-of-00004"));
}

TEST_F(ConvertTest, ValidationHasItsLabelsFromAList) {
  WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 4));
  WriteText(Path("val.tar"), TarOf({{"v_3.JPEG", MakeJpeg({16, 16}, 3)},
                                    {"v_1.JPEG", MakeJpeg({16, 16}, 1)},
                                    {"v_2.JPEG", MakeJpeg({16, 16}, 2)}}));
  WriteText(Path("labels"), "n03\nn01\nn03\n");
  ConvertOptions options = OptionsFor("set");
  options.validation = {.sources = {Path("val.tar")}, .labels = Path("labels"), .shards = 1};
  EXPECT_EQ(Convert(options).validation_images, 3);
  EXPECT_EQ(ProblemsOf("set", 3), 0);
  const DataSet data(Path("set"), "", Split::kValidation, 1);
  std::vector<std::string> found;
  std::vector<std::uint8_t> buffer;
  for (std::int64_t i = 0; i < data.records(); ++i) {
    const ImageExample example = ParseExample(data.Read(i, buffer));
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      if (example.encoded == MakeJpeg({16, 16}, seed))
        found.push_back(std::to_string(seed) + "=" + std::to_string(example.label));
    }
  }
  EXPECT_THAT(found, UnorderedElementsAre("1=3", "2=1", "3=3"));
}

TEST_F(ConvertTest, GoesOnWhereItWasStopped) {
  WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 8));
  ConvertOptions options = OptionsFor("whole");
  Convert(options);

  options.dir = Path("stopped");
  std::atomic<int> left = 15;
  EXPECT_THAT(tests::Rejection<Error>(EX_TEMPFAIL,
                                      [&] { ConvertUntil(options, [&] { return --left < 0; }); }),
              HasSubstr("the same command continues with the rest"));
  const std::size_t whole = FilesOf("stopped").size() - 2;
  EXPECT_GT(whole, 0U);
  EXPECT_LT(whole, 4U);
  EXPECT_FALSE(FilesOf("stopped").contains("ddldata.manifest"));
  // What a kill would leave.
  WriteText(Path("stopped/.train-00003-of-00004.tmp"), "half");
  const auto before = fs::last_write_time(Path("stopped/train-00000-of-00004"));
  EXPECT_EQ(Convert(options).files_before, static_cast<int>(whole));
  EXPECT_EQ(FilesOf("stopped"), FilesOf("whole"));
  EXPECT_EQ(fs::last_write_time(Path("stopped/train-00000-of-00004")), before);
  // Once more: everything is there.
  EXPECT_EQ(Convert(options).files_before, 4);
  EXPECT_EQ(FilesOf("stopped"), FilesOf("whole"));
}

TEST_F(ConvertTest, RejectsADirectoryOfSomethingElse) {
  WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 4));
  ConvertOptions options = OptionsFor("set");
  Convert(options);
  ConvertOptions other = options;
  other.seed = 7;
  EXPECT_EQ(RejectionOf(other).first, EX_USAGE);
  EXPECT_THAT(
      RejectionOf(other).second,
      HasSubstr("set is of another conversion: there it is \"seed 12345\", now it would be "
                "\"seed 7\"; give the same options and images again, or another directory"));
  other = options;
  other.train.shards = 3;
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("is of another conversion"));
  WriteText(Path("images/n01/n01_9.JPEG"), MakeJpeg({16, 16}, 99));
  EXPECT_THAT(RejectionOf(options).second, HasSubstr("is of another conversion"));
  fs::remove(Path("images/n01/n01_9.JPEG"));

  WriteText(Path("set/train-00007-of-00009"), "");
  EXPECT_THAT(RejectionOf(options).second,
              HasSubstr("has the file train-00007-of-00009, which is none of this conversion"));
  fs::remove(Path("set/ddldata.conversion"));
  EXPECT_EQ(RejectionOf(options).first, EX_USAGE);
  EXPECT_THAT(RejectionOf(options).second,
              HasSubstr("already has data files (5, one is train-00000-"));
}

TEST_F(ConvertTest, StopsAtABadImageOrLeavesItOut) {
  WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 4));
  WriteText(Path("images/n01/n01_2.JPEG"), "no image");
  ConvertOptions options = OptionsFor("set");
  const auto [code, message] = RejectionOf(options);
  EXPECT_EQ(code, EX_DATAERR);
  EXPECT_THAT(message, HasSubstr(Path("images") + "/n01/n01_2.JPEG: the image is not a JPEG file: "
                                                  "it is text that begins with \"no image\"; "
                                                  "--bad_images=skip leaves such images out"));
  options.bad_images = BadRecords::kSkip;
  WriteText(Path("images/n02/n02_1.JPEG"), "nor this");
  options.validation = options.train;
  options.dir = Path("skipped");
  ConvertSummary summary = Convert(options);
  EXPECT_EQ(summary.train_images, 10);
  EXPECT_EQ(summary.validation_images, 10);
  EXPECT_EQ(summary.left_out, 4);
  EXPECT_THAT(messages_, HasSubstr("ddldata: note: left out: " + Path("images") + "/n01/n01_2"));
  EXPECT_EQ(ProblemsOf("skipped", 3), 0);
  summary = Convert(options);
  EXPECT_EQ(summary.files_before, 8);
  EXPECT_EQ(summary.train_images, 10);
  EXPECT_EQ(summary.left_out, 4);

  options.dir = Path("bad");
  options.train.shards = 12;
  EXPECT_THAT(RejectionOf(options).second, HasSubstr(" can be used: make fewer files"));
}

TEST_F(ConvertTest, NotesDirectoriesThatAreNoClasses) {
  WriteImageFiles(Path("images"), MakeImageFiles({"n02"}, 4));
  fs::create_directory(Path("images/n01"));
  ConvertOptions options = OptionsFor("set");
  EXPECT_EQ(Convert(options).classes, 1);
  EXPECT_EQ(messages_.substr(0, messages_.find('\n')),
            "ddldata: note: " + Path("images/n01") +
                " has no images and is no class, unless --class_list names it");
  fs::create_directory(Path("images/n03"));
  options.dir = Path("two");
  Convert(options);
  EXPECT_THAT(messages_, HasSubstr("ddldata: note: " + Path("images/n01") +
                                   " and 1 more have no images and are no classes, unless "
                                   "--class_list names them\n"));
  // Where something else tells the classes no label moves.
  WriteText(Path("list"), "n01\nn02\nn03\n");
  options.dir = Path("listed");
  options.class_list = Path("list");
  EXPECT_EQ(Convert(options).classes, 3);
  EXPECT_THAT(messages_,
              StartsWith("ddldata: note: classes of --class_list without images: 2 of 3; "
                         "the first is \"n01\"\n"));
  EXPECT_THAT(messages_, Not(HasSubstr("no class")));
  options = OptionsFor("validation");
  options.validation = std::exchange(options.train, {});
  options.validation.shards = 1;
  WriteImageFiles(Path("train"), MakeImageFiles({"n01", "n02"}, 4));
  options.dir = Path("both");
  options.train = {.sources = {Path("train")}, .labels = "", .shards = 1};
  Convert(options);
  EXPECT_THAT(messages_, Not(HasSubstr("note:")));
}

TEST_F(ConvertTest, WritesWhatClassEachLabelIs) {
  WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 4));
  ConvertOptions options = OptionsFor("set");
  Convert(options);
  EXPECT_EQ(tests::TextOf(Path("set/labels.txt")),
            "label\tclass\ttext\n1\tn01\t\n2\tn02\t\n3\tn03\t\n");
  // A list gives order, text, and classes without images; the list may be such a file.
  WriteText(Path("list"), "n03 the third\nn00\nn01\nn02\n");
  options.dir = Path("listed");
  options.class_list = Path("list");
  Convert(options);
  const std::string labels = tests::TextOf(Path("listed/labels.txt"));
  EXPECT_EQ(labels, "label\tclass\ttext\n1\tn03\tthe third\n2\tn00\t\n3\tn01\t\n4\tn02\t\n");
  options.dir = Path("again");
  options.class_list = Path("listed/labels.txt");
  Convert(options);
  EXPECT_EQ(tests::TextOf(Path("again/labels.txt")), labels);
  EXPECT_EQ(tests::TextOf(Path("again/train-00000-of-00004")),
            tests::TextOf(Path("listed/train-00000-of-00004")));
  // A conversion of before, which has none, gets one.
  fs::remove(Path("set/labels.txt"));
  options = OptionsFor("set");
  Convert(options);
  EXPECT_EQ(ReadLabels(Path("set")).size(), 3U);
}

TEST_F(ConvertTest, LeavesAnotherLabelsFileAlone) {
  WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 4));
  fs::create_directory(Path("set"));
  WriteText(Path("set/labels.txt"), "0:daisy\n");
  const auto [code, what] = RejectionOf(OptionsFor("set"));
  EXPECT_EQ(code, EX_USAGE);
  EXPECT_THAT(what, HasSubstr("set/labels.txt is there already and says something else"));
  EXPECT_EQ(tests::TextOf(Path("set/labels.txt")), "0:daisy\n");
}

TEST_F(ConvertTest, NotesNumbersThatAreLabelledInAnotherOrder) {
  std::vector<std::string> directories;
  for (int i = 0; i <= 11; ++i) directories.push_back(std::to_string(i));
  WriteImageFiles(Path("images"), MakeImageFiles(directories, 1));
  ConvertOptions options = OptionsFor("set");
  Convert(options);
  EXPECT_THAT(messages_, HasSubstr("note: the names of the classes are numbers"));
  EXPECT_THAT(tests::TextOf(Path("set/labels.txt")), HasSubstr("\n3\t10\t\n"));
  std::string list;
  for (const std::string& name : directories) list += name + "\n";
  WriteText(Path("list"), list);
  options.dir = Path("listed");
  options.class_list = Path("list");
  Convert(options);
  EXPECT_THAT(messages_, Not(HasSubstr("note:")));
  EXPECT_THAT(tests::TextOf(Path("listed/labels.txt")), HasSubstr("\n11\t10\t\n"));
}

TEST_F(ConvertTest, RejectsOptionsThatMakeNoSense) {
  WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 4));
  const auto rejection = [&](const std::function<void(ConvertOptions&)>& change) {
    ConvertOptions options = OptionsFor("set");
    change(options);
    const auto [code, message] = RejectionOf(options);
    EXPECT_EQ(code, EX_USAGE) << message;
    return message;
  };
  EXPECT_THAT(
      rejection([](ConvertOptions& o) { o.train.sources.clear(); }),
      HasSubstr("there is nothing to convert: give --train=PATH, --validation=PATH or both"));
  EXPECT_THAT(rejection([](ConvertOptions& o) { o.validation.labels = "x"; }),
              HasSubstr("--validation_labels needs --validation=PATH"));
  EXPECT_THAT(rejection([](ConvertOptions& o) {
                o.validation = std::move(o.train);
                o.train = {};
                o.train.labels = "x";
              }),
              HasSubstr("--train_labels needs --train=PATH"));
  EXPECT_THAT(rejection([](ConvertOptions& o) { o.train.shards = 13; }),
              HasSubstr("--shards must be at most 12, not 13: a file needs an image"));
  EXPECT_THAT(rejection([](ConvertOptions& o) { o.validation.shards = -1; }),
              HasSubstr("--validation_shards must be 0 to 99999, not -1"));
  EXPECT_THAT(rejection([](ConvertOptions& o) { o.image.shorter_side = -1; }),
              HasSubstr("--shorter_side must be 0 (as it is) to 65500, not -1"));
  EXPECT_THAT(rejection([](ConvertOptions& o) { o.image.quality = 101; }),
              HasSubstr("--quality must be 1 to 100, not 101"));
  EXPECT_THAT(rejection([](ConvertOptions& o) { o.threads = 0; }),
              HasSubstr("--threads must be 1 to 1024, not 0"));
  EXPECT_FALSE(fs::exists(Path("set")));
}

}  // namespace
}  // namespace trainer
