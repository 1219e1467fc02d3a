// SPDX-License-Identifier: Apache-2.0
//
// data_corruptions COUNT [SEED]: damages a small data set at random, COUNT times, and reads it each
// time as training does, by scanning and by index files, and as `ddldata verify` does.  Either it
// is refused with 65 and a message that names a file, or every record is what it was; and what
// training refuses, verify finds as well.  Prints a table; exits with 1 if anything was not seen.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ddldata/inspect.h"
#include "ddldata/synth.h"
#include "tests/trainer/data/corruption.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/files/data_set.h"

namespace trainer {
namespace {

constexpr int kClasses = 3;
constexpr unsigned kLongest = 60;  // seconds for one; a read that waits for ever is not a refusal

// What a reader got: all records, or why not.
struct Reading {
  std::vector<std::string> records;
  std::string complaint;
  std::string failure;  // neither: another exit code, or no file is named
  bool operator==(const Reading&) const = default;
};

Reading ReadAsTrainingDoes(const DataSetDirectories& directories, const std::string& index_dir) {
  Reading reading;
  try {
    std::vector<std::uint8_t> buffer;
    for (const Split split : {Split::kTrain, Split::kValidation}) {
      const DataSet set(directories.data.string(), index_dir, split, 1);
      for (std::int64_t i = 0; i < set.records(); ++i) {
        const auto record = set.Read(i, buffer);
        reading.records.emplace_back(record.begin(), record.end());
      }
    }
  } catch (const Error& error) {
    reading.complaint = error.what();
    const bool names_a_file =
        reading.complaint.find(directories.data.parent_path().string()) != std::string::npos;
    if (error.exit_code() != EX_DATAERR || !names_a_file) reading.failure = reading.complaint;
  } catch (const std::exception& error) {
    reading.complaint = reading.failure = error.what();
  }
  return reading;
}

// How many problems verify finds; -1 and a failure for another end than its own.
std::int64_t Verify(const DataSetDirectories& directories, std::string& failure) {
  try {
    const VerifyOptions options{.data_dir = directories.data.string(),
                                .index_dir = directories.index.string(),
                                .classes = kClasses};
    return VerifyDataSet(options, [](const std::string&) {}).problems;
  } catch (const Error& error) {
    if (error.exit_code() == EX_DATAERR) return 1;
    failure = error.what();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  return -1;
}

struct Tally {
  int all = 0;
  int rejected = 0;  // by training, with index files or without
  int verify = 0;    // found by verify
  int harmless = 0;  // every record is what it was, read in both ways
};

class Campaign {
 public:
  Campaign() : directories_{fs::path(dir_ / "data"), fs::path(dir_ / "index")} {
    MakeDataSet({.dir = directories_.data.string(),
                 .classes = kClasses,
                 .images = 18,
                 .validation_images = 8,
                 .min_size = 16,
                 .max_size = 24,
                 .shards = 3,
                 .validation_shards = 2});
    MakeIndexFiles(directories_.data.string(), directories_.index.string(), 1);
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path())) {
      if (entry.is_regular_file())
        files_.emplace(entry.path(), tests::TextOf(entry.path().string()));
    }
    intact_ = ReadAsTrainingDoes(directories_, "");
  }

  // False if the damage was not seen; the reason is printed.
  bool Try(const Corruption& corruption, Random random) {
    Restore();
    corruption.apply(directories_, random);
    ::alarm(kLongest);
    const Reading scanned = ReadAsTrainingDoes(directories_, "");
    const Reading indexed = ReadAsTrainingDoes(directories_, directories_.index.string());
    std::string failure = scanned.failure + indexed.failure;
    const std::int64_t problems = Verify(directories_, failure);
    ::alarm(0);
    Tally& tally = tallies_[corruption.name];
    const bool rejected = !scanned.complaint.empty() || !indexed.complaint.empty();
    for (const Reading* reading : {&scanned, &indexed}) {
      if (reading->complaint.empty() && *reading != intact_) failure += "other records were read";
    }
    if (rejected && problems == 0) failure += "verify finds nothing of: " + scanned.complaint;
    ++tally.all;
    if (rejected) ++tally.rejected;
    if (problems > 0) ++tally.verify;
    if (!rejected) ++tally.harmless;
    if (failure.empty()) return true;
    std::printf("NOT SEEN: %s: %s\n", corruption.name.c_str(), failure.c_str());
    return false;
  }

  void PrintTable() const {
    std::printf("%-44s %7s %7s %7s %8s\n", "damage", "tried", "refused", "verify", "harmless");
    Tally sum;
    for (const auto& [name, tally] : tallies_) {
      Print(name, tally);
      sum.all += tally.all;
      sum.rejected += tally.rejected;
      sum.verify += tally.verify;
      sum.harmless += tally.harmless;
    }
    Print("all", sum);
  }

 private:
  static void Print(const std::string& name, const Tally& tally) {
    std::printf("%-44s %7d %7d %7d %8d\n", name.c_str(), tally.all, tally.rejected, tally.verify,
                tally.harmless);
  }

  void Restore() const {
    for (const fs::path& directory : {directories_.data, directories_.index}) {
      fs::remove_all(directory);
      fs::create_directory(directory);
    }
    for (const auto& [path, bytes] : files_) WriteText(path.string(), bytes);
  }

  TemporaryDirectory dir_;
  DataSetDirectories directories_;
  std::map<fs::path, std::string> files_;
  Reading intact_;
  std::map<std::string, Tally> tallies_;
};

int Run(int count, std::uint64_t seed) {
  Campaign campaign;
  const std::vector<Corruption> kinds = AllCorruptions();
  int unseen = 0;
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    const Corruption& kind = kinds[number % kinds.size()];
    if (!campaign.Try(kind, Random(seed, RandomPurpose::kGenerate, number))) ++unseen;
  }
  campaign.PrintTable();
  std::printf("%d corruptions, seed %llu: %d not seen\n", count,
              static_cast<unsigned long long>(seed), unseen);
  return unseen == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  if (count <= 0) {
    std::fprintf(stderr, "usage: data_corruptions COUNT [SEED]\n");
    return EX_USAGE;
  }
  return trainer::Run(count, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
