// SPDX-License-Identifier: Apache-2.0

#include "ddldata/class_hints.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

namespace trainer {
namespace {

// Letters of ASCII in small.
std::string FoldedCase(std::string_view name) {
  std::string folded(name);
  std::ranges::transform(folded, folded.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return folded;
}

struct LetterForms {
  std::string shape;       // with '?' for each letter beyond ASCII, however it is written
  bool has_marks = false;  // accents as characters of their own, U+0300 to U+036F
};

LetterForms FormsOf(std::string_view name) {
  LetterForms forms;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const auto next = static_cast<unsigned char>(i + 1 < name.size() ? name[i + 1] : '\0');
    const bool is_mark = byte == 0xcc || (byte == 0xcd && next <= 0xaf);
    if (is_mark) {
      forms.has_marks = true;
      if (!forms.shape.empty()) forms.shape.back() = '?';
    } else if (byte < 0x80) {
      forms.shape += name[i];
    } else if (byte >= 0xc0) {
      forms.shape += '?';
    }
  }
  return forms;
}

bool IsNameOfSplit(std::string_view name) {
  constexpr std::string_view kNames[] = {"train",      "training", "val",  "valid",
                                         "validation", "test",     "eval", "dev"};
  return std::ranges::find(kNames, FoldedCase(name)) != std::end(kNames);
}

}  // namespace

std::string DescribeLikeClass(const std::string& name, const std::set<std::string>& names) {
  const LetterForms forms = FormsOf(name);
  for (const std::string& other : names) {
    if (FoldedCase(other) == FoldedCase(name)) {
      return "; the class " + other + " differs from it in capital letters: give both one name";
    }
    const LetterForms of_other = FormsOf(other);
    if (of_other.shape == forms.shape && of_other.has_marks != forms.has_marks) {
      return "; the class " + other +
             " looks the same, but one has accents as characters of their own, as macOS writes "
             "them: give both one name (convmv --nfc)";
    }
  }
  return "";
}

std::string DescribeNestedDirectories(const ImageListing& listing) {
  std::map<std::string_view, std::set<std::string_view>>
      classes_of;  // by directories in their directories
  std::set<std::string_view> classes;
  std::string_view root;
  bool has_images_beside = false;
  for (const InputImage& image : listing.images) {
    const std::string_view path = image.path;
    const std::size_t end = path.find('/');
    if (listing.containers[image.container].is_tar || end == std::string_view::npos) return "";
    const std::size_t end_of_next = path.find('/', end + 1);
    root = listing.containers[image.container].path;
    classes.insert(path.substr(0, end));
    if (end_of_next == std::string_view::npos) {
      has_images_beside = true;
    } else {
      classes_of[path.substr(end + 1, end_of_next - end - 1)].insert(path.substr(0, end));
    }
  }
  const std::string rule =
      ": the class of an image is the directory right below the one that is given";
  if (!classes.empty() && std::ranges::all_of(classes, IsNameOfSplit)) {
    const auto train = std::ranges::find_if(
        classes, [](std::string_view name) { return FoldedCase(name).starts_with("train"); });
    const std::string_view meant = train == classes.end() ? *classes.begin() : *train;
    return "the classes have the names of splits, such as " + std::string(meant) + rule +
           "; did you mean " + std::string(root) + "/" + std::string(meant) + "?";
  }
  std::set<std::string_view> with_repeated;
  std::string example;
  for (const auto& [directory, of] : classes_of) {
    if (of.size() < 2) continue;
    with_repeated.insert(of.begin(), of.end());
    if (example.empty()) {
      example = std::string(directory) + " in " + std::string(*of.begin()) + " and in " +
                std::string(*std::next(of.begin()));
    }
  }
  if (has_images_beside || with_repeated.empty() || with_repeated.size() < classes.size())
    return "";
  return "directories of one name are in several classes, " + example + rule;
}

}  // namespace trainer
