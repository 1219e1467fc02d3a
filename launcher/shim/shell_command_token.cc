// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/shell_command_token.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>
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

}  // namespace launcher
