// SPDX-License-Identifier: Apache-2.0
//
// The program ddldata, run as a user runs it.

#include <sys/wait.h>

#include <cstdio>

#include "ddldata/synth.h"
#include "tests/support/directories.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/data_set.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {
namespace {

struct Outcome {
  int exit_code;
  std::string output;  // of both streams
};

Outcome Ddldata(const std::string& arguments) {
  const std::string command = tests::BuildDirectory() + "/bin/ddldata " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  Outcome outcome{-1, ""};
  char buffer[4096];
  while (const std::size_t length = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    outcome.output.append(buffer, length);
  }
  outcome.exit_code = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

std::set<std::string> FileNames(const std::string& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

constexpr char kSmall[] =
    " --classes 3 --images 20 --validation_images 6 --shards 2 --validation_shards 1 --size 20-40 ";

class DdldataTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ / name; }
  void MakeSmallSet() const {
    const Outcome outcome = Ddldata("synth " + Path("set") + kSmall);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  }
  TemporaryDirectory dir_;
};

TEST_F(DdldataTest, SynthMakesASetThatVerifies) {
  MakeSmallSet();
  EXPECT_THAT(FileNames(Path("set")),
              ElementsAre("ddldata.manifest", "train-00000-of-00002", "train-00001-of-00002",
                          "validation-00000-of-00001"));
  const Outcome outcome = Ddldata("verify " + Path("set") + " --classes 3");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, StartsWith("3 files, 26 records, "));
  EXPECT_THAT(outcome.output, HasSubstr(" 0 problems\n"));
}

TEST_F(DdldataTest, SynthDependsOnTheSeedAndNotOnTheThreads) {
  SynthOptions options{.dir = Path("a"), .images = 12, .validation_images = 0, .shards = 2};
  MakeDataSet(options);
  options.dir = Path("b");
  options.threads = 3;
  MakeDataSet(options);
  options.dir = Path("c");
  options.seed = 2;
  MakeDataSet(options);
  const std::string name = "/train-00001-of-00002";
  EXPECT_EQ(tests::TextOf(Path("a") + name), tests::TextOf(Path("b") + name));
  EXPECT_NE(tests::TextOf(Path("a") + name), tests::TextOf(Path("c") + name));
}

TEST_F(DdldataTest, SynthReplacesOnlyWithForce) {
  MakeSmallSet();
  const Outcome rejected = Ddldata("synth " + Path("set") + kSmall);
  EXPECT_EQ(rejected.exit_code, 64);
  EXPECT_THAT(rejected.output, HasSubstr("already has data files (3, one is "));
  EXPECT_THAT(rejected.output, HasSubstr("--force replaces all of them"));
  const Outcome forced = Ddldata("synth " + Path("set") + " --force --images 4 --shards 1 " +
                                 "--validation_images 0 --size 20");
  EXPECT_EQ(forced.exit_code, 0);
  EXPECT_THAT(FileNames(Path("set")), ElementsAre("ddldata.manifest", "train-00000-of-00001"));
  EXPECT_EQ(Ddldata("verify " + Path("set")).exit_code, 0);
}

TEST_F(DdldataTest, SynthRejectsOptionsThatMakeNoSense) {
  for (const char* option :
       {"--classes 0", "--classes 201", "--size 20-10", "--size 1-5", "--size x",
        "--images 3 --shards 4", "--validation_images 1", "--threads 0", "--images many"}) {
    const Outcome outcome = Ddldata("synth " + Path("set") + " " + option);
    EXPECT_EQ(outcome.exit_code, 64) << option;
    const std::string name(option, std::string(option).find(' '));
    EXPECT_THAT(outcome.output, HasSubstr(name));
  }
  EXPECT_FALSE(fs::exists(Path("set")));
}

