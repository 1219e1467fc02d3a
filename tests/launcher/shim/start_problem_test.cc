// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/start_problem.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launcher/shim/run_program.h"
#include "tests/support/emulated.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

constexpr char kDirectories[] = "/usr/bin:/bin";
constexpr char kStarted[] = "started";
constexpr char kStartsOthers[] = "Linux starts programs of the real processor, too";

struct ElfParts {
  unsigned char word = ELFCLASS64;
  unsigned char order = ELFDATA2LSB;
  Elf64_Half machine = EM_X86_64;
  Elf64_Half type = ET_EXEC;
  Elf64_Addr entry = 0x1000;
  std::string loader = {};
};

#if defined(__x86_64__)
constexpr Elf64_Half kOther = EM_PPC64;
constexpr char kOtherName[] = "ppc64le";
constexpr Elf64_Half kOwn = EM_X86_64;
#else
constexpr Elf64_Half kOther = EM_X86_64;
constexpr char kOtherName[] = "x86_64";
constexpr Elf64_Half kOwn = EM_PPC64;
#endif

std::string Raw(const void* from, std::size_t size) {
  return {static_cast<const char*>(from), size};
}

// The headers of a program with words of 64 bits, in the byte order of this machine.
std::string Elf64(const ElfParts& parts) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = parts.word;
  header.e_ident[EI_DATA] = parts.order;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = parts.type;
  header.e_machine = parts.machine;
  header.e_version = EV_CURRENT;
  header.e_entry = parts.entry;
  header.e_phoff = sizeof(header);
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = parts.loader.empty() ? 1 : 2;
  Elf64_Phdr load = {};
  load.p_type = PT_LOAD;
  load.p_flags = PF_R | PF_X;
  load.p_vaddr = 0x400000;
  load.p_filesz = load.p_memsz = sizeof(header);
  load.p_align = 0x1000;
  Elf64_Phdr loader = {};
  loader.p_type = PT_INTERP;
  loader.p_offset = sizeof(header) + 2 * sizeof(load);
  loader.p_filesz = loader.p_memsz = parts.loader.size() + 1;
  std::string text = Raw(&header, sizeof(header));
  if (!parts.loader.empty()) text += Raw(&loader, sizeof(loader));
  text += Raw(&load, sizeof(load));
  return text + parts.loader + '\0' + "\ntouch was-run\n";
}

std::string Elf32(Elf32_Half machine) {
  Elf32_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = machine;
  header.e_entry = 0x1000;
  return Raw(&header, sizeof(header)) + "\ntouch was-run\n";
}

std::string Swapped(Elf64_Half number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number & 0xff)};
}

class StartProblem : public tests::DirectoryTest {
 protected:
  void SetUp() override { ASSERT_EQ(chdir(directory_.c_str()), 0); }
  void TearDown() override { ASSERT_EQ(chdir("/"), 0); }

  static void Write(const std::string& name, const std::string& content, mode_t mode = 0755) {
    std::ofstream(name, std::ios::binary) << content;
    ASSERT_EQ(chmod(name.c_str(), mode), 0);
  }

  // What is said of a program that does not start; kStarted of one that does.  Nothing may be run
  // of what is no program.
  static std::string Of(std::string program, const std::string& directories = kDirectories) {
    std::array<int, 2> ends = {-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
      setenv("PATH", directories.c_str(), 1);
      char* const argv[] = {program.data(), nullptr};
      const int error = BecomeProgram(argv, directories.c_str());
      if (write(ends[1], &error, sizeof(error)) < 0) _exit(1);
      _exit(0);
    }
    close(ends[1]);
    int error = 0;
    const bool failed = read(ends[0], &error, sizeof(error)) > 0;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(fs::exists("was-run")) << program;
    if (!failed) return kStarted;
    std::array<char, 800> text = {};
    DescribeStartProblem(program.c_str(), directories.c_str(), error, text.data(), text.size());
    return text.data();
  }
};

std::string NameOfNode() {
  utsname node = {};
  uname(&node);
  return node.machine;
}

