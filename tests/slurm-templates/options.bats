#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The training that each template starts, as it stands there; tests/cluster runs them with a smaller one.

@test "ddltraind takes the options of every template" {
  cd "$BATS_TEST_DIRNAME/../../slurm-templates" || exit 1
  found=0
  for template in *.sbatch; do
    # shellcheck disable=SC2016 # as it stands there
    grep -q '^[^#]*ddltraind "${options\[@\]}"' "$template" || continue
    options=()
    eval "$(sed -n '/^options=($/,/^)$/p' "$template")"
    # Small images: this machine may have no memory for the real ones, which a dry run would say.
    "$DDLRUN_BUILD/bin/ddltraind" --dry_run "${options[@]}" --image_size=32 > "$BATS_TEST_TMPDIR/plan"
    found=$((found + 1))
  done
  [ $found -eq 4 ]
}
