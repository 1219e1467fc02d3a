// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/writer.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/support/refusal.h"
#include "tests/support/rejected_calls.h"
#include "tests/support/test.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr const char* kStep1 = "step-0000000001";
constexpr const char* kStep2 = "step-0000000002";

int CountCalls() {
  const ScratchDirectory scratch;
  int calls = 0;
  SampleRun(1).Write(scratch.path());
  SampleRun(2).Write(scratch.path(), [&](std::string_view) { ++calls; });
  return calls;
}

TEST(WriteCheckpoint, WritesWhatReadsBack) {
  const ScratchDirectory scratch;
  const fs::path written = SampleRun(1234).Write(scratch.path() / "new" / "model");
  EXPECT_EQ(written, scratch.path() / "new/model/checkpoints/step-0000001234");
  ExpectSampleRun(ReadCheckpoint(written), 1234);
  EXPECT_THAT(Listing(scratch.path() / "new/model"), ElementsAre("step-0000001234"));
}

TEST(WriteCheckpoint, KeepsOneThatIsThereAlready) {
  const ScratchDirectory scratch;
  const fs::path written = SampleRun(1).Write(scratch.path());
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::stat((written / kManifestFile).c_str(), &before), 0);
  EXPECT_EQ(SampleRun(1).Write(scratch.path()), written);
  ASSERT_EQ(::stat((written / kManifestFile).c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(WriteCheckpoint, KeepsOneThatWasEvaluatedSinceAndNotesWhatIsNew) {
  const ScratchDirectory scratch;
  SampleRun run(1);
  const fs::path written = run.Write(scratch.path());
  run.state.top1 = 0.5;
  EXPECT_EQ(run.Write(scratch.path()), written);
  EXPECT_EQ(ReadCheckpoint(written).manifest.state.top1, 0.5);
  run.state.top1.reset();
  EXPECT_EQ(run.Write(scratch.path()), written);
  EXPECT_EQ(ReadCheckpoint(written).manifest.state.top1, 0.5);
}

TEST(WriteCheckpoint, ReplacesADamagedOne) {
  const ScratchDirectory scratch;
  const fs::path written = SampleRun(1).Write(scratch.path());
  fs::resize_file(written / kModelFile, 10);
  SampleRun(1).Write(scratch.path());
  ExpectSampleRun(ReadCheckpoint(written), 1);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre(kStep1, "step-0000000001.unusable"));
}

TEST(WriteCheckpoint, TakesThePlaceOfWhatIsNoDirectory) {
  const ScratchDirectory scratch;
  const fs::path parent = CheckpointsDirectory(scratch.path());
  fs::create_directories(parent);
  Spill(parent / kStep1, "a plain file");
  ExpectSampleRun(ReadCheckpoint(SampleRun(1).Write(scratch.path())), 1);
  EXPECT_EQ(tests::TextOf(parent / "step-0000000001.unusable"), "a plain file");
  fs::create_symlink(kStep2, parent / kStep2);
  ExpectSampleRun(ReadCheckpoint(SampleRun(2).Write(scratch.path())), 2);
}

// FUSE and CIFS have such file systems.
TEST(WriteCheckpoint, GoesOnWhereFsyncIsNotKnownButNotWhereItFails) {
  const auto writes = [](int error) {
    const ScratchDirectory scratch;
    return HoldsInChild([&] {
      if (!tests::RejectCalls(SYS_fsync, SYS_fsync, static_cast<std::uint32_t>(error))) {
        return error != EIO;  // QEMU
      }
      try {
        SampleRun(1).Write(scratch.path());
      } catch (const Error&) {
        return false;
      }
      return true;
    });
  };
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP}) EXPECT_TRUE(writes(error)) << error;
  EXPECT_FALSE(writes(EIO));
}

TEST(WriteCheckpoint, RejectsTheDirectoryOfAnotherRun) {
  const ScratchDirectory scratch;
  const fs::path written = SampleRun(1).Write(scratch.path());
  SampleRun other(1);
  other.weight[0] += 1;
  EXPECT_THAT(tests::Rejection<Error>(EX_DATAERR, [&] { other.Write(scratch.path()); }),
              HasSubstr("a checkpoint of another run is there"));
  ExpectSampleRun(ReadCheckpoint(written), 1);
}

