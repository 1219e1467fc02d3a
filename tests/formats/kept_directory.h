// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun 0.1.0 has written (tests/fixtures/0.1.0), unpacked.

#pragma once

#include <cstdlib>

#include "tests/support/directories.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace trainer {

// The directory of it, which goes away with the program.
inline const fs::path& KeptDirectory() {
  static const TemporaryDirectory directory;
  static const int status =
      std::system(("tar -xzf '" + tests::SourceDirectory() +
                   "/tests/fixtures/0.1.0/files.tar.gz' -C '" + directory.path().string() + "'")
                      .c_str());
  EXPECT_EQ(status, 0);
  return directory.path();
}

}  // namespace trainer
