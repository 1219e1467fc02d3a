// SPDX-License-Identifier: Apache-2.0

#include "support/command_line.h"

#include "tests/support/test.h"

namespace support {
namespace {

using testing::ContainsRegex;

// A program with a row of each kind.
struct Values {
  std::string dir, word = "red", text, pattern, target, name = "a";
  std::int64_t number = 7, bytes = 8;
  int small = 3;
  double seconds = 7, rate = 0.5;
  std::uint64_t seed = 7;
  bool flag = false, switched = true;
  std::vector<int> numbers = {1, 2};
  std::vector<std::int64_t> large;
  std::vector<std::string> words, each, taken, rest;
  std::string chosen, finished, wrong, optional;
};

Program Describe(Values& v) {
  Option last = {"--name", &v.name, "NAME", "Its name"};
  last.last_counts = true;
  Option beside = {"--file", &v.text, "FILE", ""};
  beside.excludes = "TARGET";
  return {
      .root = {.name = "prog",
               .help = "Does something.",
               .options = {{"--dir", &v.dir, "DIR", "", "Places"},
                           {"--word", &v.word, "WORD", "A word"},
                           {"--text", &v.text, "TEXT", ""},
                           {"--seconds", &v.seconds, "SECONDS", ""},
                           {"--seed", &v.seed, "N", ""},
                           {"-r,--rate", &v.rate, "X", "How fast"},
                           {"--small", &v.small, "N", ""},
                           {"--flag", &v.flag, "", "A flag"},
                           {"--switch,!--noswitch", &v.switched, "", ""},
                           {"--mark", {}, "", "A mark"},
                           WithDefault({"--bytes", &v.bytes, "BYTES", "A size"}, "8"),
                           WithDefault({"--hidden", &v.small, "N", "No default"}, ""),
                           last,
                           OneOf({"--colour", &v.target, "", ""}, {"red", "blue"}),
                           {"--numbers", &v.numbers, "N,...", "Numbers"},
                           {"--large", &v.large, "N,...", ""},
                           {"--each", &v.each, "ARG", ""},
                           {"--words", &v.words, "FILE|DIR", ""},
                           {"--taken", [&v](const std::vector<std::string>& all) { v.taken = all; },
                            "FILE", ""},
                           WithDefault(
                               {"--optional", [&v](const std::string& one) { v.optional = one; },
                                "[short|full]", ""},
                               "short"),
                           Checked({"--even", &v.small, "N", ""},
                                   NeedsNumber("an even number",
                                               [](double x) { return int(x) % 2 == 0; })),
                           Checked({"--lower", &v.text, "TEXT", ""},
                                   Needs("a small letter",
                                         [](const std::string& t) { return t == "a"; }))},
               .commands = {{.name = "make",
                             .help = "Makes it",
                             .options = {Required({"TARGET", &v.target, "", "What"}),
                                         beside,
                                         {"--number", &v.number, "N", ""},
                                         {"--pattern", &v.pattern, "FILE|DIR", ""},
                                         {"REST", &v.rest, "", "More"}},
                             .commands = {{.name = "list",
                                           .help = "Lists them",
                                           .options = {Required({"DIR", &v.dir, "", "Where"})},
                                           .choose = [&v] { v.chosen = "list"; }}},
                             .choose = [&v] { v.chosen = "make"; },
                             .finish =
                                 [&v] {
                                   v.finished += "make";
                                   return v.wrong;
                                 }}}},
      .version = "7.1",
      .footer = "Below."};
}

// What the values are then, and what is said of them.
struct Outcome {
  Values values;
  Parsed parsed;
  std::string rejection;
};

constexpr const char* kHint = " (prog --help lists the options)";

void ParseInto(Outcome& outcome, const Program& program,
               const std::vector<std::string>& arguments) {
  try {
    outcome.parsed = Parse(program, arguments);
  } catch (const UsageError& error) {
    outcome.rejection = error.what();
    const std::size_t hint = outcome.rejection.find(kHint);
    if (hint != std::string::npos) outcome.rejection.erase(hint);
  }
}

Outcome ParseLine(const std::vector<std::string>& arguments) {
  Outcome outcome;
  ParseInto(outcome, Describe(outcome.values), arguments);
  return outcome;
}

std::string RejectionOf(const std::vector<std::string>& arguments) {
  return ParseLine(arguments).rejection;
}

TEST(Parse, PutsEachKindOfValueInItsPlace) {
  const Values v = ParseLine({"--dir=a",
                              "--word",
                              "b",
                              "--seconds=1.5",
                              "--seed",
                              "9",
                              "-r",
                              "2",
                              "--small=-4",
                              "--flag",
                              "--noswitch",
                              "--bytes=2K",
                              "--numbers=3,4,5",
                              "--large=5000000000",
                              "--each",
                              "--time=1",
                              "--each=x",
                              "--taken",
                              "p",
                              "q",
                              "--optional=full"})
                       .values;
  EXPECT_EQ(v.dir, "a");
  EXPECT_EQ(v.word, "b");
  EXPECT_EQ(v.seconds, 1.5);
  EXPECT_EQ(v.seed, 9U);
  EXPECT_EQ(v.rate, 2);
  EXPECT_EQ(v.small, -4);
  EXPECT_TRUE(v.flag);
  EXPECT_FALSE(v.switched);
  EXPECT_EQ(v.bytes, 2048);
  EXPECT_THAT(v.numbers, ElementsAre(3, 4, 5));
  EXPECT_THAT(v.large, ElementsAre(5000000000));
  EXPECT_THAT(v.each, ElementsAre("--time=1", "x"));
  EXPECT_THAT(v.taken, ElementsAre("p", "q"));
  EXPECT_EQ(v.optional, "full");
}

TEST(Parse, LeavesDefaultsWhereNothingIsGiven) {
  const Outcome outcome = ParseLine({});
  EXPECT_EQ(outcome.rejection, "");
  EXPECT_EQ(outcome.values.word, "red");
  EXPECT_EQ(outcome.values.bytes, 8);
  EXPECT_TRUE(outcome.values.switched);
  EXPECT_THAT(outcome.values.numbers, ElementsAre(1, 2));
  EXPECT_EQ(outcome.values.chosen, "");
  EXPECT_EQ(outcome.values.optional, "");
  EXPECT_THAT(outcome.parsed.given, IsEmpty());
}

TEST(Parse, AListTakesAllWordsUpToTheNextOption) {
  EXPECT_THAT(ParseLine({"--words", "a", "b", "--flag"}).values.words, ElementsAre("a", "b"));
  EXPECT_THAT(ParseLine({"make", "t", "r", "s"}).values.rest, ElementsAre("r", "s"));
}

TEST(Parse, AValueThatIsLeftOutIsTheDefault) {
  EXPECT_EQ(ParseLine({"--optional"}).values.optional, "short");
  EXPECT_EQ(ParseLine({"--optional", "--flag"}).values.optional, "short");
}

TEST(Parse, SaysWhichOptionsOfTheProgramAreGiven) {
  EXPECT_THAT(ParseLine({"--flag", "-r2", "--mark", "make", "t", "--number=1"}).parsed.given,
              ElementsAre("--flag", "--mark", "--rate"));
}

TEST(Parse, GivenTwiceIsRejectedButWhereTheLastCounts) {
  EXPECT_EQ(ParseLine({"--name=b", "--name=c"}).values.name, "c");
  EXPECT_NE(RejectionOf({"--word=b", "--word=c"}), "");
}

// CLI11's versions write a default as "=red" or "[red]".
TEST(Parse, AnswersHelpAndVersion) {
  EXPECT_EQ(ParseLine({"--version"}).parsed.answer, "7.1\n");
  const std::string help = ParseLine({"--help"}).parsed.answer;
  EXPECT_THAT(help, AllOf(HasSubstr("Does something.\n"), HasSubstr("Places:\n  --dir DIR")));
  EXPECT_THAT(help, ContainsRegex("--word WORD(=| \\[)red\\]? +A word\n"));
  EXPECT_THAT(help, ContainsRegex("-r,--rate X(=| \\[)0.5\\]? +How fast\n"));
  EXPECT_THAT(help, ContainsRegex("--numbers N,...(=| \\[)1,2\\]? +Numbers\n"));
  EXPECT_THAT(help, ContainsRegex("--bytes BYTES(=| \\[)8\\]? +A size\n"));
  EXPECT_THAT(help, AllOf(ContainsRegex("--hidden N +No default\n"), EndsWith("Below.\n")));
  const std::string make = ParseLine({"make", "--help"}).parsed.answer;
  EXPECT_THAT(make, AllOf(HasSubstr("Makes it\n"), HasSubstr("TARGET TEXT REQUIRED")));
  EXPECT_THAT(make, EndsWith("Below.\n"));
}

TEST(Parse, TheProgramMaySayHowHelpIsCalled) {
  Outcome outcome;
  Program program = Describe(outcome.values);
  program.help = {"--help", {}, "", "this text"};
  EXPECT_THAT(Parse(program, {"--help"}).answer, ContainsRegex("  --help +this text\n"));
  ParseInto(outcome, program, {"-h"});
  EXPECT_THAT(outcome.rejection, HasSubstr("unknown argument -h"));
}

TEST(Parse, TheLowestCommandIsChosenAndFinished) {
  const Values make = ParseLine({"make", "t"}).values;
  EXPECT_EQ(make.chosen, "make");
  EXPECT_EQ(make.finished, "make");
  EXPECT_EQ(make.target, "t");
  Outcome list;
  Program program = Describe(list.values);
  program.root.commands[0].options[0].is_required = false;
  ParseInto(list, program, {"make", "list", "d"});
  EXPECT_EQ(list.rejection, "");
  EXPECT_EQ(list.values.chosen, "list");
  EXPECT_EQ(list.values.finished, "");
  EXPECT_EQ(list.values.dir, "d");
}

TEST(Parse, RejectsWhatACommandFindsWrongAtTheEnd) {
  Outcome outcome;
  outcome.values.wrong = "too much of it";
  ParseInto(outcome, Describe(outcome.values), {"make", "t"});
  EXPECT_EQ(outcome.rejection, "too much of it");
}

TEST(Parse, RejectsACommandBehindTheOperandsOfTheOneAboveIt) {
  EXPECT_EQ(RejectionOf({"make", "t", "list"}), "make list DIR is the order of the words");
}

TEST(Parse, RejectsWhatIsMissingOrDoesNotGoTogether) {
  EXPECT_EQ(RejectionOf({"make"}), "TARGET is required");
  EXPECT_THAT(RejectionOf({"make", "t", "--file=x"}), HasSubstr(" does not go with "));
  Outcome outcome;
  Program program = Describe(outcome.values);
  program.needs_command = true;
  ParseInto(outcome, program, {"--flag"});
  EXPECT_EQ(outcome.rejection, "a command is required");
}

TEST(Parse, ChecksAValue) {
  EXPECT_EQ(RejectionOf({"--even=3"}), "--even: needs an even number, not '3'");
  EXPECT_EQ(RejectionOf({"--even=x"}), "--even: needs an even number, not 'x'");
  EXPECT_EQ(ParseLine({"--even=4"}).values.small, 4);
  EXPECT_EQ(RejectionOf({"--lower=B"}), "--lower: needs a small letter, not 'B'");
  EXPECT_EQ(RejectionOf({"--lower=a"}), "");
  EXPECT_EQ(RejectionOf({"--colour=green"}), "--colour: needs one of red, blue, not 'green'");
  EXPECT_EQ(ParseLine({"--colour=blue"}).values.target, "blue");
}

TEST(Parse, RepeatsTheBeginningOfALongArgument) {
  const std::string a(120000, 'a');
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--even", a},
                                             {"--lower=" + a},
                                             {"--colour", a},
                                             {"--seed", a},
                                             {"--rate", a},
                                             {"--bytes", a},
                                             {"--numbers", "1," + a},
                                             {"--flag=" + a},
                                             {"--" + a},
                                             {a}}) {
    const std::string rejection = RejectionOf(arguments);
    EXPECT_THAT(rejection, testing::HasSubstr("aaaaa... (1200")) << arguments[0].substr(0, 20);
    EXPECT_LT(rejection.size(), 400U) << arguments[0].substr(0, 20);
  }
}

