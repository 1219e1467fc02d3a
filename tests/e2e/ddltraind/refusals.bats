#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What ddltraind refuses: one line that names the cause, the documented exit code, and no file half written.

load common

# refused CODE TEXT OPTIONS...: by one rank without ddlrun, and by each of two ranks with it.
refused() {
  local code=$1 text=$2
  shift 2
  run --separate-stderr timeout 30 "$ddltraind" "${small[@]}" --num_iter=12 --results_dir=run "$@"
  check_refusal "$code" "$text"
  launcher=local train 2 --num_iter=12 --results_dir=run "$@"
  check_refusal "$code" "$text"
}

# The program's own last words are one line of each rank that met the cause.
check_refusal() {
  echo "$status: $stderr"
  [ "$status" -eq "$1" ]
  local complaints
  # A rank that waited for another one says so in a line of its own.
  complaints=$(grep "^ddltraind: " <<< "$stderr" | grep -v "while rank . waited for it")
  [[ $complaints == *"$2"* ]]
  # Two ranks may meet the same cause in different places.
  [ "$(sed -E 's/rank [01] on [^:]*: //; s/train-[0-9]+//g; s/(offset|label) [0-9]+//g' <<< "$complaints" |
    sort -u | wc -l)" -eq 1 ]
  [ ! -e run/checkpoints ]
}

damaged_data() {
  cp -r "$data" damaged
  rm damaged/ddldata.manifest
  python3 "$damage" "$1" damaged/train-*
}

@test "an unknown option names the nearest spelling, 64" {
  refused 64 "unknown option '--bach_size'; did you mean '--batch_size'?" --bach_size=4
  refused 64 "unexpected argument 'epochs'" epochs
  [ ! -e run ]
}

@test "a value that an option cannot have, 64" {
  refused 64 "--image_size" --image_size=huge
  refused 64 "--mode" --mode=sleep
  refused 64 "--threads: needs a number from 0 to 1024, not '100000'" --threads=100000
  refused 64 "--prefetch: needs a number from 1 to 1000, not '1000000000'" --prefetch=1000000000
  [ ! -e run ]
}

@test "a data directory that is not there, is a file, or is empty, 65" {
  mkdir empty
  refused 65 "cannot read the data directory nowhere: No such file" --data_dir=nowhere
  refused 65 "cannot read the data directory $ddltraind: Not a directory" --data_dir="$ddltraind"
  refused 65 "the data directory empty has no file train-*" --data_dir=empty
  [ ! -e run ]
}

@test "a data set of which a file is missing, or is none, 65" {
  cp -r "$data" part
  rm part/ddldata.manifest part/train-00003-of-00008
  refused 65 "part has 7 of the 8 files train-*-of-00008: train-00003-of-00008 is missing" --data_dir=part
  ln -s gone part/train-00003-of-00008
  refused 65 "part/train-00003-of-00008 is a link to gone, which is not there" --data_dir=part
  rm part/train-00003-of-00008
  mkfifo part/train-00003-of-00008
  refused 65 "part/train-00003-of-00008 is a named pipe" --data_dir=part
  rm part/train-00003-of-00008
  cp "$data/train-00003-of-00008" part
  cp "$data/train-00003-of-00008" part/train-00003-of-00004
  refused 65 "part has files of two sets, train-00000-of-00008 and train-00003-of-00004" --data_dir=part
}

# cut_record FILE: its first record goes, as a whole.
cut_record() {
  python3 - "$1" <<'PY'
import struct, sys
content = open(sys.argv[1], "rb").read()
open(sys.argv[1], "wb").write(content[16 + struct.unpack_from("<Q", content)[0]:])
PY
}

