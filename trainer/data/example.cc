// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/example.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/data/example.pb.h"

namespace trainer {
namespace {

using FeatureMap = google::protobuf::Map<std::string, detail::Feature>;

Error BadExample(const std::string& what) { return {EX_DATAERR, what}; }

// "; it has image, label": another program's Examples have other names.
std::string Others(const FeatureMap& features) {
  constexpr std::size_t kMax = 5;
  std::vector<std::string> names;
  for (const auto& [name, value] : features) {
    const bool is_plain = std::ranges::all_of(
        name, [](unsigned char letter) { return letter > ' ' && letter < 127; });
    if (is_plain) names.push_back(name);
  }
  std::ranges::sort(names);
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, names.size()); ++i) {
    text += (i == 0 ? "; it has " : ", ") + names[i];
  }
  return names.size() > kMax ? text + ", ..." : text;
}

detail::Feature& Require(FeatureMap& features, const std::string& name) {
  const auto found = features.find(name);
  if (found == features.end()) {
    throw BadExample("the Example has no feature " + name + Others(features));
  }
  return found->second;
}

std::string TakeBytes(FeatureMap& features, const std::string& name) {
  detail::Feature& feature = Require(features, name);
  if (feature.bytes_list().value_size() != 1) {
    throw BadExample("the feature " + name + " is not one string of bytes");
  }
  return std::move(*feature.mutable_bytes_list()->mutable_value(0));
}

std::int64_t GetInteger(FeatureMap& features, const std::string& name) {
  const detail::Feature& feature = Require(features, name);
  if (feature.int64_list().value_size() != 1) {
    throw BadExample("the feature " + name + " is not one integer");
  }
  return feature.int64_list().value(0);
}

// The corners of one kind; a feature that is not there means no box.
std::vector<float> GetCorners(const FeatureMap& features, const std::string& name) {
  const auto found = features.find(name);
  if (found == features.end()) return {};
  const auto& values = found->second.float_list().value();
  for (const float value : values) {
    if (!(value >= 0.0F && value <= 1.0F)) {
      throw BadExample("the feature " + name + " has the value " + std::to_string(value) +
                       ", allowed is 0 to 1");
    }
  }
  return {values.begin(), values.end()};
}

std::vector<BoundingBox> GetBoxes(const FeatureMap& features) {
  const auto xmin = GetCorners(features, "image/object/bbox/xmin");
  const auto ymin = GetCorners(features, "image/object/bbox/ymin");
  const auto xmax = GetCorners(features, "image/object/bbox/xmax");
  const auto ymax = GetCorners(features, "image/object/bbox/ymax");
  if (xmin.size() != ymin.size() || xmin.size() != xmax.size() || xmin.size() != ymax.size()) {
    throw BadExample("the features image/object/bbox/{xmin,ymin,xmax,ymax} differ in length");
  }
  std::vector<BoundingBox> boxes;
  for (std::size_t i = 0; i < xmin.size(); ++i) {
    boxes.push_back({xmin[i], ymin[i], xmax[i], ymax[i]});
  }
  return boxes;
}

constexpr char kClassName[] = "image/class/synset";

detail::Example ParseMessage(std::span<const std::uint8_t> data) {
  detail::Example message;
  if (data.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(data.data(), static_cast<int>(data.size()))) {
    throw BadExample("the data is not a tf.train.Example");
  }
  return message;
}

}  // namespace

std::string ClassNameIn(std::span<const std::uint8_t> data) {
  const detail::Example message = ParseMessage(data);
  const FeatureMap& features = message.features().feature();
  const auto found = features.find(kClassName);
  const bool is_there = found != features.end() && found->second.bytes_list().value_size() == 1;
  return is_there ? found->second.bytes_list().value(0) : "";
}

ImageExample ParseExample(std::span<const std::uint8_t> data) {
  detail::Example message = ParseMessage(data);
  FeatureMap& features = *message.mutable_features()->mutable_feature();
  ImageExample example;
  example.encoded = TakeBytes(features, "image/encoded");
  example.label = GetInteger(features, "image/class/label");
  example.boxes = GetBoxes(features);
  return example;
}

std::string SerializeExample(const ImageExample& example) {
  detail::Example message;
  FeatureMap& features = *message.mutable_features()->mutable_feature();
  const auto set_bytes = [&](const std::string& name, const std::string& value) {
    features[name].mutable_bytes_list()->add_value(value);
  };
  const auto set_integer = [&](const std::string& name, std::int64_t value) {
    features[name].mutable_int64_list()->add_value(value);
  };
  set_bytes("image/encoded", example.encoded);
  set_bytes("image/format", "JPEG");
  set_bytes("image/colorspace", "RGB");
  set_bytes("image/filename", example.filename);
  set_bytes("image/class/text", example.label_text);
  if (!example.synset.empty()) set_bytes(kClassName, example.synset);
  set_integer("image/class/label", example.label);
  set_integer("image/channels", 3);
  set_integer("image/height", example.size.height);
  set_integer("image/width", example.size.width);
  for (const BoundingBox& box : example.boxes) {
    features["image/object/bbox/xmin"].mutable_float_list()->add_value(box.xmin);
    features["image/object/bbox/ymin"].mutable_float_list()->add_value(box.ymin);
    features["image/object/bbox/xmax"].mutable_float_list()->add_value(box.xmax);
    features["image/object/bbox/ymax"].mutable_float_list()->add_value(box.ymax);
    features["image/object/bbox/label"].mutable_int64_list()->add_value(example.label);
  }
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);  // a map has no order of its own
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace trainer
