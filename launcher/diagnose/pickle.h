// SPDX-License-Identifier: Apache-2.0
//
// A strict reader of the pickles that PyTorch's flight recorder writes: dict, list, tuple, text,
// whole numbers, floats, bool and None, in protocols 2 to 5.  Whatever else a pickle may have, as
// what makes objects and calls functions, is refused.  Nothing is executed.  Pure.
//
// https://docs.python.org/3/library/pickletools.html

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace launcher {

struct PickleValue {
  enum class Kind { kNone, kBool, kInt, kFloat, kText, kList, kTuple, kDict };
  Kind kind = Kind::kNone;
  std::int64_t number = 0;  // of a bool, too; a float has none
  std::string_view text;
  // Where the elements are (Pickle::At); of a dict a key, its value, the next key.  Several may
  // share an element, which may even hold them: who follows these stops somewhere.
  std::vector<std::uint32_t> items;
};

class Pickle {
 public:
  // Of more nothing is read.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxValues = 1'000'000;

  // nullopt for all that is not one whole pickle of these kinds, as half of one is.  `bytes` are to
  // outlive the result.
  static std::optional<Pickle> Parse(std::string_view bytes);

  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& At(std::uint32_t index) const { return values_[index]; }
  // What a dict has for the key, the last where it has several; None for all else.
  const PickleValue& Find(const PickleValue& dict, std::string_view key) const;

 private:
  friend class PickleReader;
  std::vector<PickleValue> values_;
  std::uint32_t root_ = 0;
};

}  // namespace launcher
