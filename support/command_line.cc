// SPDX-License-Identifier: Apache-2.0

#include "support/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "support/number.h"
#include "support/quoting.h"
#include "support/spelling.h"

namespace support {

namespace {

constexpr std::string_view kArgument = "ARG";
// Free text, and flags.
constexpr std::array<std::string_view, 3> kMayBeEmpty = {"", "TEXT", kArgument};
constexpr std::array<std::string_view, 5> kNumbers = {"N", "N,...", "BYTES", "SECONDS",
                                                      "SECONDS|auto|off"};

template <std::size_t kCount>
bool IsAmong(const std::array<std::string_view, kCount>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string RejectNoValue(const std::string& text) {
  if (!text.empty() && !text.starts_with("--")) return "";
  return text.empty()
             ? "has no value: is a variable of your script empty?"
             : "has no value but the option '" + text + "': is a variable of your script empty?";
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "-010" to "-10", "00" to "0", "010K" to "10K", which CLI11 takes for octal; "0.5" stays.
std::string RemoveZeros(std::string& text) {
  const std::size_t begin = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  std::size_t end = begin;
  while (end + 1 < text.size() && text[end] == '0' && IsDigit(text[end + 1])) ++end;
  text.erase(begin, end - begin);
  return "";
}

// A decimal number.  What else CLI11 takes goes by its version: 0x10, 0b11, 1_000, blanks.
template <typename Number>
std::optional<Number> Decimal(const std::string& text) {
  const bool has_plus = text.starts_with('+') && !text.starts_with("+-");
  return WholeNumber<Number>(std::string_view(text).substr(has_plus ? 1 : 0));
}

// What CLI11 would call "Could not convert".
std::string RejectFraction(const std::string& text) {
  if (Decimal<std::int64_t>(text) || Decimal<std::uint64_t>(text)) return "";
  return "needs a whole number, not '" + text + "'";
}

std::string RejectNoNumber(const std::string& text) {
  return Decimal<double>(text) ? "" : "needs a number, not '" + text + "'";
}

// Digits, and letters behind them.
std::string RejectNoSize(const std::string& text) {
  const auto unit = std::find_if_not(text.begin(), text.end(), IsDigit);
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  const bool is_size = unit != text.begin() && std::all_of(unit, text.end(), is_letter);
  return is_size ? "" : "needs a size such as 64K, not '" + text + "'";
}

std::string RejectNoTruth(const std::string& text) {
  bool value = false;
  return CLI::detail::lexical_cast(text, value) ? "" : "needs true or false, not '" + text + "'";
}

void RejectSlips(CLI::Option& option) {
  const std::string name = option.get_type_name();
  if (!IsAmong(kMayBeEmpty, name)) option.check(CLI::Validator(RejectNoValue, ""));
  const bool is_free_text = IsAmong(kMayBeEmpty, name) && !option.get_positional();
  if (!is_free_text) option.check(CLI::Validator(DescribeSlip, ""));
  if (name == "N" || name == "N,...") option.check(CLI::Validator(RejectFraction, ""));
  if (name == "X" || name == "SECONDS") option.check(CLI::Validator(RejectNoNumber, ""));
  if (option.get_expected_max() == 0) option.check(CLI::Validator(RejectNoTruth, ""));
  // A transformation is done before those that were added earlier, and before all checks.
  if (IsAmong(kNumbers, name)) option.transform(CLI::Validator(RemoveZeros, ""));
  if (name == "BYTES") option.transform(CLI::Validator(RejectNoSize, ""));
}

CLI::Option* AddPlace(CLI::App& app, const Option& row) {
  return std::visit(
      [&](const auto& place) -> CLI::Option* {
        using T = std::decay_t<decltype(place)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return app.add_flag(row.names)->description(row.help);
        } else if constexpr (std::is_same_v<T, bool*>) {
          return app.add_flag(row.names, *place, row.help);
        } else if constexpr (std::is_same_v<T, TakeText>) {
          return app.add_option_function<std::string>(row.names, place, row.help);
        } else if constexpr (std::is_same_v<T, TakeTexts>) {
          return app.add_option_function<std::vector<std::string>>(row.names, place, row.help);
        } else {
          return app.add_option(row.names, *place, row.help);
        }
      },
      row.place);
}

// Of a list.
bool TakesOneWord(const Option& row) {
  return row.shape == kArgument || row.shape.ends_with(",...");
}

Check OneOfThem(const std::vector<std::string>& choices) {
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
  return Needs("one of " + list, [choices](const std::string& text) {
    return std::find(choices.begin(), choices.end(), text) != choices.end();
  });
}

void AddRow(CLI::App& app, const Option& row) {
  CLI::Option* option = AddPlace(app, row);
  option->default_str(DefaultOf(row))->required(row.is_required);
  if (!row.shape.empty()) option->type_name(row.shape);
  if (row.shape.starts_with('[')) option->expected(0, 1);
  if (row.shape == "BYTES") {
    option->transform(CLI::AsSizeValue(/*kb_is_1000=*/false).description(""));
  }
  if (!row.group.empty()) option->group(row.group);
  if (!row.choices.empty()) option->check(CLI::Validator(OneOfThem(row.choices), ""));
  for (const Check& check : row.checks) option->check(CLI::Validator(check, ""));
  if (TakesOneWord(row)) {
    option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (row.shape != kArgument) option->delimiter(',');
  }
  if (row.last_counts) option->take_last();
  if (!row.excludes.empty()) option->excludes(app.get_option(row.excludes));
}

// "list DIR", as what stands before the operands of the command above it.
std::string FirstWords(const Command& command) {
  for (const Option& row : command.options) {
    if (IsOperand(row)) return command.name + " " + row.names;
  }
  return command.name;
}

void AddCommand(CLI::App& app, const Command& command, const Program& program) {
  app.footer(program.footer);
  app.allow_extras(program.adds_hints);
  for (const Option& row : command.options) AddRow(app, row);
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    RejectSlips(*option);
  }
  for (const Command& below : command.commands) {
    CLI::App* subcommand = app.add_subcommand(below.name, below.help);
    AddCommand(*subcommand, below, program);
    subcommand->parse_complete_callback([subcommand, &below] {
      if (subcommand->get_subcommands().empty() && below.choose) below.choose();
    });
    subcommand->preparse_callback([&app, &command, &below](std::size_t) {
      for (const CLI::Option* option : app.get_options()) {
        if (option->get_positional() && option->count() > 0) {
          throw CLI::ValidationError(command.name + " " + FirstWords(below) +
                                     " is the order of the words");
        }
      }
    });
  }
  app.callback([&app, &command] {
    if (!command.finish || !app.get_subcommands().empty()) return;
    if (const std::string wrong = command.finish(); !wrong.empty()) {
      throw CLI::ValidationError(wrong);
    }
  });
}

std::string DescribeUnknown(const std::string& argument, const CLI::App& to,
                            const std::string& program) {
  std::vector<std::string> known;
  for (const CLI::Option* option : to.get_options()) {
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
  }
  for (const CLI::App* command : to.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const std::string nearest = NearestSpelling(argument.substr(0, argument.find('=')), known);
  const std::string dash = DescribeDash(argument);
  if (!dash.empty()) return "unknown argument " + argument + dash;
  return "unknown argument " + argument +
         (nearest.empty() ? " (" + program + " --help lists all)"
                          : "; did you mean " + nearest + "?");
}

void RejectUnknown(const CLI::App& app, const std::string& program) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  const std::vector<std::string> unknown = chosen->remaining();
  if (!unknown.empty()) throw UsageError(DescribeUnknown(unknown.front(), *chosen, program));
}

// What CLI11 has found, in the words of the other messages: its own differ from version to version.
std::string WhatIsWrong(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string name = text.substr(0, text.find_first_of(": "));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return name +
           (text.find("missing") != std::string::npos ? " needs a value" : " is given twice");
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    return name + " does not go with " + text.substr(text.rfind(' ') + 1) +
           ": leave out one of the two";
  }
  return text.starts_with("A subcommand") ? "a command is required" : text;
}

std::string TextOf(const std::string& value) { return value; }
template <typename Number>
std::string TextOf(Number value) {
  std::ostringstream text;
  text << value;
  return text.str();
}
template <typename Value>
std::string TextOf(const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ",") + TextOf(value);
  return text;
}

}  // namespace

