// SPDX-License-Identifier: Apache-2.0

#include "ddldata/image_sources.h"

#include "tests/ddldata/tar_text.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

class ImageSourcesTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ / name; }

  void Write(const std::string& name, const std::string& text) const { dir_.Write(name, text); }

  // "CLASS NAME=CONTENT" of each image, sorted.
  std::vector<std::string> ImagesOf(const std::vector<std::string>& names,
                                    const ImageLabels* labels = nullptr) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(Path(name));
    listing_ = ListImages(paths, labels, [](std::int64_t) {});
    const ImageReader reader(listing_);
    std::vector<std::string> images;
    for (const InputImage& image : listing_.images) {
      std::vector<std::uint8_t> bytes;
      reader.Read(image, bytes);
      images.push_back(listing_.classes[image.class_number] + " " + image.path + "=" +
                       std::string(bytes.begin(), bytes.end()));
    }
    std::ranges::sort(images);
    return images;
  }

  std::string Rejection(const std::vector<std::string>& names,
                        const ImageLabels* labels = nullptr) {
    return DataErrorOf([&] { ImagesOf(names, labels); });
  }

  TemporaryDirectory dir_;
  ImageListing listing_;
};

TEST_F(ImageSourcesTest, DirectoryOfClasses) {
  Write("set/cat/1.JPEG", "a");
  Write("set/cat/deep/2.png", "b");
  Write("set/dog/1.jpg", "c");
  Write("set/dog/notes.txt", "n");
  Write("set/.hidden/3.jpg", "h");
  EXPECT_THAT(ImagesOf({"set"}),
              ElementsAre("cat cat/1.JPEG=a", "cat cat/deep/2.png=b", "dog dog/1.jpg=c"));
  EXPECT_EQ(listing_.others, 2);
  EXPECT_EQ(listing_.one_other, Path("set") + "/.hidden");
}

TEST_F(ImageSourcesTest, TarOfDirectories) {
  Write("a.tar", TarOf({{"train/cat/1.jpg", "a"}, {"train/dog/1.jpg", "b"}, {"README", "r"}}));
  EXPECT_THAT(ImagesOf({"a.tar"}), ElementsAre("cat train/cat/1.jpg=a", "dog train/dog/1.jpg=b"));
  EXPECT_EQ(listing_.one_other, Path("a.tar") + "/README");
}

TEST_F(ImageSourcesTest, PartsOfASetHaveOneRoot) {
  Write("1.tar", TarOf({{"cat/x/1.jpg", "a"}, {"dog/x/1.jpg", "b"}}));
  Write("2.tar", TarOf({{"dog/y/2.jpg", "c"}, {"dog/z/3.jpg", "d"}}));
  Write("3.tar", TarOf({{"root/cat/4.jpg", "e"}, {"root/dog/5.jpg", "f"}}));
  EXPECT_THAT(ImagesOf({"1.tar", "2.tar"}), ElementsAre("cat cat/x/1.jpg=a", "dog dog/x/1.jpg=b",
                                                        "dog dog/y/2.jpg=c", "dog dog/z/3.jpg=d"));
  EXPECT_EQ(listing_.note, "");
  EXPECT_THAT(ImagesOf({"1.tar", "3.tar"}),
              ElementsAre("cat cat/x/1.jpg=a", "cat root/cat/4.jpg=e", "dog dog/x/1.jpg=b",
                          "dog root/dog/5.jpg=f"));
  EXPECT_EQ(listing_.note, "the classes are the directories in the top of " + Path("1.tar") +
                               ", and in root of " + Path("3.tar"));
}

TEST_F(ImageSourcesTest, TarOfTars) {
  Write("a.tar", TarOf({{"n01.tar", TarOf({{"n01_1.JPEG", "a"}, {"n01_2.JPEG", "b"}})},
                        {"n02.tar", TarOf({{"n02_1.JPEG", "c"}})}}));
  EXPECT_THAT(ImagesOf({"a.tar"}),
              ElementsAre("n01 n01.tar/n01_1.JPEG=a", "n01 n01.tar/n01_2.JPEG=b",
                          "n02 n02.tar/n02_1.JPEG=c"));
}

