// SPDX-License-Identifier: Apache-2.0
//
// Names of the functions in a program or library on this machine, from the tables of its ELF file:
// also of those that the dynamic linker does not know.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

class ElfSymbols {
 public:
  // Of the file `path`; none where it cannot be read, is no 64-bit ELF file of this byte order, or
  // was stripped of them.
  explicit ElfSymbols(const std::string& path);

  // Whether addresses in it are absolute, and not from where it was loaded.
  bool is_absolute() const { return is_absolute_; }
  // The function that contains `address`, demangled; "" if it is not known.
  std::string NameOf(std::uint64_t address) const;

 private:
  struct Function {
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t name;  // place in names_
  };

  bool is_absolute_ = false;
  std::vector<Function> functions_;  // by address
  std::vector<char> names_;          // ends with a zero
};

}  // namespace trainer
