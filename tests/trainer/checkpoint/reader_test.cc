// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/reader.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <random>

#include "tests/support/other_user.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr const char* kCheckpointFiles[] = {kModelFile, kOptimizerFile, kManifestFile};

std::string RejectionOfCheckpoint(const fs::path& directory) {
  return tests::Rejection<Error>(EX_DATAERR, [&] { ReadCheckpoint(directory); });
}

TEST(ListCheckpoints, RejectsAFileInPlaceOfTheDirectoryOfARun) {
  const ScratchDirectory scratch;
  for (const char* name : {"weights.pth", "model.safetensors", "empty"}) {
    const fs::path file = scratch.path() / name;
    Spill(file.string(), "x");
    const std::string rejection = tests::Rejection<Error>(EX_USAGE, [&] { ListCheckpoints(file); });
    EXPECT_THAT(rejection, HasSubstr("'" + file.string() + "' is a file, not the directory of"));
    EXPECT_THAT(rejection, HasSubstr("--init_from"));
  }
  EXPECT_TRUE(ListCheckpoints(scratch.path() / "absent").empty());
}

TEST(DescribeMisplaced, NamesTheDirectoryOfTheRun) {
  const ScratchDirectory scratch;
  const fs::path run = scratch.path() / "run";
  const fs::path one = SampleRun(3).Write(run);
  const std::string advice = " of a run: give the directory of the run, " + run.string();
  EXPECT_EQ(DescribeMisplaced(one), "'" + one.string() + "' is a checkpoint" + advice);
  for (const fs::path& all :
       {run / "checkpoints", run / "checkpoints/", run / "x/../checkpoints"}) {
    EXPECT_EQ(DescribeMisplaced(all), "'" + all.string() + "' has the checkpoints" + advice);
  }
  EXPECT_EQ(DescribeMisplaced(run), "");
  EXPECT_EQ(DescribeMisplaced(scratch.path()), "");
  EXPECT_EQ(DescribeMisplaced(run / "absent"), "");
  // As cp makes it.
  const fs::path copy = scratch.path() / "copy";
  fs::copy(run / "checkpoints", copy, fs::copy_options::recursive);
  const std::string move = " to " + (copy / "checkpoints").string() + ", and give " + copy.string();
  EXPECT_EQ(DescribeMisplaced(copy),
            "'" + copy.string() + "' has the checkpoints of a run: move them" + move);
  EXPECT_EQ(DescribeMisplaced(copy / one.filename()),
            "'" + (copy / one.filename()).string() + "' is a checkpoint of a run: move it" + move);
  // A run goes on where an earlier version has begun one.
  SampleRun(4).Write(one);
  EXPECT_EQ(DescribeMisplaced(one), "");
}

TEST(ReadCheckpoint, NoticesEveryFlippedBit) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  for (const char* name : {kModelFile, kOptimizerFile}) {
    const std::string whole = tests::TextOf(directory / name);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
      Spill(directory / name, flipped);
      EXPECT_THAT(RejectionOfCheckpoint(directory), HasSubstr(name)) << "byte " << i;
    }
    Spill(directory / name, whole);
  }
  ExpectSampleRun(ReadCheckpoint(directory), 3);
}

TEST(ReadCheckpoint, NamesTheTensorThatIsDamaged) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  std::string bytes = tests::TextOf(directory / kModelFile);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Spill(directory / kModelFile, bytes);
  EXPECT_EQ(RejectionOfCheckpoint(directory),
            (directory / kModelFile).string() +
                ": damaged: tensor 'conv1.weight' has the wrong checksum");
}

TEST(ReadCheckpoint, NoticesAFileThatIsCutShortOrTooLong) {
  const ScratchDirectory scratch;
  const fs::path directory = SampleRun(3).Write(scratch.path());
  for (const char* name : kCheckpointFiles) {
    const std::string whole = tests::TextOf(directory / name);
    for (std::size_t length = 0; length + 1 < whole.size(); length += 7) {
      Spill(directory / name, whole.substr(0, length));
      EXPECT_THAT(RejectionOfCheckpoint(directory), HasSubstr(name)) << length;
    }
    Spill(directory / name, whole + "x");
    EXPECT_THAT(RejectionOfCheckpoint(directory), HasSubstr(name));
    Spill(directory / name, whole);
  }
  ExpectSampleRun(ReadCheckpoint(directory), 3);
}

