// SPDX-License-Identifier: Apache-2.0

#include "ddldata/convert_plan.h"

#include "ddldata/convert_progress.h"
#include "ddldata/shard_directory.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

// Images "CLASS/NAME" of one directory.
ImageListing ListingOf(const std::vector<std::string>& paths) {
  ImageListing listing;
  listing.containers.push_back({"set", false});
  for (const std::string& path : paths) {
    const std::string name = path.substr(0, path.find('/'));
    auto place = std::ranges::find(listing.classes, name);
    if (place == listing.classes.end()) place = listing.classes.insert(place, name);
    listing.images.push_back(
        {0, static_cast<std::uint32_t>(place - listing.classes.begin()), {0, path.size()}, path});
  }
  return listing;
}

ImageListing ManyImages(int count) {
  std::vector<std::string> paths;
  for (int i = 0; i < count; ++i) paths.push_back(std::to_string(i % 7) + "/" + std::to_string(i));
  return ListingOf(paths);
}

std::vector<std::string> NamesOf(const std::vector<ImageClass>& classes) {
  std::vector<std::string> names;
  for (const ImageClass& one : classes) names.push_back(one.name);
  return names;
}

// "LABEL PATH" in the order of the plan.
std::vector<std::string> OrderOf(const SplitOrder& plan, const ImageListing& listing) {
  std::vector<std::string> order;
  for (const PlannedImage& place : plan.order) {
    order.push_back(std::to_string(place.label) + " " + listing.images[place.image].path);
  }
  return order;
}

int ExitCodeOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.exit_code();
  }
  return 0;
}

TEST(NumberClasses, CountsTheNamesInTheirOrder) {
  const ImageListing train = ListingOf({"n03/a", "n01/b", "n02/c"});
  const ImageListing validation = ListingOf({"n02/d"});
  EXPECT_THAT(NamesOf(NumberClasses(train, validation, {})), ElementsAre("n01", "n02", "n03"));
  EXPECT_THAT(NamesOf(NumberClasses({}, validation, {})), ElementsAre("n02"));
  EXPECT_THAT(NamesOf(NumberClasses({}, validation, {{"n09", ""}, {"n02", ""}})),
              ElementsAre("n09", "n02"));
}

TEST(NumberClasses, RejectsClassesThatAreNotThere) {
  const ImageListing train = ListingOf({"n01/b"});
  const ImageListing validation = ListingOf({"n02/d"});
  EXPECT_EQ(DataErrorOf([&] { NumberClasses(train, validation, {}); }),
            "set/n02/d: the image has the class \"n02\", which is not among the 1 of the training "
            "images");
  EXPECT_EQ(DataErrorOf([&] {
              NumberClasses(train, {}, {{"n07", ""}});
            }),
            "set/n01/b: the image has the class \"n01\", which is not among the 1 of --class_list; "
            "the first there is \"n07\"");
}

TEST(NumberClasses, NamesTheClassThatMayBeMeant) {
  const auto rejection = [](const std::string& train, const std::string& validation) {
    return DataErrorOf(
        [&] { NumberClasses(ListingOf({train + "/b"}), ListingOf({validation + "/d"}), {}); });
  };
  EXPECT_EQ(rejection("Cat", "cat"),
            "set/cat/d: the image has the class \"cat\", which is not among the 1 of the training "
            "images; the class \"Cat\" differs from it in capital letters: give both one name");
  EXPECT_THAT(
      rejection("cat", "cat "),
      EndsWith("; the class \"cat\" differs from it in blanks at the ends: give both one name"));
  EXPECT_THAT(rejection("Cat ", "cat"),
              EndsWith("; the class \"Cat \" differs from it in capital letters and blanks at the "
                       "ends: give both one name"));
  const std::string of_windows = "caf\xc3\xa9";
  const std::string of_macos = "cafe\xcc\x81";
  const std::string looks_the_same =
      "\" looks the same, but one has accents as characters of their";
  EXPECT_THAT(rejection(of_windows, of_macos), HasSubstr("class \"" + of_windows + looks_the_same));
  EXPECT_THAT(rejection(of_macos, of_windows), HasSubstr("class \"" + of_macos + looks_the_same));
  EXPECT_THAT(rejection(of_windows, "caf\xc3\xa8"), EndsWith("of the training images"));
  EXPECT_THAT(rejection("cafe", of_macos), EndsWith("of the training images"));
  EXPECT_THAT(rejection("\xcc\x81", "\xcd"), EndsWith("of the training images"));
}

