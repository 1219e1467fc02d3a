// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/class_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include "trainer/core/file.h"
#include "trainer/data/text_lines.h"

namespace trainer {

std::vector<ImageClass> ParseClassList(std::string_view text, const std::string& path) {
  std::vector<ImageClass> classes;
  std::set<std::string, std::less<>> names;
  ForEachLine(text, path, [&](std::string_view line, std::size_t number) {
    const std::size_t blank = std::min(line.find_first_of(kBlanks), line.size());
    ImageClass one{std::string(line.substr(0, blank)), std::string(Trimmed(line.substr(blank)))};
    if (!names.insert(one.name).second) {
      throw BadLine(path, number, "the class " + one.name + " is there twice");
    }
    classes.push_back(std::move(one));
  });
  return classes;
}

std::vector<ImageClass> ReadClassList(const std::string& path) {
  return ParseClassList(ReadWholeFile(path, kMaxLabelListBytes), path);
}

}  // namespace trainer
