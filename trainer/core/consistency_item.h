// SPDX-License-Identifier: Apache-2.0
//
// What must be the same on all ranks of a run, said so that a person can read it where it is not
// (comm/rank_consistency.h).

#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace trainer {

struct ConsistencyItem {
  std::string name;  // one of its kind among those compared together: "--seed"
  std::string text;  // what this rank has of it, to be read behind "has": "--seed=2"

  bool operator==(const ConsistencyItem&) const = default;
};

// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv): tells apart what mistakes make
// different, not what somebody makes alike on purpose.
class Fingerprint {
 public:
  void Add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) Mix(std::to_integer<std::uint64_t>(byte));
  }
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  // Eight bytes in one step.
  void Add(std::uint64_t number) { Mix(number); }

  std::uint64_t value() const { return value_; }
  std::string hex() const {
    char digits[16];
    return {digits, std::to_chars(digits, std::end(digits), value_, 16).ptr};
  }

 private:
  void Mix(std::uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3; }

  std::uint64_t value_ = 0xcbf29ce484222325;
};

// hex() of one text.
inline std::string HexFingerprint(std::string_view text) {
  Fingerprint fingerprint;
  fingerprint.Add(text);
  return fingerprint.hex();
}

}  // namespace trainer
