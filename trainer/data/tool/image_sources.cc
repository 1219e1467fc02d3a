// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/tool/image_sources.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/data/image_files.h"
#include "trainer/data/image_names.h"
#include "trainer/data/text_lines.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFoundInterval = 1024;
constexpr std::string_view kTarEnding = ".tar";
constexpr std::string_view kParquetEnding = ".parquet";

Error CannotList(const std::string& path, const std::error_code& error) {
  return {EX_DATAERR, "cannot read " + path + ": " + error.message()};
}

std::uint64_t SizeOf(const fs::directory_entry& entry) {
  std::error_code error;
  const std::uint64_t size = entry.file_size(error);
  if (error) throw CannotList(entry.path().string(), error);
  return size;
}

bool IsFolder(const fs::directory_entry& entry) {
  std::error_code ignored;  // a link to nothing is none; SizeOf complains of it
  return entry.is_directory(ignored);
}

std::string StemOf(std::string_view tar) {
  const std::string_view name = BaseName(tar);
  return std::string(name.ends_with(kTarEnding) ? name.substr(0, name.size() - kTarEnding.size())
                                                : name);
}

// What WebDataset calls the key: the path up to the first dot of the file's own name.
std::string_view KeyOf(std::string_view path) {
  return path.substr(0, path.find('.', path.size() - BaseName(path).size()));
}

class ImageLister {
 public:
  ImageLister(bool has_labels, const std::function<void(std::int64_t)>& on_found)
      : has_labels_(has_labels), on_found_(on_found) {}

  void AddSource(const std::string& path, bool is_alone);
  void TakeLabels(const ImageLabels& labels, const std::string& sources);
  ImageListing Finish();

 private:
  void AddFolder(const std::string& root, bool is_alone);
  void AddClassFolder(const std::string& root, const std::string& below,
                      const std::string& class_name, int depth);
  void AddTarFile(const std::string& path, const std::string& flat_class);
  void AddTar(const support::Descriptor& file, const std::string& folder, const ByteRange& range,
              const std::string& flat_class);
  void TakeNumbers(std::size_t first_image, const std::map<std::string, std::string>& numbers);
  std::uint32_t AddContainer(const std::string& path, bool is_tar);
  void AddImage(const ByteRange& range, std::string path, const std::string& class_name);
  void AddOther(const std::string& path);
  std::uint32_t NumberOf(const std::string& class_name);

  bool has_labels_;
  const std::function<void(std::int64_t)>& on_found_;
  ImageListing listing_;
  std::map<std::string, std::uint32_t> class_numbers_;
  std::map<std::string, std::string> empty_classes_;  // paths, by name
};

std::uint32_t ImageLister::AddContainer(const std::string& path, bool is_tar) {
  listing_.containers.push_back({path, is_tar});
  return static_cast<std::uint32_t>(listing_.containers.size() - 1);
}

std::uint32_t ImageLister::NumberOf(const std::string& class_name) {
  const auto number = static_cast<std::uint32_t>(listing_.classes.size());
  const auto [place, is_new] = class_numbers_.emplace(class_name, number);
  if (is_new) listing_.classes.push_back(class_name);
  return place->second;
}

// Of the newest container.  A class "" is one that must come from elsewhere.
void ImageLister::AddImage(const ByteRange& range, std::string path,
                           const std::string& class_name) {
  const auto container = static_cast<std::uint32_t>(listing_.containers.size() - 1);
  listing_.images.push_back({container, NumberOf(class_name), range, std::move(path)});
  if (std::ssize(listing_.images) % kFoundInterval == 0) on_found_(std::ssize(listing_.images));
}

void ImageLister::AddOther(const std::string& path) {
  const bool is_first = listing_.others++ == 0;
  if (is_first || path.ends_with(kParquetEnding)) {
    listing_.one_other = listing_.containers.back().path + "/" + path;
  }
}

void ImageLister::AddSource(const std::string& path, bool is_alone) {
  const std::size_t before = listing_.images.size();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw CannotList(path, error ? error : make_error_code(std::errc::no_such_file_or_directory));
  }
  if (fs::is_directory(status)) {
    AddFolder(path, is_alone);
  } else {
    AddTarFile(path, is_alone ? "" : StemOf(path));
  }
  if (listing_.images.size() == before) {
    const bool is_parquet = listing_.one_other.ends_with(kParquetEnding);
    throw Error(EX_DATAERR, path +
                                " has no images: no file whose name ends as .JPEG, .jpg or .png" +
                                (is_parquet ? "; " + std::string(kParquetAdvice) : ""));
  }
}

