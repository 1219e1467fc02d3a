// SPDX-License-Identifier: Apache-2.0

#include "ddldata/label_list.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/data/files/text_lines.h"
#include "trainer/data/images/image_files.h"

namespace trainer {
namespace {

std::optional<std::size_t> ParsePlace(std::string_view text) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

// Where the field ends that the line begins with: at one of `separators` that is not in quotes.
std::size_t EndOfField(std::string_view line, std::string_view separators) {
  if (!line.starts_with('"')) return line.find_first_of(separators);
  std::size_t quote = line.find('"', 1);
  while (quote != std::string_view::npos && line.substr(quote + 1).starts_with('"')) {
    quote = line.find('"', quote + 2);
  }
  return line.find_first_of(separators, quote == std::string_view::npos ? 0 : quote);
}

// Without the quotes around it, between which two are one; with one between them, as it is.
std::string WithoutQuotes(std::string_view field) {
  constexpr std::size_t kQuotes = 2;
  if (field.size() < kQuotes || !field.starts_with('"') || !field.ends_with('"')) {
    return std::string(field);
  }
  const std::string_view inner = field.substr(1, field.size() - kQuotes);
  std::string plain;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    plain += inner[i];
    if (inner[i] != '"') continue;
    if (!inner.substr(i).starts_with("\"\"")) return std::string(field);
    ++i;
  }
  return plain;
}

struct NumbersInName {
  std::string shape;                                         // the name with '#' for each number
  std::vector<std::pair<std::size_t, std::string>> numbers;  // digits without zeros in front
};

NumbersInName SplitAtNumbers(std::string_view name) {
  NumbersInName parts;
  bool in_number = false;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && !in_number) {
      parts.shape += '#';
      parts.numbers.emplace_back();
    } else if (!is_digit) {
      parts.shape += c;
    }
    in_number = is_digit;
    if (!is_digit) continue;
    auto& [length, digits] = parts.numbers.back();
    if (digits == "0") digits.clear();
    digits += c;
    length = digits.size();
  }
  return parts;
}

}  // namespace

ImageLabels::ImageLabels(std::string_view text, std::string path,
                         const std::vector<ImageClass>& classes_by_number)
    : path_(std::move(path)) {
  ForEachLine(text, path_, [&](std::string_view line, std::size_t number) {
    if (number == 1 && line == "ImageId,PredictionString") {
      has_boxes_ = true;
      return;
    }
    Take(line, number, classes_by_number);
  });
}

void ImageLabels::Take(std::string_view line, std::size_t line_number,
                       const std::vector<ImageClass>& classes_by_number) {
  std::size_t separator = EndOfField(line, ",\t");
  if (separator == std::string_view::npos) separator = EndOfField(line, " ");
  const bool has_file = separator != std::string_view::npos;
  if (line_number > 1 && has_file != in_order_.empty()) {
    throw BadLine(path_, line_number,
                  "each line must be CLASS, or each line FILE and CLASS: here they are mixed");
  }
  std::string_view field = line;
  if (has_file) {
    field = Trimmed(line.substr(separator + 1));
    field = Trimmed(field.substr(0, EndOfField(field, line.substr(separator, 1))));
  }
  std::string name = WithoutQuotes(field);
  if (has_boxes_) name = name.substr(0, name.find_first_of(kBlanks));
  if (name.empty()) throw BadLine(path_, line_number, "there is no class behind the file");
  if (const auto place = ParsePlace(name)) {
    if (classes_by_number.empty()) {
      throw BadLine(path_, line_number,
                    "the class is the number " + name +
                        ": which one that is must be said by --class_numbers=FILE, whose n-th line "
                        "names class n (in ILSVRC2012's development kit meta.mat does, in another "
                        "order than that of the names)");
    }
    if (*place < 1 || *place > classes_by_number.size()) {
      throw BadLine(path_, line_number,
                    "the class " + name + " is not 1 to " +
                        std::to_string(classes_by_number.size()) +
                        ", the lines of --class_numbers");
    }
    name = classes_by_number[*place - 1].name;
  }
  if (!has_file) {
    in_order_.push_back(name);
    return;
  }
  const std::string path = WithoutQuotes(Trimmed(line.substr(0, separator)));
  const std::string file(WithoutImageEnding(BaseName(path)));
  if (!by_file_.emplace(file, name).second) {
    throw BadLine(path_, line_number, "the image " + file + " is there twice");
  }
}

