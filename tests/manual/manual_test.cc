// SPDX-License-Identifier: Apache-2.0

#include "launcher/bede/bede_options.h"
#include "launcher/features/features.h"
#include "manual/bash_completion.h"
#include "manual/pages.h"
#include "manual/roff.h"
#include "tests/support/test.h"
#include "trainer/options/options.h"

namespace manual {
namespace {

const Page& PageOf(const std::vector<Page>& pages, std::string_view name) {
  for (const Page& page : pages) {
    if (page.names[0] == name) return page;
  }
  throw std::out_of_range(std::string(name));
}

const Option* Find(const Command& command, const std::string& name) {
  for (const OptionGroup& group : command.groups) {
    for (const Option& option : group.options) {
      for (const std::string& known : option.names) {
        if (known == name) return &option;
      }
    }
  }
  return nullptr;
}

TEST(ValueOfShape, TellsChoicesFromPlaceholders) {
  EXPECT_THAT(ValueOfShape("auto|full|off").choices, ElementsAre("auto", "full", "off"));
  EXPECT_THAT(ValueOfShape("NHWC|NCHW").choices, ElementsAre("NHWC", "NCHW"));
  EXPECT_THAT(ValueOfShape("node").choices, ElementsAre("node"));
  EXPECT_THAT(ValueOfShape("FILE|NAME").choices, IsEmpty());
  EXPECT_THAT(ValueOfShape("H1,H2,...").choices, IsEmpty());
  EXPECT_EQ(ValueOfShape("").shape, "");
  const Value optional = ValueOfShape("[text|json]");
  EXPECT_TRUE(optional.is_optional);
  EXPECT_EQ(optional.shape, "text|json");
  EXPECT_THAT(optional.choices, ElementsAre("text", "json"));
  EXPECT_FALSE(ValueOfShape("N").is_optional);
}

TEST(AllPages, HaveEveryOptionOfEveryTable) {
  const std::vector<Page> pages = AllPages();
  for (const launcher::OptionSpec& spec : launcher::OptionTable()) {
    for (const std::string& name : spec.names) {
      const std::string dashes = name.size() == 1 ? "-" : "--";
      const Option* option = Find(PageOf(pages, "ddlrun").program, dashes + name);
      ASSERT_NE(option, nullptr) << name;
      EXPECT_EQ(option->value.shape.empty(), spec.argument[0] == '\0') << name;
      EXPECT_THAT(option->help, HasSubstr(spec.help));
    }
  }
  for (const launcher::BedeOptionSpec& spec : launcher::BedeOptionTable()) {
    EXPECT_NE(Find(PageOf(pages, "bede-mpirun").program, spec.name), nullptr) << spec.name;
  }
  for (const trainer::OptionRow& row : trainer::OptionTable()) {
    EXPECT_NE(Find(PageOf(pages, "ddltraind").program, "--" + row.name), nullptr) << row.name;
  }
}

// A placeholder that kPlaceholders lacks would be offered as if it were a choice.
TEST(AllPages, OfferNoPlaceholderForAChoice) {
  for (const Page& page : AllPages()) {
    std::vector<Command> commands = page.commands;
    commands.push_back(page.program);
    for (const Command& command : commands) {
      for (const OptionGroup& group : command.groups) {
        for (const Option& option : group.options) {
          for (const std::string& choice : option.value.choices) {
            const bool is_word =
                choice.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos ||
                choice == "NHWC" || choice == "NCHW";
            EXPECT_TRUE(is_word) << page.names[0] << " " << option.names[0] << " " << choice;
          }
        }
      }
    }
  }
}

TEST(AllPages, SayWhatIsAPathAndWhatIsAChoice) {
  const std::vector<Page> pages = AllPages();
  const Command& ddltraind = PageOf(pages, "ddltraind").program;
  EXPECT_EQ(Find(ddltraind, "--data_dir")->value.shape, "DIR");
  EXPECT_EQ(Find(ddltraind, "--init_from")->value.shape, "FILE");
  EXPECT_THAT(Find(ddltraind, "--comm")->value.choices, ElementsAre("auto", "nccl", "mpi"));
  EXPECT_EQ(Find(ddltraind, "--use_xla"), Find(ddltraind, "--nouse_xla"));
  EXPECT_EQ(Find(ddltraind, "--use_xla")->value.shape, "");
  EXPECT_EQ(Find(ddltraind, "--comm")->help.substr(Find(ddltraind, "--comm")->help.size() - 7),
            " [auto]");

  const Page& rankfile = PageOf(pages, "ddl-rankfile");
  ASSERT_EQ(rankfile.commands.size(), 4U);
  EXPECT_EQ(rankfile.commands[0].operands[0].value.shape, "FORMAT");
  EXPECT_THAT(
      rankfile.commands[0].operands[0].value.choices,
      ElementsAre("hostlist", "cpu-list", "rankfile", "hostfile", "ddl-host-list", "ddl-options"));
  EXPECT_TRUE(rankfile.commands[3].operands[0].may_repeat);
  EXPECT_FALSE(rankfile.commands[2].operands[0].may_repeat);
  EXPECT_EQ(PageOf(pages, "ddldata").commands[2].operands[1].value.shape, "INDEX_DIR");
  EXPECT_EQ(Find(PageOf(pages, "ddldata").commands[1], "--train")->value.shape, "FILE|DIR");

  const Page& ddlctl = PageOf(pages, "ddlctl");
  ASSERT_EQ(ddlctl.commands.size(), 15U);
  EXPECT_EQ(ddlctl.commands[0].operands[0].value.shape, "RESULTS_DIR");
  EXPECT_THAT(Find(ddlctl.commands[0], "--srun")->value.choices, ElementsAre("auto", "never"));
  EXPECT_EQ(ddlctl.commands[4].name, "checkpoint");
  EXPECT_EQ(ddlctl.commands[7].name, "checkpoint export");
  EXPECT_EQ(ddlctl.commands[7].operands[2].value.shape, "FILE");
  EXPECT_EQ(ddlctl.commands[10].operands[0].value.shape, "SETTING");
  EXPECT_EQ(ddlctl.commands[10].operands[1].value.shape, "RESULTS_DIR");

  const Page& ddlbench = PageOf(pages, "ddlbench");
  ASSERT_EQ(ddlbench.commands.size(), 12U);
  EXPECT_EQ(ddlbench.commands[1].operands[0].value.shape, "LOG_DIR");
  EXPECT_TRUE(ddlbench.commands[1].operands[0].may_repeat);
  EXPECT_THAT(Find(ddlbench.commands[1], "--by")->value.choices, ElementsAre("rate", "time"));
  EXPECT_THAT(Find(ddlbench.commands[0], "--cases")->help, HasSubstr("[1n1g,1n4g,1n8g,2n8g,4n8g]"));
  EXPECT_THAT(Find(ddlbench.commands[7], "--max_bytes")->help, HasSubstr("[128M]"));
}

TEST(FormatRoff, EscapesWhatRoffWouldTakeForSomethingElse) {
  Page page{.names = {"a-b", "c"}, .summary = "say it"};
  page.synopsis = {"a-b [--x]"};
  page.description = {".dot 'quoted' back\\slash ~ ^ `tick`"};
  page.program.groups = {{"", {{{"-x", "--long"}, {"FILE", false, {}}, "reads it"}}},
                         {"More", {{{"--dry-run"}, {"text|json", true, {}}, "prints"}}}};
  page.signals = {{"SIGHUP", "ends"}};
  page.environment = {{"HOME", "is left"}};
  page.examples = {{"c -x 'a b'", "reads"}};
  page.see_also = {"d(1)", "e-f(8)"};
  std::string text = FormatRoff(page, "2026-01-02", "ddlrun 9");
  const std::size_t bugs = text.find(".SH BUGS\n");
  const std::size_t after = text.find(".SH SEE ALSO\n");
  ASSERT_LT(bugs, after);
  // Whose lines are as long as the addresses in CONTACT.
  text.erase(bugs, after - bugs);
  EXPECT_EQ(text,
            R"(.\" Made from the program's option table when it was built.
.TH A-B 1 2026-01-02 "ddlrun 9" "User Commands"
.SH NAME
a\-b,
c \-
say it
.SH SYNOPSIS
.nf
a\-b [\-\-x]
.fi
.SH DESCRIPTION
\&.dot \(aqquoted\(aq back\eslash \(ti \(ha \(gatick\(ga
.SH OPTIONS
.TP
\fB\-x\fR, \fB\-\-long\fR \fIFILE\fR
reads it
.SS More
.TP
\fB\-\-dry\-run\fR[=\fItext|json\fR]
prints
.SH SIGNALS
.TP
\fBSIGHUP\fR
ends
.SH ENVIRONMENT
.TP
\fBHOME\fR
is left
.SH EXAMPLES
.TP
\fBc \-x \(aqa b\(aq\fR
reads
.SH SEE ALSO
\fBd\fR(1),
\fBe\-f\fR(8)
.PP
In detail, by subject: doc/reference.md
)");
}

TEST(FormatRoff, FoldsLinesAndGuardsTheirFirstCharacter) {
  Page page{.names = {"a"}, .description = {std::string(76, 'x') + " y z .so file"}};
  const std::string text = FormatRoff(page, "2026-01-02", "ddlrun 9");
  EXPECT_THAT(text, HasSubstr(std::string(76, 'x') + " y\nz \\&.so file\n"));
}

TEST(FormatBashCompletion, KnowsSubcommandsValuesAndBothDashes) {
  Page page{.names = {"ddl-tool", "other"}};
  page.program.groups = {{"", {{{"-n", "--np"}, {"N", false, {}}, ""}}}};
  page.commands = {{"make",
                    "",
                    {{"", {{{"--to"}, {"a|b", false, {"a", "b"}}, ""}, {{"--quick"}, {}, ""}}}},
                    {{{"OUT_DIR", false, {}}, "", false}}}};
  page.one_dash_is_enough = true;
  const std::string text = FormatBashCompletion(page);
  EXPECT_THAT(text, HasSubstr("\ncomplete -F _ddl_tool ddl-tool other\n"));
  EXPECT_THAT(text, HasSubstr("'') echo '-n --np=' ;;"));
  EXPECT_THAT(text, HasSubstr("'make') echo '--to= --quick' ;;"));
  EXPECT_THAT(text, HasSubstr("' -n' | ' --np' | ' --n' | ' -np') value='any' ;;"));
  EXPECT_THAT(text, HasSubstr("'make --to' | 'make -to') value='words a b' ;;"));
  EXPECT_THAT(text, HasSubstr("'make 0') value='dir' ;;"));
  EXPECT_THAT(text, HasSubstr("rest=operands commands='make' one_dash=yes"));
  EXPECT_THAT(text, Not(testing::ContainsRegex("@[A-Z]+@")));
}

}  // namespace
}  // namespace manual
