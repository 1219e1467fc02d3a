// SPDX-License-Identifier: Apache-2.0

#include "bench/base/scratch_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <system_error>

#include "trainer/core/error.h"

namespace bench {

ScratchDirectory::ScratchDirectory(const std::string& name) {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / (name + ".XXXXXX")).string();
  if (error) throw trainer::Error(EX_OSERR, "TMPDIR is no directory: " + error.message());
  if (::mkdtemp(path.data()) == nullptr) {
    throw trainer::OsError("cannot make the directory " + path, errno);
  }
  path_ = path;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace bench
