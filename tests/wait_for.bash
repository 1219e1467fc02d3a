# SPDX-License-Identifier: Apache-2.0
# For tests that wait for what another process does: no sleep of a guessed length.

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}
