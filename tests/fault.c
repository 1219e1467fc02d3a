// SPDX-License-Identifier: Apache-2.0
//
// For LD_PRELOAD: makes rank $FAULT_RANK die or stop inside a call, as a bug or a broken node
// would.
//
//   FAULT_IN     MPI_Init_thread, MPI_Allreduce, dnnl_primitive_execute (a kernel of the step),
//                MPI_Finalize, after_MPI_Finalize, or pread
//   FAULT        kill, segv, exit (with code 3), stop, hang (this thread alone), stale and eio (in
//                pread: ESTALE of one call, EIO of each), flip (in dnnl_primitive_execute: one bit
//                of the gradient of one filter, and nothing else), or wait (this
//                thread, in reading from the FIFO $FAULT_FIFO, until a letter comes: as in
//                reading from a file system that does not answer)
//   FAULT_WHEN   a file: the first call when it is there

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_letter(void) {
  const int fifo = open(getenv("FAULT_FIFO"), O_RDWR | O_CLOEXEC);
  char letter;
  while (read(fifo, &letter, 1) < 0) continue;
  close(fifo);
}

static void fail_in(const char* function) {
  const char* where = getenv("FAULT_IN");
  const char* fault = getenv("FAULT");
  const char* when = getenv("FAULT_WHEN");
  const char* rank = getenv("FAULT_RANK");
  const char* own = getenv("RANK");
  if (!where || !fault || !when || !rank || !own || strcmp(rank, own) != 0) return;
  if (strcmp(where, function) != 0 || access(when, F_OK) != 0) return;
  if (strcmp(fault, "stale") == 0 || strcmp(fault, "eio") == 0) return;
  if (strcmp(fault, "flip") == 0) return;
  if (strcmp(fault, "exit") == 0) exit(3);
  if (strcmp(fault, "segv") == 0) *(volatile int*)8 = 0;
  if (strcmp(fault, "wait") == 0) {
    wait_for_letter();
    return;
  }
  while (strcmp(fault, "hang") == 0) pause();
  raise(strcmp(fault, "kill") == 0 ? SIGKILL : SIGSTOP);
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  fail_in(__func__);
  int (*real)(int*, char***, int, int*) = dlsym(RTLD_NEXT, __func__);
  return real(argc, argv, required, provided);
}

int MPI_Finalize(void) {
  fail_in(__func__);
  int (*real)(void) = dlsym(RTLD_NEXT, __func__);
  const int result = real();
  fail_in("after_MPI_Finalize");
  return result;
}

// Handles are pointers in Open MPI.
int MPI_Allreduce(const void* send, void* receive, int count, void* type, void* op, void* comm) {
  fail_in(__func__);
  int (*real)(const void*, void*, int, void*, void*, void*) = dlsym(RTLD_NEXT, __func__);
  return real(send, receive, count, type, op, comm);
}

// dnnl_exec_arg_t, and DNNL_ARG_DIFF_WEIGHTS of it.
struct argument {
  int which;
  void* memory;
};
enum { kFilterGradient = 161 };

static void flip_once(const struct argument* arguments, int count) {
  static int flipped;
  const char* fault = getenv("FAULT");
  const char* when = getenv("FAULT_WHEN");
  const char* rank = getenv("FAULT_RANK");
  const char* own = getenv("RANK");
  if (!fault || !when || !rank || !own || strcmp(fault, "flip") != 0 || strcmp(rank, own) != 0)
    return;
  if (flipped || access(when, F_OK) != 0) return;
  int (*data_of)(const void*, void**) = dlsym(RTLD_DEFAULT, "dnnl_memory_get_data_handle");
  for (int i = 0; i < count && !flipped; ++i) {
    unsigned* bits = 0;
    if (arguments[i].which != kFilterGradient || data_of(arguments[i].memory, (void**)&bits) != 0)
      continue;
    bits[1] ^= 1U << 20;
    flipped = 1;
  }
}

int dnnl_primitive_execute(void* primitive, void* stream, int count, void* arguments) {
  fail_in(__func__);
  int (*real)(void*, void*, int, void*) = dlsym(RTLD_NEXT, __func__);
  const int result = real(primitive, stream, count, arguments);
  flip_once(arguments, count);
  return result;
}

// Whether a call is to return -1: the first one with ESTALE, each with EIO.
static int fails_to_read(void) {
  static int calls;
  const char* fault = getenv("FAULT");
  const char* when = getenv("FAULT_WHEN");
  const char* rank = getenv("FAULT_RANK");
  const char* own = getenv("RANK");
  if (!fault || !when || !rank || !own || strcmp(rank, own) != 0 || access(when, F_OK) != 0)
    return 0;
  errno = strcmp(fault, "stale") == 0 ? ESTALE : EIO;
  return strcmp(fault, "eio") == 0 ||
         (strcmp(fault, "stale") == 0 && __sync_fetch_and_add(&calls, 1) == 0);
}

ssize_t pread(int file, void* bytes, size_t size, off_t offset) {
  if (fails_to_read()) return -1;
  fail_in("pread");
  return syscall(SYS_pread64, file, bytes, size, offset);
}

ssize_t pread64(int file, void* bytes, size_t size, off64_t offset) {
  if (fails_to_read()) return -1;
  fail_in("pread");
  return syscall(SYS_pread64, file, bytes, size, offset);
}