TEST(WriteCheckpoint, SyncsFilesThenRenamesThenSyncsTheParent) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  std::vector<std::string> calls;
  SampleRun(2).Write(scratch.path(), [&](std::string_view call) {
    if (call != "write") calls.emplace_back(call);
  });
  EXPECT_THAT(calls, ElementsAre("mkdir", "open", "fsync", "close", "open", "fsync", "close",
                                 "open", "fsync", "close", "fsync", "rename", "fsync"));
}

TEST(WriteCheckpoint, LeavesNothingWhenACallFails) {
  const int calls = CountCalls();
  // The last call is the sync behind the rename: then the new one is whole, and stays.
  for (int failing = 0; failing + 1 < calls; ++failing) {
    const ScratchDirectory scratch;
    SampleRun(1).Write(scratch.path());
    int call = 0;
    EXPECT_THROW(SampleRun(2).Write(scratch.path(),
                                    [&](std::string_view) {
                                      if (call++ == failing) throw Error(EX_OSERR, "injected");
                                    }),
                 Error);
    EXPECT_THAT(Listing(scratch.path()), ElementsAre(kStep1)) << "call " << failing;
    ExpectSampleRun(*ReadNewest(scratch.path()), 1);
  }
}

TEST(WriteCheckpoint, SurvivesAKillBeforeEachSystemCall) {
  const int calls = CountCalls();
  ASSERT_GT(calls, 15);
  for (int fatal = 0; fatal < calls; ++fatal) {
    const ScratchDirectory scratch;
    SampleRun(1).Write(scratch.path());
    const int status = RunInChild([&] {
      int call = 0;
      SampleRun(2).Write(scratch.path(), [&](std::string_view) {
        if (call++ == fatal) ::raise(SIGKILL);
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    std::vector<std::string> warnings;
    const auto newest = ReadNewest(scratch.path(), &warnings);
    ASSERT_TRUE(newest.has_value());
    ExpectSampleRun(*newest, fatal + 1 < calls ? 1 : 2);
    EXPECT_TRUE(warnings.empty()) << warnings.front();
    RemoveStaleCheckpoints(scratch.path());
    for (const std::string& name : Listing(scratch.path())) EXPECT_EQ(name.substr(0, 5), "step-");
    SampleRun(2).Write(scratch.path());  // and the run goes on
    ExpectSampleRun(*ReadNewest(scratch.path()), 2);
  }
}

TEST(WriteCheckpoint, SurvivesAKillAtAnyTime) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  std::int64_t newest = 1;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::int64_t step = newest + 1;; ++step) SampleRun(step).Write(scratch.path());
    }
    ::usleep(static_cast<useconds_t>(1000 + round * 1717 % 9000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    RemoveStaleCheckpoints(scratch.path());
    const auto found = ReadNewest(scratch.path());
    ASSERT_TRUE(found.has_value());
    ExpectSampleRun(*found, found->manifest.state.step);
    EXPECT_GE(found->manifest.state.step, newest);
    newest = found->manifest.state.step;
  }
}

TEST(WriteCheckpoint, SaysWhatToDoWhenAFileMayNotGrow) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  const int status = RunInChild([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300, 300};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      SampleRun(2).Write(scratch.path());
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool good = error.exit_code() == EX_OSERR && text.find(kModelFile) != text.npos &&
                        text.find("File too large; make room there") != text.npos;
      ::_exit(good ? 7 : 8);
    }
  });
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_THAT(Listing(scratch.path()), ElementsAre(kStep1));
}

