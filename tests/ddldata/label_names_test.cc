// SPDX-License-Identifier: Apache-2.0

#include "ddldata/inspect.h"
#include "ddldata/label_list.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/data/example.h"

namespace trainer {
namespace {

TEST(LabelNames, TellsEachLabelOnce) {
  LabelNames names;
  EXPECT_EQ(names.Add(1, "cat", "a"), "");
  EXPECT_EQ(names.Add(2, "dog", "a"), "");
  EXPECT_EQ(names.Add(3, "eel", "a"), "");
  EXPECT_EQ(names.Add(2, "dog", "b"), "");
  EXPECT_EQ(names.Add(1, "eel", "b"), "label 1 is \"cat\" in a, and \"eel\" in b");
  EXPECT_EQ(names.Add(1, "eel", "c"), "");
  EXPECT_EQ(names.Add(3, "cat", "c"), "label 3 is \"eel\" in a, and \"cat\" in c");
  EXPECT_EQ(names.Add(4, "dog", "d"), "the class \"dog\" has the label 2 in a, and 4 in d");
  EXPECT_EQ(names.Add(5, "fox", "d"), "");
}

TEST(ClassNameIn, IsThatOfTheRecord) {
  const auto name_in = [](const std::string& bytes) {
    return ClassNameIn({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  };
  ImageExample example;
  example.encoded = "x";
  example.label = 1;
  EXPECT_EQ(name_in(SerializeExample(example)), "");
  example.synset = "cat \xe9";
  EXPECT_EQ(name_in(SerializeExample(example)), "cat \xe9");
  EXPECT_EQ(name_in(""), "");
  EXPECT_THROW(name_in("no Example"), Error);
}

TEST(ImageLabels, InTheOrderOfNamesIsNotThatOfTheirNumbers) {
  struct Case {
    std::vector<std::string> names;
    std::string problem;  // "": none
  };
  const Case cases[] = {
      {{"1.jpg", "10.jpg", "2.jpg"},
       "line 2 would be the class of 10.jpg, and line 3 that of 2.jpg; write FILE,CLASS in each "
       "line"},
      {{"img1.jpg", "img10.jpg", "img9.jpg"}, "line 2 would be the class of img10.jpg"},
      {{"a1_7.jpg", "a1_70.jpg", "a1_8.jpg"}, "line 2 would be the class of a1_70.jpg"},
      {{"a10_x.jpg", "a9_x.jpg"},
       "line 1 would be the class of a10_x.jpg, and line 2 that of a9_x"},
      {{"cat1.jpg", "cat10.jpg", "cat2.jpg", "dog1.jpg", "dog2.jpg"}, "line 2 would be"},
      {{"01.jpg", "02.jpg", "10.jpg"}, ""},
      {{"00", "01", "1"}, ""},
      {{"img_0009.jpg", "img_0010.jpg"}, ""},
      {{"1.jpg", "2.jpg", "9.jpg"}, ""},
      {{"a.jpg", "b.jpg", "c.jpg"}, ""},
      // Checksums.
      {{"10b3.jpg", "1a2b.jpg", "2c9.jpg", "c10a.jpg", "c9a.jpg", "x7f.jpg"}, ""},
  };
  for (const Case& one : cases) {
    std::string text;
    std::string listed;
    for (const std::string& name : one.names) {
      text += "cat\n";
      listed += name + ",cat\n";
    }
    const auto take = [&](const std::string& list) {
      return ImageLabels(list, "list", {}).ClassesOf(one.names, "set");
    };
    if (one.problem.empty()) {
      EXPECT_THAT(take(text), SizeIs(one.names.size())) << one.names[0];
    } else {
      EXPECT_THAT(tests::Rejection<Error>(EX_DATAERR, [&] { take(text); }), HasSubstr(one.problem));
    }
    EXPECT_THAT(take(listed), SizeIs(one.names.size())) << one.names[0];
  }
}

}  // namespace
}  // namespace trainer
