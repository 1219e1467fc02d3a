#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Parquet files are refused, and what the reference says to do instead does it.

load common

@test "a Parquet file, alone or in a directory, 65" {
  mkdir hub
  printf 'PAR1%0600d' 0 > hub/train-00000.parquet
  refused 65 "or .png; Parquet files are not read: doc/reference/data.md" set --train hub
  refused 65 "hub/train-00000.parquet, tar header at offset 0: Parquet files are not read" set --train \
    hub/train-00000.parquet
}

@test "the lines of the reference make tars of Parquet files as Hugging Face has them" {
  python3 -c 'import pyarrow.parquet' 2> /dev/null || skip "python3 has no pyarrow"
  mkdir tars hub
  tar -cf tars/web.tar -C "$images/web" .
  cat > make.py << 'END'
import pathlib, sys, pyarrow, pyarrow.parquet
web = pathlib.Path(sys.argv[1])
rows = [{"image": {"bytes": path.read_bytes(), "path": path.name}, "label": int(path.with_suffix(".cls").read_text())}
        for path in sorted(web.glob("*.jpg"))]
half = len(rows) // 2
for number, part in enumerate((rows[:half], rows[half:])):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part), f"hub/train-{number:05}-of-00002.parquet")
END
  python3 make.py "$images/web"
  awk '/```python parquet/ { on = 1; next } /```/ { on = 0 } on { sub(/^  /, ""); print }' \
    "$BATS_TEST_DIRNAME/../../../doc/reference/data.md" > lines.py
  grep -q ParquetFile lines.py
  (cd hub && python3 ../lines.py)
  expect=0 convert set --train hub/*.tar
  local training=$output
  convert expected --train tars/web.tar
  [ "${training#set: }" = "${output#expected: }" ]
  trains_on set
}