@test "a record that is gone as a whole, with and without index files, 65; without a manifest, a note" {
  cp -r "$data" part
  cut_record part/train-00005-of-00008
  "$DDLRUN_BUILD/bin/ddldata" index part idx
  local complaint="part/train-00005-of-00008 has 24 records, not the 25 of part/ddldata.manifest: restore the file"
  refused 65 "$complaint" --data_dir=part
  refused 65 "$complaint" --data_dir=part --data_idx_dir=idx
  run -65 "$DDLRUN_BUILD/bin/ddldata" verify part --classes 10
  [[ $output == *"$complaint"* ]]

  rm part/ddldata.manifest
  expect=0 train 1 --num_iter=2 --data_dir=part --results_dir=run
  [[ $messages == *"part has no ddldata.manifest: whole records that are missing or doubled would not be noticed"* ]]
}

@test "nothing but bad records, however many may be skipped, 65" {
  damaged_data text
  python3 - damaged/train-* <<'PY'
import struct, sys
for name in sys.argv[1:]:  # the first record is text already: leave that
    content = open(name, "rb").read()
    open(name, "wb").write(content[:16 + struct.unpack_from("<Q", content)[0]])
PY
  for cap in 8 100 1000000000; do
    refused 65 "damaged: none of the 8 records of train-* can be used; damaged/train-0000" \
      --data_dir=damaged --batch_size=4 --bad_records=skip --max_bad_records=$cap
  done
}

@test "a truncated file, by name and offset, 65" {
  damaged_data cut
  refused 65 "damaged/train-00000-of-00008, record at offset " --data_dir=damaged
  [[ $stderr == *"the file is truncated"* ]]
}

@test "a record with a wrong checksum, by file and offset, 65" {
  damaged_data checksum
  refused 65 "record at offset 0: the checksum of the data is wrong" --data_dir=damaged --shuffle=none
  [[ $stderr == *"damaged/train-0000"* ]]
}

@test "a JPEG that is text, by file and offset, 65" {
  damaged_data text
  refused 65 'record at offset 0: the image is not a JPEG file: it is text that begins with "this is text' \
    --data_dir=damaged --shuffle=none
}

@test "a label out of range, by file, offset and value, 65" {
  small=("${small[@]/--classes=10/--classes=5}")
  refused 65 "label" --shuffle=none
  [[ $stderr =~ train-0000[0-9]-of-00008,\ record\ at\ offset\ [0-9]+:\ the\ label\ ([6-9]|10)\ is\ out\ of\ range ]]
}

@test "a checkpoint of another network, which stays as it was, 65" {
  expect=0 train 1 --num_iter=2 --results_dir=other
  find other/checkpoints -type f -exec md5sum {} + > before
  small=("${small[@]/--classes=10/--classes=20}")
  refused 65 "other/checkpoints/step-0000000002 is of resnet_tiny with 10 classes, this run is" --model_dir=other
  refused 65 "--classes=10" --results_dir=other
  md5sum -c before
}

@test "initial weights that lack a tensor, or are no safetensors file, 65" {
  train 1 --num_iter=2 --results_dir=whole
  python3 "$safetensors" without layer2.0.bn2.weight whole/checkpoints/step-0000000002/model.safetensors part
  refused 65 "layer2.0.bn2.weight" --init_from=part
  head -c 1000 /dev/zero | tr '\0' x > noise
  refused 65 "noise: not a " --init_from=noise
  refused 65 "cannot open missing: No such file" --init_from=missing
}

@test "a file of PyTorch's own, 65, with a command that makes a safetensors file of it" {
  python3 -c 'import zipfile; zipfile.ZipFile("it is.pth", "w").writestr("archive/data.pkl", "x")'
  refused 65 "it is.pth: not a safetensors file but PyTorch's own form (torch.save)" --init_from="it is.pth"
  # Modules that say what they are asked for, for PyTorch is large.
  mkdir -p modules/safetensors
  cat > modules/torch.py <<'PY'
class Tensor:
    def contiguous(self): return self
    def clone(self): return self
def is_tensor(value): return isinstance(value, Tensor)
def load(path, map_location, weights_only):
    print("load", path, map_location, weights_only)
    return {"epoch": 3, "state_dict": {"conv1.weight": Tensor(), "note": "text"}}
PY
  touch modules/safetensors/__init__.py
  echo 'def save_file(tensors, path): print("save", *tensors, "to", path)' > modules/safetensors/torch.py
  command=$(grep -o "python3 -c .*" <<< "$stderr" | head -n 1)
  [ "$(PYTHONPATH=modules bash -c "$command")" = "$(printf '%s\n' "load it is.pth cpu True" "save conv1.weight to it is.safetensors")" ]
  refused 64 "'it is.pth' is a file, not the directory of a run" --model_dir="it is.pth"
}