TEST(Parse, AnErrorSaysWhereHelpIs) {
  Values values;
  try {
    Parse(Describe(values), {"make"});
    FAIL() << "nothing was refused";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), std::string("TARGET is required") + kHint);
  }
  Program program = Describe(values);
  program.adds_hints = false;
  try {
    Parse(program, {"make"});
    FAIL() << "nothing was refused";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "TARGET is required");
  }
}

TEST(Parse, NamesWhatWasMeantOrWhereAllAreListed) {
  EXPECT_EQ(RejectionOf({"--second=9"}), "unknown argument --second=9; did you mean --seconds?");
  EXPECT_EQ(RejectionOf({"mak"}), "unknown argument mak; did you mean make?");
  EXPECT_EQ(RejectionOf({"--weather"}), "unknown argument --weather (prog --help lists all)");
  EXPECT_EQ(RejectionOf({"make", "t", "--numbr=1"}),
            "unknown argument --numbr=1; did you mean --number?");
}

TEST(Parse, WithoutHintsAnUnknownArgumentComesBeforeTheEnd) {
  Outcome outcome;
  outcome.values.wrong = "too much of it";
  Program program = Describe(outcome.values);
  program.adds_hints = false;
  try {
    Parse(program, {"make", "t", "--bogus"});
    FAIL() << "nothing was refused";
  } catch (const UnknownArgument& error) {
    EXPECT_STREQ(error.what(), "The following argument was not expected: --bogus");
    EXPECT_EQ(error.argument, "--bogus");
  }
  EXPECT_EQ(outcome.values.finished, "");
}

