# Every library the project links, in one place. What is optional and missing costs one STATUS line and a row in the
# summary; what is required names its Debian package.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Adds the imported target `target` for the pkg-config module `module`, or stops and names the Debian package.
function(ddl_require_pkg target module package)
  pkg_check_modules(${module} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${module}_FOUND)
    message(FATAL_ERROR "${module} is missing: install the package ${package} (Debian/Ubuntu) or run tools/bootstrap")
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(${target} INTERFACE PkgConfig::${module})
endfunction()

ddl_require_pkg(ddl::hwloc hwloc libhwloc-dev)
ddl_require_pkg(ddl::jpeg libjpeg libjpeg62-turbo-dev)
ddl_require_pkg(ddl::isal libisal libisal-dev)
ddl_require_pkg(ddl::protobuf protobuf-lite libprotobuf-dev)
ddl_require_pkg(ddl::spdlog spdlog libspdlog-dev)
ddl_require_pkg(ddl::yaml yaml-cpp libyaml-cpp-dev)
find_package(CLI11 REQUIRED)          # libcli11-dev
find_package(nlohmann_json REQUIRED)  # nlohmann-json3-dev
find_program(DDLRUN_PROTOC protoc)
if(NOT DDLRUN_PROTOC)
  message(FATAL_ERROR "protoc is missing: install the package protobuf-compiler (Debian/Ubuntu) or run tools/bootstrap")
endif()

# Optional parts: DDLRUN_MPI, DDLRUN_ONEDNN are ON where the library was found and not switched off.
option(DDLRUN_WITH_MPI "Use MPI if it is there" ON)
option(DDLRUN_WITH_ONEDNN "Build the cpu back end if oneDNN is there" ON)

set(DDLRUN_MPI OFF)
if(DDLRUN_WITH_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
  set(DDLRUN_MPI ${MPI_CXX_FOUND})
endif()
if(NOT DDLRUN_MPI)
  message(STATUS "MPI: not found; ranks of one machine still meet through shared memory")
endif()

# find_package(dnnl) needs OpenCL's headers on x86 (Debian bug); the library alone does not.
set(DDLRUN_ONEDNN OFF)
if(DDLRUN_WITH_ONEDNN)
  find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(ONEDNN_LIBRARY dnnl)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(ONEDNN_INCLUDE_DIR AND ONEDNN_LIBRARY AND OpenMP_CXX_FOUND)
    set(DDLRUN_ONEDNN ON)
    add_library(ddl::onednn INTERFACE IMPORTED GLOBAL)
    target_include_directories(ddl::onednn SYSTEM INTERFACE ${ONEDNN_INCLUDE_DIR})
    target_link_libraries(ddl::onednn INTERFACE ${ONEDNN_LIBRARY} OpenMP::OpenMP_CXX)
  endif()
endif()
if(NOT DDLRUN_ONEDNN)
  message(STATUS "oneDNN: not found (libdnnl-dev); the cpu back end is left out, the reference back end remains")
endif()

find_program(DDLRUN_HELP2MAN help2man)
if(NOT DDLRUN_HELP2MAN)
  message(STATUS "help2man: not found; the manual pages are left out (every program has --help)")
endif()

if(DDLRUN_TESTS)
  find_package(GTest REQUIRED)  # libgtest-dev libgmock-dev
endif()

function(ddl_print_summary)
  message(STATUS "")
  message(STATUS "ddlrun ${PROJECT_VERSION}: what is in this build")
  message(STATUS "  build type            ${CMAKE_BUILD_TYPE} ${DDLRUN_SANITIZE}")
  message(STATUS "  launcher              ddlrun, bede-ddlrun, ddlrun-rank")
  message(STATUS "  back ends             reference")
  message(STATUS "  oneDNN (cpu)          ${DDLRUN_ONEDNN}")
  message(STATUS "  MPI                   ${DDLRUN_MPI}")
  message(STATUS "  tests / bench / fuzz  ${DDLRUN_TESTS} / ${DDLRUN_BENCH} / ${DDLRUN_FUZZ}")
  message(STATUS "")
endfunction()