@test "weights of DistributedDataParallel are taken" {
  train 1 --num_iter=2 --results_dir=whole
  python3 - "$(dirname "$safetensors")" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
import safetensors
weights = safetensors.read("whole/checkpoints/step-0000000002/model.safetensors")
safetensors.write("ddp", {"module._orig_mod." + name: value for name, value in weights.items()})
PY
  expect=0 train 1 --num_iter=2 --results_dir=run --init_from=ddp
  [[ $messages == *"the prefix 'module.' of the names in ddp is taken off"* ]]
}

@test "nothing to evaluate, 64" {
  refused 64 "there are no weights: no checkpoint in 'run'" --mode=evaluate
}

@test "a CPU in a job that was granted GPUs, 69, unless it is asked for" {
  "$ddltraind" --version | grep -qE ': cuda( cpu| reference|$)' && skip "this machine has a GPU"
  DDLRUN_GPUS=4 run --separate-stderr timeout 30 "$ddltraind" "${small[@]}" --results_dir=run
  check_refusal 69 "the job was granted 4 GPUs on this node, but "
  [[ $stderr =~ "but "(no\ GPU|the\ cuda\ back\ end|this\ program\ was\ built\ without).*"; --backend="(cpu|reference)" computes without" ]]
  # In a batch script, without ddlrun.
  SLURM_GPUS_ON_NODE=1 run --separate-stderr timeout 30 "$ddltraind" "${small[@]}" --results_dir=run
  check_refusal 69 "the job was granted 1 GPU on this node, but "
  [ ! -e run ]

  DDLRUN_GPUS=4 run -0 --separate-stderr timeout 30 "$ddltraind" "${small[@]}" --num_iter=2 --results_dir=run --backend=reference
  [[ $stderr != *"computing on the CPU"* ]]
}

@test "a CPU where nobody has granted a GPU is a warning, of one rank" {
  "$ddltraind" --version | grep -qE ': cuda( cpu| reference|$)' && skip "this machine has a GPU"
  launcher=local expect=0 train 2 --num_iter=2 --results_dir=run
  [ "$(grep -c "warning: computing on the CPU: .* says that this is meant)" <<< "$messages")" -eq 1 ]
}

@test "NCCL for ranks without GPUs, 78" {
  launcher=local train 2 --num_iter=12 --results_dir=run --backend=reference --comm=nccl
  check_refusal 78 "--comm=nccl cannot be: rank 0: computes without a GPU"
  launcher=local train 2 --num_iter=12 --results_dir=run --backend=reference --precision=fp16 --reduce_precision=16bit
  check_refusal 78 "--reduce_precision=16bit needs NCCL, which cannot be: rank 0: computes without a GPU"
}

@test "an environment that contradicts itself, 78" {
  local alone=(timeout 30 "$ddltraind" "${small[@]}" --results_dir=run)
  RANK=1 run --separate-stderr "${alone[@]}"
  check_refusal 78 "RANK=1 but no WORLD_SIZE"
  RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 run --separate-stderr "${alone[@]}"
  check_refusal 78 "OMPI_COMM_WORLD_RANK=0 contradicts RANK=1"
  OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 run --separate-stderr "${alone[@]}"
  check_refusal 78 "mpirun has started this program 2 times (OMPI_COMM_WORLD_SIZE) without ddlrun"
  RANK=2 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 run --separate-stderr "${alone[@]}"
  check_refusal 78 "RANK=2"
  [ ! -e run ]
}
