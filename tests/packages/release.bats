#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tools/release, in a repository of its own that has these sources as its one commit.

bats_require_minimum_version 1.5.0

setup_file() {
  local here=$BATS_TEST_DIRNAME/../..
  version=$(sed -n 's/^project(ddlrun VERSION \([0-9.]*\).*/\1/p' "$here/CMakeLists.txt")
  export version GIT_AUTHOR_DATE=2026-01-02T03:04:05Z GIT_COMMITTER_DATE=2026-01-02T03:04:05Z
  export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@ddlrun.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@ddlrun.example
  git -C "$here" rev-parse 2> /dev/null || return 0
  export sources=$BATS_FILE_TMPDIR/sources
  mkdir "$sources"
  git -C "$here" ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$here/$file" ] || printf '%s\0' "$file"; done |
    tar -c -C "$here" --null --verbatim-files-from -T - | tar -x -C "$sources"
  cd "$sources" || return 1
  grep -qx "## $version" CHANGELOG.md || printf '\n## %s\n' "$version" >> CHANGELOG.md # not cut yet
  git init -q .
  git add -A
  git commit -q -m release
}

setup() {
  [ -n "${sources:-}" ] || skip "no git here"
  git clone -q "$sources" "$BATS_TEST_TMPDIR/ddlrun"
  cd "$BATS_TEST_TMPDIR/ddlrun" || exit 1
  release=build/release-$version
}

# change FILE SED: another commit.
change() {
  sed -i "$2" "$1"
  git commit -q -a -m change
}

