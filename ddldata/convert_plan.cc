// SPDX-License-Identifier: Apache-2.0

#include "ddldata/convert_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "support/number.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/core/philox.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/text_lines.h"
#include "trainer/data/images/image_files.h"

namespace trainer {
namespace {

constexpr std::string_view kFirstLineOfConversion = "ddldata conversion 1\n";

// The names that images have, sorted.
std::set<std::string> UsedClasses(const ImageListing& listing) {
  std::vector<bool> is_used(listing.classes.size());
  for (const InputImage& image : listing.images) is_used[image.class_number] = true;
  std::set<std::string> used;
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    if (is_used[i]) used.insert(listing.classes[i]);
  }
  return used;
}

// The place of the first image of the class.
std::string FirstImageOf(const ImageListing& listing, const std::string& name) {
  const auto image = std::ranges::find_if(listing.images, [&](const InputImage& one) {
    return listing.classes[one.class_number] == name;
  });
  const ImageContainer& container = listing.containers[image->container];
  return container.path + (container.is_tar ? ", " : "/") + image->path;
}

// A list of classes says that there are more than the training images have.
void RejectNumbersWithoutTraining(const ImageListing& train, const ImageListing& validation) {
  if (train.images.empty()) return;
  const std::set<std::string> known = UsedClasses(train);
  for (const std::string& name : UsedClasses(validation)) {
    if (known.contains(name)) continue;
    throw Error(EX_DATAERR, FirstImageOf(validation, name) + ": the image has the class " + name +
                                " (KEY.cls), which is not among the " +
                                std::to_string(known.size()) +
                                " of the training images; --class_list=FILE with a line for each "
                                "class, from 0 on, allows classes without training images");
  }
}

std::vector<ImageClass> ClassesByNumber(const ImageListing& train, const ImageListing& validation,
                                        const std::vector<ImageClass>& listed) {
  std::size_t count = listed.size();
  for (const ImageListing* listing : {&train, &validation}) {
    if (listing->images.empty()) continue;
    if (!listing->is_numbered) {
      throw Error(EX_DATAERR,
                  "the classes of one split have numbers (KEY.cls), those of the other names: "
                  "convert them separately, with --class_list for the one with names");
    }
    for (const std::string& name : UsedClasses(*listing)) {
      const auto number = support::WholeNumber<std::size_t>(name).value();
      if (!listed.empty() && number >= listed.size()) {
        throw Error(EX_DATAERR, "an image has the class " + name + ", but --class_list has " +
                                    support::Counted(std::ssize(listed), "line") +
                                    ", for the classes from 0 on");
      }
      count = std::max(count, number + 1);
    }
  }
  if (listed.empty()) RejectNumbersWithoutTraining(train, validation);
  std::vector<ImageClass> classes = listed;
  classes.resize(count);
  return classes;
}

struct NumberedName {
  std::string_view stem;
  std::string_view digits;  // without zeros in front; of 0 one
};

NumberedName NumberAtTheEnd(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::size_t begin = last == std::string_view::npos ? 0 : last + 1;
  const std::string_view digits = name.substr(begin);
  const std::size_t nonzero = std::min(digits.find_first_not_of('0'), digits.size());
  return {name.substr(0, begin),
          digits.substr(digits.empty() ? 0 : std::min(nonzero, digits.size() - 1))};
}

// By the name of the class; of numbers, by the number.
std::map<std::string, std::int32_t> LabelsByName(const ImageListing& listing,
                                                 const std::vector<ImageClass>& classes) {
  std::map<std::string, std::int32_t> labels;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    labels[listing.is_numbered ? std::to_string(i) : classes[i].name] =
        static_cast<std::int32_t>(i) + 1;
  }
  return labels;
}

// Adds to a checksum what `text` holds.
class ListChecksum {
 public:
  void Add(std::string_view text) {
    text_ += text;
    text_ += '\n';
    constexpr std::size_t kPiece = 1U << 20;
    if (text_.size() > kPiece) Fold();
  }
  std::string hex() {
    Fold();
    std::array<char, 9> text{};
    std::snprintf(text.data(), text.size(), "%08x", value_);
    return text.data();
  }

 private:
  // The checksum of what is pending, behind the one so far.
  void Fold() {
    text_ += std::to_string(value_);
    value_ = Crc32c(std::as_bytes(std::span(text_.data(), text_.size())));
    text_.clear();
  }

