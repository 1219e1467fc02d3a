// SPDX-License-Identifier: Apache-2.0

#include <atomic>

#include "ddldata/bounding_boxes.h"
#include "ddldata/convert.h"
#include "tests/ddldata/annotation_text.h"
#include "tests/ddldata/convert_fixture.h"
#include "tests/ddldata/tar_text.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/files/data_set.h"

namespace trainer {
namespace {

constexpr char kSizeElement[] = "<size><width>500</width><height>375</height></size>";

std::vector<BoundingBox> AnnotatedBoxes(const std::string& content) {
  return ParseAnnotation("<annotation>" + content + "</annotation>", "a.xml").boxes;
}

// `content` begins in line 2.
std::string AnnotationError(const std::string& content) {
  return DataErrorOf(
      [&] { ParseAnnotation("<annotation>\n" + content + "</annotation>", "a.xml"); });
}

TEST(HasOtherAspect, TellsMoreThanRounding) {
  struct Case {
    ImageSize annotation;
    ImageSize image;
    bool differs;
  };
  const Case cases[] = {
      {{500, 375}, {500, 375}, false}, {{500, 375}, {250, 188}, false},
      {{500, 375}, {250, 187}, false}, {{123, 161}, {161, 123}, true},
      {{161, 123}, {123, 161}, true},  {{1000, 200}, {161, 123}, true},
      {{500, 490}, {490, 500}, true},  {{500, 375}, {500, 380}, false},
      {{500, 375}, {500, 390}, true},  {{500, 390}, {500, 375}, true},
      {{500, 500}, {500, 500}, false}, {{10, 3}, {1000, 280}, false},
  };
  for (const auto& [annotation, image, differs] : cases) {
    EXPECT_EQ(HasOtherAspect(annotation, image), differs)
        << annotation.width << " " << annotation.height << " " << image.width << " "
        << image.height;
  }
}

TEST(ParseAnnotation, SaysOfWhichSizeItIs) {
  const auto size_in = [](const std::string& size) {
    return ParseAnnotation("<annotation>" + size + "</annotation>", "a.xml").size;
  };
  const auto size = size_in("<size><width>50</width><height>40</height></size>");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->width, 50);
  EXPECT_EQ(size->height, 40);
  EXPECT_FALSE(size_in("<size><width>50</width></size>"));
  BoxList boxes;
  boxes.SetSize("a/b.jpg", {3, 4});
  EXPECT_EQ(boxes.SizeOf("b.JPEG")->height, 4);
  EXPECT_FALSE(boxes.SizeOf("c"));
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
  EXPECT_THAT(ParseAnnotation(text, "a.xml").boxes,
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
  EXPECT_THAT(ParseAnnotation(text, "a.xml").boxes, ElementsAre(BoundingBox{0, 0, 1, 1}));
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

std::string BoxListError(const std::string& text) {
  return DataErrorOf([&] { ParseBoxList(text, "boxes.csv"); });
}

TEST(ParseBoxList, HasTheBoxesOfEachImageInTheirOrder) {
  // As in TensorFlow's imagenet_2012_bounding_boxes.csv.
  const BoxList list = ParseBoxList(
      "n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940\n"
      "n00007846_6.JPEG,0.1,0.2,0.3,0.4\n"
      "n00007846_64193.JPEG,0.0000,0.0000,1.0000,1.0000\n",
      "boxes.csv");
  EXPECT_EQ(list.images(), 2);
  EXPECT_EQ(list.without_area(), 0);
  EXPECT_EQ(list.first_name(), "n00007846_6");
  EXPECT_THAT(
      list.BoxesOf("n00007846_64193.JPEG"),
      ElementsAre(BoundingBox{0.0060F, 0.2620F, 0.7545F, 0.9940F}, BoundingBox{0, 0, 1, 1}));
  EXPECT_THAT(list.BoxesOf("n00007846_6.JPEG"), ElementsAre(BoundingBox{0.1F, 0.2F, 0.3F, 0.4F}));
  EXPECT_THAT(list.BoxesOf("n00007846_64194.JPEG"), IsEmpty());
}

TEST(ParseBoxList, DirectoriesAndEndingsOfNamesDoNotCount) {
  const BoxList list =
      ParseBoxList("\xef\xbb\xbfn01/n01_1.JPEG , 0 ,0.5,1e0,1\r\nn01_2,0,0,1,1\r\n", "boxes.csv");
  EXPECT_THAT(list.BoxesOf("n01_1.jpg"), ElementsAre(BoundingBox{0, 0.5F, 1, 1}));
  EXPECT_THAT(list.BoxesOf("set/n01_1"), ElementsAre(BoundingBox{0, 0.5F, 1, 1}));
  EXPECT_THAT(list.BoxesOf("n01_2.JPEG"), ElementsAre(BoundingBox{0, 0, 1, 1}));
}

TEST(ParseBoxList, AllowsWhatRoundingCanDo) {
  const BoxList list = ParseBoxList("a,-0.0001,-0.0,1.0001,1.00005\n", "boxes.csv");
  ASSERT_THAT(list.BoxesOf("a"), ElementsAre(BoundingBox{0, 0, 1, 1}));
  EXPECT_FALSE(std::signbit(list.BoxesOf("a")[0].ymin));
  for (const char* text : {"a,-0.00011,0,1,1", "a,0,-1,1,1", "a,0,0,1.00011,1", "a,0,0,1,375"}) {
    EXPECT_THAT(BoxListError(text), HasSubstr("boxes.csv:1: the ")) << text;
    EXPECT_THAT(BoxListError(text), HasSubstr(" is not from 0 to 1: a bounding box is in parts"));
  }
  EXPECT_THAT(BoxListError("a,0,0,1,375"), HasSubstr("the ymax \"375\" is"));
}

TEST(ParseBoxList, CountsBoxesWithoutArea) {
  const BoxList list =
      ParseBoxList("a,0.5,0,0.5,1\nb,0,0.2,1,0.2\nb,0,0.2,1,0.2001\n", "boxes.csv");
  EXPECT_EQ(list.without_area(), 2);
  EXPECT_EQ(list.images(), 1);
  EXPECT_THAT(list.BoxesOf("a"), IsEmpty());
  EXPECT_THAT(list.BoxesOf("b"), ElementsAre(BoundingBox{0, 0.2F, 1, 0.2001F}));
}

TEST(ParseBoxList, RejectsWithTheLine) {
  const std::string good = "a,0,0,1,1\n";
  for (const char* line : {"a,0,0,1", "a,0,0,1,1,", "a,0,0,1,1,5", ",0,0,1,1", "<annotation>",
                           "ImageId,PredictionString", "n01_1,n01 115 49 448 294"}) {
    EXPECT_EQ(BoxListError(good + line),
              "boxes.csv:2: expected FILE,xmin,ymin,xmax,ymax, not \"" + std::string(line) + "\"");
  }
  EXPECT_EQ(BoxListError(good + "a,nan,0,1,1"), "boxes.csv:2: the xmin \"nan\" is not numeric");
  EXPECT_EQ(BoxListError("a,0,inf,1,1"), "boxes.csv:1: the ymin \"inf\" is not numeric");
  EXPECT_EQ(BoxListError("a,0,0,,1"), "boxes.csv:1: the xmax \"\" is not numeric");
  EXPECT_EQ(BoxListError("a,0,0,1,0.5x"), "boxes.csv:1: the ymax \"0.5x\" is not numeric");
  // The columns of another tool.
  EXPECT_EQ(BoxListError("a,0.2,0.8,0.1,0.9"),
            "boxes.csv:1: the xmin is greater than the xmax: the columns are "
            "FILE,xmin,ymin,xmax,ymax");
  EXPECT_THAT(BoxListError("a,0.2,0.8,0.3,0.7"), HasSubstr("the ymin is greater than the ymax"));
  EXPECT_EQ(BoxListError(good + "\n" + good), "boxes.csv:2: the line is empty");
  EXPECT_EQ(BoxListError(""), "boxes.csv:1: the file is empty");
}

TEST(ParseBoxList, LimitsTheBoxesOfAnImage) {
  std::string text;
  for (std::size_t i = 0; i < kMaxBoxesOfImage; ++i) text += "a,0,0,1,1\n";
  EXPECT_EQ(ParseBoxList(text + "b,0,0,1,1\n", "boxes.csv").BoxesOf("a").size(), kMaxBoxesOfImage);
  EXPECT_EQ(BoxListError(text + "a,0,0,1,1\n"),
            "boxes.csv:10001: the image has more than 10000 bounding boxes");
}

// One box from the upper left corner on, `percent` wide.
std::string AnnotationOf(int percent) {
  return AnnotationText(ObjectElement("0", "0", std::to_string(2 * percent), "100"));
}

class BoxSourcesTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ / name; }