TEST_F(DdldataTest, IndexWritesDalisLines) {
  MakeSmallSet();
  const Outcome outcome = Ddldata("index " + Path("set") + " " + Path("idx"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(FileNames(Path("idx")), ElementsAre("train-00000-of-00002", "train-00001-of-00002",
                                                  "validation-00000-of-00001"));
  const DataSet scanned(Path("set"), "", Split::kTrain, 1);
  const DataSet indexed(Path("set"), Path("idx"), Split::kTrain, 1);
  EXPECT_EQ(indexed.records(), 20);
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(scanned.Describe(i, ""), indexed.Describe(i, ""));
  EXPECT_THAT(tests::TextOf(Path("idx") + "/train-00000-of-00002"), StartsWith("0 "));
  EXPECT_EQ(Ddldata("index " + Path("set") + " " + Path("idx")).exit_code,
            0);  // as often as wanted
}

TEST_F(DdldataTest, IndexReplacesNoData) {
  MakeSmallSet();
  const std::string first = tests::TextOf(Path("set/train-00000-of-00002"));
  fs::create_directory(Path("links"));
  for (const std::string& name :
       {std::string("train-00000-of-00002"), std::string("train-00001-of-00002")}) {
    fs::create_symlink(Path("set/" + name), Path("links/" + name));
  }
  fs::create_directory(Path("other"));
  WriteText(Path("other/train-00001-of-00002"), "something else");
  for (const std::string& directories :
       {Path("set") + " " + Path("set"), Path("links") + " " + Path("set"),
        Path("set") + " " + Path("links"), Path("set") + " " + Path("other")}) {
    const Outcome outcome = Ddldata("index " + directories);
    EXPECT_EQ(outcome.exit_code, 64) << directories;
    EXPECT_THAT(outcome.output, HasSubstr("-of-00002 is no index: replacing it could lose data"));
  }
  EXPECT_EQ(tests::TextOf(Path("set/train-00000-of-00002")), first);
  EXPECT_THAT(FileNames(Path("other")), SizeIs(1));  // nothing was begun
}

TEST_F(DdldataTest, SaysSoWhenItsOutputIsLost) {
  MakeSmallSet();
  for (const std::string command : {"stats ", "stats --json ", "verify "}) {
    EXPECT_EQ(Ddldata(command + Path("set") + " > /dev/full").exit_code, 71) << command;
  }
  for (const std::string command : {"--help", "stats --help", "--version"}) {
    EXPECT_EQ(Ddldata(command + " > /dev/full").exit_code, 71) << command;
  }
}

TEST_F(DdldataTest, VerifyNamesEveryProblem) {
  const std::string set = Path("set");
  fs::create_directory(set);
  const std::string path = set + "/train-00000-of-00002";
  const std::vector<std::string> records = {MakeImageRecord(1), MakeRecordOf("text"),
                                            MakeImageRecord(4), "no example"};
  WriteRecords(path, records);
  const std::string torn = set + "/train-00001-of-00002";
  WriteRecords(torn, {MakeImageRecord(1), MakeImageRecord(2)});
  fs::resize_file(torn, fs::file_size(torn) - 1);
  WriteText(set + "/validation-00000-of-00001", "");

  const Outcome outcome = Ddldata("verify " + set + " --classes 3");
  EXPECT_EQ(outcome.exit_code, 65);
  std::uint64_t offset = records[0].size() + 16;
  const auto complaint = [&](const std::string& what) {
    return path + ", record at offset " + std::to_string(offset) + ": " + what + "\n";
  };
  EXPECT_THAT(outcome.output,
              HasSubstr(complaint("the image is not a JPEG file: it is text that begins with "
                                  "\"text\"")));
  offset += records[1].size() + 16;
  EXPECT_THAT(outcome.output,
              HasSubstr(complaint("the label 4 is out of range: allowed is 1 to 3")));
  offset += records[2].size() + 16;
  EXPECT_THAT(outcome.output, HasSubstr(complaint("the data is not a tf.train.Example")));
  EXPECT_THAT(outcome.output, HasSubstr(torn + ", record at offset "));
  EXPECT_THAT(outcome.output, HasSubstr("bytes from there on cannot be checked\n"));
  EXPECT_THAT(
      outcome.output,
      HasSubstr(
          "validation-00000-of-00001 is empty: it has no record; get it again, or, if it was made "
          "so, as of fewer images than files, remove it and run: ddldata manifest --part " +
          set + "\n"));
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("3 files, 5 records, "), HasSubstr(" 5 problems\n")));
}

