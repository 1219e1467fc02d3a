// SPDX-License-Identifier: Apache-2.0
//
// What a file is that somebody wants to start: a program for this node or for another one, a
// script, a text for a shell, or nothing that can be started.  It has no C++ library.
//
// Reads the first bytes of files, and of a program its headers; safe from any thread.

#pragma once

#include <stddef.h>

namespace launcher {

// What Linux reads of the first line of a script (BINPRM_BUF_SIZE), and a zero.
inline constexpr size_t kMaxOfFirstLine = 257;

struct ProgramFile {
  enum class Kind {
    kUnreadable,  // not there, no regular file, or it may not be read
    kEmpty,       // no byte
    kElf,         // a program, a library or an object file, of whatever machine
    kOfWindows,   // begins as programs of Windows do
    kOfMac,       // begins as programs of macOS do
    kScript,      // begins with #!
    kMarkedText,  // begins with a byte order mark, which no system takes for #!
    kText,        // no byte in its first line is zero: what shells take for a script of theirs
    kData,
  };
  Kind kind = Kind::kUnreadable;

  // Of a script: its interpreter, "" where its first line names none; the word behind it (python3
  // of "/usr/bin/env python3").
  char interpreter[kMaxOfFirstLine] = "";
  char argument[kMaxOfFirstLine] = "";
  bool has_windows_line_end = false;
  bool has_long_first_line = false;  // Linux does not read it to its end

  // Of an ELF file.
  bool is_damaged = false;     // its headers are not whole
  bool is_of_node = false;     // of the machine, the word size and the byte order of this node
  unsigned machine = 0;        // e_machine
  unsigned type = 0;           // e_type: ET_REL, ET_EXEC, ET_DYN, ET_CORE
  bool has_entry = false;      // a shared library has no point at which it starts
  char machine_name[32] = "";  // as uname -m has it; "machine 4711" of one that is not known here
  char loader[kMaxOfFirstLine] = "";  // PT_INTERP; "" where it has none
};

ProgramFile ReadProgramFile(const char* path);

// The file that is meant by `name` and the directories of PATH, of which an empty one is the
// current directory: the first that may be executed, else the first that is there, else "".  A name
// with
// '/' is taken as it is.  Returns `path`.
const char* FindProgramFile(const char* name, const char* directories, char* path, size_t size);

// Whether a shell runs the file where Linux does not know how: as text that is for no other
// program by its name or its first line.
bool IsForShell(const char* path);

// A shared library: Linux starts it, and it ends by SIGSEGV.
bool IsLibrary(const ProgramFile& file);

// Whether `file` is a script for a program that env is to find in `directories`, and does not: env
// starts then, and its exit code is that of a rank.
bool LacksProgramOfEnv(const ProgramFile& file, const char* directories);

// The program that takes files of this name (python for train.py); "" for other names.
const char* ProgramForName(const char* name);

}  // namespace launcher
