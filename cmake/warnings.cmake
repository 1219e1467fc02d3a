# For our own sources only: the headers of libraries come in as SYSTEM. nvcc has options of its own (cmake/cuda.cmake).
# A compiler that is newer than this file warns of more, which must not stop somebody who only wants to install.
option(DDLRUN_WARNINGS_AS_ERRORS "Stop at the first warning: for contributors (preset contributor, tools/check)" OFF)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual>"
                    "$<$<COMPILE_LANGUAGE:CXX>:-Wcast-qual;-Wformat=2>")
if(DDLRUN_WARNINGS_AS_ERRORS)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# GCC 12 sees overlapping copies in "text" + std::string (bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# ddl_join_sources(): from here on several sources of a target of this directory are compiled as one. A file then sees the names of
# others, and GCC takes each for a header, whose types must not depend on what is in an unnamed namespace.
macro(ddl_join_sources)
  set(CMAKE_UNITY_BUILD ON)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endmacro()
if(CMAKE_UNITY_BUILD)
  ddl_join_sources()
endif()
