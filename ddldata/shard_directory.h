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
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/file.h"

namespace trainer {

inline constexpr char kConversionName[] = "ddldata.conversion";

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

  // Calls write(i) for each i of [0, files) on `threads` threads.  Where one throws, no more are
  // begun, and `failed` tells those under way that they need not finish; an EX_OSERR is thrown with
  // the advice to go on.
  static void WriteFiles(int threads, std::int64_t files, std::atomic<bool>& failed,
                         const std::function<void(std::int64_t)>& write);

 private:
  std::string dir_;
  support::Descriptor lock_;
};

// "there it is LINE, now it is LINE" of the first lines of two descriptions that differ; "" if none
// does.  Pure.
std::string CompareConversions(std::string_view there, std::string_view now);

}  // namespace trainer
