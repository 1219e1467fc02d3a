// SPDX-License-Identifier: Apache-2.0

#include "ddldata/image_sources.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "ddldata/source_names.h"
#include "ddldata/tar.h"
#include "trainer/core/error.h"
#include "trainer/data/images/image_files.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFoundInterval = 1024;
constexpr std::string_view kTarEnding = ".tar";
constexpr std::string_view kParquetEnding = ".parquet";

Error CannotList(const std::string& path, const std::error_code& error) {
  std::error_code unknown;  // where it is no link
  const fs::path target = fs::read_symlink(path, unknown);
  return {EX_DATAERR, "cannot read " + path + (unknown ? "" : ", a link to " + target.string()) +
                          ": " + error.message()};
}

std::uint64_t SizeOf(const fs::directory_entry& entry) {
  std::error_code error;
  const std::uint64_t size = entry.file_size(error);
  if (error) throw CannotList(entry.path().string(), error);
  return size;
}

bool IsDirectory(const fs::directory_entry& entry) {
  std::error_code ignored;  // a link to nothing is none; SizeOf complains of it
  return entry.is_directory(ignored);
}

void RejectLinkToNothing(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.is_symlink(error) || entry.exists(error)) return;
  throw CannotList(entry.path().string(),
                   error ? error : make_error_code(std::errc::no_such_file_or_directory));
}

std::string StemOf(std::string_view tar) {
  const std::string_view name = BaseName(tar);
  return std::string(HasEnding(name, kTarEnding) ? name.substr(0, name.size() - kTarEnding.size())
                                                 : name);
}

// Whether shards have the labels of images in files that end so.
bool MayBeLabels(std::string_view name) {
  constexpr std::string_view kEndings[] = {".json", ".txt",   ".label", ".labels",
                                           ".npy",  ".index", ".class", ".id"};
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return HasEnding(name, ending); });
}

// Of an archive that may have images and is not read.
bool IsPacked(std::string_view name) {
  constexpr std::string_view kEndings[] = {".tar.gz", ".tgz",     ".tar.bz2", ".tbz2", ".tar.xz",
                                           ".txz",    ".tar.zst", ".zip",     ".7z",   ".rar"};
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return HasEnding(name, ending); });
}

// Of a tar.
std::string DescribeRoot(const std::string& root) {
  return root.empty() ? "the top" : root.substr(0, root.size() - 1);
}

class ImageLister {
 public:
  ImageLister(bool has_labels, const std::function<void(std::int64_t)>& on_found)
      : has_labels_(has_labels), on_found_(on_found) {}

  void AddSource(const std::string& path, bool is_alone);
  void TakeLabels(const ImageLabels& labels, const std::string& sources);
  ImageListing Finish();

 private:
  void AddDirectory(const std::string& root, bool is_alone);
  void AddClassDirectory(const std::string& root, const std::string& below,
                         const std::string& class_name, int depth);
  void AddTarFile(const std::string& path, const std::string& flat_class);
  void AddTar(const support::Descriptor& file, const std::string& directory, const ByteRange& range,
              const std::string& flat_class);
  void TakeNumbers(std::size_t first_image, const std::vector<ClassFile>& files);
  void TakeDirectories();
  void TakeSynsets();
  void RejectSameDirectory(const std::string& path);
  void RequireNoLabelFiles(std::span<const std::size_t> images,
                           const std::map<std::string, std::string>& label_files) const;
  void RequireNamesOnce(std::size_t first_image) const;
  std::uint32_t AddContainer(const std::string& path, bool is_tar);
  void AddImage(const ByteRange& range, std::string path, const std::string& class_name);
  void AddOther(const std::string& path);
  std::uint32_t NumberOf(const std::string& class_name);