  std::string text_;
  std::uint32_t value_ = 0;
};

// ", 3 of them with bounding boxes, list HEX", or "" where there are none: then it is the text of a
// conversion that was not given any.
std::string DescribeBoxes(const SplitOrder& plan, const ImageListing& listing) {
  const std::int64_t images = plan.ImagesWithBoxes();
  if (images == 0) return "";
  ListChecksum list;
  for (const PlannedImage& place : plan.order) {
    for (const BoundingBox& box : plan.BoxesOf(place)) {
      std::string text(BaseName(listing.images[place.image].path));
      for (const float corner : {box.xmin, box.ymin, box.xmax, box.ymax}) {
        text += " " + std::to_string(std::bit_cast<std::uint32_t>(corner));
      }
      list.Add(text);
    }
  }
  return ", " + std::to_string(images) + " of them with bounding boxes, list " + list.hex();
}

std::string DescribeSplit(const SplitOrder& plan, const ImageListing& listing) {
  ListChecksum list;
  std::uint64_t bytes = 0;
  for (const PlannedImage& place : plan.order) {
    const InputImage& image = listing.images[place.image];
    bytes += image.range.size;
    list.Add(std::to_string(place.label) + " " + std::to_string(image.range.size) + " " +
             std::string(BaseName(image.path)));
  }
  return FilePrefix(plan.split) + "* " + std::to_string(plan.order.size()) + " images, " +
         std::to_string(bytes) + " bytes, " + std::to_string(plan.shards) + " files, list " +
         list.hex() + DescribeBoxes(plan, listing) + "\n";
}

}  // namespace

std::vector<ImageClass> NumberClasses(const ImageListing& train, const ImageListing& validation,
                                      const std::vector<ImageClass>& listed) {
  if (train.is_numbered || validation.is_numbered) {
    return ClassesByNumber(train, validation, listed);
  }
  std::vector<ImageClass> classes = listed;
  const ImageListing& first = train.images.empty() ? validation : train;
  if (listed.empty()) {
    for (const std::string& name : UsedClasses(first)) classes.push_back({name, ""});
  }
  std::set<std::string> names;
  for (const ImageClass& one : classes) names.insert(one.name);
  for (const ImageListing* listing : {&train, &validation}) {
    for (const std::string& name : UsedClasses(*listing)) {
      if (names.contains(name)) continue;
      const std::string alike = DescribeLikeClass(name, names);
      throw Error(EX_DATAERR, FirstImageOf(*listing, name) + ": the image has the class " +
                                  Quoted(name) + ", which is not among the " +
                                  std::to_string(names.size()) + " of " +
                                  (listed.empty() ? "the training images" : "--class_list") +
                                  (alike.empty() && !listed.empty()
                                       ? "; the first there is " + Quoted(listed.front().name)
                                       : alike));
    }
  }
  return classes;
}

std::string DescribeOrderOfNumbers(const std::vector<ImageClass>& classes) {
  std::vector<NumberedName> numbers;
  for (const ImageClass& one : classes) {
    numbers.push_back(NumberAtTheEnd(one.name));
    if (numbers.back().digits.empty() || numbers.back().stem != numbers.front().stem) return "";
  }
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(numbers[i].digits.size(), numbers[i].digits);
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] == i) continue;
    return "the names of the classes are numbers, which labels count in the order of texts, as "
           "TensorFlow and torchvision do: the class " +
           classes[order[i]].name + " has the label " + std::to_string(order[i] + 1) + ", not " +
           std::to_string(i + 1) + " (labels.txt has all; --class_list gives another order)";
  }
  return "";
}