void ImageLister::AddFolder(const std::string& root, bool is_alone) {
  std::vector<std::string> tars;
  std::set<std::string> class_folders;  // that have images
  AddContainer(root, false);
  for (const fs::directory_entry& entry : EntriesOf(root)) {
    const std::string name = entry.path().filename().string();
    const bool is_shown = !IsHidden(name);
    if (is_shown && IsFolder(entry)) {
      const std::size_t before = listing_.images.size();
      AddClassFolder(root, name, name, 1);
      if (listing_.images.size() > before) {
        class_folders.insert(entry.path().string());
      } else {
        empty_classes_.emplace(name, entry.path().string());
      }
    } else if (is_shown && name.ends_with(kTarEnding)) {
      tars.push_back(entry.path().string());
    } else if (is_shown && HasImageEnding(name)) {
      AddImage({0, SizeOf(entry)}, name, "");
    } else {
      AddOther(name);
    }
  }
  for (const std::string& tar : tars) {
    const std::string folder = tar.substr(0, tar.size() - kTarEnding.size());
    const std::size_t before = listing_.images.size();
    AddTarFile(tar, is_alone && tars.size() == 1 ? "" : StemOf(tar));
    if (listing_.images.size() == before) empty_classes_.emplace(StemOf(tar), tar);
    if (listing_.images.size() > before && class_folders.contains(folder)) {
      throw Error(EX_DATAERR, "both " + folder + " and " + tar +
                                  " have images, most likely the same ones: move one of the two "
                                  "away");
    }
  }
}

void ImageLister::AddClassFolder(const std::string& root, const std::string& below,
                                 const std::string& class_name, int depth) {
  if (depth > kMaxFolderDepth) {
    throw TooManyFolders(root + "/" + below);
  }
  for (const fs::directory_entry& entry : EntriesOf(fs::path(root) / below)) {
    const std::string path = below + "/" + entry.path().filename().string();
    const bool is_shown = !IsHidden(path);
    if (is_shown && IsFolder(entry)) {
      AddClassFolder(root, path, class_name, depth + 1);
    } else if (is_shown && HasImageEnding(path)) {
      AddImage({0, SizeOf(entry)}, path, class_name);
    } else {
      AddOther(path);
    }
  }
}

void ImageLister::AddTarFile(const std::string& path, const std::string& flat_class) {
  const support::Descriptor file = OpenForReading(path);
  AddContainer(path, true);
  AddTar(file, "", {0, FileSize(file, path)}, flat_class);
}