TEST_F(StartProblem, NamesTheMachineThatAProgramIsBuiltFor) {
  if (tests::IsEmulated()) GTEST_SKIP() << kStartsOthers;
  ElfParts big = {.machine = 0, .type = 0, .entry = 0};
  big.order = ELFDATA2MSB;
  std::string of_power = Elf64(big);
  of_power.replace(16, 4, Swapped(ET_EXEC) + Swapped(EM_PPC64));
  std::string of_z = Elf64(big);
  of_z.replace(16, 4, Swapped(ET_EXEC) + Swapped(EM_S390));
  std::vector<std::pair<std::string, std::string>> files = {
      {kOtherName, Elf64({.machine = kOther})},
      {kOtherName, Elf64({.machine = kOther, .type = ET_DYN, .loader = "/lib64/ld64.so.2"})},
      {"aarch64", Elf64({.machine = EM_AARCH64})},
      {"riscv64", Elf64({.machine = EM_RISCV})},
      {"arm", Elf32(EM_ARM)},
      {"machine 4711", Elf64({.machine = 4711})},
      {"ppc64", of_power},
      {"s390x", of_z},
  };
  for (const auto& [name, content] : files) {
    if (name == NameOfNode()) continue;
    Write("program", content);
    EXPECT_EQ(Of("./program"),
              "Exec format error: it is built for " + name + ", and this node is " + NameOfNode());
    EXPECT_EQ(Of("program", "/usr/bin:" + directory_.string()), Of("./program"));
  }
}

TEST_F(StartProblem, NamesTheLoaderOfAProgram) {
  if (tests::IsEmulated()) GTEST_SKIP() << kStartsOthers;
  Write("program", Elf64({.machine = kOwn, .loader = "/lib64/ld-gone.so.2"}));
  EXPECT_EQ(Of("./program"), "the file is there, but not its loader /lib64/ld-gone.so.2");
  EXPECT_EQ(Of("program", directory_.string() + ":/bin"), Of("./program"));
  Write("loader", Elf64({.machine = kOther}));
  Write("program", Elf64({.machine = kOwn, .loader = directory_ / "loader"}));
  EXPECT_EQ(Of("./program"), "its loader " + (directory_ / "loader").string() + " is built for " +
                                 kOtherName + ", and this node is " + NameOfNode());
  Write("loader", "text");
  EXPECT_EQ(Of("./program"), "its loader " + (directory_ / "loader").string() + " is no program");
}

TEST_F(StartProblem, KnowsWhatIsNotLinkedOrNotWhole) {
  if (tests::IsEmulated()) GTEST_SKIP() << kStartsOthers;
  Write("part.o", Elf64({.machine = kOwn, .type = ET_REL, .entry = 0}));
  EXPECT_THAT(Of("./part.o"), HasSubstr("object file"));
  Write("core", Elf64({.machine = kOwn, .type = ET_CORE, .entry = 0}));
  EXPECT_THAT(Of("./core"), HasSubstr("core file"));
  Write("library.so", Elf64({.machine = kOwn, .type = ET_DYN, .entry = 0}));
  EXPECT_EQ(Of("./library.so"), "Exec format error: it is a shared library, and no program");
  for (const std::size_t size : {4U, 20U, 63U, 80U}) {
    Write("short", Elf64({.machine = kOwn, .loader = "/lib64/ld.so"}).substr(0, size));
    EXPECT_THAT(Of("./short"), HasSubstr("cut short or damaged")) << size;
  }
}