  bool has_labels_;
  const std::function<void(std::int64_t)>& on_found_;
  ImageListing listing_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> containers_;  // paths, by file
  std::map<std::string, std::uint32_t> class_numbers_;
  std::map<std::string, std::string> empty_classes_;  // paths, by name
  // Class directories and those in them: paths, by file.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> directories_;
  // Images that lie in no directory, and what their classes are called: "" or the name of a tar.
  std::vector<std::size_t> flat_images_;
  std::set<std::string> flat_classes_;
  // A tar, or a tar in a tar, some images of which lie in directories.
  struct TarWithDirectories {
    std::size_t container = 0;
    std::vector<std::size_t> images;
    std::vector<std::string> directories;  // by image, with '/' behind
    std::string root;
    std::set<std::string> classes() const;
  };
  std::vector<TarWithDirectories> tars_;
};

std::set<std::string> ImageLister::TarWithDirectories::classes() const {
  std::set<std::string> names;
  for (const std::string& directory : directories) {
    const std::string_view below = std::string_view(directory).substr(root.size());
    names.emplace(below.substr(0, below.find('/')));
  }
  return names;
}

std::uint32_t ImageLister::AddContainer(const std::string& path, bool is_tar) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw CannotList(path, std::error_code(errno, std::generic_category()));
  }
  const std::pair<std::uint64_t, std::uint64_t> file(status.st_dev, status.st_ino);
  const auto [other, is_new] = containers_.emplace(file, path);
  if (!is_new) {
    throw Error(
        EX_DATAERR,
        path + (other->second == path ? " is there twice" : " is the same as " + other->second) +
            ": its images would count twice; give it once");
  }
  listing_.containers.push_back({path, is_tar, "", file});
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

// A directory by two paths that are not in each other gives its images two classes.
void ImageLister::RejectSameDirectory(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;  // EntriesOf complains of it
  const auto [other, is_new] = directories_.emplace(std::pair(status.st_dev, status.st_ino), path);
  if (is_new || path.starts_with(other->second + "/")) return;
  throw Error(EX_DATAERR, path + " is the same as " + other->second +
                              ": its images would count twice; remove one of the two");
}

void ImageLister::AddOther(const std::string& path) {
  const bool is_first = listing_.others++ == 0;
  if (is_first || HasEnding(path, kParquetEnding)) {
    listing_.one_other = listing_.containers.back().path + "/" + path;
  }
}

void ImageLister::AddSource(const std::string& path, bool is_alone) {
  const std::size_t before = listing_.images.size();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const Error why =
        CannotList(path, error ? error : make_error_code(std::errc::no_such_file_or_directory));
    throw Error(why.exit_code(), why.what() + AdviceOfMissing(path));
  }
  if (fs::is_directory(status)) {
    AddDirectory(path, is_alone);
  } else {
    AddTarFile(path, is_alone ? "" : StemOf(path));
  }
  if (listing_.images.size() == before) {
    const bool is_parquet = HasEnding(listing_.one_other, kParquetEnding);
    throw Error(EX_DATAERR, path +
                                " has no images: no file whose name ends as .JPEG, .jpg or .png" +
                                (is_parquet ? "; " + std::string(kParquetAdvice) : ""));
  }
}

void ImageLister::AddDirectory(const std::string& root, bool is_alone) {
  std::vector<std::string> tars;
  std::string packed;                       // one archive that is not read
  std::set<std::string> class_directories;  // that have images
  const std::size_t first_image = listing_.images.size();
  AddContainer(root, false);
  for (const fs::directory_entry& entry : EntriesOf(root)) {
    const std::string name = entry.path().filename().string();
    const bool is_shown = !IsHidden(name);
    if (is_shown && IsDirectory(entry)) {
      const std::size_t before = listing_.images.size();
      AddClassDirectory(root, name, name, 1);
      if (listing_.images.size() > before) {
        class_directories.insert(entry.path().string());
      } else {
        empty_classes_.emplace(name, entry.path().string());
      }
    } else if (is_shown && HasEnding(name, kTarEnding)) {
      tars.push_back(entry.path().string());
    } else if (is_shown && HasImageEnding(name)) {
      flat_images_.push_back(listing_.images.size());
      flat_classes_.insert("");
      AddImage({0, SizeOf(entry)}, name, "");
    } else {
      if (is_shown) RejectLinkToNothing(entry);
      if (is_shown && IsPacked(name)) packed = entry.path().string();
      AddOther(name);
    }
  }
  // Beside directories of classes it may be what these were unpacked from.
  if (!packed.empty() && (!tars.empty() || listing_.images.size() == first_image)) {
    throw Error(EX_DATAERR, packed +
                                " is compressed, and is not read: unpack it (of .tar.gz "
                                "gunzip makes .tar), or move it away");
  }
  for (const std::string& tar : tars) {
    const std::string directory = tar.substr(0, tar.size() - kTarEnding.size());
    const std::size_t before = listing_.images.size();
    AddTarFile(tar, is_alone && tars.size() == 1 ? "" : StemOf(tar));
    if (listing_.images.size() == before) empty_classes_.emplace(StemOf(tar), tar);
    if (listing_.images.size() > before && class_directories.contains(directory)) {
      throw Error(EX_DATAERR, "both " + directory + " and " + tar +
                                  " have images, most likely the same ones: move one of the two "
                                  "away");
    }
  }
}

