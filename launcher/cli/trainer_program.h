// SPDX-License-Identifier: Apache-2.0
//
// ddlrun knows one program: its own trainer, for which some options have better defaults.  Pure.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace launcher {

// The arguments of ddltraind where it is a word of `program`, also behind another one such as
// numactl; nullopt for any other program, and for a script that starts it.
std::optional<std::vector<std::string>> TrainerArguments(const std::vector<std::string>& program);

}  // namespace launcher
