// SPDX-License-Identifier: Apache-2.0
//
// What the program of a command line is: this project's trainer, for which some options have better
// defaults, or one that is read from standard input (`python3 - << EOF`, `bash -s < script`). Pure.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace launcher {

// The arguments of ddltraind where it is a word of `program`, also behind another one such as
// numactl; nullopt for any other program, and for a script that starts it.
std::optional<std::vector<std::string>> TrainerArguments(const std::vector<std::string>& program);

// Whether `program` is a shell or Python that is given no program by its arguments.  False where
// the arguments leave a doubt.
bool ReadsProgramFromStdin(const std::vector<std::string>& program);

// "" unless the first word of `program` is spelled as the last of `hosts`, which -H has, but for
// its number or slots, as in `-H n1 n2 python`: then what to write, for a word that no program has.
std::string DescribeHostAsProgram(const std::string& hosts,
                                  const std::vector<std::string>& program);

}  // namespace launcher
