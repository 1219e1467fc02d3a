// SPDX-License-Identifier: Apache-2.0
//
// A directory in which the data files of a set are made, one by one, so that making them goes on
// where it was stopped.  DATA_DIR/ddldata.conversion, written first, is a text that says what is
// made; each data file appears under its name when all of it is on the disk (tfrecord.h,
// RecordWriter).

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/file.h"
#include "trainer/data/tfrecord_loader.h"

namespace trainer {

inline constexpr char kConversionName[] = "ddldata.conversion";

// Throws Error(EX_USAGE) unless `condition` holds.
void RequireOption(bool condition, const std::string& message);

// "train-00003-of-01024".
std::string ShardName(Split split, int shard, int shards);

// The names of the directory's data files, and of those that are none but look like one.  Throws
// Error(EX_OSERR).
std::set<std::string> DataFileNames(const std::string& dir);

// Keeps others out of the directory as long as it lives, where the file system has locks.
class ShardDirectory {
 public:
  // Makes `dir` if it is not there.  Throws Error(EX_OSERR) if it cannot, Error(EX_CONFIG) if
  // another process makes files in it.
  explicit ShardDirectory(std::string dir);

  // Notes `description` in the directory, or compares it with what is noted, and returns those of
  // `names` that are not there yet, as numbers, in order.  What a process that was killed had begun
  // is removed.  Throws Error(EX_USAGE) if the directory is of another description, or has other
  // data files: those are never touched.
  std::vector<std::size_t> MissingFiles(const std::string& description,
                                        std::span<const std::string> names);

 private:
  std::string dir_;
  support::Descriptor lock_;
};

// Makes the data files of a set: what a conversion and a split have in common.
class ShardMaking {
 public:
  // `stop_requested` is asked between records, from any thread.  What is referred to must outlive
  // this.
  ShardMaking(const std::string& dir, int threads, const std::function<bool()>& stop_requested)
      : dir_(dir), threads_(threads), stop_requested_(stop_requested) {}

  // Throws Error(EX_TEMPFAIL), with the advice to go on, if it is.
  void StopIfRequested() const;
  // Calls write(i) for each of `files` on the threads.  Where one throws, no more are begun; an
  // EX_OSERR is thrown with the advice to go on.  Throws as StopIfRequested.
  void WriteFiles(std::span<const std::size_t> files,
                  const std::function<void(std::size_t)>& write);
  // Whether one file has failed: the others need not finish.
  bool has_failed() const { return failed_; }

 private:
  const std::string& dir_;
  const int threads_;
  const std::function<bool()>& stop_requested_;
  std::atomic<bool> failed_ = false;
};

// "there it is LINE, now it is LINE" of the first lines of two descriptions that differ; "" if none
// does.  Pure.
std::string CompareConversions(std::string_view there, std::string_view now);

}  // namespace trainer