// As of a directory with both splits, or of classes that are one directory deeper.
TEST(DescribeNestedDirectories, NamesWhatIsInSeveralClasses) {
  const std::string of_splits =
      "the classes have the names of splits, such as train: the class of an image is the directory "
      "right below the one that is given; did you mean set/train?";
  EXPECT_EQ(DescribeNestedDirectories(ListingOf({"train/cat/a", "train/dog/b", "val/cat/c"})),
            of_splits);
  EXPECT_EQ(DescribeNestedDirectories(ListingOf({"train/cat/a"})), of_splits);
  EXPECT_THAT(DescribeNestedDirectories(ListingOf({"Test/a", "Valid/b"})), EndsWith("set/Test?"));
  EXPECT_EQ(
      DescribeNestedDirectories(ListingOf({"cat/train/a", "dog/train/b", "dog/val/c"})),
      "directories of one name are in several classes, train in cat and in dog: the class of an "
      "image is the directory right below the one that is given");
  EXPECT_EQ(DescribeNestedDirectories(ListingOf({"cat/a", "dog/b"})), "");
  EXPECT_EQ(DescribeNestedDirectories(ListingOf({"cat/1/a", "cat/b", "dog/1/c"})), "");
  EXPECT_EQ(DescribeNestedDirectories(ListingOf({"cat/1/a", "dog/2/b"})), "");
  EXPECT_EQ(DescribeNestedDirectories(ListingOf({"train/a", "car/b"})), "");
  EXPECT_EQ(DescribeNestedDirectories({}), "");
}

TEST(DescribeOneClass, NamesTheDirectoryThatIsMeant) {
  struct Case {
    std::vector<std::string> paths;
    std::string meant;  // "": they are one class
  };
  const Case cases[] = {
      {{"r/CLS-LOC/train/cat/a", "r/CLS-LOC/train/dog/b"}, "set/r/CLS-LOC/train"},
      {{"r/train/cat/a", "r/train/dog/b", "r/val/cat/c", "r/val/dog/d"}, "set/r/train"},
      {{"r/train/cat/a", "r/val/cat/c"}, "set/r/train"},
      {{"r/train/a", "r/val/c"}, "set/r/train"},
      {{"r/test/cat/a", "r/val/cat/c"}, "set/r/test"},
      {{"r/cat/a", "r/dog/b"}, "set/r"},
      {{"r/train/cat/images/a", "r/train/dog/images/b"}, "set/r/train"},
      {{"r/a", "r/cat/b", "r/dog/c"}, ""},
      {{"r/logo", "r/cat/1", "r/cat/2", "r/cat/3", "r/cat/4", "r/cat/5", "r/dog/1", "r/dog/2",
        "r/dog/3", "r/dog/4"},
       ""},
      {{"r/logo", "r/cat/1", "r/cat/2", "r/cat/3", "r/cat/4", "r/cat/5", "r/dog/1", "r/dog/2",
        "r/dog/3", "r/dog/4", "r/dog/5"},
       "set/r"},
      {{"train/cat/a", "train/cat/b"}, ""},
      {{"cat/a"}, ""},
      {{"a"}, ""},
      {{"cat/1/a", "dog/2/b"}, ""},
      {{}, ""},
  };
  for (const Case& one : cases) {
    const std::string name =
        one.paths.empty() ? "" : one.paths[0].substr(0, one.paths[0].find('/'));
    EXPECT_EQ(DescribeOneClass(ListingOf(one.paths)),
              one.meant.empty()
                  ? ""
                  : "all images are of one class, \"" + name +
                        "\", and lie in several directories of it: did you mean "
                        "--train " +
                        one.meant + "? If they are one class, say so with --class_list=FILE");
  }
  ImageListing of_tar = ListingOf({"r/cat/a", "r/dog/b"});
  of_tar.containers[0].is_tar = true;
  EXPECT_EQ(DescribeOneClass(of_tar), "");
}