SplitOrder PlanSplit(Split split, const ImageListing& listing,
                     const std::vector<ImageClass>& classes, std::uint64_t seed, int shards) {
  const bool is_train = split == Split::kTrain;
  const auto images = std::ssize(listing.images);
  const std::string option = is_train ? "--shards" : "--validation_shards";
  if (shards < 0 || shards > kMaxShardNumber) {
    throw Error(EX_USAGE, option + " must be 0 to " + std::to_string(kMaxShardNumber) + ", not " +
                              std::to_string(shards));
  }
  if (shards > images) {
    throw Error(EX_USAGE, option + " must be at most " + std::to_string(images) + ", not " +
                              std::to_string(shards) + ": a file needs an image");
  }
  SplitOrder plan{split, {}, shards, {}};
  if (shards == 0) {
    const std::int64_t wanted = (images + kImagesOfShard - 1) / kImagesOfShard;
    plan.shards = static_cast<int>(
        std::min<std::int64_t>(wanted, is_train ? kMaxTrainShards : kMaxValidationShards));
  }
  const auto labels = LabelsByName(listing, classes);
  for (std::uint32_t i = 0; i < listing.images.size(); ++i) {
    const std::string& name = listing.classes[listing.images[i].class_number];
    plan.order.push_back({i, labels.at(name)});
  }
  std::ranges::sort(plan.order, {}, [&](const PlannedImage& place) {
    const InputImage& image = listing.images[place.image];
    return std::tuple(place.label, BaseName(image.path), std::string_view(image.path),
                      image.container, image.range.offset);
  });
  Random random(seed, RandomPurpose::kArrange, is_train ? 0 : 1);
  for (std::size_t i = plan.order.size(); i > 1; --i) {
    std::swap(plan.order[i - 1], plan.order[random.Below(static_cast<std::uint32_t>(i))]);
  }
  return plan;
}

std::int64_t SplitOrder::ImagesWithBoxes() const {
  return std::ranges::count_if(boxes, [](const auto& of_image) { return !of_image.empty(); });
}

std::vector<std::span<const BoundingBox>> PlanBoxes(const ImageListing& listing,
                                                    const BoxList& boxes) {
  std::vector<std::span<const BoundingBox>> planned;
  std::map<const BoundingBox*, std::uint32_t> images;  // that have boxes, by the first of these
  for (std::uint32_t i = 0; i < listing.images.size(); ++i) {
    const std::string& path = listing.images[i].path;
    planned.push_back(boxes.BoxesOf(path));
    if (planned.back().empty()) continue;
    const auto [other, is_new] = images.emplace(planned.back().data(), i);
    if (!is_new) {
      throw Error(EX_DATAERR, "two images have the name " +
                                  std::string(WithoutImageEnding(BaseName(path))) + ", " +
                                  listing.images[other->second].path + " and " + path +
                                  ": which of them bounding boxes mean cannot be known");
    }
  }
  return planned;
}

std::string DescribeConversion(std::uint64_t seed, const StoredImageOptions& image_options,
                               const std::vector<ImageClass>& classes,
                               std::span<const SplitOrder> plans,
                               std::span<const ImageListing> listings) {
  std::string text(kFirstLineOfConversion);
  text += "seed " + std::to_string(seed) + "\n";
  text += image_options.shorter_side == 0 ? "size as it is\n"
                                          : "size " + std::to_string(image_options.shorter_side) +
                                                " pixels on the shorter side, quality " +
                                                std::to_string(image_options.quality) + "\n";
  ListChecksum list;
  for (const ImageClass& one : classes) list.Add(one.name + " " + one.text);
  text += "classes " + std::to_string(classes.size()) + ", list " + list.hex() + "\n";
  for (std::size_t i = 0; i < plans.size(); ++i) text += DescribeSplit(plans[i], listings[i]);
  return text;
}

namespace {

// Letters of ASCII in small.
std::string FoldedCase(std::string_view name) {
  std::string folded(name);
  std::ranges::transform(folded, folded.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return folded;
}

struct LetterForms {
  std::string shape;       // with '?' for each letter beyond ASCII, however it is written
  bool has_marks = false;  // accents as characters of their own, U+0300 to U+036F
};

LetterForms FormsOf(std::string_view name) {
  LetterForms forms;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const auto next = static_cast<unsigned char>(i + 1 < name.size() ? name[i + 1] : '\0');
    const bool is_mark = byte == 0xcc || (byte == 0xcd && next <= 0xaf);
    if (is_mark) {
      forms.has_marks = true;
      if (!forms.shape.empty()) forms.shape.back() = '?';
    } else if (byte < 0x80) {
      forms.shape += name[i];
    } else if (byte >= 0xc0) {
      forms.shape += '?';
    }
  }
  return forms;
}

// In what alone two names differ; "" where they differ otherwise.
std::string DescribeAlikeNames(std::string_view one, std::string_view other) {
  const std::string_view plain = Trimmed(one);
  const std::string_view plain_other = Trimmed(other);
  if (plain == plain_other) return "blanks at the ends";
  if (FoldedCase(plain) != FoldedCase(plain_other)) return "";
  const bool has_blanks = plain.size() != one.size() || plain_other.size() != other.size();
  return has_blanks ? "capital letters and blanks at the ends" : "capital letters";
}

bool IsNameOfSplit(std::string_view name) {
  constexpr std::string_view kNames[] = {"train",      "training", "val",  "valid",
                                         "validation", "test",     "eval", "dev"};
  return std::ranges::find(kNames, FoldedCase(name)) != std::end(kNames);
}

}  // namespace