  void Write(const std::string& name, const std::string& text) const { dir_.Write(name, text); }

  BoxList Read(const std::string& name) {
    return ReadBoxes(Path(name), [&](std::int64_t read) { read_ = read; });
  }
  std::string Rejection(const std::string& name) {
    return DataErrorOf([&] { Read(name); });
  }

  // The widths of the image's boxes, in percent.
  static std::vector<int> WidthsOf(const BoxList& boxes, const std::string& image) {
    std::vector<int> widths;
    for (const BoundingBox& box : boxes.BoxesOf(image)) {
      widths.push_back(static_cast<int>(box.xmax * 100 + 0.5F));
    }
    return widths;
  }

  TemporaryDirectory dir_;
  std::int64_t read_ = 0;
};

TEST_F(BoxSourcesTest, List) {
  Write("boxes", "n01_1.JPEG,0,0,0.25,1\n");
  EXPECT_THAT(WidthsOf(Read("boxes"), "n01_1.JPEG"), ElementsAre(25));
  // Whatever a line of text may have is no sign of a tar.
  for (const char* text : {"n01_1.JPEG,\t0,0,0.25,1\n", "n01_1.JPEG, 0,0,0.25,1\n",
                           "n01_1.JPEG,0,0,0.25,1\r\n", "\xef\xbb\xbfn01_1.JPEG,0,0,0.25,1"}) {
    Write("boxes", text);
    EXPECT_THAT(WidthsOf(Read("boxes"), "n01_1.JPEG"), ElementsAre(25));
  }
  Write("boxes", "n01_1.JPEG,0,0,0.25\n");
  EXPECT_THAT(Rejection("boxes"), HasSubstr(Path("boxes") + ":1: expected FILE,xmin"));
  Write("boxes", std::string("\xff\xfen\0", 4));
  EXPECT_THAT(Rejection("boxes"), HasSubstr("the file is a text in UTF-16: save it as UTF-8"));
  Write("boxes", "");
  EXPECT_EQ(Rejection("boxes"), Path("boxes") + ":1: the file is empty");
}

TEST_F(BoxSourcesTest, DirectoryAndTarOfAnnotations) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"train/n01/n01_1.xml", AnnotationOf(30)},
      {"train/n01/n01_2.XML", AnnotationOf(0)},
      {"train/n02/deep/n02_1.Xml", AnnotationOf(40)},
      // Of the image of another class as well.
      {"train/n02/n01_1.xml", AnnotationOf(20)},
      {"top.jpg.xml", AnnotationOf(50)},
      {"train/README", "no annotation"},
      {"train/n01/._n01_1.xml", "a shadow"},
  };
  for (const auto& [name, text] : files) Write("annotations/" + name, text);
  Write("annotations/.trash/n09_1.xml", "nothing");
  Write("annotations/lost+found/n09_2.xml", "nothing");
  // In a tar in another order, and where a directory above is hidden.
  Write("boxes.tar", TarOf({files.rbegin(), files.rend()}));
  for (const auto& [name, text] : files) Write(".cache/annotations/" + name, text);
  for (const char* source : {"annotations", "annotations/", ".cache/annotations", "boxes.tar"}) {
    const BoxList boxes = Read(source);
    EXPECT_EQ(read_, 5) << source;
    EXPECT_EQ(boxes.images(), 3) << source;
    EXPECT_EQ(boxes.without_area(), 1) << source;
    EXPECT_THAT(WidthsOf(boxes, "n01_1.JPEG"), ElementsAre(30, 20)) << source;
    EXPECT_THAT(WidthsOf(boxes, "n01_2.JPEG"), IsEmpty()) << source;
    EXPECT_THAT(WidthsOf(boxes, "n02_1.JPEG"), ElementsAre(40)) << source;
    EXPECT_THAT(WidthsOf(boxes, "top.jpg"), ElementsAre(50)) << source;
  }
}

