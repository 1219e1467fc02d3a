// SPDX-License-Identifier: Apache-2.0
//
// A path that PRRTE can read as a part of an option: with ':' or '-' in it, it takes
// "--map-by rankfile:FILE=PATH" apart (seen with Open MPI 5.0.7).

#pragma once

#include <string>

namespace launcher {

class PlainPath {
 public:
  // Another name of the file, /proc/PID/fd/N, which stays open as long as this object.  `path`
  // itself where it is plain, or cannot be opened: mpirun then says why.
  explicit PlainPath(const std::string& path);
  ~PlainPath();
  PlainPath(const PlainPath&) = delete;
  PlainPath& operator=(const PlainPath&) = delete;

  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
};

}  // namespace launcher
