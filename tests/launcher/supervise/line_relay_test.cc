// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/line_relay.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

namespace launcher {
namespace {

using ::testing::ElementsAre;

class LineRelayTest : public testing::Test {
 protected:
  LineRelayTest() {
    std::array<int, 2> in = {}, out = {};
    EXPECT_EQ(pipe2(in.data(), O_NONBLOCK), 0);
    EXPECT_EQ(pipe2(out.data(), O_NONBLOCK), 0);
    EXPECT_GT(fcntl(out[1], F_SETPIPE_SZ, 1 << 20), 0);
    from_ = Descriptor(in[0]);
    writer_ = Descriptor(in[1]);
    reader_ = Descriptor(out[0]);
    to_ = Descriptor(out[1]);
  }

  LineRelay Make(const std::string& tag = "") {
    return {std::move(from_), to_.fd(), tag, [this](std::string_view line) {
              lines_.emplace_back(line);
              return line != "secret";
            }};
  }

  void Send(const std::string& text) {
    ASSERT_EQ(write(writer_.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  std::string Received() {
    std::array<char, 1 << 17> buffer = {};
    const ssize_t got = read(reader_.fd(), buffer.data(), buffer.size());
    return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : "";
  }

  Descriptor from_, writer_, reader_, to_;
  std::vector<std::string> lines_;
};

TEST_F(LineRelayTest, KeepsALineBackUntilItIsWhole) {
  LineRelay relay = Make();
  Send("one\ntw");
  EXPECT_TRUE(relay.Relay());
  EXPECT_EQ(Received(), "one\n");
  Send("o\n");
  EXPECT_TRUE(relay.Relay());
  EXPECT_EQ(Received(), "two\n");
  EXPECT_THAT(lines_, ElementsAre("one", "two"));
}

TEST_F(LineRelayTest, PassesOnALastLineWithoutAnEnd) {
  LineRelay relay = Make();
  Send("no end");
  writer_.Close();
  EXPECT_TRUE(relay.Relay());
  EXPECT_FALSE(relay.is_open());
  EXPECT_EQ(Received(), "no end");
}

TEST_F(LineRelayTest, ShowsAProgressBarMoving) {
  LineRelay relay = Make();
  Send("10%\r20%\r3");
  EXPECT_TRUE(relay.Relay());
  EXPECT_EQ(Received(), "10%\r20%\r");
}

TEST_F(LineRelayTest, TagsEveryLine) {
  LineRelay relay = Make("[1] ");
  Send("a\n\nb");
  writer_.Close();
  EXPECT_TRUE(relay.Relay());
  EXPECT_EQ(Received(), "[1] a\n[1] \n[1] b");
}

TEST_F(LineRelayTest, PassesOnAnEndlessLineInParts) {
  LineRelay relay = Make();
  for (int i = 0; i < 5; ++i) {
    Send(std::string(16384, 'x'));
    EXPECT_TRUE(relay.Relay());
  }
  EXPECT_GT(Received().size(), kMaxLineBytes - 1);
}

TEST_F(LineRelayTest, SaysWhenNobodyReads) {
  std::signal(SIGPIPE, SIG_IGN);
  LineRelay relay = Make();
  reader_.Close();
  Send("line\n");
  EXPECT_FALSE(relay.Relay());
}

TEST_F(LineRelayTest, PassesOnNoLineThatIsNotForTheUser) {
  LineRelay relay = Make();
  Send("one\nsecret\ntwo\n");
  EXPECT_TRUE(relay.Relay());
  EXPECT_EQ(Received(), "one\ntwo\n");
  EXPECT_THAT(lines_, ElementsAre("one", "secret", "two"));
}

}  // namespace
}  // namespace launcher
