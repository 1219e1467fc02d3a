// SPDX-License-Identifier: Apache-2.0

#include "ddldata/xml_scanner.h"

#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

// "+a" begins an element, "-a" ends it, "=x" is text; blanks between.
std::string EventsOf(const std::string& text) {
  using Kind = XmlScanner::Kind;
  XmlScanner xml(text, "a.xml");
  std::string events;
  for (auto event = xml.Next(); event.kind != Kind::kDone; event = xml.Next()) {
    const char* mark = event.kind == Kind::kBegin ? "+" : event.kind == Kind::kEnd ? "-" : "=";
    events += (events.empty() ? "" : " ") + (mark + std::string(event.text));
  }
  EXPECT_EQ(xml.Next().kind, Kind::kDone);
  return events;
}

std::string XmlError(const std::string& text) {
  return DataErrorOf([&] { EventsOf(text); });
}

std::string Nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += "<a>";
  for (std::size_t i = 0; i < depth; ++i) text += "</a>";
  return text;
}

TEST(XmlScanner, GoesThroughElementsAndTexts) {
  EXPECT_EQ(EventsOf("<a><b>1</b>x<c/></a>"), "+a +b =1 -b =x +c -c -a");
  EXPECT_EQ(EventsOf("\xef\xbb\xbf \n<a\t></a\n>\n"), "+a -a");
  EXPECT_EQ(EventsOf("<a/>"), "+a -a");
}

TEST(XmlScanner, PassesOverWhatIsNoElement) {
  EXPECT_EQ(EventsOf("<?xml version=\"1.0\"?><!-- <a> --><a><!-- </a> --><?p >?></a><!----> "),
            "+a -a");
  EXPECT_EQ(EventsOf("<a b=\"/>\" c='\"</a>' d=\"x/\"><e f=''/></a>"), "+a +e -e -a");
  EXPECT_EQ(EventsOf("<a>1<!-- 2 -->3</a>"), "+a =1 =3 -a");
  EXPECT_EQ(EventsOf("<a><![CDATA[</a>]]]></a>"), "+a =</a>] -a");
  EXPECT_EQ(EventsOf("<a>&amp;</a>"), "+a =&amp; -a");
}

TEST(XmlScanner, RejectsWhatDoesNotMatch) {
  EXPECT_EQ(XmlError("<a>\n<b>\n</a>"), "a.xml:3: the element \"b\" ends as \"a\"");
  EXPECT_EQ(XmlError("<a></a></a>"), "a.xml:1: the end of an element \"a\" that did not begin");
  EXPECT_EQ(XmlError("<a/>\n<b/>"), "a.xml:2: a second outermost element, \"b\"");
  EXPECT_EQ(XmlError("\n7 <a/>"), "a.xml:1: text that is in no element: \"7 \"");
  EXPECT_EQ(XmlError("<a/> x"), "a.xml:1: text that is in no element: \"x\"");
  EXPECT_EQ(XmlError("<![CDATA[x]]><a/>"), "a.xml:1: CDATA that is in no element");
  EXPECT_EQ(XmlError("<a>< b/></a>"), "a.xml:1: a tag without a name");
  EXPECT_EQ(XmlError("<a><></a>"), "a.xml:1: a tag without a name");
  EXPECT_EQ(XmlError("<a><b <c/></a>"), "a.xml:1: a < within a tag");
  EXPECT_EQ(XmlError("\n<!DOCTYPE a [<!ENTITY b \"c\">]><a/>"),
            "a.xml:2: a document type or the like, which is not read");
}

TEST(XmlScanner, RejectsWhatIsCutOff) {
  EXPECT_EQ(XmlError(""), "a.xml:1: there is no element");
  EXPECT_EQ(XmlError("\n \n"), "a.xml:3: there is no element");
  EXPECT_EQ(XmlError("<a>\n<b>1"), "a.xml:2: the file ends within the element \"b\"");
  EXPECT_EQ(XmlError("<a>\n<b"), "a.xml:2: the file ends within a tag: it is cut off");
  EXPECT_EQ(XmlError("<a b=\""), "a.xml:1: the file ends before a \": it is cut off");
  EXPECT_EQ(XmlError("<a b=\"\""), "a.xml:1: the file ends within a tag: it is cut off");
  EXPECT_EQ(XmlError("<a></a"), "a.xml:1: the file ends before a >: it is cut off");
  EXPECT_EQ(XmlError("<a><!-- "), "a.xml:1: the file ends before a -->: it is cut off");
  EXPECT_EQ(XmlError("<a><![CDATA[x]]</a>"), "a.xml:1: the file ends before a ]]>: it is cut off");
  EXPECT_EQ(XmlError("<?xml ><a/>"), "a.xml:1: the file ends before a ?>: it is cut off");
}

TEST(XmlScanner, LimitsDepth) {
  EXPECT_NE(EventsOf(Nested(kMaxXmlDepth)), "");
  EXPECT_EQ(XmlError(Nested(kMaxXmlDepth + 1)), "a.xml:1: more than 64 elements in each other");
}

}  // namespace
}  // namespace trainer
