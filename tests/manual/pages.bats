#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The manual pages, read by what shows them.

bats_require_minimum_version 1.5.0

setup() {
  pages=$DDLRUN_BUILD/manual/man1
  [ -e "$pages/ddlrun.1" ] || skip "a build with sanitizers, or a cross build without an emulator, makes none"
}

@test "man renders every page without a warning" {
  command -v man > /dev/null || skip "man is not installed"
  for page in "$pages"/*.1; do
    GROFF_NO_SGR=1 run -0 --separate-stderr man --warnings -E UTF-8 -l -Tutf8 "$page"
    [ -z "$stderr" ] || { echo "$page: $stderr"; return 1; }
    for heading in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' BUGS 'SEE ALSO'; do
      grep -q "^$heading$" <<< "$(col -b <<< "$output")" || { echo "$page has no $heading"; return 1; }
    done
  done
}

# examples PROGRAM: the commands on its page, a line each.
examples() { sed -n '/^[.]SH EXAMPLES$/,/^[.]SH SEE/s/^\\fB\(.*\)\\fR$/\1/p' "$pages/$1.1" | sed "s/\\\\-/-/g; s/\\\\(aq/'/g"; }

@test "every example of a page runs as it stands" {
  local name program example list job
  cd "$BATS_TEST_TMPDIR" || exit 1
  export PATH=$DDLRUN_BUILD/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CUDA_VISIBLE_DEVICES=
  unset DDLRUN_SITE
  for name in $(compgen -v SLURM); do unset "$name"; done
  # What they speak of: a program, the results of a training, a job that runs.
  echo 'print("loading")' > train.py
  ddltraind --mode=train --arch=resnet_tiny --image_size=32 --classes=10 --batch_size=2 --iter_unit=batch --num_iter=1 \
    --backend=reference --results_dir=results > log 2>&1 || { cat log; return 1; }
  mkdir run
  ddlrun -n 1 --launcher=local --run-dir run sleep 300 2> /dev/null 3>&- &
  job=$!
  until [ -s run/ddlrun.*/status ]; do sleep 0.1; done
  for program in ddlrun ddlctl; do
    mapfile -t list < <(examples $program)
    [ ${#list[@]} -ge 4 ]
    for example in "${list[@]}"; do
      run bash -c "$example"
      [ "$status" -eq 0 ] || { echo "$example: exit code $status: $output"; kill $job; return 1; }
    done
  done
  kill $job
  [ -e logs/rank-00001.log ] && [ -s report.txt ]
}

@test "mandoc has nothing to say" {
  command -v mandoc > /dev/null || skip "mandoc is not installed"
  for page in "$pages"/*.1; do
    run mandoc -Tlint "$page"
    [ -z "$output" ]
  done
}

@test "whatis knows what each page is about" {
  command -v lexgrog > /dev/null || skip "lexgrog is not installed"
  run lexgrog "$pages/bede-ddlrun.1"
  [[ $output == *'bede-ddlrun - start one rank of a program per GPU over all nodes of a job"'* ]]
}

@test "every option of --help is on the page" {
  for program in ddlrun bede-mpirun ddltraind ddlctl ddldata ddlbench ddl-rankfile; do
    [ -x "$DDLRUN_BUILD/bin/$program" ] || continue
    for option in $("$DDLRUN_BUILD/bin/$program" --help | grep -oE '^  (-[A-Za-z], ?)?--?[a-z0-9_-]+' | grep -oE -- '--?[A-Za-z0-9_-]+$'); do
      grep -qF -- "\\fB${option//-/\\-}\\fR" "$pages/$program.1" || { echo "$program $option"; return 1; }
    done
  done
}

@test "--help and the page of every program name the index of the reference and where bugs are reported" {
  local index=doc/reference.md bugs security page
  [ -e "$BATS_TEST_DIRNAME/../../$index" ]
  bugs=$(sed -n 's/^bugs = //p' "$BATS_TEST_DIRNAME/../../CONTACT")
  security=$(sed -n 's/^security = //p' "$BATS_TEST_DIRNAME/../../CONTACT")
  for program in ddlrun bede-mpirun ddltraind ddlctl ddldata ddlbench ddl-rankfile; do
    grep -qF "$index" "$pages/$program.1" || { echo "the page of $program"; return 1; }
    page=$(tr '\n' ' ' < "$pages/$program.1" | tr -d '\\')
    [[ $page == *"Report bugs at $bugs, and faults that others could use, in private, to $security."* ]] || { echo "BUGS of $program"; return 1; }
    [ -x "$DDLRUN_BUILD/bin/$program" ] || continue
    [ "$("$DDLRUN_BUILD/bin/$program" --help | grep -cF "$index")" -eq 1 ] || { echo "$program --help"; return 1; }
    [ "$("$DDLRUN_BUILD/bin/$program" --help | grep -cxF "Report bugs at $bugs")" -eq 1 ] || { echo "$program --help"; return 1; }
  done
}

@test "doc/reference/options has what the option tables say" {
  diff -r "$DDLRUN_BUILD/manual/options" doc/reference/options ||
    { echo "type: cp $DDLRUN_BUILD/manual/options/*.md doc/reference/options"; return 1; }
}
