// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/data_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "support/quoting.h"
#include "trainer/core/error.h"
#include "trainer/data/files/shard_manifest.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// "00003-of-00008".
struct ShardNumber {
  std::uint32_t number = 0;
  std::uint32_t total = 0;
};

std::optional<ShardNumber> ParseShardNumber(std::string_view text) {
  constexpr std::string_view kOf = "-of-";
  const std::size_t of = text.find(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const auto parse = [](std::string_view digits, std::uint32_t& value) {
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value);
    return result.ec == std::errc() && result.ptr == end;
  };
  ShardNumber shard;
  if (!parse(text.substr(0, of), shard.number) ||
      !parse(text.substr(of + kOf.size()), shard.total)) {
    return std::nullopt;
  }
  return shard;
}

Error CannotRead(const std::string& dir, const std::error_code& error) {
  return {EX_DATAERR, "cannot read the data directory " + dir + ": " + error.message()};
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

std::vector<std::string> FindMissingShards(const std::string& dir, const std::string& prefix,
                                           std::span<const std::string> names, bool may_be_part) {
  std::map<std::uint32_t, std::string> by_number;
  std::vector<std::string> problems;
  std::string odd;
  std::string first;
  std::uint32_t total = 0;
  for (const std::string& name : names) {
    const auto shard = ParseShardNumber(std::string_view(name).substr(prefix.size()));
    if (!shard) {
      odd = name;
      continue;
    }
    if (first.empty()) {
      first = name;
      total = shard->total;
    }
    if (shard->total != total) {
      problems.push_back(dir + " has files of two sets, " + first + " and " + name +
                         ": leave those of one");
      return problems;
    }
    const auto [place, is_new] = by_number.emplace(shard->number, name);
    if (!is_new) {
      problems.push_back(dir + " has one file under two names, " + place->second + " and " + name);
    } else if (shard->number >= total) {
      problems.push_back(dir + "/" + name + " cannot be: numbers begin at 0 and end before " +
                         std::to_string(total));
    }
  }
  if (first.empty()) return problems;
  if (!odd.empty()) {
    problems.push_back(dir + "/" + odd + " is not numbered as " + first +
                       " is: take it out of the directory, or give it another name");
  }
  std::uint32_t missing = 0;
  while (missing < total && by_number.contains(missing)) ++missing;
  const auto there =
      static_cast<std::uint32_t>(std::distance(by_number.begin(), by_number.lower_bound(total)));
  if (there < total && !may_be_part) {
    const std::size_t of = first.rfind("-of-");
    std::string digits = std::to_string(missing);
    const std::size_t width = of - prefix.size();
    if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
    problems.push_back(dir + " has " + std::to_string(there) + " of the " + std::to_string(total) +
                       " files " + prefix + "*" + first.substr(of) + ": " + prefix + digits +
                       first.substr(of) + " is missing" +
                       (total - there > 1 ? ", and others" : "") +
                       "; if a part of the set is meant, say so: ddldata manifest --part " + dir);
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

}  // namespace trainer
