// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/retention.h"

#include <sys/syscall.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/support/refusal.h"
#include "tests/support/rejected_calls.h"
#include "tests/support/test.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::vector<fs::path> Prune(const ScratchDirectory& scratch, const fs::path& durable,
                            const Retention& retention,
                            std::vector<std::string>* warnings = nullptr) {
  return PruneCheckpoints(scratch.path(), durable, retention, [&](const std::string& line) {
    if (warnings != nullptr) warnings->push_back(line);
  });
}
std::vector<fs::path> Prune(const ScratchDirectory& scratch, const fs::path& durable, int newest,
                            std::vector<std::string>* warnings = nullptr) {
  return Prune(scratch, durable, Retention{.newest = newest}, warnings);
}

fs::path WriteSteps(const ScratchDirectory& scratch, const std::vector<int>& steps) {
  fs::path last;
  for (const int step : steps) last = SampleRun(step).Write(scratch.path());
  return last;
}

TEST(PruneCheckpoints, KeepsTheNewest) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2, 3, 4});
  const fs::path parent = CheckpointsDirectory(scratch.path());
  EXPECT_THAT(Prune(scratch, last, 2),
              ElementsAre(parent / "step-0000000002", parent / "step-0000000001"));
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000003", "step-0000000004"));
}

// Due are 2, 4, 6, ...; 3 and 9 were asked for.
TEST(PruneCheckpoints, KeepsEveryMthOfThoseThatAreDueForEver) {
  const ScratchDirectory scratch;
  const Retention retention = {.newest = 2, .checkpoint_every = 2, .keep_every = 3};
  for (const int step : {2, 3, 4, 6, 8, 9, 10, 12, 14, 16, 18, 20}) {
    Prune(scratch, WriteSteps(scratch, {step}), retention);
  }
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000006", "step-0000000012",
                                                   "step-0000000018", "step-0000000020"));
}

void WriteEvaluated(const ScratchDirectory& scratch, const std::vector<std::pair<int, double>>& all,
                    int newest) {
  for (const auto& [step, top1] : all) {
    SampleRun run(step);
    if (top1 > 0) run.state.top1 = top1;
    Prune(scratch, run.Write(scratch.path()), newest);
  }
}

TEST(PruneCheckpoints, KeepsTheBestUntilABetterOneIsThere) {
  const ScratchDirectory scratch;
  WriteEvaluated(scratch, {{1, 0.25}, {2, 0.5}, {3, 0}, {4, 0.5}, {5, 0.25}, {6, 0}}, 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000002", "step-0000000006"));
  WriteEvaluated(scratch, {{7, 0.75}}, 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000007"));
}

TEST(PruneCheckpoints, TakesNoDamagedOneForTheBest) {
  const ScratchDirectory scratch;
  WriteEvaluated(scratch, {{1, 0.5}, {2, 0.75}, {3, 0}}, 9);
  fs::resize_file(CheckpointsDirectory(scratch.path()) / "step-0000000002" / kModelFile, 5);
  WriteEvaluated(scratch, {{4, 0}}, 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000001", "step-0000000004"));
}

// A file system that fails for a moment must not cost the best checkpoint.
TEST(PruneCheckpoints, LeavesWhatCannotBeReadAndMayBeTheBest) {
  const ScratchDirectory scratch;
  WriteEvaluated(scratch, {{1, 0.5}, {2, 0.75}, {3, 0}}, 9);
  const fs::path manifest =
      CheckpointsDirectory(scratch.path()) / "step-0000000002" / kManifestFile;
  const fs::path elsewhere = scratch.path() / "manifest.json";
  fs::rename(manifest, elsewhere);
  fs::create_symlink(kManifestFile, manifest);  // a loop
  WriteEvaluated(scratch, {{4, 0}}, 1);
  EXPECT_THAT(Listing(scratch.path()),
              ElementsAre("step-0000000001", "step-0000000002", "step-0000000004"));
  fs::remove(manifest);
  fs::rename(elsewhere, manifest);
  WriteEvaluated(scratch, {{5, 0}}, 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000002", "step-0000000005"));
}

TEST(PruneCheckpoints, KeepsForEverByTheStepAlone) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  struct Case {
    std::int64_t step, checkpoint_every, keep_every;
    bool is_kept;
  };
  for (const Case& test : std::vector<Case>{{6, 2, 0, false},
                                            {6, 0, 3, false},
                                            {6, kMax, kMax, false},
                                            {6, 2, kMax, false},
                                            {6, 6, 1, true},
                                            {0, 6, 1, false},
                                            {1, 1, 1, true},
                                            {7, 6, 1, false},
                                            {11, 6, 1, false},
                                            {12, 2, 3, true},
                                            {10, 2, 3, false},
                                            {12, 2, 4, false}}) {
    EXPECT_EQ(IsKeptForEver(test.step, {.newest = 1,
                                        .checkpoint_every = test.checkpoint_every,
                                        .keep_every = test.keep_every}),
              test.is_kept)
        << test.step << " " << test.checkpoint_every << " " << test.keep_every;
  }
}

TEST(PruneCheckpoints, RemovesNothingWhenThereAreFew) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2});
  EXPECT_TRUE(Prune(scratch, last, 5).empty());
  EXPECT_EQ(Listing(scratch.path()).size(), 2U);
}

