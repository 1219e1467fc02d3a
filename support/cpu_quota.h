// SPDX-License-Identifier: Apache-2.0
//
// How many threads the control groups of this process leave to a rank.  A container that is given
// 1.5 CPUs sees all CPUs of its machine, but may use them for 1.5 seconds in each second.  More
// threads than that only wait for each other until the kernel lets them go on.

#pragma once

#include <stddef.h>

namespace support {

// The CPU time that all processes of a control group may use in each period, of any unit.
struct CpuQuota {
  long long time = 0;
  long long period = 0;  // 0: there is no limit
};

// What is in cpu.max, of version 2 ("50000 100000", "max 100000").  A text of another form is no
// limit.  Pure.
CpuQuota ParseCpuMax(const char* text);

// What is in cpu.cfs_quota_us and cpu.cfs_period_us, of version 1; a quota of -1 is no limit, and
// neither is a text of another form.  Pure.
CpuQuota ParseCfsQuota(const char* quota, const char* period);

// A file of a control group, or another of /proc and /sys: its beginning, "" where it cannot be
// read.
struct GroupFile {
  char text[8192];
};
GroupFile ReadGroupFile(const char* directory, const char* name);

// How many threads each of `ranks` ranks may have: the CPUs of `quota` divided among them, rounded
// up.  INT_MAX where there is no limit.  Pure.  Needs `ranks` > 0.
int ThreadsOfShare(const CpuQuota& quota, int ranks);

// Finds a control group in the text of /proc/self/cgroup: of version 1 the line that has
// `controller`
// ("cpu", "memory"), of version 2 the line that has none.  Writes its path ("/", "/job_7")
// into `path`, of `size` bytes, and returns true.  False where there is no such line, or its path
// is too long.  Pure.
enum class GroupVersion { k1, k2 };
bool FindGroup(const char* text, GroupVersion version, const char* controller, char* path,
               size_t size);

// The least of `cores` and what the control group of this process, and each above it that can be
// seen, leaves to each of `ranks` ranks, which all are in it.  A file that cannot be read is no
// limit.  In a container the path of the group may name nothing below the mount, whose root then is
// the container's group.  `root` is put in front of /proc and /sys, for tests; "" is the machine
// itself.
int ThreadsWithinQuota(const char* root, int cores, int ranks);

}  // namespace support