TEST(Parse, RejectsAnEmptyPlaceOrWord) {
  constexpr const char* kWhy = ": has no value: is a variable of your script empty?";
  EXPECT_EQ(RejectionOf({"--dir", ""}), std::string("--dir") + kWhy);
  EXPECT_EQ(RejectionOf({"--word", ""}), std::string("--word") + kWhy);
  EXPECT_EQ(RejectionOf({"make", "t", "--pattern", ""}), std::string("--pattern") + kWhy);
  EXPECT_EQ(RejectionOf({"--text", ""}), "");
}

TEST(Parse, RejectsWhatScriptsAndTextProcessorsLeave) {
  EXPECT_EQ(RejectionOf({"--dir=run\r"}),
            "--dir: ends with a carriage return: the script has ends of lines of Windows: sed -i "
            "'s/\\r$//' SCRIPT");
  EXPECT_EQ(RejectionOf({"--dir=\u201crun\u201d"}),
            "--dir: has \u201c, a quote of a text processor, in '\u201crun\u201d': write \" or '");
  EXPECT_THAT(RejectionOf({"--dir=\u2018run"}),
              ::testing::HasSubstr("a quote of a text processor"));
  EXPECT_THAT(RejectionOf({"\u2013\u2013dir=run"}),
              ::testing::HasSubstr("; its dash is one of a text"));
  EXPECT_THAT(RejectionOf({"-\u2013dir=run"}), ::testing::HasSubstr("; its dash is one of a text"));
  EXPECT_EQ(ParseLine({"--text=\u201crun\u201d"}).values.text, "\u201crun\u201d");
  EXPECT_EQ(ParseLine({"--dir=a\u2019s \u2013 b\r c"}).values.dir, "a\u2019s \u2013 b\r c");
}