TEST(PruneCheckpoints, DoesNotCountDamagedOnes) {
  const std::vector<std::function<void(const fs::path&)>> damages = {
      [](const fs::path& checkpoint) { fs::resize_file(checkpoint / kModelFile, 5); },
      [](const fs::path& checkpoint) { fs::remove(checkpoint / kModelFile); },
      [](const fs::path& checkpoint) {
        fs::remove(checkpoint / kManifestFile);
        fs::create_symlink(kManifestFile, checkpoint / kManifestFile);  // a loop
      }};
  for (const auto& damage : damages) {
    const ScratchDirectory scratch;
    const fs::path last = WriteSteps(scratch, {1, 2, 3, 4});
    damage(CheckpointsDirectory(scratch.path()) / "step-0000000003");
    Prune(scratch, last, 2);
    EXPECT_THAT(Listing(scratch.path()),
                ElementsAre("step-0000000002", "step-0000000003", "step-0000000004"));
  }
}

TEST(PruneCheckpoints, NeverRemovesTheOneJustWritten) {
  // Steps 8 and 9 are damaged inside, so the run went back to an older one and has now written 5.
  const ScratchDirectory scratch;
  for (const fs::path& damaged : {WriteSteps(scratch, {8}), WriteSteps(scratch, {9})}) {
    std::string bytes = tests::TextOf(damaged / kModelFile);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    Spill(damaged / kModelFile, bytes);
  }
  const fs::path last = WriteSteps(scratch, {4, 5});
  Prune(scratch, last, 1);
  ExpectSampleRun(ReadCheckpoint(last), 5);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000005", "step-0000000009"));
}

TEST(PruneCheckpoints, SaysWhatItCannotRemoveAndGoesOn) {
  const ScratchDirectory scratch;
  const fs::path last = WriteSteps(scratch, {1, 2, 3});
#ifdef SYS_rename
  constexpr std::uint32_t kRename = SYS_rename;
#else
  constexpr std::uint32_t kRename = SYS_renameat;
#endif
  EXPECT_TRUE(HoldsInChild([&] {
    if (!tests::RejectCalls(kRename, kRename, EACCES)) return true;  // QEMU
    std::vector<std::string> warnings;
    return !SetAside(last) && Prune(scratch, last, 1, &warnings).empty() && warnings.size() == 2 &&
           warnings[0] == "cannot remove " + last.parent_path().string() +
                              "/step-0000000002: Permission denied";
  }));
  EXPECT_THAT(Listing(scratch.path()),
              ElementsAre("step-0000000001", "step-0000000002", "step-0000000003"));
}

TEST(PruneCheckpoints, SaysWhereItCannotLook) {
  const ScratchDirectory scratch;
  Spill(scratch.path() / "checkpoints", "a plain file");
  std::vector<std::string> warnings;
  EXPECT_TRUE(Prune(scratch, scratch.path() / "checkpoints/step-0000000001", 1, &warnings).empty());
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("cannot read the directory"),
                                          EndsWith(": old checkpoints stay there"))));
  EXPECT_THROW(Prune(scratch, {}, 0), Error);
}

