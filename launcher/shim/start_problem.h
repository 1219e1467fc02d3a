// SPDX-License-Identifier: Apache-2.0
//
// Why a program did not start.  "No such file or directory" is also what the system says of a
// script or a program that is there, and whose interpreter or loader is not.

#pragma once

#include <stddef.h>

namespace launcher {

// Writes what to say of BecomeProgram(program, directories), which failed with `error`, to `text`:
// the error, and the cause where it is another than its words, with what to type instead.
void DescribeStartProblem(const char* program, const char* directories, int error, char* text,
                          size_t size);

}  // namespace launcher
