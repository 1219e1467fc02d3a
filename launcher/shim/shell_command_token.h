// SPDX-License-Identifier: Apache-2.0
//
// A word that stands instead of a program, and is none by its spelling: something for a shell.
// It has no C++ library.  Pure but for ShellCommandTokenOf, which looks for a program in
// directories.

#pragma once

#include <stddef.h>

namespace launcher {

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

}  // namespace launcher
