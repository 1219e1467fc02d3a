# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # of bats, and of the files that load this
# For wheel.bats, wheel_train.bats and wheel_cuda.bats.

# unpack_wheels NAME: those of build/wheels, each into a directory of its name in BATS_FILE_TMPDIR; sets here, version, data and info, and
# fails where there is none.
unpack_wheels() {
  local wheel
  cd "$BATS_TEST_DIRNAME/../.." || return 1
  here=$PWD
  version=$(sed -n 's/^project(ddlrun VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  data=$1-$version.data/data info=$1-$version.dist-info
  export version here data info
  for wheel in build/wheels/"$1-$version"-*.whl; do
    [ -e "$wheel" ] || { echo "there is no wheel: tools/wheel ${1/_/-}" >&2; return 1; }
    mkdir -p "$BATS_FILE_TMPDIR/$(basename "$wheel")"
    python3 -m zipfile -e "$wheel" "$BATS_FILE_TMPDIR/$(basename "$wheel")"
    chmod +x "$BATS_FILE_TMPDIR/$(basename "$wheel")"/*.data/data/{bin,libexec/ddlrun}/* 2> /dev/null || : # as pip does by the archive's modes
  done
}

shopt -s extglob
architecture() { # WHEEL
  local tag=${1##*manylinux_*([0-9])_*([0-9])_}
  echo "${tag%.whl}"
}

# on ARCHITECTURE COMMAND ...: here, or where programs of that processor run; skips the test where none do.
on() {
  if [ "$1" = "$(uname -m)" ]; then
    run "${@:2}"
  else
    run "$here/tools/cross" "$1" run "${@:2}"
    [ "$status" -ne 69 ] || skip "programs of $1 do not run here: ${lines[-1]}"
  fi
}

# expect_processor_and_glibc ARCHITECTURE VERSION PROGRAM ...
expect_processor_and_glibc() {
  local program newest
  for program in "${@:3}"; do
    readelf -hW "$program" | grep -qiE "Machine:.*($(sed 's/x86_64/x86-64/; s/ppc64le/powerpc64/' <<< "$1"))"
    newest=$(readelf -VW "$program" | grep -o 'GLIBC_2[0-9.]*' | sort -uV | tail -n 1)
    echo "$program $newest"
    [ "$(printf '%s\n' "${newest:-GLIBC_2.0}" "GLIBC_$2" | sort -V | tail -n 1)" = "GLIBC_$2" ]
  done
}

# The libraries that a program asks the loader for, but for those of the C library.
needed_beside_libc() { # PROGRAM
  readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE '(libc|libm|libdl|libpthread|librt)\.so\.[0-9]|ld-linux.*|ld64\.so\.2' || :
}

expect_no_path_of_the_build() {
  run ! grep -rlaF -e "$here" -e "${XDG_CACHE_HOME:-$HOME/.cache}" .
}

expect_contacts() { # WHEEL
  contact() { sed -n "s/^$1 = //p" "$here/CONTACT"; }
  local line
  for line in "Maintainer-email: $(contact maintainer)" "Project-URL: Homepage, $(contact home)" "Project-URL: Issues, $(contact bugs)"; do
    grep -qxF "$line" "$1/$info/METADATA" || { echo "$line"; return 1; }
  done
}

expect_right_digests() { # WHEEL
  python3 - "$1" "$info" << 'EOF'
import base64, csv, hashlib, pathlib, sys
root, info = pathlib.Path(sys.argv[1]), sys.argv[2]
rows = {name: (digest, size) for name, digest, size in csv.reader((root / info / "RECORD").open())}
files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
assert rows.keys() == files.keys()
assert rows.pop(f"{info}/RECORD") == ("", "")
for name, (digest, size) in rows.items():
    made = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
    assert (digest, int(size)) == (f"sha256={made}", len(files[name])), name
EOF
}

expect_licences() { # WHEEL LIBRARY ...
  local library
  for library in "${@:2}"; do
    grep -qiE 'copyright|license' "$1/$info/licenses/$library/LICENCE" || { echo "no licence of $library"; return 1; }
    grep -qx "License-File: $library/LICENCE" "$1/$info/METADATA"
  done
  [ "$(find "$1/$info/licenses" -type f | wc -l)" -eq "$(grep -c '^License-File: ' "$1/$info/METADATA")" ]
  cmp "$1/$info/licenses/NOTICE" "$here/NOTICE"
  jq -e --argjson count "$(($# - 1))" '(.packages | length) > $count
    and all(.packages[1:][]; (.versionInfo // .comment) and (.attributionTexts[0] | test("copyright|license"; "i")))
    and all(.relationships[1:][]; .relationshipType == "STATIC_LINK")' "$1/$info/sboms/ddlrun.spdx.json"
  for library in "${@:2}"; do
    jq -e --arg name "$library" 'any(.packages[]; .name == $name)' "$1/$info/sboms/ddlrun.spdx.json" > /dev/null ||
      { echo "$library is not in the SPDX document"; return 1; }
  done
}
