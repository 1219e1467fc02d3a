// SPDX-License-Identifier: Apache-2.0

#include "ddldata/bounding_boxes.h"
#include "tests/ddldata/annotation_text.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSizeElement[] = "<size><width>500</width><height>375</height></size>";

std::vector<BoundingBox> AnnotatedBoxes(const std::string& content) {
  return ParseAnnotation("<annotation>" + content + "</annotation>", "a.xml");
}

// `content` begins in line 2.
std::string AnnotationError(const std::string& content) {
  return DataErrorOf(
      [&] { ParseAnnotation("<annotation>\n" + content + "</annotation>", "a.xml"); });
}

TEST(ParseAnnotation, HasTheBoxesInPartsOfTheSize) {
  // As ImageNet's files are.
  const std::string text =
      "<annotation>\n\t<folder>n02119789</folder>\n\t<filename>%s</filename>\n"
      "\t<source>\n\t\t<database>ImageNet database</database>\n\t</source>\n"
      "\t<size>\n\t\t<width>500</width>\n\t\t<height>375</height>\n\t\t<depth>3</depth>\n"
      "\t</size>\n\t<segmented>0</segmented>\n"
      "\t<object>\n\t\t<name>n02119789</name>\n\t\t<pose>Unspecified</pose>\n\t\t<bndbox>\n"
      "\t\t\t<xmin>50</xmin>\n\t\t\t<ymin>75</ymin>\n\t\t\t<xmax>100</xmax>\n"
      "\t\t\t<ymax>150</ymax>\n\t\t</bndbox>\n\t</object>\n"
      "\t<object>\n\t\t<bndbox>\n\t\t\t<xmin>0</xmin>\n\t\t\t<ymin>0</ymin>\n"
      "\t\t\t<xmax>500</xmax>\n\t\t\t<ymax>375</ymax>\n\t\t</bndbox>\n\t</object>\n"
      "</annotation>\n";
  EXPECT_THAT(ParseAnnotation(text, "a.xml"),
              ElementsAre(BoundingBox{0.1F, 0.2F, 0.2F, 0.4F}, BoundingBox{0, 0, 1, 1}));
}

// Each expectation is a line that process_bounding_boxes.py writes.
TEST(ParseAnnotation, IsTensorFlowsToTheLastDigit) {
  // 7/500, 3/375, 411/500, 221/375; rounded: 0.5893.
  EXPECT_THAT(AnnotatedBoxes(kSizeElement + ObjectElement("7", "3", "411", "221")),
              ElementsAre(BoundingBox{0.0140F, 0.0080F, 0.8220F, 0.5893F}));
  // Digits behind the point are cut off.
  EXPECT_THAT(AnnotatedBoxes(kSizeElement + ObjectElement("7.99", "-0.5", "411.5", "221.9")),
              ElementsAre(BoundingBox{0.0140F, 0, 0.8220F, 0.5893F}));
  // Corners in any order.
  EXPECT_THAT(AnnotatedBoxes(kSizeElement + ObjectElement("411", "221", "7", "3")),
              ElementsAre(BoundingBox{0.0140F, 0.0080F, 0.8220F, 0.5893F}));
  // Beyond the image.
  EXPECT_THAT(AnnotatedBoxes(kSizeElement + ObjectElement("-20", "-1", "501", "100000")),
              ElementsAre(BoundingBox{0, 0, 1, 1}));
  // No area, also where only rounding makes it so.
  EXPECT_THAT(AnnotatedBoxes(kSizeElement + ObjectElement("7", "3", "7", "221") +
                             ObjectElement("600", "3", "700", "221")),
              ElementsAre(BoundingBox{0.0140F, 0.0080F, 0.0140F, 0.5893F},
                          BoundingBox{1, 0.0080F, 1, 0.5893F}));
  EXPECT_THAT(AnnotatedBoxes("<size><width>100000</width><height>1</height></size>" +
                             ObjectElement("11", "0", "14", "1")),
              ElementsAre(BoundingBox{0.0001F, 0, 0.0001F, 1}));
  // 1/32 = 0.03125 lies between two of four digits: the even one.
  EXPECT_THAT(AnnotatedBoxes("<size><width>32</width><height>32</height></size>" +
                             ObjectElement("1", "3", "32", "32")),
              ElementsAre(BoundingBox{0.0312F, 0.0938F, 1, 1}));
}

TEST(ParseAnnotation, ReadsNothingElse) {
  const std::string part = "<part><bndbox><xmin>1</xmin></bndbox></part>";
  EXPECT_THAT(AnnotatedBoxes("<object><name>dog</name>" + part + "</object>"), IsEmpty());
  EXPECT_THAT(AnnotatedBoxes("<bndbox><xmin>x</xmin></bndbox><width>w</width>" +
                             ObjectElement("0", "0", "250", "75") + "<object/>" + kSizeElement +
                             "<other><size><width>1</width></size></other>"),
              ElementsAre(BoundingBox{0, 0, 0.5F, 0.2F}));
  EXPECT_THAT(AnnotatedBoxes(""), IsEmpty());
  EXPECT_THAT(AnnotatedBoxes("<size/>"), IsEmpty());
}

