// SPDX-License-Identifier: Apache-2.0
//
// The command line of a program as rows: one for each option and operand, in the commands that take
// them.  The parser, --help, the manual page and the completion are made from them.  Pure.
//
// The parser is CLI11, which command_line.cc alone includes, since it takes seconds to compile.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace support {

using TakeText = std::function<void(const std::string&)>;
using TakeTexts = std::function<void(const std::vector<std::string>&)>;

// Where a value goes, which must outlive the parsing.  bool is a flag, nothing one that needs no
// place.  What is there before is the default.
using Place = std::variant<std::monostate, bool*, int*, std::int64_t*, std::uint64_t*, double*,
                           std::string*, std::vector<int>*, std::vector<std::int64_t>*,
                           std::vector<std::string>*, TakeText, TakeTexts>;

// "" for a value that may be, else why it is refused: "needs a number above 0, not '0'".
using Check = std::function<std::string(const std::string& text)>;

// Refuses texts, or numbers, for which `holds` is false: "needs EXPECTED, not 'TEXT'".
Check Needs(const std::string& expected, std::function<bool(const std::string& text)> holds);
Check NeedsNumber(const std::string& expected, std::function<bool(double number)> holds);

// The first four fields are all that most rows have: {"--steps", &values.steps, "N", "Steps"}.
struct Option {
  std::string names = {};  // "-b,--min_bytes"; "--x,!--nox" with a name to turn it off; "DIR": an
                           // operand
  Place place = {};
  // What stands for the value in --help, "[N]" where it may be left out; "": nothing of a flag,
  // else TEXT.  By the shape a value is refused that nobody means:
  //   * but for free text ("TEXT", "ARG"), an empty one or one that is another option, as where a
  //     variable of a script is not set: --data_dir "$DATA", --export_dir $DIR --num_iter=9
  //   * what is no whole number ("N"), or no number ("X", "SECONDS"): 8.0, 1e3; 0x10, 1_000
  // and it is read: 010 is ten, 1K is 1024 ("BYTES").  Of a list, "N,..." is one
  // word with commas in it and "ARG" one word whatever it looks like, each time the option is
  // given; of any other shape all words up to the next option are in the list.
  std::string shape = {};
  std::string help = {};
  std::string group = {};                        // heading in --help; "": Options
  std::optional<std::string> default_text = {};  // instead of what is in `place`; of a value
                                                 // that may be left out what stands for it
  std::vector<std::string> choices = {};         // all that may be written; none: anything
  std::vector<Check> checks = {};
  bool is_required = false;
  bool last_counts = false;   // given twice; else that is refused
  std::string excludes = {};  // a row before this one, beside which it is refused
};

// Rows with something that few have.
inline Option Required(Option row) {
  row.is_required = true;
  return row;
}
inline Option OneOf(Option row, std::vector<std::string> choices) {
  row.choices = std::move(choices);
  return row;
}
inline Option Checked(Option row, Check check) {
  row.checks.push_back(std::move(check));
  return row;
}
inline Option WithDefault(Option row, std::string text) {
  row.default_text = std::move(text);
  return row;
}

// A subcommand, or all of a program.  Operands are taken in the order of their rows.
struct Command {
  std::string name = {};
  std::string help = {};
  std::vector<Option> options = {};
  std::vector<Command> commands = {};  // below it, which are named before its operands
  // Called, where none below it was named: once its own words are read, and at the end, when it
  // returns what is wrong with the values together, or "".
  std::function<void()> choose = {};
  std::function<std::string()> finish = {};
};

// A command that makes `chosen` its `value`.
template <typename Choice>
Command MakeCommand(Choice& chosen, Choice value, std::string name, std::string help,
                    std::vector<Option> options) {
  return {.name = std::move(name),
          .help = std::move(help),
          .options = std::move(options),
          .choose = [&chosen, value] { chosen = value; }};
}

struct Program {
  Command root = {};
  std::string version = {};  // text of --version; "": that is no option, or one of the rows
  std::string version_help = "Display program version information and exit";
  std::string footer = {};  // below every --help
  Option help = {"-h,--help", {}, "", "Print this help message and exit"};
  bool needs_command = false;
  // Errors say where help is; an unknown argument comes last, with what may be meant.  Else it
  // comes before Command::finish.
  bool adds_hints = true;
};

// What a page says of a row.
bool IsOperand(const Option& row);
bool IsFlag(const Option& row);
bool IsList(const Option& row);                       // of as many words as there are
std::vector<std::string> NamesOf(const Option& row);  // with their dashes
std::string DefaultOf(const Option& row);             // "" for none

// A command line that is wrong: what() says where, and what is right.  Of an argument it repeats
// the first characters (kMaxShownCharacters).
class UsageError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// An argument that none of the rows is for, of a program without hints.
class UnknownArgument : public UsageError {
 public:
  UnknownArgument(const std::string& message, std::string argument)
      : UsageError(message), argument(std::move(argument)) {}
  std::string argument;
};

struct Parsed {
  std::string answer;           // of --help or --version: print it and end; "" otherwise
  std::set<std::string> given;  // of the program's own options, by all names: "--seed"
};

// Reads `arguments`, without the program's name, into the places.  Throws UsageError.
Parsed Parse(const Program& program, const std::vector<std::string>& arguments);

}  // namespace support
