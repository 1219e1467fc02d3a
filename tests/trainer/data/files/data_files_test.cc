// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/data_files.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ddldata/inspect.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "tests/trainer/data/tfrecord_loader_fixture.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/files/text_lines.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {
namespace {

class PrintFindingsTest : public ::testing::Test {
 protected:
  void Make(const std::string& file) {
    const fs::path path = fs::path(dir_.path()) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  std::string Say() const { return PrintFindings(dir_.path()); }

  TemporaryDirectory dir_;
};

TEST_F(PrintFindingsTest, IsNothingOfAnEmptyDirectoryNorOfNone) {
  EXPECT_EQ(Say(), "");
  EXPECT_EQ(PrintFindings("/no/such/folder"), "");
  Make("notes.txt");
  EXPECT_EQ(Say(), "");
}

TEST_F(PrintFindingsTest, IsNothingOfTheOtherSplitWhereItBelongs) {
  Make("train-00000-of-00002");
  EXPECT_EQ(Say(), "");
  EXPECT_EQ(PrintFindings(dir_.path().string() + "/"), "");
}

TEST_F(PrintFindingsTest, NamesDataFilesInADirectoryOfTheirOwnAndHowToLinkThem) {
  Make("validation/validation-00000-of-00001");
  EXPECT_THAT(Say(), HasSubstr("validation-00000-of-00001 is in one of its own"));
  EXPECT_THAT(Say(),
              EndsWith("ln -s " + dir_.path().string() + "/validation/* " + dir_.path().string()));
  Make("imagenet/train/train-00000-of-00001");
  EXPECT_THAT(Say(), HasSubstr("validation-00000-of-00001"));  // the nearest
}

TEST_F(PrintFindingsTest, QuotesWhatAShellWouldTakeApart) {
  Make("my data/train/train-00000-of-00001");
  const std::string directory = dir_.path().string() + "/my data";
  EXPECT_THAT(PrintFindings(directory),
              EndsWith("ln -s '" + directory + "/train'/* '" + directory + "'"));
}

TEST_F(PrintFindingsTest, GivesLinksThatHoldFromARelativeDirectory) {
  Make("data/train/train-00000-of-00001");
  const fs::path before = fs::current_path();
  fs::current_path(dir_.path());
  const std::string text = PrintFindings("data");
  const fs::path here = fs::current_path();
  fs::current_path(before);
  EXPECT_THAT(text, EndsWith("ln -s " + (here / "data/train").string() + "/* data"));
}

TEST_F(PrintFindingsTest, KnowsTensorFlowDatasets) {
  Make("5.1.0/imagenet2012-train.tfrecord-00000-of-01024");
  EXPECT_THAT(Say(), HasSubstr("01024 is of TensorFlow Datasets"));
}

TEST_F(PrintFindingsTest, KnowsRecordsUnderOtherNames) {
  Make("train-00000-of-00001");  // where files of the other split are looked for
  EXPECT_EQ(Say(), "");
  for (const char* name : {"val-00000-of-00002", "coco_train.record-00000", "train.tfrecords"}) {
    Make(name);
    EXPECT_THAT(Say(), StartsWith("; " + (dir_ / name) + " may be one under another name")) << name;
    fs::remove(dir_ / name);
  }
}

TEST_F(PrintFindingsTest, KnowsImagesAndTarsOfThemTwoDirectoriesDown) {
  Make("train/n01440764/n01440764_10026.JPEG");
  EXPECT_THAT(Say(), EndsWith("n01440764_10026.JPEG, with: ddldata convert"));
  Make("ILSVRC2012_img_train.tar");
  EXPECT_THAT(Say(), EndsWith("ILSVRC2012_img_train.tar, with: ddldata convert"));
}

TEST_F(PrintFindingsTest, LooksNoDeeper) {
  Make("a/b/c/d.jpg");
  EXPECT_EQ(Say(), "");
}

constexpr char kWayOut[] = "; if a part of the set is meant, say so: ddldata manifest --part d";

std::vector<std::string> Missing(const std::vector<std::string>& names, bool may_be_part = false) {
  return FindMissingShards("d", "train-", names, may_be_part);
}

TEST(MissingShards, NoneOfACompleteSet) {
  EXPECT_THAT(Missing({"train-00000-of-00002", "train-00001-of-00002"}), IsEmpty());
  EXPECT_THAT(Missing({"train-0-of-1"}), IsEmpty());
  EXPECT_THAT(Missing({"train-0-of-2.rec", "train-1-of-2.rec"}), IsEmpty());
  EXPECT_THAT(Missing({"train-a-0-of-1", "train-b-0-of-2", "train-b-1-of-2"}), IsEmpty());
  EXPECT_THAT(Missing({}), IsEmpty());
}

TEST(MissingShards, NoneOfNamesWithoutNumbers) {
  EXPECT_THAT(Missing({"train-a", "train-b", "train-0", "train-0-of-", "train--of-1"}), IsEmpty());
}

TEST(MissingShards, NamesTheFirstThatIsMissing) {
  EXPECT_THAT(Missing({"train-00000-of-00004"}),
              ElementsAre(std::string("d has 1 of the 4 files train-*-of-00004: "
                                      "train-00001-of-00004 is missing, and others") +
                          kWayOut));
  EXPECT_THAT(Missing({"train-00000-of-00003", "train-00001-of-00003"}),
              ElementsAre(std::string("d has 2 of the 3 files train-*-of-00003: "
                                      "train-00002-of-00003 is missing") +
                          kWayOut));
  // TensorFlow's names, and those of several sources.
  EXPECT_THAT(Missing({"train-00001-of-00002.tfrecord"}),
              ElementsAre(StartsWith("d has 1 of the 2 files train-*-of-00002.tfrecord: "
                                     "train-00000-of-00002.tfrecord is missing")));
  EXPECT_THAT(Missing({"train-best-of-a-0-of-2"}),
              ElementsAre(HasSubstr("train-best-of-a-1-of-2 is missing")));
  EXPECT_THAT(Missing({"train-a-00000-of-00001", "train-b-00001-of-00002"}),
              ElementsAre(StartsWith("d has 1 of the 2 files train-b-*-of-00002: "
                                     "train-b-00000-of-00002 is missing")));
  EXPECT_THAT(Missing({"train-1-of-2"}),
              ElementsAre(std::string("d has 1 of the 2 files train-*-of-2: train-0-of-2 is "
                                      "missing") +
                          kWayOut));
}

TEST(MissingShards, APartMayLackFilesAndNothingElse) {
  EXPECT_THAT(Missing({"train-00000-of-00004"}, true), IsEmpty());
  EXPECT_THAT(Missing({"train-00000-of-00004", "train-00001-of-00002"}, true), SizeIs(1));
  EXPECT_THAT(Missing({"train-00000-of-00004", "train-00004-of-00004"}, true), SizeIs(1));
}

TEST(MissingShards, RejectsTwoSetsInOneDirectory) {
  EXPECT_THAT(Missing({"train-00000-of-00001", "train-00000-of-00002", "train-00001-of-00002"}),
              ElementsAre("d has files of two sets, train-00000-of-00001 and "
                          "train-00000-of-00002: leave those of one"));
}

TEST(MissingShards, RejectsNumbersThatCannotBe) {
  EXPECT_THAT(Missing({"train-00000-of-00001", "train-00001-of-00001"}),
              ElementsAre("d/train-00001-of-00001 cannot be: numbers begin at 0 and end before 1"));
  EXPECT_THAT(Missing({"train-0-of-1", "train-00-of-1"}),
              ElementsAre("d has one file under two names, train-0-of-1 and train-00-of-1"));
}

TEST(MissingShards, RejectsANameWithoutANumberAmongOthers) {
  EXPECT_THAT(Missing({"train-00000-of-00001", "train-00000-of-00001~"}),
              ElementsAre(StartsWith("d/train-00000-of-00001~ is not numbered as "
                                     "train-00000-of-00001 is")));
  EXPECT_THAT(
      Missing({"train-0-of-1.rec", "train-0-of-1.rec.md5"}),
      ElementsAre(StartsWith("d/train-0-of-1.rec.md5 is not numbered as train-0-of-1.rec")));
}

class DataFilesTest : public ::testing::Test {
 protected:
  DataFilesTest() {
    WriteRecords(dir_ / "train-00000-of-00002", {"a"});
    WriteRecords(dir_ / "elsewhere", {"b"});
  }
  std::string Rejection() {
    return DataErrorOf([&] { FindDataFiles(dir_.path(), Split::kTrain); });
  }
  TemporaryDirectory dir_;
  const std::string second_ = dir_ / "train-00001-of-00002";
};

TEST_F(DataFilesTest, TakesLinksToFiles) {
  fs::create_symlink("elsewhere", second_);
  EXPECT_THAT(FindDataFiles(dir_.path(), Split::kTrain),
              ElementsAre(dir_ / "train-00000-of-00002", second_));
}

TEST_F(DataFilesTest, RejectsALinkToNothing) {
  fs::create_symlink("nowhere", second_);
  EXPECT_EQ(Rejection(),
            second_ +
                " is a link to nowhere, which is not there: mend it, or take it out of "
                "the directory");
}

TEST_F(DataFilesTest, RejectsDirectoriesAndPipes) {
  fs::create_directory(second_);
  EXPECT_THAT(Rejection(), StartsWith(second_ + " is a directory: "));
  fs::remove(second_);
  ASSERT_EQ(::mkfifo(second_.c_str(), 0600), 0);
  EXPECT_THAT(Rejection(), StartsWith(second_ + " is a named pipe: "));
}

TEST_F(DataFilesTest, RejectsAnIncompleteSet) {
  EXPECT_THAT(Rejection(), HasSubstr("train-00001-of-00002 is missing"));
}

TEST_F(DataFilesTest, SaysWhatToGiveInPlaceOfFiles) {
  const auto rejection = [](const std::string& path) {
    return DataErrorOf([&] { FindDataFiles(path, Split::kTrain); });
  };
  const std::string advice = "; give the directory of the files alone: " + dir_.path().string();
  EXPECT_THAT(rejection(dir_ / "elsewhere"), EndsWith(": Not a directory" + advice));
  EXPECT_THAT(rejection(dir_ / "train-*"), EndsWith(": No such file or directory" + advice));
  EXPECT_THAT(rejection(dir_ / "no/train-*"), EndsWith(": No such file or directory"));
  EXPECT_THAT(rejection(dir_ / "no"), EndsWith(": No such file or directory"));
  fs::create_symlink("/nowhere", dir_ / "link");
  EXPECT_THAT(rejection(dir_ / "link"), EndsWith("link, a link to /nowhere: No such file or "
                                                 "directory"));
}

TEST_F(DataFilesTest, LeavesOtherSplitsAlone) {
  EXPECT_THAT(ListDataFiles(dir_.path(), Split::kValidation, false).problems, IsEmpty());
}

TEST(BudgetOpenFiles, RaisesTheLimitByWhatIsNeeded) {
  EXPECT_EQ(BudgetOpenFiles({1024, 524288, 20}, 1024), (OpenFileBudget{20 + 1024 + 1024, 1024}));
  // Of a second data set, with the first one's files open.
  EXPECT_EQ(BudgetOpenFiles({2068, 524288, 1044}, 128), (OpenFileBudget{1044 + 128 + 1024, 128}));
}

TEST(BudgetOpenFiles, LeavesAHighLimitAlone) {
  EXPECT_EQ(BudgetOpenFiles({524288, 1048576, 20}, 1024), (OpenFileBudget{524288, 1024}));
  EXPECT_EQ(BudgetOpenFiles({2068, 4096, 20}, 1024), (OpenFileBudget{2068, 1024}));
}

TEST(BudgetOpenFiles, NeverPassesTheHardLimit) {
  EXPECT_EQ(BudgetOpenFiles({1024, 1500, 20}, 1024), (OpenFileBudget{1500, 730}));
  EXPECT_EQ(BudgetOpenFiles({1024, 1024, 20}, 1024), (OpenFileBudget{1024, 492}));
  EXPECT_EQ(BudgetOpenFiles({1024, 1024, 600}, 100), (OpenFileBudget{1024, 0}));
}

rlimit FileLimits() {
  rlimit limits{};
  ::getrlimit(RLIMIT_NOFILE, &limits);
  return limits;
}

// Ends this process: with 0 if `holds` returns true under these limits.
[[noreturn]] void WithFileLimits(rlim_t soft, rlim_t hard, const std::function<bool()>& holds) {
  const rlimit limits{soft, hard};
  ::_exit(::setrlimit(RLIMIT_NOFILE, &limits) == 0 && holds() ? 0 : 1);
}

TEST_F(RecordSourceTest, RaisesTheLimitOnOpenFilesWhereItMay) {
  const rlim_t hard = FileLimits().rlim_max;
  if (hard < 2048) GTEST_SKIP() << "the hard limit on open files is below 2048";
  EXPECT_EXIT(WithFileLimits(64, hard,
                             [&] {
                               const std::string note = MakeTfRecordLoader(options_)->note();
                               const rlimit limits = FileLimits();
                               return note.empty() && limits.rlim_cur > 1024 &&
                                      limits.rlim_cur < 1200 && limits.rlim_max == hard;
                             }),
              testing::ExitedWithCode(0), "");
}

// With room for one of the three files: the others are opened for each record.
TEST_F(RecordSourceTest, ReadsFilesThatCannotStayOpenAndSaysSo) {
  const auto expected = Take(options_, 0, 8);
  EXPECT_EXIT(
      WithFileLimits(200, 200,
                     [&] {
                       // What else is open depends on who runs the test.
                       for (rlim_t limit = 200; RaiseOpenFileLimit(3) > 1; --limit) {
                         const rlimit limits{limit, limit};
                         ::setrlimit(RLIMIT_NOFILE, &limits);
                       }
                       const std::string note = MakeTfRecordLoader(options_)->note();
                       return note.starts_with(dir_.path().string() + ": 1 of 3 data files stay") &&
                              Take(options_, 0, 8) == expected;
                     }),
      testing::ExitedWithCode(0), "");
}

TEST(ParseDecimal, TakesDecimalNumbersAsAWhole) {
  EXPECT_EQ(ParseDecimal("0.2620"), 0.2620);
  EXPECT_EQ(ParseDecimal("-12"), -12);
  EXPECT_EQ(ParseDecimal("+.5"), 0.5);
  EXPECT_EQ(ParseDecimal("1e-3"), 0.001);
  EXPECT_EQ(ParseDecimal("2E2"), 200);
  for (const char* none : {"", " 1", "1 ", "1,5", "nan", "inf", "-inf", "1e999", "0x10", "1.2.3",
                           "-", "1e", "--1", "1_000"}) {
    EXPECT_EQ(ParseDecimal(none), std::nullopt) << none;
  }
  EXPECT_EQ(ParseDecimal(std::string_view("1\0", 2)), std::nullopt);
}

TEST(ForEachLine, NumbersTrimmedLinesFromOne) {
  std::string seen;
  const auto take = [&](std::string_view line, std::size_t number) {
    seen += std::to_string(number) + "=" + std::string(line) + ";";
  };
  ForEachLine(" a\t\r\nb c\n", "list", take);
  EXPECT_EQ(seen, "1=a;2=b c;");
  EXPECT_EQ(DataErrorOf([&] { ForEachLine("a\n \nb", "list", take); }),
            "list:2: the line is empty");
  EXPECT_EQ(DataErrorOf([&] { ForEachLine("", "list", take); }), "list:1: the file is empty");
}

// As Notepad and Excel save "Unicode".
TEST(ForEachLine, RejectsUtf16) {
  const auto take = [](std::string_view, std::size_t) {};
  for (const std::string_view text :
       {std::string_view("\xff\xfe"
                         "a\0\n\0",
                         6),
        std::string_view("\xfe\xff\0a\0\n", 6), std::string_view("a\0\n\0", 4)}) {
    EXPECT_EQ(DataErrorOf([&] { ForEachLine(text, "list", take); }),
              "list:1: the file is UTF-16 (or has bytes of value 0): save it as UTF-8");
  }
}

TEST(Quoted, IsOneShortLine) {
  EXPECT_EQ(Quoted("a b"), "\"a b\"");
  EXPECT_EQ(Quoted("a\nb\x7f"), "\"a?b?\"");
  EXPECT_EQ(Quoted(std::string(40, 'x')), "\"" + std::string(40, 'x') + "\"");
  EXPECT_EQ(Quoted(std::string(41, 'x')), "\"" + std::string(40, 'x') + "...\"");
}

TEST(WithoutByteOrderMark, LeavesTheRest) {
  EXPECT_EQ(WithoutByteOrderMark("\xef\xbb\xbf"
                                 "a"),
            "a");
  EXPECT_EQ(WithoutByteOrderMark("a\xef\xbb\xbf"), "a\xef\xbb\xbf");
}

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

std::string RejectionOfShardManifest(const std::string& text) {
  return DataErrorOf([&] { ParseShardManifest(text, "d/ddldata.manifest"); });
}

TEST(ShardManifest, RejectsOtherTextByItsLine) {
  const std::string text = FormatShardManifest(kShards);
  EXPECT_THAT(RejectionOfShardManifest(""),
              StartsWith("d/ddldata.manifest:1: expected \"ddldata manifest 1\""));
  EXPECT_THAT(RejectionOfShardManifest("ddldata manifest 0\n"),
              StartsWith("d/ddldata.manifest:1: expected \"ddldata manifest 1\""));
  EXPECT_THAT(RejectionOfShardManifest(text.substr(0, 40)),
              StartsWith("d/ddldata.manifest:2: the end is missing"));
  EXPECT_THAT(RejectionOfShardManifest("ddldata manifest 1\ntrain-0 x 1 00000000\n"),
              AllOf(StartsWith("d/ddldata.manifest:2: expected \"NAME RECORDS BYTES CHECKSUM\""),
                    HasSubstr("make a new one: ddldata manifest d")));
}

TEST(ShardManifest, RejectsEveryTextWithABitTurnedOrAByteLess) {
  const std::string text = FormatShardManifest(kShards);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    RejectionOfShardManifest(other);
    RejectionOfShardManifest(text.substr(0, i) + text.substr(i + 1));
  }
  RejectionOfShardManifest(text + "\n");
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
  std::string RejectionOfShardManifest(const std::string& index_dir = "",
                                       const RankShare& share = {}) {
    return DataErrorOf([&] { Open(index_dir, share); });
  }

