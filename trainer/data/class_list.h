// SPDX-License-Identifier: Apache-2.0
//
// Text files that name the classes of a data set.  Pure, but for the functions that read and write
// files.
//
// Errors are Error(EX_DATAERR) "PATH:LINE: ...".

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

inline constexpr std::uint64_t kMaxLabelListBytes = 1U << 30;

// A class, by the name of its directory, and what people call it ("" if the list does not say).
struct ImageClass {
  std::string name;
  std::string text;
  bool operator==(const ImageClass&) const = default;
};

// "n01440764 tench, Tinca tinca" in each line: the name, then, behind a blank or a tab, the text.
// Line n is the class of label n.  A name that is there twice is an error, and so are texts that
// are the numbers 0 to n - 1 or 1 to n in another order than the lines.  Or the form of
// FormatLabels, which its first line tells.
std::vector<ImageClass> ParseClassList(std::string_view text, const std::string& path);

// Of a file.  Throws also if it cannot be read.
std::vector<ImageClass> ReadClassList(const std::string& path);

// What ddldata writes beside the files of a data set.
inline constexpr char kLabelsName[] = "labels.txt";

// The classes of labels 1, 2, ... for people and programs: a line "label class text", then one for
// each class, with tabs between the three.  A class without a name has its number from 0, as
// WebDataset counts.  Backslash, tab and the ends of lines are \\, \t, \n and \r in names and
// texts.
std::string FormatLabels(const std::vector<ImageClass>& classes);

// Writes them as DIR/labels.txt, whole or not at all.  Throws Error(EX_USAGE) where there is one
// with other content, which is left as it is, and Error(EX_OSERR) if it cannot be written.
void WriteLabels(const std::string& dir, const std::vector<ImageClass>& classes);

// Of DIR/labels.txt; empty where there is none.  Throws as ReadClassList, also for one of another
// form.
std::vector<ImageClass> ReadLabels(const std::string& dir);

}  // namespace trainer
