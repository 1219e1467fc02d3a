// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluation/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/data/images/augment.h"
#include "trainer/data/images/image_files.h"
#include "trainer/data/images/image_loader.h"

namespace trainer {
namespace {

void LoadImage(const std::filesystem::path& path, int size, std::span<std::uint8_t> pixels) {
  const std::string file = ReadWholeFile(path.string(), kMaxImageFileBytes);
  ImageLoader image;
  const ImageSize whole =
      image.ReadHeader({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
  image.Load(CentreView(whole, size), size, pixels);
}

}  // namespace

std::vector<Prediction> TopClasses(std::span<const float> logits, int count) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  const double largest = logits[static_cast<std::size_t>(order.front())];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);

  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  std::vector<Prediction> predictions;
  for (const int label : order) {
    predictions.push_back(
        {label, std::exp(logits[static_cast<std::size_t>(label)] - largest) / sum});
  }
  return predictions;
}

ImagePrediction PredictImage(const std::filesystem::path& file, Backend& backend, Network& network,
                             DeviceBatch& device_batch, Stream& stream) {
  const NetworkSpec& spec = network.spec();
  DDL_CHECK(spec.height == spec.width);
  std::vector<std::uint8_t> pixels(
      static_cast<std::size_t>(spec.batch_size * spec.height * spec.width * 3));
  const std::vector<std::uint8_t> mirror(static_cast<std::size_t>(spec.batch_size));
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(spec.batch_size));
  try {
    LoadImage(file, static_cast<int>(spec.width),
              std::span(pixels).first(pixels.size() / static_cast<std::size_t>(spec.batch_size)));
  } catch (const Error& error) {
    const bool is_of_file = error.exit_code() == EX_DATAERR || error.exit_code() == EX_OSERR;
    if (!is_of_file || dynamic_cast<const Shortage*>(&error) != nullptr) throw;
    return {file, {}, error.what()};
  }

  Infer(network, device_batch, {pixels, mirror, labels, /*valid=*/1, /*step=*/0}, stream);
  std::vector<float> logits(static_cast<std::size_t>(spec.batch_size * spec.classes));
  backend.Export(network.logits(), logits.data(), stream);
  if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) {
    throw Error(EX_SOFTWARE, "the network gives NaN for " + file.string());
  }
  return {file,
          TopClasses(std::span(logits).first(static_cast<std::size_t>(spec.classes)),
                     kPredictedClasses),
          ""};
}

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
