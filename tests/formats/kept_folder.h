// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun 0.1.0 has written (tests/fixtures/0.1.0), unpacked.

#pragma once

#include <cstdlib>

#include "tests/support/folders.h"
#include "tests/support/test.h"
#include "tests/trainer/temporary_folder.h"

namespace trainer {

// The folder of it, which goes away with the program.
inline const std::filesystem::path& KeptFolder() {
  static const TemporaryFolder folder;
  static const int status =
      std::system(("tar -xzf '" + tests::SourceFolder() +
                   "/tests/fixtures/0.1.0/files.tar.gz' -C '" + folder.path().string() + "'")
                      .c_str());
  EXPECT_EQ(status, 0);
  return folder.path();
}

}  // namespace trainer
