// SPDX-License-Identifier: Apache-2.0

#include "ddldata/inspect.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/core/thread.h"
#include "trainer/data/class_list.h"
#include "trainer/data/example.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/text_lines.h"
#include "trainer/data/files/tfrecord.h"
#include "trainer/data/images/image_loader.h"
#include "trainer/data/tfrecord_loader.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr Split kSplits[] = {Split::kTrain, Split::kValidation};

Error NoDataFiles(const std::string& dir) {
  return {EX_DATAERR, "the data directory " + dir + " has no file train-* or validation-*" +
                          PrintFindings(dir)};
}

// Of both splits, one of which may be absent.  Throws Error(EX_DATAERR) with what is wrong.
std::vector<std::string> FindAllDataFiles(const std::string& dir, bool may_be_part) {
  std::vector<std::string> paths;
  for (const Split split : kSplits) {
    DataFiles files = ListDataFiles(dir, split, may_be_part);
    if (!files.problems.empty()) throw Error(EX_DATAERR, files.problems.front());
    std::ranges::move(files.paths, std::back_inserter(paths));
  }
  if (paths.empty()) throw NoDataFiles(dir);
  return paths;
}

// What one thread found in a run of records.
struct Findings {
  std::vector<std::string> problems;
  std::uint64_t pixels = 0;
  // Of labels, "" where the record has none: first offset.
  std::map<std::pair<std::int64_t, std::string>, std::uint64_t> names;
};

void VerifyRecord(const RecordFile& file, const RecordPlace& place, const VerifyOptions& options,
                  ImageDecoder& decoder, Findings& findings) {
  std::vector<std::uint8_t> buffer;
  const auto data = file.Read(place, buffer);
  try {
    const ImageExample example = ParseExample(data);
    ClassOfLabel(example.label, options.classes, options.label_offset);
    findings.names.try_emplace({example.label, ClassNameIn(data)}, place.offset);
    const ImageSize size = decoder.ReadHeader(
        {reinterpret_cast<const std::uint8_t*>(example.encoded.data()), example.encoded.size()});
    ImagePiece piece;
    decoder.Decode(1, {0, 0, size.width, size.height}, piece);
    findings.pixels +=
        static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
  } catch (const Error& error) {
    throw Error(error.exit_code(), DescribeRecord(file.path(), place.offset, error.what()));
  }
}

Findings VerifyRecords(const RecordFile& file, std::span<const RecordPlace> places,
                       const VerifyOptions& options) {
  Findings findings;
  ImageDecoder decoder;
  for (const RecordPlace& place : places) {
    try {
      VerifyRecord(file, place, options, decoder, findings);
    } catch (const Error& error) {
      if (error.exit_code() != EX_DATAERR) throw;
      findings.problems.emplace_back(error.what());
    }
  }
  return findings;
}

// All records whose headers are good, and a problem where the first one is not.
std::vector<RecordPlace> PlacesOf(const RecordFile& file, std::vector<std::string>& problems) {
  std::vector<RecordPlace> places;
  std::uint64_t offset = 0;
  try {
    for (; offset < file.bytes(); offset += places.back().size) {
      places.push_back(file.PlaceAt(offset));
    }
  } catch (const Error& error) {
    if (error.exit_code() != EX_DATAERR) throw;
    problems.push_back(std::string(error.what()) + "; the " +
                       std::to_string(file.bytes() - offset) +
                       " bytes from there on cannot be checked");
  }
  if (file.bytes() == 0) problems.push_back(DescribeEmptyFile(file.path()));
  return places;
}

// What the file's index says otherwise than the file, "" if nothing.
std::string CompareIndex(const RecordFile& file, const std::vector<RecordPlace>& places,
                         const std::string& index_dir) {
  try {
    const std::string path = FindIndexFile(index_dir, file.path());
    const auto listed = ParseIndex(ReadWholeFile(path, kMaxIndexBytes), path, file.bytes());
    // Both fill the file, so they differ in a line of both.
    const auto [one, other] = std::ranges::mismatch(listed, places);
    if (one == listed.end()) return "";
    return path + ":" + std::to_string(one - listed.begin() + 1) + ": the record of " +
           std::to_string(one->size) + " bytes at offset " + std::to_string(one->offset) + " has " +
           std::to_string(other->size) + " bytes in " + file.path() +
           "; make a new index with: ddldata index DATA_DIR INDEX_DIR";
  } catch (const Error& error) {
    if (error.exit_code() != EX_DATAERR) throw;
    return error.what();
  }
}

// Looks through one data set; what it finds is counted and told as it comes.
class Verification {
 public:
  Verification(const VerifyOptions& options,
               const std::function<void(const std::string&)>& on_problem)
      : options_(options), on_problem_(on_problem) {}

