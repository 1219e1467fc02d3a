// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/run_lock.h"

#include <signal.h>
#include <sys/syscall.h>

#include "tests/support/other_user.h"
#include "tests/support/refusal.h"
#include "tests/support/rejected_calls.h"
#include "tests/support/test.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

class RunLockTest : public ::testing::Test {
 protected:
  // Does not wait unless `seconds` says so.
  std::unique_ptr<RunLock> Lock(double seconds = 0) {
    RunLockOptions options;
    options.job = job_;
    options.same_host_seconds = seconds;
    options.other_host_seconds = seconds;
    options.warn = [this](const std::string& line) {
      warnings_.push_back(line);
      if (on_warning_) on_warning_();
    };
    options.stop_requested = [this] { return stop_; };
    return LockRun(directory(), options);
  }

  std::string Rejection(int exit_code, double seconds = 0) {
    return tests::Rejection<Error>(exit_code, [&] { Lock(seconds); });
  }

  fs::path directory() const { return scratch_.path() / "model"; }
  fs::path file() const { return directory() / ".ddltraind.lock"; }

  ScratchDirectory scratch_;
  std::string job_;
  bool stop_ = false;
  std::function<void()> on_warning_;
  std::vector<std::string> warnings_;
};

TEST_F(RunLockTest, LeavesNothingWhenItIsLetGo) {
  std::unique_ptr<RunLock> lock = Lock();
  ASSERT_NE(lock, nullptr);
  EXPECT_TRUE(fs::exists(file()));
  lock.reset();
  EXPECT_TRUE(fs::is_empty(directory()));
  EXPECT_NE(Lock(), nullptr);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(RunLockTest, RejectsASecondHolderAndNamesTheFirst) {
  const std::unique_ptr<RunLock> first = Lock();
  const std::string pid = std::to_string(::getpid());
  EXPECT_THAT(Rejection(EX_CONFIG),
              AllOf(HasSubstr(directory().string() + " is in use by ddltraind on " + HostName() +
                              ", pid " + pid + ", since 20"),
                    HasSubstr("Z: wait for it, give another --model_dir, or end it (kill " + pid),
                    Not(HasSubstr("rm "))));
  EXPECT_TRUE(fs::exists(file()));
}

TEST_F(RunLockTest, NamesTheJobOfTheHolder) {
  job_ = "4711";
  const std::unique_ptr<RunLock> first = Lock();
  EXPECT_THAT(Rejection(EX_CONFIG), HasSubstr("(job 4711)"));
  EXPECT_THAT(Rejection(EX_CONFIG), HasSubstr("end it (scancel 4711)"));
}

TEST_F(RunLockTest, SaysWhatToDoForANodeThatDied) {
  const std::unique_ptr<RunLock> first = Lock();
  Spill(file(), R"({"host":"n7","job":"","pid":12,"since":"2026-01-02T03:04:05Z"})");
  EXPECT_THAT(Rejection(EX_CONFIG),
              AllOf(HasSubstr("ddltraind on n7, pid 12, since 2026-01-02T03:04:05Z"),
                    HasSubstr("if that node is gone for good: rm " + file().string())));
  // A holder that has not yet said who it is.
  Spill(file(), "");
  EXPECT_THAT(Rejection(EX_CONFIG), HasSubstr("in use by another ddltraind: "));
}

TEST_F(RunLockTest, IsFreeOnceItsHolderIsKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::unique_ptr<RunLock> lock = Lock();
    EXPECT_EQ(::write(ready[1], "x", 1), 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(Rejection(EX_CONFIG), HasSubstr("pid " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_NE(Lock(), nullptr);
  for (const int fd : ready) ::close(fd);
}

TEST_F(RunLockTest, WaitsForAHolderThatIsEnding) {
  std::unique_ptr<RunLock> first = Lock();
  on_warning_ = [&] { first.reset(); };
  EXPECT_NE(Lock(/*seconds=*/60), nullptr);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("waiting up to 60 s for its end"));
  EXPECT_TRUE(fs::is_empty(directory()));
}

TEST_F(RunLockTest, HearsAStopWhileItWaits) {
  const std::unique_ptr<RunLock> first = Lock();
  on_warning_ = [this] { stop_ = true; };
  EXPECT_THAT(Rejection(EX_TEMPFAIL, /*seconds=*/600), HasSubstr("stopped while waiting for "));
}

// Its file server may need that long to notice that it is dead.
TEST_F(RunLockTest, WaitsLongerForAnotherHost) {
  const std::unique_ptr<RunLock> first = Lock();
  Spill(file(), R"({"host":"n7","job":"","pid":12,"since":"2026-01-02T03:04:05Z"})");
  std::vector<std::string> warnings;
  RunLockOptions options{.same_host_seconds = 0};
  options.warn = [&](const std::string& line) { warnings.push_back(line); };
  options.stop_requested = [&] { return !warnings.empty(); };
  EXPECT_NE(tests::Rejection<Error>(EX_TEMPFAIL, [&] { LockRun(directory(), options); }), "");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("waiting up to 100 s for its end")));
}

TEST_F(RunLockTest, AFileThatSomebodyRemovedIsLeftToTheNextHolder) {
  std::unique_ptr<RunLock> first = Lock();
  fs::remove(file());
  const std::unique_ptr<RunLock> second = Lock();
  first.reset();
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_THAT(Rejection(EX_CONFIG), HasSubstr("is in use by"));
}

TEST_F(RunLockTest, IsTakenAnewWhereItWasRemoved) {
  const std::unique_ptr<RunLock> lock = Lock();
  lock->Renew();
  EXPECT_TRUE(warnings_.empty());
  const auto remove_file = [&] { fs::remove(file()); };
  const auto remove_directory = [&] { fs::remove_all(directory()); };
  const auto replace_file = [&] {
    fs::rename(file(), directory() / "old");
    Spill(file(), "of nobody");
  };
  for (const std::function<void()>& remove :
       {std::function<void()>(remove_file), {remove_directory}, {replace_file}}) {
    remove();
    warnings_.clear();
    lock->Renew();
    lock->Renew();
    EXPECT_THAT(warnings_,
                ElementsAre(HasSubstr(file().string() + " was removed during this run")));
    EXPECT_THAT(Rejection(EX_CONFIG), HasSubstr("is in use by ddltraind on " + HostName()));
  }
}

TEST_F(RunLockTest, ARunWhoseLockAnotherHasTakenEnds) {
  std::unique_ptr<RunLock> first = Lock();
  fs::remove_all(directory());
  const std::unique_ptr<RunLock> second = Lock();
  EXPECT_THAT(tests::Rejection<Error>(EX_CONFIG, [&] { first->Renew(); }),
              HasSubstr(directory().string() +
                        " was removed during this run, and another "
                        "run has taken it: ddltraind on " +
                        HostName() + ", pid " + std::to_string(::getpid())));
  first.reset();
  second->Renew();
  EXPECT_TRUE(fs::exists(file()));
}

// Who can only read the directory could lock the file of mode 0644.
TEST_F(RunLockTest, CanBeTakenByTheOwnerAndTheGroupAlone) {
  const std::unique_ptr<RunLock> lock = Lock();
  const auto others = fs::status(file()).permissions() & fs::perms::others_all;
  EXPECT_EQ(others, fs::perms::none);
}

TEST_F(RunLockTest, AFileThatAnotherUserHasMadeIsNotTaken) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can become another user";
  fs::create_directories(directory());
  std::ofstream(file()) << "";
  ASSERT_EQ(::chown(file().c_str(), 65534, 65534), 0);
  fs::permissions(file(), fs::perms{0666});
  EXPECT_THAT(Rejection(EX_OSERR), HasSubstr(" is of a run of another user: "));
  EXPECT_TRUE(fs::exists(file()));
}