// Of lines that are to be classes.
void ImageLabels::RejectFilesAsClasses(const std::vector<std::string>& names) const {
  std::set<std::string_view> files;
  for (const std::string& name : names) files.insert(WithoutImageEnding(name));
  for (std::size_t i = 0; i < in_order_.size(); ++i) {
    const std::string& line = in_order_[i];
    const std::size_t separator = line.find_first_of(";:|");
    const std::string path = WithoutQuotes(Trimmed(line.substr(0, separator)));
    const bool is_file = separator != std::string::npos || HasImageEnding(path);
    if (!is_file || !files.contains(WithoutImageEnding(BaseName(path)))) continue;
    throw BadLine(
        path_, i + 1,
        Quoted(line) + " begins with the name of an image: write FILE,CLASS, with a comma");
  }
}

// Lines were most likely written in the order of the numbers.
void ImageLabels::RejectOrderOfNumbers(const std::vector<std::string>& names) const {
  struct Place {
    std::size_t line = 0;
    std::string_view name;
  };
  std::map<std::string, Place> last;  // by names with '#' for each number
  std::size_t shapes = 0;
  std::string first;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const NumbersInName numbers = SplitAtNumbers(WithoutImageEnding(names[i]));
    const auto [before, is_new] = last.emplace(numbers.shape, Place{i, names[i]});
    if (is_new) {
      ++shapes;
      continue;
    }
    const NumbersInName of_before = SplitAtNumbers(WithoutImageEnding(before->second.name));
    if (first.empty() && numbers.numbers < of_before.numbers) {
      first = "line " + std::to_string(before->second.line + 1) + " would be the class of " +
              std::string(before->second.name) + ", and line " + std::to_string(i + 1) +
              " that of " + names[i];
    }
    before->second = {i, names[i]};
  }
  // Names in which numbers are by chance have many forms.
  constexpr std::size_t kMinNamesOfShape = 2;
  if (first.empty() || names.size() < kMinNamesOfShape * shapes) return;
  throw Error(EX_DATAERR,
              path_ +
                  ": a class in each line counts the images in the order of their names, in "
                  "which numbers have another order: " +
                  first + "; write FILE,CLASS in each line");
}

std::vector<std::string> ImageLabels::ClassesOf(const std::vector<std::string>& names,
                                                const std::string& source) const {
  RejectFilesAsClasses(names);
  const std::size_t lines = in_order_.size() + by_file_.size();
  if (lines != names.size()) {
    throw Error(
        EX_DATAERR,
        path_ + " names the classes of " +
            support::Counted(static_cast<long long>(lines), "image") + ", but " + source + " has " +
            std::to_string(names.size()) + ": the two are not of one set" +
            (lines == names.size() + 1 ? "; is the first line a header? Then remove it" : ""));
  }
  if (by_file_.empty()) {
    RejectOrderOfNumbers(names);
    return in_order_;
  }
  std::vector<std::string> classes;
  for (const std::string& name : names) {
    const auto found = by_file_.find(WithoutImageEnding(name));
    if (found == by_file_.end()) {
      throw Error(EX_DATAERR, path_ + " has no line for the image " + name + " of " + source +
                                  "; it has one for " + Quoted(by_file_.begin()->first));
    }
    classes.push_back(found->second);
  }
  return classes;
}

}  // namespace trainer
