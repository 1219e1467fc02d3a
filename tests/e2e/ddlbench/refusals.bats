#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Mistakes of the command line: exit code 64 and one line that says what to type.

load common

# refused TEXT ARGUMENT...
refused() {
  local text=$1
  shift
  run --separate-stderr timeout 20 "$ddlbench" "$@"
  [ "$status" -eq 64 ] || { echo "exit code $status"; return 1; }
  [ -z "$output" ]
  [ "$(wc -l <<< "$stderr")" -eq 1 ]
  [[ $stderr == "ddlbench: "*"$text"* ]] || { echo "$stderr"; return 1; }
}

@test "a mistake is answered with what to type" {
  refused 'a command is missing: sweep, extract, repeat, compare, report, variability, loader, allreduce, copies, step, startup or predict'
  refused 'did you mean extract?' extrct
  refused 'did you mean --steps?' sweep --step=30 w
  refused 'DIR is required' sweep
  refused 'LOG_DIR is required' extract
  refused "--cases: '2x4' does not name nodes and GPUs per node, such as 2n8g" sweep --cases=1n1g,2x4 w
  refused '--data=real needs --data_dir DIR' sweep --data=real w
  refused '--steps must be more than 20' sweep --steps=20 w
  refused 'there are measurements 1 to 25' sweep --only=26 w
  refused '--submit is for all measurements, --only for one' sweep --submit --only=1 w
  refused '--batch_size must be one number, or one for each of --precision=fp32' sweep --batch_size=8,16 w
  refused '--data' sweep --data=imaginary w
  refused '--repeats' sweep --repeats=many w
  refused '--by' extract --by=guess w
  refused '--warmup_batches must be 20 or more' extract --warmup_batches=10 w
  refused '--train_batches must be 21 or more' extract --train_batches=20 w
  refused 'only ddlbench sweep, repeat and step take options of ddltraind' extract w -- --backend=cpu
  refused '--repeat must be more than 10' repeat --repeat=10 w
  refused '--batch_size=64 is of all ranks together' repeat --devices=3 w
  refused '--name needs a word' repeat --name=a.b w
  refused '--copies=2 are trainings of one rank each: leave out --devices=2' repeat --copies=2 --devices=2 w
  refused '--copies are started without ddlrun' repeat --copies=2 --ddlrun=--tcp w
  refused '--name=loader needs --data_dir DIR' repeat --name=loader w
  refused '--name=loader trains nothing' repeat --name=loader --data_dir=d w -- --backend=cpu
  unset CUDA_VISIBLE_DEVICES
  refused '--name=convnet_distributed is one training on all GPUs' repeat --name=convnet_distributed w
  CUDA_VISIBLE_DEVICES=0,1 refused '--copies=3 need a GPU each, and CUDA_VISIBLE_DEVICES=0,1 names 2' repeat --copies=3 w
  refused '--targets is required' compare w
  refused 'DATA_DIR is required' loader
  refused '--threads=0 must be from 1' loader --threads=2,0 w
  refused '--bad_records' loader --bad_records=hide w
  refused '--min_bytes=2 and --max_bytes=134217728: they must be from 4 to 1T' allreduce -b 2
  refused '--max_bytes' allreduce -e many
  refused '--factor=1 must be 2 or more' allreduce -f 1
  refused '--bytes=0 must be from 1 to 16G' copies --bytes=0
  refused '--rounds=0 must be from 1 to 100000' copies --rounds=0
  refused 'abacus' copies --backend=abacus
  refused '--form' allreduce --form=imb
  refused 'did you mean --iterations?' allreduce --iteration=3
  refused '--steps=0 must be from 1' step --steps=0
  refused '--precision' step --precision=fp8
  refused '--rounds=0 must be from 1' startup --rounds=0
  refused 'REPORT is required' compare --targets=t.csv
  refused 'RUN is required' report
  refused '--text and --json both write standard output: give one of them' report --text --json w
  refused '--skip_steps must be 0 or more' report --skip_steps=-1 w
  refused '--skip_steps' report --skip_steps=few w
  refused 'did you mean --baseline?' report --basline=x w
  refused 'only ddlbench sweep, repeat and step take options of ddltraind' report w -- --backend=cpu
  refused 'LOG is required' variability --json=x.json
  refused 'how fast is one GPU? Give --speed=IMAGES_PER_S, --gpu=V100' predict
  refused 'how fast is one GPU (H100, fp32: not known)?' predict --gpu=H100 --precision=fp32
  refused '--nodes=4097 must be from 1 to 4096' predict --speed=1 --nodes=1,4097
  refused '--nodes' predict --speed=1 --nodes=many
  refused '--ranks=0 must be from 1 to 262144' predict --speed=1 --ranks=4,0
  refused '--speed must be 0 or more' predict --speed=-1
  refused '--image_kb must be above 0' predict --speed=1 --image_kb=0
  refused '--backward_share must be between 0 and 1' predict --speed=1 --backward_share=1
  refused '--batch_size must be from 1 to 1000000' predict --speed=1 --batch_size=0
  refused '--inside=nvlink must be xbus, nvlink2, nvlink3, nvlink4, pcie3, pcie4, or a number of GB/s' predict --speed=1 --inside=nvlink
  refused '--adapters=0 must be a whole number from 1 to 64' predict --speed=1 --adapters=0
  refused '--from says the speeds: leave out --speed' predict --from=w --speed=1
  refused '--overlap' predict --speed=1 --overlap=perhaps
  refused 'did you mean --node_speed?' predict --node_sped=1
  refused 'only ddlbench sweep, repeat and step take options of ddltraind' predict --speed=1 -- --backend=cpu
  [ ! -e w ]
}

@test "help and version" {
  run -0 "$ddlbench" --help
  [[ $output == *sweep*extract*repeat*compare*report*variability*loader*allreduce*copies*step*startup*predict* ]]
  run "$ddlbench" sweep --help
  [[ $output == *"--cases CASE,..."*"1n1g,1n4g,1n8g,2n8g,4n8g"*"Nodes and GPUs on each"* ]]
  run -0 "$ddlbench" --version
  [[ ${lines[0]} =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]
  [[ ${lines[1]} == "built with: "* ]]
}

@test "a full disk is told by the exit code" {
  [ -w /dev/full ] || skip "there is no /dev/full"
  log 1n1g/r50_b4_fp32_1.log 5 10.0 1
  for arguments in 'extract --train_batches=25 .' --help 'sweep --help' --version; do
    run bash -c "\"$ddlbench\" $arguments > /dev/full"
    [ "$status" -eq 71 ] || { echo "'$arguments' exits $status"; false; }
    [ "$output" = 'ddlbench: standard output cannot be written' ]
  done
}
