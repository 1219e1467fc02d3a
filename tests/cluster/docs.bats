#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The commands and job scripts of README.md and doc/ that need Slurm, as they stand there (tests/docs/doc_commands.py).

# shellcheck disable=SC2154 # set by bats and common.bash

load common

setup_file() {
  command -v python3 > /dev/null || skip_all "python3 is not installed" || return 0
  start_cluster 4 4 8
  has_cluster || return 0
  start_modules
  "$cluster_dir/opt/bin/ddldata" synth --classes 10 --images 64 --validation_images 32 --size 40 "$cluster_dir/DATA" > /dev/null
  chmod -R a+rX "$cluster_dir/DATA"
}

teardown_file() { stop_cluster; }

setup() { empty_home; }

doc_commands() { python3 "$BATS_TEST_DIRNAME/../docs/doc_commands.py" "$1" "$BATS_TEST_DIRNAME/../.." "${@:2}"; }

# Each block in a directory of its own, with the data under the name that the pages use.
enter_folder() {
  empty_home
  ln -s "$cluster_dir/DATA" DATA
}

@test "every job script does what its page says" {
  local page line words count=0
  while read -r page line words; do
    echo "== $page:$line"
    count=$((count + 1))
    enter_folder
    doc_commands show "$page" "$line" > job.sbatch
    chmod 755 job.sbatch
    if [[ $words == *--test-only* ]]; then
      hpc sbatch --test-only job.sbatch
      continue
    fi
    limit=300 batch job.sbatch
    expect_status 0
    doc_commands compare "$page" "$line" <<< "$output"
  done < <(doc_commands list sbatch)
  [ "$count" -gt 0 ]
}

@test "every command for the login node does what its page says" {
  local page line words count=0
  while read -r page line words; do
    echo "== $page:$line $words"
    count=$((count + 1))
    enter_folder
    doc_commands show "$page" "$line" > commands
    run hpc bash -euo pipefail commands
    expect_status 0
    doc_commands compare "$page" "$line" <<< "$output"
  done < <(doc_commands list slurm)
  [ "$count" -gt 0 ]
}
