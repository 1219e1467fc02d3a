// SPDX-License-Identifier: Apache-2.0

#include "ddldata/tar.h"

#include "tests/ddldata/tar_text.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

class TarTest : public ::testing::Test {
 protected:
  std::string Path() const { return dir_ / "a.tar"; }

  // "NAME=DATA" of each file, "NAME/" of each directory, "NAME@" of others.
  std::vector<std::string> MembersOf(const std::string& archive) {
    WriteText(Path(), archive);
    const support::Descriptor file = OpenForReading(Path());
    TarReader reader(file, Path(), {0, archive.size()});
    std::vector<std::string> members;
    while (const auto member = reader.Next()) {
      const std::string data = archive.substr(member->offset, member->size);
      members.push_back(member->name + (member->kind == TarKind::kFile        ? "=" + data
                                        : member->kind == TarKind::kDirectory ? "/"
                                                                              : "@"));
    }
    EXPECT_FALSE(reader.Next()) << "the end is not the end";
    return members;
  }

  std::string Rejection(const std::string& archive) {
    const std::string message = DataErrorOf([&] { MembersOf(archive); });
    EXPECT_THAT(message, StartsWith(Path() + ", tar header at offset "));
    return message;
  }

  TemporaryDirectory dir_;
};

TEST_F(TarTest, NamesMembersAndWhereTheirDataIs) {
  EXPECT_THAT(MembersOf(TarMemberText("./", "", '5') + TarMemberText("./b/", "", '5') +
                        TarMemberText("./b/c.JPEG", "one") + TarMemberText("d", "") +
                        TarMemberText("e", std::string(512, 'e')) + TarEnd()),
              ElementsAre("/", "b/", "b/c.JPEG=one", "d=", "e=" + std::string(512, 'e')));
  EXPECT_THAT(MembersOf(TarEnd()), ElementsAre());
  // One block of zeros is an end, and padding behind it means nothing.
  EXPECT_THAT(MembersOf(TarMemberText("a", "x") + std::string(512, '\0')), ElementsAre("a=x"));
  EXPECT_THAT(MembersOf(TarOf({{"a", "x"}}) + std::string(8192, '\0')), ElementsAre("a=x"));
}

TEST_F(TarTest, HasOneSpellingOfAName) {
  EXPECT_THAT(MembersOf(TarOf({{"./a", ""}, {"a//b", ""}, {"./c/./d", ""}})),
              ElementsAre("a=", "a/b=", "c/d="));
  // Found by tar_fuzz: a prefix "./" and a name make ".//n01", which is not absolute.
  EXPECT_THAT(MembersOf(TarHeader("n01/", 0, '5', "./") + TarEnd()), ElementsAre("n01/"));
}

TEST_F(TarTest, KnowsLinksAndDevices) {
  EXPECT_THAT(MembersOf(TarHeader("hard", 7, '1') + TarHeader("soft", 0, '2') +
                        TarHeader("device", 0, '3') + TarHeader("pipe", 0, '6') +
                        TarMemberText("a", "x") + TarEnd()),
              ElementsAre("hard@", "soft@", "device@", "pipe@", "a=x"));
}

TEST_F(TarTest, KnowsThePrefixOfLongNames) {
  EXPECT_THAT(MembersOf(TarHeader("c", 0, '0', "a/b") + TarEnd()), ElementsAre("a/b/c="));
  // GNU's own headers have no prefix there.
  std::string gnu = TarHeader("c", 0, '0', "12345");
  gnu.replace(257, 8, std::string("ustar  \0", 8));
  EXPECT_THAT(MembersOf(WithTarChecksum(gnu) + TarEnd()), ElementsAre("c="));
  // Nor have those of before POSIX, in which a directory is a name with '/' behind.
  std::string old = TarHeader("c/", 0, '\0', "12345");
  old.replace(257, 8, std::string(8, '\0'));
  EXPECT_THAT(MembersOf(WithTarChecksum(old) + TarEnd()), ElementsAre("c/"));
}