TEST(WriteCheckpoint, SaysWhatToDoWhenTheDiskIsFull) {
  const ScratchDirectory scratch;
  if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs needs root: " << std::strerror(errno);
  }
  struct Unmount {
    const fs::path& path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } unmount{scratch.path()};

  SampleRun(1).Write(scratch.path());
  SampleRun big(2);
  const std::vector<float> large(400'000);
  big.model.push_back({"large", DType::kFloat32, {400'000}, large.data()});
  try {
    big.Write(scratch.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_OSERR);
    EXPECT_THAT(error.what(), HasSubstr("model.safetensors: No space left on device; make room"));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  EXPECT_THAT(Listing(scratch.path()), ElementsAre(kStep1));
  ExpectSampleRun(*ReadNewest(scratch.path()), 1);
}

// Quotas of files, and small file systems; a new directory, its first file, its second one.
TEST(WriteCheckpoint, SaysWhereThereMayBeNoMoreFiles) {
  for (const char* options : {"nr_inodes=2", "nr_inodes=3", "nr_inodes=4"}) {
    const ScratchDirectory scratch;
    if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, options) != 0) {
      GTEST_SKIP() << "mounting a small tmpfs needs root: " << std::strerror(errno);
    }
    EXPECT_THAT(tests::Rejection<Error>([&] { SampleRun(1).Write(scratch.path()); }),
                HasSubstr("No space left on device (for no more files: df -i); "
                          "make room there or give another"))
        << options;
    ::umount2(scratch.path().c_str(), MNT_DETACH);
  }
}

TEST(WriteCheckpoint, NamesTheDirectoryItMayNotWriteTo) {
  const std::string rejection =
      tests::Rejection<Error>(EX_OSERR, [&] { SampleRun(1).Write("/proc/self/model"); });
  EXPECT_THAT(rejection, HasSubstr("cannot create /proc/self/model"));
  EXPECT_THAT(rejection, HasSubstr("--model_dir"));
}

TEST(RemoveStaleCheckpoints, RemovesThoseOfTheDeadOnly) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  const fs::path parent = CheckpointsDirectory(scratch.path());
  const int dead = 1 << 30;  // larger than any process number the kernel gives
  const std::string prefix = ".tmp-step-0000000002-";
  const std::string of_dead = prefix + HostName() + "-" + std::to_string(dead);
  const std::string of_living = prefix + HostName() + "-" + std::to_string(::getppid());
  const std::string elsewhere = prefix + "other-host-1-77";
  const std::string old_elsewhere = prefix + "other-host-2-77";
  for (const auto& name : {of_dead, of_living, elsewhere, old_elsewhere}) {
    fs::create_directory(parent / name);
    Spill(parent / name / kModelFile, "half");
  }
  const auto two_hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  fs::last_write_time(parent / old_elsewhere / kModelFile, two_hours_ago);
  fs::last_write_time(parent / old_elsewhere, two_hours_ago);

  EXPECT_EQ(RemoveStaleCheckpoints(scratch.path()), 2);
  const auto left = Listing(scratch.path());
  EXPECT_EQ(left.size(), 3U);
  EXPECT_THAT(left, AllOf(Contains(of_living), Contains(elsewhere), Contains(std::string(kStep1))));
}

TEST(RemoveStaleCheckpoints, DoesNothingWithoutADirectory) {
  EXPECT_EQ(RemoveStaleCheckpoints("/nonexistent"), 0);
}

TEST(CheckpointNames, ParseTheirOwnAndNothingElse) {
  EXPECT_EQ(CheckpointName(1234), "step-0000001234");
  EXPECT_EQ(ParseCheckpointName("step-0000001234"), 1234);
  EXPECT_EQ(ParseCheckpointName("step-12345678901"), 12345678901);
  for (const char* name : {"step-1234", "step-", "step-00000012x4", "step--000001234", "x", "",
                           "step-99999999999999999999", ".tmp-step-0000001234-h-1"}) {
    EXPECT_EQ(ParseCheckpointName(name), std::nullopt) << name;
  }
  const auto owner = ParseTemporaryName(TemporaryName(5));
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->host, HostName());
  EXPECT_EQ(owner->pid, ::getpid());
  EXPECT_EQ(ParseTemporaryName(".tmp-step-0000000005-only"), std::nullopt);
  EXPECT_EQ(ParseTemporaryName("step-0000000005"), std::nullopt);
}

