# -DDDLRUN_SANITIZE=address,undefined (or thread): for every target, the tests included.
if(DDLRUN_SANITIZE)
  # What reads and decides compiles in half the time that it takes with -O1. Folders that compute add
  # DDLRUN_SANITIZED_COMPUTATION; a fuzzer shall try many inputs.
  set(DDLRUN_SANITIZED_COMPUTATION -O1)
  add_compile_options(-fsanitize=${DDLRUN_SANITIZE} -fno-omit-frame-pointer -g1 $<IF:$<BOOL:${DDLRUN_FUZZ}>,-O1,-O0>)
  add_link_options(-fsanitize=${DDLRUN_SANITIZE})
  # The emulated GPU fills the program's thread-local memory with not-a-number: the sanitizer's own has to be elsewhere, as it is
  # with GCC.
  if(DDLRUN_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES Clang AND NOT DDLRUN_FUZZ)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-runtime-dir OUTPUT_VARIABLE ddl_runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    add_compile_options(-shared-libasan)
    add_link_options(-shared-libasan -Wl,-rpath,${ddl_runtime})
  endif()
  if(DDLRUN_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
    # Functions of libraries that are loaded at run time (NVML) are called by types of ours, which have the same layout.
    if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
      add_compile_options(-fno-sanitize=function)
    endif()
  endif()
endif()
# Coverage feedback for libFuzzer in the libraries; only the fuzz targets link its main (cmake/targets.cmake).
if(DDLRUN_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
