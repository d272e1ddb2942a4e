/* SPDX-License-Identifier: Apache-2.0
 * A C program that uses libcairn as anybody would: each drive named on the command line is written,
 * read, compared, discarded, and used by many requests at once through an event loop. */
#include <cairn.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                               \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, cairn_error_text()); \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

enum { kDepth = 32, kRequests = 500 };

static void one_after_the_other(cairn_drive* drive, const struct cairn_info* info) {
  const size_t length = 2 * (size_t)info->block_size;
  unsigned char* out = malloc(length);
  unsigned char* in = malloc(length);
  memset(out, 0x5a, length);
  MUST(cairn_write(drive, info->block_size, out, length) == 0);
  MUST(cairn_flush(drive) == 0);
  MUST(cairn_read(drive, info->block_size, in, length) == 0);
  MUST(memcmp(in, out, length) == 0);
  MUST(cairn_compare(drive, info->block_size, out, length) == 0);
  out[length - 1] ^= 1;
  MUST(cairn_compare(drive, info->block_size, out, length) == -EILSEQ);
  MUST(cairn_write_zeroes(drive, info->block_size, info->block_size) == 0);
  MUST(cairn_discard(drive, 2 * (uint64_t)info->block_size, info->block_size) == 0);
  MUST(cairn_read(drive, info->block_size, in, length) == 0);
  for (size_t i = 0; i < length; ++i) MUST(in[i] == 0);
  free(out);
  free(in);
}

static void mistakes(cairn_drive* drive, const struct cairn_info* info) {
  char block[512] = {0};
  MUST(cairn_read(drive, 1, block, sizeof block) == -EINVAL);
  MUST(strstr(cairn_error_text(), "multiples of the drive's block") != NULL);
  char* memory = malloc(info->block_size);
  MUST(cairn_read(drive, info->bytes, memory, info->block_size) == -EINVAL);
  free(memory);
  MUST(cairn_read(NULL, 0, block, sizeof block) == -EINVAL);
  const struct cairn_request unknown = {.kind = 77};
  MUST(cairn_submit(drive, &unknown, 1) == -EINVAL);
  MUST(cairn_submit(drive, NULL, 1) == -EINVAL);
  MUST(cairn_poll(drive, NULL, 1) == -EINVAL);
}

/* Larger than any drive takes at once. */
static void a_long_one(cairn_drive* drive) {
  const size_t length = 5u << 20;
  unsigned char* out = malloc(length);
  unsigned char* in = malloc(length);
  for (size_t i = 0; i < length; ++i) out[i] = (unsigned char)(i * 7 + i / 4096);
  MUST(cairn_write(drive, 4096, out, length) == 0);
  MUST(cairn_read(drive, 4096, in, length) == 0);
  MUST(memcmp(in, out, length) == 0);
  free(out);
  free(in);
}

struct job {
  unsigned char* memory;
  struct iovec pieces[2];
  uint64_t block;
  int is_read;
};

static void start(cairn_drive* drive, struct job* job, const struct cairn_info* info) {
  job->pieces[0] = (struct iovec){job->memory, 100};
  job->pieces[1] = (struct iovec){job->memory + 100, info->block_size - 100};
  const struct cairn_request request = {.kind = job->is_read ? CAIRN_READ : CAIRN_WRITE,
                                        .flags = job->is_read ? 0 : CAIRN_DURABLE,
                                        .offset = job->block * info->block_size,
                                        .iov = job->pieces,
                                        .iov_count = 2,
                                        .tag = job};
  MUST(cairn_submit(drive, &request, 1) == 1);
}

/* Each job writes its own blocks, reads them back, and goes on. */
static void many_at_once(cairn_drive* drive, const struct cairn_info* info) {
  struct job jobs[kDepth];
  int started = 0;
  int done = 0;
  for (int i = 0; i < kDepth; ++i) {
    jobs[i] = (struct job){.memory = malloc(info->block_size), .block = (uint64_t)i};
    memset(jobs[i].memory, i + 1, info->block_size);
    start(drive, &jobs[i], info);
    ++started;
  }
  struct pollfd event = {.fd = cairn_event_fd(drive), .events = POLLIN};
  MUST(event.fd >= 0);
  while (done < started) {
    MUST(poll(&event, 1, 30000) == 1);
    struct cairn_completion completions[8];
    const int count = cairn_poll(drive, completions, 8);
    MUST(count > 0);
    for (int i = 0; i < count; ++i) {
      struct job* job = completions[i].tag;
      ++done;
      MUST(completions[i].result == 0 && completions[i].text == NULL);
      if (job->is_read) {
        for (uint32_t at = 0; at < info->block_size; ++at) {
          MUST(job->memory[at] == (unsigned char)(job->block % kDepth + 1));
        }
        job->block += kDepth;
      } else {
        memset(job->memory, 0, info->block_size);
      }
      job->is_read = !job->is_read;
      if (!job->is_read) memset(job->memory, (int)(job->block % kDepth) + 1, info->block_size);
      if (started == kRequests) continue;
      start(drive, job, info);
      ++started;
    }
  }
  MUST(poll(&event, 1, 0) == 0);
  struct cairn_completion none;
  MUST(cairn_poll(drive, &none, 1) == 0);
  MUST(cairn_wait(drive, &none, 1, 1) == 0);
  for (int i = 0; i < kDepth; ++i) free(jobs[i].memory);
}

