// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/data_set.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>

#include "support/counted.h"
#include "trainer/core/error.h"
#include "trainer/data/data_files.h"
#include "trainer/data/open_files.h"
#include "trainer/data/parallel_for.h"
#include "trainer/data/record_index.h"
#include "trainer/data/shard_manifest.h"

namespace trainer {
namespace {

constexpr int kLookingThreads = 32;  // they wait more than they compute

std::string DescribeLackOfOpenFiles(const std::string& dir, std::size_t room, std::size_t files) {
  return dir + ": " + std::to_string(room) + " of " +
         support::Counted(static_cast<std::int64_t>(files), "data file") +
         " stay open, the others are opened for each record, which is slow on shared file systems: "
         "raise how many "
         "files a process may have open (ulimit -Hn), or make fewer, larger files";
}

std::vector<RecordPlace> FindRecords(const RecordFile& file, const std::string& index_dir) {
  if (file.bytes() == 0) throw Error(EX_DATAERR, file.path() + " is empty: it has no record");
  if (index_dir.empty()) return file.Scan();
  const std::filesystem::path path =
      std::filesystem::path(index_dir) / std::filesystem::path(file.path()).filename();
  return ParseIndex(ReadWholeFile(path.string(), kMaxIndexBytes), path.string(), file.bytes());
}

}  // namespace

DataSet::DataSet(const std::string& dir, const std::string& index_dir, Split split, int threads,
                 const RankShare& share) {
  const std::vector<std::string> paths = FindDataFiles(dir, split);
  std::optional<ShardManifestCheck> check;
  if (const auto manifest = ReadShardManifest(dir)) {
    check.emplace(dir, *manifest, FilePrefix(split));
    const std::vector<std::string> problems = check->CompareNames(paths);
    if (!problems.empty()) throw Error(EX_DATAERR, problems.front());
  }
  const std::size_t room = MakeRoomForOpenFiles(paths.size());
  if (room < paths.size()) note_ = DescribeLackOfOpenFiles(dir, room, paths.size());
  files_.resize(paths.size());
  places_.resize(paths.size());
  ParallelFor(std::max(threads, kLookingThreads), std::ssize(paths), [&](std::int64_t i) {
    const auto number = static_cast<std::size_t>(i);
    RecordFile file(paths[number], true);
    places_[number] = FindRecords(file, index_dir);
    if (check) {
      const bool read_checksums = index_dir.empty() || i % share.ranks == share.rank;
      const std::string problem = check->Compare(file, places_[number], read_checksums);
      if (!problem.empty()) throw Error(EX_DATAERR, problem);
    }
    if (number < room) {
      files_[number].emplace(std::move(file));
    } else {
      files_[number].emplace(paths[number], false);
    }
  });
  first_record_.push_back(0);
  for (const auto& places : places_) {
    first_record_.push_back(first_record_.back() + static_cast<std::int64_t>(places.size()));
  }
}

std::vector<Fact> DataSet::facts() const {
  std::vector<Fact> facts;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    Fingerprint offsets;
    for (const RecordPlace& place : places_[file]) offsets.Add(place.offset);
    const std::string name = std::filesystem::path(files_[file]->path()).filename().string();
    facts.push_back({name, name + " of " + std::to_string(files_[file]->bytes()) + " bytes with " +
                               support::Counted(std::ssize(places_[file]), "record") +
                               " (offsets " + offsets.hex() + ")"});
  }
  return facts;
}

std::size_t DataSet::SizeOf(std::int64_t record) const {
  return PlaceOf(FileOf(record), record).size;
}

void DataSet::Fetch(std::int64_t record, std::span<std::uint8_t> bytes) const {
  const std::size_t file = FileOf(record);
  files_[file]->Fetch(PlaceOf(file, record), bytes);
}

std::span<const std::uint8_t> DataSet::Check(std::int64_t record,
                                             std::span<const std::uint8_t> bytes) const {
  const std::size_t file = FileOf(record);
  return files_[file]->Check(PlaceOf(file, record), bytes);
}

std::span<const std::uint8_t> DataSet::Read(std::int64_t record,
                                            std::vector<std::uint8_t>& buffer) const {
  const std::size_t file = FileOf(record);
  return files_[file]->Read(PlaceOf(file, record), buffer);
}

std::string DataSet::Describe(std::int64_t record, const std::string& what) const {
  const std::size_t file = FileOf(record);
  return DescribeRecord(files_[file]->path(), PlaceOf(file, record).offset, what);
}

std::size_t DataSet::FileOf(std::int64_t record) const {
  DDL_CHECK(record >= 0 && record < records());
  const auto after = std::upper_bound(first_record_.begin(), first_record_.end(), record);
  return static_cast<std::size_t>(after - first_record_.begin()) - 1;
}

const RecordPlace& DataSet::PlaceOf(std::size_t file, std::int64_t record) const {
  return places_[file][static_cast<std::size_t>(record - first_record_[file])];
}

}  // namespace trainer
