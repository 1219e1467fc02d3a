// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/class_list.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "support/number.h"
#include "trainer/core/file.h"
#include "trainer/data/files/text_lines.h"

namespace trainer {
namespace {

constexpr std::string_view kLabelsHeader = "label\tclass\ttext";

struct Escape {
  char plain;
  char letter;
};
constexpr Escape kEscapes[] = {{'\\', '\\'}, {'\t', 't'}, {'\n', 'n'}, {'\r', 'r'}};

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto* found = std::ranges::find(kEscapes, c, &Escape::plain);
    if (found == std::end(kEscapes)) {
      escaped += c;
    } else {
      escaped += {'\\', found->letter};
    }
  }
  return escaped;
}

std::string Unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    const auto* found =
        std::ranges::find(kEscapes, is_escape ? text[i + 1] : '\0', &Escape::letter);
    if (is_escape && found != std::end(kEscapes)) {
      plain += found->plain;
      ++i;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Up to the next tab, which is taken off with it.
std::string_view TakeField(std::string_view& line) {
  const std::size_t length = std::min(line.find('\t'), line.size());
  const std::string_view field = line.substr(0, length);
  line.remove_prefix(std::min(length + 1, line.size()));
  return field;
}

ImageClass ParseLabel(std::string_view line, const std::string& path, std::size_t number) {
  const std::string label = std::to_string(number - 1);
  if (TakeField(line) != label) {
    throw BadLine(path, number, "expected the label " + label + ", a tab and its class");
  }
  ImageClass one;
  one.name = Unescaped(TakeField(line));
  one.text = Unescaped(TakeField(line));
  if (one.name.empty()) throw BadLine(path, number, "the label " + label + " has no class");
  return one;
}

ImageClass ParseListed(std::string_view line) {
  const std::size_t blank = std::min(line.find_first_of(kBlanks), line.size());
  return {std::string(line.substr(0, blank)), std::string(Trimmed(line.substr(blank)))};
}

// Names with their numbers behind them, as torchvision's class_to_idx is printed, mean the order of
// these, which lines in another order are not in.
void RejectOtherOrder(const std::vector<ImageClass>& classes, const std::string& path) {
  std::vector<std::size_t> numbers;
  for (const ImageClass& one : classes) {
    const auto number = support::WholeNumber<std::size_t>(one.text);
    if (!number) return;
    numbers.push_back(*number);
  }
  std::vector<std::size_t> sorted = numbers;
  std::ranges::sort(sorted);
  if (sorted.empty() || sorted.front() > 1) return;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != sorted.front() + i) return;
  }
  const auto [other, expected] = std::ranges::mismatch(numbers, sorted);
  if (other == numbers.end()) return;
  const auto place = static_cast<std::size_t>(other - numbers.begin());
  throw BadLine(path, place + 1,
                "the class " + classes[place].name + " has the number " + std::to_string(*other) +
                    " behind it, but its line is that of number " + std::to_string(*expected) +
                    ": labels count the lines; sort them by the numbers (sort -n -k 2)");
}

bool HasLabels(std::string_view text) {
  return WithoutByteOrderMark(text).starts_with(kLabelsHeader);
}

std::string PathOfLabels(const std::string& dir) {
  return (std::filesystem::path(dir) / kLabelsName).string();
}

}  // namespace

std::vector<ImageClass> ParseClassList(std::string_view text, const std::string& path) {
  const bool has_labels = HasLabels(text);
  std::vector<ImageClass> classes;
  std::set<std::string, std::less<>> names;
  ForEachLine(text, path, [&](std::string_view line, std::size_t number) {
    if (has_labels && number == 1) return;
    ImageClass one = has_labels ? ParseLabel(line, path, number) : ParseListed(line);
    if (!names.insert(one.name).second) {
      throw BadLine(path, number, "the class " + one.name + " is there twice");
    }
    classes.push_back(std::move(one));
  });
  if (!has_labels) RejectOtherOrder(classes, path);
  return classes;
}

std::vector<ImageClass> ReadClassList(const std::string& path) {
  return ParseClassList(ReadWholeFile(path, kMaxLabelListBytes), path);
}

std::string FormatLabels(const std::vector<ImageClass>& classes) {
  std::string text = std::string(kLabelsHeader) + "\n";
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto& [name, description] = classes[i];
    text += std::to_string(i + 1) + "\t" + (name.empty() ? std::to_string(i) : Escaped(name)) +
            "\t" + Escaped(description) + "\n";
  }
  return text;
}

void WriteLabels(const std::string& dir, const std::vector<ImageClass>& classes) {
  const std::string path = PathOfLabels(dir);
  const std::string text = FormatLabels(classes);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    WriteWholeFile(path, text);
  } else if (ReadWholeFile(path, kMaxLabelListBytes) != text) {
    throw Error(EX_USAGE, path + " is there already and says something else: move it away");
  }
}

std::vector<ImageClass> ReadLabels(const std::string& dir) {
  const std::string path = PathOfLabels(dir);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const std::string text = ReadWholeFile(path, kMaxLabelListBytes);
  if (!HasLabels(text)) throw BadLine(path, 1, "this is not what ddldata convert writes");
  return ParseClassList(text, path);
}

}  // namespace trainer
