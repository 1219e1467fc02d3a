// SPDX-License-Identifier: Apache-2.0
//
// Programs that are read from standard input: `python3 - << EOF`, `bash -s < script`.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// Whether `program` is a shell or Python that is given no program by its arguments.  False where
// the arguments leave a doubt.
bool ReadsProgramFromStdin(const std::vector<std::string>& program);

}  // namespace launcher
