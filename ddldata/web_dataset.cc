// SPDX-License-Identifier: Apache-2.0

#include "ddldata/web_dataset.h"

#include <map>
#include <optional>

#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/data/files/text_lines.h"
#include "trainer/data/images/image_files.h"

namespace trainer {
namespace {

constexpr int kMaxNumber = 1'000'000;

// Of an image or a file KEY.cls: the path up to the last dot.
std::string_view WithoutLastEnding(std::string_view path) {
  return path.substr(0, path.rfind('.'));
}

int NumberIn(const std::string& tar, const ClassFile& file) {
  std::string_view text = file.text;
  while (text.ends_with('\n')) text = Trimmed(text.substr(0, text.size() - 1));
  const auto number = support::WholeNumber<int>(Trimmed(text));
  if (!number || *number < 0 || *number > kMaxNumber) {
    throw Error(EX_DATAERR, tar + ", " + file.path +
                                ": expected the number of a class, from 0 to " +
                                std::to_string(kMaxNumber));
  }
  return *number;
}

// Which file is of which image, both by their places in the lists.
class Pairing {
 public:
  Pairing(const std::string& tar, const std::vector<ClassFile>& files,
          const std::vector<std::string>& images)
      : tar_(tar),
        files_(files),
        images_(images),
        file_of_(images.size()),
        image_of_(files.size()) {}

  // Throws as NumbersOfImages, but of the numbers.
  std::vector<std::size_t> Make();

 private:
  [[noreturn]] void RejectOneKey(const std::string& a, const std::string& b,
                                 const std::string& why) const;
  void PairByName();
  void PairByKey();

  const std::string& tar_;
  const std::vector<ClassFile>& files_;
  const std::vector<std::string>& images_;
  std::vector<std::optional<std::size_t>> file_of_;
  std::vector<std::optional<std::size_t>> image_of_;
};

void Pairing::RejectOneKey(const std::string& a, const std::string& b,
                           const std::string& why) const {
  throw Error(EX_DATAERR, tar_ + ": " + a + " and " + b + " have one key, " +
                              std::string(KeyOf(a)) + ", " + why);
}

void Pairing::PairByName() {
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const auto [other, is_new] = by_name.emplace(WithoutLastEnding(files_[i].path), i);
    if (is_new) continue;
    RejectOneKey(files_[other->second].path, files_[i].path, "which has one class: remove one");
  }
  for (std::size_t i = 0; i < images_.size(); ++i) {
    const auto found = by_name.find(WithoutLastEnding(images_[i]));
    if (found == by_name.end() || image_of_[found->second]) continue;
    image_of_[found->second] = i;
    file_of_[i] = found->second;
  }
}

void Pairing::PairByKey() {
  std::multimap<std::string_view, std::size_t> by_key;
  for (std::size_t i = 0; i < files_.size(); ++i) by_key.emplace(KeyOf(files_[i].path), i);
  for (std::size_t i = 0; i < images_.size(); ++i) {
    if (file_of_[i]) continue;
    const auto [begin, end] = by_key.equal_range(KeyOf(images_[i]));
    const auto own = std::string(WithoutLastEnding(images_[i])) + std::string(kClassFileEnding);
    if (begin == end) {
      throw Error(EX_DATAERR, tar_ + ", " + images_[i] + ": the image has no file " +
                                  std::string(KeyOf(images_[i])) + std::string(kClassFileEnding) +
                                  " of its own");
    }
    const std::size_t file = begin->second;
    if (std::next(begin) != end) {
      RejectOneKey(files_[file].path, files_[std::next(begin)->second].path,
                   "so that the class of " + images_[i] + " cannot be known: name its file " + own);
    }
    if (image_of_[file]) {
      RejectOneKey(images_[i], images_[*image_of_[file]],
                   "and one class, that in " + files_[file].path +
                       ": give each image a key and a KEY.cls of its own");
    }
    image_of_[file] = i;
    file_of_[i] = file;
  }
}

std::vector<std::size_t> Pairing::Make() {
  PairByName();
  PairByKey();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (image_of_[i]) continue;
    throw Error(EX_DATAERR, tar_ + ", " + files_[i].path + ": there is no image for it");
  }
  std::vector<std::size_t> file_of;
  for (const auto& file : file_of_) file_of.push_back(file.value());
  return file_of;
}

}  // namespace

std::string_view KeyOf(std::string_view path) {
  return path.substr(0, path.find('.', path.size() - BaseName(path).size()));
}

std::vector<int> NumbersOfImages(const std::string& tar, const std::vector<ClassFile>& files,
                                 const std::vector<std::string>& images) {
  std::vector<int> numbers;
  for (const std::size_t file : Pairing(tar, files, images).Make()) {
    numbers.push_back(NumberIn(tar, files[file]));
  }
  return numbers;
}

}  // namespace trainer