Check Needs(const std::string& expected, std::function<bool(const std::string&)> holds) {
  return [expected, holds = std::move(holds)](const std::string& text) {
    return holds(text) ? std::string() : "needs " + expected + ", not '" + text + "'";
  };
}

Check NeedsNumber(const std::string& expected, std::function<bool(double)> holds) {
  return Needs(expected, [holds = std::move(holds)](const std::string& text) {
    const std::optional<double> value = Decimal<double>(text);
    return value && holds(*value);
  });
}

bool IsOperand(const Option& row) { return !row.names.starts_with('-'); }

bool IsFlag(const Option& row) {
  return std::holds_alternative<std::monostate>(row.place) ||
         std::holds_alternative<bool*>(row.place);
}

bool IsList(const Option& row) {
  return !TakesOneWord(row) && (std::holds_alternative<std::vector<std::string>*>(row.place) ||
                                std::holds_alternative<TakeTexts>(row.place));
}

std::vector<std::string> NamesOf(const Option& row) {
  std::vector<std::string> names;
  std::istringstream text(row.names);
  for (std::string name; std::getline(text, name, ',');) {
    names.push_back(name.starts_with('!') ? name.substr(1) : name);
  }
  return names;
}

std::string DefaultOf(const Option& row) {
  if (row.default_text) return *row.default_text;
  return std::visit(
      [](const auto& place) -> std::string {
        using T = std::decay_t<decltype(place)>;
        if constexpr (std::is_pointer_v<T> && !std::is_same_v<T, bool*>) {
          return TextOf(*place);
        } else {
          return "";
        }
      },
      row.place);
}

namespace {

Parsed ParseWords(const Program& program, std::vector<std::string> arguments) {
  CLI::App app(program.root.help, program.root.name);
  app.set_help_flag(program.help.names, program.help.help);
  if (!program.version.empty())
    app.set_version_flag("--version", program.version, program.version_help);
  if (program.needs_command) app.require_subcommand(1);
  AddCommand(app, program.root, program);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return {.answer = app.help(), .given = {}};
  } catch (const CLI::CallForVersion& version) {
    return {.answer = std::string(version.what()) + "\n", .given = {}};
  } catch (const CLI::ExtrasError& error) {
    throw UnknownArgument(error.what(), app.remaining(/*recurse=*/true).front());
  } catch (const CLI::ParseError& error) {
    const std::string hint = " (" + program.root.name + " --help lists the options)";
    throw UsageError(WhatIsWrong(error) + (program.adds_hints ? hint : ""));
  }
  if (program.adds_hints) RejectUnknown(app, program.root.name);
  Parsed parsed;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    for (const std::string& name : option->get_lnames()) parsed.given.insert("--" + name);
  }
  return parsed;
}

}  // namespace

Parsed Parse(const Program& program, const std::vector<std::string>& arguments) {
  try {
    return ParseWords(program, arguments);
  } catch (const UnknownArgument& error) {
    throw UnknownArgument(WithShortArguments(error.what(), arguments), error.argument);
  } catch (const UsageError& error) {
    throw UsageError(WithShortArguments(error.what(), arguments));
  }
}

}  // namespace support
