// SPDX-License-Identifier: Apache-2.0
//
// What the names of images, of tars and of the directories in them tell of classes.

#pragma once

#include <set>
#include <string>
#include <string_view>

namespace trainer {

// The synset that the name of an image begins with, before a '_', or ends with, behind one; ""
// where there is none, or two that differ.  Pure.
std::string SynsetInName(std::string_view path);

// Whether names of tars without their ending, at least two, are those of parts of one set: they
// differ in numbers alone, and are neither synsets nor plain numbers nor names such as class_3.
// Pure.
bool AreNamesOfParts(const std::set<std::string>& names);

// In which directory of a tar the directories of its classes lie, with '/' behind, or "":
// `directories` are those of its images, each with '/' behind.  Where all images lie in one, that
// is their class.  Pure.
std::string RootOfClasses(const std::set<std::string>& directories);

}  // namespace trainer