std::string WithLength(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

SafetensorsIndex Parse(const std::string& file) {
  return ParseSafetensors(std::as_bytes(std::span(file)), "f.safetensors");
}

std::string RejectionOfTensors(const std::string& file) {
  const std::string start = "f.safetensors: ";
  const std::string rejection = tests::Rejection<Error>(
      EX_DATAERR, [&] { Parse(file); }, start);
  EXPECT_THAT(rejection, StartsWith(start));
  return rejection == start ? "" : rejection;
}

TEST(Safetensors, WritesTheHeaderOfTheSpecification) {
  const float value[2] = {1, 2};
  const TensorReader tensors[] = {{"a", DType::kFloat32, {2}, value}};
  EXPECT_EQ(
      MakeSafetensorsHeader(tensors),
      WithLength(
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"
          "   "));
}

// transformers' load_state_dict and accelerate refuse metadata that do not say so.
TEST(Safetensors, EveryFileSaysThatItsFormIsThatOfPyTorch) {
  const float value = 1;
  const TensorReader tensors[] = {{"a", DType::kFloat32, {1}, &value}};
  const auto metadata = [&](const SafetensorsMetadata& given) {
    return Parse(MakeSafetensorsHeader(tensors, given) + "wxyz").metadata;
  };
  EXPECT_EQ(metadata({}), (SafetensorsMetadata{{"format", "pt"}}));
  EXPECT_EQ(metadata({{"architecture", "resnet50"}}),
            (SafetensorsMetadata{{"architecture", "resnet50"}, {"format", "pt"}}));
  EXPECT_EQ(metadata({{"step", "7"}}), (SafetensorsMetadata{{"format", "pt"}, {"step", "7"}}));
}

TEST(Safetensors, StoresWiderTypesFirstSoThatEachIsAligned) {
  const std::int64_t number = 7;
  const float values[3] = {};
  const TensorReader tensors[] = {{"half", DType::kFloat16, {3}, values},
                                  {"float", DType::kFloat32, {3}, values},
                                  {"count", DType::kInt64, {}, &number}};
  const std::string header = MakeSafetensorsHeader(tensors);
  EXPECT_EQ(header.size() % 8, 0U);
  const SafetensorsIndex index = Parse(header + std::string(8 + 12 + 6, '\0'));
  ASSERT_EQ(index.tensors.size(), 3U);
  EXPECT_EQ(index.tensors[0].name, "count");
  EXPECT_EQ(index.tensors[0].shape, Shape());
  EXPECT_EQ(index.tensors[1].name, "float");
  EXPECT_EQ(index.tensors[1].begin, 8U);
  EXPECT_EQ(index.tensors[2].name, "half");
  EXPECT_EQ(index.tensors[2].end, 26U);
}

TEST(Safetensors, RejectsToWriteOneNameTwice) {
  const float value = 0;
  const TensorReader tensors[] = {{"a", DType::kFloat32, {1}, &value},
                                  {"a", DType::kFloat32, {1}, &value}};
  EXPECT_THROW(MakeSafetensorsHeader(tensors), Error);
}

TEST(Safetensors, ReadsWhatOtherProgramsWrite) {
  // Made by the Python package: metadata last, a zero-size tensor, no padding.
  const SafetensorsIndex index = Parse(WithLength(
      R"({"e":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]},"b":{"dtype":"U8","shape":[1,1,1,4],"data_offsets":[0,4]},"__metadata__":{"k":"v"}})",
      "wxyz"));
  EXPECT_EQ(index.metadata.at("k"), "v");
  ASSERT_EQ(index.tensors.size(), 2U);
  EXPECT_EQ(index.tensors[0].shape, (Shape{1, 1, 1, 4}));
  EXPECT_EQ(index.tensors[1].shape, (Shape{0, 3}));
}

TEST(Safetensors, RejectsWhatIsNotWhole) {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const struct {
    std::string file;
    const char* says;
  } cases[] = {
      {"", "an empty file"},
      {"\1\2\3", "shorter than 8 bytes"},
      {"1234567", "text; it begins with '1234567'"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), "claims a header of"},
      {WithLength("{" + a + "}", "1234").substr(0, 20), "ends within its header"},
      {WithLength(""), "nothing but zeros"},
      {WithLength("[]"), "does not begin with '{'"},
      {WithLength("{"), "not JSON"},
      {WithLength("{} x"), "not JSON"},
      {WithLength("{" + a + "}", "123"), "need 4 bytes, it has 3"},
      {WithLength("{" + a + "}", "12345"), "need 4 bytes, it has 5"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "12345678"), "hole"},
      {WithLength("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"),
       "overlap"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"),
       "do not fit its shape"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "1234"),
       "do not fit its shape"},
      {WithLength(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", "12345678"),
       "dtype 'F64'"},
      {WithLength(R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", "1234"), "not text"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234"),
       "sensible numbers"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]}})", "1234"),
       "has 5 dimensions, a ResNet's at most four"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
       "too large"},
      {WithLength(
           R"({"a":{"dtype":"F32","shape":[281474976710656,0,281474976710656],"data_offsets":[0,0]}})"),
       "too large"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "1234"),
       "not two numbers"},
      {WithLength(R"({"a":{"dtype":"F32","shape":[1]}})", "1234"), "needs dtype"},
      {WithLength(R"({"a":7})"), "needs dtype"},
      {WithLength(R"({"__metadata__":{"a":1}})"), "something else than text"},
      {WithLength(R"({"__metadata__":1})"), "not an object"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(RejectionOfTensors(test.file), HasSubstr(test.says)) << test.file;
  }
}

