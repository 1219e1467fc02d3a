// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/evaluation/predict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

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

}  // namespace trainer