TEST_F(ImageSourcesTest, DirectoryOfTarsAndSeveralTars) {
  Write("set/n01.tar", TarOf({{"1.JPEG", "a"}}));
  Write("set/n02.tar", TarOf({{"1.JPEG", "b"}}));
  EXPECT_THAT(ImagesOf({"set"}), ElementsAre("n01 1.JPEG=a", "n02 1.JPEG=b"));
  EXPECT_THAT(ImagesOf({"set/n01.tar", "set/n02.tar"}),
              ElementsAre("n01 1.JPEG=a", "n02 1.JPEG=b"));
}

TEST_F(ImageSourcesTest, ShardsOfWebDataset) {
  Write("s-0.tar", TarOf({{"a/0.jpg", "x"}, {"a/0.cls", "12"}, {"a/0.json", "{}"}}));
  Write("s-1.tar", TarOf({{"a/1.cls", "3\n"}, {"a/1.0.jpg", "y"}}));
  EXPECT_THAT(ImagesOf({"s-0.tar", "s-1.tar"}), ElementsAre("12 a/0.jpg=x", "3 a/1.0.jpg=y"));
  EXPECT_TRUE(listing_.is_numbered);
  // As programs of Windows and people write numbers.
  for (const std::string number : {"7\r\n", " 7", "7 ", "7 \r\n\n", "\t7 \n"}) {
    Write("s-2.tar", TarOf({{"0.jpg", "z"}, {"0.cls", number}}));
    EXPECT_THAT(ImagesOf({"s-2.tar"}), ElementsAre("7 0.jpg=z"));
  }
}

// As cameras and people with version numbers name files.
TEST_F(ImageSourcesTest, KeysOfWebDatasetWithDots) {
  Write("k.tar", TarOf({{"22.05.jpg", "x"},
                        {"22.05.cls", "0"},
                        {"22.06.jpg", "y"},
                        {"22.06.cls", "1"},
                        {"7.a.b.png", "z"},
                        {"7.cls", "2"}}));
  EXPECT_THAT(ImagesOf({"k.tar"}), ElementsAre("0 22.05.jpg=x", "1 22.06.jpg=y", "2 7.a.b.png=z"));
  // Neither has an image the class of another's file, nor do two have one.
  Write("k.tar", TarOf({{"22.05.jpg", "x"}, {"22.05.cls", "0"}, {"22.06.cls", "1"}}));
  EXPECT_EQ(Rejection({"k.tar"}), Path("k.tar") + ", 22.06.cls: there is no image for it");
  Write("k.tar", TarOf({{"22.jpg", "x"}, {"22.05.cls", "0"}, {"22.06.cls", "1"}}));
  EXPECT_EQ(Rejection({"k.tar"}),
            Path("k.tar") +
                ": 22.05.cls and 22.06.cls have one key, 22, so that the class "
                "of 22.jpg cannot be known: name its file 22.cls");
  Write("k.tar", TarOf({{"a/0.left.jpg", "x"}, {"a/0.right.jpg", "y"}, {"a/0.cls", "1"}}));
  EXPECT_EQ(Rejection({"k.tar"}), Path("k.tar") +
                                      ": a/0.right.jpg and a/0.left.jpg have one key, a/0, and one "
                                      "class, that in a/0.cls: give each image a key and a KEY.cls "
                                      "of its own");
  Write("k.tar", TarOf({{"0.jpg", "x"}, {"0.png", "y"}, {"0.cls", "1"}}));
  EXPECT_THAT(Rejection({"k.tar"}), HasSubstr("0.png and 0.jpg have one key, 0, and one class"));
  Write("k.tar", TarOf({{"22.05.jpg", "x"}, {"22.05.cls", "0"}, {"22.06.jpg", "y"}}));
  EXPECT_THAT(Rejection({"k.tar"}), HasSubstr("22.06.jpg and 22.05.jpg have one key, 22, and one"));
  Write("k.tar", TarOf({{"0.jpg", "x"}, {"0.cls", "1"}, {"0.cls", "2"}}));
  EXPECT_THAT(Rejection({"k.tar"}),
              HasSubstr("0.cls and 0.cls have one key, 0, which has one class"));
}

