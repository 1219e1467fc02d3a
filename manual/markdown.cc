// SPDX-License-Identifier: Apache-2.0

#include "manual/markdown.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace manual {
namespace {

constexpr std::size_t kPageWidth = 120;

// Text in lines, of which no character or word is taken for Markdown.
std::string Filled(const std::string& text) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    std::string word;
    for (std::size_t i = start; i < end; ++i) {
      if (text[i] == '*' || text[i] == '<' || text[i] == '[' || text[i] == '_') word += '\\';
      word += text[i];
    }
    if (column > 0 && column + 1 + word.size() <= kPageWidth) {
      out += ' ';
      ++column;
    } else {
      if (column > 0) out += '\n';
      column = 0;
      if (word[0] == '#' || word[0] == '-' || word[0] == '+') word.insert(0, "\\");
    }
    out += word;
    column += word.size();
    start = end + 1;
  }
  return out + "\n";
}

std::string OptionSection(const Option& option) {
  std::string text = "### ";
  for (const std::string& name : option.names) {
    text += (name == option.names.front() ? "`" : ", `") + name + "`";
  }
  const std::string& shape = option.value.shape;
  if (!shape.empty()) text += option.value.is_optional ? " `[=" + shape + "]`" : " `" + shape + "`";
  return text + "\n\n" + Filled(option.help) + "\n";
}

std::string CommandSections(const Command& command, const std::string& title) {
  std::string text;
  for (const Operand& operand : command.operands) {
    text += "### `" + operand.value.shape + (operand.may_repeat ? " ...`" : "`") + "\n\n" +
            Filled(operand.help) + "\n";
  }
  for (const OptionGroup& group : command.groups) {
    if (!group.title.empty() && title.empty()) text += "## " + group.title + "\n\n";
    for (const Option& option : group.options) {
      const bool is_help = std::ranges::find(option.names, "--help") != option.names.end();
      if (!is_help || !title.empty()) text += OptionSection(option);
    }
  }
  return text.empty() || title.empty() ? text : "## " + title + "\n\n" + text;
}

// The headings of `text` as a list of links.
std::string Contents(const std::string& text) {
  std::string contents;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("## ")) continue;
    const std::string title = line.substr(3);
    std::string anchor;
    for (const unsigned char c : title) {
      if (c == ' ' || c == '-') anchor += '-';
      if (std::isalnum(c) != 0) anchor += static_cast<char>(std::tolower(c));
    }
    contents.append("- [").append(title).append("](#").append(anchor).append(")\n");
  }
  return contents.empty() ? "" : contents + "\n";
}

}  // namespace

std::string FormatMarkdown(const Page& page) {
  const std::string& name = page.names.front();
  std::string text = "# Options of " + name + "\n\n" +
                     Filled("Made from the option table of the program by ddl-manual, as " + name +
                            " --help and man " + name + " are.") +
                     "\n```text\n";
  for (const std::string& line : page.synopsis) text += line + "\n";
  std::string sections =
      CommandSections(page.program, page.commands.empty() ? "" : "Of every command");
  for (const Command& command : page.commands) {
    sections += "## " + name + " " + command.name + "\n\n" + Filled(command.help + ".") + "\n" +
                CommandSections(command, "");
  }
  sections.pop_back();
  return text + "```\n\n" + Contents(sections) + sections;
}

}  // namespace manual
