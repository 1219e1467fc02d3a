// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/comm/ranks.h"

#include <fstream>

namespace trainer {

void LocalRanks::RunRank(int rank, const Body& body) const {
  ::alarm(240);  // a rank that hangs must not hang the test; QEMU takes over a minute
  int code = 0;
  try {
    body(Options(rank));
  } catch (const Error& error) {
    std::ofstream(run_dir_ + "/error-" + std::to_string(rank)) << error.what();
    code = error.exit_code();
  }
  if (::testing::Test::HasFailure()) code = 99;
  ::_exit(code);
}

std::string LocalRanks::ErrorOf(int rank) const {
  return tests::TextOf(run_dir_ + "/error-" + std::to_string(rank));
}

}  // namespace trainer