// `folder`: "" or the name of the tar within the tar, with '/' behind.
void ImageLister::AddTar(const support::Descriptor& file, const std::string& folder,
                         const ByteRange& range, const std::string& flat_class) {
  const std::string path = listing_.containers.back().path;
  const std::size_t first_image = listing_.images.size();
  std::map<std::string, std::string> numbers;  // by key, of WebDataset
  TarReader tar(file, path, range);
  while (const auto member = tar.Next()) {
    const std::string name = folder + member->name;
    if (member->kind == TarKind::kFolder) continue;
    const bool is_shown = !IsHidden(name) && member->kind != TarKind::kOther;
    const bool is_tar = is_shown && name.ends_with(kTarEnding);
    const bool is_image = is_shown && HasImageEnding(name);
    if (member->kind == TarKind::kLink && (is_tar || is_image)) {
      throw Error(EX_DATAERR, path + ", " + name +
                                  ": a link to another file: pack the files themselves with tar "
                                  "--dereference --hard-dereference");
    } else if (is_tar) {
      if (!folder.empty()) {
        throw Error(EX_DATAERR, path + ", " + name + ": a tar in a tar in a tar: unpack one");
      }
      const std::size_t before = listing_.images.size();
      AddTar(file, name + "/", {member->offset, member->size}, StemOf(name));
      if (listing_.images.size() == before) {
        empty_classes_.emplace(StemOf(name), path + ", " + name);
      }
    } else if (is_shown && name.ends_with(".cls")) {
      constexpr std::uint64_t kMaxNumberBytes = 32;
      std::string text(member->size <= kMaxNumberBytes ? member->size : 0, '\0');
      ReadAt(file, path, member->offset,
             {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
      numbers[std::string(KeyOf(name))] = text;
    } else if (is_image) {
      const std::string parent(FolderName(member->name));
      AddImage({member->offset, member->size}, name, parent.empty() ? flat_class : parent);
    } else {
      AddOther(name);
    }
  }
  if (!numbers.empty() && !has_labels_) TakeNumbers(first_image, numbers);
}

// Gives the images from `first_image` on the classes of WebDataset's KEY.cls.
void ImageLister::TakeNumbers(std::size_t first_image,
                              const std::map<std::string, std::string>& numbers) {
  const std::string& tar = listing_.containers.back().path;
  std::map<std::string, std::string> rest = numbers;
  for (std::size_t i = first_image; i < listing_.images.size(); ++i) {
    SourceImage& image = listing_.images[i];
    const auto found = rest.find(std::string(KeyOf(image.path)));
    if (found == rest.end()) {
      throw Error(EX_DATAERR, tar + ", " + image.path + ": the image has no file " +
                                  std::string(KeyOf(image.path)) + ".cls of its own");
    }
    std::string_view text = found->second;
    while (text.ends_with('\n')) text = Trimmed(text.substr(0, text.size() - 1));
    text = Trimmed(text);
    int number = 0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, number);
    constexpr int kMaxNumber = 1'000'000;
    if (result.ec != std::errc() || result.ptr != end || number < 0 || number > kMaxNumber) {
      throw Error(EX_DATAERR, tar + ", " + found->first + ".cls: expected the number of a class, " +
                                  "from 0 to " + std::to_string(kMaxNumber));
    }
    image.class_number = NumberOf(std::to_string(number));
    rest.erase(found);
  }
  if (!rest.empty()) {
    throw Error(EX_DATAERR, tar + ", " + rest.begin()->first + ".cls: there is no image for it");
  }
  listing_.is_numbered = true;
}

void ImageLister::TakeLabels(const ImageLabels& labels, const std::string& sources) {
  std::ranges::sort(listing_.images, {}, [](const SourceImage& image) {
    return std::pair(BaseName(image.path), std::string_view(image.path));
  });
  std::vector<std::string> names;
  for (const SourceImage& image : listing_.images) {
    const std::string_view name = BaseName(image.path);
    if (!names.empty() && names.back() == name) {
      throw Error(EX_DATAERR, sources + " has two images of the name " + names.back() +
                                  ": which of them a list of classes means cannot be known");
    }
    names.emplace_back(name);
  }
  const std::vector<std::string> classes = labels.ClassesOf(names, sources);
  listing_.classes.clear();
  class_numbers_.clear();
  for (std::size_t i = 0; i < classes.size(); ++i) {
    listing_.images[i].class_number = NumberOf(classes[i]);
  }
}

ImageListing ImageLister::Finish() {
  for (const SourceImage& image : listing_.images) {
    const std::string& name = listing_.classes[image.class_number];
    if (name.empty()) {
      throw Error(EX_DATAERR, listing_.containers[image.container].path + ", " + image.path +
                                  ": the image lies in no folder, which would be its class: give "
                                  "a list of classes, --train_labels or --validation_labels");
    }
    constexpr std::size_t kMaxDigits = 7;
    const bool is_number =
        name.size() <= kMaxDigits && name.find_first_not_of("0123456789") == std::string::npos;
    if (listing_.is_numbered && !is_number) {
      throw Error(EX_DATAERR, listing_.containers[image.container].path + ", " + image.path +
                                  ": the image has the class " + name +
                                  ", others have numbers (KEY.cls): convert them separately");
    }
  }
  for (const auto& [name, path] : empty_classes_) {
    const bool is_class = class_numbers_.contains(name);
    if (!is_class && !listing_.is_numbered) listing_.empty_classes.push_back(path);
  }
  on_found_(std::ssize(listing_.images));
  return std::move(listing_);
}

}  // namespace

ImageListing ListImages(const std::vector<std::string>& sources, const ImageLabels* labels,
                        const std::function<void(std::int64_t)>& on_found) {
  ImageLister lister(labels != nullptr, on_found);
  std::string names;
  for (const std::string& source : sources) {
    lister.AddSource(source, sources.size() == 1);
    names += (names.empty() ? "" : " ") + source;
  }
  if (labels != nullptr) lister.TakeLabels(*labels, names);
  return lister.Finish();
}

}  // namespace trainer
