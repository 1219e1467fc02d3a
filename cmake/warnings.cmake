# Warnings are errors, for our own sources only: the headers of libraries come in as SYSTEM.
# nvcc has options of its own (cmake/cuda.cmake).
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual>"
                    "$<$<COMPILE_LANGUAGE:CXX>:-Wcast-qual;-Wformat=2;-Werror>")
# GCC 12 sees overlapping copies in "text" + std::string (bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
