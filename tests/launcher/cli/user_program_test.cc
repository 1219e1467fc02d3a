// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/user_program.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(ProgramOnStdin, IsWhatNoArgumentGives) {
  for (const char* text :
       {"python3 -", "python", "/usr/bin/python3.11 -u -", "python3 -u", "bash", "bash -s",
        "bash -eus 1 2", "sh -", "/bin/sh -s x", "zsh -x", "ksh -e"}) {
    EXPECT_TRUE(ReadsProgramFromStdin(Words(text))) << text;
  }
}

TEST(ProgramOnStdin, IsNotLookedForWhereThereMayBeAnother) {
  for (const char* text : {"", "python3 -c x", "python3 -m train -", "python3 train.py -",
                           "bash x -", "bash -c :", "bash -lc :", "python3 --version", "python3 -V",
                           "python3 -W x", "bash --rcfile x", "bash -o errexit x", "perl",
                           "pythonic", "env python3 -", "cat -", "./train -"}) {
    EXPECT_FALSE(ReadsProgramFromStdin(Words(text))) << text;
  }
}

}  // namespace

}  // namespace launcher