// As cameras and Windows write them.
TEST_F(ImageSourcesTest, EndingsInCapitals) {
  Write("s.tar", TarOf({{"shard0/0.JPG", "x"},
                        {"shard0/0.CLS", "1"},
                        {"shard0/1.Jpeg", "y"},
                        {"shard0/1.Cls", "0"}}));
  EXPECT_THAT(ImagesOf({"s.tar"}), ElementsAre("0 shard0/1.Jpeg=y", "1 shard0/0.JPG=x"));
  EXPECT_EQ(listing_.others, 0);
  Write("set/CAT.TAR", TarOf({{"1.JPG", "a"}}));
  Write("set/dog.Tar", TarOf({{"1.PNG", "b"}}));
  EXPECT_THAT(ImagesOf({"set"}), ElementsAre("CAT 1.JPG=a", "dog 1.PNG=b"));
  Write("a.tar", TarOf({{"n01.TAR", TarOf({{"1.JPEG", "a"}})}}));
  EXPECT_THAT(ImagesOf({"a.tar"}), ElementsAre("n01 n01.TAR/1.JPEG=a"));
  Write("parquet/0.PARQUET", "");
  EXPECT_THAT(Rejection({"parquet"}), HasSubstr("Parquet files are not read"));
  Write("twice/0.tar", TarOf({{"0.jpg", "x"}, {"0.cls", "1"}, {"0.CLS", "2"}}));
  EXPECT_THAT(Rejection({"twice"}),
              HasSubstr("0.cls and 0.CLS have one key, 0, which has one class"));
}

TEST_F(ImageSourcesTest, ImagesSideBySideByALabelList) {
  Write("val.tar", TarOf({{"v_2.JPEG", "b"}, {"v_1.JPEG", "a"}}));
  Write("val/v_2.JPEG", "b");
  Write("val/v_1.JPEG", "a");
  const ImageLabels labels("n02\nn01\n", "labels", {});
  EXPECT_THAT(ImagesOf({"val.tar"}, &labels), ElementsAre("n01 v_2.JPEG=b", "n02 v_1.JPEG=a"));
  EXPECT_THAT(ImagesOf({"val"}, &labels), ElementsAre("n01 v_2.JPEG=b", "n02 v_1.JPEG=a"));
  const std::string without =
      "the image lies in no directory, which would be its class: give a list";
  EXPECT_THAT(Rejection({"val.tar"}), HasSubstr(without));
  EXPECT_THAT(Rejection({"val"}), HasSubstr(without));
  Write("twice/a/v_1.JPEG", "a");
  Write("twice/b/v_1.JPEG", "a");
  EXPECT_THAT(Rejection({"twice"}, &labels),
              HasSubstr("has two images of the name v_1.JPEG: which"));
}

TEST_F(ImageSourcesTest, MoreTarsThanMayBeOpen) {
  std::vector<std::string> names;
  for (int i = 0; i < 70; ++i) {
    names.push_back(std::to_string(100 + i) + ".tar");
    Write(names.back(), TarOf({{"1.jpg", std::to_string(i)}}));
  }
  EXPECT_EQ(ImagesOf(names).back(), "169 1.jpg=69");
}

TEST_F(ImageSourcesTest, DirectoriesAndTarsWithoutImagesAreNoClasses) {
  Write("set/ape/notes.txt", "n");
  Write("set/bee/1.jpg", "b");
  Write("set/cow.tar", TarOf({{"README", "r"}}));
  Write("set/dog.tar", TarOf({{"1.jpg", "d"}}));
  Write("set/.trash/notes.txt", "n");
  Write("other.tar", TarOf({{"ewe.tar", TarEnd()}, {"fly.tar", TarOf({{"1.jpg", "f"}})}}));
  EXPECT_THAT(ImagesOf({"set", "other.tar"}),
              ElementsAre("bee bee/1.jpg=b", "dog 1.jpg=d", "fly fly.tar/1.jpg=f"));
  EXPECT_THAT(listing_.empty_classes,
              ElementsAre(Path("set/ape"), Path("set/cow.tar"), Path("other.tar") + ", ewe.tar"));
  // That of another source has the class.
  Write("more/ape/1.jpg", "a");
  ImagesOf({"set", "more"});
  EXPECT_THAT(listing_.empty_classes, ElementsAre(Path("set/cow.tar")));
  // Numbers need no directories.
  Write("shards/0.tar", TarOf({{"0.jpg", "x"}, {"0.cls", "0"}}));
  Write("shards/1.tar", TarEnd());
  ImagesOf({"shards"});
  EXPECT_THAT(listing_.empty_classes, ElementsAre());
}

