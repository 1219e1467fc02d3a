// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/checkpoints.h"

#include <cstring>

#include "tests/support/test.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/core/error.h"

namespace ddlctl {
namespace {

using trainer::Error;
using trainer::SampleRun;
using trainer::ScratchDirectory;
using trainer::Spill;

void Ignore(const std::string&) {}

int CodeOf(const std::function<void()>& call, const std::string& part) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(part));
    return error.exit_code();
  }
  return EX_OK;
}

struct Verified {
  int code = 0;
  std::string good;
  std::string bad;
};

Verified Verify(const fs::path& model_dir, std::optional<std::int64_t> step) {
  Verified result;
  result.code = VerifyCheckpoints(
      model_dir, step, [&](const std::string& line) { result.good += line; },
      [&](const std::string& line) { result.bad += line; });
  return result;
}

// Changes the last byte, which is one of a tensor.
void Damage(const fs::path& file) {
  std::string bytes = tests::TextOf(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Spill(file, bytes);
}

TEST(CtlCheckpoints, ATableHasEachOneNewestFirst) {
  const ScratchDirectory scratch;
  SampleRun(50).Write(scratch.path());
  SampleRun(250).Write(scratch.path());
  const std::string table = CheckpointTable(scratch.path());
  EXPECT_THAT(table, StartsWith("STEP  EPOCHS    SIZE  WRITTEN "));
  EXPECT_THAT(table, HasSubstr("\n 250       2  0.0 MB  20"));
  EXPECT_THAT(table, HasSubstr("  resnet50  0.1.0      whole\n  50       0  0.0 MB  20"));
}

TEST(CtlCheckpoints, TheTableSaysWhatIsWrongWithOne) {
  const ScratchDirectory scratch;
  const auto directory = SampleRun(50).Write(scratch.path());
  const auto other = SampleRun(60).Write(scratch.path());
  Spill(directory / trainer::kModelFile, "short");
  fs::remove(other / trainer::kOptimizerFile);
  const std::string table = CheckpointTable(scratch.path());
  EXPECT_THAT(table, HasSubstr("model.safetensors: damaged: it has 5 bytes instead of "));
  EXPECT_THAT(table, HasSubstr("optimizer.safetensors: No such file or directory\n"));
  EXPECT_THAT(table, Not(HasSubstr("whole")));
}

TEST(CtlCheckpoints, WhereThereIsNoneItIsSaid) {
  const ScratchDirectory scratch;
  const std::string part = "there is no checkpoint in " + scratch.path().string() + " (no step-";
  EXPECT_EQ(CodeOf([&] { CheckpointTable(scratch.path()); }, part), EX_NOINPUT);
  EXPECT_EQ(CodeOf([&] { Verify(scratch.path(), std::nullopt); }, part), EX_NOINPUT);
  const auto file = scratch.path() / "w.safetensors";
  EXPECT_EQ(CodeOf([&] { ExportWeights(scratch.path(), {}, file, Ignore); }, part), EX_NOINPUT);
  const auto checkpoint = SampleRun(50).Write(scratch.path());
  EXPECT_EQ(CodeOf([&] { Verify(checkpoint, 50); },
                   "' is a checkpoint of a run: give the directory of the run, " +
                       scratch.path().string()),
            EX_NOINPUT);
  EXPECT_EQ(CodeOf([&] { Verify(scratch.path(), 51); },
                   "there is no checkpoint of step 51 in " + scratch.path().string()),
            EX_NOINPUT);
}

TEST(CtlCheckpoints, VerifyReadsAllOfEachOrOfOne) {
  const ScratchDirectory scratch;
  SampleRun(50).Write(scratch.path());
  const auto damaged = SampleRun(60).Write(scratch.path());
  SampleRun(70).Write(scratch.path());
  Damage(damaged / trainer::kModelFile);
  // Its size is right, so the table has nothing to say.
  EXPECT_THAT(CheckpointTable(scratch.path()), Not(HasSubstr("damaged")));
  const Verified all = Verify(scratch.path(), std::nullopt);
  EXPECT_EQ(all.code, EX_DATAERR);
  EXPECT_EQ(all.good,
            "step 50: all checksums hold: 3 tensors, 0.0 MB\n"
            "step 70: all checksums hold: 3 tensors, 0.0 MB\n");
  EXPECT_THAT(all.bad, StartsWith("step 60: " + (damaged / trainer::kModelFile).string() +
                                  ": damaged: tensor '"));
  EXPECT_THAT(all.bad, HasSubstr("' has the wrong checksum\n"));
  EXPECT_EQ(Verify(scratch.path(), 60).code, EX_DATAERR);
  const Verified good = Verify(scratch.path(), 70);
  EXPECT_EQ(good.code, EX_OK);
  EXPECT_THAT(good.bad, IsEmpty());
}

TEST(CtlCheckpoints, DamageCountsOverWhatCannotBeRead) {
  const ScratchDirectory scratch;
  const auto first = SampleRun(50).Write(scratch.path());
  const auto second = SampleRun(60).Write(scratch.path());
  // A link loop is none that a reader can follow.
  fs::remove(second / trainer::kModelFile);
  fs::create_symlink(trainer::kModelFile, second / trainer::kModelFile);
  EXPECT_EQ(Verify(scratch.path(), std::nullopt).code, EX_OSERR);
  Damage(first / trainer::kOptimizerFile);
  EXPECT_EQ(Verify(scratch.path(), std::nullopt).code, EX_DATAERR);
}

TEST(CtlCheckpoints, ExportWritesTheWeightsOfTheNewestValidOne) {
  const ScratchDirectory scratch;
  SampleRun(50).Write(scratch.path());
  Damage(SampleRun(60).Write(scratch.path()) / trainer::kOptimizerFile);
  const auto file = scratch.path() / "weights.safetensors";
  std::string warnings;
  const std::string said =
      ExportWeights(scratch.path(), {}, file, [&](const std::string& line) { warnings += line; });
  EXPECT_EQ(said, "weights of step 50 written: " + file.string() + "\n");
  EXPECT_THAT(warnings, HasSubstr("passed over for the checkpoint before it\n"));
  const auto written = trainer::SafetensorsFile::Read(file);
  EXPECT_EQ(written.metadata(),
            (trainer::SafetensorsMetadata{{"architecture", "resnet50"},
                                          {"class_names", "[\"cat\",\"dog\"]"},
                                          {"format", "pt"},
                                          {"training_manifest", "01234567"},
                                          {"validation_manifest", "89abcdef"}}));
  const SampleRun run(50);
  ASSERT_EQ(written.tensors().size(), run.model.size());
  for (const trainer::TensorReader& tensor : run.model) {
    const auto* entry = written.Find(tensor.name);
    ASSERT_NE(entry, nullptr);
    const auto data = written.Data(*entry);
    EXPECT_EQ(std::memcmp(data.data(), tensor.data, data.size()), 0);
  }
  EXPECT_EQ(
      CodeOf([&] { ExportWeights(scratch.path(), 60, scratch.path() / "b", Ignore); }, "damaged"),
      EX_DATAERR);
  EXPECT_FALSE(fs::exists(scratch.path() / "b"));
}

TEST(CtlCheckpoints, ExportTakesTheAveragesWhereThereAreAny) {
  const ScratchDirectory scratch;
  const SampleRun run(50);
  const SampleRun other(60);
  const auto saved =
      trainer::WriteCheckpoint(scratch.path(), run.state, {run.model, run.optimizer, other.model});
  const auto file = scratch.path() / "w.safetensors";
  EXPECT_EQ(ExportWeights(scratch.path(), {}, file, Ignore),
            "EMA weights of step 50 written: " + file.string() + "\n");
  const auto written = trainer::SafetensorsFile::Read(file);
  const auto data = written.Data(*written.Find("conv1.weight"));
  EXPECT_EQ(std::memcmp(data.data(), other.weight.data(), data.size()), 0);
  Damage(saved / trainer::kAverageFile);
  EXPECT_EQ(CodeOf([&] { ExportWeights(scratch.path(), 50, scratch.path() / "b", Ignore); },
                   trainer::kAverageFile),
            EX_DATAERR);
}

TEST(CtlCheckpoints, ExportReplacesNothingAndLeavesNothing) {
  const ScratchDirectory scratch;
  SampleRun(50).Write(scratch.path());
  const auto directory = scratch.path() / "out";
  fs::create_directory(directory);
  const auto file = directory / "w.safetensors";
  Spill(file, "mine");
  EXPECT_EQ(CodeOf([&] { ExportWeights(scratch.path(), {}, file, Ignore); },
                   file.string() + " is there already, and is not replaced: give another name"),
            EX_USAGE);
  EXPECT_EQ(tests::TextOf(file), "mine");
  fs::remove(file);
  fs::create_symlink("nowhere", file);
  EXPECT_EQ(CodeOf([&] { ExportWeights(scratch.path(), {}, file, Ignore); }, "is there already"),
            EX_USAGE);
  const auto missing = scratch.path() / "none" / "w.safetensors";
  EXPECT_EQ(CodeOf([&] { ExportWeights(scratch.path(), {}, missing, Ignore); }, "another FILE"),
            EX_OSERR);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 1);
}

}  // namespace
}  // namespace ddlctl