std::string DescribeAlikeClasses(const std::vector<ImageClass>& classes) {
  std::map<std::string, const ImageClass*> met;                         // by plain names
  std::map<std::pair<std::string, bool>, const ImageClass*> met_forms;  // by forms of accents
  for (const ImageClass& one : classes) {
    if (one.name.empty()) continue;
    const LetterForms forms = FormsOf(one.name);
    met_forms.emplace(std::pair(forms.shape, forms.has_marks), &one);
    const auto alike = met_forms.find(std::pair(forms.shape, !forms.has_marks));
    const auto [other, is_new] = met.emplace(FoldedCase(Trimmed(one.name)), &one);
    if (is_new && alike == met_forms.end()) continue;
    const std::string& name = is_new ? alike->second->name : other->second->name;
    const std::string how =
        is_new ? "the Unicode form of accents" : DescribeAlikeNames(one.name, name);
    return "the classes " + Quoted(name) + " and " + Quoted(one.name) + " differ in " + how +
           " alone, and have labels of their own: if they are one class, give both one name" +
           (is_new ? " (convmv --nfc)" : "");
  }
  return "";
}

std::string DescribeNumbersFromOne(const ImageListing& train, const ImageListing& validation) {
  for (const ImageListing* listing : {&train, &validation}) {
    if (!listing->is_numbered) continue;
    const std::set<std::string> numbers = UsedClasses(*listing);
    if (numbers.size() < 2 || numbers.contains("0")) continue;
    return std::string("no ") + (listing == &train ? "training" : "validation") +
           " image has the class 0 (KEY.cls), from which WebDataset counts, so that label 1 is of "
           "none of them; if the numbers count from 1, write them from 0 on";
  }
  return "";
}

std::string DescribeLikeClass(const std::string& name, const std::set<std::string>& names) {
  const LetterForms forms = FormsOf(name);
  for (const std::string& other : names) {
    const std::string alike = DescribeAlikeNames(name, other);
    if (!alike.empty()) {
      return "; the class " + Quoted(other) + " differs from it in " + alike +
             ": give both one name";
    }
    const LetterForms of_other = FormsOf(other);
    if (of_other.shape == forms.shape && of_other.has_marks != forms.has_marks) {
      return "; the class " + Quoted(other) +
             " looks the same, but one has accents as characters of their own, as macOS writes "
             "them: give both one name (convmv --nfc)";
    }
  }
  return "";
}

std::string DescribeUnusedClasses(const ImageListing& train, const ImageListing& validation,
                                  const std::vector<ImageClass>& listed) {
  std::set<std::string> used = UsedClasses(train);
  used.merge(UsedClasses(validation));
  const bool is_numbered = train.is_numbered || validation.is_numbered;
  std::int64_t unused = 0;
  std::string first;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (used.contains(is_numbered ? std::to_string(i) : listed[i].name)) continue;
    if (unused++ == 0) first = listed[i].name;
  }
  if (unused == 0) return "";
  return "classes of --class_list without images: " + std::to_string(unused) + " of " +
         std::to_string(listed.size()) + "; the first is " + Quoted(first);
}