TEST_F(ImageSourcesTest, RejectsSourcesWithoutImages) {
  EXPECT_EQ(Rejection({"no"}), "cannot read " + Path("no") + ": No such file or directory");
  EXPECT_EQ(Rejection({"x-{000..003}.tar"}),
            "cannot read " + Path("x-{000..003}.tar") +
                ": No such file or directory; write it without quotes, so that the shell makes the "
                "names");
  EXPECT_THAT(Rejection({"x-*.tar"}), HasSubstr("without quotes"));
  EXPECT_THAT(Rejection({"x-00?.tar"}), HasSubstr("without quotes"));
  EXPECT_THAT(Rejection({"s3://a.tar"}), EndsWith("; what is elsewhere is not read: download "
                                                  "it, and give its path"));
  Write("set/cat/a.txt", "");
  EXPECT_EQ(Rejection({"set"}),
            Path("set") + " has no images: no file whose name ends as .JPEG, .jpg or .png");
  Write("set/data/b.parquet", "");
  Write("set/data/z.txt", "");
  EXPECT_THAT(Rejection({"set"}),
              HasSubstr("or .png; Parquet files are not read: doc/reference/data.md"));
  Write("empty.tar", TarEnd());
  EXPECT_THAT(Rejection({"empty.tar"}), HasSubstr("has no images"));
  Write("text", "no tar at all");
  EXPECT_THAT(Rejection({"text"}),
              HasSubstr("text, tar header at offset 0: the file ends without"));
}

// As unpacking leaves them.
TEST_F(ImageSourcesTest, RejectsADirectoryBesideItsTar) {
  Write("set/n01/1.JPEG", "a");
  Write("set/n01.tar", TarOf({{"README", "r"}}));
  Write("set/n02.tar", TarOf({{"2.JPEG", "b"}}));
  EXPECT_THAT(ImagesOf({"set"}), ElementsAre("n01 n01/1.JPEG=a", "n02 2.JPEG=b"));
  Write("set/n01.tar", TarOf({{"1.JPEG", "a"}}));
  EXPECT_EQ(Rejection({"set"}), "both " + Path("set/n01") + " and " + Path("set/n01.tar") +
                                    " have images, most likely the same ones: move one of the two "
                                    "away");
  fs::remove(Path("set/n01/1.JPEG"));
  EXPECT_THAT(ImagesOf({"set"}), ElementsAre("n01 1.JPEG=a", "n02 2.JPEG=b"));
}

TEST_F(ImageSourcesTest, RejectsShardsWithLabelsThatAreNotRead) {
  for (const std::string ending : {"json", "txt", "NPY"}) {
    Write("j-w.tar",
          TarOf({{"0.jpg", "x"}, {"0." + ending, "{}"}, {"1.jpg", "y"}, {"1.JSON", ""}}));
    Write("j-x.tar", TarOf({{"2.jpg", "z"}}));
    EXPECT_THAT(
        Rejection({"j-w.tar", "j-x.tar"}),
        HasSubstr("j-w.tar: images have files such as 0." + ending + " beside them, which"));
    EXPECT_THAT(Rejection({"j-w.tar"}), HasSubstr("give the classes as numbers in KEY.cls, or by"));
  }
  Write("of.tar", TarOf({{"a.tar", TarOf({{"0.jpg", "x"}, {"0.json", "{}"}})}}));
  EXPECT_THAT(Rejection({"of.tar"}), HasSubstr("of.tar: images have files such as a.tar/0.json"));
  // The classes come from elsewhere, or the files are of few images or no labels.
  const ImageLabels labels("a\nb\n", "labels", {});
  EXPECT_EQ(ImagesOf({"j-w.tar"}, &labels).size(), 2);
  Write("j-x.tar", TarOf({{"0.jpg", "x"}, {"0.xml", "<a/>"}, {"1.jpg", "y"}, {"1.xml", "<a/>"}}));
  Write("j-y.tar", TarOf({{"2.jpg", "x"}, {"3.jpg", "y"}, {"3.json", ""}, {"README.txt", ""}}));
  Write("j-z.tar", TarOf({{"cat/4.jpg", "z"}, {"cat/4.json", "{}"}}));
  EXPECT_EQ(ImagesOf({"j-x.tar", "j-y.tar", "j-z.tar"}).size(), 5);
}

