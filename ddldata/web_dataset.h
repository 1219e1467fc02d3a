// SPDX-License-Identifier: Apache-2.0
//
// The classes of a WebDataset shard, which are in files KEY.cls beside the images.  Pure.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainer {

inline constexpr std::string_view kClassFileEnding = ".cls";  // in any case

// A file KEY.cls.
struct ClassFile {
  std::string path;  // within the tar
  std::string text;
};

// What WebDataset calls the key: the path up to the first dot of the file's own name.
std::string_view KeyOf(std::string_view path);

// The number of the class, from 0, of each of `images`, paths within `tar`.  Its file is the one
// that has the image's own path without the ending ("22.05.cls" of "22.05.jpg"), else the one of
// its key ("0.cls" of "0.left.jpg").  Throws Error(EX_DATAERR), with the path, if not every image
// has one such file of its own, every file one such image, and every file a number.
std::vector<int> NumbersOfImages(const std::string& tar, const std::vector<ClassFile>& files,
                                 const std::vector<std::string>& images);

}  // namespace trainer