TEST(PruneCheckpoints, RemovesOldOnesThatWereSetAside) {
  const ScratchDirectory scratch;
  WriteSteps(scratch, {1, 2, 3, 4});
  const fs::path parent = CheckpointsDirectory(scratch.path());
  EXPECT_EQ(SetAside(parent / "step-0000000001"), parent / "step-0000000001.unusable");
  EXPECT_EQ(SetAside(parent / "step-0000000004"), parent / "step-0000000004.unusable");
  SetAside(parent / "step-0000000003");
  const fs::path last = WriteSteps(scratch, {3, 4, 5});
  EXPECT_EQ(SetAside(parent / "step-0000000004"), parent / "step-0000000004.unusable-2");
  Prune(scratch, last, 2);  // 3 and 5: what is as old as 3 stays
  EXPECT_THAT(Listing(scratch.path()),
              ElementsAre("step-0000000003", "step-0000000003.unusable", "step-0000000004.unusable",
                          "step-0000000004.unusable-2", "step-0000000005"));
}

TEST(SetAside, TakesWhateverIsThere) {
  const ScratchDirectory scratch;
  const fs::path parent = CheckpointsDirectory(scratch.path());
  fs::create_directories(parent);
  EXPECT_EQ(SetAside(parent / "step-0000000001"), std::nullopt);
  fs::create_symlink("step-0000000002", parent / "step-0000000002");
  EXPECT_EQ(SetAside(parent / "step-0000000002"), parent / "step-0000000002.unusable");
  EXPECT_THAT(Listing(scratch.path()), ElementsAre("step-0000000002.unusable"));
  for (int count = 2; count <= 10; ++count) {
    fs::create_directory(parent / "step-0000000002");
    EXPECT_EQ(SetAside(parent / "step-0000000002").has_value(), count <= 9) << count;
  }
}

fs::path WriteEvaluated(const ScratchDirectory& scratch, int step, double top1) {
  SampleRun run(step);
  run.state.top1 = top1;
  return run.Write(scratch.path());
}

std::vector<std::string> FilesIn(const fs::path& checkpoint) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

TEST(ListEvaluated, HasThoseThatWereAndAreWhole) {
  const ScratchDirectory scratch;
  EXPECT_THAT(ListEvaluated(scratch.path()).known, IsEmpty());
  WriteEvaluated(scratch, 1, 0.5);
  SampleRun(2).Write(scratch.path());
  WriteEvaluated(scratch, 3, 0.25);
  fs::remove(WriteEvaluated(scratch, 4, 0.75) / kModelFile);
  const auto [evaluated, unreadable] = ListEvaluated(scratch.path());
  EXPECT_THAT(unreadable, IsEmpty());
  ASSERT_EQ(evaluated.size(), 2U);
  EXPECT_EQ(evaluated[0].step, 3);
  EXPECT_EQ(evaluated[0].top1, 0.25);
  EXPECT_EQ(evaluated[1].directory, CheckpointsDirectory(scratch.path()) / "step-0000000001");
}

TEST(ListEvaluated, NamesThoseThatCannotBeRead) {
  const ScratchDirectory scratch;
  const fs::path checkpoint = WriteEvaluated(scratch, 1, 0.5);
  fs::remove(checkpoint / kManifestFile);
  fs::create_symlink(kManifestFile, checkpoint / kManifestFile);
  const auto [evaluated, unreadable] = ListEvaluated(scratch.path());
  EXPECT_THAT(evaluated, IsEmpty());
  EXPECT_THAT(unreadable, ElementsAre(checkpoint));
}

TEST(BestOf, IsTheHighestOfEqualOnesTheOldest) {
  EXPECT_FALSE(BestOf({}).has_value());
  EXPECT_EQ(BestOf({{9, "", 0.5}, {7, "", 0.75}, {5, "", 0.75}, {3, "", 0.25}})->step, 5);
  EXPECT_EQ(BestOf({{5, "", 0.75}, {7, "", 0.75}})->step, 5);
}

// What is not known may be of the same images.
TEST(BestOf, ComparesThoseOfTheSameImagesAsTheNewest) {
  const SplitIdentity now = {"40 images", ""};
  const SplitIdentity before = {"9 images", ""};
  EXPECT_EQ(BestOf({{9, "", 0.2, now}, {7, "", 0.4, now}, {5, "", 0.9, before}})->step, 7);
  EXPECT_EQ(BestOf({{9, "", 0.2}, {7, "", 0.4, now}, {5, "", 0.9, before}, {3, "", 0.8}})->step, 3);
  const std::vector<EvaluatedCheckpoint> all = {
      {9, "", 0.2, now}, {7, "", 0.4}, {5, "", 0, before}};
  std::vector<std::int64_t> steps;
  for (const EvaluatedCheckpoint& one : EvaluatedOn(before, all)) steps.push_back(one.step);
  EXPECT_THAT(steps, ElementsAre(7, 5));
  EXPECT_EQ(EvaluatedOn({}, all).size(), 3U);
}

