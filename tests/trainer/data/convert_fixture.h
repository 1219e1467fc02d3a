// SPDX-License-Identifier: Apache-2.0
//
// What the tests of conversions share: images on the disk, and a PNG.

#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/tool/png.h"

namespace trainer {

// 16 x 8 pixels, the left half red, the right one blue.
inline std::string RedAndBluePng() {
  constexpr char kHex[] =
      "89504e470d0a1a0a0000000d49484452000000100000000808020000007f14e8c000000016494441"
      "5478da63f8cfc08015e110fecf30aa81161a00a5377f81919b35550000000049454e44ae426082";
  const std::string hex = kHex;
  std::string png;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    png += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return png;
}

// Why tests of PNG are left out, "" if they are not.
inline std::string WhyNoPng() {
  try {
    DecodePng(AsBytes(RedAndBluePng()));
  } catch (const Error& error) {
    const std::string what = error.what();
    if (what.find("built without libpng") != std::string::npos) return what;
    throw;
  }
  return "";
}

// CLASS/NAME and content of some images, in order.
using ImageFiles = std::vector<std::pair<std::string, std::string>>;

// `count` images of each class, each another one.
inline ImageFiles MakeImageFiles(const std::vector<std::string>& classes, int count) {
  ImageFiles files;
  for (const std::string& name : classes) {
    for (int i = 0; i < count; ++i) {
      const auto seed = files.size() + 1;
      files.emplace_back(name + "/" + name + "_" + std::to_string(i) + ".JPEG",
                         MakeJpeg({20 + i % 5, 16}, seed));
    }
  }
  return files;
}

inline void WriteImageFiles(const std::string& folder, const ImageFiles& files) {
  for (const auto& [name, content] : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::filesystem::create_directories(path.parent_path());
    WriteText(path.string(), content);
  }
}

}  // namespace trainer
