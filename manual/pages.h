// SPDX-License-Identifier: Apache-2.0
//
// The manual of every program that people type: what a page and a completion say of it, a value
// that is made from its option table and written out by roff.h and bash_completion.h.  Pure.

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace manual {

// What may stand for a value: "FILE", "DIR", "N", "auto|full|off".
struct Value {
  std::string shape;                 // as shown; "" for a switch
  bool is_optional = false;          // only --name=value gives one then
  std::vector<std::string> choices;  // all that may be written; empty: anything
};

struct Option {
  std::vector<std::string> names;  // with their dashes
  Value value;
  std::string help;  // with the default
};

struct OptionGroup {
  std::string title;  // "" for none
  std::vector<Option> options;
};

// A word that is no option.
struct Operand {
  Value value;
  std::string help;
  bool may_repeat = false;
};

// A subcommand, or the whole of a program that has none.
struct Command {
  std::string name;  // "checkpoint list" for one below another one
  std::string help;
  std::vector<OptionGroup> groups;
  std::vector<Operand> operands;
};

// What follows a program's own options.
enum class Rest { kOperands, kProgram, kOptionsAndProgram };

using Terms = std::vector<std::pair<std::string, std::string>>;

struct Page {
  std::vector<std::string> names;  // of the program; the first is the page's
  std::string summary;             // one line without a stop
  std::vector<std::string> synopsis;
  std::vector<std::string> description;  // paragraphs
  Command program;                       // its options, outside of subcommands
  std::vector<Command> commands;         // its subcommands
  Rest rest = Rest::kOperands;
  bool one_dash_is_enough = false;  // -launcher for --launcher
  Terms exit_status;
  Terms signals;
  Terms environment;
  Terms files;
  Terms examples;  // a command as it is typed, in the order in which they can be: what it is for
  std::vector<std::string> see_also;  // "ddlrun(1)"
};

// Splits "auto|full|off" into choices; none where a part is a placeholder (FILE, DIR, N, ...).
Value ValueOfShape(const std::string& shape);

// One for each program, in the order of doc/reference/launching.md.
std::vector<Page> AllPages();

}  // namespace manual
