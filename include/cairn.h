/* SPDX-License-Identifier: Apache-2.0
 *
 * libcairn: any Cairn drive in a C program.
 *
 *   cairn_drive *drive;
 *   int error = cairn_open("mirror(nvme-tcp://10.0.0.1/NQN, file:/srv/d0,size=8G)", NULL, &drive);
 *   if (error < 0) fprintf(stderr, "%s\n", cairn_error_text());
 *   error = cairn_read(drive, 0, buffer, 4096);
 *   cairn_close(drive);
 *
 * A drive is named as `cairn drive` names it: a source (mem:, file:, flash:), a URI (nvme-tcp://,
 * http://) or a stack of services over them. Each handle has a thread of its own inside the
 * library, which does all its I/O; a process may have many.
 *
 * Results. 0 or a count on success, a negative errno otherwise. cairn_error_text() then says what
 * happened as a sentence, and a completion has its own text.
 *
 *   -EINVAL     the request makes no sense: out of range, or no multiple of the block
 *   -EAGAIN     so many requests are under way as the handle has room for; or buffers are all out
 *   -EILSEQ     compared bytes differ
 *   -ESRCH      the handle was opened before a fork() by the parent
 *   -ENOENT, -EACCES, -EEXIST (in use), -EOPNOTSUPP, -ENOSPC, -EIO, -EBADMSG (what came back is not
 *   what was stored), -ESHUTDOWN, -ECONNRESET, -EHOSTUNREACH, -ETIMEDOUT, -ECANCELED, -ENOMEM
 *
 * Threads. All functions may be called by any thread at any time, several on one handle at once;
 * only cairn_close() must be the last call on its handle. No function throws, installs a signal
 * handler, or lets a signal be delivered to the library's threads.
 *
 * fork(). A child may not use the handles of its parent: all calls on them fail with -ESRCH, and
 * cairn_close() does nothing. It may open drives of its own. exec() closes everything. dlclose()
 * only when all handles are closed.
 *
 * Stability. Symbols are versioned. Options and info come with their size and grow at their end
 * only; requests and completions stay as they are, and what is reserved in them is 0.
 */
#ifndef CAIRN_H
#define CAIRN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open drive. */
typedef struct cairn_drive cairn_drive;

/* How the handle's thread works; zero is the default everywhere. */
enum { CAIRN_IO_AUTO = 0, CAIRN_IO_URING = 1, CAIRN_IO_EPOLL = 2 };

struct cairn_options {
  uint32_t size;          /* sizeof(struct cairn_options) */
  uint32_t io;            /* CAIRN_IO_... */
  uint32_t depth;         /* requests under way at once, 1 to 65536; 0: 1024 */
  uint32_t poll;          /* not 0: the thread never sleeps */
  uint32_t cpu;           /* 0: any; else it stays on CPU number cpu - 1 */
  uint32_t report_resize; /* not 0: a completion CAIRN_RESIZED comes when the size changed */
};

/* Opens a drive and waits until that is done. `options` may be NULL. -EINVAL: the text or the
 * options are wrong; -EIO: the drive cannot be opened. The error text shows the place. */
int cairn_open(const char* stack, const struct cairn_options* options, cairn_drive** drive);

/* Waits for all requests under way, flushes nothing by itself, and ends the handle. Completions
 * that nobody took are dropped. NULL is allowed. */
void cairn_close(cairn_drive* drive);

/* Why the last call of this thread failed; valid until its next call. Never NULL. */
const char* cairn_error_text(void);

/* What a drive is. Only `bytes` can change while it is open. */
struct cairn_info {
  uint64_t bytes;
  uint32_t block_size;     /* offsets and lengths are multiples of this */
  uint32_t optimal_bytes;  /* reads and writes of a multiple of this cost least */
  uint32_t atomic_bytes;   /* an aligned write up to this happens wholly or not at all */
  uint32_t discard_bytes;  /* discards of a multiple of this give space back */
  uint32_t max_bytes;      /* the largest read, write or compare */
  uint32_t volatile_cache; /* not 0: only a flush or CAIRN_DURABLE makes writes survive a crash */
};

/* Fills the first `info_size` bytes of *info. */
int cairn_get_info(cairn_drive* drive, struct cairn_info* info, size_t info_size);

/* The size in bytes, or a negative errno. */
int64_t cairn_size(cairn_drive* drive);

/* Changes the size; -EOPNOTSUPP where the drive cannot. */
int cairn_resize(cairn_drive* drive, uint64_t bytes);

/* One after the other: each waits until it is done. */
int cairn_read(cairn_drive* drive, uint64_t offset, void* into, size_t length);
int cairn_write(cairn_drive* drive, uint64_t offset, const void* from, size_t length);
int cairn_compare(cairn_drive* drive, uint64_t offset, const void* with, size_t length);
int cairn_flush(cairn_drive* drive);
int cairn_discard(cairn_drive* drive, uint64_t offset, uint64_t length);
int cairn_write_zeroes(cairn_drive* drive, uint64_t offset, uint64_t length);

/* Many at once. */
enum {
  CAIRN_READ = 0,
  CAIRN_WRITE = 1,
  CAIRN_COMPARE = 2,
  CAIRN_FLUSH = 3,
  CAIRN_DISCARD = 4,
  CAIRN_WRITE_ZEROES = 5,
  CAIRN_RESIZED = 6 /* in completions only */
};

enum {
  CAIRN_DURABLE = 1,   /* writes: survives a crash when complete */
  CAIRN_URGENT = 2,    /* somebody waits for just this: do not hold it back to batch it */
  CAIRN_KEEP_SPACE = 4 /* write-zeroes: the blocks stay allocated */
};

struct cairn_request {
  uint32_t kind;  /* CAIRN_READ ... CAIRN_WRITE_ZEROES */
  uint32_t flags; /* CAIRN_DURABLE | ... */
  uint64_t offset;
  uint64_t length;         /* discard, write-zeroes; of the others the pieces' sum, or 0 */
  const struct iovec* iov; /* read, write, compare: the memory is lent until completion, the array
                              only for the call */
  uint32_t iov_count;
  uint32_t reserved; /* 0 */
  void* tag;         /* comes back with the completion */
};

struct cairn_completion {
  void* tag;
  const char* text; /* what failed, in words; lives as long as the library. NULL on success */
  int32_t result;   /* 0 or a negative errno */
  uint32_t kind;    /* of the request, or CAIRN_RESIZED */
};

/* Starts `count` requests, in no particular order among themselves and those under way. How many
 * were taken, from the first on; fewer than `count` when the next one is wrong or finds no room. A
 * negative errno when the first one does. What was taken completes exactly once. */
int cairn_submit(cairn_drive* drive, const struct cairn_request* requests, uint32_t count);

/* Takes up to `count_max` completions, without waiting; how many. */
int cairn_poll(cairn_drive* drive, struct cairn_completion* into, uint32_t count_max);

/* The same, but waits for the first one: up to timeout_ms, or for ever when that is negative. 0:
 * none came. */
int cairn_wait(cairn_drive* drive, struct cairn_completion* into, uint32_t count_max,
               int timeout_ms);

/* A descriptor for poll(), epoll or any event loop: readable while cairn_poll() would find
 * something. Do not read it or close it. */
int cairn_event_fd(cairn_drive* drive);

/* Major and minor of the library: 0x000100 is 0.1. */
uint32_t cairn_version(void);

#ifdef __cplusplus
}
#endif

#endif