// Only root can read it.
TEST_F(ImageSourcesTest, PassesOverLostAndFound) {
  Write("set/cat/1.jpg", "a");
  Write("set/lost+found/2.jpg", "b");
  Write("set/cat/lost+found/3.jpg", "c");
  EXPECT_THAT(ImagesOf({"set"}), ElementsAre("cat cat/1.jpg=a"));
  EXPECT_EQ(listing_.others, 2);
  Write("set/lost+found.txt", "");
  EXPECT_THAT(ImagesOf({"set"}), ElementsAre("cat cat/1.jpg=a"));
}

// What Jupyter, network storage and Windows leave beside images is no class, in tars as well.
TEST_F(ImageSourcesTest, PassesOverWhatProgramsLeaveBehind) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"cat/1.jpg", "a"},
      {"dog/..2.jpg/3.jpg", "b"},
      {".ipynb_checkpoints/1-checkpoint.jpg", "c"},
      {"cat/.ipynb_checkpoints/1-checkpoint.jpg", "d"},
      {"@eaDir/1.jpg/SYNOPHOTO_THUMB_M.jpg", "e"},
      {"cat/@eaDir/1.jpg/SYNOPHOTO_THUMB_M.jpg", "f"},
      {"#recycle/2.jpg", "g"},
      {"__MACOSX/cat/1.jpg", "k"},
      {"$RECYCLE.BIN/3.jpg", "h"},
      {"@Recycle/4.jpg", "i"},
      {"#snapshot/monday/cat/1.jpg", "j"},
  };
  for (const auto& [name, text] : files) Write("set/" + name, text);
  Write("set.tar", TarOf(files));
  EXPECT_THAT(ImagesOf({"set"}), ElementsAre("cat cat/1.jpg=a"));
  EXPECT_THAT(ImagesOf({"set.tar"}), ElementsAre("cat cat/1.jpg=a"));
}

TEST_F(ImageSourcesTest, RejectsWhatIsPackedAmongTars) {
  Write("set/a_0.tar", TarOf({{"cat/1.jpg", "a"}}));
  Write("set/a_1.tar.gz", "");
  EXPECT_THAT(Rejection({"set"}),
              StartsWith(Path("set/a_1.tar.gz") + " is compressed, and is not "));
  Write("zips/cat.ZIP", "");
  EXPECT_THAT(Rejection({"zips"}), StartsWith(Path("zips/cat.ZIP") + " is compressed"));
  // What the directories were unpacked from, say.
  Write("unpacked/cat/1.jpg", "a");
  Write("unpacked/cat.tgz", "");
  EXPECT_THAT(ImagesOf({"unpacked"}), ElementsAre("cat cat/1.jpg=a"));
}

// As tar -r and tar -u leave them.
TEST_F(ImageSourcesTest, RejectsATarWithTwoImagesOfOneName) {
  Write("a.tar", TarOf({{"cat/0.jpg", "old"}, {"cat/1.jpg", "x"}, {"cat/0.jpg", "new"}}));
  EXPECT_EQ(Rejection({"a.tar"}),
            Path("a.tar") +
                ", cat/0.jpg: the tar has it twice, at the bytes 512 and 2560; tar "
                "extracts the last one: unpack the tar and pack it again");
  Write("a.tar", TarOf({{"0.jpg", "x"}, {"0.cls", "1"}, {"./0.jpg", "y"}, {"./0.cls", "2"}}));
  EXPECT_THAT(Rejection({"a.tar"}), HasSubstr("a.tar, 0.jpg: the tar has it twice"));
  const std::string inner = TarOf({{"0.jpg", "x"}});
  Write("a.tar", TarOf({{"n01.tar", inner}, {"n02.tar", inner}}));
  EXPECT_THAT(ImagesOf({"a.tar"}), ElementsAre("n01 n01.tar/0.jpg=x", "n02 n02.tar/0.jpg=x"));
  Write("a.tar", TarOf({{"n01.tar", inner}, {"n01.tar", inner}}));
  EXPECT_THAT(Rejection({"a.tar"}), HasSubstr("a.tar, n01.tar/0.jpg: the tar has it twice"));
}

