// SPDX-License-Identifier: Apache-2.0
//
// Where the modules of a program are, which it loads when it needs them.

#pragma once

#include <filesystem>
#include <string>

namespace trainer {

// ../lib/ddlrun/`name` from the directory of the program that runs, wherever it was moved or linked
// to.
std::string ModulePath(const std::string& name);

// What comes as another wheel than the program's is where pip puts packages of Python: in
// lib/python3.12/site-packages of the program's prefix (Fedora: lib64, Debian: dist-packages), or
// in the prefix itself (pip install --target).  The first of these directories that has the file
// `name` ("package/module.so"), those of newer Pythons first; "" if none has.
std::string FindPackages(const std::filesystem::path& prefix, const std::string& name);

// The same for the prefix of the program that runs.
std::string PackagesBeside(const std::string& name);

}  // namespace trainer
