# Toolchain file of the presets ppc64le and aarch64: cross-compiled against Debian's libraries, which tools/cross fetches. Programs
# that the build or ctest starts run under QEMU. -D DDLRUN_SYSROOT=DIR: another directory with libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${DDLRUN_CROSS})
# The compiler's target, and the oldest processor that matters: the others run its code (as in tools/cross).
if(DDLRUN_CROSS STREQUAL "ppc64le")
  set(ddl_target powerpc64le-linux-gnu)
  set(ddl_cpu power9) # of the AC922
elseif(DDLRUN_CROSS STREQUAL "aarch64")
  set(ddl_target aarch64-linux-gnu)
  set(ddl_cpu neoverse-n1) # of Graviton2; Graviton3 and 4 and Grace have more
else()
  message(FATAL_ERROR "DDLRUN_CROSS is '${DDLRUN_CROSS}', not ppc64le or aarch64: use the preset of that name")
endif()
if(NOT DDLRUN_SYSROOT)
  if(DEFINED ENV{XDG_CACHE_HOME})
    set(DDLRUN_SYSROOT $ENV{XDG_CACHE_HOME}/ddlrun/${DDLRUN_CROSS})
  else()
    set(DDLRUN_SYSROOT $ENV{HOME}/.cache/ddlrun/${DDLRUN_CROSS})
  endif()
endif()
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DDLRUN_CROSS DDLRUN_SYSROOT)

set(CMAKE_C_COMPILER ${ddl_target}-gcc)
set(CMAKE_CXX_COMPILER ${ddl_target}-g++)
set(CMAKE_CXX_FLAGS_INIT -mcpu=${ddl_cpu})
set(CMAKE_LIBRARY_ARCHITECTURE ${ddl_target})
set(CMAKE_SYSROOT ${DDLRUN_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${DDLRUN_CROSS} -cpu ${ddl_cpu} -L ${DDLRUN_SYSROOT})

# Programs are this machine's, all else is in the sysroot.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${DDLRUN_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${DDLRUN_SYSROOT}/usr/lib/${ddl_target}/pkgconfig:${DDLRUN_SYSROOT}/usr/share/pkgconfig)

# Debian makes Open MPI's plain names as it installs the package; in a sysroot it is only unpacked.
set(MPI_SKIP_COMPILER_WRAPPER ON CACHE BOOL "")
set(MPI_CXX_SKIP_MPICXX ON CACHE BOOL "")
set(MPI_CXX_HEADER_DIR ${DDLRUN_SYSROOT}/usr/lib/${ddl_target}/openmpi/include CACHE PATH "")
set(MPI_CXX_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY ${DDLRUN_SYSROOT}/usr/lib/${ddl_target}/openmpi/lib/libmpi.so CACHE FILEPATH "")
