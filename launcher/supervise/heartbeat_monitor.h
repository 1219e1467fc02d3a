// SPDX-License-Identifier: Apache-2.0
//
// Which of the files that ranks touch has not changed for too long.  Pure: what is seen is told.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace launcher {

class HeartbeatMonitor {
 public:
  // `limit` is how long a file may stay as it is, in seconds.  Until it changes for the first time
  // it has ten times as long: the program loads its libraries and data.
  HeartbeatMonitor(int files, double limit)
      : limit_(limit), files_(static_cast<std::size_t>(files)) {}

  // So much time has passed.
  void Pass(double seconds);
  // File `index` was last changed at `time`, in ns by whatever clock; nullopt: it is not there, or
  // nobody can tell.
  void Look(int index, std::optional<std::int64_t> time);
  // File `index` need not change any more.
  void Forget(int index);
  // The files that have not changed for too long, the longest first.
  std::vector<int> Late() const;
  // For how long a file has not changed, in seconds.
  double SilenceOf(int index) const { return files_.at(static_cast<std::size_t>(index)).silence; }

 private:
  struct File {
    bool is_known = false;
    bool is_forgotten = false;
    bool has_changed = false;
    std::optional<std::int64_t> time;
    double silence = 0;  // in seconds
  };

  double BoundOf(const File& file) const { return file.has_changed ? limit_ : 10 * limit_; }

  const double limit_;
  std::vector<File> files_;
};

}  // namespace launcher
