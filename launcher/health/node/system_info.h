// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tells about this node: processors, memory, InfiniBand, limits and directories.
// Nothing here throws: what cannot be read keeps its value in NodeInfo.

#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "launcher/health/node_info.h"

namespace launcher {

// Fills in the facts that are in /proc, /sys and /etc.  `root` is put in front of these, for tests;
// "" is the machine itself.
void ReadSystemInfo(const std::string& root, NodeInfo& info);

// Fills in the limit of locked memory of this process, and the state of /dev/shm.
void ReadLimits(NodeInfo& info);

// Looks at the working directory: whether the file `probe` ("" for none) is seen in it, and whether
// a file can be made and written.  NFS takes some time to show a new file, so it looks until
// `patience` is over.  Leaves no file behind.
DirectoryInfo ReadDirectory(const std::string& probe, std::chrono::milliseconds timeout);

// "" when a file can be made in `path` and written, else why not.  Leaves no file behind.
std::string WriteError(const std::string& path);

// Which MPI library a program of this node would find: "Open MPI v4.1.4"; "" when no MPI library
// is found.  Loads the library, but does not start MPI.
std::string FindMpiVersion();

// Reads the small texts of /proc, /sys and /etc.  Nothing here throws: what cannot be read is "".

// Without its end.
std::string FirstLine(const std::filesystem::path& path);

// Without blanks, tabs and double quotes around it.
std::string Trimmed(const std::string& text);

// The value of the first line "key SEPARATOR value", trimmed.
std::string ValueOf(const std::filesystem::path& path, const std::string& key, char separator);

// The paths of the entries of `directory`, sorted; none where it cannot be read.
std::vector<std::filesystem::path> SortedEntries(const std::filesystem::path& directory);

// Looks up the name of a host without waiting for name servers that do not answer.

// Why this machine finds no address of `host`, which is a name or an address: "Name or service not
// known".  "" when it finds one.  Blocks as long as name servers take.
std::string LookUpHost(const std::string& host);

// The address of `host`, which is this machine's name, if all that name servers and /etc/hosts say
// of it are loopback addresses, "127.0.1.1"; "" otherwise.  Blocks as LookUpHost does.
std::string LoopbackOfHost(const std::string& host);

// A search that goes on in a thread of its own, which nobody ends: it may live until the process
// ends, as the signal mask of the thread that made this has it.
class NameLookup {
 public:
  using LookUp = std::function<std::string(const std::string& host)>;

  // Begins to look for `host`; for "" it does nothing.
  explicit NameLookup(const std::string& host, const LookUp& look_up = LookUpHost);

  // As LookUpHost; "the name servers do not answer" where that is not known at `end`.  May be
  // called once.
  std::string Problem(std::chrono::steady_clock::time_point end);

 private:
  std::future<std::string> problem_;
};

}  // namespace launcher
