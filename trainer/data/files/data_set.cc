// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/data_set.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/tfrecord.h"

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

std::vector<RecordPlace> ReadIndexOf(const RecordFile& file, const std::string& index_dir) {
  const std::string path = FindIndexFile(index_dir, file.path());
  return ParseIndex(ReadWholeFile(path, kMaxIndexBytes), path, file.bytes());
}

// A directory among all that this user has sets in, seen from this node.
std::string NameOfDirectory(const std::string& dir) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::error_code error;
  const std::filesystem::path path = std::filesystem::weakly_canonical(dir, error);
  return std::string(host.data()) + " " + (error ? dir : path.string());
}

}  // namespace

DataSet::DataSet(const std::string& dir, const std::string& index_dir, Split split, int threads,
                 const RankShare& share, const ScanCacheOptions& scans,
                 const RecordCacheOptions& records) {
  const std::vector<std::string> paths = FindDataFiles(dir, split);
  std::optional<ShardManifestCheck> check;
  if (const auto manifest = ReadShardManifest(dir)) {
    check.emplace(dir, *manifest, FilePrefix(split));
    const std::vector<std::string> problems = check->CompareNames(paths);
    if (!problems.empty()) throw Error(EX_DATAERR, problems.front());
  }
  const std::size_t room = RaiseOpenFileLimit(paths.size());
  if (room < paths.size()) note_ = DescribeLackOfOpenFiles(dir, room, paths.size());
  threads = std::max(threads, kLookingThreads);
  OpenFiles(paths, room, threads);
  places_.resize(paths.size());
  checksums_.resize(paths.size());
  if (index_dir.empty()) {
    FindByScan(NameOfDirectory(dir) + " " + FilePrefix(split), threads, scans);
  } else {
    FindByIndex(index_dir, threads, share, check.has_value());
  }
  for (std::size_t i = 0; check && i < files_.size(); ++i) {
    const std::string problem = check->Compare(files_[i], places_[i].size(), checksums_[i]);
    if (!problem.empty()) throw Error(EX_DATAERR, problem);
  }
  first_record_.push_back(0);
  for (const auto& places : places_) {
    first_record_.push_back(first_record_.back() + static_cast<std::int64_t>(places.size()));
  }
  if (!records.dir.empty()) {
    kept_ = std::make_unique<RecordCache>(files_, NameOfDirectory(dir), FilePrefix(split), records);
  }
}

void DataSet::OpenFiles(const std::vector<std::string>& paths, std::size_t room, int threads) {
  std::vector<std::optional<RecordFile>> files(paths.size());
  ParallelFor(threads, std::ssize(paths), [&](std::int64_t i) {
    const auto number = static_cast<std::size_t>(i);
    files[number].emplace(paths[number], number < room);
    if (files[number]->bytes() == 0) {
      throw Error(EX_DATAERR, DescribeEmptyFile(paths[number]));
    }
  });
  for (std::optional<RecordFile>& file : files) files_.push_back(std::move(*file));
}

// Reads the checksums of the files that this rank compares with the manifest.
void DataSet::FindByIndex(const std::string& index_dir, int threads, const RankShare& share,
                          bool has_manifest) {
  const auto begin = std::chrono::steady_clock::now();
  ParallelFor(threads, std::ssize(files_), [&](std::int64_t i) {
    const auto number = static_cast<std::size_t>(i);
    places_[number] = ReadIndexOf(files_[number], index_dir);
    if (has_manifest && i % share.ranks == share.rank) {
      checksums_[number] = files_[number].ChecksumOf(places_[number]);
    }
  });
  scan_cost_.files = std::ssize(files_);
  scan_cost_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void DataSet::FindByScan(const std::string& set, int threads, const ScanCacheOptions& scans) {
  SetScan scan = ScanSet(files_, set, threads, scans);
  scan_cost_ = scan.cost;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    places_[i] = std::move(scan.files[i].places);
    checksums_[i] = scan.files[i].checksum;
  }
}

