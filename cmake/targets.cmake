# The few shapes of target this project has. Includes are rooted at the repository: #include "rankfile/hostlist.h".
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The first is what ccache's manual asks for where headers are precompiled; by the others a second clone finds what the first has
  # compiled. An environment that says otherwise comes first.
  set(ccache_settings CCACHE_SLOPPINESS=pch_defines,time_macros)
  if(NOT DEFINED ENV{CCACHE_BASEDIR})
    list(APPEND ccache_settings CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER env ${ccache_settings} ${CCACHE})
endif()
if(CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# __FILE__ does not say where this clone lies: messages are shorter, and ccache finds what another clone has compiled.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>")

# A third of the time to compile is optimising what runs once in a run. Directories that compute set DDLRUN_COMPUTES. With -O1 GCC 12
# takes the inside of an empty std::optional for a variable without a value.
option(DDLRUN_QUICK_COMPILE "Optimise little but what computes: for contributors (preset contributor, tools/check)" OFF)
function(ddl_optimise_little name)
  if(DDLRUN_QUICK_COMPILE AND NOT DDLRUN_COMPUTES)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
endfunction()

# ddl_library(NAME SOURCES a.cc b.cc [DEPENDS lib ...] [PRIVATE lib ...])
function(ddl_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE})
  ddl_optimise_little(${name})
  ddl_harden(${name})
endfunction()

# All that is made before anything is compiled, for who only reads sources (tools/tidy).
add_custom_target(generated_sources)

# ddl_proto_library(NAME x.proto): what protoc makes of a file of this directory, to be included as "its/folder/x.pb.h". It is not our
# code, so no warnings.
function(ddl_proto_library name proto)
  set(generated_dir ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${generated_dir})
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
  string(REGEX REPLACE "[.]proto$" ".pb" made ${generated_dir}/${path})
  add_custom_command(
    OUTPUT ${made}.cc ${made}.h
    COMMAND ${DDLRUN_PROTOC} --cpp_out=${generated_dir} -I${PROJECT_SOURCE_DIR} ${path}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    VERBATIM)
  add_custom_target(${name}_sources DEPENDS ${made}.cc ${made}.h)
  add_dependencies(generated_sources ${name}_sources)
  add_library(${name} STATIC ${made}.cc ${made}.h)
  add_dependencies(${name} ${name}_sources)  # Makefiles would make them twice
  target_include_directories(${name} SYSTEM PUBLIC ${generated_dir})
  target_link_libraries(${name} PUBLIC ddl::protobuf)
  target_compile_options(${name} PRIVATE -w)
endfunction()

# ddl_program(NAME SOURCES main.cc [DEPENDS lib ...]): goes to bin/ and is installed there.
function(ddl_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  ddl_optimise_little(${name})
  ddl_harden(${name})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# ddl_test(NAME SOURCES a_test.cc [DEPENDS lib ...] [LABELS unit] [ARGS ...]): one GoogleTest program, one ctest entry.
# The label defaults to `unit`: no network, no GPU, no Slurm, seconds at most. tests/support/directories.h says
# where fixtures and programs are. The target `unit_tests` is all of this label.
add_custom_target(unit_tests)
if(DDLRUN_TESTS)
  add_library(test_folders STATIC ${PROJECT_SOURCE_DIR}/tests/support/directories.cc)
  target_include_directories(test_folders PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(test_folders PRIVATE DDLRUN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" DDLRUN_BINARY_DIR="${PROJECT_BINARY_DIR}")
endif()
# GoogleTest's headers are compiled once: 2 of the 4 s that a test takes GCC. Clang gains nothing, and what it makes of them says where
# the clone lies, so that ccache would find nothing of the tests in another.
if(DDLRUN_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # A program, to be as position independent as the tests are.
  add_executable(test_headers EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/support/test_headers.cc)
  set_target_properties(test_headers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(test_headers PRIVATE GTest::gmock)
  target_compile_options(test_headers PRIVATE -O0)
  target_include_directories(test_headers PRIVATE ${PROJECT_SOURCE_DIR})
  target_precompile_headers(test_headers PRIVATE [["tests/support/test.h"]]) # in quotes: as it is, not where the clone lies
endif()
function(ddl_test name)
  if(NOT DDLRUN_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS;ARGS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)  # ends a hang; a busy laptop takes ten times as long as an idle one
  endif()
  if(CMAKE_CROSSCOMPILING)
    math(EXPR arg_TIMEOUT "5 * ${arg_TIMEOUT}")  # under an emulator
  elseif(DDLRUN_SANITIZE)
    math(EXPR arg_TIMEOUT "3 * ${arg_TIMEOUT}")
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} test_folders GTest::gmock GTest::gtest_main)
  # Half the time to compile; what a test needs fast is in a library. SHELL: keeps CMake from taking it for the -O0 of the
  # sanitizers and leaving it out: it has to be the last.
  target_compile_options(${name} PRIVATE "SHELL:$<$<COMPILE_LANGUAGE:CXX>:-O0>")
  # A test names the members that matter in it.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
  if(TARGET test_headers)
    target_precompile_headers(${name} REUSE_FROM test_headers)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT}) # long ones first
  if("unit" IN_LIST arg_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
endfunction()

# ddl_script_test(NAME COMMAND ... [LABELS ...] [TIMEOUT s]): a shell, bats or Python check. DDLRUN_BUILD names the build directory.
function(ddl_script_test name)
  if(NOT DDLRUN_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT} SKIP_RETURN_CODE 77
                       ENVIRONMENT "DDLRUN_BUILD=${PROJECT_BINARY_DIR}")
endfunction()

add_custom_target(fuzzers)

# libFuzzer is told which branches an input takes in a library and in those of ours that it is made of; many inputs shall be tried.
function(ddl_cover library)
  get_target_property(library_type ${library} TYPE)
  get_target_property(is_covered ${library} DDLRUN_COVERED)
  if(is_covered OR NOT library_type STREQUAL STATIC_LIBRARY)
    return()
  endif()
  set_target_properties(${library} PROPERTIES DDLRUN_COVERED ON)
  target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link -O1)
  get_target_property(made_of ${library} LINK_LIBRARIES)
  foreach(part IN LISTS made_of)
    if(TARGET ${part})
      ddl_cover(${part})
    endif()
  endforeach()
endfunction()

# ddl_fuzzer(NAME SOURCES x_fuzz.cc [DEPENDS lib ...]): a libFuzzer program in fuzz/, with DDLRUN_FUZZ (preset asan) only. All
# libraries are there before it is called. Seeds are in tests/fuzz/corpus/NAME.
function(ddl_fuzzer name)
  if(NOT DDLRUN_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  # The shared runtime of the others (cmake/sanitizers.cmake) would come behind the C++ library, which it refuses.
  target_link_options(${name} PRIVATE -fsanitize=fuzzer -static-libsan)
  foreach(library IN LISTS arg_DEPENDS)
    ddl_cover(${library})
  endforeach()
  add_dependencies(fuzzers ${name})
endfunction()
