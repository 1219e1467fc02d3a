# Programs that people start themselves run with any LD_LIBRARY_PATH: a conda environment, or a module of another compiler, has an older
# libstdc++ there as often as not, and the loader takes that one. They contain the C++ library, where no shared library needs one too: two
# of them in a process do not know each other's exceptions. Otherwise they look where the compiler has its own first: DT_RPATH comes
# before LD_LIBRARY_PATH, which DT_RUNPATH comes after (ld.so(8)).
option(DDLRUN_STATIC_CXX "Link the launcher's programs with a static C++ library, and with yaml-cpp, if there are archives of them" ON)

# ddl_archive(VARIABLE MODULE NAME): libNAME.a of this pkg-config module, or NOTFOUND.
function(ddl_archive variable module name)
  pkg_get_variable(directory ${module} libdir)
  find_library(${variable} lib${name}.a HINTS ${directory} ${${module}_LIBRARY_DIRS})
  mark_as_advanced(${variable})
endfunction()

set(DDLRUN_CXX_LIBRARY shared)
set(DDLRUN_CXX_FOLDER "")
if(NOT DDLRUN_SANITIZE AND NOT DDLRUN_MUSL_TARGET) # zig's is static
  if(DDLRUN_STATIC_CXX)
    ddl_archive(YAML_CPP_ARCHIVE yaml-cpp yaml-cpp)
    include(CheckCXXSourceCompiles)
    include(CMakePushCheckState)
    if(YAML_CPP_ARCHIVE)
      cmake_push_check_state(RESET)
      set(CMAKE_REQUIRED_LINK_OPTIONS -static-libstdc++ -static-libgcc -pie)
      set(CMAKE_REQUIRED_FLAGS -fPIE)
      set(CMAKE_REQUIRED_LIBRARIES ${YAML_CPP_ARCHIVE})
      set(CMAKE_REQUIRED_INCLUDES ${yaml-cpp_INCLUDE_DIRS})
      check_cxx_source_compiles("#include <yaml-cpp/yaml.h>\nint main() { return static_cast<int>(YAML::Load(\"[1]\").size()) - 1; }"
                                DDLRUN_LINKS_WITH_STATIC_CXX)
      cmake_pop_check_state()
    endif()
    if(DDLRUN_LINKS_WITH_STATIC_CXX)
      set(DDLRUN_CXX_LIBRARY static)
      set_target_properties(ddl::yaml PROPERTIES INTERFACE_LINK_LIBRARIES ${YAML_CPP_ARCHIVE})
      target_include_directories(ddl::yaml SYSTEM INTERFACE ${yaml-cpp_INCLUDE_DIRS})
    else()
      message(STATUS "static C++ library: not found, or no archive of yaml-cpp that goes with it; the launcher's programs look for the shared one where the compiler has it")
    endif()
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so.6 OUTPUT_VARIABLE ddl_shared OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(IS_ABSOLUTE "${ddl_shared}" AND EXISTS "${ddl_shared}" AND NOT CMAKE_CROSSCOMPILING)
    file(REAL_PATH "${ddl_shared}" ddl_shared)
    cmake_path(GET ddl_shared PARENT_PATH DDLRUN_CXX_FOLDER)
  endif()
endif()

# ddl_own_cxx_library(PROGRAM [shared]): `shared` says that it links shared libraries of C++.
function(ddl_own_cxx_library program)
  if(DDLRUN_CXX_LIBRARY STREQUAL static AND NOT "shared" IN_LIST ARGN)
    target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc)
  elseif(DDLRUN_CXX_FOLDER AND NOT CMAKE_SKIP_RPATH AND NOT CMAKE_SKIP_INSTALL_RPATH)
    target_link_options(${program} PRIVATE -Wl,--disable-new-dtags,-rpath,${DDLRUN_CXX_FOLDER})
  endif()
endfunction()