std::vector<ConsistencyItem> DataSet::items() const {
  std::vector<ConsistencyItem> items;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    Fingerprint offsets;
    for (const RecordPlace& place : places_[file]) offsets.Add(place.offset);
    const std::string name = std::filesystem::path(files_[file].path()).filename().string();
    items.push_back({name, name + " of " + std::to_string(files_[file].bytes()) + " bytes with " +
                               support::Counted(std::ssize(places_[file]), "record") +
                               " (offsets " + offsets.hex() + ")"});
  }
  return items;
}

std::optional<RecordCacheUse> DataSet::record_cache() const {
  return kept_ ? std::optional(kept_->use()) : std::nullopt;
}

std::size_t DataSet::SizeOf(std::int64_t record) const {
  return PlaceOf(FileOf(record), record).size;
}

void DataSet::Fetch(std::int64_t record, std::span<std::uint8_t> bytes) const {
  const std::size_t file = FileOf(record);
  const RecordPlace& place = PlaceOf(file, record);
  if (kept_ && kept_->Fetch(file, place, bytes)) return;
  files_[file].Fetch(place, bytes);
  if (kept_) kept_->Keep(file, place, bytes);
}

std::span<const std::uint8_t> DataSet::Check(std::int64_t record,
                                             std::span<const std::uint8_t> bytes) const {
  const std::size_t file = FileOf(record);
  return files_[file].Check(PlaceOf(file, record), bytes);
}

std::span<const std::uint8_t> DataSet::Read(std::int64_t record,
                                            std::vector<std::uint8_t>& buffer) const {
  buffer.resize(SizeOf(record));
  Fetch(record, buffer);
  return Check(record, buffer);
}

std::span<const std::uint8_t> DataSet::ReadFromFile(std::int64_t record,
                                                    std::vector<std::uint8_t>& buffer) const {
  const std::size_t file = FileOf(record);
  return files_[file].Read(PlaceOf(file, record), buffer);
}

std::string DataSet::Describe(std::int64_t record, const std::string& what) const {
  const std::size_t file = FileOf(record);
  return DescribeRecord(files_[file].path(), PlaceOf(file, record).offset, what);
}

std::size_t DataSet::FileOf(std::int64_t record) const {
  DDL_CHECK(record >= 0 && record < records());
  const auto after = std::upper_bound(first_record_.begin(), first_record_.end(), record);
  return static_cast<std::size_t>(after - first_record_.begin()) - 1;
}

const RecordPlace& DataSet::PlaceOf(std::size_t file, std::int64_t record) const {
  return places_[file][static_cast<std::size_t>(record - first_record_[file])];
}

namespace {

constexpr std::size_t kOtherFiles = 1024;
constexpr rlim_t kMaxFiles = 1u << 20;  // more is unlimited

std::size_t CountOpenFiles() {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    ++count;
  }
  return error ? 0 : count;
}

}  // namespace

OpenFileBudget BudgetOpenFiles(const OpenFileLimits& limits, std::size_t wanted) {
  const std::size_t need = limits.open + wanted + kOtherFiles;
  const std::size_t soft = std::max(limits.soft, std::min(need, limits.hard));
  const std::size_t taken = limits.open + std::min(kOtherFiles, soft / 2);
  return {soft, std::min(wanted, soft > taken ? soft - taken : 0)};
}

std::size_t RaiseOpenFileLimit(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  OpenFileLimits limits = {std::min(limit.rlim_cur, kMaxFiles), std::min(limit.rlim_max, kMaxFiles),
                           CountOpenFiles()};
  OpenFileBudget plan = BudgetOpenFiles(limits, wanted);
  if (plan.soft > limits.soft) {
    limit.rlim_cur = plan.soft;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      limits.hard = limits.soft;
      plan = BudgetOpenFiles(limits, wanted);
    }
  }
  return plan.files;
}

}  // namespace trainer