// Another process holds the lock than the one that the file tells of.
TEST_F(RunLockTest, OfAHolderThatIsDeadNamesNoProcessToEnd) {
  const std::unique_ptr<RunLock> lock = Lock();
  std::ofstream(file()) << "{\"host\":\"" << HostName()
                        << "\",\"pid\":2147483646,\"since\":\"then\",\"job\":\"\"}";
  EXPECT_THAT(Rejection(EX_CONFIG),
              AllOf(HasSubstr("pid 2147483646, since then, which is dead: another process holds "),
                    HasSubstr("fuser " + file().string()), Not(HasSubstr("kill 2147483646"))));
}

// In a directory of a group, whose umask keeps others from writing the file.
TEST_F(RunLockTest, OfAnotherUserIsReadWhereItCannotBeWritten) {
  if (!tests::HasOtherUsers()) GTEST_SKIP() << "only root can become another user";
  std::unique_ptr<RunLock> first = Lock();
  fs::permissions(scratch_.path(), fs::perms::all);
  fs::permissions(directory(), fs::perms::all);
  fs::permissions(file(), fs::perms{0644});
  const auto rejection_of_another = [&](int exit_code, const std::string& words,
                                        std::uint32_t rejected = 0) {
    return HoldsInChild([&] {
      if (rejected != 0 && !tests::RejectCalls(SYS_flock, SYS_flock, rejected))
        return true;  // QEMU
      if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) {
        return false;
      }
      return Rejection(exit_code).find(words) != std::string::npos && fs::exists(file());
    });
  };
  EXPECT_TRUE(
      rejection_of_another(EX_CONFIG, directory().string() + " is in use by ddltraind on "));
  const std::string not_writable = file().string() +
                                   " is of a run of another user: give another --model_dir, "
                                   "or, if that run has ended, rm it";
  // As on NFS. The file must stay: its run may live.
  EXPECT_TRUE(rejection_of_another(EX_OSERR, not_writable, EBADF));
  fs::copy_file(file(), directory() / "left");
  first.reset();
  fs::rename(directory() / "left", file());  // as after a kill
  EXPECT_TRUE(rejection_of_another(EX_OSERR, not_writable));
}

