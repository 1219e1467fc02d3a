// SPDX-License-Identifier: Apache-2.0

#include "ddldata/bounding_boxes.h"
#include "tests/ddldata/annotation_text.h"
#include "tests/ddldata/tar_text.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One box from the upper left corner on, `percent` wide.
std::string AnnotationOf(int percent) {
  return AnnotationText(ObjectElement("0", "0", std::to_string(2 * percent), "100"));
}

class BoxSourcesTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ / name; }

  void Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    WriteText(Path(name), text);
  }

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

  TempDir dir_;
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
  // In a tar in another order.
  Write("boxes.tar", TarOf({files.rbegin(), files.rend()}));
  for (const char* source : {"annotations", "annotations/", "boxes.tar"}) {
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
  std::filesystem::create_directory_symlink("..", Path("directory/up"));
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

}  // namespace
}  // namespace trainer
