// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/image_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace trainer {
namespace {

constexpr std::array<std::string_view, 11> kImageEndings = {
    ".jpeg", ".jpg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm"};

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

}  // namespace

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view DirectoryName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : BaseName(path.substr(0, slash));
}

bool HasEnding(std::string_view name, std::string_view ending) {
  return name.size() >= ending.size() &&
         LowerCase(name.substr(name.size() - ending.size())) == ending;
}

bool HasImageEnding(std::string_view name) { return WithoutImageEnding(name).size() < name.size(); }

std::string_view WithoutImageEnding(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return name;
  const std::string ending = LowerCase(name.substr(dot));
  return std::ranges::find(kImageEndings, ending) == kImageEndings.end() ? name
                                                                         : name.substr(0, dot);
}

bool IsHidden(std::string_view path) {
  const std::string_view name = BaseName(path);
  return name.starts_with('.') || name == "lost+found";
}

}  // namespace trainer