TEST(NoteTop1, SaysOfWhichImages) {
  const TemporaryDirectory scratch;
  const fs::path checkpoint = SampleRun(1).Write(scratch.path());
  NoteTop1(checkpoint, 0.5, {}, {"9 images", "01234567"});
  NoteTop1(checkpoint, 0.5, {}, {});
  EXPECT_EQ(ListEvaluated(scratch.path()).known[0].validation.manifest, "01234567");
  NoteTop1(checkpoint, 0.5, {}, {"9 images", "01234568"});
  EXPECT_EQ(ListEvaluated(scratch.path()).known[0].validation.manifest, "01234568");
}

TEST(NoteTop1, ChangesNothingElse) {
  const ScratchDirectory scratch;
  const fs::path checkpoint = SampleRun(1).Write(scratch.path());
  NoteTop1(checkpoint, 0.1234567890123);
  Checkpoint read = ReadCheckpoint(checkpoint);
  EXPECT_EQ(read.manifest.state.top1, 0.1234567890123);
  read.manifest.state.top1.reset();
  ExpectSampleRun(read, 1);
  NoteTop1(checkpoint, 0.5);
  EXPECT_EQ(ReadManifest(checkpoint).state.top1, 0.5);
  EXPECT_THAT(FilesIn(checkpoint), ElementsAre(kManifestFile, kModelFile, kOptimizerFile));
}

TEST(NoteTop1, WritesNothingThatIsThere) {
  const ScratchDirectory scratch;
  const fs::path checkpoint = WriteEvaluated(scratch, 1, 0.5);
  NoteTop1(checkpoint, 0.5, [](std::string_view call) { ADD_FAILURE() << call; });
}

TEST(NoteTop1, RejectsWhatIsNoCheckpoint) {
  const ScratchDirectory scratch;
  EXPECT_THROW(NoteTop1(scratch.path(), 0.5), Error);
}

TEST(NoteTop1, LeavesTheManifestAsItWasWhereACallFails) {
  const ScratchDirectory scratch;
  const fs::path checkpoint = SampleRun(1).Write(scratch.path());
  for (const std::string failing : {"open", "write", "rename"}) {
    const WriteHook hook = [&](std::string_view call) {
      if (call == failing) throw Error(EX_OSERR, "no");
    };
    EXPECT_THROW(NoteTop1(checkpoint, 0.5, hook), Error);
    ExpectSampleRun(ReadCheckpoint(checkpoint), 1);
    EXPECT_THAT(FilesIn(checkpoint), ElementsAre(kManifestFile, kModelFile, kOptimizerFile));
  }
}

