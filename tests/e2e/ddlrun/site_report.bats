#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ddlrun --site-report: what a ticket to the support of a site should tell, and nothing that is secret.

load common

@test "--site-report tells software, nodes, checks and settings, and starts nothing" {
  expect=0 run_ddlrun --site-report -n 1
  for part in "What is odd" Software Job Nodes Checks "Settings, and where each comes from"; do
    grep -qx "$part" <<< "$output"
  done
  for name in ddlrun Slurm mpirun launcher distribution kernel processor memory GPUs InfiniBand 'NUMA node 0' 'limit of open files' shm; do
    grep -qE "^  $name +[^ ]" <<< "$output"
  done
  [ "$(sed -n 's/^  limit of open files  *\([a-z0-9]*\).*/\1/p' <<< "$output")" = "$(ulimit -Sn)" ]
  [ "$(sed -n 's/^  kernel  *//p' <<< "$output")" = "$(uname -r)" ]
  grep -qE '^  grace_seconds +3  # default$' <<< "$output"
  [ "$messages" = "" ]
  run ! compgen -G "$PWD/.ddlrun-check.*"
}

@test "the checks of --site-report and --check-only go by the limits of the site" {
  printf '%s\n' 'check_limits:' '  directory_gib: 1e6' '  shm_gib: 0' > site.yaml
  expect=0 run_ddlrun --site ./site.yaml --site-report -n 1
  grep -qE '^  directory +warn: .* free: checkpoints may not fit' <<< "$output"
  grep -qE '^  shm +ok: ' <<< "$output"
  grep -qE '^  check_limits.directory_gib +1e6  # ./site.yaml:2$' <<< "$output"
  expect=0 run_ddlrun --site ./site.yaml --check-only -n 1
  grep -qE '^directory +warn ' <<< "$output"
  echo 'check_limits: {shm_gb: 0}' > site.yaml
  expect=78 run_ddlrun --site ./site.yaml --check-only -n 1
  [[ $messages == *"./site.yaml:1: unknown key 'check_limits.shm_gb'; did you mean 'shm_gib'?"* ]]
}

@test "no secret of the environment, the site file or the command line is told" {
  mkdir home
  cat > home/site.yaml << 'SITE'
# the password of the licence server is cherry-1
launcher: local
mpi_arguments: [-x, LICENCE=cherry-2, --mca, plm_rsh_args, cherry-3]
environment:
  HF_TOKEN: cherry-4
  NCCL_DEBUG: WARN
SITE
  HOME=$PWD/home WANDB_API_KEY=cherry-5 NCCL_OWN_KEY=cherry-6 OMPI_MCA_own=cherry-7 UCX_TLS=tcp SLURM_JOB_ACCOUNT=cherry-8 \
    run_ddlrun --site "$PWD/home/site.yaml" -x TOKEN=cherry-9 --mpiarg "-x OTHER=cherry-10" --site-report -n 1
  [ "$status" -eq 0 ]
  [[ $output != *cherry* ]]
  [[ $output != *"$PWD/home"* ]]
  grep -qE '^  site file +~/site.yaml$' <<< "$output"
  grep -qE '^  environment.HF_TOKEN +\.\.\.  # ~/site.yaml:5$' <<< "$output"
  grep -qE '^  environment.NCCL_DEBUG +WARN  # ~/site.yaml:6$' <<< "$output"
  grep -qE '^  UCX_TLS +tcp$' <<< "$output"
  grep -qE '^  set, value withheld +.*NCCL_OWN_KEY, .*OMPI_MCA_own' <<< "$output"
  [[ $output != *WANDB_API_KEY* ]]
  HOME=$PWD/home WANDB_API_KEY=cherry-5 expect=0 run_ddlrun --site "$PWD/home/site.yaml" -x TOKEN=cherry-9 --site-report=json -n 1
  [[ $output != *cherry* ]]
}

@test "--site-report=json is one object with its number" {
  expect=0 run_ddlrun --site-report=json -n 1
  python3 -c '
import json, sys
report = json.loads(sys.argv[1])
assert report["format"] == 1, report["format"]
lines = {part["title"]: {line["name"]: line["text"] for line in part["lines"]} for part in report["parts"]}
assert lines["Nodes"]["kernel"] == sys.argv[2], lines["Nodes"]["kernel"]
assert lines["What is odd"], lines
' "$output" "$(uname -r)"
}

@test "a site file that is wrong is odd, and the rest is told all the same" {
  printf 'launcher: auto\npmi: cherry\n' > site.yaml
  expect=0 run_ddlrun --site ./site.yaml --site-report -n 1
  grep -qE '^  site file +\./site.yaml:2: pmi must be auto or pmix or pmi2 or none, and is not$' <<< "$output"
  grep -qE '^  site file +none that can be used$' <<< "$output"
  grep -qE '^  kernel +[^ ]' <<< "$output"
  [[ $output != *cherry* ]]
}

@test "a job that cannot be planned is odd, and this machine is told all the same" {
  expect=0 run_ddlrun -n 5 -H localhost:2 --site-report
  grep -qE '^  ddlrun +no rank would start: .*5 ranks' <<< "$output"
  grep -qE '^  kernel +[^ ]' <<< "$output"
  grep -qE '^  nodes +ok: 1 node answered' <<< "$output"
}

@test "what the check finds bad is odd" {
  cd /proc
  expect=0 run_ddlrun --site-report -n 1
  grep -qE '^  directory +fail: /proc cannot be written: ' <<< "$output"
  [[ $output != *"all checks passed"* ]]
}

# refused TEXT ARGUMENTS...: 64 with one line, and no report.
refused() {
  local text=$1
  shift
  expect=64 run_ddlrun "$@"
  [ -z "$output" ]
  [[ $messages == "ddlrun: [ERROR DDL-20-64] "*"$text"* ]]
  [ "$(wc -l <<< "$messages")" -eq 1 ]
}

@test "a program, another wish or another form is refused" {
  refused "--site-report starts no program: leave 'touch' and what follows out; options stand before it" --site-report touch started
  refused "--site-report starts no program: leave 'json'" --site-report json
  [ ! -e started ]
  refused "--site-report and --check-only: ask for one of them" --check-only --site-report
  refused "--site-report and --dry-run: ask for one of them" --dry-run --site-report
  refused "--site-report and --advise: ask for one of them" --advise --site-report
  refused "--site-report and --show-config: ask for one of them" --show-config --site-report
  refused "'xml' is not text or json" --site-report=xml
}
