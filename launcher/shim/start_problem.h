// SPDX-License-Identifier: Apache-2.0
//
// Why a program did not start.  "No such file or directory" is also what the system says of a
// script that is there, and whose interpreter is not.

#pragma once

#include <stddef.h>

namespace launcher {

// Writes what to say of execvp(program), which failed with `error`, to `text`: the error, and the
// cause where it is another than its words.
void DescribeStartProblem(const char* program, int error, char* text, size_t size);

}  // namespace launcher