TEST_F(DdldataTest, VerifyNamesFilesThatAreMissingAndOddOnes) {
  MakeSmallSet();
  fs::remove(Path("set/ddldata.manifest"));
  fs::rename(Path("set/train-00001-of-00002"), Path("set/train-00000-of-00001"));
  fs::create_directory(Path("set/validation-more"));
  const Outcome outcome = Ddldata("verify " + Path("set") + " --classes 3");
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.output, HasSubstr("set has files of two sets, "));
  EXPECT_THAT(outcome.output, HasSubstr("set/validation-more is a directory: "));
  EXPECT_THAT(outcome.output, HasSubstr("ddldata: note: " + Path("set") + " has no ddldata.manif"));
  EXPECT_THAT(outcome.output, HasSubstr("3 files, 26 records, "));
}

TEST_F(DdldataTest, APartOfASetIsOneByItsManifest) {
  MakeSmallSet();
  fs::remove(Path("set/train-00001-of-00002"));
  // The manifest of the whole set, none, and one that nobody asked to be of a part.
  EXPECT_EQ(Ddldata("verify " + Path("set") + " --classes 3").exit_code, 65);
  EXPECT_EQ(Ddldata("manifest " + Path("set")).exit_code, 65);
  fs::remove(Path("set/ddldata.manifest"));
  const Outcome rejected = Ddldata("verify " + Path("set") + " --classes 3");
  EXPECT_EQ(rejected.exit_code, 65);
  EXPECT_THAT(rejected.output, HasSubstr("train-00001-of-00002 is missing; if a part of the set is "
                                         "meant, say so: ddldata manifest --part " +
                                         Path("set")));
  EXPECT_EQ(Ddldata("manifest " + Path("set")).exit_code, 65);

  EXPECT_EQ(Ddldata("manifest --part " + Path("set")).exit_code, 0);
  EXPECT_EQ(Ddldata("verify " + Path("set") + " --classes 3").exit_code, 0);
  EXPECT_THAT(FindDataFiles(Path("set"), Split::kTrain), SizeIs(1));
  // What is missing of the part is missed.
  fs::remove(Path("set/train-00000-of-00002"));
  EXPECT_EQ(Ddldata("verify " + Path("set") + " --classes 3").exit_code, 65);
}

TEST_F(DdldataTest, VerifyComparesWithTheManifest) {
  MakeSmallSet();
  const std::string path = Path("set/train-00000-of-00002");
  const std::string bytes = tests::TextOf(path);
  WriteText(path, bytes.substr(RecordFile(path, true).PlaceAt(0).size));
  const Outcome cut = Ddldata("verify " + Path("set") + " --classes 3");
  EXPECT_EQ(cut.exit_code, 65);
  EXPECT_THAT(cut.output, HasSubstr(path + " has 9 records, not the 10 of "));
  EXPECT_THAT(cut.output, HasSubstr(" 1 problem\n"));

  const Outcome made = Ddldata("manifest " + Path("set"));
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_EQ(made.output, Path("set") + "/ddldata.manifest: 25 records counted\n");
  EXPECT_EQ(Ddldata("verify " + Path("set") + " --classes 3").exit_code, 0);

  WriteText(Path("set/ddldata.manifest"), "nothing");
  const Outcome damaged = Ddldata("verify " + Path("set") + " --classes 3");
  EXPECT_EQ(damaged.exit_code, 65);
  EXPECT_THAT(damaged.output, HasSubstr("set/ddldata.manifest:1: expected "));
}

