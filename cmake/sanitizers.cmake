# -DDDLRUN_SANITIZE=address,undefined (or thread): for every target, the tests included.
if(DDLRUN_SANITIZE)
  # What reads and decides compiles in half the time that it takes with -O1. Folders that compute add
  # DDLRUN_SANITIZED_COMPUTATION; a fuzzer shall try many inputs.
  set(DDLRUN_SANITIZED_COMPUTATION -O1)
  add_compile_options(-fsanitize=${DDLRUN_SANITIZE} -fno-omit-frame-pointer -g1 $<IF:$<BOOL:${DDLRUN_FUZZ}>,-O1,-O0>)
  add_link_options(-fsanitize=${DDLRUN_SANITIZE})
  if(DDLRUN_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()
# Coverage feedback for libFuzzer in the libraries; only the fuzz targets link its main (cmake/targets.cmake).
if(DDLRUN_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
