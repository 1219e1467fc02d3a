// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace launcher {
namespace {

struct Machine {
  unsigned number;
  int word_bits;
  bool is_big_endian;
  const char* name;  // of uname -m
};

constexpr Machine kMachines[] = {
    {EM_X86_64, 64, false, "x86_64"},   {EM_X86_64, 32, false, "x32 (x86_64)"},
    {EM_386, 32, false, "i386"},        {EM_PPC64, 64, false, "ppc64le"},
    {EM_PPC64, 64, true, "ppc64"},      {EM_PPC, 32, true, "ppc"},
    {EM_AARCH64, 64, false, "aarch64"}, {EM_AARCH64, 64, true, "aarch64_be"},
    {EM_ARM, 32, false, "arm"},         {EM_RISCV, 64, false, "riscv64"},
    {EM_RISCV, 32, false, "riscv32"},   {EM_S390, 64, true, "s390x"},
    {EM_IA_64, 64, false, "ia64"},      {EM_SPARCV9, 64, true, "sparc64"},
    {EM_MIPS, 64, false, "mips64el"},   {EM_MIPS, 32, false, "mipsel"},
    {EM_CUDA, 64, false, "a GPU"},
};

#if defined(__x86_64__)
constexpr unsigned kMachineOfNode = EM_X86_64;
#elif defined(__powerpc64__)
constexpr unsigned kMachineOfNode = EM_PPC64;
#elif defined(__aarch64__)
constexpr unsigned kMachineOfNode = EM_AARCH64;
#else
constexpr unsigned kMachineOfNode = EM_NONE;
#endif
constexpr bool kIsBigEndian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

struct NameEnd {
  const char* end;
  const char* program;
};

// The programs that take files of these names.
constexpr NameEnd kNameEnds[] = {
    {".py", "python"}, {".pyc", "python"}, {".sh", "bash"},       {".bash", "bash"},
    {".pl", "perl"},   {".R", "Rscript"},  {".r", "Rscript"},     {".jl", "julia"},
    {".lua", "lua"},   {".rb", "ruby"},    {".jar", "java -jar"},
};

struct Bytes {
  unsigned char at[kMaxOfFirstLine - 1];
  size_t count;
};

bool StartsWith(const Bytes& bytes, const char* text, size_t size) {
  return bytes.count >= size && memcmp(bytes.at, text, size) == 0;
}

uint64_t NumberAt(const unsigned char* at, int size, bool is_big_endian) {
  uint64_t number = 0;
  for (int i = 0; i < size; ++i) number = number << 8 | at[is_big_endian ? i : size - 1 - i];
  return number;
}

// Where the fields of an ELF file are that has words of 64 or of 32 bits (elf.h has them as types
// of the byte order of this machine alone).
struct Layout {
  size_t header;
  size_t entry, entry_size, table, table_size, part_size, parts;
  size_t part, offset, offset_size, length;  // of a part in the table of parts
};
constexpr Layout kLayout64 = {64, 24, 8, 32, 8, 54, 56, 56, 8, 8, 32};
constexpr Layout kLayout32 = {52, 24, 4, 28, 4, 42, 44, 32, 4, 4, 16};

// Reads the path of the loader.  False where the file ends before it.
bool ReadLoader(int fd, const Layout& layout, const Bytes& head, bool is_big_endian,
                ProgramFile* file) {
  const auto field = [&](size_t at, size_t size) {
    return NumberAt(head.at + at, static_cast<int>(size), is_big_endian);
  };
  const uint64_t table = field(layout.table, layout.table_size);
  const uint64_t part_size = field(layout.part_size, 2);
  const uint64_t parts = field(layout.parts, 2);
  if (parts > 0 && part_size != layout.part) return false;
  for (uint64_t i = 0; i < parts; ++i) {
    unsigned char part[sizeof(Elf64_Phdr)];
    const ssize_t got = pread(fd, part, layout.part, static_cast<off_t>(table + i * part_size));
    if (got != static_cast<ssize_t>(layout.part)) return false;
    if (NumberAt(part, 4, is_big_endian) != PT_INTERP) continue;
    const int offset_size = static_cast<int>(layout.offset_size);
    const uint64_t at = NumberAt(part + layout.offset, offset_size, is_big_endian);
    const uint64_t length = NumberAt(part + layout.length, offset_size, is_big_endian);
    if (length == 0 || length >= sizeof(file->loader)) return false;
    const auto size = static_cast<size_t>(length);
    const ssize_t read = pread(fd, file->loader, size, static_cast<off_t>(at));
    if (read != static_cast<ssize_t>(size)) {
      file->loader[0] = '\0';
      return false;
    }
    file->loader[size] = '\0';
    return true;
  }
  return true;
}

void ReadElf(int fd, const Bytes& head, ProgramFile* file) {
  file->kind = ProgramFile::Kind::kElf;
  const bool is_64 = head.count > EI_CLASS && head.at[EI_CLASS] == ELFCLASS64;
  const bool is_big_endian = head.count > EI_DATA && head.at[EI_DATA] == ELFDATA2MSB;
  const Layout& layout = is_64 ? kLayout64 : kLayout32;
  if (head.count < layout.header) {
    file->is_damaged = true;
    return;
  }
  file->type = static_cast<unsigned>(NumberAt(head.at + 16, 2, is_big_endian));
  file->machine = static_cast<unsigned>(NumberAt(head.at + 18, 2, is_big_endian));
  const int word_bits = is_64 ? 64 : 32;
  file->is_of_node = file->machine == kMachineOfNode && word_bits == 8 * sizeof(void*) &&
                     is_big_endian == kIsBigEndian;
  snprintf(file->machine_name, sizeof(file->machine_name), "machine %u", file->machine);
  for (const Machine& machine : kMachines) {
    if (machine.number == file->machine && machine.word_bits == word_bits &&
        machine.is_big_endian == is_big_endian) {
      snprintf(file->machine_name, sizeof(file->machine_name), "%s", machine.name);
    }
  }
  file->has_entry =
      NumberAt(head.at + layout.entry, static_cast<int>(layout.entry_size), is_big_endian) != 0;
  file->is_damaged = !ReadLoader(fd, layout, head, is_big_endian, file);
}

void CopyWord(const char* begin, char (&word)[kMaxOfFirstLine]) {
  const size_t length = strcspn(begin, " \t\r\n");
  memcpy(word, begin, length);
  word[length] = '\0';
}

void ReadScript(const Bytes& head, ProgramFile* file) {
  file->kind = ProgramFile::Kind::kScript;
  char line[kMaxOfFirstLine];
  memcpy(line, head.at, head.count);
  line[head.count] = '\0';
  const size_t length = strcspn(line, "\n");
  file->has_long_first_line = length == sizeof(line) - 1;
  line[length] = '\0';
  file->has_windows_line_end = strchr(line, '\r') != nullptr;
  const char* interpreter = line + 2 + strspn(line + 2, " \t");
  CopyWord(interpreter, file->interpreter);
  const char* argument = interpreter + strlen(file->interpreter);
  CopyWord(argument + strspn(argument, " \t"), file->argument);
}

// As bash finds out whether it is to read a file as a script.
bool IsText(const Bytes& head) {
  for (size_t i = 0; i < head.count && head.at[i] != '\n'; ++i) {
    if (head.at[i] == '\0') return false;
  }
  return true;
}

bool BeginsAsOnMac(const Bytes& head) {
  return StartsWith(head, "\xcf\xfa\xed\xfe", 4) || StartsWith(head, "\xce\xfa\xed\xfe", 4);
}

bool IsRegular(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

ProgramFile ReadProgramFile(const char* path) {
  using Kind = ProgramFile::Kind;
  ProgramFile file;
  if (!IsRegular(path)) return file;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return file;
  Bytes head = {};
  const ssize_t got = pread(fd, head.at, sizeof(head.at), 0);
  head.count = got > 0 ? static_cast<size_t>(got) : 0;
  if (got == 0) {
    file.kind = Kind::kEmpty;
  } else if (StartsWith(head, ELFMAG, SELFMAG)) {
    ReadElf(fd, head, &file);
  } else if (StartsWith(head, "#!", 2)) {
    ReadScript(head, &file);
  } else if (StartsWith(head, "\xef\xbb\xbf", 3) || StartsWith(head, "\xff\xfe", 2) ||
             StartsWith(head, "\xfe\xff", 2)) {
    file.kind = Kind::kMarkedText;
  } else if (BeginsAsOnMac(head)) {
    file.kind = Kind::kOfMac;
  } else if (got > 0) {
    file.kind = IsText(head)                ? Kind::kText
                : StartsWith(head, "MZ", 2) ? Kind::kOfWindows
                                            : Kind::kData;
  }
  close(fd);
  return file;
}

const char* FindProgramFile(const char* name, const char* directories, char* path, size_t size) {
  snprintf(path, size, "%s", name);
  if (strchr(name, '/') != nullptr) return path;
  size_t first_length = 0;
  const char* first = nullptr;  // the directory of one that may not be executed
  const auto join = [&](const char* directory, size_t length) {
    snprintf(path, size, "%.*s%s/%s", static_cast<int>(length), directory, length == 0 ? "." : "",
             name);
  };
  for (;; ++directories) {
    const size_t length = strcspn(directories, ":");
    join(directories, length);
    if (IsRegular(path)) {
      if (access(path, X_OK) == 0) return path;
      if (first == nullptr) {
        first = directories;
        first_length = length;
      }
    }
    directories += length;
    if (*directories == '\0') break;
  }
  path[0] = '\0';
  if (first != nullptr) join(first, first_length);
  return path;
}

const char* ProgramForName(const char* name) {
  for (const NameEnd& known : kNameEnds) {
    const size_t length = strlen(name);
    const size_t end = strlen(known.end);
    if (length > end && strcmp(name + length - end, known.end) == 0) return known.program;
  }
  return "";
}

bool IsForShell(const char* path) {
  const ProgramFile file = ReadProgramFile(path);
  const bool names_none = file.kind == ProgramFile::Kind::kText ||
                          (file.kind == ProgramFile::Kind::kScript && file.interpreter[0] == '\0');
  const char* program = ProgramForName(path);
  return names_none && (*program == '\0' || strcmp(program, "bash") == 0);
}

bool IsLibrary(const ProgramFile& file) {
  return file.kind == ProgramFile::Kind::kElf && file.is_of_node && !file.is_damaged &&
         file.type == ET_DYN && !file.has_entry && file.loader[0] == '\0';
}

bool LacksProgramOfEnv(const ProgramFile& file, const char* directories) {
  if (file.kind != ProgramFile::Kind::kScript || file.has_long_first_line) return false;
  const char* slash = strrchr(file.interpreter, '/');
  if (slash == nullptr || strcmp(slash, "/env") != 0) return false;
  const char* name = file.argument;
  if (*name == '\0' || *name == '-' || strchr(name, '=') != nullptr) return false;
  if (file.has_windows_line_end) return true;
  char path[PATH_MAX];
  return access(FindProgramFile(name, directories, path, sizeof(path)), X_OK) != 0;
}

}  // namespace launcher
