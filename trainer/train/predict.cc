// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/predict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/data/augment.h"
#include "trainer/data/image_loader.h"

namespace trainer {
namespace {

constexpr std::uint64_t kMaxImageBytes = std::uint64_t{256} << 20;

void LoadImage(const std::filesystem::path& path, int size, std::span<std::uint8_t> pixels) {
  const std::string file = ReadWholeFile(path.string(), kMaxImageBytes);
  ImageLoader image;
  try {
    const ImageSize whole =
        image.ReadHeader({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
    image.Load(CentreView(whole, size), size, pixels);
  } catch (const Error& error) {
    throw Error(error.exit_code(), path.string() + ": " + error.what());
  }
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

std::vector<Prediction> PredictImage(const std::filesystem::path& path, Backend& backend,
                                     Network& network, DeviceBatch& device_batch, Stream& stream) {
  const NetworkSpec& spec = network.spec();
  DDL_CHECK(spec.height == spec.width);
  std::vector<std::uint8_t> pixels(
      static_cast<std::size_t>(spec.batch_size * spec.height * spec.width * 3));
  const std::vector<std::uint8_t> mirror(static_cast<std::size_t>(spec.batch_size));
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(spec.batch_size));
  LoadImage(path, static_cast<int>(spec.width),
            std::span(pixels).first(pixels.size() / static_cast<std::size_t>(spec.batch_size)));

  Infer(network, device_batch, {pixels, mirror, labels, /*valid=*/1, /*step=*/0}, stream);
  std::vector<float> logits(static_cast<std::size_t>(spec.batch_size * spec.classes));
  backend.Export(network.logits(), logits.data(), stream);
  if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) {
    throw Error(EX_SOFTWARE, "the network gives no numbers for " + path.string());
  }
  return TopClasses(std::span(logits).first(static_cast<std::size_t>(spec.classes)),
                    kPredictedClasses);
}

}  // namespace trainer