TEST(ReadCheckpoint, NoticesAMissingFile) {
  for (const char* name : kCheckpointFiles) {
    const ScratchDirectory scratch;
    const fs::path directory = SampleRun(3).Write(scratch.path());
    fs::remove(directory / name);
    EXPECT_THAT(RejectionOfCheckpoint(directory),
                HasSubstr(std::string(name) + ": No such file or directory"));
  }
}

TEST(ReadCheckpoint, NoticesFilesOfAnotherCheckpoint) {
  const ScratchDirectory scratch;
  const fs::path three = SampleRun(3).Write(scratch.path());
  const fs::path four = SampleRun(4).Write(scratch.path());
  fs::copy_file(three / kModelFile, four / kModelFile, fs::copy_options::overwrite_existing);
  EXPECT_THAT(RejectionOfCheckpoint(four), HasSubstr("wrong checksum"));
  for (const char* name : kCheckpointFiles) {
    fs::copy_file(three / name, four / name, fs::copy_options::overwrite_existing);
  }
  EXPECT_THAT(RejectionOfCheckpoint(four), HasSubstr("its manifest is of step 3"));
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
                                    HasSubstr("step-0000000002/manifest.json: No such file")));
  EXPECT_THAT(warnings[0], HasSubstr("passed over"));
}

// A read(2) of `count` bytes gives `error` from now on: a bad block, in a file of a size of its
// own. False where this cannot be had.
bool RejectReadsOf(std::uint32_t count, std::uint32_t error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, count, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// A checkpoint of step 2, newer than that of step 1, whose model file has a size of its own.
fs::path WriteAnOldAndANewOne(const ScratchDirectory& scratch) {
  SampleRun(1).Write(scratch.path());
  SampleRun run(2);
  run.model.push_back({"more", DType::kFloat32, {48}, run.weight.data()});
  return run.Write(scratch.path());
}

TEST(ReadNewestCheckpoint, FallsBackFromABadDiskAndALostServer) {
  for (const int error : {EIO, ESTALE, ETIMEDOUT}) {
    const ScratchDirectory scratch;
    const fs::path newest = WriteAnOldAndANewOne(scratch);
    const auto size = static_cast<std::uint32_t>(fs::file_size(newest / kModelFile));
    EXPECT_TRUE(HoldsInChild([&] {
      if (!RejectReadsOf(size, static_cast<std::uint32_t>(error))) return true;  // QEMU
      std::vector<std::string> warnings;
      const auto found = ReadNewest(scratch.path(), &warnings);
      return found && found->manifest.state.step == 1 && warnings.size() == 1 &&
             warnings[0].starts_with("cannot read " + (newest / kModelFile).string()) &&
             found->passed_over == std::vector<fs::path>{newest};
    })) << error;
  }
}

TEST(ReadNewestCheckpoint, FallsBackFromWhatItMayNotRead) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can become another user";
  const ScratchDirectory scratch;
  const fs::path newest = WriteAnOldAndANewOne(scratch);
  fs::permissions(scratch.path(), fs::perms::all);
  fs::permissions(newest / kOptimizerFile, fs::perms::owner_read);
  EXPECT_TRUE(HoldsInChild([&] {
    if (::setuid(tests::kNobody) != 0) return false;
    return ReadNewest(scratch.path())->manifest.state.step == 1;
  }));
}

TEST(ReadNewestCheckpoint, FallsBackFromWhatIsNoDirectory) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  const fs::path parent = CheckpointsDirectory(scratch.path());
  Spill(parent / "step-0000000002", "a plain file");
  fs::create_symlink("step-0000000003", parent / "step-0000000003");
  fs::create_symlink("nowhere", parent / "step-0000000004");
  fs::create_directories(parent / "step-0000000005" / kManifestFile);
  std::vector<std::string> warnings;
  ExpectSampleRun(*ReadNewest(scratch.path(), &warnings), 1);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("not a regular file"), HasSubstr("No such file"),
                                    HasSubstr("symbolic links"), HasSubstr("Not a directory")));
}

