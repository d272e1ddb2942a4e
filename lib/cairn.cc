// SPDX-License-Identifier: Apache-2.0
// The functions of cairn.h: what comes in is checked, what goes out is an errno and a sentence, and
// no exception passes.
#include <cairn.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "lib/errors.h"
#include "lib/handle.h"

namespace cairn::capi {

namespace {

thread_local std::string last_text;

int refuse(int error, std::string text) {
  last_text = std::move(text);
  return -error;
}
int refuse(const Error& error) { return refuse(errno_of(error), error.text()); }

// A cairn_drive is nothing else than a Handle that C cannot look into.
Handle* handle_of(cairn_drive* drive) { return reinterpret_cast<Handle*>(drive); }

// Runs `body(handle)`, which returns an int, on a drive that this process may use.
template <class Body>
int with(cairn_drive* drive, Body body) noexcept {
  if (drive == nullptr) return refuse(EINVAL, "the drive is NULL");
  if (!handle_of(drive)->is_here()) {
    return refuse(ESRCH, "the drive was opened before a fork: open it in this process");
  }
  try {
    return body(*handle_of(drive));
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

int run(cairn_drive* drive, const cairn_request& request) {
  return with(drive, [&](Handle& handle) {
    const Result<void> done = handle.run(request);
    return done ? 0 : refuse(done.error());
  });
}

int run_on(cairn_drive* drive, uint32_t kind, uint64_t offset, void* memory, size_t length) {
  const iovec piece{.iov_base = memory, .iov_len = length};
  return run(drive, {.kind = kind,
                     .flags = CAIRN_URGENT,
                     .offset = offset,
                     .length = length,
                     .iov = &piece,
                     .iov_count = 1});
}

// False: they make no sense.
bool read_options(const cairn_options* given, HandleOptions& options) {
  if (given == nullptr) return true;
  cairn_options known{};
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (given->size < sizeof known.size || given->size > 4096) return false;
  for (size_t i = sizeof known; i < given->size; ++i) {
    if (bytes[i] != 0) return false;  // asks for what this version does not know
  }
  std::memcpy(&known, given, std::min<size_t>(given->size, sizeof known));
  if (known.io > CAIRN_IO_EPOLL || known.depth > kDepthMax || known.cpu > 65536) return false;
  options.io = known.io;
  options.depth = known.depth == 0 ? kDepth : known.depth;
  options.report_resize = known.report_resize != 0;
  options.world.poll = known.poll != 0;
  if (known.cpu != 0) options.world.cpus = {static_cast<int>(known.cpu) - 1};
  return true;
}

}  // namespace

}  // namespace cairn::capi

using namespace cairn::capi;
using cairn::Result;

extern "C" {

int cairn_open(const char* stack, const cairn_options* given, cairn_drive** drive) {
  if (stack == nullptr || drive == nullptr) return refuse(EINVAL, "an argument is NULL");
  *drive = nullptr;
  try {
    HandleOptions options;
    if (!read_options(given, options)) {
      return refuse(EINVAL, "the options have a size or a value that this version does not know");
    }
    std::expected<std::unique_ptr<Handle>, Refusal> handle = Handle::open(stack, options);
    if (!handle) return refuse(handle.error().error, std::move(handle.error().text));
    *drive = reinterpret_cast<cairn_drive*>(handle->release());
    return 0;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::exception& thrown) {  // no thread can be started, for instance
    return refuse(EAGAIN, thrown.what());
  }
}

void cairn_close(cairn_drive* drive) {
  if (drive != nullptr) Handle::close(std::unique_ptr<Handle>(handle_of(drive)));
}

const char* cairn_error_text(void) { return last_text.c_str(); }

int cairn_get_info(cairn_drive* drive, cairn_info* info, size_t info_size) {
  return with(drive, [&](Handle& handle) {
    if (info == nullptr) return refuse(EINVAL, "the info is NULL");
    const cairn::drive::Geometry shape = handle.geometry();
    const auto in_bytes = [&](uint64_t blocks) {
      return static_cast<uint32_t>(std::min<uint64_t>(blocks * shape.block_size, UINT32_MAX));
    };
    const cairn_info all{.bytes = shape.bytes(),
                         .block_size = shape.block_size,
                         .optimal_bytes = in_bytes(shape.optimal_blocks),
                         .atomic_bytes = in_bytes(shape.atomic_blocks),
                         .discard_bytes = in_bytes(shape.discard_blocks),
                         .max_bytes = kTransferMax,
                         .volatile_cache = shape.volatile_cache ? 1u : 0u};
    std::memset(info, 0, info_size);
    std::memcpy(info, &all, std::min(info_size, sizeof all));
    return 0;
  });
}

int64_t cairn_size(cairn_drive* drive) {
  int64_t bytes = 0;
  const int done = with(drive, [&](Handle& handle) {
    bytes = static_cast<int64_t>(handle.geometry().bytes());
    return 0;
  });
  return done < 0 ? done : bytes;
}

int cairn_resize(cairn_drive* drive, uint64_t bytes) {
  return with(drive, [&](Handle& handle) {
    const Result<void> done = handle.resize(bytes);
    return done ? 0 : refuse(done.error());
  });
}

int cairn_read(cairn_drive* drive, uint64_t offset, void* into, size_t length) {
  return run_on(drive, CAIRN_READ, offset, into, length);
}
int cairn_write(cairn_drive* drive, uint64_t offset, const void* from, size_t length) {
  return run_on(drive, CAIRN_WRITE, offset, const_cast<void*>(from), length);
}
int cairn_compare(cairn_drive* drive, uint64_t offset, const void* with_bytes, size_t length) {
  return run_on(drive, CAIRN_COMPARE, offset, const_cast<void*>(with_bytes), length);
}
int cairn_flush(cairn_drive* drive) { return run(drive, {.kind = CAIRN_FLUSH}); }
int cairn_discard(cairn_drive* drive, uint64_t offset, uint64_t length) {
  return run(drive, {.kind = CAIRN_DISCARD, .offset = offset, .length = length});
}
int cairn_write_zeroes(cairn_drive* drive, uint64_t offset, uint64_t length) {
  return run(drive, {.kind = CAIRN_WRITE_ZEROES, .offset = offset, .length = length});
}

int cairn_submit(cairn_drive* drive, const cairn_request* requests, uint32_t count) {
  return with(drive, [&](Handle& handle) {
    if (requests == nullptr && count > 0) return refuse(EINVAL, "the requests are NULL");
    const Result<uint32_t> taken = handle.submit(requests, std::min<uint32_t>(count, INT32_MAX));
    return taken ? static_cast<int>(*taken) : refuse(taken.error());
  });
}

int cairn_poll(cairn_drive* drive, cairn_completion* into, uint32_t max) {
  return cairn_wait(drive, into, max, 0);
}

int cairn_wait(cairn_drive* drive, cairn_completion* into, uint32_t max, int timeout_ms) {
  return with(drive, [&](Handle& handle) {
    if (into == nullptr || max == 0) return refuse(EINVAL, "there is no room for completions");
    return static_cast<int>(handle.wait(into, std::min<uint32_t>(max, INT32_MAX), timeout_ms));
  });
}

int cairn_event_fd(cairn_drive* drive) {
  return with(drive, [](Handle& handle) { return handle.event_fd(); });
}

uint32_t cairn_version(void) { return CAIRN_VERSION_NUMBER; }

}  // extern "C"
