// SPDX-License-Identifier: Apache-2.0

#include "support/option_values.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace support {
namespace {

struct Values {
  std::string dir, word, text, pattern;
  std::int64_t number = 7;
  double seconds = 7;
  std::uint64_t seed = 7;
  double rate = 7;
  bool flag = false;
};

// What the values are then, or what is said of them.
struct Outcome {
  Values values;
  std::string refusal;
};

Outcome Parse(std::vector<std::string> arguments) {
  Outcome outcome;
  CLI::App app;
  app.add_option("--dir", outcome.values.dir)->type_name("DIR");
  app.add_option("--word", outcome.values.word)->type_name("WORD");
  app.add_option("--text", outcome.values.text)->type_name("TEXT");
  app.add_option("--seconds", outcome.values.seconds)->type_name("SECONDS");
  app.add_option("--seed", outcome.values.seed)->type_name("N");
  app.add_option("--rate", outcome.values.rate)->type_name("X");
  app.add_flag("--flag", outcome.values.flag);
  CLI::App* command = app.add_subcommand("command");
  command->add_option("--number", outcome.values.number)->type_name("N");
  command->add_option("--pattern", outcome.values.pattern)->type_name("FILE|DIR");
  RefuseSlips(app);
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    outcome.refusal = error.what();
  }
  return outcome;
}

TEST(RefuseSlips, RefusesAnEmptyPlaceOrWord) {
  constexpr const char* kWhy = ": has no value: is a variable of your script empty?";
  EXPECT_EQ(Parse({"--dir", ""}).refusal, std::string("--dir") + kWhy);
  EXPECT_EQ(Parse({"--word", ""}).refusal, std::string("--word") + kWhy);
  EXPECT_EQ(Parse({"command", "--pattern", ""}).refusal, std::string("--pattern") + kWhy);
  EXPECT_EQ(Parse({"--text", ""}).refusal, "");
}

TEST(RefuseSlips, RefusesAnOptionInThePlaceOfAValue) {
  EXPECT_EQ(Parse({"--dir", "--text", "a"}).refusal,
            "--dir: has no value but the option '--text': is a variable of your script empty?");
  EXPECT_EQ(Parse({"--dir", "-text"}).values.dir, "-text");
  EXPECT_EQ(Parse({"--text", "--dir"}).values.text, "--dir");
}

TEST(RefuseSlips, ReadsNumbersAsDecimal) {
  const auto number = [](const std::string& text) {
    return Parse({"command", "--number", text}).values.number;
  };
  EXPECT_EQ(number("064"), 64);
  EXPECT_EQ(number("08"), 8);
  EXPECT_EQ(number("000"), 0);
  EXPECT_EQ(number("0"), 0);
  EXPECT_EQ(number("-010"), -10);
  EXPECT_EQ(number("100"), 100);
  EXPECT_EQ(Parse({"--seconds", "010"}).values.seconds, 10);
  EXPECT_EQ(Parse({"--seconds", "00.5"}).values.seconds, 0.5);
  EXPECT_EQ(Parse({"--dir", "007"}).values.dir, "007");
  for (const char* none : {"", "-", "1x", "x"}) {
    EXPECT_NE(Parse({"command", "--number", none}).refusal, "") << none;
  }
}

// Scripts that compute a batch hand over 8.0 or 1e3.
TEST(RefuseSlips, SaysWhichKindOfNumberIsNeeded) {
  for (const std::string text : {"8.0", "1e3", "8k", "1,2"}) {
    EXPECT_EQ(Parse({"command", "--number", text}).refusal,
              "--number: needs a whole number, not '" + text + "'");
  }
  EXPECT_EQ(Parse({"--seed=1.5"}).refusal, "--seed: needs a whole number, not '1.5'");
  EXPECT_EQ(Parse({"--seed=18446744073709551615"}).values.seed, 18446744073709551615U);
  EXPECT_EQ(Parse({"command", "--number=-3"}).values.number, -3);
  EXPECT_EQ(Parse({"--rate=fast"}).refusal, "--rate: needs a number, not 'fast'");
  EXPECT_EQ(Parse({"--seconds=1m"}).refusal, "--seconds: needs a number, not '1m'");
  EXPECT_EQ(Parse({"--rate=1e3"}).values.rate, 1000);
  EXPECT_EQ(Parse({"--flag=maybe"}).refusal, "--flag: needs true or false, not 'maybe'");
  EXPECT_TRUE(Parse({"--flag"}).values.flag);
  EXPECT_TRUE(Parse({"--flag=yes"}).values.flag);
  EXPECT_FALSE(Parse({"--flag=false"}).values.flag);
}

}  // namespace
}  // namespace support
