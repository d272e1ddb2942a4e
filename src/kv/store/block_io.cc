// SPDX-License-Identifier: Apache-2.0
#include "kv/store/block_io.h"

#include <algorithm>

#include "task/deadline.h"

namespace cairn::kv::store {

using drive::Request;
using task::Task;

Task<Result<void>> BlockIo::run(Request request, MutableBytes memory) {
  const uint64_t end = request.lba.value() + memory.size() / block_bytes();
  while (!memory.empty()) {
    request.blocks = std::min(blocks_max_, end - request.lba.value());
    const MutableBytes piece = memory.first(request.blocks * block_bytes());
    task::Deadline deadline(env_, env_.now() + timeout_);
    const Result<void> done = co_await drive_.submit(request, {&piece, 1}, {}, deadline.token());
    if (!done) co_return done;
    memory = memory.subspan(piece.size());
    request.lba = Lba(request.lba.value() + request.blocks);
    if (request.kind == Request::Kind::kRead) {
      ++stats_.reads;
      stats_.bytes_read += piece.size();
    } else {
      ++stats_.writes;
      stats_.bytes_written += piece.size();
    }
  }
  co_return Result<void>();
}

Task<Result<void>> BlockIo::read(uint64_t block, MutableBytes into) {
  return run({.kind = Request::Kind::kRead, .lba = Lba(block)}, into);
}

Task<Result<void>> BlockIo::write(uint64_t block, Bytes from, bool is_durable) {
  const Request request{.kind = Request::Kind::kWrite, .durable = is_durable, .lba = Lba(block)};
  return run(request, {const_cast<std::byte*>(from.data()), from.size()});
}

Task<Result<void>> BlockIo::flush() {
  task::Deadline deadline(env_, env_.now() + timeout_);
  const Result<void> done = co_await drive_.flush(deadline.token());
  if (done) ++stats_.flushes;
  co_return done;
}

}  // namespace cairn::kv::store