  TemporaryDirectory dir_;
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
  fs::remove(manifest_);
  EXPECT_FALSE(ReadShardManifest(dir_.path()));
  WriteRecords(two_, {"d"});
  Open();
}

TEST_F(ManifestOfASet, TellsOfRecordsThatAreMissingOrDoubled) {
  WriteRecords(two_, {"d", "f"});
  EXPECT_EQ(RejectionOfShardManifest(),
            two_ + " has 2 records, not the 3 of " + manifest_ +
                ": restore the file, or, if the directory is as it should be, make a new "
                "manifest: ddldata manifest " +
                dir_.path().string());
  WriteRecords(two_, {"d", "e", "e", "f"});
  EXPECT_THAT(RejectionOfShardManifest(), StartsWith(two_ + " has 4 records, not the 3 of "));
  WriteRecords(two_, {"d", "e", "long"});
  EXPECT_THAT(RejectionOfShardManifest(), StartsWith(two_ + " has 54 bytes, not the 51 of "));
}

TEST_F(ManifestOfASet, TellsOfRecordsThatAreExchanged) {
  for (const std::vector<std::string>& records :
       {std::vector<std::string>{"d", "f", "e"}, {"d", "e", "e"}, {"a", "b", "c"}}) {
    WriteRecords(two_, records);
    EXPECT_THAT(RejectionOfShardManifest(),
                StartsWith(two_ + " has other records than those, or in another order"));
  }
}

TEST_F(ManifestOfASet, TellsOfFilesThatAreMissingOrNew) {
  fs::remove(two_);
  fs::rename(one_, dir_ / "train-00000-of-00001");
  EXPECT_THAT(RejectionOfShardManifest(),
              StartsWith(dir_ / "train-00000-of-00001" + " is not in " + manifest_));
  fs::rename(dir_ / "train-00000-of-00001", dir_ / "train-a");
  WriteText(manifest_, FormatShardManifest(std::vector<ShardSummary>{
                           {"train-a", 3, 51, ReadShardManifest(dir_.path())->front().checksum},
                           {"train-b", 3, 51, 0}}));
  EXPECT_THAT(RejectionOfShardManifest(),
              StartsWith(dir_.path().string() + " has no file train-b, which is in " + manifest_));
}

// With index files each rank reads the checksums of its share: together, all.
TEST_F(ManifestOfASet, IsComparedByShareWhereThereAreIndexFiles) {
  const TemporaryDirectory index;
  MakeIndexFiles(dir_.path(), index.path(), 1);
  Open(index.path());
  WriteRecords(two_, {"d", "f", "e"});
  EXPECT_THAT(RejectionOfShardManifest(index.path()), StartsWith(two_));
  EXPECT_THAT(RejectionOfShardManifest(index.path(), {.rank = 1, .ranks = 2}), StartsWith(two_));
  Open(index.path(), {.rank = 0, .ranks = 2});
}

TEST_F(ManifestOfASet, IsRejectedWhereItIsDamaged) {
  std::string text = tests::TextOf(manifest_);
  text[text.size() / 2] ^= 1;
  WriteText(manifest_, text);
  EXPECT_THAT(RejectionOfShardManifest(), StartsWith(manifest_ + ":"));
}

TEST_F(ManifestOfASet, IsNotMadeOfNamesThatItCannotHold) {
  const TemporaryDirectory dir;
  WriteRecords(dir / "train-a b", {"a"});
  EXPECT_THAT(DataErrorOf([&] { MakeShardManifest(dir.path(), false, 1); }),
              StartsWith(dir / "train-a b" + ": a name with a blank cannot be in a manifest"));
}

}  // namespace
}  // namespace trainer
