// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/hang_query.h"

#include <filesystem>
#include <fstream>

#include "launcher/supervise/supervisor.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

// Finds that a job hangs, again and again, once `ready` is there.
class Impatient : public JobWatcher {
 public:
  Impatient(OwnEnd::Kind kind, bool is_kill, std::string ready)
      : kind_(kind), is_kill_(is_kill), ready_(std::move(ready)) {}
  void Poll(WatchedJob& job) override {
    if (!std::filesystem::exists(ready_)) return;
    const OwnEnd end = {.kind = kind_, .exit_code = 70, .text = "it hangs"};
    is_kill_ ? job.Kill(end) : job.End(end);
  }
  Deadline deadline() const override {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  }

 private:
  const OwnEnd::Kind kind_;
  const bool is_kill_;
  const std::string ready_;
};

TEST(HangQuery, IsAskedBeforeTheRanksAreEnded) {
  const std::string directory = testing::TempDir() + "hang_query." + std::to_string(getpid());
  using Kind = OwnEnd::Kind;
  struct Case {
    const char* name;
    Kind kind;
    bool is_kill;
    const char* query;  // "": there is no command
    const char* rank;   // goes on after it has said that it is ready
    const char* text;   // of the end; nullptr: the job fails by itself
  };
  const std::vector<Case> cases = {
      {"answer", Kind::kHung, false, "echo first; echo rank 0 sleeps", "",
       "it hangs; rank 0 sleeps"},
      {"kill", Kind::kStartHung, true, "echo rank 0 sleeps", "", "it hangs; rank 0 sleeps"},
      {"the rank is there", Kind::kHung, true, "kill -0 $(cat pid) && echo alive", "",
       "it hangs; alive"},
      {"no answer", Kind::kHung, false, "true", "", "it hangs"},
      {"fails", Kind::kHung, false, "echo no such job; exit 69", "", "it hangs"},
      {"takes long", Kind::kHung, true, "echo late; exec sleep 100", "", "it hangs"},
      {"nobody to ask", Kind::kHung, false, "", "", "it hangs"},
      {"no hang", Kind::kClosedOutput, false, "echo asked", "", "it hangs"},
      {"a rank fails meanwhile", Kind::kHung, false, "touch asked; exec sleep 100",
       "while [ ! -e asked ]; do sleep 0.02; done; exit 3", nullptr},
  };
  for (const Case& example : cases) {
    SCOPED_TRACE(example.name);
    std::filesystem::create_directory(directory);
    const std::string enter = "cd '" + directory + "'; ";
    SupervisorOptions options;
    options.grace = std::chrono::milliseconds(500);
    options.hosts = {"n1"};
    if (*example.query != '\0') {
      options.hang_query = {.command = {"/bin/sh", "-c", enter + example.query},
                            .environment = {{"PATH", "/usr/bin:/bin"}},
                            .limit = std::chrono::milliseconds(
                                example.text == nullptr                          ? 60000
                                : std::string_view(example.name) == "takes long" ? 300
                                                                                 : 5000)};
    }
    options.watchers.push_back(
        std::make_unique<Impatient>(example.kind, example.is_kill, directory + "/ready"));
    ChildCommand command;
    command.rank = 0;
    command.argv = {"/bin/sh", "-c",
                    enter + "echo $$ > pid; : > ready; " + example.rank + "\nexec sleep 100"};
    command.environment = {"PATH=/usr/bin:/bin"};
    SignalRelay signals;
    const JobResult result = Supervise({command}, options, signals);
    EXPECT_EQ(result.own_end ? result.own_end->text : "none",
              example.text == nullptr ? "none" : example.text);
    EXPECT_EQ(result.exit_code, example.text == nullptr ? 3 : 70);
    std::filesystem::remove_all(directory);
  }
}

}  // namespace
}  // namespace launcher