TEST(Parse, RejectsATildeThatNoShellHasReplaced) {
  EXPECT_EQ(RejectionOf({"--dir=~/run"}),
            "--dir: needs a path in which no ~ is left, not '~/run': a shell replaces it at the "
            "beginning of a word alone: write $HOME/run");
  EXPECT_THAT(RejectionOf({"--dir", "~"}), ::testing::EndsWith("write $HOME"));
  EXPECT_EQ(ParseLine({"--dir=~run"}).values.dir, "~run");
  EXPECT_EQ(ParseLine({"--dir=run~/a"}).values.dir, "run~/a");
}

TEST(Parse, RejectsAnOptionInThePlaceOfAValue) {
  EXPECT_EQ(RejectionOf({"--dir", "--text", "a"}),
            "--dir: has no value but the option '--text': is a variable of your script empty?");
  EXPECT_EQ(ParseLine({"--dir", "-text"}).values.dir, "-text");
  EXPECT_EQ(ParseLine({"--text", "--dir"}).values.text, "--dir");
}

TEST(Parse, ReadsNumbersAsDecimal) {
  const auto number = [](const std::string& text) {
    return ParseLine({"make", "t", "--number", text}).values.number;
  };
  EXPECT_EQ(number("064"), 64);
  EXPECT_EQ(number("08"), 8);
  EXPECT_EQ(number("000"), 0);
  EXPECT_EQ(number("0"), 0);
  EXPECT_EQ(number("-010"), -10);
  EXPECT_EQ(number("100"), 100);
  EXPECT_EQ(ParseLine({"--seconds", "010"}).values.seconds, 10);
  EXPECT_EQ(ParseLine({"--seconds", "00.5"}).values.seconds, 0.5);
  EXPECT_EQ(ParseLine({"--numbers=08,010,-007"}).values.numbers, (std::vector<int>{8, 10, -7}));
  EXPECT_EQ(ParseLine({"--bytes=010"}).values.bytes, 10);
  EXPECT_EQ(ParseLine({"--bytes=08K"}).values.bytes, 8192);
  EXPECT_EQ(ParseLine({"--bytes=0"}).values.bytes, 0);
  EXPECT_EQ(number("+5"), 5);
  EXPECT_EQ(ParseLine({"--dir", "007"}).values.dir, "007");
  for (const char* none : {"", "-", "1x", "x"}) {
    EXPECT_NE(RejectionOf({"make", "t", "--number", none}), "") << none;
  }
}