TEST(DescribeUnusedClasses, CountsThemAndNamesTheFirst) {
  const std::vector<ImageClass> listed = {{"ant", ""}, {"cat", ""}, {"dog", ""}, {"eel", ""}};
  EXPECT_EQ(DescribeUnusedClasses(ListingOf({"cat/a"}), ListingOf({"eel/b"}), listed),
            "classes of --class_list without images: 2 of 4; the first is \"ant\"");
  EXPECT_EQ(
      DescribeUnusedClasses(ListingOf({"ant/a", "dog/b", "eel/c"}), ListingOf({"cat/d"}), listed),
      "");
  ImageListing numbered = ListingOf({"0/a", "2/b", "3/c"});
  numbered.is_numbered = true;
  EXPECT_EQ(DescribeUnusedClasses(numbered, {}, listed),
            "classes of --class_list without images: 1 of 4; the first is \"cat\"");
}

TEST(DescribeNestedDirectories, KnowsWhereTheClassesOfATarLie) {
  const auto describe = [](const std::vector<std::string>& paths, const std::string& root) {
    ImageListing listing = ListingOf(paths);
    listing.containers[0].is_tar = true;
    listing.containers[0].root = root;
    return DescribeNestedDirectories(listing);
  };
  EXPECT_EQ(describe({"r/cat/1/a", "r/dog/1/b"}, "r/"),
            "directories of one name are in several classes, 1 in cat and in dog: the class of an "
            "image is the directory right below the one that all lie in");
  EXPECT_EQ(describe({"r/cat/a", "r/dog/b"}, "r/"), "");
  EXPECT_THAT(describe({"r/train/cat/a", "r/val/cat/b"}, "r/"),
              EndsWith("; unpack set, or pack a tar of train alone"));
  EXPECT_EQ(describe({"n01.tar/cat/a", "n02.tar/cat/b"}, ""), "");
}

TEST(DescribeNumbersFromOne, IsAboutNumbersWithoutZero) {
  const auto numbered = [](const std::vector<std::string>& paths) {
    ImageListing listing = ListingOf(paths);
    listing.is_numbered = true;
    return listing;
  };
  const auto of_train = StartsWith("no training image has the class 0 (KEY.cls)");
  const auto of_validation = StartsWith("no validation image has the class 0 (KEY.cls)");
  EXPECT_THAT(DescribeNumbersFromOne(numbered({"1/a", "2/b"}), {}), of_train);
  EXPECT_THAT(DescribeNumbersFromOne({}, numbered({"1/a", "2/b"})), of_validation);
  EXPECT_THAT(DescribeNumbersFromOne(numbered({"1/a", "2/b"}), numbered({"0/a"})), of_train);
  EXPECT_THAT(DescribeNumbersFromOne(numbered({"0/a", "1/a", "2/b"}), numbered({"1/a", "2/b"})),
              of_validation);
  EXPECT_EQ(DescribeNumbersFromOne(numbered({"0/a", "1/b"}), numbered({"0/a", "1/b"})), "");
  EXPECT_EQ(DescribeNumbersFromOne(numbered({"1/a"}), {}), "");
  EXPECT_EQ(DescribeNumbersFromOne(ListingOf({"1/a", "2/b"}), {}), "");
}