TEST(ReadNewestCheckpoint, FallsBackFromAManifestThatNoMemoryHolds) {
  const ScratchDirectory scratch;
  SampleRun(1).Write(scratch.path());
  constexpr std::uintmax_t kSize = 200'000'000'000;
  fs::resize_file(SampleRun(2).Write(scratch.path()) / kManifestFile, kSize);
  std::vector<std::string> warnings;
  ExpectSampleRun(*ReadNewest(scratch.path(), &warnings), 1);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("manifest.json has 200000000000 bytes")));
}

// The checkpoint is good: an older one would only lose work.
TEST(ReadNewestCheckpoint, DoesNotFallBackForALackOfDescriptors) {
  const ScratchDirectory scratch;
  for (const int step : {1, 2}) SampleRun(step).Write(scratch.path());
  EXPECT_TRUE(HoldsInChild([&] {
    // The listing needs one; it is closed before the files are opened, by which time none is left.
    const int first_free = ::dup(0);
    ::close(first_free);
    rlimit usual{};
    ::getrlimit(RLIMIT_NOFILE, &usual);
    const rlimit one_more{static_cast<rlim_t>(first_free) + 1, usual.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &one_more);
    const std::vector<CheckpointPath> listed = ListCheckpoints(scratch.path());
    if (listed.size() != 2 || ::dup(0) < 0) return false;
    try {
      ReadCheckpoint(listed[0].directory);
    } catch (const Error& error) {
      ::setrlimit(RLIMIT_NOFILE, &usual);  // UBSan needs descriptors to look at an object's type
      return error.exit_code() == EX_OSERR && !IsUnusable(error);
    }
    return false;
  }));
}

TEST(ReadNewestCheckpoint, SaysThatALaterTryMaySucceedWhereNoneCanBeRead) {
  const ScratchDirectory scratch;
  const fs::path parent = CheckpointsDirectory(scratch.path());
  fs::create_directories(parent);
  fs::create_symlink("step-0000000003", parent / "step-0000000003");
  EXPECT_THAT(tests::Rejection<Error>(EX_OSERR, [&] { ReadNewest(scratch.path()); }),
              HasSubstr("none of its 1 checkpoints can be read"));
}

TEST(ReadNewestCheckpoint, RejectsToStartAnewOverDamagedOnes) {
  const ScratchDirectory scratch;
  fs::remove(SampleRun(2).Write(scratch.path()) / kManifestFile);
  EXPECT_THAT(tests::Rejection<Error>(EX_DATAERR, [&] { ReadNewest(scratch.path()); }),
              HasSubstr("none of its 1 checkpoints is valid"));
}

TEST(RemoveStalePartials, RemovesThoseOfTheDeadOnly) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.path() / "model.safetensors";
  const std::string dead = std::to_string(1 << 30);  // larger than any that the kernel gives
  const auto spill = [&](const std::string& suffix, int hours_ago) {
    const fs::path path = file.string() + suffix;
    Spill(path, "half");
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
    return path;
  };
  const std::vector<fs::path> gone = {
      spill(".partial-" + dead, 0),  // as older versions have named them
      spill(".partial-" + HostName() + "-" + dead, 0),
      spill(".partial-other-host-1-77", 2),
  };
  const std::vector<fs::path> kept = {
      spill("", 2),
      spill(".partial-" + HostName() + "-" + std::to_string(::getppid()), 0),
      spill(".partial-other-host-2-77", 0),
      spill(".partial-notes", 2),
      spill(".old", 2),
  };
  EXPECT_EQ(RemoveStalePartials(file), 3);
  for (const fs::path& path : gone) EXPECT_FALSE(fs::exists(path)) << path;
  for (const fs::path& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_TRUE(PartialName(file).string().starts_with(file.string() + ".partial-"));
}

TEST(RemoveStalePartials, DoesNothingWithoutADirectory) {
  EXPECT_EQ(RemoveStalePartials("/nonexistent/model.safetensors"), 0);
}

using std::string_literals::operator""s;

std::string Describe(const std::string& file, const std::string& path = "w.pth") {
  return DescribeOtherFormat(std::as_bytes(std::span(file)), path);
}

// A zip archive of one member, as far as it is looked at.
std::string Zip(const std::string& member) {
  return "PK\x03\x04\x00\x00\x08\x08"s + member + "\x80\x02}q"s + "PK\x01\x02"s + member +
         "PK\x05\x06"s + std::string(18, '\0');
}

