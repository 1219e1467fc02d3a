// SPDX-License-Identifier: Apache-2.0
//
// Values that CLI11 takes and nobody means.

#pragma once

#include <CLI/CLI.hpp>

namespace support {

// For all options of `app` and its commands, by the names of their values:
//   * a value, but for free text ("TEXT", "ARG"), is refused if it is empty or another option, as
//     where a variable of a script is not set: --data_dir "$DATA", --export_dir $DIR --num_iter=9
//   * a whole number ("N"), a number ("X", "SECONDS") and the value of a flag must be one: 8.0, 1e3
//   * zeros before a number ("N", "SECONDS") go: CLI11 takes 010 for 8
void RefuseSlips(CLI::App& app);

}  // namespace support
