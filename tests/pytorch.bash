# SPDX-License-Identifier: Apache-2.0
# For tests that need PyTorch.

# use_pytorch DIRECTORY: the first python3 of PATH that has torch becomes the first of all, by a link in DIRECTORY: before that of the
# system, which gets torch by tools/bootstrap, may be one of pyenv or conda. False where none has it.
use_pytorch() {
  local python
  while read -r python; do
    "$python" -c 'import torch.distributed as d; assert d.is_available()' 2> /dev/null || continue
    ln -sf "$python" "$1/python3"
    PATH="$1:$PATH"
    return 0
  done < <(type -ap python3)
  echo "PyTorch is not installed (tools/bootstrap check)"
  return 1
}