TEST(Safetensors, RejectsHeadersThatCostMemory) {
  const auto with_length = [](const std::string& header) {
    std::uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header;
  };
  std::string many = "{\"a\":[1";
  for (int i = 0; i < 200'000; ++i) many += ",1";
  EXPECT_THAT(
      tests::Rejection<Error>(
          EX_DATAERR, [&] { Parse(with_length("{\"a\":" + std::string(20'000'000, '['))); }),
      HasSubstr("its header is nested deeper than 4 levels"));
  EXPECT_THAT(tests::Rejection<Error>(EX_DATAERR, [&] { Parse(with_length(many + "]}")); }),
              HasSubstr("its header is of more than 200000 values"));
  const ScratchDirectory directory;
  const fs::path sparse = directory.path() / "f.safetensors";
  std::ofstream(sparse) << "x";
  fs::resize_file(sparse, std::uint64_t{4} << 40);
  EXPECT_THAT(tests::Rejection<Error>(EX_DATAERR, [&] { SafetensorsFile::Read(sparse.string()); }),
              HasSubstr("f.safetensors has 4398046511104 bytes, more than the "));
}

TEST(Safetensors, SaysThatAFileIsMissing) {
  EXPECT_EQ(tests::Rejection<Error>(EX_DATAERR,
                                    [&] { SafetensorsFile::Read("/nonexistent/x.safetensors"); }),
            "cannot open /nonexistent/x.safetensors: No such file or directory");
}

TEST(Safetensors, RejectsADirectoryInThePlaceOfAFile) {
  const ScratchDirectory scratch;
  EXPECT_THROW(SafetensorsFile::Read(scratch.path().string()), Error);
}

class CheckTensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Spill(path_,
          WithLength(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678"));
  }
  std::string Rejected(const std::vector<ExpectedTensor>& expected) {
    try {
      CheckTensors(SafetensorsFile::Read(path_), expected, "give another --model_dir");
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_DATAERR);
      EXPECT_THAT(error.what(), StartsWith(path_ + ": "));
      EXPECT_THAT(error.what(), HasSubstr("of another network: give another --model_dir"));
      return error.what();
    }
    return "accepted";
  }
  ScratchDirectory scratch_;
  std::string path_ = (scratch_.path() / "m.safetensors").string();
  ExpectedTensor w_{"w", DType::kFloat32, {2}};
};

TEST_F(CheckTensorsTest, AcceptsTheNetworkItIsOf) { EXPECT_EQ(Rejected({w_}), "accepted"); }

TEST_F(CheckTensorsTest, AcceptsThatAnOptionalTensorIsMissing) {
  EXPECT_EQ(Rejected({w_, {"count", DType::kInt64, {}, true}}), "accepted");
}

TEST_F(CheckTensorsTest, NamesAMissingTensor) {
  EXPECT_THAT(Rejected({w_, {"fc.bias", DType::kFloat32, {2}}}),
              HasSubstr("tensor 'fc.bias' is missing"));
}

TEST_F(CheckTensorsTest, NamesAnUnknownTensor) {
  EXPECT_THAT(Rejected({}), HasSubstr("tensor 'w' is not one of this network"));
}

TEST_F(CheckTensorsTest, NamesATensorOfAnotherShape) {
  EXPECT_THAT(Rejected({{"w", DType::kFloat32, {3}}}),
              HasSubstr("tensor 'w' is F32 (2), this network has F32 (3)"));
}

TEST_F(CheckTensorsTest, NamesATensorOfAnotherType) {
  EXPECT_THAT(Rejected({{"w", DType::kFloat16, {2}}}), HasSubstr("this network has F16 (2)"));
}

}  // namespace
}  // namespace trainer
