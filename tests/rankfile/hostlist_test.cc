// SPDX-License-Identifier: Apache-2.0

#include "rankfile/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <stdexcept>

#include "rankfile/parse_error.h"
#include "tests/rankfile/readme_vectors.h"

namespace rankfile {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> Split(const std::string& text) {
  std::istringstream words(text);
  std::vector<std::string> list;
  for (std::string word; words >> word;) list.push_back(word);
  return list;
}

TEST(Hostlist, ExpandsAndRefusesAsTheReadmeSays) {
  CheckReadmeVectors("hostlist-expand",
                     [](const std::string& text) { return Joined(ExpandHostlist(text)); });
}

TEST(Hostlist, CompressesAsTheReadmeSays) {
  CheckReadmeVectors("hostlist-compress",
                     [](const std::string& text) { return CompressHostlist(Split(text)); });
}

TEST(Hostlist, ExpandingWhatWasCompressedGivesTheSameList) {
  std::mt19937 random(29);
  const std::vector<std::string> prefixes = {"n", "gpu", "r1-", "a.b", ""};
  const std::vector<std::string> suffixes = {"", "", "", ".x.org", "-ib"};
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> hosts;
    const std::size_t count = random() % 30;
    unsigned number = random() % 120;
    while (hosts.size() < count) {
      const int width = static_cast<int>(random() % 4);
      std::string digits = std::to_string(number);
      while (static_cast<int>(digits.size()) < width) digits.insert(0, 1, '0');
      hosts.push_back(prefixes[random() % prefixes.size()] + digits +
                      suffixes[random() % suffixes.size()]);
      number = random() % 4 == 0 ? random() % 120 : number + 1;
    }
    const std::string text = CompressHostlist(hosts);
    EXPECT_EQ(ExpandHostlist(text), hosts) << text;
  }
}

TEST(Hostlist, HoldsAsManyHostsAsSlurmAndNoMore) {
  const std::vector<std::string> hosts = ExpandHostlist("n[0-65535]");
  ASSERT_EQ(hosts.size(), kMaxHosts);
  EXPECT_EQ(hosts.back(), "n65535");
  EXPECT_EQ(CompressHostlist(hosts), "n[0-65535]");

  std::vector<std::string> more = hosts;
  more.push_back("n65536");
  EXPECT_THROW(CompressHostlist(more), std::invalid_argument);
  EXPECT_THROW(ExpandHostlist("n[0-65536]"), ParseError);
}

TEST(Hostlist, CountsBeforeItAllocates) {
  // 10^18 hosts, and 10^30: the refusal must come at once.
  EXPECT_THROW(ExpandHostlist("n[0-999999999999999999]"), ParseError);
  EXPECT_THROW(ExpandHostlist("a[0-99999]b[0-99999]c[0-99999]d[0-99999]e[0-99999]f[0-99999]"),
               ParseError);
}

TEST(Hostlist, RefusesNamesThatAreTooLong) {
  const std::string longest(253, 'a');
  EXPECT_EQ(ExpandHostlist(longest).front(), longest);
  EXPECT_THROW(ExpandHostlist(longest + "a"), ParseError);
  EXPECT_THROW(ExpandHostlist(std::string(252, 'a') + "[8-10]"), ParseError);
}

TEST(Hostlist, NamesTheSourceInRefusals) {
  try {
    ExpandHostlist("n[1-2", "SLURM_JOB_NODELIST");
    FAIL();
  } catch (const ParseError& error) {
    EXPECT_EQ(std::string(error.what()),
              "SLURM_JOB_NODELIST:1:6: expected ']', as in n[1-3,07],login1, "
              "not the end of the text");
  }
}

TEST(Hostlist, RefusesToCompressWhatIsNotAHostName) {
  for (const char* name : {"", "a,b", "a b", "n[1]", "-a", "a\n"}) {
    EXPECT_THROW(CompressHostlist({name}), std::invalid_argument) << name;
  }
}

}  // namespace
}  // namespace rankfile
