// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/nccl_ras.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "support/descriptor.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using namespace std::chrono_literals;

// As the documentation of NCCL shows it, with another rank and what is of no use here.
constexpr char kAnswer[] = R"(OK
{
  "nccl_version": "2.29.1",
  "communicators_count": 1,
  "communicators": [
    {
      "hash": "0xae94", "secondary_hash": "0xb7e7:0xb824",
      "size": 3, "ranks_count": 2, "missing_ranks_count": 1,
      "ranks": [
        {"rank": 0, "host": "172.16.64.245", "pid": 1524344, "cuda_dev": 0, "nvml_dev": 0,
         "status": {"init_state": 0, "async_error": 0, "finalize_called": false},
         "collective_counts": {"Broadcast": 1, "Reduce": 0, "AllReduce": 6650}},
        {"rank": 1, "host": "172.16.64.246", "pid": 1524344, "cuda_dev": 0,
         "collective_counts": {"AllReduce": 6649}}
      ],
      "missing_ranks": [
        {"rank": 2, "host": "172.16.64.245", "pid": 1524345, "status": {"unresponsive": true}}
      ]
    }
  ],
  "ras": {"collection_time_sec": 0.000, "timeouts_count": 0}
}
)";

TEST(ParseRas, TakesTheProcessesOfThisNode) {
  std::string problem;
  const auto found = ParseRas(kAnswer, {"127.0.0.1", "172.16.64.245"}, &problem);
  EXPECT_EQ(problem, "");
  ASSERT_EQ(found.size(), 1U);
  const CommunicatorFacts& communicator = found.at(1524344).at(0);
  EXPECT_EQ(communicator.name, "0xae94 0xb7e7:0xb824");
  EXPECT_EQ(communicator.rank, 0);
  EXPECT_EQ(communicator.size, 3);
  EXPECT_EQ(communicator.launched,
            (std::vector<CollectiveCount>{{"AllReduce", 6650}, {"Broadcast", 1}}));
}

TEST(ParseRas, SaysWhatAnotherAnswerIs) {
  struct Case {
    std::string answer;
    const char* problem;
  };
  const Case cases[] = {
      {"ERROR: Unknown command set format json\nJob summary\n",
       "this NCCL does not tell its state as JSON (2.28.7 and later do)"},
      {std::string(kAnswer).substr(0, 300), "NCCL's answer about its state is not whole"},
      {"OK\n[]", "NCCL's answer about its state is not whole"},
      {"OK\n{}", ""},
      {R"(OK {"communicators": [1, {"ranks": [2, {"host": "h", "pid": -1, "rank": 0}]}]})", ""},
  };
  for (const Case& test : cases) {
    std::string problem;
    EXPECT_TRUE(ParseRas(test.answer, {"h"}, &problem).empty());
    EXPECT_EQ(problem, test.problem) << test.answer;
  }
}

// One that listens at a port of this machine, as NCCL does, and answers `answer` to `question`.
class Listener {
 public:
  Listener(std::string answer, bool closes) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_.fd(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_.fd(), 1), 0);
    getsockname(fd_.fd(), reinterpret_cast<sockaddr*>(&address), &size);
    name_ = "localhost:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, answer = std::move(answer), closes] {
      const support::Descriptor client(accept(fd_.fd(), nullptr, nullptr));
      while (question_.find("STATUS\n") == std::string::npos) {
        char part[100];
        const ssize_t got = read(client.fd(), part, sizeof(part));
        if (got <= 0) return;
        question_.append(part, static_cast<std::size_t>(got));
      }
      for (std::size_t i = 0; i < answer.size(); i += 100) {
        const std::string part = answer.substr(i, 100);
        if (write(client.fd(), part.data(), part.size()) < 0) return;
      }
      char end = 0;
      if (!closes && read(client.fd(), &end, 1) > 0) return;
    });
  }
  ~Listener() { thread_.join(); }
  const std::string& name() const { return name_; }
  const std::string& question() const { return question_; }

 private:
  support::Descriptor fd_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string name_, question_;
  std::thread thread_;
};

TEST(AskRas, ReadsTheWholeAnswer) {
  std::string answer;
  {
    Listener listener(kAnswer, /*closes=*/true);
    answer = AskRas(listener.name(), std::chrono::steady_clock::now() + 20s);
    EXPECT_EQ(listener.question(), "SET FORMAT json\nVERBOSE STATUS\n");
  }
  EXPECT_EQ(answer, kAnswer);
}

TEST(AskRas, DoesNotWaitForEver) {
  {
    Listener listener("OK\n", /*closes=*/false);
    EXPECT_EQ(AskRas(listener.name(), std::chrono::steady_clock::now() + 200ms), "OK\n");
  }
  for (const char* const nobody : {"localhost:1", "localhost", "", "no host:28028", "[::1]:1"}) {
    EXPECT_EQ(AskRas(nobody, std::chrono::steady_clock::now() + 5s), "") << nobody;
  }
}

TEST(AddressesOfThisNode, HaveTheLoopback) {
  EXPECT_TRUE(AddressesOfThisNode().contains("127.0.0.1"));
}

}  // namespace
}  // namespace launcher
