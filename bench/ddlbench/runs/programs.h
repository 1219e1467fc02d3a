// SPDX-License-Identifier: Apache-2.0
//
// Where the programs are that ddlbench starts.

#pragma once

#include <string>

namespace bench {

// Each a path, or a name in PATH.
struct Programs {
  std::string ddlbench;
  std::string ddlrun;
  std::string ddltraind;
};

}  // namespace bench