TEST_F(TarTest, KnowsLongNamesOfGnu) {
  const std::string name = "n01440764/" + std::string(300, 'n') + ".JPEG";
  EXPECT_THAT(
      MembersOf(TarMemberText("././@LongLink", name + std::string(1, '\0'), 'L') +
                TarMemberText(name.substr(0, 100), "x") + TarMemberText("b", "y") +
                TarMemberText("././@LongLink", "target", 'K') + TarHeader("c", 0, '2') + TarEnd()),
      ElementsAre(name + "=x", "b=y", "c@"));
}

TEST_F(TarTest, KnowsPaxHeaders) {
  const std::string name = std::string(200, 'p') + "/" + std::string(200, 'q');
  EXPECT_THAT(
      MembersOf(TarMemberText("g", PaxRecord("comment", "all"), 'g') +
                TarMemberText("x", PaxRecord("mtime", "1.5") + PaxRecord("path", name), 'x') +
                TarMemberText("short", "x") + TarMemberText("b", "y") + TarEnd()),
      ElementsAre(name + "=x", "b=y"));
  EXPECT_THAT(MembersOf(TarMemberText("x", PaxRecord("size", "3"), 'x') + TarHeader("a", 0) +
                        TarPadded("abc") + TarEnd()),
              ElementsAre("a=abc"));
}

TEST_F(TarTest, KnowsSizesOfBase256) {
  std::string header = TarHeader("a", 0);
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12));
  EXPECT_THAT(MembersOf(WithTarChecksum(header) + TarPadded("abc") + TarEnd()),
              ElementsAre("a=abc"));
  header.replace(124, 12, std::string("\x80\0\0\xff\0\0\0\0\0\0\0\x03", 12));
  EXPECT_THAT(Rejection(WithTarChecksum(header) + TarEnd()), HasSubstr("the size is not numeric"));
}

TEST_F(TarTest, ReadsAnArchiveWithinAnother) {
  const std::string inner = TarOf({{"x", "one"}});
  const std::string outer = TarOf({{"a", "before"}, {"n01.tar", inner}, {"b", "behind"}});
  WriteText(Path(), outer);
  const support::Descriptor file = OpenForReading(Path());
  TarReader reader(file, Path(), {0, outer.size()});
  ASSERT_TRUE(reader.Next());
  const auto member = reader.Next();
  TarReader within(file, Path(), {member->offset, member->size});
  const auto image = within.Next();
  EXPECT_EQ(image->name, "x");
  EXPECT_EQ(outer.substr(image->offset, image->size), "one");
  EXPECT_FALSE(within.Next());
}

TEST_F(TarTest, RejectsWhatIsCutOff) {
  const std::string whole = TarMemberText("a", "abc") + TarMemberText("b", "d");
  for (const std::size_t length : {0UL, 511UL, 1024UL, 1025UL, 2048UL}) {
    EXPECT_THAT(Rejection(whole.substr(0, length)), HasSubstr("it is truncated")) << length;
  }
  EXPECT_THAT(
      Rejection(whole.substr(0, 600)),
      HasSubstr("offset 0: the member has 3 bytes, but only 88 are left: the file is trun"));
  EXPECT_THAT(Rejection(whole.substr(0, 512) + TarEnd().substr(0, 100)), HasSubstr("truncated"));
  EXPECT_THAT(Rejection(TarMemberText("x", PaxRecord("path", "a"), 'x') + TarEnd()),
              HasSubstr("the archive ends behind a header that is to extend another one"));
}

