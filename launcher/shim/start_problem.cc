// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/start_problem.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "launcher/shim/program_file.h"

namespace launcher {
namespace {

constexpr char kSpaces[] = " \t\n";

// Those of POSIX and bash that people put before a program, and `module` with its short form, which
// are functions that shells hand on.
bool IsBuiltin(const char* word, size_t length) {
  static const char* const kBuiltins[] = {"alias",  "cd",     "eval",   "exec",  "export",
                                          "ml",     "module", "pushd",  "set",   "shopt",
                                          "source", "trap",   "ulimit", "umask", "unset"};
  for (const char* builtin : kBuiltins) {
    if (strlen(builtin) == length && strncmp(builtin, word, length) == 0) return true;
  }
  return false;
}

bool IsSetting(const char* word, size_t length) {
  const size_t name = strcspn(word, "=");
  if (name >= length || name == 0 || isdigit(static_cast<unsigned char>(*word))) return false;
  for (size_t i = 0; i < name; ++i) {
    if (!isalnum(static_cast<unsigned char>(word[i])) && word[i] != '_') return false;
  }
  return true;
}

bool IsThere(const char* name, size_t length, const char* directories) {
  char first[PATH_MAX];
  char path[PATH_MAX];
  if (length >= sizeof(first)) return false;
  memcpy(first, name, length);
  first[length] = '\0';
  FindProgramFile(first, directories, path, sizeof(path));
  return path[0] != '\0' && access(path, F_OK) == 0;
}

}  // namespace

ShellCommandToken ShellCommandTokenOf(const char* word, const char* directories) {
  const size_t length = strcspn(word, kSpaces);
  const bool is_setting = IsSetting(word, length);
  const bool is_builtin = IsBuiltin(word, length);
  if (word[length] == '\0') {
    if (is_setting) return ShellCommandToken::kSetting;
    if (is_builtin) return ShellCommandToken::kBuiltin;
    if (word[0] == '~') return ShellCommandToken::kTilde;
    return word[0] == '$' ? ShellCommandToken::kVariable : ShellCommandToken::kName;
  }
  if (is_setting || is_builtin || word[0] == '~' || word[0] == '$')
    return ShellCommandToken::kShellLine;
  // A name may have spaces: only what begins with a program is more than one word.
  if (!IsThere(word, length, directories)) return ShellCommandToken::kName;
  return strpbrk(word, "|&;<>()$`\n") != nullptr ? ShellCommandToken::kShellLine
                                                 : ShellCommandToken::kCommand;
}

namespace {

using Kind = ProgramFile::Kind;

struct Start {
  const char* program;      // as the user has typed it
  const char* path;         // the file that is meant by it
  const char* directories;  // of PATH
  int error;
};

struct Message {
  char* text;
  size_t size;

  // Returns true: there is a text now.
  __attribute__((format(printf, 2, 3))) bool Is(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return true;
  }
};

bool IsThere(const char* path) { return access(path, F_OK) == 0; }
bool MayBeExecuted(const char* path) { return access(path, X_OK) == 0; }

const char* BaseName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// What to type in front of a file that is for an interpreter: by its first line, or by its name;
// "" for other files.
const char* InterpreterOf(const ProgramFile& file, const char* path) {
  if (file.kind == Kind::kElf) return "";
  const char* named = BaseName(file.interpreter);
  if (*named == '\0') return ProgramForName(path);
  return strcmp(named, "env") == 0 && file.argument[0] != '-' ? file.argument : named;
}

// Of a name in no directory of PATH that is a program of this installation, where ddlrun was
// started by its path.
bool DescribeInstalled(const Start& start, Message* text) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0 || strchr(start.program, '/') != nullptr) return false;
  path[length] = '\0';
  static const char kOwnPlace[] = "/libexec/ddlrun/ddlrun-rank";
  char* place = strstr(path, kOwnPlace);
  if (place == nullptr) return false;
  const size_t room = sizeof(path) - static_cast<size_t>(place - path);
  const int written = snprintf(place, room, "/bin/%s", start.program);
  if (written < 0 || static_cast<size_t>(written) >= room || !MayBeExecuted(path)) return false;
  return text->Is("%s in PATH; that of this installation is %.300s", strerror(start.error), path);
}

