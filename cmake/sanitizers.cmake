# -DDDLRUN_SANITIZE=address,undefined (or thread): for every target, the tests included.
if(DDLRUN_SANITIZE)
  # What reads and decides compiles in half the time that it takes with -O1. Directories that compute add
  # DDLRUN_SANITIZED_COMPUTATION; what fuzzers try is optimised, too (ddl_fuzzer).
  set(DDLRUN_SANITIZED_COMPUTATION -O1)
  add_compile_options(-fsanitize=${DDLRUN_SANITIZE} -fno-omit-frame-pointer -g1 -O0)
  add_link_options(-fsanitize=${DDLRUN_SANITIZE})
  # The emulated GPU fills the program's thread-local memory with not-a-number: the sanitizer's own has to be elsewhere, as it is
  # with GCC.
  if(DDLRUN_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
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
if(DDLRUN_FUZZ AND NOT (DDLRUN_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES Clang))
  message(FATAL_ERROR "DDLRUN_FUZZ needs clang and the address sanitizer: cmake --preset asan; another compiler's: -D DDLRUN_FUZZ=OFF")
endif()