TEST_F(BoxSourcesTest, ErrorsNameTheAnnotation) {
  Write("directory/n01/n01_1.xml", "<annotation>\n</object>");
  EXPECT_EQ(Rejection("directory"),
            Path("directory") + "/n01/n01_1.xml:2: no well-formed XML: mismatched tag");
  Write("a.tar", TarOf({{"n01/n01_1.xml", "<annotation>\n</object>"}}));
  EXPECT_EQ(Rejection("a.tar"),
            Path("a.tar") + ", n01/n01_1.xml:2: no well-formed XML: mismatched tag");
}

TEST_F(BoxSourcesTest, AnnotationsHaveALimit) {
  const std::string whole = AnnotationOf(30);
  const auto padded = [&](std::size_t size) {
    return whole + std::string(size - whole.size(), ' ');
  };
  Write("directory/a.xml", padded(kMaxAnnotationBytes));
  EXPECT_EQ(Read("directory").images(), 1);
  Write("directory/a.xml", padded(kMaxAnnotationBytes + 1));
  EXPECT_THAT(Rejection("directory"), HasSubstr(Path("directory") + "/a.xml"));
  Write("a.tar", TarOf({{"a.xml", padded(kMaxAnnotationBytes)}}));
  EXPECT_EQ(Read("a.tar").images(), 1);
  Write("a.tar", TarOf({{"a.xml", padded(kMaxAnnotationBytes + 1)}}));
  EXPECT_EQ(Rejection("a.tar"),
            Path("a.tar") + ", a.xml has 1048577 bytes, at most 1048576 are read");
}

