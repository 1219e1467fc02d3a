// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/prediction_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

namespace trainer {
namespace {

// Null where it has no name.
const ImageClass* NameOfClass(const std::vector<ImageClass>& classes, int label) {
  const auto place = static_cast<std::size_t>(label);
  return place < classes.size() && !classes[place].name.empty() ? &classes[place] : nullptr;
}

// A name may have bytes that end a line or move a terminal's cursor.
std::string OneLine(const std::filesystem::path& file) {
  std::string text;
  for (const char byte : file.string()) {
    if (byte == '\n') {
      text += "\\n";
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    } else {
      text += byte;
    }
  }
  return text;
}

}  // namespace

std::string FormatPredictions(std::span<const ImagePrediction> predictions,
                              const std::vector<ImageClass>& classes) {
  std::ostringstream text;
  for (const ImagePrediction& image : predictions) {
    if (!image.problem.empty()) {
      text << OneLine(image.file) << ": " << image.problem << '\n';
      continue;
    }
    if (predictions.size() > 1) text << OneLine(image.file) << ":\n";
    for (const Prediction& prediction : image.classes) {
      text << "class " << prediction.label << " probability " << prediction.probability;
      if (const ImageClass* named = NameOfClass(classes, prediction.label)) {
        text << ' ' << named->name << (named->text.empty() ? "" : " ") << named->text;
      }
      text << '\n';
    }
  }
  return text.str();
}

std::string FormatPredictionsAsJson(std::span<const ImagePrediction> predictions,
                                    const std::vector<ImageClass>& classes) {
  std::string text;
  for (const ImagePrediction& image : predictions) {
    nlohmann::ordered_json object = {{"file", image.file.string()}};
    if (!image.problem.empty()) {
      object["error"] = image.problem;
    } else {
      object["classes"] = nlohmann::ordered_json::array();
      for (const Prediction& prediction : image.classes) {
        nlohmann::ordered_json one = {{"class", prediction.label}, {"label", prediction.label + 1}};
        if (const ImageClass* named = NameOfClass(classes, prediction.label)) {
          one["name"] = named->name;
          if (!named->text.empty()) one["text"] = named->text;
        }
        one["probability"] = prediction.probability;
        object["classes"].push_back(std::move(one));
      }
    }
    // A name of a file need not be UTF-8, which JSON is.
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    text += object.dump(-1, ' ', false, kReplace) + '\n';
  }
  return text;
}

}  // namespace trainer
