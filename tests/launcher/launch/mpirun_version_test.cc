// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/mpirun_version.h"

#include "tests/support/test.h"

namespace launcher {
namespace {

struct Vector {
  const char* text;
  const char* name;
  std::optional<MpiRuntime> runtime;
};

// Debian 12's and 13's are what they print there; of Intel's and IBM's, what their users quote.
const std::vector<Vector> kVectors = {
    {"mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
     "Open MPI 4.1.4", MpiRuntime::kOrte},
    {"mpirun (Open MPI) 5.0.7\n\nReport bugs to https://www.open-mpi.org/community/help/\n",
     "Open MPI 5.0.7", MpiRuntime::kPrrte},
    {"prterun (PRRTE) 3.0.8\n\nReport bugs to: https://github.com/openpmix/prrte\n", "PRRTE 3.0.8",
     MpiRuntime::kPrrte},
    {"prte (PRRTE) 3.0.8\n", "PRRTE 3.0.8", MpiRuntime::kPrrte},
    {"orterun (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
     "Open MPI 4.1.4", MpiRuntime::kOrte},
    {"mpiexec (OpenRTE) 4.1.4\n", "Open MPI 4.1.4", MpiRuntime::kOrte},
    {"mpirun (Open MPI) 1.10.7\n", "Open MPI 1.10.7", MpiRuntime::kOrte},
    {"mpirun (Open MPI) 4.1.5rc2\n", "Open MPI 4.1.5rc2", MpiRuntime::kOrte},
    {"mpirun (Open MPI) 5.0.0rc12\n", "Open MPI 5.0.0rc12", MpiRuntime::kPrrte},
    {"mpirun (Open MPI) 6.0.0rc2\n", "Open MPI 6.0.0rc2", MpiRuntime::kPrrte},
    {"mpirun (Open MPI) v5.0.x-202310\n", "Open MPI 5.0.x-202310", MpiRuntime::kPrrte},
    {"mpirun (Open MPI) 9.0.1\n", "Open MPI 9.0.1", MpiRuntime::kPrrte},
    {"mpirun (Open MPI) 10.0.1\n", "Open MPI 10.0.1", MpiRuntime::kPrrte},
    {"prte (PRRTE) 0.9\n", "PRRTE 0.9", MpiRuntime::kPrrte},
    {"mpirun (IBM Spectrum MPI) 10.3.1.2\n", "IBM Spectrum MPI 10.3.1.2", MpiRuntime::kOrte},
    {"HYDRA build details:\n    Version:                                 4.0.2\n"
     "    Release Date:                            Thu Apr  7 12:34:45 CDT 2022\n",
     "MPICH (Hydra 4.0.2)", std::nullopt},
    {"HYDRA build details:\n", "MPICH (Hydra)", std::nullopt},
    {"Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619 (id: c2e19c2f3e)\n"
     "Copyright 2003-2023, Intel Corporation.\n",
     "Intel MPI 2021.10", std::nullopt},
    {"Intel(R) MPI Library for Linux* OS, Version 2019 Update 7 Build 20200312 (id: 5dc2dd3e9)\n",
     "Intel MPI 2019", std::nullopt},
    // What a site's wrapper prints before it.
    {"loading openmpi/5.0.7\nVersion: 3\nmpirun (Open MPI) 5.0.7\n", "Open MPI 5.0.7",
     MpiRuntime::kPrrte},
    {"", "", std::nullopt},
    {"mpirun (Open MPI) \n", "", std::nullopt},
    {"mpirun (Open MPI) new\n", "", std::nullopt},
    {"    Version:   4.0.2\n", "", std::nullopt},
    {"HPE MPT 2.22  03/31/20 15:59:10\n", "", std::nullopt},
};

TEST(MpirunVersion, KnowsTheMakersLines) {
  for (const Vector& vector : kVectors) {
    const MpirunVersion version = ParseMpirunVersion(vector.text);
    EXPECT_EQ(version.name, vector.name) << vector.text;
    EXPECT_EQ(version.runtime, vector.runtime) << vector.text;
    const std::string name = vector.name;
    EXPECT_EQ(version.is_hydra, name.starts_with("MPICH") || name.starts_with("Intel"));
  }
}

TEST(MpirunVersion, SaysWhyAForeignOneIsNotUsed) {
  const auto lacks = [](const char* text) {
    return MpirunLacks("/opt/bin/mpirun", ParseMpirunVersion(text));
  };
  EXPECT_EQ(lacks("mpirun (Open MPI) 4.1.4\n"), "");
  EXPECT_EQ(
      lacks("HYDRA build details:\n    Version:      4.2.1\n"),
      "/opt/bin/mpirun is of MPICH (Hydra 4.2.1), not of Open MPI (--launcher=hydra starts ranks "
      "by it)");
  EXPECT_EQ(lacks("\n  HPE MPT 2.22 \r\nmore\n"),
            "/opt/bin/mpirun does not say that it is of Open MPI: 'mpirun --version' says 'HPE MPT "
            "2.22'");
  EXPECT_EQ(lacks("\n"),
            "/opt/bin/mpirun does not say that it is of Open MPI: 'mpirun --version' says nothing");
  EXPECT_EQ(ParseMpirunVersion(std::string(200, 'x')).first_line, std::string(80, 'x'));
}

}  // namespace
}  // namespace launcher