TEST_F(BoxSourcesTest, DirectoriesHaveALimit) {
  std::string below = "directory";
  for (int i = 0; i < 16; ++i) below += "/f";
  Write(below + "/a.xml", AnnotationOf(30));
  EXPECT_EQ(Read("directory").images(), 1);
  Write(below + "/f/b.xml", AnnotationOf(30));
  EXPECT_EQ(Rejection("directory"), Path(below) +
                                        "/f: more than 16 directories in each other; is one a "
                                        "link to a directory above?");
}

TEST_F(BoxSourcesTest, ImagesHaveALimit) {
  std::string objects;
  for (int i = 0; i < 4000; ++i) objects += ObjectElement("0", "0", "9", "9");
  const std::string text = AnnotationText(objects);
  Write("directory/1/a.xml", text);
  Write("directory/2/a.xml", text);
  EXPECT_EQ(Read("directory").BoxesOf("a").size(), 8000U);
  Write("directory/3/a.xml", text);
  EXPECT_EQ(Rejection("directory"),
            Path("directory") + "/3/a.xml: the image has more than 10000 bounding boxes");
}

TEST_F(BoxSourcesTest, RejectsOtherPaths) {
  EXPECT_THAT(Rejection("nothing"), HasSubstr(Path("nothing") + ": No such file"));
  Write("directory/a.txt", "x");
  EXPECT_EQ(Rejection("directory"),
            Path("directory") + " has no annotations: no file whose name ends as .xml");
  Write("a.tar", TarOf({{"n01.tar.gz", "x"}}));
  EXPECT_EQ(Rejection("a.tar"),
            Path("a.tar") + " has no annotations: no file whose name ends as .xml");
  Write("a.tar.gz", "\x1f\x8b\x08 packed" + std::string(600, 'x'));
  EXPECT_THAT(Rejection("a.tar.gz"),
              HasSubstr("the file is compressed: unpack it with gunzip first"));
  Write("link.tar", TarMemberText("a.xml", "", '2') + TarEnd());
  EXPECT_THAT(Rejection("link.tar"),
              HasSubstr("link.tar, a.xml: a link to another file: pack the "));
  fs::create_directory_symlink("..", Path("directory/up"));
  EXPECT_THAT(Rejection("directory"), HasSubstr("more than 16 directories in each other"));
}

TEST_F(BoxSourcesTest, TellsNowAndThenHowFarItIs) {
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 1500; ++i) files.emplace_back(std::to_string(i) + ".xml", AnnotationOf(30));
  Write("a.tar", TarOf(files));
  std::vector<std::int64_t> told;
  ReadBoxes(Path("a.tar"), [&](std::int64_t read) { told.push_back(read); });
  EXPECT_THAT(told, ElementsAre(1024, 1500));
  EXPECT_EQ(DataErrorOf([&] {
              ReadBoxes(Path("a.tar"), [](std::int64_t) { throw Error(EX_DATAERR, "stop"); });
            }),
            "stop");
}

