// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/data_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "support/format_version.h"
#include "support/number.h"
#include "support/quoting.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// "00003-of-00008" in the name of a file, and what is around it.
struct ShardNumber {
  std::uint32_t number = 0;
  std::uint32_t total = 0;
  std::string_view before;
  std::string_view digits;  // of the number
  std::string_view behind;  // from "-of-" on
  std::string_view ending;  // behind all digits: ".tfrecord"
};

std::optional<ShardNumber> ParseShardNumber(std::string_view text) {
  constexpr std::string_view kOf = "-of-";
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t of = text.rfind(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const std::string_view first = text.substr(0, of);
  const std::size_t begin = first.find_last_not_of(kDigits) + 1;
  const std::string_view rest = text.substr(of + kOf.size());
  const std::size_t end = std::min(rest.find_first_not_of(kDigits), rest.size());
  const auto number = support::WholeNumber<std::uint32_t>(first.substr(begin));
  const auto total = support::WholeNumber<std::uint32_t>(rest.substr(0, end));
  if (!number || !total) return std::nullopt;
  return ShardNumber{*number,         *total,          first.substr(0, begin), first.substr(begin),
                     text.substr(of), rest.substr(end)};
}

// What is given in place of the directory.
Error CannotRead(const std::string& dir, const std::error_code& error) {
  std::error_code ignored;
  const fs::path parent = fs::path(dir).parent_path();
  const std::string above = parent.empty() ? "." : parent.string();
  const bool is_pattern = dir.find_first_of("*?{") != std::string::npos;
  const bool names_files =
      fs::is_regular_file(dir, ignored) || (is_pattern && fs::is_directory(above, ignored));
  const fs::path target = fs::read_symlink(dir, ignored);
  return {EX_DATAERR, "cannot read the data directory " + dir +
                          (target.empty() ? "" : ", a link to " + target.string()) + ": " +
                          error.message() +
                          (names_files ? "; give the directory of the files alone: " + above : "")};
}

// Why the entry is no data file, as the end of a sentence; "" if it is one.
std::string WhyNoDataFile(const fs::directory_entry& entry) {
  std::error_code error;
  const fs::file_status status = entry.status(error);
  if (fs::is_regular_file(status)) return "";
  if (std::error_code unknown;
      entry.is_symlink(unknown) && status.type() == fs::file_type::not_found) {
    return "is a link to " + fs::read_symlink(entry.path(), error).string() +
           ", which is not there";
  }
  if (fs::is_directory(status)) return "is a directory";
  if (fs::is_fifo(status)) return "is a named pipe";
  return error ? "cannot be read: " + error.message() : "is not a plain file";
}

}  // namespace

std::string FilePrefix(Split split) { return split == Split::kTrain ? "train-" : "validation-"; }

namespace {

// The files whose names have one beginning before their numbers.
struct ShardSet {
  std::string first;
  ShardNumber shard;  // of the first
  std::map<std::uint32_t, std::string> by_number;
};

// "" if all are there.
std::string DescribeMissing(const ShardSet& set, const std::string& dir,
                            const std::string& prefix) {
  const std::uint32_t total = set.shard.total;
  std::uint32_t missing = 0;
  while (missing < total && set.by_number.contains(missing)) ++missing;
  const auto there = static_cast<std::uint32_t>(
      std::distance(set.by_number.begin(), set.by_number.lower_bound(total)));
  if (there >= total) return "";
  std::string digits = std::to_string(missing);
  const std::size_t width = set.shard.digits.size();
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  const std::string before = prefix + std::string(set.shard.before);
  const std::string behind(set.shard.behind);
  return dir + " has " + std::to_string(there) + " of the " + std::to_string(total) + " files " +
         before + "*" + behind + ": " + before + digits + behind + " is missing" +
         (total - there > 1 ? ", and others" : "") +
         "; if a part of the set is meant, say so: ddldata manifest --part " + dir;
}

}  // namespace

