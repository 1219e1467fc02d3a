// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "trainer/core/error.h"

namespace bench {

ScratchFolder::ScratchFolder() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "ddlbench.XXXXXX").string();
  if (error) throw trainer::Error(EX_OSERR, "TMPDIR is no folder: " + error.message());
  if (::mkdtemp(name.data()) == nullptr) {
    throw trainer::OsError("cannot make the folder " + name, errno);
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace bench
