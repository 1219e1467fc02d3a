# SPDX-License-Identifier: Apache-2.0
# What tests of whole programs share: waiting for what another process does with no sleep of a guessed length, and exit codes.

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# expect_status CODE [TEXT]: of what was run, as bats' run has left it; TEXT, which is shown where the test fails, is its output.
expect_status() {
  echo "${2-$output}"
  [ "$status" -eq "$1" ]
}