std::vector<std::string> FindMissingShards(const std::string& dir, const std::string& prefix,
                                           std::span<const std::string> names, bool may_be_part) {
  std::map<std::string_view, ShardSet> sets;
  std::vector<std::string> problems;
  std::string odd;
  for (const std::string& name : names) {
    const auto shard = ParseShardNumber(std::string_view(name).substr(prefix.size()));
    ShardSet* set = shard
                        ? &sets.try_emplace(shard->before, ShardSet{name, *shard, {}}).first->second
                        : nullptr;
    if (set == nullptr || shard->ending != set->shard.ending) {
      odd = name;
      continue;
    }
    if (shard->total != set->shard.total) {
      problems.push_back(dir + " has files of two sets, " + set->first + " and " + name +
                         ": leave those of one");
      return problems;
    }
    const auto [place, is_new] = set->by_number.emplace(shard->number, name);
    if (!is_new) {
      problems.push_back(dir + " has one file under two names, " + place->second + " and " + name);
    } else if (shard->number >= shard->total) {
      problems.push_back(dir + "/" + name + " cannot be: numbers begin at 0 and end before " +
                         std::to_string(shard->total));
    }
  }
  if (sets.empty()) return problems;
  if (!odd.empty()) {
    problems.push_back(dir + "/" + odd + " is not numbered as " + sets.begin()->second.first +
                       " is: take it out of the directory, or give it another name");
  }
  for (const auto& [before, set] : sets) {
    const std::string missing = DescribeMissing(set, dir, prefix);
    if (!missing.empty() && !may_be_part) problems.push_back(missing);
  }
  return problems;
}

bool HasShardManifest(const std::string& dir) {
  std::error_code ignored;
  return fs::exists(fs::path(dir) / kShardManifestName, ignored);
}

DataFiles ListDataFiles(const std::string& dir, Split split, bool may_be_part) {
  std::error_code error;
  fs::directory_iterator entry(dir, error);
  if (error) throw CannotRead(dir, error);
  const std::string prefix = FilePrefix(split);
  DataFiles files;
  std::vector<std::string> names;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string why = WhyNoDataFile(*entry);
    names.push_back(name);
    if (why.empty()) {
      files.paths.push_back(entry->path().string());
    } else {
      files.problems.push_back(entry->path().string() + " " + why +
                               ": mend it, or take it out of the directory");
    }
  }
  if (error) throw CannotRead(dir, error);
  std::ranges::sort(files.paths);
  std::ranges::sort(files.problems);
  std::ranges::sort(names);
  std::ranges::copy(FindMissingShards(dir, prefix, names, may_be_part),
                    std::back_inserter(files.problems));
  return files;
}

std::vector<std::string> FindDataFiles(const std::string& dir, Split split) {
  DataFiles files = ListDataFiles(dir, split, HasShardManifest(dir));
  if (!files.problems.empty()) throw Error(EX_DATAERR, files.problems.front());
  if (files.paths.empty()) {
    const std::string prefix = FilePrefix(split);
    throw Error(EX_DATAERR, "the data directory " + dir + " has no file " + prefix +
                                "*; expected TFRecord files such as " + prefix +
                                "00000-of-00128 (ddldata synth makes some)" + PrintFindings(dir));
  }
  return std::move(files.paths);
}

std::string FindIndexFile(const std::string& index_dir, const std::string& data_file) {
  const std::string name = fs::path(data_file).filename().string();
  for (const char* ending : {"", kIndexEnding}) {
    const fs::path path = fs::path(index_dir) / (name + ending);
    std::error_code ignored;
    // One that cannot be looked at is refused when it is read.
    if (fs::status(path, ignored).type() != fs::file_type::not_found) return path.string();
  }
  throw Error(EX_DATAERR, index_dir + " has no index of " + data_file + ", neither " + name +
                              " nor " + name + kIndexEnding +
                              "; make it with: ddldata index DATA_DIR INDEX_DIR");
}

namespace {

constexpr std::size_t kMaxNames = 100;  // of one directory, and no more of its directories

std::vector<fs::directory_entry> SomeOf(const fs::path& dir) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error);
       !error && entry != fs::directory_iterator() && entries.size() < kMaxNames;
       entry.increment(error)) {
    entries.push_back(*entry);
  }
  std::ranges::sort(entries);
  return entries;
}

