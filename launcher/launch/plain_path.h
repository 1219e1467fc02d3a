// SPDX-License-Identifier: Apache-2.0
//
// A path that PRRTE can read in "--map-by rankfile:FILE=PATH".  A ':' or '-' in the path would end
// it there (seen with Open MPI 5.0.7).

#pragma once

#include <string>

#include "support/descriptor.h"

namespace launcher {

class PlainPath {
 public:
  // Opens the file where `path` has such a character; the path is then /proc/PID/fd/N as long as
  // this object lives.  Otherwise it is `path` itself, and so for a file that cannot be opened,
  // about which mpirun will complain.
  explicit PlainPath(const std::string& path);

  const std::string& path() const { return path_; }

 private:
  support::Descriptor file_;
  std::string path_;
};

}  // namespace launcher