TEST_F(StartProblem, KnowsWhatIsNoProgramAtAll) {
  Write("empty", "");
  EXPECT_EQ(Of("./empty"), "Exec format error: the file is empty");
  Write("data", std::string("\x01\x02\0x\ntouch was-run\n", 19));
  EXPECT_EQ(Of("./data"), "Exec format error: it is data, and no program");
  Write("program.exe", std::string("MZ\x90\0\x03\ntouch was-run\n", 20));
  EXPECT_EQ(Of("./program.exe"), "Exec format error: it is a program of Windows");
  Write("mac", std::string("\xcf\xfa\xed\xfe\x07\ntouch was-run\n", 20));
  EXPECT_EQ(Of("./mac"), "Exec format error: it is a program of macOS");
  fs::create_directory("directory");
  EXPECT_EQ(Of("./directory"), "it is a directory, and no program");
  EXPECT_EQ(Of("directory"),
            "No such file or directory in PATH; in this directory it is a directory");
  ASSERT_EQ(mkfifo("fifo", 0755), 0);
  EXPECT_EQ(Of("./fifo"), "it is no file, and no program");
  fs::create_symlink("gone", "link");
  EXPECT_EQ(Of("./link"), "it is a symbolic link to gone: No such file or directory");
}

TEST_F(StartProblem, KnowsTextsThatBeginWithAByteOrderMark) {
  for (const std::string mark : {"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"}) {
    Write("script", mark + "#!/bin/sh\ntouch was-run\n");
    EXPECT_THAT(Of("./script"), HasSubstr("byte order mark"));
  }
}

TEST_F(StartProblem, SaysWhatToTypeForAFileThatIsNotExecutable) {
  Write("train.py", "import this\n", 0644);
  EXPECT_EQ(Of("./train.py"),
            "Permission denied: it is not executable, and is no program: write python ./train.py");
  EXPECT_EQ(Of("train.py"), "it is in this directory, but is no program: write python train.py");
  EXPECT_THAT(Of("train.py", directory_), HasSubstr("write python train.py"));
  // Its own interpreter, here one that every machine has, not that of its name.
  Write("train.py", "#!/usr/bin/env sh\necho\n", 0644);
  EXPECT_EQ(Of("./train.py"),
            "Permission denied: it is not executable: chmod +x ./train.py, or "
            "write sh ./train.py");
  EXPECT_THAT(Of("train.py"), HasSubstr("write sh train.py"));
  Write("run.sh", "echo\n", 0644);
  EXPECT_THAT(Of("run.sh"), HasSubstr("write bash run.sh"));
  Write("program", Elf64({.machine = kOwn}), 0644);
  EXPECT_EQ(Of("./program"), "Permission denied: it is not executable: chmod +x ./program");
  EXPECT_EQ(Of("program"),
            "No such file or directory in PATH; the file program of this directory is no program "
            "that may be executed");
}

TEST_F(StartProblem, GivesNoShellWhatIsForAnotherInterpreter) {
  if (tests::IsEmulated()) GTEST_SKIP() << kStartsOthers;
  Write("train.py", "touch was-run\n");
  EXPECT_EQ(Of("./train.py"),
            "Exec format error: it is no program by itself: write python ./train.py");
  EXPECT_EQ(Of("train.py"), "it is in this directory, but is no program: write python train.py");
  Write("other", Elf64({.machine = kOther}));
  Write("script", "#!" + (directory_ / "other").string() + "\ntouch was-run\n");
  EXPECT_EQ(Of("./script"), "its interpreter " + (directory_ / "other").string() +
                                " is built for " + kOtherName + ", and this node is " +
                                NameOfNode());
  Write("script", "#!/" + std::string(300, 'x') + "\ntouch was-run\n");
  EXPECT_THAT(Of("./script"), HasSubstr("first line is longer than the 256 bytes"));
}

TEST_F(StartProblem, NamesTheInterpreterOfAScript) {
  Write("script", "#!/no/such/shell -e\ntouch was-run\n");
  EXPECT_EQ(Of("./script"), "the file is there, but not its interpreter /no/such/shell");
  EXPECT_EQ(Of("script", directory_.string() + ":/bin"), Of("./script"));
  Write("script", "#! /usr/bin/env no-such-python\ntouch was-run\n");
  EXPECT_EQ(
      Of("./script"),
      "the file is there, but not its interpreter no-such-python, which is in no directory of "
      "PATH");
  Write("text", "text", 0644);
  Write("script", "#!" + (directory_ / "text").string() + "\ntouch was-run\n");
  EXPECT_THAT(Of("./script"), HasSubstr("/text may not be executed"));
}

