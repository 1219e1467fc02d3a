#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the sources say of packages is the same everywhere, and what is made of them is whole. Nothing is compiled or installed here;
# tools/check packages does that.

bats_require_minimum_version 1.5.0

setup() {
  cd "$BATS_TEST_DIRNAME/../.." || exit 1
  version=$(sed -n 's/^project(ddlrun VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
}

# rows SET...: the packages of these sets of tools/bootstrap, by Debian's names, of several the first.
rows() { sed -n "/^all_packages=(/,/^)/s/^  '\($(paste -sd'|' <(printf '%s\n' "$@") | sed 's/|/\\|/g')\) *| *\([^ |/]*\).*/\2/p" tools/bootstrap; }

@test "every package is of CMake's version" {
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]
  [ "$(sed -n '1s/.*(\(.*\)-[^-]*).*/\1/p' debian/changelog)" = "$version" ]
  [ "$(sed -n 's/^Version: *//p' packaging/ddlrun.spec)" = "$version" ]
}

@test "a fork writes its addresses into CONTACT, and one command has them everywhere" {
  cp -r --parents CONTACT README.md SECURITY.md debian packaging tests/lint/contact.py "$BATS_TEST_TMPDIR"
  cd "$BATS_TEST_TMPDIR"
  local bugs security
  bugs=$(sed -n 's/^bugs = //p' CONTACT)
  security=$(sed -n 's/^security = //p' CONTACT)
  run -0 python3 tests/lint/contact.py check .
  sed -i 's#^home = .*#home = https://site.org/ddlrun#; s#^bugs = .*#bugs = mailto:help@site.org#
    s#^security = .*#security = cert@site.org#; s#^maintainer = .*#maintainer = A B <ab@site.org>#' CONTACT
  run -1 python3 tests/lint/contact.py check .
  [[ $output == *"README.md: '$bugs', but CONTACT has bugs = mailto:help@site.org: "* ]]
  [ "${#lines[@]}" -eq 12 ]
  run -0 python3 tests/lint/contact.py write .
  run -0 python3 tests/lint/contact.py check .
  grep -qx "Maintainer: A B <ab@site.org>" debian/control
  grep -qx "BugURL:  *mailto:help@site.org" packaging/ddlrun.spec
  grep -q "use to cert@site.org\*\*" SECURITY.md
  run ! grep -rnF -e "$bugs" -e "$security" README.md SECURITY.md debian packaging
  sed -i 's/^bugs = .*/bugs = ask us/; /^home/d' CONTACT
  run -1 python3 tests/lint/contact.py check .
  [[ $output == "CONTACT:"*"'bugs = ask us' is none of "*"CONTACT: no home" ]]
}

@test "Debian's package is built of what tools/bootstrap installs" {
  # ccache is for those who build often; debhelper and chrpath are for packages alone.
  diff <(rows needed build | grep -vx ccache | LC_ALL=C sort) \
    <(sed -n '/^Build-Depends:/,/^Standards/s/^ \([^ ,]*\).*/\1/p' debian/control | grep -vxE 'debhelper-compat|chrpath' | LC_ALL=C sort)
}

@test "of two wheels that are made at once the second waits for the libraries of the first" {
  cat > "$BATS_TEST_TMPDIR/make.py" << 'END'
import pathlib, sys, time, types
sys.path.insert(0, "packaging/wheel")
import libraries

def build(library, target, tools, prefix, work, is_cross):
    work.mkdir()  # fails where another is at it
    (prefix / "licences").mkdir()
    time.sleep(0.3)

libraries.build, libraries.LIBRARIES, libraries.OF_ZIG = build, (types.SimpleNamespace(name="one"),), ()
libraries.build_all(libraries.TARGETS["x86_64"], pathlib.Path("zig"), False, print)
END
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
  python3 "$BATS_TEST_TMPDIR/make.py" > "$BATS_TEST_TMPDIR/first" &
  local first=$!
  python3 "$BATS_TEST_TMPDIR/make.py" > "$BATS_TEST_TMPDIR/second"
  wait "$first"
  [ "$(cat "$BATS_TEST_TMPDIR/first" "$BATS_TEST_TMPDIR/second")" = "one for x86_64" ]
}