bool IsDirectory(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

bool IsDataFile(const std::string& name) {
  return name.starts_with(FilePrefix(Split::kTrain)) ||
         name.starts_with(FilePrefix(Split::kValidation));
}

// As TensorFlow Datasets names them: imagenet2012-train.tfrecord-00000-of-01024.
bool IsOfTensorFlowDatasets(const std::string& name) {
  return name.find(".tfrecord-") != std::string::npos;
}

// As others name files of records: val-00000-of-00128, train.tfrecord, coco_train.record-00000.
bool MayHaveRecords(const std::string& name) {
  return ParseShardNumber(name) || name.find(".tfrecord") != std::string::npos ||
         name.find(".record") != std::string::npos;
}

// What `ddldata convert` reads.
bool IsImageOrTar(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  constexpr std::array<std::string_view, 4> kEndings = {".jpeg", ".jpg", ".png", ".tar"};
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

// `depth`: 0 for what is in `dir` itself.
std::string PrintOf(const std::string& dir, const fs::directory_entry& entry, int depth) {
  const std::string name = entry.path().filename().string();
  const std::string path = entry.path().string();
  if (IsDataFile(name) && depth > 0) {
    // A link's target counts from where the link is.
    std::error_code ignored;
    const fs::path directory = fs::absolute(entry.path().parent_path(), ignored).lexically_normal();
    return "; those of both splits are to be in one directory, and " + path +
           " is in one of its own: ln -s " + support::QuoteCommand({directory.string()}) + "/* " +
           support::QuoteCommand({dir});
  }
  if (!IsDataFile(name) && !IsOfTensorFlowDatasets(name) && MayHaveRecords(name)) {
    return "; " + path +
           " may be one under another name: its name must begin with train- or validation-";
  }
  if (IsOfTensorFlowDatasets(name)) {
    return "; " + path +
           " is of TensorFlow Datasets, whose records have other features: make data files of the "
           "images with: ddldata convert";
  }
  if (IsImageOrTar(name)) {
    return "; data files are made of images and tars of them, such as " + path +
           ", with: ddldata convert";
  }
  return "";
}

}  // namespace

std::string PrintFindings(const std::string& dir) {
  std::vector<fs::path> directories = {dir};
  for (int depth = 0; depth <= 2; ++depth) {
    std::vector<fs::path> below;
    for (const fs::path& directory : directories) {
      for (const fs::directory_entry& entry : SomeOf(directory)) {
        if (IsDirectory(entry)) {
          if (below.size() < kMaxNames) below.push_back(entry.path());
        } else if (const std::string found = PrintOf(dir, entry, depth); !found.empty()) {
          return found;
        }
      }
    }
    directories = std::move(below);
  }
  return "";
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifestBeginning = "ddldata manifest ";
constexpr std::uint64_t kMaxManifestBytes = 64u << 20;  // a million files

std::string Hex(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

std::string FirstManifestLine() {
  return std::string(kManifestBeginning) + std::to_string(kShardManifestFormat) + "\n";
}

std::uint32_t ChecksumOfText(std::string_view text) {
  return Crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

std::string LastLine(std::size_t files, std::string_view before) {
  return "end " + std::to_string(files) + " " + Hex(ChecksumOfText(before)) + "\n";
}

// Takes the word up to the next blank, or up to the end.
std::string_view TakeWord(std::string_view& line) {
  const std::size_t length = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, length);
  line.remove_prefix(std::min(length + 1, line.size()));
  return word;
}

template <typename T>
bool ParseNumber(std::string_view text, int base, T& value) {
  const auto number = support::WholeNumber<T>(text, base);
  if (number) value = *number;
  return number.has_value();
}

// "NAME RECORDS BYTES CHECKSUM".
std::optional<ShardSummary> ParseLine(std::string_view line) {
  ShardSummary shard;
  shard.name = TakeWord(line);
  constexpr int kDecimal = 10;
  constexpr int kHexadecimal = 16;
  if (shard.name.empty() || !ParseNumber(TakeWord(line), kDecimal, shard.records) ||
      !ParseNumber(TakeWord(line), kDecimal, shard.bytes) ||
      !ParseNumber(TakeWord(line), kHexadecimal, shard.checksum) || !line.empty()) {
    return std::nullopt;
  }
  return shard;
}

std::string HowToMake(const std::string& dir) { return "ddldata manifest " + dir; }

Error BadManifest(const std::string& path, std::size_t line, const std::string& what) {
  return {EX_DATAERR, path + ":" + std::to_string(line) + ": " + what +
                          ": the manifest is damaged; get it again from where the data came from, "
                          "or, if you trust the files, make a new one: " +
                          HowToMake(fs::path(path).parent_path().string())};
}

Error NewerManifest(const std::string& path, int format) {
  return {EX_DATAERR,
          path + ":1: " +
              support::DescribeNewerFormat("a data manifest", format, kShardManifestFormat) +
              "; or, if you trust the files, make one that this version reads: " +
              HowToMake(fs::path(path).parent_path().string())};
}

}  // namespace

std::string FormatShardManifest(std::span<const ShardSummary> shards) {
  std::string text = FirstManifestLine();
  for (const ShardSummary& shard : shards) {
    text += shard.name + " " + std::to_string(shard.records) + " " + std::to_string(shard.bytes) +
            " " + Hex(shard.checksum) + "\n";
  }
  return text + LastLine(shards.size(), text);
}

std::vector<ShardSummary> ParseShardManifest(std::string_view text, const std::string& path) {
  const std::string first_line = FirstManifestLine();
  if (!text.starts_with(first_line)) {
    const int format = support::FormatVersion(text, kManifestBeginning).value_or(0);
    if (format > kShardManifestFormat) throw NewerManifest(path, format);
    throw BadManifest(path, 1, "expected \"ddldata manifest 1\"");
  }
  std::vector<ShardSummary> shards;
  std::size_t line_number = 2;
  std::size_t begin = first_line.size();
  while (true) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      throw BadManifest(path, line_number, "the end is missing");
    }
    const std::string_view line = text.substr(begin, end - begin);
    if (line.starts_with("end ")) break;
    const auto shard = ParseLine(line);
    if (!shard) throw BadManifest(path, line_number, "expected \"NAME RECORDS BYTES CHECKSUM\"");
    shards.push_back(*shard);
    begin = end + 1;
    ++line_number;
  }
  if (text.substr(begin) != LastLine(shards.size(), text.substr(0, begin))) {
    throw BadManifest(path, line_number, "the checksum of the lines before is wrong");
  }
  // The checksum may be right and the text still not ours.
  if (FormatShardManifest(shards) != text ||
      !std::ranges::is_sorted(shards, {}, &ShardSummary::name)) {
    throw BadManifest(path, line_number, "the lines are not as ddldata writes them");
  }
  return shards;
}