TEST(DescribeAlikeClasses, NamesTheFirstTwo) {
  const auto describe = [](const std::vector<std::string>& names) {
    std::vector<ImageClass> classes;
    for (const std::string& name : names) classes.push_back({name, ""});
    return DescribeAlikeClasses(classes);
  };
  EXPECT_THAT(describe({"Cat", "cat"}),
              StartsWith("the classes \"Cat\" and \"cat\" differ in capital letters alone"));
  EXPECT_THAT(describe({"cat", "dog", "cat "}),
              StartsWith("the classes \"cat\" and \"cat \" differ in blanks at the ends alone"));
  EXPECT_EQ(describe({"caf\u00e9", "cat", "cafe\u0301"}),
            "the classes \"caf\u00e9\" and \"cafe\u0301\" differ in the Unicode form of accents "
            "alone, and have labels of their own: if they are one class, give both one name "
            "(convmv --nfc)");
  EXPECT_EQ(describe({"caf\u00e9", "caf\u00e8", "cafe", "cave\u0301"}), "");
  EXPECT_EQ(describe({"cat", "cats", "c at"}), "");
  EXPECT_EQ(describe({"", ""}), "");
}

TEST(NumberClasses, TakesNumbersAsTheyAre) {
  ImageListing train = ListingOf({"3/b", "0/a"});
  train.is_numbered = true;
  EXPECT_THAT(NamesOf(NumberClasses(train, {}, {})), ElementsAre("", "", "", ""));
  const SplitOrder plan = PlanSplit(Split::kTrain, train, NumberClasses(train, {}, {}), 1, 1);
  std::vector<std::string> order = OrderOf(plan, train);
  std::ranges::sort(order);
  EXPECT_THAT(order, ElementsAre("1 0/a", "4 3/b"));
  EXPECT_THAT(DataErrorOf([&] {
                NumberClasses(train, {}, {{"a", ""}, {"b", ""}});
              }),
              HasSubstr("an image has the class 3, but --class_list has 2 lines"));
  EXPECT_THAT(DataErrorOf([&] { NumberClasses(train, ListingOf({"a/x"}), {}); }),
              HasSubstr("the classes of one split have numbers (KEY.cls), those of the other nam"));
}

TEST(NumberClasses, RejectsNumbersThatNoTrainingImageHas) {
  ImageListing train = ListingOf({"0/a", "1/b"});
  ImageListing validation = ListingOf({"1/c", "2/d"});
  train.is_numbered = validation.is_numbered = true;
  EXPECT_EQ(
      DataErrorOf([&] { NumberClasses(train, validation, {}); }),
      "set/2/d: the image has the class 2 (KEY.cls), which is not among the 2 of the training "
      "images; --class_list=FILE with a line for each class, from 0 on, allows classes "
      "without training images");
  EXPECT_THAT(NumberClasses(train, validation, {{"a", ""}, {"b", ""}, {"c", ""}}), SizeIs(3));
  EXPECT_THAT(NumberClasses({}, validation, {}), SizeIs(3));
  EXPECT_THAT(NumberClasses(validation, ListingOf({}), {}), SizeIs(3));
}

// What labels say of a class, counted in the order of texts.
TEST(DescribeOrderOfNumbers, IsSilentUnlessNumbersAreInAnotherOrder) {
  const auto describe = [](std::vector<std::string> names) {
    std::ranges::sort(names);
    std::vector<ImageClass> classes;
    for (const std::string& name : names) classes.push_back({name, ""});
    return DescribeOrderOfNumbers(classes);
  };
  const auto up_to = [](int last, const std::string& stem) {
    std::vector<std::string> names;
    for (int i = 0; i <= last; ++i) names.push_back(stem + std::to_string(i));
    return names;
  };
  EXPECT_THAT(describe(up_to(11, "")), HasSubstr("the class 2 has the label 5, not 3 "));
  EXPECT_THAT(describe(up_to(10, "class")), HasSubstr("the class class2 has the label 4, not 3"));
  EXPECT_THAT(describe({"9", "10"}), HasSubstr("the class 9 has the label 2, not 1"));
  EXPECT_THAT(describe({"7", "010"}), HasSubstr("the class 7 has the label 2, not 1"));
  EXPECT_THAT(describe({"99999999999999999999999", "100000000000000000000000"}),
              HasSubstr("has the label 2, not 1"));
  EXPECT_EQ(describe(up_to(9, "")), "");
  EXPECT_EQ(describe({"00", "01", "02", "10", "11"}), "");
  EXPECT_EQ(describe({"n01440764", "n01443537", "n10148035"}), "");
  EXPECT_EQ(describe({"1", "10", "2", "cat"}), "");
  EXPECT_EQ(describe({"a1", "a10", "b2"}), "");
  EXPECT_EQ(describe({"cat", "dog"}), "");
  EXPECT_EQ(describe({}), "");
}

