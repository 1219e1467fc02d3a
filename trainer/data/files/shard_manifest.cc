// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/shard_manifest.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "support/format_version.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"

namespace trainer {
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
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  return result.ec == std::errc() && result.ptr == end;
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