// Of a word that no file is called by.
bool DescribeWord(const Start& start, Message* text) {
  const char* words = strerror(start.error);
  const char* word = start.program;
  switch (ShellCommandTokenOf(word, start.directories)) {
    case ShellCommandToken::kSetting:
      return text->Is("it sets a variable, and is no program: write -x %.300s before the program",
                      word);
    case ShellCommandToken::kBuiltin:
      return text->Is("it is a command of the shell, and no program: write bash -c '%.300s ...'",
                      word);
    case ShellCommandToken::kShellLine:
      return text->Is("it is a line for a shell, and no program: write bash -c before it");
    case ShellCommandToken::kCommand:
      return text->Is("%s: program and arguments are one word: leave out the quotes around them",
                      words);
    case ShellCommandToken::kTilde:
      return text->Is("%s: no shell replaces ~ in quotes: write it outside of them, or $HOME",
                      words);
    case ShellCommandToken::kVariable:
      return text->Is("%s: no shell replaces %.300s in single quotes: take double ones", words,
                      word);
    case ShellCommandToken::kName:
      break;
  }
  return DescribeInstalled(start, text);
}

// Of a name that is in no directory of PATH.
bool DescribeMissing(const Start& start, Message* text) {
  const char* words = strerror(start.error);
  const char* name = start.program;
  struct stat status;
  if (stat(name, &status) != 0) return DescribeWord(start, text);
  if (S_ISDIR(status.st_mode))
    return text->Is("%s in PATH; in this directory it is a directory", words);
  if (!S_ISREG(status.st_mode)) return false;
  const ProgramFile file = ReadProgramFile(name);
  const char* interpreter = InterpreterOf(file, name);
  const bool runs = MayBeExecuted(name) &&
                    (file.kind == Kind::kElf || file.kind == Kind::kScript || IsForShell(name));
  if (runs) return text->Is("%s in PATH; that of this directory is ./%.300s", words, name);
  if (*interpreter != '\0') {
    return text->Is("it is in this directory, but is no program: write %.100s %.300s", interpreter,
                    name);
  }
  return text->Is(
      "%s in PATH; the file %.300s of this directory is no program that may be executed", words,
      name);
}

// Of a path at which there is no regular file.
bool DescribeNoFile(const Start& start, Message* text) {
  struct stat status;
  char target[PATH_MAX];
  if (stat(start.path, &status) == 0) {
    if (S_ISREG(status.st_mode)) return false;
    return text->Is("%s", S_ISDIR(status.st_mode) ? "it is a directory, and no program"
                                                  : "it is no file, and no program");
  }
  const ssize_t length = readlink(start.path, target, sizeof(target) - 1);
  if (length <= 0) return start.error == ENOENT && DescribeWord(start, text);
  target[length] = '\0';
  return text->Is("it is a symbolic link to %.300s: %s", target, strerror(start.error));
}

// Of a file that may not be executed.
bool DescribeNoPermission(const Start& start, const ProgramFile& file, Message* text) {
  if (start.error != EACCES) return false;
  const char* words = strerror(start.error);
  struct statvfs mount;
  if (statvfs(start.path, &mount) == 0 && (mount.f_flag & ST_NOEXEC) != 0) {
    return text->Is("%s: nothing may be executed on its file system (mounted noexec)", words);
  }
  if (MayBeExecuted(start.path)) return false;
  const char* interpreter = InterpreterOf(file, start.path);
  if (*interpreter != '\0' && file.kind == Kind::kScript) {
    return text->Is("%s: it is not executable: chmod +x %.300s, or write %.100s %.300s", words,
                    start.path, interpreter, start.program);
  }
  if (*interpreter != '\0') {
    return text->Is("%s: it is not executable, and is no program: write %.100s %.300s", words,
                    interpreter, start.program);
  }
  return text->Is("%s: it is not executable: chmod +x %.300s", words, start.path);
}

// Of what a script or a program is run by: its interpreter or its loader.
bool DescribeRunner(const char* what, const char* path, Message* text) {
  if (!IsThere(path)) return text->Is("the file is there, but not its %s %.250s", what, path);
  const ProgramFile runner = ReadProgramFile(path);
  if (runner.kind == Kind::kElf && !runner.is_of_node) {
    utsname node;
    return text->Is("its %s %.250s is built for %s, and this node is %s", what, path,
                    runner.machine_name, uname(&node) == 0 ? node.machine : "another one");
  }
  if (!MayBeExecuted(path) || runner.kind == Kind::kUnreadable) {
    return text->Is("its %s %.250s may not be executed", what, path);
  }
  if (runner.kind != Kind::kElf && runner.kind != Kind::kScript) {
    return text->Is("its %s %.250s is no program", what, path);
  }
  return false;
}

