// SPDX-License-Identifier: Apache-2.0

#include "tests/rankfile/readme_vectors.h"

#include <stdexcept>

#include "rankfile/scanner.h"
#include "tests/support/directories.h"
#include "tests/support/test.h"

namespace rankfile {
namespace {

int HexValue(Scanner& scanner) {
  const char c = scanner.AtEnd() ? '?' : scanner.Next();
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  scanner.Fail("expected two hexadecimal digits after \\x");
}

// "text", with \n \r \t \" \\ and \xNN.
std::string ReadQuoted(Scanner& scanner) {
  scanner.SkipWhitespace();
  scanner.Expect('"', R"("input" = "output")");
  std::string text;
  while (!scanner.Eat('"')) {
    if (scanner.AtEnd()) scanner.Fail("the string is never closed");
    char c = scanner.Next();
    if (c == '\\') {
      c = scanner.AtEnd() ? '?' : scanner.Next();
      if (c == 'n') {
        c = '\n';
      } else if (c == 'r') {
        c = '\r';
      } else if (c == 't') {
        c = '\t';
      } else if (c == 'x') {
        const int high = HexValue(scanner);
        c = static_cast<char>(high * 16 + HexValue(scanner));
      } else if (c != '"' && c != '\\') {
        scanner.Fail("unknown escape");
      }
    }
    text += c;
  }
  return text;
}

ReadmeVector ReadVector(const std::string& text, int line) {
  Scanner scanner(text, "README.md line " + std::to_string(line));
  ReadmeVector vector{.line = line, .input = ReadQuoted(scanner)};
  scanner.SkipWhitespace();
  vector.is_rejection = scanner.Eat('!');
  if (vector.is_rejection) {
    scanner.SkipWhitespace();
    vector.where.line = scanner.ReadNumber("a line", 1, 1000);
    scanner.Expect(':', "1:5");
    vector.where.column = scanner.ReadNumber("a column", 1, 1000);
  } else {
    scanner.Expect('=', R"("input" = "output")");
  }
  vector.output = ReadQuoted(scanner);
  scanner.ExpectEnd(R"("input" = "output")");
  return vector;
}

}  // namespace

std::vector<ReadmeVector> ReadReadmeVectors(const std::string& name) {
  std::ifstream page(tests::SourceDirectory() + "/rankfile/README.md");
  std::vector<ReadmeVector> vectors;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(page, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = line == "```vectors " + name;
    } else if (inside) {
      vectors.push_back(ReadVector(line, number));
    }
  }
  if (vectors.empty()) throw std::runtime_error("rankfile/README.md has no vectors " + name);
  return vectors;
}

void CheckReadmeVectors(const std::string& name,
                        const std::function<std::string(const std::string&)>& convert) {
  for (const ReadmeVector& vector : ReadReadmeVectors(name)) {
    SCOPED_TRACE("rankfile/README.md:" + std::to_string(vector.line) + ": " + vector.input);
    try {
      const std::string output = convert(vector.input);
      EXPECT_FALSE(vector.is_rejection) << "taken, and gives " << output;
      if (!vector.is_rejection) {
        EXPECT_EQ(output, vector.output);
      }
    } catch (const ParseError& error) {
      EXPECT_TRUE(vector.is_rejection) << error.what();
      if (vector.is_rejection) {
        EXPECT_EQ(error.where().line, vector.where.line) << error.what();
        EXPECT_EQ(error.where().column, vector.where.column) << error.what();
        EXPECT_THAT(error.message(), HasSubstr(vector.output));
      }
    }
  }
}

}  // namespace rankfile
