// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/pickle.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

std::string Describe(const Pickle& pickle, const PickleValue& value) {
  using Kind = PickleValue::Kind;
  std::string text;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const bool is_value = value.kind == Kind::kDict && i % 2 == 1;
    text += (i == 0 ? "" : is_value ? ": " : ", ") + Describe(pickle, pickle.At(value.items[i]));
  }
  switch (value.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.number != 0 ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.number);
    case Kind::kFloat:
      return "float";
    case Kind::kText:
      return std::string(value.text);
    case Kind::kList:
      return "[" + text + "]";
    case Kind::kTuple:
      return "(" + text + ")";
    case Kind::kDict:
      return "{" + text + "}";
  }
  return "";
}

// "" of what is refused.
std::string Read(std::string_view bytes) {
  const auto pickle = Pickle::Parse(bytes);
  return pickle ? Describe(*pickle, pickle->root()) : "";
}

// A literal has its zeros, too.
template <std::size_t kSize>
std::string Bytes(const char (&text)[kSize]) {
  return {text, kSize - 1};
}

// pickle.dumps({"a": [1, -2, 300, 70000, 2**40, None, True, 1.5, ("x", "y"), {}], "b": "ä"}) of
// Python 3.11, whose protocols 2 and 3, and 4 and 5, differ in the second byte alone.
const std::string kProtocol2 = Bytes(
    "\x80\x02}q\x00(X\x01\x00\x00\x00"
    "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01N\x88G"
    "?\xf8\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00xq\x03X\x01\x00\x00\x00yq\x04\x86q\x05}q\x06"
    "eX\x01\x00\x00\x00"
    "bq\x07X\x02\x00\x00\x00\xc3\xa4q\x08u.");
const std::string kProtocol4 = Bytes(
    "\x80\x04\x95\x44\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
    "a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01N\x88G?"
    "\xf8\x00\x00\x00\x00\x00\x00\x8c\x01x\x94\x8c\x01y\x94\x86\x94}\x94"
    "e\x8c\x01"
    "b\x94\x8c\x02\xc3\xa4\x94u.");

TEST(Pickle, IsReadInAllProtocolsThatHaveBytes) {
  for (std::string bytes : {kProtocol2, kProtocol4}) {
    for (int next = 0; next < 2; ++next, ++bytes[1]) {
      EXPECT_EQ(Read(bytes),
                "{a: [1, -2, 300, 70000, 1099511627776, None, True, float, (x, y), {}], b: ä}");
    }
  }
}

TEST(Pickle, IsRefusedInPart) {
  for (const std::string& bytes : {kProtocol2, kProtocol4}) {
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_EQ(Read(bytes.substr(0, size)), "") << size;
    EXPECT_EQ(Read(bytes + " "), "");
  }
}

struct PickleCase {
  const char* name;
  std::string bytes;  // behind the protocol, 2
  const char* value;  // "": it is refused
};

TEST(Pickle, TakesNoOtherCodes) {
  const PickleCase cases[] = {
      {"a number of 8 bytes, as PyTorch writes it",
       Bytes("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), "9223372036854775807"},
      {"one of 9", Bytes("\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x00."), ""},
      {"none", Bytes("\x8a\x00."), "0"},
      {"a value that is dropped", Bytes("X\x01\x00\x00\x00xr\x05\x01\x00\x00(j\x05\x01\x00\x00t0."),
       ""},
      {"in a list and beside it",
       Bytes("]X\x01\x00\x00\x00xr\x05\x01\x00\x00"
             "aj\x05\x01\x00\x00\x86."),
       "([x], x)"},
      {"in a tuple", Bytes("X\x01\x00\x00\x00xr\x05\x01\x00\x00j\x05\x01\x00\x00\x86."), "(x, x)"},
      {"single elements",
       Bytes("]K\x01"
             "aK\x02"
             "a."),
       "[1, 2]"},
      {"a single key", Bytes("}K\x01\x89s."), "{1: False}"},
      {"three", Bytes("K\x01K\x02K\x03\x87."), "(1, 2, 3)"},
      {"to the mark", Bytes("(K\x01K\x02t."), "(1, 2)"},
      {"nothing", Bytes(")."), "()"},
      {"a key without a value", Bytes("}(K\x01u."), ""},
      {"an element of a dict",
       Bytes("}K\x01"
             "a."),
       ""},
      {"a key of a list", Bytes("]K\x01K\x02s."), ""},
      {"below the mark", Bytes("K\x01(\x85t."), ""},
      {"a mark that stays", Bytes("(K\x01."), ""},
      {"no mark", Bytes("K\x01t."), ""},
      {"two values", Bytes("K\x01K\x02."), ""},
      {"no value", Bytes("."), ""},
      {"what is not known", Bytes("h\x07."), ""},
      {"a text that is too short", Bytes("X\xff\xff\xff\xffx."), ""},
      {"a frame that is too short", Bytes("\x95\x03\x00\x00\x00\x00\x00\x00\x00N."), ""},
      {"a function that is called", Bytes("cos\nsystem\nX\x02\x00\x00\x00id\x85R."), ""},
      {"an object", Bytes("\x8c\x02os\x8c\x06system\x93."), ""},
      {"a list that doubles without end",
       "]q" + Bytes("\x00") +
           [] {
             std::string text;
             for (int i = 0; i < 600'000; ++i) text += Bytes("(h\x00h\x00") + "e";
             return text;
           }() +
           ".",
       ""},
  };
  for (const PickleCase& test : cases)
    EXPECT_EQ(Read("\x80\x02" + test.bytes), test.value) << test.name;
  EXPECT_EQ(Read("\x80\x01N."), "");
  EXPECT_EQ(Read("\x80\x06N."), "");
  EXPECT_EQ(Read("N."), "");
}

TEST(Pickle, HoldsNoMoreThanItsLimits) {
  const auto list_of = [](std::size_t values) {
    return "\x80\x02(" + std::string(values - 1, 'N') + "t.";
  };
  EXPECT_TRUE(Pickle::Parse(list_of(Pickle::kMaxValues)));
  EXPECT_FALSE(Pickle::Parse(list_of(Pickle::kMaxValues + 1)));
  const auto text_of = [](std::size_t bytes) {
    std::string text = Bytes("\x80\x02X____") + std::string(bytes - 8, 'x') + ".";
    for (std::size_t i = 0; i < 4; ++i) text[3 + i] = static_cast<char>((bytes - 8) >> 8 * i);
    return text;
  };
  EXPECT_TRUE(Pickle::Parse(text_of(Pickle::kMaxBytes)));
  EXPECT_FALSE(Pickle::Parse(text_of(Pickle::kMaxBytes + 1)));
}

TEST(Pickle, FindsTheLastValueOfAKey) {
  const std::string bytes = Bytes("\x80\x02}(X\x01\x00\x00\x00xK\x01X\x01\x00\x00\x00xK\x02u.");
  const auto pickle = Pickle::Parse(bytes);
  ASSERT_TRUE(pickle);
  EXPECT_EQ(pickle->Find(pickle->root(), "x").number, 2);
  EXPECT_EQ(pickle->Find(pickle->root(), "y").kind, PickleValue::Kind::kNone);
  EXPECT_EQ(pickle->Find(pickle->Find(pickle->root(), "x"), "x").kind, PickleValue::Kind::kNone);
}

}  // namespace
}  // namespace launcher
