// SPDX-License-Identifier: Apache-2.0

#include "manual/bash_completion.h"

#include <algorithm>
#include <map>

#include "manual/completion_template.h"

namespace manual {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// What completion.bash.in calls a value.
std::string KindOf(const Value& value) {
  if (value.shape.empty()) return "none";
  std::string kind = "any";
  if (!value.choices.empty()) {
    kind = "words " + Joined(value.choices);
  } else if (value.shape.starts_with("FILE")) {
    kind = "file";
  } else if (value.shape.ends_with("DIR")) {
    kind = "dir";
  }
  return (value.is_optional ? "=" : "") + kind;
}

std::string SubcommandOf(const Page& page, const Command& command) {
  return &command == &page.program ? "" : command.name;
}

std::vector<const Command*> AllCommands(const Page& page) {
  std::vector<const Command*> commands = {&page.program};
  for (const Command& command : page.commands) commands.push_back(&command);
  return commands;
}

// "-n" as "--n" too, and the other way round.
std::vector<std::string> Spellings(const Page& page, const Option& option) {
  std::vector<std::string> names = option.names;
  if (!page.one_dash_is_enough) return names;
  for (const std::string& name : option.names) {
    names.push_back(name.starts_with("--") ? name.substr(1) : "-" + name);
  }
  return names;
}

std::string OptionNames(const Page& page) {
  std::string text;
  for (const Command* command : AllCommands(page)) {
    std::vector<std::string> names;
    for (const OptionGroup& group : command->groups) {
      for (const Option& option : group.options) {
        const bool needs_value = !option.value.shape.empty() && !option.value.is_optional;
        for (const std::string& name : option.names) {
          names.push_back(name + (needs_value && name.starts_with("--") ? "=" : ""));
        }
      }
    }
    text += "    '" + SubcommandOf(page, *command) + "') echo '" + Joined(names) + "' ;;\n";
  }
  return text;
}

std::string OptionValues(const Page& page) {
  std::string text;
  for (const Command* command : AllCommands(page)) {
    for (const OptionGroup& group : command->groups) {
      for (const Option& option : group.options) {
        if (option.value.shape.empty()) continue;
        std::string patterns;
        for (const std::string& name : Spellings(page, option)) {
          patterns +=
              (patterns.empty() ? "'" : " | '") + SubcommandOf(page, *command) + " " + name + "'";
        }
        text += "    " + patterns + ") value='" + KindOf(option.value) + "' ;;\n";
      }
    }
  }
  return text;
}

// The commands below each command that has some.
std::string Below(const Page& page) {
  std::map<std::string, std::vector<std::string>> below;
  for (const Command& command : page.commands) {
    const std::size_t blank = command.name.find(' ');
    if (blank == std::string::npos) continue;
    below[command.name.substr(0, blank)].push_back(command.name.substr(blank + 1));
  }
  std::string text;
  for (const auto& [name, names] : below) {
    text += "    '" + name + "') echo '" + Joined(names) + "' ;;\n";
  }
  return text;
}

std::string Operands(const Page& page) {
  std::string text;
  for (const Command* command : AllCommands(page)) {
    for (std::size_t i = 0; i < command->operands.size(); ++i) {
      const std::string kind = KindOf(command->operands[i].value);
      if (kind == "any") continue;
      text += "    '" + SubcommandOf(page, *command) + " " + std::to_string(i) + "') value='" +
              kind + "' ;;\n";
    }
  }
  return text;
}

std::string RestWord(Rest rest) {
  switch (rest) {
    case Rest::kProgram:
      return "program";
    case Rest::kOptionsAndProgram:
      return "any";
    case Rest::kOperands:
      break;
  }
  return "operands";
}

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string FormatBashCompletion(const Page& page) {
  std::string id = page.names[0];
  std::replace(id.begin(), id.end(), '-', '_');
  std::vector<std::string> commands;
  for (const Command& command : page.commands) {
    if (command.name.find(' ') == std::string::npos) commands.push_back(command.name);
  }
  const std::map<std::string, std::string> values = {
      {"@ID@", id},
      {"@NAMES@", Joined(page.names)},
      {"@OPTIONS@\n", OptionNames(page)},
      {"@BELOW@\n", Below(page)},
      {"@VALUES@\n", OptionValues(page)},
      {"@OPERANDS@\n", Operands(page)},
      {"@REST@", RestWord(page.rest)},
      {"@COMMANDS@", Joined(commands)},
      {"@ONE_DASH@", page.one_dash_is_enough ? "yes" : "no"},
  };
  std::string text = kCompletionTemplate;
  for (const auto& [from, to] : values) ReplaceAll(text, from, to);
  return text;
}

}  // namespace manual
