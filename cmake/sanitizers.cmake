# -DDDLRUN_SANITIZE=address,undefined (or thread): for every target, the tests included.
if(DDLRUN_SANITIZE)
  # -O1 compiles in two thirds of the time and runs nearly as fast.
  add_compile_options(-fsanitize=${DDLRUN_SANITIZE} -fno-omit-frame-pointer -g1 -O1)
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