  VerifySummary Run();

 private:
  void Report(const std::string& problem);
  void VerifyFile(const RecordFile& file, const std::optional<ShardManifestCheck>& check);
  void VerifyIndexNames(const std::string& prefix, std::span<const std::string> paths);
  void AddLabelsFile();
  void ReportUnlisted(std::int64_t label, const std::string& where);

  const VerifyOptions& options_;
  const std::function<void(const std::string&)>& on_problem_;
  VerifySummary summary_;
  LabelNames names_;
  std::int64_t listed_ = 0;          // classes of labels.txt; 0: it is not there or not readable
  std::set<std::int64_t> unlisted_;  // labels without a line in it that were told
};

void Verification::Report(const std::string& problem) {
  if (problem.empty()) return;
  ++summary_.problems;
  on_problem_(problem);
}

void Verification::VerifyFile(const RecordFile& file,
                              const std::optional<ShardManifestCheck>& check) {
  constexpr std::size_t kRun = 16;  // records per task
  std::vector<std::string> problems;
  const std::vector<RecordPlace> places = PlacesOf(file, problems);
  std::vector<Findings> findings((places.size() + kRun - 1) / kRun);
  ParallelFor(options_.threads, static_cast<std::int64_t>(findings.size()), [&](std::int64_t i) {
    const auto run = static_cast<std::size_t>(i);
    const std::size_t length = std::min(kRun, places.size() - run * kRun);
    findings[run] = VerifyRecords(file, std::span(places).subspan(run * kRun, length), options_);
  });
  ++summary_.files;
  summary_.bytes += file.bytes();
  summary_.records += std::ssize(places);
  for (const Findings& of_run : findings) {
    summary_.pixels += of_run.pixels;
    for (const std::string& problem : of_run.problems) Report(problem);
    for (const auto& [met, offset] : of_run.names) {
      const std::string where = fs::path(file.path()).filename().string() + " (record at offset " +
                                std::to_string(offset) + ")";
      if (!met.second.empty()) Report(names_.Add(met.first, met.second, where));
      ReportUnlisted(met.first, where);
    }
  }
  for (const std::string& problem : problems) Report(problem);
  if (!problems.empty()) return;  // of the other records nothing is known
  if (check) Report(check->Compare(file, places.size(), file.ChecksumOf(places)));
  if (!options_.index_dir.empty()) Report(CompareIndex(file, places, options_.index_dir));
}

// Index files of files that are not there.
void Verification::VerifyIndexNames(const std::string& prefix, std::span<const std::string> paths) {
  std::error_code error;
  std::vector<std::string> odd;
  fs::directory_iterator entry(options_.index_dir, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    fs::path name = entry->path().filename();
    if (name.extension() == kIndexEnding) name = name.stem();
    if (name.string().starts_with(prefix) &&
        std::ranges::find(paths, (fs::path(options_.data_dir) / name).string()) == paths.end()) {
      odd.push_back(entry->path().string());
    }
  }
  if (error) {
    throw Error(EX_DATAERR,
                "cannot read the index directory " + options_.index_dir + ": " + error.message());
  }
  std::ranges::sort(odd);
  for (const std::string& path : odd) {
    Report(path + " is the index of a file that is not in " + options_.data_dir);
  }
}

// Its labels count from 1, whatever those of the records do.  One of another program is no
// problem, but is not compared either.
void Verification::AddLabelsFile() {
  std::vector<ImageClass> classes;
  try {
    classes = ReadLabels(options_.data_dir);
  } catch (const Error& error) {
    if (error.exit_code() != EX_DATAERR) throw;
    summary_.labels_note = error.what();
  }
  listed_ = std::ssize(classes);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto label = static_cast<std::int64_t>(i) + options_.label_offset;
    names_.Add(label, classes[i].name, kLabelsName);
  }
}

// Once for each label.
void Verification::ReportUnlisted(std::int64_t label, const std::string& where) {
  if (listed_ == 0 || label < listed_ + options_.label_offset) return;
  if (!unlisted_.insert(label).second) return;
  Report("label " + std::to_string(label) + " in " + where + " has no line in " + kLabelsName +
         ", which has those up to " + std::to_string(listed_ + options_.label_offset - 1));
}

