// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/names.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFiles[] = {kModelFile, kOptimizerFile, kManifestFile};

std::string Refusal(const fs::path& directory) {
  try {
    ReadCheckpoint(directory);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    return error.what();
  }
  return "";
}

TEST(ReadCheckpoint, NoticesEveryFlippedBit) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  for (const char* name : {kModelFile, kOptimizerFile}) {
    const std::string whole = Slurp(directory / name);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
      Spill(directory / name, flipped);
      EXPECT_THAT(Refusal(directory), HasSubstr(name)) << "byte " << i;
    }
    Spill(directory / name, whole);
  }
  ExpectSampleRun(ReadCheckpoint(directory), 3);
}

TEST(ReadCheckpoint, NamesTheTensorThatIsDamaged) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  std::string bytes = Slurp(directory / kModelFile);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Spill(directory / kModelFile, bytes);
  EXPECT_EQ(Refusal(directory), (directory / kModelFile).string() +
                                    ": damaged: tensor 'conv1.weight' has the wrong checksum");
}

TEST(ReadCheckpoint, NoticesAFileThatIsCutShortOrTooLong) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  for (const char* name : kFiles) {
    const std::string whole = Slurp(directory / name);
    for (std::size_t length = 0; length + 1 < whole.size(); length += 7) {
      Spill(directory / name, whole.substr(0, length));
      EXPECT_THAT(Refusal(directory), HasSubstr(name)) << length;
    }
    Spill(directory / name, whole + "x");
    EXPECT_THAT(Refusal(directory), HasSubstr(name));
    Spill(directory / name, whole);
  }
  ExpectSampleRun(ReadCheckpoint(directory), 3);
}

TEST(ReadCheckpoint, NoticesAMissingFile) {
  for (const char* name : kFiles) {
    const ScratchDirectory scratch;
    const fs::path directory = SampleRun(3).Write(scratch.path());
    fs::remove(directory / name);
    EXPECT_THAT(Refusal(directory), HasSubstr(std::string(name) + ": there is no such file"));
  }
}

TEST(ReadCheckpoint, NoticesFilesOfAnotherCheckpoint) {
  const ScratchDirectory scratch;
  const fs::path three = SampleRun(3).Write(scratch.path());
  const fs::path four = SampleRun(4).Write(scratch.path());
  fs::copy_file(three / kModelFile, four / kModelFile, fs::copy_options::overwrite_existing);
  EXPECT_THAT(Refusal(four), HasSubstr("wrong checksum"));
  for (const char* name : kFiles) {
    fs::copy_file(three / name, four / name, fs::copy_options::overwrite_existing);
  }
  EXPECT_THAT(Refusal(four), HasSubstr("its manifest is of step 3"));
}

TEST(ReadNewestCheckpoint, FindsNoneInANewDirectory) {
  const ScratchDirectory scratch;
  EXPECT_FALSE(ReadNewest(scratch.path()).has_value());
  EXPECT_FALSE(ReadNewest(scratch.path() / "nonexistent").has_value());
}

TEST(ReadNewestCheckpoint, TakesTheHighestStep) {
  const ScratchDirectory scratch;
  for (const int step : {9, 100, 20}) SampleRun(step).Write(scratch.path());
  fs::create_directory(CheckpointsDirectory(scratch.path()) / "step-0000000200.bak");
  ExpectSampleRun(*ReadNewest(scratch.path()), 100);
}

TEST(ReadNewestCheckpoint, FallsBackAndSaysSo) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  fs::remove(SampleRun(2).Write(scratch.path()) / kManifestFile);
  fs::resize_file(SampleRun(3).Write(scratch.path()) / kOptimizerFile, 0);
  std::vector<std::string> warnings;
  ExpectSampleRun(*ReadNewest(scratch.path(), &warnings), 1);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("step-0000000003/optimizer.safetensors: damaged"),
                                    HasSubstr("step-0000000002/manifest.json: there is no")));
  EXPECT_THAT(warnings[0], HasSubstr("passed over"));
}

TEST(ReadNewestCheckpoint, RefusesToStartAnewOverDamagedOnes) {
  const ScratchDirectory scratch;
  fs::remove(SampleRun(2).Write(scratch.path()) / kManifestFile);
  try {
    ReadNewest(scratch.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_THAT(error.what(), HasSubstr("none of its 1 checkpoints is valid"));
  }
}

}  // namespace
}  // namespace trainer
