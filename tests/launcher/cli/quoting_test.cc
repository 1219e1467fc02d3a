// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/quoting.h"

#include "launcher/base/error.h"
#include "support/quoting.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;

TEST(SplitOnWhitespace, UndoesQuoteCommand) {
  const std::vector<std::string> words = {
      "plain", "two words", "", "it's", "\"quoted\"", "a\\b", "tab\there", "new\nline", "$x `y` *"};
  EXPECT_EQ(SplitOnWhitespace(support::QuoteCommand(words)), words);
}

TEST(SplitOnWhitespace, SplitsAtBlanksOutsideOfQuotes) {
  EXPECT_THAT(SplitOnWhitespace("  -x EGO_TOP\t--mca btl 'a b' c\"d e\"f \\ g "),
              ElementsAre("-x", "EGO_TOP", "--mca", "btl", "a b", "cd ef", " g"));
  EXPECT_THAT(SplitOnWhitespace(""), ElementsAre());
}

TEST(SplitOnWhitespace, RejectsAnOpenQuote) {
  EXPECT_THROW(SplitOnWhitespace("a 'b"), LaunchError);
  EXPECT_THROW(SplitOnWhitespace("a \"b"), LaunchError);
}

}  // namespace
}  // namespace launcher
