// SPDX-License-Identifier: Apache-2.0
//
// Which files of a directory are a data set's: those whose names begin with train- or validation-.
// Names such as train-00003-of-00008 say how many there must be.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/files/tfrecord.h"

namespace trainer {

// Which part of a data set: files train-*, files validation-*.
enum class Split { kTrain, kValidation };

// "train-" or "validation-".
std::string FilePrefix(Split split);

// What is wrong with a set of file names that begin with `prefix`, one sentence each: numbers that
// are missing, too large or there twice, two sets in one directory, names without a number among
// names with one.  Nothing is wrong with names that have no numbers at all, and with missing ones
// if `may_be_part`.  Pure.
std::vector<std::string> FindMissingShards(const std::string& dir, const std::string& prefix,
                                           std::span<const std::string> names, bool may_be_part);

// The files of a split, and why they are not what they should be.
struct DataFiles {
  std::vector<std::string> paths;     // regular files, sorted
  std::vector<std::string> problems;  // also links to nothing, directories, pipes of such a name
};

// Whether `dir` has a manifest (below), which then tells which files there must be: a
// part of a set, for a benchmark say, is one by its manifest.
bool HasShardManifest(const std::string& dir);

// Throws Error(EX_DATAERR) naming `dir` if it cannot be read.
DataFiles ListDataFiles(const std::string& dir, Split split, bool may_be_part);

// The paths of a split.  Throws Error(EX_DATAERR) naming `dir` if it cannot be read or holds none
// of them, and with the first problem if there is one.  A part of a set needs a manifest.
std::vector<std::string> FindDataFiles(const std::string& dir, Split split);

// Of index files that are made by a loop around DALI's tfrecord2idx.
inline constexpr char kIndexEnding[] = ".idx";

// DALI's index file of `data_file`, which may be there by the name of that, as ddldata and NVIDIA's
// trainer have it, or with kIndexEnding.  Throws Error(EX_DATAERR) where it is there by neither.
std::string FindIndexFile(const std::string& index_dir, const std::string& data_file);

// What a directory without data files has in their place: people give the directory above the
// files, the images that they would be made of, or the files of another program.

// The end of a sentence that says that `dir` has no data files, which names one thing that it has
// and what to do with it; "; ..." or "" where nothing is known of what it has.  Looks at no more
// than some hundreds of names, two directories down, and never throws for what it cannot read.
std::string PrintFindings(const std::string& dir);

// What the data files of a directory hold, in a file ddldata.manifest beside them.  A record has
// its own checksums; that whole records or files are missing, doubled or in another order is seen
// by this alone.  The text, one line for each file of both splits in the order of their names:
//   ddldata manifest 1
//   train-00000-of-00002 1250 143721084 5d8a01f3
//   train-00001-of-00002 1251 143802131 88c1e0a9
//   end 2 0f6fe2a1
// name, records, bytes, CRC-32C of the records' data checksums (4 bytes each, as they are in the
// file); last, the number of files and the CRC-32C of the lines before.  There is one spelling of
// every manifest: no other blanks, no leading zeros, lower case.
//
// Errors are Error(EX_DATAERR) that name the file and, for the manifest, the line.

inline constexpr char kShardManifestName[] = "ddldata.manifest";
// In its first line; doc/formats.md says when it is raised.
inline constexpr int kShardManifestFormat = 1;

struct ShardSummary {
  std::string name;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
  bool operator==(const ShardSummary&) const = default;
};

// Pure.  REQUIRES: sorted by name; no name has a blank or a control character.
std::string FormatShardManifest(std::span<const ShardSummary> shards);
// Pure.  `path` is for the complaint, which for a format above kShardManifestFormat says both.
std::vector<ShardSummary> ParseShardManifest(std::string_view text, const std::string& path);

// That of a data directory; nothing if it has none.
std::optional<std::vector<ShardSummary>> ReadShardManifest(const std::string& dir);

// What an empty file is, and what to do with it.
std::string DescribeEmptyFile(const std::string& path);

// Why to have one and how, for a data directory without it.
std::string DescribeMissingManifest(const std::string& dir);

// What the file holds, of which `scan` is.
ShardSummary SummarizeShard(const RecordFile& file, const RecordScan& scan);

// Compares files with the manifest of their directory.  Pure.
class ShardManifestCheck {
 public:
  // Of the files of `dir` whose names begin with `prefix`.
  ShardManifestCheck(const std::string& dir, const std::vector<ShardSummary>& manifest,
                     const std::string& prefix);

  // One sentence for each file that is in the manifest or in the directory alone.
  std::vector<std::string> CompareNames(std::span<const std::string> paths) const;
  // What `file`, with so many records, has otherwise than the manifest says; "" if nothing, or if
  // the manifest does not know the file.  `checksum`: RecordFile::ChecksumOf all of them; without
  // it records that are exchanged for others of the same size are not noticed.
  std::string Compare(const RecordFile& file, std::size_t records,
                      std::optional<std::uint32_t> checksum) const;

 private:
  const ShardSummary* Find(const std::string& path) const;
  std::string Advice() const;

  std::string dir_;
  std::string path_;  // of the manifest
  std::vector<ShardSummary> shards_;
};

}  // namespace trainer