VerifySummary Verification::Run() {
  const auto begin = std::chrono::steady_clock::now();
  AddLabelsFile();
  std::optional<std::vector<ShardSummary>> manifest;
  try {
    manifest = ReadShardManifest(options_.data_dir);
    summary_.has_manifest = manifest.has_value();
  } catch (const Error& error) {
    if (error.exit_code() != EX_DATAERR) throw;
    Report(error.what());
    summary_.has_manifest = true;
  }
  for (const Split split : kSplits) {
    const DataFiles files = ListDataFiles(options_.data_dir, split, summary_.has_manifest);
    for (const std::string& problem : files.problems) Report(problem);
    std::optional<ShardManifestCheck> check;
    if (manifest) {
      check.emplace(options_.data_dir, *manifest, FilePrefix(split));
      for (const std::string& problem : check->CompareNames(files.paths)) Report(problem);
    }
    for (const std::string& path : files.paths) VerifyFile(RecordFile(path, true), check);
    if (!options_.index_dir.empty()) VerifyIndexNames(FilePrefix(split), files.paths);
  }
  if (summary_.files == 0 && summary_.problems == 0) throw NoDataFiles(options_.data_dir);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  summary_.seconds = elapsed.count();
  return summary_;
}

}  // namespace

std::string LabelNames::Add(std::int64_t label, const std::string& name, const std::string& place) {
  const auto [of_label, is_new_label] = by_label_.emplace(label, Met{name, place});
  const auto [of_name, is_new_name] = by_name_.emplace(name, MetLabel{label, place});
  const bool has_other_name = of_label->second.name != name;
  const bool has_other_label = of_name->second.label != label;
  if (!has_other_name && !has_other_label) return "";
  if (!reported_.insert(label).second) return "";
  if (has_other_name) {
    return "label " + std::to_string(label) + " is " + Quoted(of_label->second.name) + " in " +
           of_label->second.place + ", and " + Quoted(name) + " in " + place;
  }
  return "the class " + Quoted(name) + " has the label " + std::to_string(of_name->second.label) +
         " in " + of_name->second.place + ", and " + std::to_string(label) + " in " + place;
}

namespace {

fs::path IndexPath(const std::string& index_dir, const std::string& data_file) {
  return fs::path(index_dir) / fs::path(data_file).filename();
}

// An index has the name of its data file, which it must not replace, nor one of another set.
void RequireDiskSpaceForIndex(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) == 0) return;
  char start[2] = {};
  if (std::ifstream(path, std::ios::binary).read(start, 2) && start[0] == '0' && start[1] == ' ') {
    return;
  }
  throw Error(EX_USAGE,
              path.string() +
                  " is no index: replacing it could lose data; give a directory of its own "
                  "for INDEX_DIR");
}

}  // namespace

std::int64_t MakeIndexFiles(const std::string& data_dir, const std::string& index_dir,
                            int threads) {
  const std::vector<std::string> paths = FindAllDataFiles(data_dir, HasShardManifest(data_dir));
  MakeDirectories(index_dir);
  for (const std::string& path : paths) RequireDiskSpaceForIndex(IndexPath(index_dir, path));
  std::vector<std::int64_t> records(paths.size());
  ParallelFor(threads, std::ssize(paths), [&](std::int64_t i) {
    const auto number = static_cast<std::size_t>(i);
    const std::vector<RecordPlace> places = RecordFile(paths[number], true).Scan();
    WriteWholeFile(IndexPath(index_dir, paths[number]), FormatIndex(places));
    records[number] = std::ssize(places);
  });
  std::int64_t total = 0;
  for (const std::int64_t count : records) total += count;
  return total;
}

std::int64_t MakeShardManifest(const std::string& data_dir, bool may_be_part, int threads) {
  const std::vector<std::string> paths = FindAllDataFiles(data_dir, may_be_part);
  for (const std::string& path : paths) {
    const std::string name = fs::path(path).filename().string();
    if (std::ranges::any_of(name, [](char c) { return c <= ' ' && c >= 0; })) {
      throw Error(EX_DATAERR, path + ": a name with a blank cannot be in a manifest; rename it");
    }
  }
  std::vector<ShardSummary> shards(paths.size());
  ParallelFor(threads, std::ssize(paths), [&](std::int64_t i) {
    const auto number = static_cast<std::size_t>(i);
    const RecordFile file(paths[number], true);
    shards[number] = SummarizeShard(file, file.ScanWithChecksum());
  });
  std::ranges::sort(shards, {}, &ShardSummary::name);
  WriteWholeFile(fs::path(data_dir) / kShardManifestName, FormatShardManifest(shards));
  std::int64_t total = 0;
  for (const ShardSummary& shard : shards) total += static_cast<std::int64_t>(shard.records);
  return total;
}

VerifySummary VerifyDataSet(const VerifyOptions& options,
                            const std::function<void(const std::string&)>& on_problem) {
  return Verification(options, on_problem).Run();
}

}  // namespace trainer
