// SPDX-License-Identifier: Apache-2.0

#include "ddldata/synth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <numbers>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "ddldata/inspect.h"
#include "ddldata/shard_directory.h"
#include "ddldata/stored_image.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/core/philox.h"
#include "trainer/core/thread.h"
#include "trainer/data/example.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxShards = 99999;  // five digits in the name
constexpr int kMinSize = 16;       // pixels
constexpr int kMaxSize = 8192;
constexpr std::uint64_t kValidationImages = std::uint64_t{1} << 40;  // their first number

// The images of a split and how they lie in files.
struct SplitSpec {
  Split split;
  std::int64_t images;
  int shards;
  std::uint64_t first_number;  // of the random numbers
};

void CheckOptions(const SynthOptions& options) {
  RequireOption(options.classes >= 1 && options.classes <= kMaxSyntheticClasses,
                "--classes must be 1 to " + std::to_string(kMaxSyntheticClasses) + ", not " +
                    std::to_string(options.classes));
  RequireOption(options.min_size >= kMinSize && options.min_size <= options.max_size &&
                    options.max_size <= kMaxSize,
                "--size must be MIN-MAX with " + std::to_string(kMinSize) +
                    " <= MIN <= MAX <= " + std::to_string(kMaxSize) + ", not " +
                    std::to_string(options.min_size) + "-" + std::to_string(options.max_size));
  RequireOption(options.images >= 1 && options.shards >= 1 && options.shards <= kMaxShards &&
                    options.images >= options.shards,
                "--images must be at least --shards, and both at least 1: a file needs an image");
  RequireOption(
      options.validation_images == 0 ||
          (options.validation_images >= options.validation_shards &&
           options.validation_shards >= 1 && options.validation_shards <= kMaxShards),
      "--validation_images must be 0 or at least --validation_shards: a file needs an image");
  RequireOption(options.threads >= 1, "--threads must be at least 1");
}

std::string MakeRecord(const SynthOptions& options, const SplitSpec& plan, std::int64_t image) {
  const int class_index = static_cast<int>(image % options.classes);
  const auto number = plan.first_number + static_cast<std::uint64_t>(image);
  Random random(options.seed, RandomPurpose::kGenerate, number);
  const auto draw_extent = [&] {
    const auto choices = static_cast<std::uint32_t>(options.max_size - options.min_size + 1);
    return options.min_size + static_cast<int>(random.Below(choices));
  };
  const int width = draw_extent();
  const int height = draw_extent();
  const int quality = 85 + static_cast<int>(random.Below(11));
  const Picture picture = Render(class_index, {width, height}, random);
  ImageExample example;
  example.encoded = EncodeJpeg(picture.pixels, picture.size, {.quality = quality});
  example.label = class_index + 1;
  example.label_text = DescribeSyntheticClass(class_index);
  example.filename = FilePrefix(plan.split) + std::to_string(image) + ".JPEG";
  example.size = picture.size;
  example.boxes = {picture.box};
  return SerializeExample(example);
}

// One complete file, still under its temporary name.
std::unique_ptr<RecordWriter> WriteShard(const SynthOptions& options, const SplitSpec& plan,
                                         int shard) {
  const std::int64_t begin = plan.images * shard / plan.shards;
  const std::int64_t end = plan.images * (shard + 1) / plan.shards;
  std::vector<std::string> records(static_cast<std::size_t>(end - begin));
  ParallelFor(options.threads, end - begin, [&](std::int64_t i) {
    records[static_cast<std::size_t>(i)] = MakeRecord(options, plan, begin + i);
  });
  auto writer = std::make_unique<RecordWriter>(
      (fs::path(options.dir) / ShardName(plan.split, shard, plan.shards)).string());
  for (const std::string& record : records) {
    writer->Append({reinterpret_cast<const std::uint8_t*>(record.data()), record.size()});
  }
  writer->Finish();
  return writer;
}

}  // namespace

void MakeDataSet(const SynthOptions& options) {
  CheckOptions(options);
  MakeDirectories(options.dir);
  const std::set<std::string> existing = DataFileNames(options.dir);
  RequireOption(existing.empty() || options.force,
                options.dir + " already has data files (" + std::to_string(existing.size()) +
                    ", one is " + (existing.empty() ? "" : *existing.begin()) +
                    "); --force replaces all of them");

  std::vector<SplitSpec> plans = {{Split::kTrain, options.images, options.shards, 0}};
  if (options.validation_images > 0) {
    plans.push_back({Split::kValidation, options.validation_images, options.validation_shards,
                     kValidationImages});
  }
  std::vector<std::unique_ptr<RecordWriter>> files;
  for (const SplitSpec& plan : plans) {
    for (int shard = 0; shard < plan.shards; ++shard) {
      files.push_back(WriteShard(options, plan, shard));
    }
  }
  for (const std::string& name : existing) {
    const fs::path path = fs::path(options.dir) / name;
    std::error_code error;
    if (!fs::remove(path, error) && error) {
      throw OsError("cannot remove " + path.string(), error.value());
    }
  }
  for (const auto& file : files) file->Commit();
  MakeShardManifest(options.dir, false, options.threads);
}

