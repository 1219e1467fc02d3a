// SPDX-License-Identifier: Apache-2.0
//
// Text files that name the classes of a data set.  Pure, but for ReadClassList.
//
// Errors are Error(EX_DATAERR) "PATH:LINE: ...".

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

inline constexpr std::uint64_t kMaxLabelListBytes = 1U << 30;

// A class, by the name of its folder, and what people call it ("" if the list does not say).
struct ImageClass {
  std::string name;
  std::string text;
  bool operator==(const ImageClass&) const = default;
};

// "n01440764 tench, Tinca tinca" in each line: the name, then, behind a blank or a tab, the text.
// Line n is the class of label n.  A name that is there twice is an error.
std::vector<ImageClass> ParseClassList(std::string_view text, const std::string& path);

// Of a file.  Throws also if it cannot be read.
std::vector<ImageClass> ReadClassList(const std::string& path);

}  // namespace trainer