TEST(ParseAnnotation, TakesNumbersInEveryForm) {
  EXPECT_THAT(AnnotatedBoxes(kSizeElement +
                             ObjectElement(" 50\n", "7<!-- 1 -->5", "<![CDATA[1]]>00", "+1.5e2")),
              ElementsAre(BoundingBox{0.1F, 0.2F, 0.2F, 0.4F}));
  const std::string text =
      "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- <annotation> -->\n<annotation verified='yes'>" +
      std::string(kSizeElement) + ObjectElement("0", "0", "500", "375") + "</annotation>\n";
  EXPECT_THAT(ParseAnnotation(text, "a.xml"), ElementsAre(BoundingBox{0, 0, 1, 1}));
}

TEST(ParseAnnotation, RejectsNumbersThatMakeNoSense) {
  EXPECT_EQ(AnnotationError(kSizeElement + ("\n" + ObjectElement("nan", "0", "1", "1"))),
            "a.xml:3: <xmin> is \"nan\", expected a number from -1000000 to 1000000");
  for (const char* number : {"", "inf", "1 2", "1000001", "-1000001", "1e9", "0x1", "7px"}) {
    EXPECT_THAT(AnnotationError(kSizeElement + ObjectElement("0", "0", "1", number)),
                HasSubstr("a.xml:2: <ymax> is \"" + std::string(number) + "\", expected a number"));
  }
  EXPECT_EQ(AnnotatedBoxes(kSizeElement + ObjectElement("-1000000", "0", "1000000", "1")).size(),
            1U);
  for (const char* number : {"0", "-500", "0.9", "1000001", "x"}) {
    EXPECT_EQ(
        AnnotationError("<size>\n<width>" + std::string(number) + "</width></size>"),
        "a.xml:3: <width> is \"" + std::string(number) + "\", expected a number from 1 to 1000000");
  }
  EXPECT_THAT(AnnotationError("<size><height>0</height></size>"), HasSubstr("<height> is \"0\""));
}

TEST(ParseAnnotation, RejectsWhatIsMissingOrThereTwice) {
  EXPECT_EQ(AnnotationError("<object><bndbox>\n<xmin>1</xmin>\n</bndbox></object>"),
            "a.xml:4: the bounding box has no <ymin>");
  EXPECT_EQ(AnnotationError("<object><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>1</xmax></bndbox>"
                            "</object>"),
            "a.xml:2: the bounding box has no <ymax>");
  EXPECT_EQ(AnnotationError("<object><bndbox><xmin>1</xmin><xmin>1</xmin></bndbox></object>"),
            "a.xml:2: <xmin> is there twice");
  EXPECT_EQ(AnnotationError(kSizeElement + ("\n" + std::string(kSizeElement))),
            "a.xml:3: <width> is there twice");
  EXPECT_EQ(AnnotationError(ObjectElement("0", "0", "1", "1") + "\n"),
            "a.xml:3: there are bounding boxes, but no <width>");
  EXPECT_EQ(AnnotationError("<size><width>5</width></size>" + ObjectElement("0", "0", "1", "1")),
            "a.xml:2: there are bounding boxes, but no <height>");
  EXPECT_EQ(AnnotationError("<size><width>5<b/></width></size>"),
            "a.xml:2: an element within <width>");
  // A box does not take corners of the one before.
  EXPECT_THAT(AnnotationError(kSizeElement + ObjectElement("0", "0", "1", "1") +
                              "<object><bndbox><xmin>1</xmin></bndbox></object>"),
              HasSubstr("has no <ymin>"));
}

TEST(ParseAnnotation, RejectsOtherDocuments) {
  const auto error = [](const std::string& text) {
    return DataErrorOf([&] { ParseAnnotation(text, "a.xml"); });
  };
  EXPECT_EQ(error("<html></html>"), "a.xml:1: the outermost element is \"html\", not annotation");
  EXPECT_EQ(error("no XML"), "a.xml:1: no well-formed XML: syntax error");
  EXPECT_EQ(error(""), "a.xml:1: no well-formed XML: no element found");
  EXPECT_EQ(error("<annotation>\n<object>"),
            "a.xml:2: the file ends within the element \"object\"");
  EXPECT_EQ(error("<annotation>\n<object"), "a.xml:2: no well-formed XML: unclosed token");
  EXPECT_EQ(error("<annotation>\n<object>\n</annotation>"),
            "a.xml:3: no well-formed XML: mismatched tag");
  EXPECT_EQ(error("<annotation/>\n<annotation/>"),
            "a.xml:2: no well-formed XML: junk after document element");
  EXPECT_EQ(error("\n<!DOCTYPE annotation [<!ENTITY a \"1\"><!ENTITY b \"&a;&a;\">]>\n"
                  "<annotation>&b;</annotation>"),
            "a.xml:2: a document type, which is not read");
  EXPECT_EQ(error("<annotation>&b;</annotation>"), "a.xml:1: no well-formed XML: undefined entity");
}

}  // namespace
}  // namespace trainer