@test "NOTICE has the licence of each library that is linked" {
  for package in $(rows needed build | grep -E '^lib.*-dev$|^musl-dev$|^nlohmann' | grep -vxE 'libg(test|mock)-dev'); do
    grep -qE "^\| [^|]+ \| [A-Za-z0-9.() -]+ \| [^|]*$package[^|]* \|" NOTICE || { echo "NOTICE has no row for $package"; return 1; }
  done
}

@test "the SPDX document of packages has the versions that are installed" {
  command -v dpkg-query > /dev/null || skip "this is no Debian"
  local package=$BATS_TEST_TMPDIR/ddlrun_9.9-1_all.deb versions
  echo x > "$package"
  packaging/spdx.py --version 9.9 --created 0 --home https://a.b --debian "$package" < NOTICE > "$BATS_TEST_TMPDIR/spdx.json"
  versions=$(jq -r '.packages[] | select(.externalRefs) | "\(.name) \(.versionInfo) \(.externalRefs[0].referenceLocator)"' "$BATS_TEST_TMPDIR/spdx.json")
  echo "$versions"
  installed=$(dpkg-query -W -f '${Version}' libhwloc-dev)
  grep -qx "hwloc ${installed%-*} pkg:deb/debian/hwloc@$installed" <<< "$versions"
  [[ $versions != *CUDA* && $versions != *libc++* ]]
  jq -e --arg sum "$(sha256sum "$package" | cut -d' ' -f1)" '.creationInfo.created == "1970-01-01T00:00:00Z"
    and any(.packages[]; .packageFileName == "ddlrun_9.9-1_all.deb" and .versionInfo == "9.9-1" and .checksums[0].checksumValue == $sum)
    and ([.packages[].name] | index("NCCL") | not)' "$BATS_TEST_TMPDIR/spdx.json"
  cp "$package" "$BATS_TEST_TMPDIR/ddltraind-cuda_9.9-1_all.deb"
  packaging/spdx.py --version 9.9 --created 0 --home https://a.b --debian "$BATS_TEST_TMPDIR"/*.deb < NOTICE |
    jq -e '[.packages[].name] | index("NCCL")'
}

@test "every component has a package, of each kind" {
  for component in $(sed -n 's/.*COMPONENT_NAME \([a-z]*\)).*/\1/p; s/.*COMPONENT \([a-z]*\)).*/\1/p' CMakeLists.txt {trainer,bench,doc}/CMakeLists.txt \
    trainer/backend/cuda/CMakeLists.txt | sort -u); do
    echo "$component"
    grep -q "call INSTALL,.*,$component)" debian/rules
    grep -q -- "-f $component.files" packaging/ddlrun.spec
  done
}

@test "tools/package: misuse is 64" {
  run -64 tools/package --build x
  [ "$output" = "tools/package: unknown option '--build': --built or --cuda" ]
  run -64 tools/package --built "$BATS_TEST_TMPDIR"
  [ "$output" = "tools/package: --built needs a build directory, such as build/release; '$BATS_TEST_TMPDIR' is none" ]
  run -0 tools/package --help
  [[ $output == *"usage: tools/package [--built FOLDER] [--cuda]"* ]]
}

@test "images install what tools/package makes" {
  for file in packaging/container/{Dockerfile,ddlrun.def}; do
    for package in $(grep -oE '(/tmp/)?ddl[a-z-]+_[*][.]deb' "$file" | sed 's#.*/##; s/_.*//' | sort -u); do
      grep -qx "Package: $package" debian/control
    done
    grep -q 'apt-get install .* /tmp/ddlrun_[*].deb /tmp/ddltraind_[*].deb' "$file"
  done
}
