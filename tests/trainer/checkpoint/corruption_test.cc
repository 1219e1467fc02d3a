// SPDX-License-Identifier: Apache-2.0
//
// Random damage to the newest of two checkpoints: it is either noticed, and the one before is
// taken, or it left every byte that is read as it was.  DDLRUN_CORRUPTIONS=10000 tries more than
// the 1,000 of every run; DDLRUN_SEED tries others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/names.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

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
    std::string bytes = Slurp(path);
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
  for (const char* name : kFiles) whole.push_back(Slurp(newest / name));

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
