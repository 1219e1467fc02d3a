#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The image of packaging/container, of the DEBs in build/packages: built by buildah on a bare Debian of the same release, a job in it, and
# a job of a real Slurm whose ranks are in it. tools/check packages runs it, behind tools/package.

# shellcheck disable=SC2016 # the shells inside expand, not this one
# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load ../cluster/common

# What buildah keeps is in a directory that goes away.
images() { buildah --storage-driver vfs --root "$BATS_FILE_TMPDIR/images" --runroot "$BATS_FILE_TMPDIR/state" "$@"; }

setup_file() {
  command -v buildah > /dev/null || skip_all "buildah is not installed: tools/bootstrap pack gets it" || return 0
  local sources release base
  sources=$(realpath "$BATS_TEST_DIRNAME/../..")
  compgen -G "$sources/build/packages/ddltraind_*.deb" > /dev/null || skip_all "build/packages has no DEBs: tools/package makes them" || return 0
  # shellcheck source=/dev/null
  release=$(. /etc/os-release && echo "$VERSION_ID")
  "$sources/tools/platform" "debian$release-minimal" true >&2 # makes it, which it tells of, where it is not there yet
  "$sources/tools/platform" "debian$release-minimal" tar -c --one-file-system --exclude=./srv --exclude=./var/cache/ccache -C / . > "$BATS_FILE_TMPDIR/root.tar"
  base=$(images from scratch)
  images add --quiet "$base" "$BATS_FILE_TMPDIR/root.tar" /
  images commit --quiet --rm "$base" bare
  rm "$BATS_FILE_TMPDIR/root.tar"
  images build --quiet --isolation chroot --pull=never --from localhost/bare --tag ddlrun \
    --file "$sources/packaging/container/Dockerfile" "$sources/build/packages" > "$BATS_FILE_TMPDIR/log" 2>&1 ||
    { cat "$BATS_FILE_TMPDIR/log" >&2; return 1; }
  container=$(images from --pull=never localhost/ddlrun)
  export container
  images images --format '{{.Name}} {{.Size}}' >&3
  start_cluster 2 2 8
}

teardown_file() {
  stop_cluster
  rm -rf "${BATS_FILE_TMPDIR:?}"/{images,state}
}

setup() { [ -z "${skip_all_reason:-}" ] || skip "$skip_all_reason"; }

inside() { images run --isolation chroot --env OMPI_ALLOW_RUN_AS_ROOT=1 --env OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$container" -- "$@"; }

@test "the image trains on two ranks, and without a command shows the help" {
  run -0 inside sh -c 'cd /tmp && ddlrun -n 2 sh -c "echo rank \$RANK of \$WORLD_SIZE"'
  [ "$(grep ^rank <<< "$output" | sort)" = $'rank 0 of 2\nrank 1 of 2' ]
  run -0 inside sh -c 'cd /tmp && ddldata synth --classes 10 --images 64 --validation_images 16 --size 40 data > /dev/null &&
    ddlrun -n 2 ddltraind --mode=train_and_evaluate --data_dir=data --classes=10 --arch=resnet_tiny --image_size=32 --batch_size=8 \
      --iter_unit=batch --num_iter=2 --backend=cpu'
  [[ $output == *top1* ]]
  run -0 images inspect --type image --format '{{.OCIv1.Config.Cmd}}' localhost/ddlrun
  [ "$output" = "[ddltraind --help]" ]
}

@test "a job whose ranks srun starts in the image, with the image's MPI" {
  has_cluster
  empty_home
  cp "$BATS_TEST_DIRNAME/../cluster/apptainer" "$cluster_dir/opt/bin"
  cp -a "$(images mount "$container")" ddltraind.sif
  chown -R --reference=. ddltraind.sif # who has no privileges makes the namespaces
  script train.sbatch '#SBATCH -N2' '#SBATCH --gres=gpu:2' 'export PATH='"$cluster_dir"'/opt/bin:$PATH' \
    'ddlrun apptainer exec ddltraind.sif sh -c '"'"'echo "in $APPTAINER_CONTAINER"; exec "$@"'"'"' sh /usr/bin/ddltraind --backend=cpu \
      --arch=resnet_tiny --classes=10 --image_size=32 --batch_size=8 --threads=1 --mode=training_benchmark --num_iter=6 --iter_unit=batch \
      --warmup_steps=2 --comm=mpi'
  rm "$cluster_dir/opt/bin/ddltraind" # that of the image, not this one
  batch train.sbatch
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(grep -c "^in $work/ddltraind.sif" <<< "$output")" -eq 4 ]
  [[ $output == *"MPI ("*", 4 ranks"*"median of 4 steps"* ]]
}
