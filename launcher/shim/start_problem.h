// SPDX-License-Identifier: Apache-2.0
//
// Why a program did not start.  "No such file or directory" is also what the system says of a
// script or a program that is there, and whose interpreter or loader is not.

#pragma once

#include <stddef.h>

namespace launcher {

// A word that stands instead of a program, and is none by its spelling: something for a shell.
// It has no C++ library.  Pure but for ShellCommandTokenOf, which looks for a program in
// directories.
enum class ShellCommandToken {
  kName,       // of a program, for all that can be seen
  kSetting,    // "FOO=1"
  kBuiltin,    // "cd": a shell's own command, which no directory of PATH has
  kShellLine,  // "cd data && ./train", "FOO=1 ./train": for a shell, with quotes around all of it
  kCommand,    // "python train.py": a program and its arguments with quotes around all of it
  kTilde,      // "~/train", which a shell leaves as it is in quotes
  kVariable,   // "$HOME/train", which a shell leaves as it is in single quotes
};

// REQUIRES: there is no file of this name, in the current directory or in `directories`, those of
// PATH.
ShellCommandToken ShellCommandTokenOf(const char* word, const char* directories);

// Writes what to say of BecomeProgram(program, directories), which failed with `error`, to `text`:
// the error, and the cause where it is another than its words, with what to type instead.
void DescribeStartProblem(const char* program, const char* directories, int error, char* text,
                          size_t size);

}  // namespace launcher
