// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/stacks/elf_symbols.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>

namespace trainer {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;  // of a table; more is no real file
constexpr unsigned char kByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

// `count` elements at `offset` of the file; empty if they are not there.
template <typename T>
std::vector<T> ReadAt(std::ifstream& file, std::uint64_t offset, std::uint64_t count) {
  if (count > kMaxBytes / sizeof(T)) return {};
  std::vector<T> values(count);
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(count * sizeof(T)));
  if (!file) values.clear();
  return values;
}

// The one with all functions, else the one of the dynamic linker; null if there is none.
const Elf64_Shdr* FindTable(std::span<const Elf64_Shdr> sections) {
  for (const std::uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    const auto found = std::ranges::find(sections, type, &Elf64_Shdr::sh_type);
    if (found != sections.end() && found->sh_link < sections.size()) return &*found;
  }
  return nullptr;
}

std::string Demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

ElfSymbols::ElfSymbols(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto headers = ReadAt<Elf64_Ehdr>(file, 0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return;
  const Elf64_Ehdr& header = headers[0];
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder) return;
  is_absolute_ = header.e_type == ET_EXEC;
  const auto sections = ReadAt<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
  const Elf64_Shdr* const table = FindTable(sections);
  if (table == nullptr) return;
  const Elf64_Shdr& names = sections[table->sh_link];
  names_ = ReadAt<char>(file, names.sh_offset, names.sh_size);
  names_.push_back(0);
  for (const Elf64_Sym& symbol :
       ReadAt<Elf64_Sym>(file, table->sh_offset, table->sh_size / sizeof(Elf64_Sym))) {
    const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    if (!is_function || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names_.size()) continue;
    functions_.push_back({symbol.st_value, symbol.st_size, symbol.st_name});
  }
  std::ranges::sort(functions_, {}, &Function::address);
}

std::string ElfSymbols::NameOf(std::uint64_t address) const {
  auto next = std::ranges::upper_bound(functions_, address, {}, &Function::address);
  if (next == functions_.begin()) return "";
  const Function& function = *--next;
  if (address - function.address >= std::max<std::uint64_t>(function.size, 1)) return "";
  return Demangled(names_.data() + function.name);
}

}  // namespace trainer
