// SPDX-License-Identifier: Apache-2.0

#include "manual/parser_text.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace manual {
namespace {

// CLI11's name of a type, "TEXT:{hostlist,cpu-list}" for a choice.  What it calls TEXT is one only
// where no option says better.
Value ValueOf(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  std::string shape = option.get_type_name();
  const std::size_t brace = shape.find('{');
  if (brace != std::string::npos) {
    shape = shape.substr(brace + 1, shape.find('}', brace) - brace - 1);
    std::replace(shape.begin(), shape.end(), ',', '|');
  }
  return ValueOfShape(shape);
}

Operand OperandOf(const CLI::Option& option) {
  Operand operand;
  operand.value = ValueOf(option);
  // An operand's own name says what it is; its choices stay.
  const std::string name = option.get_name(true);
  operand.value.shape = name;
  operand.help = option.get_description();
  operand.may_repeat = option.get_items_expected_max() > 1;
  return operand;
}

Option OptionOf(const CLI::Option& option) {
  Option text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  text.value = ValueOf(option);
  text.help = option.get_description();
  if (!option.get_default_str().empty()) text.help += " [" + option.get_default_str() + "]";
  return text;
}

}  // namespace

Command CommandOf(const CLI::App& app) {
  Command command;
  command.name = app.get_name();
  command.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.operands.push_back(OperandOf(*option));
      continue;
    }
    const std::string title = option->get_group() == "Options" ? "" : option->get_group();
    if (command.groups.empty() || command.groups.back().title != title) {
      command.groups.push_back({title, {}});
    }
    command.groups.back().options.push_back(OptionOf(*option));
  }
  return command;
}

std::vector<Command> SubcommandsOf(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(CommandOf(*subcommand));
    for (Command& below : SubcommandsOf(*subcommand)) {
      below.name = subcommand->get_name() + " " + below.name;
      commands.push_back(std::move(below));
    }
  }
  return commands;
}

}  // namespace manual
