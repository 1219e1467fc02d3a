# SPDX-License-Identifier: Apache-2.0
# Environment Modules and Lmod for tests. Debian's packages of the two exclude each other, so tools/bootstrap unpacks both into
# build/module-systems and installs neither; where one is installed by other means, that one is taken.

# module_start environment-modules|lmod: prints what a shell must read to have `module`; nothing if that system is not here.
module_start() {
  local root init
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../build/module-systems/$1" 2> /dev/null && pwd) || root=''
  for init in /usr/share/{modules,Modules,lmod/lmod}/init/bash; do
    case "$1 $init" in environment-modules*/lmod/* | lmod*odules/*) continue ;; esac
    [ ! -e "$root$init" ] || {
      # The packages know themselves by absolute paths.
      sed "s#/usr/\(lib\|share\)/#$root&#g" "$root$init"
      return
    }
  done
}
