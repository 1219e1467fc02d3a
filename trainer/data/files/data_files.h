// SPDX-License-Identifier: Apache-2.0
//
// Which files of a directory are a data set's: those whose names begin with train- or validation-.
// Names such as train-00003-of-00008 say how many there must be.

#pragma once

#include <span>
#include <string>
#include <vector>

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

// Whether `dir` has a manifest (shard_manifest.h), which then tells which files there must be: a
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

}  // namespace trainer