@test "the same bytes each time, and a line for each file" {
  tools/release --home https://ddlrun.example/a > /dev/null
  cp "$release/SHA256SUMS" first
  # Elsewhere, later, by a user with another mask.
  git clone -q "$sources" ../again
  (cd ../again && umask 077 && GIT_COMMITTER_DATE=2030-01-01T00:00:00Z tools/release --home https://ddlrun.example/a > /dev/null)
  cmp first "../again/$release/SHA256SUMS"
  (cd "$release" && sha256sum --quiet -c SHA256SUMS)
  [ "$(wc -l < first)" -eq "$(find "$release" -type f ! -name SHA256SUMS | wc -l)" ]
}

@test "wheels are compiled of the tarball, with the date of the commit" {
  cat > tools/wheel << 'EOF'
#!/bin/sh
root=$(dirname "$(dirname "$0")")
[ ! -e "$root/.git" ] && [ -e "$root/CMakeLists.txt" ] || exit 1
file=$root/$2-$3${4:++$4}${5:++$5}.whl
echo "$SOURCE_DATE_EPOCH $root" > "$file"
echo "$file"
EOF
  git commit -q -a -m "another tools/wheel"
  tools/release --wheels > /dev/null
  [ "$(cd "$release" && echo ./*.whl)" = "./aarch64-ddlrun.whl ./ppc64le-ddlrun.whl ./x86_64-ddlrun+ddlrun-train+ddlrun-train-cuda13.whl" ]
  # In a directory that is always the same, by which nvcc's symbols are called.
  local work
  work=/tmp/ddlrun-$version-$(git rev-parse HEAD)
  [ "$(cat "$release/aarch64-ddlrun.whl")" = "$(git log -1 --format=%ct) $work/ddlrun-$version" ]
  [ ! -e "$work" ]
  grep -q 'aarch64-ddlrun.whl$' "$release/SHA256SUMS"
  tools/release > /dev/null
  [ -z "$(find "$release" -name '*.whl')" ]
  mkdir "$work"
  run -1 tools/release --wheels
  rmdir "$work"
  [[ $output == *"tools/release: $work is there already: another tools/release uses it, or has been killed; then remove it" ]]
  echo 'exit 1' > tools/wheel
  git commit -q -a -m "one that fails"
  run -1 tools/release --wheels
  [[ $output == *"tools/release: tools/wheel --arch x86_64 ddlrun ddlrun-train ddlrun-train-cuda13 failed" ]]
}

@test "recipes name the tarball, its checksum and its address" {
  tools/release --home https://ddlrun.example/a > /dev/null
  sum=$(sha256sum "$release/ddlrun-$version.tar.gz" | cut -d' ' -f1)
  for recipe in "$release"/*.eb "$release/conda/recipe.yaml" "$release/spack/spack_repo/ddlrun/packages/ddlrun/package.py"; do
    run ! grep -n '@' <(grep -v 'depends_on\|conflicts' "$recipe")
    grep -q "$sum" "$recipe"
    grep -q "https://ddlrun.example/a" "$recipe"
    grep -qE "homepage(: | = ['\"])$(sed -n 's/^home = //p' CONTACT)['\"]?$" "$recipe"
  done
  # As EasyBuild's and Spack's own style checks have it.
  run ! grep -nE '.{121}' packaging/easybuild/*.in
  run ! grep -nE '.{100}' packaging/spack/*.in
  # A repository of Spack 1, whose directories and package.py are modules of Python: the name of the last one is its own.
  grep -qx "  namespace: ddlrun" "$release/spack/spack_repo/ddlrun/repo.yaml"
  # rattler-build fills in the version by itself.
  grep -qx "schema_version: 1" "$release/conda/recipe.yaml"
  grep -qx '  url: https://ddlrun.example/a/ddlrun-${{ version }}.tar.gz' "$release/conda/recipe.yaml"
  grep -qx "  version: \"$version\"" "$release/conda/recipe.yaml"
}

@test "the SPDX document has the tarball's checksum and a package for each library of NOTICE" {
  tools/release > /dev/null
  document=$release/ddlrun-$version.spdx.json
  [ "$(jq -r '.packages[0].checksums[0].checksumValue' "$document")" = "$(sha256sum "$release/ddlrun-$version.tar.gz" | cut -d' ' -f1)" ]
  [ "$(jq '.packages | length' "$document")" -eq "$(($(grep -c '^| ' NOTICE) - 1 + 1))" ] # but for the heading, and ddlrun
  jq -e '[.packages[].SPDXID] as $ids | ($ids | unique | length) == ($ids | length)
    and all(.relationships[1:][]; .relatedSpdxElement | IN($ids[])) and all(.packages[]; .licenseDeclared != "")' "$document"
  # Programs contain parts of some, whose notices and licences they have to have.
  jq -e '[.relationships[] | select(.relationshipType == "STATIC_LINK").relatedSpdxElement] as $contained
    | ($contained | length) >= 7 and all(.packages[] | select(.SPDXID | IN($contained[])); .attributionTexts | length > 0)
    and all(.packages[] | select(.name == "musl" or .name == "CLI11"); .copyrightText | test("^Copyright.*(Rich Felker|University of Cincinnati)"))
    and any(.packages[] | select(.name == "musl").attributionTexts[]; startswith("Permission is hereby granted"))' "$document"
  # An address that is none is not valid there.
  [ "$(jq -r '.packages[0].downloadLocation' "$document")" = NOASSERTION ]
  tools/release --home https://ddlrun.example/a > /dev/null
  [ "$(jq -r '.packages[0].downloadLocation' "$document")" = "https://ddlrun.example/a/ddlrun-$version.tar.gz" ]
}

@test "the tarball is configured without git and without a network, with the options of the recipes" {
  unshare -n true 2> /dev/null || skip "this machine allows no namespaces"
  tools/release > /dev/null
  tar -xzf "$release/ddlrun-$version.tar.gz"
  mkdir bin
  printf '#!/bin/sh\necho git is not to be called >&2\nexit 1\n' > bin/git
  chmod +x bin/git
  run env PATH="$PWD/bin:$PATH" unshare -n cmake -S "ddlrun-$version" -B b -D DDLRUN_BENCH=OFF -D DDLRUN_WITH_CUDA=OFF -D DDLRUN_WITH_MPI=OFF
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"ddlrun $version: what is in this build"* && $output != *"git is not"* ]]
  # Spack's recipe imports what it uses, and sets options that there are.
  python3 tests/packages/spack_recipe.py "$release/spack/spack_repo/ddlrun/packages/ddlrun/package.py" b/CMakeCache.txt
}

@test "the tarball is a source package of Debian, and lintian has nothing to say" {
  command -v lintian > /dev/null || skip "no lintian (tools/bootstrap pack)"
  tools/release > /dev/null
  cp "$release/ddlrun-$version.tar.gz" "ddlrun_$version.orig.tar.gz"
  tar -xzf "ddlrun_$version.orig.tar.gz"
  dpkg-source -b "ddlrun-$version"
  lintian --allow-root --fail-on error,warning ddlrun_*.dsc
}

@test "a commit whose files do not agree is refused" {
  change debian/changelog '1s/(.*)/(9.9.9-1)/'
  run -1 tools/release
  [ "$output" = "tools/release: debian/changelog says 9.9.9, CMakeLists.txt says $version" ]
  git reset -q --hard HEAD~
  change packaging/ddlrun.spec 's/^Version:.*/Version: 9.9.8/'
  run tools/release
  [ "$output" = "tools/release: packaging/ddlrun.spec says 9.9.8, CMakeLists.txt says $version" ]
  git reset -q --hard HEAD~
  change CHANGELOG.md "s/^## $version/## Unreleased/"
  run tools/release
  [ "$output" = "tools/release: CHANGELOG.md has no section '## $version'" ]
  git reset -q --hard HEAD~
  git tag v9.9.7
  run tools/release v9.9.7
  [ "$output" = "tools/release: the tag is v9.9.7, the version $version" ]
}

@test "misuse is 64" {
  run -64 tools/release --hom x
  [ "$output" = "tools/release: unknown option '--hom': --home or --wheels" ]
  run -64 tools/release --home here
  [ "$output" = "tools/release: --home needs an address such as https://ddlrun.example/releases; 'here' is none" ]
  run -64 tools/release nothing
  [ "$output" = "tools/release: git knows no commit 'nothing'" ]
  run -0 tools/release --help
  [[ $output == *"usage: tools/release [--home URL] [--wheels] [COMMIT]"* ]]
}
