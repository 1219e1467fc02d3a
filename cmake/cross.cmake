# Toolchain file: POWER9 (AC922), cross-compiled against Debian's libraries, which tools/ppc64le fetches. Programs that the build or
# ctest starts run under QEMU. -DDDLRUN_PPC64LE_SYSROOT=DIR: another directory with libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ppc64le)
if(NOT DDLRUN_PPC64LE_SYSROOT)
  if(DEFINED ENV{XDG_CACHE_HOME})
    set(DDLRUN_PPC64LE_SYSROOT $ENV{XDG_CACHE_HOME}/ddlrun/ppc64le)
  else()
    set(DDLRUN_PPC64LE_SYSROOT $ENV{HOME}/.cache/ddlrun/ppc64le)
  endif()
endif()
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DDLRUN_PPC64LE_SYSROOT)

set(CMAKE_C_COMPILER powerpc64le-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER powerpc64le-linux-gnu-g++)
set(CMAKE_CXX_FLAGS_INIT -mcpu=power9)
set(CMAKE_LIBRARY_ARCHITECTURE powerpc64le-linux-gnu)
set(CMAKE_SYSROOT ${DDLRUN_PPC64LE_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-ppc64le -cpu power9 -L ${DDLRUN_PPC64LE_SYSROOT})

# Programs are this machine's, all else is in the sysroot.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${DDLRUN_PPC64LE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${DDLRUN_PPC64LE_SYSROOT}/usr/lib/powerpc64le-linux-gnu/pkgconfig:${DDLRUN_PPC64LE_SYSROOT}/usr/share/pkgconfig)

# Debian makes Open MPI's plain names as it installs the package; in a sysroot it is only unpacked.
set(MPI_SKIP_COMPILER_WRAPPER ON CACHE BOOL "")
set(MPI_CXX_SKIP_MPICXX ON CACHE BOOL "")
set(MPI_CXX_HEADER_DIR ${DDLRUN_PPC64LE_SYSROOT}/usr/lib/powerpc64le-linux-gnu/openmpi/include CACHE PATH "")
set(MPI_CXX_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY ${DDLRUN_PPC64LE_SYSROOT}/usr/lib/powerpc64le-linux-gnu/openmpi/lib/libmpi.so CACHE FILEPATH "")