TEST_F(StartProblem, NamesLineEndsOfWindows) {
  for (const std::string line : {"#!/bin/bash", "#! /bin/sh", "#!/usr/bin/env sh"}) {
    Write("script", line + "\r\ntouch was-run\r\n");
    EXPECT_EQ(Of("./script"),
              "the file is there, but its first line ends as under Windows: sed -i 's/\\r$//' "
              "./script");
  }
}

TEST_F(StartProblem, KnowsASettingInPlaceOfAProgram) {
  for (const std::string word : {"FOO=1", "CUDA_LAUNCH_BLOCKING=1", "_x="}) {
    EXPECT_EQ(Of(word),
              "it sets a variable, and is no program: write -x " + word + " before the program");
  }
  for (const std::string word : {"1x=2", "a-b=1", "=1", "no-such-program"}) {
    EXPECT_EQ(Of(word), "No such file or directory");
  }
}

TEST_F(StartProblem, KnowsWhatIsForAShell) {
  EXPECT_EQ(Of("cd"), "it is a command of the shell, and no program: write bash -c 'cd ...'");
  for (const char* word : {"source", "module", "ulimit", "export"}) {
    EXPECT_THAT(Of(word), HasSubstr("it is a command of the shell, and no program")) << word;
  }
  for (const char* line :
       {"cd data && ./train", "module load cuda", "FOO=1 ./train", "FOO= true", "true | cat",
        "true > log", "echo $RANK", "source env.sh", "~/train -x", "$HOME/train -x"}) {
    EXPECT_EQ(Of(line), "it is a line for a shell, and no program: write bash -c before it")
        << line;
  }
  Write("train", "#!/bin/sh\ntouch was-run\n");
  const std::string one_word =
      "No such file or directory: program and arguments are one word: leave out the quotes around "
      "them";
  for (const char* line : {"true --lr 0.1", "true\tx", "./train --lr 0.1", "/bin/sh train"}) {
    EXPECT_EQ(Of(line), one_word) << line;
  }
  EXPECT_EQ(Of("~/train"),
            "No such file or directory: no shell replaces ~ in quotes: write it outside of them, "
            "or $HOME");
  EXPECT_EQ(Of("$HOME/train"),
            "No such file or directory: no shell replaces $HOME/train in single quotes: take "
            "double ones");
  EXPECT_THAT(Of("$TRAIN"), HasSubstr("in single quotes"));
  // Names with spaces, and of programs that are not there.
  for (const char* name : {"my programs/train", "no-such-program --lr 0.1", "./no such", "cda",
                           "expo", "./cd", "a~b", "a$b"}) {
    EXPECT_EQ(Of(name), "No such file or directory") << name;
  }
  Write("my train", "#!/bin/sh\nexit 0\n");
  EXPECT_EQ(Of("./my train"), kStarted);
  EXPECT_THAT(Of("my train"), HasSubstr("that of this directory is ./my train"));
  Write("cd", "#!/bin/sh\nexit 0\n");
  EXPECT_THAT(Of("cd"), HasSubstr("that of this directory is ./cd"));
}

TEST_F(StartProblem, LeavesAloneWhatStarts) {
  Write("script", "#!/bin/sh\nexit 0\n");
  EXPECT_EQ(Of("./script"), kStarted);
  Write("script", "#!/usr/bin/env -S sh -e\nexit 0\n");
  EXPECT_EQ(Of("./script"), kStarted);
  Write("script", "#!/usr/bin/env sh\nexit 0\n");
  EXPECT_EQ(Of("./script"), kStarted);
  Write("script", "#!\nexit 0\n");
  EXPECT_EQ(Of("./script"), kStarted);
  Write("run.sh", "exit 0\n");
  EXPECT_EQ(Of("./run.sh"), kStarted);
  EXPECT_EQ(Of("true"), kStarted);
}

}  // namespace
}  // namespace launcher