TEST(PlanSplit, TakesEveryImageOnceInAnOrderOfItsSeed) {
  const ImageListing listing = ManyImages(500);
  const auto classes = NumberClasses(listing, {}, {});
  const SplitOrder plan = PlanSplit(Split::kTrain, listing, classes, 1, 3);
  const std::vector<std::string> order = OrderOf(plan, listing);
  EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), 500U);
  EXPECT_FALSE(std::ranges::is_sorted(order));
  const auto with = [&](Split split, std::uint64_t seed) {
    return OrderOf(PlanSplit(split, listing, classes, seed, 3), listing);
  };
  EXPECT_EQ(with(Split::kTrain, 1), order);
  EXPECT_NE(with(Split::kTrain, 2), order);
  EXPECT_NE(with(Split::kValidation, 1), order);
}

TEST(PlanSplit, DoesNotDependOnTheOrderOfTheListing) {
  ImageListing listing = ManyImages(200);
  const auto classes = NumberClasses(listing, {}, {});
  const auto order = OrderOf(PlanSplit(Split::kTrain, listing, classes, 1, 3), listing);
  std::ranges::reverse(listing.images);
  EXPECT_EQ(OrderOf(PlanSplit(Split::kTrain, listing, classes, 1, 3), listing), order);
}

TEST(PlanSplit, FilesHaveNamesAndEvenShares) {
  const ImageListing listing = ManyImages(11);
  const SplitOrder plan =
      PlanSplit(Split::kValidation, listing, NumberClasses(listing, {}, {}), 1, 4);
  EXPECT_EQ(plan.ShardName(3), "validation-00003-of-00004");
  std::vector<std::int64_t> begins;
  for (int shard = 0; shard <= 4; ++shard) begins.push_back(plan.ShardBegin(shard));
  EXPECT_THAT(begins, ElementsAre(0, 2, 5, 8, 11));
}

