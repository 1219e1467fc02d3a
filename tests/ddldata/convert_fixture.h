// SPDX-License-Identifier: Apache-2.0
//
// What the tests of conversions share: images on the disk, a PNG, and conversions of a directory.

#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ddldata/convert.h"
#include "ddldata/inspect.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/images/png.h"

namespace trainer {

inline std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// 16 x 8 pixels, the left half red, the right one blue.
inline std::string RedAndBluePng() {
  return FromHex(
      "89504e470d0a1a0a0000000d49484452000000100000000808020000007f14e8c000000016494441"
      "5478da63f8cfc08015e110fecf30aa81161a00a5377f81919b35550000000049454e44ae426082");
}

// 8 x 8 pixels of 16 bits, gray 0x4040.
inline std::string DeepGrayPng() {
  return FromHex(
      "89504e470d0a1a0a0000000d4948445200000008000000081000000000b1f43d140000000f494441"
      "5478da637040030c03230000810020010af05a730000000049454e44ae426082");
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

inline void WriteImageFiles(const std::string& directory, const ImageFiles& files) {
  for (const auto& [name, content] : files) {
    const fs::path path = fs::path(directory) / name;
    fs::create_directories(path.parent_path());
    WriteText(path.string(), content);
  }
}

inline const std::vector<std::string> kSynsets = {"n01", "n02", "n03"};

// A directory for images and for conversions of them.
class ConvertTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ / name; }

  // A conversion of the directory "images" to the directory `to`.
  ConvertOptions OptionsFor(const std::string& to) const {
    ConvertOptions options;
    options.dir = Path(to);
    options.train = {.sources = {Path("images")}, .labels = "", .shards = 4};
    return options;
  }

  ConvertSummary Convert(const ConvertOptions& options) {
    return ConvertUntil(options, [] { return false; });
  }
  ConvertSummary ConvertUntil(const ConvertOptions& options, const std::function<bool()>& stop) {
    std::ostringstream messages;
    const ConvertSummary summary = [&] {
      ConvertProgress progress({}, messages);
      try {
        return ConvertImages(options, progress, stop);
      } catch (...) {
        messages_ = messages.str();
        throw;
      }
    }();
    messages_ = messages.str();
    return summary;
  }

  // The code and the message of the Error.
  std::pair<int, std::string> RejectionOf(const ConvertOptions& options) {
    try {
      Convert(options);
    } catch (const Error& error) {
      return {error.exit_code(), error.what()};
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  // Name and content of all files of a directory.
  std::map<std::string, std::string> FilesOf(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(Path(name))) {
      files[entry.path().filename().string()] = tests::TextOf(entry.path().string());
    }
    return files;
  }

  std::int64_t ProblemsOf(const std::string& name, int classes) const {
    VerifyOptions options{.data_dir = Path(name), .classes = classes};
    return VerifyDataSet(options, [](const std::string& problem) { ADD_FAILURE() << problem; })
        .problems;
  }

  TemporaryDirectory dir_;
  std::string messages_;
};

}  // namespace trainer