// Text with zeros behind it, so that a reader of safetensors takes it for a file, too.
std::string Long(std::string file) {
  file.resize(1000, '\x01');
  return file;
}

TEST(OtherFormats, PyTorchsOwnHasThePythonThatConvertsIt) {
  const std::string old = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19."s;
  for (const std::string& file :
       {Zip("archive/data.pkl"), Zip("resnet50/data.pkl"), old, "\x80\x04\x95"s + "pickled"}) {
    const std::string said = Describe(file, "runs/it's best.pth.tar");
    EXPECT_THAT(said, AllOf(HasSubstr("PyTorch's own form"), HasSubstr("python3 -c 'import "),
                            HasSubstr("torch.load(sys.argv[1]"), HasSubstr("s.save_file("),
                            HasSubstr("'runs/it'\\''s best.pth.tar'"),
                            HasSubstr("'runs/it'\\''s best.pth.safetensors'")));
  }
  EXPECT_THAT(Describe(Zip("net/constants.pkl") + Zip("net/data.pkl")),
              AllOf(HasSubstr("TorchScript"), HasSubstr("torch.jit.load")));
}

TEST(OtherFormats, AreNamedByTheirFirstBytes) {
  const struct {
    std::string file;
    const char* says;
  } cases[] = {
      {"\x89HDF\r\n\x1a\n"s, "HDF5 (Keras)"},
      {"\x93NUMPY\x01"s, "NumPy (.npy)"},
      {Zip("conv1.weight.npy"), "NumPy (.npz)"},
      {Zip("config.json") + Zip("model.weights.h5"), "Keras (.keras)"},
      {Zip("readme.txt"), "a zip archive: unpack it"},
      {Zip("archive/data.pkl").substr(0, 30), "cut short: download it again"},
      {"\x08\x07\x12\x07pytorch"s, "ONNX"},
      {"\x08\x03:\x80"s, "ONNX"},
      {"\x08\x01\x12\x80"s, "SavedModel"},
      {"\x81\xa6params\x85"s, "MessagePack"},
      {"\x00\x01\x02\x57\xfb\x80\x8b\x24\x75\x47\xdb"s, "TensorFlow checkpoint"},
      {"model_checkpoint_path: \"model.ckpt-5\"\n", "TensorFlow"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 102\n", "git lfs pull"},
      {"<!DOCTYPE html>\n<html>", "a web page"},
      {"\xef\xbb\xbf \n<html lang=\"en\">", "a web page"},
      {"<!-- x --><HTML>", "a web page"},
      {"Entry not found", "text; it begins with 'Entry not found'"},
      {"{\"error\": \"Invalid credentials\"}", "text; it begins with '{\"error\""},
      {"{\"metadata\": {}, \"weight_map\": {\"a\": \"b\"}}", "in several files"},
      {"<?xml version=\"1.0\"?>\n<Error>", "text; it begins with '<?xml"},
      {"\x1f\x8b\x08"s, "gzip"},
      {"\xff\xd8\xff\xe0"s, "an image (JPEG)"},
      {std::string(4096, '\0'), "nothing but zeros"},
      {"", "an empty file"},
  };
  for (const auto& test : cases) EXPECT_THAT(Describe(test.file), HasSubstr(test.says));
  EXPECT_THAT(Describe("\x17\x9a\x31\xbd"s, "model.ckpt-5.data-00000-of-00001"),
              HasSubstr("TensorFlow checkpoint"));
  EXPECT_EQ(Describe("\x17\x9a\x31\xbd"s), "");
}

// Every one of them comes to this, by whatever its first 8 bytes are as a length.
TEST(OtherFormats, AreToldByTheReaderOfSafetensors) {
  const std::string files[] = {Zip("archive/data.pkl"),
                               Long("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9"s),
                               Long("\x89HDF\r\n\x1a\n"s),
                               Long("\x08\x07\x12\x07pytorch"s),
                               "version https://git-lfs.github.com/spec/v1\n",
                               Long("\x12\x01\0\0\0\0\0\0<html>"s),
                               "<html>",
                               "404",
                               std::string(64, '\0')};
  for (const std::string& file : files) {
    const std::string rejection = tests::Rejection<Error>(
        EX_DATAERR, [&] { ParseSafetensors(std::as_bytes(std::span(file)), "w.bin"); });
    EXPECT_THAT(rejection, StartsWith("w.bin: not a safetensors file but "));
    EXPECT_THAT(rejection, AllOf(Not(HasSubstr("network")), Not(HasSubstr("--model_dir"))));
  }
}

// Random damage to the newest of two checkpoints: it is either noticed, and the one before is
// taken, or it left every byte that is read as it was.  DDLRUN_CORRUPTIONS=10000 tries more than
// the 1,000 of every run; DDLRUN_SEED tries others.

constexpr const char* kFiles[] = {kModelFile, kOptimizerFile, kManifestFile};

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Damage {
 public:
  explicit Damage(std::uint64_t seed) : random_(seed) {}

  // Does something to one file of `directory`, and says what.
  std::string Do(const fs::path& directory, const fs::path& other_checkpoint) {
    const char* name = kFiles[Below(std::size(kFiles))];
    const fs::path path = directory / name;
    std::string bytes = tests::TextOf(path);
    if (bytes.empty()) return std::string(name) + ": nothing was left to damage";
    const std::size_t at = Below(bytes.size());
    const std::size_t length = 1 + Below(std::min<std::size_t>(bytes.size() - at, 64));
    std::string what;
    switch (Below(10)) {
      case 0:
        what = "a bit turned";
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
        break;
      case 1:
        what = "random bytes";
        for (std::size_t i = at; i < at + length; ++i) bytes[i] = static_cast<char>(Below(256));
        break;
      case 2:
        what = "zeros, as in a block that never reached the disk";
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
        break;
      case 3:
        what = "cut short";
        bytes.resize(at);
        break;
      case 4:
        what = "longer";
        bytes.append(length, static_cast<char>(Below(256)));
        break;
      case 5:
        what = "bytes taken out";
        bytes.erase(at, length);
        break;
      case 6:
        what = "bytes doubled";
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 7:
        what = "a digit changed";
        if (const auto digit = bytes.find_first_of("0123456789", at); digit != std::string::npos) {
          bytes[digit] = static_cast<char>('0' + Below(10));
        }
        break;
      case 8:
        fs::remove(path);
        return std::string(name) + ": gone";
      default:
        fs::copy_file(other_checkpoint / name, path, fs::copy_options::overwrite_existing);
        return std::string(name) + ": that of another checkpoint";
    }
    Spill(path, bytes);
    return std::string(name) + ": " + what + " at byte " + std::to_string(at);
  }

 private:
  std::size_t Below(std::size_t bound) { return random_() % bound; }

  std::mt19937_64 random_;
};

TEST(CheckpointCorruption, IsNoticedOrChangesNothing) {
  const ScratchDirectory scratch;
  const fs::path older = SampleRun(20).Write(scratch.path());
  const fs::path newest = SampleRun(30).Write(scratch.path());
  std::vector<std::string> whole;
  for (const char* name : kFiles) whole.push_back(tests::TextOf(newest / name));

  Damage damage(Setting("DDLRUN_SEED", 1));
  const std::uint64_t count = Setting("DDLRUN_CORRUPTIONS", 1000);
  std::uint64_t noticed = 0;
  for (std::uint64_t i = 0; i < count && !HasFailure(); ++i) {
    std::string what = damage.Do(newest, older);
    if (i % 4 == 0) what += ", and " + damage.Do(newest, older);
    SCOPED_TRACE(what);
    std::vector<std::string> warnings;
    const std::optional<Checkpoint> read = ReadNewest(scratch.path(), &warnings);
    ASSERT_TRUE(read.has_value());
    // Without a warning it must be the newest, with all it had.
    ExpectSampleRun(*read, warnings.empty() ? 30 : 20);
    noticed += warnings.size();
    for (std::size_t file = 0; file < std::size(kFiles); ++file) {
      Spill(newest / kFiles[file], whole[file]);
    }
  }
  // Only a digit or a block of zeros can happen to be what was there already.
  EXPECT_GT(noticed, count * 9 / 10);
  RecordProperty("noticed", static_cast<int>(noticed));
  std::printf("%llu damages, %llu noticed, the others changed nothing\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(noticed));
}

}  // namespace
}  // namespace trainer
