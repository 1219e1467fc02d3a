// SPDX-License-Identifier: Apache-2.0

#include "tests/support/directories.h"

namespace tests {

std::string SourceDirectory() { return DDLRUN_SOURCE_DIR; }

std::string BuildDirectory() { return DDLRUN_BINARY_DIR; }

}  // namespace tests