TEST(NoteTop1, SurvivesAKillBeforeEachSystemCall) {
  int calls = 0;
  {
    const ScratchDirectory scratch;
    NoteTop1(SampleRun(1).Write(scratch.path()), 0.5, [&](std::string_view) { ++calls; });
  }
  ASSERT_GT(calls, 3);
  for (int fatal = 0; fatal < calls; ++fatal) {
    const ScratchDirectory scratch;
    const fs::path checkpoint = SampleRun(1).Write(scratch.path());
    const int status = RunInChild([&] {
      int call = 0;
      NoteTop1(checkpoint, 0.5, [&](std::string_view) {
        if (call++ == fatal) ::raise(SIGKILL);
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    const std::optional<double> noted = ReadCheckpoint(checkpoint).manifest.state.top1;
    EXPECT_TRUE(!noted || noted == 0.5);
    NoteTop1(checkpoint, 0.75);
    EXPECT_EQ(ReadCheckpoint(checkpoint).manifest.state.top1, 0.75);
    EXPECT_THAT(FilesIn(checkpoint), ElementsAre(kManifestFile, kModelFile, kOptimizerFile));
  }
}

Manifest Sample() {
  Manifest manifest{.state = SampleRun(1234).state};
  manifest.state.loss_scale = 0.1;
  manifest.files = {
      {"model.safetensors", 4096, 0xdeadbeef, {{"conv1.weight", 192, 1}, {"b", 8, 2}}},
      {"optimizer.safetensors", 512, 0, {}}};
  return manifest;
}

std::string RejectionOfManifest(const std::string& text) {
  return tests::Rejection<Error>(EX_DATAERR, [&] { ParseManifest(text, "d/manifest.json"); });
}

TEST(Manifest, HasWhatAnEvaluationHasFoundWhereThereWasOne) {
  Manifest manifest;
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m").state.top1, std::nullopt);
  manifest.state.top1 = 0;
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
  manifest.state.top1 = 0.7512345678901234;
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
}

TEST(Manifest, HasSkippedImagesWhereThereAreAny) {
  Manifest manifest;
  EXPECT_THAT(ToJson(manifest), Not(HasSubstr("skipped_images")));
  manifest.state.skipped_images = 24;
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
}

// Older programs read that of SGD, and are to refuse any other.
TEST(Manifest, IsOfTheFirstFormatUnlessTheOptimizerIsNotSgd) {
  Manifest manifest;
  EXPECT_THAT(ToJson(manifest),
              AllOf(HasSubstr("\"format\": 1,"), Not(HasSubstr("\"optimizer\""))));
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m").state.optimizer, "sgd");
  manifest.state.optimizer = "lars";
  EXPECT_THAT(ToJson(manifest), HasSubstr("\"format\": 2,"));
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
}

// Older programs would lose what labels stand for, and which images a top-1 is of.
TEST(Manifest, IsOfTheThirdFormatWhereTheDataAreKnown) {
  for (const DataIdentity& data :
       {DataIdentity{{"cat", "caf\\xe9"}, {}, {}}, DataIdentity{{}, {"8 images", "0123abcd"}, {}},
        DataIdentity{{}, {}, {"4 images", ""}}}) {
    Manifest manifest;
    manifest.state.data = data;
    EXPECT_THAT(ToJson(manifest), HasSubstr("\"format\": 3,"));
    EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
  }
  Manifest manifest;
  manifest.state.data.training.files = "synthetic images";
  EXPECT_THAT(ToJson(manifest), HasSubstr("\"format\": 1,"));
  EXPECT_EQ(ParseManifest(ToJson(manifest), "m"), manifest);
}

TEST(Manifest, FindsTrainingDataAmongTheSettingsOfOlderVersions) {
  Manifest manifest;
  manifest.state.settings["data"] = "8 images in 2 files, listing 01234567";
  const Manifest read = ParseManifest(ToJson(manifest), "m");
  EXPECT_EQ(read.state.data.training.files, "8 images in 2 files, listing 01234567");
  EXPECT_EQ(read.state.settings.count("data"), 0);
}

TEST(MetadataOfWeights, GivesBackWhatIsKnown) {
  const DataIdentity data = {{"a b", "\"", "\\xe9"}, {"", "01234567"}, {"", "89abcdef"}};
  EXPECT_EQ(DataOfWeights(MetadataOfWeights("resnet50", data)), data);
  EXPECT_THAT(MetadataOfWeights("resnet50", {}), ElementsAre(Pair("architecture", "resnet50")));
}

TEST(MetadataOfWeights, OfAnotherFormAreOfAnotherProgram) {
  for (const char* names : {"cat,dog", "[1, 2]", "{\"0\": \"cat\"}", "[\"cat\"", ""}) {
    EXPECT_THAT(DataOfWeights({{"class_names", names}}).class_names, IsEmpty()) << names;
  }
  EXPECT_THAT(DataOfWeights({{"class_names", "[\"cat\"]"}}).class_names, ElementsAre("cat"));
}

TEST(Manifest, ReadsBackWhatItWrote) { EXPECT_EQ(ParseManifest(ToJson(Sample()), "m"), Sample()); }

TEST(Manifest, ReadsThoseOfOlderVersions) {
  nlohmann::json json = nlohmann::json::parse(ToJson(Sample()));
  nlohmann::json& body = json["manifest"];
  ASSERT_EQ(body.erase("precision") + body.erase("settings"), 2U);
  const std::string text = body.dump();
  char checksum[9];
  std::snprintf(checksum, sizeof checksum, "%08x", Crc32c(std::as_bytes(std::span(text))));
  json["crc32c"] = checksum;
  Manifest expected = Sample();
  expected.state.precision = "";
  expected.state.settings.clear();
  EXPECT_EQ(ParseManifest(json.dump(), "m"), expected);
}

TEST(Manifest, NoFlippedBitGoesUnnoticed) {
  const std::string text = ToJson(Sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {  // white space may change into other white space
        EXPECT_EQ(ParseManifest(flipped, "m"), Sample()) << "byte " << i << " bit " << bit;
      } catch (const Error&) {
      }
    }
  }
}

TEST(Manifest, IsRejectedWhenCutShort) {
  const std::string text = ToJson(Sample());
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_NE(RejectionOfManifest(text.substr(0, length)), "");
  }
}

TEST(Manifest, SaysWhatIsWrong) {
  EXPECT_THAT(RejectionOfManifest("nonsense"),
              HasSubstr("d/manifest.json: not the manifest of a checkpoint"));
  EXPECT_THAT(RejectionOfManifest("{}"), HasSubstr("manifest"));
  std::string other = ToJson(Sample());
  other.replace(other.find("1234"), 4, "1235");
  EXPECT_THAT(RejectionOfManifest(other), HasSubstr("its checksum does not fit its content"));
}

// With a right checksum, as whoever makes such a file can give it.
std::string ManifestWith(const std::string& pointer, const nlohmann::json& value) {
  nlohmann::json json = nlohmann::json::parse(ToJson(Sample()));
  json["manifest"][nlohmann::json::json_pointer(pointer)] = value;
  const std::string body = json["manifest"].dump();
  char checksum[9];
  std::snprintf(checksum, sizeof checksum, "%08x", Crc32c(std::as_bytes(std::span(body))));
  json["crc32c"] = checksum;
  return json.dump();
}

TEST(Manifest, RejectsNumbersThatNoRunHas) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const struct {
    const char* field;
    nlohmann::json value;
  } cases[] = {{"/step", -1},
               {"/step", kHuge},
               {"/epoch", -1},
               {"/epoch", kHuge},
               {"/epoch_samples", -1},
               {"/epoch_samples", kHuge},
               {"/world_size", 0},
               {"/world_size", -1},
               {"/world_size", 1099511627776},
               {"/world_size", 1e100},
               {"/global_batch", 0},
               {"/global_batch", -8},
               {"/global_batch", kHuge},
               {"/classes", 0},
               {"/classes", 2.5},
               {"/seed", -1},
               {"/seed", 1e30},
               {"/loss_scale", 0},
               {"/loss_scale", -1},
               {"/loss_scale_good_steps", -1},
               {"/skipped_images", -1},
               {"/top1", 1.5},
               {"/top1", -0.5},
               {"/format", 1e100},
               {"/files/0/bytes", -1},
               {"/files/0/bytes", 1e30},
               {"/files/0/tensors/0/bytes", -1},
               {"/files/0/name", "../../../home/alice/.bashrc"},
               {"/files/0/name", "manifest.json"}};
  for (const auto& [field, value] : cases) {
    EXPECT_THAT(RejectionOfManifest(ManifestWith(field, value)),
                AllOf(StartsWith("d/manifest.json: not the manifest of a checkpoint: "),
                      Not(HasSubstr("checksum"))))
        << field << ' ' << value;
  }
  EXPECT_EQ(ParseManifest(ManifestWith("/world_size", 1 << 20), "m").state.world_size, 1 << 20);
}

TEST(Manifest, OfADeepListIsRejected) {
  const std::string deep(200'000, '[');
  EXPECT_EQ(RejectionOfManifest("{\"crc32c\":\"00000000\",\"manifest\":" + deep +
                                std::string(200'000, ']') + "}"),
            "d/manifest.json: not the manifest of a checkpoint: it is nested deeper than 8 levels");
}

TEST(Manifest, RejectsAFormatThatNeverWas) {
  const std::string body = R"({"files":[],"format":0})";
  char crc[16];
  std::snprintf(crc, sizeof crc, "%08x", Crc32c(std::as_bytes(std::span(body))));
  EXPECT_THAT(
      RejectionOfManifest(std::string(R"({"crc32c":")") + crc + R"(","manifest":)" + body + "}"),
      HasSubstr("not the manifest of a checkpoint: there is no format 0"));
}

// Nobody here can ask whether the process of another host still runs.
TEST(IsStale, OfAnotherHostAfterAnHour) {
  const ScratchDirectory scratch;
  const fs::path path = scratch.path() / "partial";
  std::ofstream(path) << "x";
  for (const auto& [minutes, is_stale] : {std::pair(59, false), std::pair(61, true)}) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
    EXPECT_EQ(IsStale(path, {.host = "elsewhere", .pid = 1}), is_stale) << minutes;
  }
}

}  // namespace
}  // namespace trainer