TEST_F(RunLockTest, SaysWhereTheFileSystemHasNoLocks) {
  for (const int error : {ENOSYS, EOPNOTSUPP, ENOLCK}) {
    EXPECT_TRUE(HoldsInChild([&] {
      if (!tests::RejectCalls(SYS_flock, SYS_flock, static_cast<std::uint32_t>(error))) {
        return true;  // QEMU
      }
      return Lock() == nullptr && warnings_.size() == 1 &&
             warnings_[0].find("this file system has no locks") != std::string::npos &&
             fs::is_empty(directory());
    })) << error;
  }
}

TEST_F(RunLockTest, NamesTheDirectoryThatItCannotMakeOrWrite) {
  RunLockOptions options;
  EXPECT_THAT(
      tests::Rejection<Error>(EX_OSERR, [&] { LockRun("/proc/self/model", options); }),
      AllOf(HasSubstr("cannot create /proc/self/model: "), HasSubstr("another --model_dir")));
  fs::create_symlink("/nonexist/scratch", directory());
  EXPECT_THAT(Rejection(EX_OSERR),
              HasSubstr("cannot create " + directory().string() + ": " + directory().string() +
                        " is a link to /nonexist/scratch, which is not "
                        "there (make that directory); or give another --model_dir"));
  fs::remove(directory());
  fs::create_directories(directory());
  fs::create_symlink("elsewhere", file());
  EXPECT_THAT(Rejection(EX_OSERR), HasSubstr("cannot create " + file().string()));
  EXPECT_FALSE(fs::exists(directory() / "elsewhere"));
}

}  // namespace
}  // namespace trainer