void ImageLister::AddClassDirectory(const std::string& root, const std::string& below,
                                    const std::string& class_name, int depth) {
  if (depth > kMaxDirectoryDepth) {
    throw TooManyDirectories(root + "/" + below);
  }
  RejectSameDirectory(root + "/" + below);
  for (const fs::directory_entry& entry : EntriesOf(fs::path(root) / below)) {
    const std::string path = below + "/" + entry.path().filename().string();
    const bool is_shown = !IsHidden(path);
    if (is_shown && IsDirectory(entry)) {
      AddClassDirectory(root, path, class_name, depth + 1);
    } else if (is_shown && HasImageEnding(path)) {
      AddImage({0, SizeOf(entry)}, path, class_name);
    } else {
      if (is_shown) RejectLinkToNothing(entry);
      AddOther(path);
    }
  }
}

void ImageLister::AddTarFile(const std::string& path, const std::string& flat_class) {
  const support::Descriptor file = OpenForReading(path);
  AddContainer(path, true);
  AddTar(file, "", {0, FileSize(file, path)}, flat_class);
}

// `directory`: "" or the name of the tar within the tar, with '/' behind.
void ImageLister::AddTar(const support::Descriptor& file, const std::string& directory,
                         const ByteRange& range, const std::string& flat_class) {
  const std::string path = listing_.containers.back().path;
  const std::size_t first_image = listing_.images.size();
  std::vector<ClassFile> class_files;
  std::map<std::string, std::string> label_files;
  std::vector<std::size_t> flat_images;
  TarWithDirectories with_directories;
  with_directories.container = listing_.containers.size() - 1;
  TarReader tar(file, path, range);
  while (const auto member = tar.Next()) {
    const std::string name = directory + member->name;
    if (member->kind == TarKind::kDirectory) continue;
    const bool is_shown = !IsHidden(name) && member->kind != TarKind::kOther;
    const bool is_tar = is_shown && HasEnding(name, kTarEnding);
    const bool is_image = is_shown && HasImageEnding(name);
    const bool may_be_directory = is_shown && BaseName(name).find('.') == std::string_view::npos;
    if (member->kind == TarKind::kLink && (is_tar || is_image || may_be_directory)) {
      throw Error(EX_DATAERR, path + ", " + name +
                                  ": a link to another file: pack the files themselves with tar "
                                  "--dereference --hard-dereference");
    } else if (is_tar) {
      if (!directory.empty()) {
        throw Error(EX_DATAERR, path + ", " + name + ": a tar in a tar in a tar: unpack one");
      }
      const std::size_t before = listing_.images.size();
      AddTar(file, name + "/", {member->offset, member->size}, StemOf(name));
      if (listing_.images.size() == before) {
        empty_classes_.emplace(StemOf(name), path + ", " + name);
      }
    } else if (is_shown && HasEnding(name, kClassFileEnding)) {
      constexpr std::uint64_t kMaxNumberBytes = 32;
      std::string text(member->size <= kMaxNumberBytes ? member->size : 0, '\0');
      ReadAt(file, path, member->offset,
             {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
      class_files.push_back({name, text});
    } else if (is_image) {
      const std::string parent = member->name.substr(0, member->name.rfind('/') + 1);
      std::vector<std::size_t>& images = parent.empty() ? flat_images : with_directories.images;
      images.push_back(listing_.images.size());
      if (!parent.empty()) with_directories.directories.push_back(parent);
      AddImage({member->offset, member->size}, name, flat_class);
    } else {
      if (is_shown && MayBeLabels(name)) label_files.emplace(KeyOf(name), name);
      AddOther(name);
    }
  }
  RequireNamesOnce(first_image);
  if (has_labels_) return;
  if (!class_files.empty()) {
    TakeNumbers(first_image, class_files);
    return;
  }
  RequireNoLabelFiles(flat_images, label_files);
  if (!flat_images.empty()) flat_classes_.insert(flat_class);
  std::ranges::copy(flat_images, std::back_inserter(flat_images_));
  if (!with_directories.images.empty()) tars_.push_back(std::move(with_directories));
}

// Gives the images that lie in directories of tars their classes.
void ImageLister::TakeDirectories() {
  for (TarWithDirectories& tar : tars_) {
    tar.root = RootOfClasses({tar.directories.begin(), tar.directories.end()});
  }
  // A part of a set may have images of one class alone, in directories in that: other parts tell.
  const std::vector<TarWithDirectories> all = tars_;
  for (TarWithDirectories& tar : tars_) {
    for (const TarWithDirectories& other : all) {
      const std::set<std::string> classes = other.classes();
      const bool is_above = tar.root.size() > other.root.size() && tar.root.starts_with(other.root);
      const std::string below = is_above ? tar.root.substr(other.root.size()) : "";
      if (classes.size() > 1 && classes.contains(below.substr(0, below.find('/')))) {
        tar.root = other.root;
      }
    }
    listing_.containers[tar.container].root = tar.root;
    const TarWithDirectories& first = tars_.front();
    if (tar.root != first.root && listing_.note.empty()) {
      listing_.note = "the classes are the directories in " + DescribeRoot(first.root) + " of " +
                      listing_.containers[first.container].path + ", and in " +
                      DescribeRoot(tar.root) + " of " + listing_.containers[tar.container].path;
    }
    for (std::size_t i = 0; i < tar.images.size(); ++i) {
      const std::string below = tar.directories[i].substr(tar.root.size());
      listing_.images[tar.images[i]].class_number = NumberOf(below.substr(0, below.find('/')));
    }
  }
}

// Gives the images that lie in no directory, nor in a tar that tells their class, the class that
// their own names tell.
void ImageLister::TakeSynsets() {
  const bool are_parts = AreNamesOfParts(flat_classes_);
  if (!are_parts && !flat_classes_.contains("")) return;
  const auto has_synset = [this](std::size_t i) {
    return !SynsetInName(listing_.images[i].path).empty();
  };
  if (std::ranges::all_of(flat_images_, has_synset)) {
    for (const std::size_t i : flat_images_) {
      listing_.images[i].class_number = NumberOf(SynsetInName(listing_.images[i].path));
    }
    const std::string_view example = BaseName(listing_.images[flat_images_.front()].path);
    listing_.note =
        "the images lie in no directories: their classes are the synsets in their names, " +
        SynsetInName(example) + " of " + std::string(example);
  } else if (are_parts) {
    throw Error(EX_DATAERR,
                *flat_classes_.begin() + ".tar, " + *std::next(flat_classes_.begin()) +
                    ".tar: the names of the tars differ in a number alone, so they are parts of "
                    "one set and no classes, and their images lie in no directories, which would "
                    "be their classes: give a list of classes, --train_labels or "
                    "--validation_labels, or pack the images in directories");
  }
}

// Gives the images from `first_image` on the classes of WebDataset's KEY.cls.
void ImageLister::TakeNumbers(std::size_t first_image, const std::vector<ClassFile>& files) {
  std::vector<std::string> paths;
  for (std::size_t i = first_image; i < listing_.images.size(); ++i) {
    paths.push_back(listing_.images[i].path);
  }
  const auto numbers = NumbersOfImages(listing_.containers.back().path, files, paths);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    listing_.images[first_image + i].class_number = NumberOf(std::to_string(numbers[i]));
  }
  listing_.is_numbered = true;
}

// `images`: those of one tar that its name gives the class; `label_files`: paths, by key.
void ImageLister::RequireNoLabelFiles(std::span<const std::size_t> images,
                                      const std::map<std::string, std::string>& label_files) const {
  const auto with_file = std::ranges::count_if(images, [&](std::size_t i) {
    return label_files.contains(std::string(KeyOf(listing_.images[i].path)));
  });
  if (with_file * 2 <= std::ssize(images)) return;
  throw Error(EX_DATAERR, listing_.containers.back().path + ": images have files such as " +
                              label_files.begin()->second +
                              " beside them, which are not read: give the classes as numbers in "
                              "KEY.cls, or by --train_labels or --validation_labels; if the tar's "
                              "name is the class, pack it without these files");
}

// Of the images of one tar, from `first_image` on.
void ImageLister::RequireNamesOnce(std::size_t first_image) const {
  std::vector<const InputImage*> images;
  for (std::size_t i = first_image; i < listing_.images.size(); ++i) {
    images.push_back(&listing_.images[i]);
  }
  std::ranges::sort(images, {}, [](const InputImage* image) {
    return std::pair(std::string_view(image->path), image->range.offset);
  });
  const auto twice = std::ranges::adjacent_find(
      images, {}, [](const InputImage* image) -> const std::string& { return image->path; });
  if (twice == images.end()) return;
  throw Error(EX_DATAERR, listing_.containers.back().path + ", " + (*twice)->path +
                              ": the tar has it twice, at the bytes " +
                              std::to_string((*twice)->range.offset) + " and " +
                              std::to_string((*std::next(twice))->range.offset) +
                              "; tar extracts the last one: unpack the tar and pack it again");
}

void ImageLister::TakeLabels(const ImageLabels& labels, const std::string& sources) {
  std::ranges::sort(listing_.images, {}, [](const InputImage& image) {
    return std::pair(BaseName(image.path), std::string_view(image.path));
  });
  std::vector<std::string> names;
  for (const InputImage& image : listing_.images) {
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
  if (!has_labels_) {
    TakeDirectories();
    TakeSynsets();
  }
  for (const InputImage& image : listing_.images) {
    const std::string& name = listing_.classes[image.class_number];
    if (name.empty()) {
      throw Error(EX_DATAERR,
                  listing_.containers[image.container].path + ", " + image.path +
                      ": the image lies in no directory, which would be its class: give "
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

namespace {

constexpr std::size_t kMaxOpenTars = 64;

}  // namespace

ImageReader::ImageReader(const ImageListing& listing) : listing_(listing) {
  tars_.resize(listing.containers.size());
  if (tars_.size() > kMaxOpenTars) return;
  for (std::size_t i = 0; i < tars_.size(); ++i) {
    if (listing.containers[i].is_tar) tars_[i] = OpenForReading(listing.containers[i].path);
  }
}

void ImageReader::Read(const InputImage& image, std::vector<std::uint8_t>& bytes) const {
  const ImageContainer& container = listing_.containers[image.container];
  const std::string path = container.is_tar ? container.path : container.path + "/" + image.path;
  if (image.range.size > kMaxImageFileBytes) {
    throw Error(EX_DATAERR, Describe(image) + " has " + std::to_string(image.range.size) +
                                " bytes, at most " + std::to_string(kMaxImageFileBytes) +
                                " are read");
  }
  bytes.resize(image.range.size);
  const support::Descriptor& open_tar = tars_[image.container];
  support::Descriptor own;
  if (!open_tar.is_open()) own = OpenForReading(path);
  const support::Descriptor& file = open_tar.is_open() ? open_tar : own;
  const bool is_same = container.is_tar || FileSize(file, path) == image.range.size;
  if (!is_same || ReadAt(file, path, image.range.offset, bytes) < bytes.size()) {
    throw Error(EX_DATAERR, Describe(image) + ": the file changed while it was in use");
  }
}

std::string ImageReader::Describe(const InputImage& image) const {
  const ImageContainer& container = listing_.containers[image.container];
  return container.path + (container.is_tar ? ", " : "/") + image.path;
}

}  // namespace trainer