constexpr char kBoxLines[] =
    "n01_0.JPEG,0.1000,0.2000,0.3000,0.4000\n"
    "n02_3.JPEG,0.0000,0.5000,1.0000,0.7500\n"
    "n09_1.JPEG,0.0000,0.0000,1.0000,1.0000\n"
    "n01_0.JPEG,0.5000,0.6000,0.7000,0.8000\n"
    "n03_1.JPEG,0.5000,0.6000,0.5000,0.8000\n";

class ConvertBoxesTest : public ConvertTest {
 protected:
  ConvertBoxesTest() {
    WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 5));
    WriteText(Path("boxes.csv"), kBoxLines);
  }

  ConvertOptions OptionsWithBoxes(const std::string& to) const {
    ConvertOptions options = OptionsFor(to);
    options.boxes = Path("boxes.csv");
    return options;
  }

  // Of the images that have any, by the first box's ymin.
  std::map<float, ImageExample> ImagesWithBoxes(const std::string& name, Split split) const {
    std::map<float, ImageExample> images;
    const DataSet data(Path(name), "", split, 1);
    std::vector<std::uint8_t> buffer;
    for (std::int64_t i = 0; i < data.records(); ++i) {
      ImageExample example = ParseExample(data.Read(i, buffer));
      if (!example.boxes.empty()) images[example.boxes.front().ymin] = std::move(example);
    }
    return images;
  }
};

TEST_F(ConvertBoxesTest, RecordsHaveTheBoxesOfTheirImages) {
  const ConvertSummary summary = Convert(OptionsWithBoxes("set"));
  EXPECT_EQ(summary.train_images, 15);
  EXPECT_EQ(summary.images_with_boxes, 2);
  EXPECT_EQ(ProblemsOf("set", 3), 0);
  EXPECT_THAT(messages_, HasSubstr("ddldata: note: bounding boxes without area in " +
                                   Path("boxes.csv") + ", which are left out: 1\n"));
  EXPECT_THAT(messages_, Not(HasSubstr("no training image")));
  const auto images = ImagesWithBoxes("set", Split::kTrain);
  ASSERT_EQ(images.size(), 2U);
  const ImageExample& first = images.at(0.2F);
  EXPECT_EQ(first.label, 1);
  EXPECT_EQ(first.encoded, tests::TextOf(Path("images/n01/n01_0.JPEG")));
  EXPECT_THAT(first.boxes, ElementsAre(BoundingBox{0.1F, 0.2F, 0.3F, 0.4F},
                                       BoundingBox{0.5F, 0.6F, 0.7F, 0.8F}));
  const ImageExample& second = images.at(0.5F);
  EXPECT_EQ(second.label, 2);
  EXPECT_EQ(second.encoded, tests::TextOf(Path("images/n02/n02_3.JPEG")));
  EXPECT_THAT(second.boxes, ElementsAre(BoundingBox{0, 0.5F, 1, 0.75F}));
}

TEST_F(ConvertBoxesTest, AnnotationsMakeTheBytesOfTheirList) {
  Convert(OptionsWithBoxes("list"));
  const auto expected = FilesOf("list");
  const ImageFiles annotations = {
      {"n01/n01_0.xml", AnnotationText(ObjectElement("20", "20", "60", "40") +
                                       ObjectElement("140", "80", "100", "60"))},
      {"n02/n02_3.xml", AnnotationText(ObjectElement("-3", "50", "222", "75"))},
      {"n03/n03_1.xml", AnnotationText(ObjectElement("100", "60", "100", "80"))}};
  WriteImageFiles(Path("annotations"), annotations);
  ConvertOptions options = OptionsFor("directory");
  options.boxes = Path("annotations");
  Convert(options);
  EXPECT_EQ(FilesOf("directory"), expected);
  WriteText(Path("boxes.tar"), TarOf(annotations));
  options.dir = Path("tar");
  options.boxes = Path("boxes.tar");
  options.threads = 4;
  Convert(options);
  EXPECT_EQ(FilesOf("tar"), expected);
}

TEST_F(ConvertBoxesTest, ImagesMadeSmallerKeepTheirBoxes) {
  ConvertOptions options = OptionsWithBoxes("set");
  options.image.shorter_side = 8;
  Convert(options);
  const auto images = ImagesWithBoxes("set", Split::kTrain);
  EXPECT_NE(images.at(0.5F).encoded, tests::TextOf(Path("images/n02/n02_3.JPEG")));
  EXPECT_THAT(images.at(0.5F).boxes, ElementsAre(BoundingBox{0, 0.5F, 1, 0.75F}));
}

