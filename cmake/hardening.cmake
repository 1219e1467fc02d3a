# What makes a fault of ours harder to use against the one who runs it: programs that start at any address (PIE), relocations that are
# read-only once a program runs (RELRO, BIND_NOW), canaries on the stack, and checked calls of the C library (_FORTIFY_SOURCE, which
# needs optimization). Tests are without, being compiled with -O0. A distribution's own flags say the same: it may switch these off.
option(DDLRUN_HARDENING "Harden programs (PIE, RELRO, stack protector, fortify)" ON)

# Without it CMake compiles for PIE and leaves it to the compiler whether to link so.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

# ddl_harden(TARGET): a library or a program that is installed. Code for GPUs is left alone.
function(ddl_harden target)
  # The path to libraries is the same in the build and where it is installed. CMake would pad it in the build with an
  # empty entry, which the loader takes for the current directory.
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  if(NOT DDLRUN_HARDENING OR DDLRUN_SANITIZE)
    return()
  endif()
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  target_link_options(${target} PRIVATE -Wl,-z,relro -Wl,-z,now)
endfunction()
