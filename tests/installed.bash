# SPDX-License-Identifier: Apache-2.0
# For tests that need the installed tree, not the build directory.

# install_ddlrun PREFIX: what `cmake --install` puts there. Its messages come only when it fails.
install_ddlrun() {
  local log
  log=$(cmake --install "$DDLRUN_BUILD" --prefix "$1" 2>&1) || {
    echo "$log" >&2
    return 1
  }
}
