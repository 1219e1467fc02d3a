// SPDX-License-Identifier: Apache-2.0

#include "manual/roff.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "support/build.h"
#include "support/reference.h"

namespace manual {
namespace {

// Longest line of the source, as man-pages(7) wants it; a longer word stays whole.
constexpr std::size_t kLineWidth = 78;

// Characters that roff would take for something else.  A plain '-' is a hyphen, which cannot be
// copied to a command line.
std::string EscapedCharacter(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    case '`':
      return "\\(ga";
    default:
      return {c};
  }
}

// Text as it stands, of which no word at the start of a line is taken for a request.
std::string Escaped(const std::string& text) {
  std::string out;
  std::size_t column = 0;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    std::string word = text[start] == '.' ? "\\&" : "";
    for (std::size_t i = start; i < end; ++i) word += EscapedCharacter(text[i]);
    if (column > 0) {
      const bool fits = column + 1 + word.size() <= kLineWidth;
      out += fits ? ' ' : '\n';
      column = fits ? column + 1 : 0;
    }
    out += word;
    column += word.size();
    start = end + 1;
  }
  return out;
}

std::string Bold(const std::string& text) { return "\\fB" + Escaped(text) + "\\fR"; }
std::string Italic(const std::string& text) { return "\\fI" + Escaped(text) + "\\fR"; }

std::string UpperCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// A tagged paragraph.
std::string Term(const std::string& tag, const std::string& text) {
  return ".TP\n" + tag + "\n" + Escaped(text) + "\n";
}

std::string FormatOption(const Option& option) {
  std::string tag;
  for (const std::string& name : option.names) tag += (tag.empty() ? "" : ", ") + Bold(name);
  if (!option.value.shape.empty()) {
    tag += option.value.is_optional ? "[=" + Italic(option.value.shape) + "]"
                                    : " " + Italic(option.value.shape);
  }
  return Term(tag, option.help);
}

std::string FormatOptions(const Command& command) {
  std::string text;
  for (const Operand& operand : command.operands) {
    std::string help = operand.help;
    if (!operand.value.choices.empty()) {
      std::string list;
      for (const std::string& choice : operand.value.choices) {
        list += (list.empty() ? "" : ", ") + choice;
      }
      help += ": " + list;
    }
    text += Term(Italic(operand.value.shape) + (operand.may_repeat ? " ..." : ""), help);
  }
  for (const OptionGroup& group : command.groups) {
    if (!group.title.empty()) text += ".SS " + Escaped(group.title) + "\n";
    for (const Option& option : group.options) text += FormatOption(option);
  }
  return text;
}

std::string FormatTerms(const std::string& title, const Terms& terms) {
  if (terms.empty()) return "";
  std::string text = ".SH " + title + "\n";
  for (const auto& [term, meaning] : terms) text += Term(Bold(term), meaning);
  return text;
}

}  // namespace

std::string FormatRoff(const Page& page, const std::string& date, const std::string& release) {
  std::string text = ".\\\" Made from the program's option table when it was built.\n.TH " +
                     UpperCase(page.names[0]) + " 1 " + date + " \"" + release +
                     "\" \"User Commands\"\n.SH NAME\n";
  for (const std::string& name : page.names) {
    text += Escaped(name) + (name == page.names.back() ? " \\-\n" : ",\n");
  }
  text += Escaped(page.summary) + "\n.SH SYNOPSIS\n.nf\n";
  for (const std::string& line : page.synopsis) text += Escaped(line) + "\n";
  text += ".fi\n.SH DESCRIPTION\n";
  for (std::size_t i = 0; i < page.description.size(); ++i) {
    text += (i == 0 ? "" : ".PP\n") + Escaped(page.description[i]) + "\n";
  }
  if (!page.commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const Command& command : page.commands) {
      text += ".SS " + Escaped(command.name) + "\n" + Escaped(command.help) + ".\n" +
              FormatOptions(command);
    }
  }
  text += ".SH OPTIONS\n" + FormatOptions(page.program);
  text += FormatTerms("EXIT STATUS", page.exit_status);
  text += FormatTerms("SIGNALS", page.signals);
  text += FormatTerms("ENVIRONMENT", page.environment);
  text += FormatTerms("FILES", page.files);
  text += FormatTerms("EXAMPLES", page.examples);
  text += ".SH BUGS\n" +
          Escaped("Report bugs at " + support::BugAddress() +
                  ", and faults that others could use, in private, to " +
                  support::SecurityAddress() + ".") +
          "\n";
  text += ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < page.see_also.size(); ++i) {
    const std::size_t section = page.see_also[i].find('(');
    text += Bold(page.see_also[i].substr(0, section)) + page.see_also[i].substr(section) +
            (i + 1 < page.see_also.size() ? ",\n" : "\n");
  }
  return text + ".PP\n" + Escaped(support::kReferenceLine) + "\n";
}

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