namespace {

constexpr double kPi = std::numbers::pi;

// The first ten classes use the first five outlines and the first two patterns.
constexpr std::array<const char*, 10> kOutlines = {"disc",  "triangle", "cross",   "ring",
                                                   "star",  "square",   "diamond", "half disc",
                                                   "frame", "hourglass"};
constexpr std::array<const char*, 5> kPatterns = {"horizontal stripes", "checks",
                                                  "vertical stripes", "dots", "rings"};
constexpr std::array<double, 4> kPeriods = {4, 7, 2.5, 11};  // across the object

struct SyntheticClass {
  std::size_t outline;
  std::size_t pattern;
  double periods;
};

SyntheticClass ClassOf(int index) {
  DDL_CHECK(index >= 0 && index < kMaxSyntheticClasses);
  const auto number = static_cast<std::size_t>(index);
  // 50 classes per fineness; among them outlines 0-4 with all patterns, then outlines 5-9.
  const std::size_t within = number % 50;
  return {within % 5 + within / 25 * 5, within / 5 % 5, kPeriods[number / 50]};
}

// Whether (u, v) is inside an outline that fills the square [-1, 1] x [-1, 1]; v points down.
bool IsInside(std::size_t outline, double u, double v) {
  const double x = std::abs(u);
  const double y = std::abs(v);
  const double radius = std::sqrt(u * u + v * v);
  switch (outline) {
    case 0:  // disc
      return radius < 1;
    case 1:  // triangle, point up
      return y < 1 && x < (v + 1) / 2;
    case 2:  // cross
      return std::max(x, y) < 1 && std::min(x, y) < 0.33;
    case 3:  // ring
      return radius < 1 && radius > 0.55;
    case 4: {  // star with five points, one up
      const double turn = (std::atan2(u, -v) + 2 * kPi) / (2 * kPi) * 5;
      const double to_point = std::abs(turn - std::round(turn)) * 2;  // 0 at a point, 1 between two
      return radius < 1 - 0.6 * to_point;
    }
    case 5:  // square
      return std::max(x, y) < 0.9;
    case 6:  // diamond
      return x + y < 1;
    case 7:  // half disc, flat side down
      return radius < 1 && v < 0.1;
    case 8:  // frame
      return std::max(x, y) < 0.95 && std::max(x, y) > 0.5;
    default:  // hourglass
      return y < 1 && x < std::max(y, 0.08);
  }
}

bool IsEven(double band) { return static_cast<long>(std::floor(band)) % 2 == 0; }

// Which of the pattern's two colours (u, v) has.
bool IsLit(std::size_t pattern, double periods, double u, double v) {
  const double a = u * periods;
  const double b = v * periods;
  switch (pattern) {
    case 0:
      return IsEven(b);
    case 1:
      return IsEven(a) != IsEven(b);
    case 2:
      return IsEven(a);
    case 3:
      return std::cos(a * kPi) + std::cos(b * kPi) > 0.9;
    default:
      return IsEven(std::sqrt(a * a + b * b));
  }
}

using Color = std::array<double, 3>;

Color RandomColor(Random& random) {
  Color color{};
  for (double& channel : color) channel = 20 + 215 * random.Uniform();
  return color;
}

double Brightness(const Color& color) { return 0.3 * color[0] + 0.59 * color[1] + 0.11 * color[2]; }

// Two colours that also a gray picture tells apart, in random order.
std::pair<Color, Color> RandomColorPair(Random& random) {
  while (true) {
    const Color first = RandomColor(random);
    const Color second = RandomColor(random);
    if (std::abs(Brightness(first) - Brightness(second)) > 70) return {first, second};
  }
}

Color Mix(const Color& a, const Color& b, double part_of_b) {
  Color color{};
  for (std::size_t i = 0; i < 3; ++i) color[i] = a[i] + (b[i] - a[i]) * part_of_b;
  return color;
}

// A gradient between two colours with soft blobs of others.
struct Background {
  struct Blob {
    double x, y, radius;
    Color color;
  };
  Color from, to;
  double direction_x, direction_y;
  std::array<Blob, 4> blobs;
};

Background RandomBackground(ImageSize size, Random& random) {
  Background background{};
  background.from = RandomColor(random);
  background.to = RandomColor(random);
  const double angle = 2 * kPi * random.Uniform();
  background.direction_x = std::cos(angle) / size.width;
  background.direction_y = std::sin(angle) / size.height;
  for (Background::Blob& blob : background.blobs) {
    blob.x = size.width * random.Uniform();
    blob.y = size.height * random.Uniform();
    blob.radius = std::min(size.width, size.height) * (0.1 + 0.3 * random.Uniform());
    blob.color = RandomColor(random);
  }
  return background;
}

Color ColorAt(const Background& background, ImageSize size, double x, double y) {
  const double along = 0.5 + (x - size.width / 2.0) * background.direction_x +
                       (y - size.height / 2.0) * background.direction_y;
  Color color = Mix(background.from, background.to, std::clamp(along, 0.0, 1.0));
  for (const Background::Blob& blob : background.blobs) {
    const double x_distance = (x - blob.x) / blob.radius;
    const double y_distance = (y - blob.y) / blob.radius;
    const double squared = x_distance * x_distance + y_distance * y_distance;
    if (squared < 1) color = Mix(color, blob.color, 0.6 * (1 - squared));
  }
  return color;
}

// Where the object is: centre and radius in pixels, and its tilt.
struct Pose {
  double x, y, radius, cosine, sine;
};

Pose RandomPose(ImageSize size, Random& random) {
  const double half = std::min(size.width, size.height) / 2.0;
  const double radius = half * (0.75 + 0.2 * random.Uniform());
  // The centre stays near the image's, so that a centre crop shows most of the object.
  const double x = size.width / 2.0 + (half - radius) * (2 * random.Uniform() - 1);
  const double y = size.height / 2.0 + (half - radius) * (2 * random.Uniform() - 1);
  const double tilt = (2 * random.Uniform() - 1) * 10 * kPi / 180;
  return {x, y, radius, std::cos(tilt), std::sin(tilt)};
}

BoundingBox BoxOf(const Pose& pose, ImageSize size) {
  const auto part = [](double value, int extent) {
    return static_cast<float>(std::clamp(value / extent, 0.0, 1.0));
  };
  return {part(pose.x - pose.radius, size.width), part(pose.y - pose.radius, size.height),
          part(pose.x + pose.radius, size.width), part(pose.y + pose.radius, size.height)};
}

}  // namespace