std::string DescribeOneClass(const ImageListing& listing) {
  constexpr std::size_t kStrayImages = 10;  // times more in directories: a logo, a sample
  const auto is_of_tar = [&](const InputImage& image) {
    return listing.containers[image.container].is_tar;
  };
  if (listing.is_numbered || UsedClasses(listing).size() != 1 ||
      std::ranges::any_of(listing.images, is_of_tar)) {
    return "";
  }
  std::string directory;  // with '/' behind, or "": that of the container
  std::string above;      // the one that it lies in
  bool has_several = false;
  bool has_images = false;
  while (true) {
    std::set<std::string> below;
    std::size_t in_it = 0;
    std::size_t in_directories = 0;
    for (const InputImage& image : listing.images) {
      if (!image.path.starts_with(directory)) continue;
      const std::size_t end = image.path.find('/', directory.size());
      (end == std::string::npos ? in_it : in_directories) += 1;
      if (end != std::string::npos)
        below.insert(image.path.substr(directory.size(), end - directory.size()));
    }
    has_images = kStrayImages * in_it > in_directories;
    if (has_images) break;
    has_several |= below.size() > 1;
    const bool is_one = below.size() == 1;
    if (!is_one && !std::ranges::all_of(below, IsNameOfSplit)) break;
    const auto train = std::ranges::find_if(
        below, [](const std::string& name) { return FoldedCase(name).starts_with("train"); });
    const std::string& next = is_one || train == below.end() ? *below.begin() : *train;
    above = directory;
    directory += next + "/";
  }
  if (!has_several) return "";
  // Of a split with one class, the class was entered.
  const std::string_view last =
      std::string_view(directory).substr(above.size(), directory.size() - above.size() - 1);
  if (has_images && !IsNameOfSplit(last)) directory = above;
  const auto image = std::ranges::find_if(
      listing.images, [&](const InputImage& one) { return one.path.starts_with(directory); });
  std::string meant = listing.containers[image->container].path;
  if (!meant.ends_with('/')) meant += '/';
  meant += directory;
  meant.pop_back();
  return "all images are of one class, " + Quoted(listing.classes[image->class_number]) +
         ", and lie in several directories of it: did you mean --train " + meant +
         "? If they are one class, say so with --class_list=FILE";
}

std::string DescribeNestedDirectories(const ImageListing& listing) {
  std::map<std::string_view, std::set<std::string_view>>
      classes_of;  // by directories in their directories
  std::set<std::string_view> classes;
  std::string root;
  bool has_images_beside = false;
  bool is_tar = false;
  for (const InputImage& image : listing.images) {
    const ImageContainer& container = listing.containers[image.container];
    std::string_view path = image.path;
    if (!path.starts_with(container.root)) return "";
    path.remove_prefix(container.root.size());
    const std::size_t end = path.find('/');
    const bool is_tar_in_tar = container.is_tar && HasEnding(path.substr(0, end), ".tar");
    if (listing.is_numbered || is_tar_in_tar || end == std::string_view::npos) return "";
    const std::size_t end_of_next = path.find('/', end + 1);
    root = container.path + (container.root.empty() ? "" : ", " + container.root);
    if (root.ends_with('/')) root.pop_back();
    is_tar = container.is_tar;
    classes.insert(path.substr(0, end));
    if (end_of_next == std::string_view::npos) {
      has_images_beside = true;
    } else {
      classes_of[path.substr(end + 1, end_of_next - end - 1)].insert(path.substr(0, end));
    }
  }
  const std::string rule =
      is_tar ? ": the class of an image is the directory right below the one that all lie in"
             : ": the class of an image is the directory right below the one that is given";
  if (!classes.empty() && std::ranges::all_of(classes, IsNameOfSplit)) {
    const auto train = std::ranges::find_if(
        classes, [](std::string_view name) { return FoldedCase(name).starts_with("train"); });
    const std::string_view meant = train == classes.end() ? *classes.begin() : *train;
    return "the classes have the names of splits, such as " + std::string(meant) + rule +
           (is_tar ? "; unpack " + root.substr(0, root.find(", ")) + ", or pack a tar of "
                   : "; did you mean " + root + "/") +
           std::string(meant) + (is_tar ? " alone" : "?");
  }
  std::set<std::string_view> with_repeated;
  std::string example;
  for (const auto& [directory, of] : classes_of) {
    if (of.size() < 2) continue;
    with_repeated.insert(of.begin(), of.end());
    if (example.empty()) {
      example = std::string(directory) + " in " + std::string(*of.begin()) + " and in " +
                std::string(*std::next(of.begin()));
    }
  }
  if (has_images_beside || with_repeated.empty() || with_repeated.size() < classes.size())
    return "";
  return "directories of one name are in several classes, " + example + rule;
}

}  // namespace trainer