std::optional<std::vector<ShardSummary>> ReadShardManifest(const std::string& dir) {
  const fs::path path = fs::path(dir) / kShardManifestName;
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) return std::nullopt;
  return ParseShardManifest(ReadWholeFile(path.string(), kMaxManifestBytes), path.string());
}

std::string DescribeEmptyFile(const std::string& path) {
  const std::filesystem::path file(path);
  return path +
         " is empty: it has no record; get it again, or, if it was made so, as of fewer images "
         "than "
         "files, remove it and run: ddldata manifest --part " +
         file.parent_path().string();
}

std::string DescribeMissingManifest(const std::string& dir) {
  return dir + " has no " + kShardManifestName +
         ": whole records that are missing or doubled would not be noticed; " + HowToMake(dir) +
         " makes one";
}

ShardSummary SummarizeShard(const RecordFile& file, const RecordScan& scan) {
  return {fs::path(file.path()).filename().string(), scan.places.size(), file.bytes(),
          scan.checksum};
}

ShardManifestCheck::ShardManifestCheck(const std::string& dir,
                                       const std::vector<ShardSummary>& manifest,
                                       const std::string& prefix)
    : dir_(dir), path_((fs::path(dir) / kShardManifestName).string()) {
  std::ranges::copy_if(manifest, std::back_inserter(shards_),
                       [&](const ShardSummary& shard) { return shard.name.starts_with(prefix); });
}

std::vector<std::string> ShardManifestCheck::CompareNames(
    std::span<const std::string> paths) const {
  std::vector<std::string> problems;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    names.push_back(fs::path(path).filename().string());
    if (Find(path) == nullptr) problems.push_back(path + " is not in " + path_ + Advice());
  }
  for (const ShardSummary& shard : shards_) {
    if (std::ranges::find(names, shard.name) != names.end()) continue;
    problems.push_back(dir_ + " has no file " + shard.name + ", which is in " + path_ + Advice());
  }
  return problems;
}

std::string ShardManifestCheck::Compare(const RecordFile& file, std::size_t records,
                                        std::optional<std::uint32_t> checksum) const {
  const ShardSummary* expected = Find(file.path());
  if (expected == nullptr) return "";
  std::string what;
  if (records != expected->records) {
    what = " has " + std::to_string(records) + " records, not the " +
           std::to_string(expected->records);
  } else if (file.bytes() != expected->bytes) {
    what = " has " + std::to_string(file.bytes()) + " bytes, not the " +
           std::to_string(expected->bytes);
  } else if (checksum && *checksum != expected->checksum) {
    what = " has other records than those, or in another order,";
  } else {
    return "";
  }
  return file.path() + what + " of " + path_ + Advice();
}

const ShardSummary* ShardManifestCheck::Find(const std::string& path) const {
  const auto found = std::ranges::lower_bound(shards_, fs::path(path).filename().string(), {},
                                              &ShardSummary::name);
  const bool is_there = found != shards_.end() && found->name == fs::path(path).filename();
  return is_there ? &*found : nullptr;
}

std::string ShardManifestCheck::Advice() const {
  return ": restore the file, or, if the directory is as it should be, make a new manifest: " +
         HowToMake(dir_);
}

}  // namespace trainer