TEST_F(TarTest, RejectsAWrongChecksum) {
  std::string archive = TarMemberText("a", "abc") + TarOf({{"b", ""}});
  archive[1024] = 'c';
  EXPECT_THAT(Rejection(archive), HasSubstr("offset 1024: the checksum of the header is wrong: the "
                                            "file is damaged"));
  archive[0] = 'c';
  EXPECT_THAT(Rejection(archive),
              HasSubstr("offset 0: the checksum of the header is wrong: the file "
                        "is damaged or no tar archive"));
  archive.replace(0, 2, "\x1f\x8b");
  EXPECT_THAT(Rejection(archive), HasSubstr("the file is compressed: unpack it with gunzip first"));
  archive.replace(0, 4, "PAR1");
  EXPECT_THAT(Rejection(archive),
              HasSubstr("offset 0: Parquet files are not read: doc/reference/data.md"));
  WriteRecords(dir_ / "records", {"some data"});
  const std::pair<std::string, std::string> kinds[] = {
      {"PK\x03\x04", "a ZIP archive: unpack it with unzip first"},
      {"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it with 7z first"},
      {"Rar!", "a RAR archive: unpack it with unrar first"},
      {"\x89HDF", "HDF5, which is not read"},
      {"ARROW1", "Arrow, which is not read"},
      {tests::TextOf(dir_ / "records"), "a TFRecord file, which needs no conversion"}};
  for (const auto& [start, what] : kinds) {
    archive.replace(0, start.size(), start);
    EXPECT_THAT(Rejection(archive), HasSubstr("offset 0: the file is " + what));
    EXPECT_THAT(Rejection(start), HasSubstr("offset 0: the file is " + what));
  }
}

TEST_F(TarTest, RejectsNamesThatLeaveTheArchive) {
  for (const std::string name : {"../a", "a/../../b", "a/..", ".."}) {
    EXPECT_THAT(Rejection(TarOf({{name, "x"}})),
                HasSubstr("the name " + name + " climbs out of the archive"));
  }
  EXPECT_THAT(Rejection(TarOf({{"/etc/a", "x"}})), HasSubstr("the name /etc/a is absolute"));
  EXPECT_THAT(Rejection(TarOf({{"a\x1b[2J", "x"}})), HasSubstr("the name has control characters"));
  EXPECT_THAT(Rejection(TarOf({{"", "x"}})), HasSubstr("the member has no name"));
  EXPECT_THAT(Rejection(TarMemberText("x", PaxRecord("path", "../c"), 'x') + TarOf({{"c", ""}})),
              HasSubstr("climbs out"));
  EXPECT_THAT(MembersOf(TarOf({{"a..b/..c", "x"}})), ElementsAre("a..b/..c=x"));
}

TEST_F(TarTest, RejectsWhatItDoesNotKnow) {
  EXPECT_THAT(Rejection(TarMemberText("a", "x", 'S') + TarEnd()),
              HasSubstr("a member of type 83, which is neither file, directory nor link"));
  const std::string sparse = PaxRecord("GNU.sparse.major", "1");
  EXPECT_THAT(Rejection(TarMemberText("x", sparse, 'x') + TarOf({{"a", ""}})),
              HasSubstr("a sparse member"));
  EXPECT_THAT(Rejection(TarMemberText("g", PaxRecord("path", "a"), 'g') + TarEnd()),
              HasSubstr("gives all members one name or one size"));
  for (const std::string record : {"path=a\n", "99 path=a\n", "9 path=a\n9", "3 \n", "5 ab\n"}) {
    EXPECT_THAT(Rejection(TarMemberText("x", record, 'x') + TarOf({{"a", ""}})),
                HasSubstr("a pax record "))
        << record;
  }
  EXPECT_THAT(Rejection(TarMemberText("x", PaxRecord("size", "-1"), 'x') + TarOf({{"a", ""}})),
              HasSubstr("the pax record size is not numeric"));
  EXPECT_THAT(
      Rejection(TarMemberText("x", std::string(kMaxPaxHeaderBytes + 1, 'a'), 'x') + TarEnd()),
      HasSubstr("an extension of 1048577 bytes, at most 1048576 are read"));
  EXPECT_THAT(Rejection(TarMemberText("l", std::string(kMaxTarNameBytes + 1, 'a'), 'L') +
                        TarOf({{"a", ""}})),
              HasSubstr("the name has more than 4096 bytes"));
}

TEST_F(TarTest, RejectsASecondArchiveBehindTheFirst) {
  EXPECT_THAT(Rejection(TarOf({{"a", "x"}}) + TarOf({{"b", "y"}})),
              HasSubstr("something follows the end of the archive"));
}

}  // namespace
}  // namespace trainer