TEST_F(ImageSourcesTest, RejectsASourceThatIsThereTwice) {
  Write("set/cat/1.jpg", "a");
  EXPECT_EQ(Rejection({"set", "set"}),
            Path("set") + " is there twice: its images would count twice; give it once");
  fs::create_directory_symlink("set", Path("link"));
  EXPECT_EQ(Rejection({"set", "link"}), Path("link") + " is the same as " + Path("set") +
                                            ": its images would count twice; give it once");
  Write("tars/n01.tar", TarOf({{"1.jpg", "a"}}));
  Write("tars/n02.tar", TarOf({{"1.jpg", "a"}}));
  EXPECT_THAT(Rejection({"tars/n01.tar", "tars/../tars/n01.tar"}),
              HasSubstr("n01.tar is the same"));
  EXPECT_THAT(Rejection({"tars/n01.tar", "tars"}), HasSubstr("n01.tar is there twice"));
}

TEST_F(ImageSourcesTest, RejectsLinksItCannotFollow) {
  Write("a.tar", TarHeader("cat/1.jpg", 0, '2') + TarEnd());
  EXPECT_THAT(Rejection({"a.tar"}),
              HasSubstr("a.tar, cat/1.jpg: a link to another file: pack the "));
  fs::create_directories(Path("set/cat"));
  fs::create_symlink(Path("nowhere"), Path("set/cat/1.jpg"));
  EXPECT_EQ(Rejection({"set"}), "cannot read " + Path("set/cat/1.jpg") + ", a link to " +
                                    Path("nowhere") + ": No such file or directory");
  fs::remove(Path("set/cat/1.jpg"));
  fs::create_directory_symlink("../cat", Path("set/cat/round"));
  EXPECT_THAT(Rejection({"set"}), HasSubstr("more than 16 directories in each other"));
}

TEST_F(ImageSourcesTest, RejectsTarsThatAreThreeDeep) {
  Write("a.tar", TarOf({{"b.tar", TarOf({{"c.tar", TarOf({{"1.jpg", "x"}})}})}}));
  EXPECT_THAT(Rejection({"a.tar"}), HasSubstr("a.tar, b.tar/c.tar: a tar in a tar in a tar"));
}

TEST_F(ImageSourcesTest, RejectsHalvesOfWebDataset) {
  Write("s.tar", TarOf({{"0.jpg", "x"}, {"0.cls", "1"}, {"1.jpg", "y"}}));
  EXPECT_THAT(Rejection({"s.tar"}), HasSubstr("s.tar, 1.jpg: the image has no file 1.cls"));
  Write("s.tar", TarOf({{"0.jpg", "x"}, {"0.cls", "1"}, {"1.cls", "2"}}));
  EXPECT_THAT(Rejection({"s.tar"}), HasSubstr("s.tar, 1.cls: there is no image for it"));
  for (const std::string number :
       {"-1", "cat", "", " \r\n", "1000001", "1 2", "1\n2", "1                                2"}) {
    Write("s.tar", TarOf({{"0.jpg", "x"}, {"0.cls", number}}));
    EXPECT_THAT(Rejection({"s.tar"}), HasSubstr("s.tar, 0.cls: expected the number of a class"));
  }
  Write("s.tar", TarOf({{"0.jpg", "x"}, {"0.cls", "1"}}));
  Write("set/cat/1.jpg", "z");
  EXPECT_THAT(Rejection({"s.tar", "set"}),
              HasSubstr("the image has the class cat, others have numb"));
}

TEST_F(ImageSourcesTest, RejectsImagesThatChange) {
  Write("set/cat/1.jpg", "long");
  ImagesOf({"set"});
  Write("set/cat/1.jpg", "short");
  std::vector<std::uint8_t> bytes;
  EXPECT_EQ(DataErrorOf([&] { ImageReader(listing_).Read(listing_.images[0], bytes); }),
            Path("set/cat/1.jpg") + ": the file changed while it was in use");
}

}  // namespace
}  // namespace trainer