TEST_F(DdldataTest, VerifyComparesWithTheIndexFiles) {
  MakeSmallSet();
  ASSERT_EQ(Ddldata("index " + Path("set") + " " + Path("idx")).exit_code, 0);
  const std::string verify = "verify --classes 3 --index_dir " + Path("idx") + " " + Path("set");
  EXPECT_EQ(Ddldata(verify).exit_code, 0);

  // Two lines that fill the file as well, but not as it is.
  const std::string index = Path("idx/train-00001-of-00002");
  std::vector<RecordPlace> places = RecordFile(Path("set/train-00001-of-00002"), true).Scan();
  places[3].size += 5;
  places[4] = {places[4].offset + 5, places[4].size - 5};
  WriteText(index, FormatIndex(places));
  const Outcome other = Ddldata(verify);
  EXPECT_EQ(other.exit_code, 65);
  EXPECT_THAT(other.output, HasSubstr(index + ":4: the record of " +
                                      std::to_string(places[3].size) + " bytes at offset "));
  fs::rename(index, Path("idx/train-00002-of-00003"));
  const Outcome missing = Ddldata(verify);
  EXPECT_THAT(missing.output,
              HasSubstr(Path("idx") + " has no index of " + Path("set/train-00001-of-00002")));
  EXPECT_THAT(missing.output,
              HasSubstr("idx/train-00002-of-00003 is the index of a file that is "));
  EXPECT_THAT(missing.output, HasSubstr(" 2 problems\n"));
  EXPECT_EQ(Ddldata("verify --index_dir " + Path("no") + " " + Path("set")).exit_code, 65);
}

// As in the loop around tfrecord2idx that NVIDIA shows.
TEST_F(DdldataTest, VerifyTakesIndexFilesThatAreCalledIdx) {
  MakeSmallSet();
  ASSERT_EQ(Ddldata("index " + Path("set") + " " + Path("idx")).exit_code, 0);
  const std::string index = Path("idx/train-00001-of-00002");
  fs::rename(index, index + ".idx");
  const std::string verify = "verify --classes 3 --index_dir " + Path("idx") + " " + Path("set");
  EXPECT_EQ(Ddldata(verify).exit_code, 0);
  WriteText(Path("idx/train-00002-of-00003.idx"), "0 1\n");
  EXPECT_THAT(Ddldata(verify).output,
              HasSubstr("idx/train-00002-of-00003.idx is the index of a file that is not in "));
}

TEST_F(DdldataTest, RejectsDirectoriesWithoutData) {
  for (const std::string& command :
       {std::string("verify "), std::string("manifest "), "index " + Path("idx") + " "}) {
    const Outcome outcome = Ddldata(command + dir_.path().string());
    EXPECT_EQ(outcome.exit_code, 65) << outcome.output;
  }
  EXPECT_EQ(Ddldata("verify " + Path("missing")).output,
            "ddldata: cannot read the data directory " + Path("missing") +
                ": No such file or directory\n");
}

TEST_F(DdldataTest, HasHelpAndNamesTheNearestSpelling) {
  for (const char* command :
       {"", "synth ", "convert ", "index ", "manifest ", "verify ", "stats "}) {
    const Outcome help = Ddldata(std::string(command) + "--help");
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.output, HasSubstr("ddldata " + std::string(command) + "[OPTIONS]"));
  }
  const Outcome option = Ddldata("synth x --imges 3");
  EXPECT_EQ(option.exit_code, 64);
  EXPECT_EQ(option.output, "ddldata: unknown argument --imges; did you mean --images?\n");
  const Outcome command = Ddldata("verfy x");
  EXPECT_EQ(command.exit_code, 64);
  EXPECT_EQ(command.output, "ddldata: unknown argument verfy; did you mean verify?\n");
  EXPECT_EQ(Ddldata("").exit_code, 64);
}

}  // namespace
}  // namespace trainer