TEST(PlanSplit, ChoosesTheFilesOfImageNet) {
  const auto shards = [](Split split, int images) {
    const ImageListing listing = ManyImages(images);
    return PlanSplit(split, listing, NumberClasses(listing, {}, {}), 1, 0).shards;
  };
  EXPECT_EQ(shards(Split::kTrain, 1), 1);
  EXPECT_EQ(shards(Split::kTrain, 101), 2);
  EXPECT_EQ(shards(Split::kTrain, 110'000), 1024);
  EXPECT_EQ(shards(Split::kValidation, 50'000), 128);
}

TEST(PlanSplit, RejectsFilesWithoutImages) {
  const ImageListing listing = ManyImages(3);
  const auto classes = NumberClasses(listing, {}, {});
  for (const int shards : {-1, 4, 100'000}) {
    EXPECT_EQ(ExitCodeOf([&] { PlanSplit(Split::kTrain, listing, classes, 1, shards); }), EX_USAGE);
  }
}

BoxList ListedBoxes(const std::string& text) { return ParseBoxList(text, "boxes.csv"); }

TEST(PlanBoxes, FindsThemByTheNamesOfImages) {
  const ImageListing listing = ListingOf({"n01/a.JPEG", "n02/b.png", "n01/c.jpg"});
  const BoxList boxes =
      ListedBoxes("c.JPEG,0,0,1,0.5\nx.JPEG,0,0,1,1\na.JPEG,0,0,1,1\nc,0,0,0.5,1\n");
  SplitOrder plan = PlanSplit(Split::kTrain, listing, NumberClasses(listing, {}, {}), 1, 1);
  EXPECT_EQ(plan.ImagesWithBoxes(), 0);
  EXPECT_TRUE(plan.BoxesOf(plan.order[0]).empty());
  plan.boxes = PlanBoxes(listing, boxes);
  EXPECT_EQ(plan.ImagesWithBoxes(), 2);
  std::vector<std::string> found;
  for (const PlannedImage& place : plan.order) {
    for (const BoundingBox& box : plan.BoxesOf(place)) {
      found.push_back(listing.images[place.image].path + " " + std::to_string(box.ymax));
    }
  }
  EXPECT_THAT(found, UnorderedElementsAre("n01/a.JPEG 1.000000", "n01/c.jpg 0.500000",
                                          "n01/c.jpg 1.000000"));
}

TEST(PlanBoxes, RejectsNamesOfTwoImages) {
  const ImageListing listing = ListingOf({"n01/a.JPEG", "n02/a.png", "n01/c.jpg"});
  EXPECT_EQ(PlanBoxes(listing, ListedBoxes("c,0,0,1,1\n")).size(), 3U);
  EXPECT_EQ(DataErrorOf([&] { PlanBoxes(listing, ListedBoxes("a.JPEG,0,0,1,1\n")); }),
            "two images have the name a, n01/a.JPEG and n02/a.png: which of them bounding boxes "
            "mean cannot be known");
}

TEST(CompareConversions, NamesBoxesThatDiffer) {
  const ImageListing listing = ManyImages(10);
  const auto describe = [&](const std::string& text) {
    const BoxList boxes = text.empty() ? BoxList() : ListedBoxes(text);
    std::vector<SplitOrder> plans = {
        PlanSplit(Split::kTrain, listing, NumberClasses(listing, {}, {}), 1, 2)};
    if (!text.empty()) plans[0].boxes = PlanBoxes(listing, boxes);
    const std::vector<ImageListing> listings = {listing};
    return DescribeConversion(1, {}, {}, plans, listings);
  };
  const std::string without = describe("");
  const std::string with = describe("3,0,0,1,0.5\n5,0,0,1,1\n");
  EXPECT_THAT(CompareConversions(without, with), HasSubstr("2 of them with bounding boxes, list "));
  // Boxes of other images, and their order, are nothing to this conversion.
  EXPECT_EQ(describe("5,0,0,1,1\nother,0,0,1,1\n3,0,0,1,0.5\n"), with);
  EXPECT_EQ(describe("other,0,0,1,1\n"), without);
  EXPECT_NE(describe("3,0,0,1,1\n5,0,0,1,0.5\n"), with);
  EXPECT_NE(describe("3,0,0,1,0.5\n5,0,0,1,1\n5,0,0,1,1\n"), with);
  for (const char* corners :
       {"0.0000001,0,1,0.5", "0,0.0000001,1,0.5", "0,0,0.9999999,0.5", "0,0,1,0.5000001"}) {
    EXPECT_NE(describe("3," + std::string(corners) + "\n5,0,0,1,1\n"), with) << corners;
  }
}

TEST(CompareConversions, NamesTheFirstDifference) {
  const ImageListing listing = ManyImages(10);
  const auto classes = NumberClasses(listing, {}, {});
  const auto describe = [&](const ImageListing& of, std::uint64_t seed, int shorter_side) {
    const std::vector<SplitOrder> plans = {PlanSplit(Split::kTrain, of, classes, seed, 2)};
    const std::vector<ImageListing> listings = {of};
    return DescribeConversion(seed, {.shorter_side = shorter_side}, classes, plans, listings);
  };
  const std::string text = describe(listing, 1, 0);
  EXPECT_EQ(CompareConversions(text, describe(listing, 1, 0)), "");
  EXPECT_EQ(CompareConversions(text, describe(listing, 2, 0)),
            "there it is \"seed 1\", now it would be \"seed 2\"");
  EXPECT_EQ(CompareConversions(text, describe(listing, 1, 64)),
            "there it is \"size as it is\", now it would be \"size 64 pixels on the shorter side, "
            "quality 90\"");
  // The same images elsewhere are the same; another size of one, or another name, is not.
  ImageListing other = listing;
  other.containers[0].path = "moved";
  EXPECT_EQ(CompareConversions(text, describe(other, 1, 0)), "");
  other.images[3].range.size += 1;
  EXPECT_THAT(CompareConversions(text, describe(other, 1, 0)),
              HasSubstr("there it is \"train-* 10"));
  other = listing;
  other.images[3].path += "x";
  EXPECT_THAT(CompareConversions(text, describe(other, 1, 0)),
              HasSubstr("there it is \"train-* 10"));
  EXPECT_NE(CompareConversions(text, text.substr(0, text.size() / 2)), "");
}

class ConvertProgressTest : public ::testing::Test {
 protected:
  WallClock Clock() {
    return [this] { return now_; };
  }
  void Wait(int seconds) { now_ += std::chrono::seconds(seconds); }

  TimePoint now_ = SystemClock()();
  std::ostringstream out_;
};

TEST_F(ConvertProgressTest, IsALineNowAndThenInAFile) {
  ConvertProgress progress({.interval_seconds = 10}, out_, Clock());
  Wait(11);
  progress.Listed(2048);
  EXPECT_THAT(out_.str(), MatchesRegex("[^ ]+ 2048 images found\n"));
  out_.str("");
  Wait(11);
  progress.Listed(1024, "annotations read");
  EXPECT_THAT(out_.str(), MatchesRegex("[^ ]+ 1024 annotations read\n"));
  out_.str("");
  progress.Begin(4, 4'000'000);
  Wait(5);
  progress.Add(1'000'000);
  EXPECT_EQ(out_.str(), "");
  Wait(5);
  progress.Add(1'000'000);
  EXPECT_THAT(out_.str(),
              MatchesRegex("[^ ]+ 2/4 images 50.0 % 0.2 images/s 0.2 MB/s eta 0:00:10\n"));
  out_.str("");
  progress.Note("left out: x");
  EXPECT_EQ(out_.str(), "ddldata: note: left out: x\n");
  progress.Add(1'000'000);
  // The last one is always shown.
  progress.Add(1'000'000);
  EXPECT_THAT(out_.str(), HasSubstr(" 4/4 images 100.0 % 0.4 images/s 0.4 MB/s eta 0:00:00\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("3/4")));
}

TEST_F(ConvertProgressTest, GoesOnWhereTheClockIsSetBack) {
  ConvertProgress progress({.interval_seconds = 10}, out_, Clock());
  Wait(11);
  progress.Listed(2048);
  out_.str("");
  Wait(-3600);
  progress.Listed(2049);
  EXPECT_THAT(out_.str(), HasSubstr("2049"));
  out_.str("");
  Wait(9);
  progress.Listed(2050);
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ConvertProgressTest, IsOneLineRedrawnOnATerminal) {
  ConvertProgress progress({.terminal = true, .columns = [] { return 40; }}, out_, Clock());
  progress.Begin(4, 4'000);
  Wait(1);
  progress.Add(1'000);
  EXPECT_EQ(out_.str(), "\r[===>        ] 1/4 images 25.0 % 1.0 im\x1b[K");
  out_.str("");
  progress.Note("x");
  EXPECT_EQ(out_.str(), "\nddldata: note: x\n");
}

}  // namespace
}  // namespace trainer
