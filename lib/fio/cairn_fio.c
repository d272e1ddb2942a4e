/* SPDX-License-Identifier: Apache-2.0
 * fio's engine for any Cairn drive.
 *
 *   fio --name=job --ioengine=external:/path/cairn_fio.so --uri='nvme-tcp://10.0.0.1/NQN'
 * --rw=randread
 *
 * Each job opens the drive for itself: a job is a process of its own, or a thread. fio asks for the
 * size before it makes those, so the drive is also opened and closed once before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cairn.h>

#include "fio.h"
#include "optgroup.h"

/* fio calls an option at offset 0 none. */
struct cairn_fio_options {
  void* pad;
  char* uri;
  unsigned int durable;
  unsigned int poll;
};

struct cairn_fio_job {
  cairn_drive* drive;
  struct cairn_completion* done; /* of the last getevents() */
};

static struct fio_option cairn_fio_options[] = {
    {
        .name = "uri",
        .lname = "Cairn drive",
        .type = FIO_OPT_STR_STORE,
        .off1 = offsetof(struct cairn_fio_options, uri),
        .help = "a source, URI or stack: mem:size=1G, nvme-tcp://HOST/NQN, mirror(...)",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {
        .name = "durable",
        .lname = "Durable writes",
        .type = FIO_OPT_BOOL,
        .off1 = offsetof(struct cairn_fio_options, durable),
        .def = "0",
        .help = "each write survives a crash when it completes",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {
        .name = "poll",
        .lname = "Poll",
        .type = FIO_OPT_BOOL,
        .off1 = offsetof(struct cairn_fio_options, poll),
        .def = "0",
        .help = "the drive's thread never sleeps",
        .category = FIO_OPT_C_ENGINE,
        .group = FIO_OPT_G_INVALID,
    },
    {
        .name = NULL,
    },
};

static cairn_drive* open_drive(struct thread_data* td) {
  const struct cairn_fio_options* options = td->eo;
  const struct cairn_options how = {
      .size = sizeof how, .depth = td->o.iodepth + 1, .poll = options->poll};
  cairn_drive* drive = NULL;
  if (options->uri == NULL) {
    log_err("fio: cairn: which drive? Give --uri, for instance --uri=mem:size=1G\n");
    return NULL;
  }
  if (cairn_open(options->uri, &how, &drive) < 0) {
    log_err("fio: cairn: %s\n", cairn_error_text());
    return NULL;
  }
  return drive;
}

static int cairn_fio_setup(struct thread_data* td) {
  cairn_drive* drive = open_drive(td);
  if (drive == NULL) return 1;
  const int64_t size = cairn_size(drive);
  cairn_close(drive);
  if (size < 0) return 1;
  /* fio does I/O to files; this is the one. */
  if (td->files_index == 0) {
    add_file(td, "cairn", 0, 0);
    if (td->o.nr_files == 0) td->o.nr_files = 1;
    td->o.open_files++;
  }
  td->files[0]->real_file_size = (uint64_t)size;
  return 0;
}

static void cairn_fio_cleanup(struct thread_data* td) {
  struct cairn_fio_job* job = td->io_ops_data;
  if (job == NULL) return;
  cairn_close(job->drive);
  free(job->done);
  free(job);
  td->io_ops_data = NULL;
}

static int cairn_fio_init(struct thread_data* td) {
  struct cairn_fio_job* job = calloc(1, sizeof *job);
  if (job == NULL) return 1;
  td->io_ops_data = job;
  job->done = calloc(td->o.iodepth + 1, sizeof *job->done);
  job->drive = open_drive(td);
  if (job->done != NULL && job->drive != NULL) return 0;
  cairn_fio_cleanup(td);
  return 1;
}

static enum fio_q_status cairn_fio_queue(struct thread_data* td, struct io_u* io_u) {
  const struct cairn_fio_options* options = td->eo;
  struct cairn_fio_job* job = td->io_ops_data;
  struct iovec memory = {.iov_base = io_u->xfer_buf, .iov_len = io_u->xfer_buflen};
  struct cairn_request request = {.offset = io_u->offset, .tag = io_u};
  fio_ro_check(td, io_u);
  switch (io_u->ddir) {
    case DDIR_READ:
    case DDIR_WRITE:
      request.kind = io_u->ddir == DDIR_READ ? CAIRN_READ : CAIRN_WRITE;
      request.flags = io_u->ddir == DDIR_WRITE && options->durable ? CAIRN_DURABLE : 0;
      request.iov = &memory;
      request.iov_count = 1;
      break;
    case DDIR_TRIM:
      request.kind = CAIRN_DISCARD;
      request.length = io_u->xfer_buflen;
      break;
    case DDIR_SYNC:
    case DDIR_DATASYNC:
      request.kind = CAIRN_FLUSH;
      request.offset = 0;
      break;
    default:
      io_u->error = EOPNOTSUPP;
      return FIO_Q_COMPLETED;
  }
  const int taken = cairn_submit(job->drive, &request, 1);
  if (taken == 1) return FIO_Q_QUEUED;
  if (taken == -EAGAIN) return FIO_Q_BUSY;
  log_err("fio: cairn: %s\n", cairn_error_text());
  io_u->error = -taken;
  return FIO_Q_COMPLETED;
}

static int cairn_fio_getevents(struct thread_data* td, unsigned int count_min,
                               unsigned int count_max, const struct timespec* timeout) {
  struct cairn_fio_job* job = td->io_ops_data;
  const int wait_ms =
      timeout == NULL ? -1 : (int)(timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000);
  unsigned int taken = 0;
  if (count_max > td->o.iodepth) count_max = td->o.iodepth;
  do {
    const int wait = taken < count_min ? wait_ms : 0;
    const int count = cairn_wait(job->drive, job->done + taken, count_max - taken, wait);
    if (count < 0) return count;
    if (count == 0) break;
    taken += (unsigned int)count;
  } while (taken < count_min);
  return (int)taken;
}

static struct io_u* cairn_fio_event(struct thread_data* td, int event) {
  const struct cairn_fio_job* job = td->io_ops_data;
  const struct cairn_completion* done = &job->done[event];
  struct io_u* io_u = done->tag;
  io_u->error = -done->result;
  if (done->result < 0) log_err("fio: cairn: %s\n", done->text);
  return io_u;
}

/* There is nothing to open, to drop from a cache, or to remove. */
static int cairn_fio_nothing(struct thread_data* td, struct fio_file* file) {
  (void)td;
  (void)file;
  return 0;
}

struct ioengine_ops ioengine = {
    .name = "cairn",
    .version = FIO_IOOPS_VERSION,
    .flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_NODISKUTIL,
    .setup = cairn_fio_setup,
    .init = cairn_fio_init,
    .queue = cairn_fio_queue,
    .getevents = cairn_fio_getevents,
    .event = cairn_fio_event,
    .cleanup = cairn_fio_cleanup,
    .open_file = cairn_fio_nothing,
    .close_file = cairn_fio_nothing,
    .invalidate = cairn_fio_nothing,
    .option_struct_size = sizeof(struct cairn_fio_options),
    .options = cairn_fio_options,
};