// Scripts that compute a batch hand over 8.0 or 1e3.
TEST(Parse, SaysWhichKindOfNumberIsNeeded) {
  for (const std::string text : {"8.0", "1e3", "8k", "1,2"}) {
    EXPECT_EQ(RejectionOf({"make", "t", "--number", text}),
              "--number: needs a whole number, not '" + text + "'");
  }
  EXPECT_EQ(RejectionOf({"--seed=1.5"}), "--seed: needs a whole number, not '1.5'");
  EXPECT_EQ(ParseLine({"--seed=18446744073709551615"}).values.seed, 18446744073709551615U);
  EXPECT_EQ(ParseLine({"make", "t", "--number=-3"}).values.number, -3);
  EXPECT_EQ(RejectionOf({"--rate=fast"}), "--rate: needs a number, not 'fast'");
  EXPECT_EQ(RejectionOf({"--seconds=1m"}), "--seconds: needs a number, not '1m'");
  EXPECT_EQ(ParseLine({"--rate=1e3"}).values.rate, 1000);
  EXPECT_EQ(RejectionOf({"--flag=maybe"}), "--flag: needs true or false, not 'maybe'");
  EXPECT_TRUE(ParseLine({"--flag=yes"}).values.flag);
  EXPECT_FALSE(ParseLine({"--flag=false"}).values.flag);
}

// CLI11 takes them or not by its version.
TEST(Parse, TakesDecimalNumbersAlone) {
  for (const std::string text : {"0x10", "0b11", "0o17", "1_000", "1'000", " 5", "5 ", "+-5"}) {
    EXPECT_EQ(RejectionOf({"make", "t", "--number", text}),
              "--number: needs a whole number, not '" + text + "'");
    EXPECT_EQ(RejectionOf({"--rate", text}), "--rate: needs a number, not '" + text + "'");
    EXPECT_EQ(RejectionOf({"--bytes", text}),
              "--bytes: needs a size such as 64K, not '" + text + "'");
  }
  EXPECT_EQ(RejectionOf({"--numbers=1,0x2"}), "--numbers: needs a whole number, not '0x2'");
  EXPECT_EQ(RejectionOf({"--rate=0x1p3"}), "--rate: needs a number, not '0x1p3'");
  EXPECT_EQ(RejectionOf({"--bytes=K"}), "--bytes: needs a size such as 64K, not 'K'");
}

TEST(Rows, SayWhatAPageShows) {
  Values values;
  const std::vector<Option> rows = Describe(values).root.commands[0].options;
  EXPECT_TRUE(IsOperand(rows[0]));
  EXPECT_FALSE(IsOperand(rows[1]));
  EXPECT_FALSE(IsList(rows[0]));
  EXPECT_TRUE(IsList(rows[4]));
  EXPECT_FALSE(IsList({"--each", &values.each, "ARG", ""}));
  EXPECT_FALSE(IsList({"--words", &values.words, "TYPE,...", ""}));
  EXPECT_TRUE(IsFlag({"--flag", &values.flag, "", ""}));
  EXPECT_TRUE(IsFlag({"--mark", {}, "", ""}));
  EXPECT_FALSE(IsFlag(rows[2]));
  EXPECT_THAT(NamesOf({"-r,--rate", {}, "", ""}), ElementsAre("-r", "--rate"));
  EXPECT_THAT(NamesOf({"--x,!--nox", {}, "", ""}), ElementsAre("--x", "--nox"));
  EXPECT_EQ(DefaultOf({"--flag", &values.switched, "", ""}), "");
  EXPECT_EQ(DefaultOf({"--number", &values.number, "N", ""}), "7");
  EXPECT_EQ(DefaultOf({"--rate", &values.rate, "X", ""}), "0.5");
  EXPECT_EQ(DefaultOf({"--numbers", &values.numbers, "N,...", ""}), "1,2");
  EXPECT_EQ(DefaultOf(WithDefault({"--number", &values.number, "N", ""}, "")), "");
}

}  // namespace
}  // namespace support
