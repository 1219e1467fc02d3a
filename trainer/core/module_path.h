// SPDX-License-Identifier: Apache-2.0
//
// Where the modules of a program are, which it loads when it needs them.

#pragma once

#include <string>

namespace trainer {

// ../lib/ddlrun/`name` from the directory of the program that runs, wherever it was moved or linked
// to.
std::string ModulePath(const std::string& name);

}  // namespace trainer