TEST_F(ConvertBoxesTest, ValidationImagesHaveNone) {
  ConvertOptions options = OptionsWithBoxes("set");
  options.validation = {.sources = {Path("images")}, .labels = "", .shards = 1};
  EXPECT_EQ(Convert(options).images_with_boxes, 2);
  EXPECT_EQ(ImagesWithBoxes("set", Split::kTrain).size(), 2U);
  EXPECT_THAT(ImagesWithBoxes("set", Split::kValidation), IsEmpty());
}

TEST_F(ConvertBoxesTest, GoesOnWithTheSameBoxesOnly) {
  Convert(OptionsWithBoxes("whole"));
  ConvertOptions options = OptionsWithBoxes("stopped");
  std::atomic<int> left = 11;
  EXPECT_THROW(ConvertUntil(options, [&] { return --left < 0; }), Error);
  EXPECT_LT(FilesOf("stopped").size(), 6U);
  WriteText(Path("other.csv"), "n01_0.JPEG,0.1000,0.2000,0.3000,0.5000\n");
  ConvertOptions other = options;
  other.boxes = Path("other.csv");
  EXPECT_EQ(RejectionOf(other).first, EX_USAGE);
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("stopped is of another conversion"));
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("1 of them with bounding boxes"));
  other.boxes = "";
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("stopped is of another conversion"));
  EXPECT_GT(Convert(options).files_before, 0);
  EXPECT_EQ(FilesOf("stopped"), FilesOf("whole"));
  // And one that began without boxes stays so.
  Convert(OptionsFor("without"));
  other = options;
  other.dir = Path("without");
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("2 of them with bounding boxes"));
}

TEST_F(ConvertBoxesTest, NotesWhereNoNameFits) {
  WriteText(Path("boxes.csv"), "n08_7.JPEG,0,0,1,1\n");
  EXPECT_EQ(Convert(OptionsWithBoxes("set")).images_with_boxes, 0);
  EXPECT_THAT(messages_, HasSubstr("ddldata: note: no training image has a bounding box in " +
                                   Path("boxes.csv") +
                                   ", which has those of 1 other image, one by the name n08_7\n"));
  Convert(OptionsFor("without"));
  EXPECT_EQ(FilesOf("set"), FilesOf("without"));
  WriteText(Path("boxes.csv"), "n01_0.JPEG,0,0,0,1\n");
  Convert(OptionsWithBoxes("empty"));
  EXPECT_THAT(messages_,
              HasSubstr("no training image has a bounding box in " + Path("boxes.csv") + "\n"));
}

TEST_F(ConvertBoxesTest, RejectsBoxesThatMakeNoSense) {
  ConvertOptions options = OptionsWithBoxes("set");
  options.validation = std::move(options.train);
  options.train = {};
  EXPECT_EQ(RejectionOf(options), std::pair(EX_USAGE, std::string("--boxes needs --train=PATH")));
  WriteText(Path("boxes.csv"), "n01_0.JPEG,0,0,1,1\nn01_0.JPEG,0,0,500,375\n");
  const auto [code, message] = RejectionOf(OptionsWithBoxes("set"));
  EXPECT_EQ(code, EX_DATAERR);
  EXPECT_THAT(message, HasSubstr(Path("boxes.csv") + ":2: the xmax \"500\" is not from 0 to 1"));
  EXPECT_FALSE(fs::exists(Path("set")));
}

TEST_F(ConvertBoxesTest, StopsWhileAnnotationsAreRead) {
  ImageFiles annotations;
  for (int i = 0; i < 1024; ++i) {
    annotations.emplace_back(std::to_string(i) + ".xml", AnnotationText(""));
  }
  WriteText(Path("boxes.tar"), TarOf(annotations));
  ConvertOptions options = OptionsFor("set");
  options.boxes = Path("boxes.tar");
  std::atomic<int> left = 1;  // not yet when the images are listed
  EXPECT_NE(tests::Rejection<Error>(EX_TEMPFAIL,
                                    [&] { ConvertUntil(options, [&] { return --left < 0; }); }),
            "");
  EXPECT_FALSE(fs::exists(Path("set")));
}

}  // namespace
}  // namespace trainer
