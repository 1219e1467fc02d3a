// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/folders.h"

namespace launcher {
namespace {

// The rows of the table of codes in doc/reference/exit-codes.md.
std::vector<std::string> DocumentedRows() {
  std::ifstream page(tests::SourceFolder() + "/doc/reference/exit-codes.md");
  std::vector<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `DDL-")) rows.push_back(line);
  }
  return rows;
}

TEST(Messages, AreDocumentedOneByOne) {
  std::vector<std::string> rows;
  for (const MessageClass& row : MessageTable()) {
    rows.push_back("| `" + CodeOf(row) + "` | " + row.level + " | " + row.meaning + " |");
  }
  EXPECT_EQ(DocumentedRows(), rows);
}

TEST(Messages, HaveOneCodeEachInOrder) {
  const auto before = [](const MessageClass& a, const MessageClass& b) {
    return std::pair(a.family, a.number) < std::pair(b.family, b.number);
  };
  const auto& table = MessageTable();
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(table[i].message), i) << "every message has one row";
    EXPECT_TRUE(i == 0 || before(table[i - 1], table[i])) << CodeOf(table[i]);
  }
}

TEST(Messages, LookAsThoseOfIbm) {
  EXPECT_EQ(Coded(Message::kNoConnectionTests, "Not performing connection tests."),
            "[WARN DDL-2-17] Not performing connection tests.");
}

TEST(Messages, GiveARefusalTheNumberOfItsExitCode) {
  for (const int code : {EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_OSERR, EX_CONFIG}) {
    EXPECT_EQ(CodedError(LaunchError(code, "text")),
              "[ERROR DDL-20-" + std::to_string(code) + "] text");
  }
}

TEST(Messages, CallOurOwnMistakesAsIbmDid) {
  EXPECT_EQ(CodedError(LaunchError(EX_SOFTWARE, "text")), "[ERROR DDL-2-0] Unexpected Error: text");
  EXPECT_EQ(CodedUnexpected("text"), "[ERROR DDL-2-0] Unexpected Error: text");
}

}  // namespace
}  // namespace launcher