Picture Render(int class_index, ImageSize size, Random& random) {
  const SyntheticClass generated = ClassOf(class_index);
  const Pose pose = RandomPose(size, random);
  const auto [lit, unlit] = RandomColorPair(random);
  const Background background = RandomBackground(size, random);
  const double noise = 3 + 5 * random.Uniform();

  // Edges are smoothed by four points per pixel.
  constexpr std::array<double, 2> kPoints = {0.25, 0.75};
  Picture picture{.size = size, .pixels = {}, .box = BoxOf(pose, size)};
  picture.pixels.reserve(static_cast<std::size_t>(size.width) *
                         static_cast<std::size_t>(size.height) * 3);
  for (int row = 0; row < size.height; ++row) {
    for (int column = 0; column < size.width; ++column) {
      Color color = ColorAt(background, size, column + 0.5, row + 0.5);
      const Color behind = color;
      for (const double dy : kPoints) {
        for (const double dx : kPoints) {
          const double x = (column + dx - pose.x) / pose.radius;
          const double y = (row + dy - pose.y) / pose.radius;
          const double u = x * pose.cosine + y * pose.sine;
          const double v = y * pose.cosine - x * pose.sine;
          if (!IsInside(generated.outline, u, v)) continue;
          const Color& fill = IsLit(generated.pattern, generated.periods, u, v) ? lit : unlit;
          for (std::size_t i = 0; i < 3; ++i) color[i] += (fill[i] - behind[i]) / 4;
        }
      }
      const double grain = noise * random.Normal();  // the same in all channels, as film has it
      for (const double channel : color) {
        picture.pixels.push_back(
            static_cast<std::uint8_t>(std::lround(std::clamp(channel + grain, 0.0, 255.0))));
      }
    }
  }
  return picture;
}

std::string DescribeSyntheticClass(int class_index) {
  const SyntheticClass generated = ClassOf(class_index);
  const double periods = generated.periods;
  return std::string(kOutlines[generated.outline]) + ", " + kPatterns[generated.pattern] + ", " +
         (periods == 2.5 ? "2.5" : std::to_string(static_cast<int>(periods))) + " periods";
}

}  // namespace trainer