bool DescribeElf(const Start& start, const ProgramFile& file, Message* text) {
  const char* words = strerror(start.error);
  if (file.type == ET_REL) {
    return text->Is("%s: it is an object file, which the linker makes a program of", words);
  }
  if (file.type == ET_CORE) {
    return text->Is("%s: it is the core file of a program that crashed", words);
  }
  if (file.machine_name[0] != '\0' && !file.is_of_node && start.error != ENOENT) {
    utsname node;
    return text->Is("%s: it is built for %s, and this node is %s", words, file.machine_name,
                    uname(&node) == 0 ? node.machine : "another one");
  }
  if (IsLibrary(file)) return text->Is("%s: it is a shared library, and no program", words);
  if (file.is_damaged) {
    return text->Is("%s: it is cut short or damaged: copy it again, or build it again", words);
  }
  if (file.loader[0] != '\0' && !file.is_of_node && !IsThere(file.loader)) {
    return text->Is("it is built for %s, whose loader %.250s is not there", file.machine_name,
                    file.loader);
  }
  return file.loader[0] != '\0' && DescribeRunner("loader", file.loader, text);
}

bool DescribeScript(const Start& start, const ProgramFile& file, Message* text) {
  if (file.has_long_first_line) {
    return text->Is(
        "%s: its first line is longer than the %zu bytes that Linux reads; write the "
        "interpreter in front of it",
        strerror(start.error), kMaxOfFirstLine - 1);
  }
  const bool lacks_program = LacksProgramOfEnv(file, start.directories);
  if (file.has_windows_line_end && start.error == ENOENT) {
    return text->Is(
        "the file is there, but its first line ends as under Windows: sed -i 's/\\r$//' %.300s",
        start.path);
  }
  if (lacks_program) {
    return text->Is(
        "the file is there, but not its interpreter %.250s, which is in no directory of "
        "PATH",
        file.argument);
  }
  return file.interpreter[0] != '\0' && DescribeRunner("interpreter", file.interpreter, text);
}

bool DescribeContent(const Start& start, const ProgramFile& file, Message* text) {
  const char* words = strerror(start.error);
  const char* interpreter = InterpreterOf(file, start.path);
  switch (file.kind) {
    case Kind::kElf:
      return DescribeElf(start, file, text);
    case Kind::kScript:
      return DescribeScript(start, file, text);
    case Kind::kEmpty:
      return text->Is("%s: the file is empty", words);
    case Kind::kMarkedText:
      return text->Is("%s: it begins with a byte order mark: save it as UTF-8 without one", words);
    case Kind::kOfWindows:
      return text->Is("%s: it is a program of Windows", words);
    case Kind::kOfMac:
      return text->Is("%s: it is a program of macOS", words);
    case Kind::kText:
    case Kind::kData:
      if (start.error != ENOEXEC) return false;
      if (*interpreter != '\0') {
        return text->Is("%s: it is no program by itself: write %.100s %.300s", words, interpreter,
                        start.program);
      }
      return text->Is("%s: %s", words,
                      file.kind == Kind::kText ? "it has no #! line, and /bin/sh does not start"
                                               : "it is data, and no program");
    case Kind::kUnreadable:
      break;
  }
  return false;
}

}  // namespace

void DescribeStartProblem(const char* program, const char* directories, int error, char* text,
                          size_t size) {
  char path[PATH_MAX];
  FindProgramFile(program, directories, path, sizeof(path));
  const Start start = {program, path, directories, error};
  Message description = {text, size};
  description.Is("%s", strerror(error));
  if (path[0] == '\0') {
    DescribeMissing(start, &description);
    return;
  }
  if (DescribeNoFile(start, &description)) return;
  const ProgramFile file = ReadProgramFile(path);
  if (DescribeNoPermission(start, file, &description)) return;
  DescribeContent(start, file, &description);
}

}  // namespace launcher
