// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/data_set.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "trainer/core/error.h"
#include "trainer/data/parallel_for.h"
#include "trainer/data/record_index.h"

namespace trainer {
namespace {

// 16 million records of one file; ImageNet's files have about 1,250.
constexpr std::uint64_t kMaxIndexBytes = 1u << 29;

// How many data files may stay open: half of what the process may open.
std::size_t OpenFileBudget() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, 1u << 20) / 2);
}

std::vector<RecordPlace> FindRecords(const RecordFile& file, const std::string& index_dir) {
  if (file.bytes() == 0) throw Error(EX_DATAERR, file.path() + " is empty: it has no record");
  if (index_dir.empty()) return file.Scan();
  const std::filesystem::path path =
      std::filesystem::path(index_dir) / std::filesystem::path(file.path()).filename();
  return ParseIndex(ReadWholeFile(path.string(), kMaxIndexBytes), path.string(), file.bytes());
}

}  // namespace

std::string FilePrefix(Split split) { return split == Split::kTrain ? "train-" : "validation-"; }

std::vector<std::string> FindDataFilesIfAny(const std::string& dir, Split split) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator entry(dir, error);
  if (error) {
    throw Error(EX_DATAERR, "cannot read the data directory " + dir + ": " + error.message());
  }
  const std::string prefix = FilePrefix(split);
  std::vector<std::string> paths;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with(prefix) && entry->is_regular_file(ignored)) {
      paths.push_back(entry->path().string());
    }
  }
  if (error) {
    throw Error(EX_DATAERR, "cannot read the data directory " + dir + ": " + error.message());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> FindDataFiles(const std::string& dir, Split split) {
  std::vector<std::string> paths = FindDataFilesIfAny(dir, split);
  if (paths.empty()) {
    const std::string prefix = FilePrefix(split);
    throw Error(EX_DATAERR, "the data directory " + dir + " has no file " + prefix +
                                "*; expected TFRecord files such as " + prefix +
                                "00000-of-00128 (ddldata synth makes some)");
  }
  return paths;
}

DataSet::DataSet(const std::string& dir, const std::string& index_dir, Split split, int threads) {
  const std::size_t budget = OpenFileBudget();
  for (const std::string& path : FindDataFiles(dir, split)) {
    files_.emplace_back(path, files_.size() < budget);
  }
  places_.resize(files_.size());
  ParallelFor(threads, static_cast<std::int64_t>(files_.size()), [&](std::int64_t i) {
    const auto file = static_cast<std::size_t>(i);
    places_[file] = FindRecords(files_[file], index_dir);
  });
  first_record_.push_back(0);
  for (const auto& places : places_) {
    first_record_.push_back(first_record_.back() + static_cast<std::int64_t>(places.size()));
  }
}

std::span<const std::uint8_t> DataSet::Read(std::int64_t record,
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

}  // namespace trainer