/* A child has no part in its parent's drives, but may open its own. */
static void fork_and_use(cairn_drive* drive) {
  const pid_t child = fork();
  if (child == 0) {
    cairn_drive* own = NULL;
    char block[4096] = {0};
    if (cairn_read(drive, 0, block, sizeof block) != -ESRCH) _exit(2);
    if (cairn_size(drive) != -ESRCH) _exit(3);
    cairn_close(drive);
    if (cairn_open("mem:size=1M", NULL, &own) != 0) _exit(4);
    if (cairn_write(own, 0, block, sizeof block) != 0) _exit(5);
    cairn_close(own);
    _exit(0);
  }
  int status = 0;
  MUST(waitpid(child, &status, 0) == child);
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void use(const char* name, uint32_t io) {
  const struct cairn_options options = {.size = sizeof options, .io = io, .depth = 64};
  cairn_drive* drive = NULL;
  MUST(cairn_open(name, &options, &drive) == 0);
  struct cairn_info info;
  MUST(cairn_get_info(drive, &info, sizeof info) == 0);
  MUST(info.block_size >= 512 && info.bytes >= (8u << 20) && info.max_bytes >= (1u << 20));
  MUST(cairn_size(drive) == (int64_t)info.bytes);
  one_after_the_other(drive, &info);
  mistakes(drive, &info);
  a_long_one(drive);
  many_at_once(drive, &info);
  fork_and_use(drive);
  one_after_the_other(drive, &info);
  cairn_close(drive);
}

static void resize_is_reported(void) {
  const struct cairn_options options = {.size = sizeof options, .report_resize = 1};
  cairn_drive* drive = NULL;
  MUST(cairn_open("mem:size=1M", &options, &drive) == 0);
  MUST(cairn_resize(drive, 1) == -EINVAL);
  MUST(cairn_resize(drive, 2u << 20) == 0);
  MUST(cairn_size(drive) == 2 << 20);
  struct cairn_completion told;
  MUST(cairn_wait(drive, &told, 1, 30000) == 1);
  MUST(told.kind == CAIRN_RESIZED && told.result == 0 && told.tag == NULL);
  MUST(cairn_poll(drive, &told, 1) == 0);
  cairn_close(drive);
}

static void what_does_not_open(void) {
  cairn_drive* drive = NULL;
  MUST(cairn_open("limit(mem:size=1M, colour=red)", NULL, &drive) == -EINVAL);
  MUST(drive == NULL);
  MUST(strstr(cairn_error_text(), "limit has no option 'colour'") != NULL);
  MUST(cairn_open("file:/nowhere/at/all", NULL, &drive) == -EIO);
  MUST(strstr(cairn_error_text(), "/nowhere/at/all") != NULL);
  MUST(cairn_open(NULL, NULL, &drive) == -EINVAL);
  const struct cairn_options odd = {.size = sizeof odd, .io = 9};
  MUST(cairn_open("mem:size=1M", &odd, &drive) == -EINVAL);
  cairn_close(NULL);
}

/* No more than fit are taken, and those that were complete. */
static void depth_is_a_limit(void) {
  const struct cairn_options options = {.size = sizeof options, .depth = 4};
  cairn_drive* drive = NULL;
  MUST(cairn_open("mem:size=1M", &options, &drive) == 0);
  struct cairn_request requests[6] = {{.kind = CAIRN_FLUSH}, {.kind = CAIRN_FLUSH},
                                      {.kind = CAIRN_FLUSH}, {.kind = CAIRN_FLUSH},
                                      {.kind = CAIRN_FLUSH}, {.kind = CAIRN_FLUSH}};
  MUST(cairn_submit(drive, requests, 6) == 4);
  MUST(cairn_submit(drive, requests, 1) == -EAGAIN);
  struct cairn_completion told[6];
  int taken = 0;
  while (taken < 4) taken += cairn_wait(drive, told, 6, 30000);
  MUST(taken == 4);
  MUST(cairn_submit(drive, requests, 1) == 1);
  cairn_close(drive);
}

/* Tells each new size of a drive until its standard input ends. */
static int watch(const char* name) {
  const struct cairn_options options = {.size = sizeof options, .report_resize = 1};
  cairn_drive* drive = NULL;
  MUST(cairn_open(name, &options, &drive) == 0);
  struct pollfd events[2] = {{.fd = cairn_event_fd(drive), .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};
  printf("watching %lld\n", (long long)cairn_size(drive));
  fflush(stdout);
  while (poll(events, 2, -1) > 0 && events[1].revents == 0) {
    struct cairn_completion told;
    MUST(cairn_poll(drive, &told, 1) == 1);
    MUST(told.kind == CAIRN_RESIZED);
    printf("now %lld\n", (long long)cairn_size(drive));
    fflush(stdout);
  }
  cairn_close(drive);
  return 0;
}

int main(int count, char** names) {
  if (count == 3 && strcmp(names[1], "watch") == 0) return watch(names[2]);
  what_does_not_open();
  depth_is_a_limit();
  resize_is_reported();
  for (int i = 1; i < count; ++i) {
    use(names[i], CAIRN_IO_AUTO);
    use(names[i], CAIRN_IO_EPOLL);
  }
  printf("cairn %x used %d drives\n", (unsigned)cairn_version(), count - 1);
  return 0;
}
