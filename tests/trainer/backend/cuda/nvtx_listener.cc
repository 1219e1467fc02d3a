// SPDX-License-Identifier: Apache-2.0
//
// A profiler that only writes down which ranges begin (their names) and end (".").  NVTX loads it
// into a program by NVTX_INJECTION64_PATH and calls InitializeInjectionNvtx2.

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace {

std::string received;

int Begin(const char* name) {
  received += std::string(name) + "\n";
  return 0;
}

int End() {
  received += ".\n";
  return 0;
}

}  // namespace

extern "C" const char* HeardRanges() { return received.c_str(); }

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr) return 0;
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  if (size <= NVTX_CBID_CORE_RangePop) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(Begin);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(End);
  return 1;
}
