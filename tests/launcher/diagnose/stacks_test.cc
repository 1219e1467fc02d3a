// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/stacks.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ParsePySpy, TakesTheMainThreadAlone) {
  const std::string answer = R"([
    {"os_thread_id": 8, "thread_name": "MainThread", "frames": [{"name": "other"}]},
    {"os_thread_id": 7, "frames": [{"name": "wait", "filename": "/usr/lib/python3/threading.py", "line": 5},
                                   {"name": "<module>", "filename": "x.py", "line": 9}]}])";
  EXPECT_THAT(ParsePySpy(answer, 7),
              ElementsAre("wait (lib/python3/threading.py:5)", "<module> (x.py:9)"));
  EXPECT_THAT(ParsePySpy("a warning\n" + answer, 7), SizeIs(2));
  EXPECT_THAT(ParsePySpy(answer, 6), IsEmpty());
  EXPECT_THAT(ParsePySpy(R"([{"thread_name": "MainThread", "frames": [{}]}])", 6),
              ElementsAre(" (:0)"));
  std::string deep = R"([{"os_thread_id": 7, "frames": [{})";
  for (int i = 0; i < 40; ++i) deep += ",{}";
  EXPECT_THAT(ParsePySpy(deep + "]}]", 7), SizeIs(kMaxFrames));
  for (const char* text : {"", "Error", "[", "{}", "[1]", R"([{"frames":1}])"}) {
    EXPECT_THAT(ParsePySpy(text, 7), IsEmpty()) << text;
  }
}

TEST(ParseNativeStack, ReadsWhatBothToolsWrite) {
  struct Case {
    const char* name;
    const char* text;
    std::vector<std::string> stack;
  };
  const std::vector<Case> cases = {
      {"eu-stack",
       "PID 12 - process\nTID 12:\n"
       "#0  0x00007f2a8c0c2f33 epoll_wait - /usr/lib/x86_64-linux-gnu/libc.so.6\n"
       "#1  0x00007f2a8bfa0b11 opal_progress - /usr/lib/libopen-pal.so.40.30.2\n"
       "#2  0x00007f2a8c2fb11c MPI_Recv - /usr/lib/libmpi.so.40.30.4\n"
       "#3  0x000055d0cb4c81f0 Exchange(int) - /home/me/job\n"
       "#4  0x000055d0cb4c8220 main - /home/me/job\n"
       "#5  0x00007f2a8bfe324a __libc_start_call_main - /usr/lib/libc.so.6\n"
       "#6  0x00007f2a8bfe3305 __libc_start_main@@GLIBC_2.34 - /usr/lib/libc.so.6\n"
       "#7  0x000055d0cb4c80f1 _start - /home/me/job\n",
       {"opal_progress (libopen-pal.so.40.30.2)", "MPI_Recv (libmpi.so.40.30.4)",
        "Exchange(int) (job)", "main (job)"}},
      {"gdb",
       "[Thread debugging using libthread_db enabled]\n"
       "0x00007f8e1c7 in clock_nanosleep () from /lib/libc.so.6\n"
       "#0  0x00007f8e1c7 in clock_nanosleep () from /lib/libc.so.6\n"
       "#1  0x00007f8e1c1 in PMPI_Allreduce () from /lib/libmpi.so.40\n"
       "#2  step (count=3, name=0x5 \"a (b)\") at src/job.cc:12\n"
       "#3  0x000055d0cb4 in main () at src/job.cc:20\n"
       "[Inferior 1 (process 12) detached]\n",
       {"PMPI_Allreduce (libmpi.so.40)", "step (job.cc:12)", "main (job.cc:20)"}},
      {"the first thread alone",
       "#0  0x1 wait - /a/b\n#1  0x2 main - /a/b\nTID 13:\n#0  0x3 run - /a/b\n",
       {"wait (b)", "main (b)"}},
      {"without names", "#0  0x00007f2a8c0c2f33\n#1  0x00007f2a8c0c2f34 - /a/b\n#2  0x7 ??\n", {}},
      {"the C library alone", "#0  0x1 pause - /lib/libc.so.6\n#1  0x2 _start - /a/b\n", {}},
      {"no stack", "eu-stack: dwfl_linux_proc_attach pid 1: Operation not permitted\n#\n#x\n", {}},
  };
  for (const Case& example : cases) {
    EXPECT_EQ(ParseNativeStack(example.text), example.stack) << example.name;
  }
  std::string deep;
  for (std::size_t i = 0; i < 2 * kMaxFrames; ++i)
    deep += "#" + std::to_string(i) + "  0x1 f - /a\n";
  EXPECT_THAT(ParseNativeStack(deep), SizeIs(kMaxFrames));
}

}  // namespace
}  // namespace launcher
