// SPDX-License-Identifier: Apache-2.0
// What carries data back.
#include <algorithm>
#include <utility>

#include "door/nbd/reply.h"
#include "door/nbd/session.h"

namespace cairn::door::nbd {

namespace {

// A run of zeroes inside data that is worth a chunk of its own.
constexpr size_t kHoleMin = 32UL * 1024;

// The next run of bytes to be told as one: zeroes or not.
struct Run {
  size_t length = 0;
  bool is_hole = false;
};

Run next_run(Bytes data) {
  Run run{.length = data.size(), .is_hole = is_zero(data)};
  if (run.is_hole) return run;
  for (size_t at = 0; at < data.size(); at = run.length) {
    const size_t step = std::min(kHoleMin, data.size() - at);
    const bool is_hole = step == kHoleMin && is_zero(data.subspan(at, step));
    if (at > 0 && is_hole != run.is_hole) break;
    run = {.length = at + step, .is_hole = is_hole};
  }
  return run;
}

}  // namespace

task::Task<void> Session::serve_read(NbdRequest request) {
  if (request.length == 0) {
    co_await answer(request, {});
    co_return;
  }
  // One buffer serves all pieces: whoever waited for a second one while others wait for this reply
  // to end would wait for ever.
  const size_t piece = export_.piece_of(request.offset, request.length);
  const bool whole = piece == request.length;
  const size_t size = whole ? export_.span_of(request.offset, piece).bytes : kPieceMax;
  Result<void> sent;
  {
    Result<Buffer> room = co_await buffers_.allocate(size, kBufferTimeout, {});
    if (!room) {
      co_await answer(request, fail(room.error()));
      co_return;
    }
    if (agreement_.structured) {
      sent = co_await read_chunks(request, room->bytes());
    } else {
      sent = co_await read_plain(request, room->bytes());
    }
  }
  buffers_.released();
  if (!sent) reading_.request();
  release_slot();
}

task::Task<Result<void>> Session::read_chunks(NbdRequest request, MutableBytes room) {
  for (uint64_t at = 0; at < request.length;) {
    const uint64_t offset = request.offset + at;
    const size_t length = export_.piece_of(offset, request.length - at);
    const BlockSpan span = export_.span_of(offset, length);
    const Result<void> got = co_await export_.read(span, room.first(span.bytes));
    if (!got) {
      const Result<void> told = co_await tell_failed_read(request, offset, got.error());
      co_return told;
    }
    at += length;
    const bool is_last = at == request.length;
    const Result<void> sent =
        co_await send_data(request, offset, room.subspan(span.head, length), is_last);
    if (!sent) co_return sent;
  }
  co_return Result<void>{};
}

task::Task<Result<void>> Session::tell_failed_read(NbdRequest request, uint64_t offset,
                                                   Error error) {
  struct Reply {
    ChunkHeader chunk;
    ChunkErrorOffset body;
  };
  const auto number = static_cast<uint32_t>(nbd_error(error.code()));
  const Reply reply{chunk(request.cookie, ChunkType::kErrorOffset, sizeof(ChunkErrorOffset), true),
                    {.error = {.error = number, .message_length = 0}, .offset = offset}};
  const Result<void> sent = co_await outbox_.send({bytes_of(reply)});
  co_return sent;
}

// Data as it is, with long runs of zeroes told as holes unless the client wants one piece.
task::Task<Result<void>> Session::send_data(NbdRequest request, uint64_t offset, Bytes data,
                                            bool is_last) {
  while (!data.empty()) {
    const Run run = request.has(kFlagDf) ? Run{data.size(), false} : next_run(data);
    const bool ends = is_last && run.length == data.size();
    Result<void> sent;
    if (run.is_hole) {
      struct {
        ChunkHeader chunk;
        OffsetHole hole;
      } const reply{chunk(request.cookie, ChunkType::kOffsetHole, sizeof(OffsetHole), ends),
                    {.offset = offset, .length = static_cast<uint32_t>(run.length)}};
      sent = co_await outbox_.send({bytes_of(reply)});
    } else {
      const auto size = static_cast<uint32_t>(sizeof(Be64) + run.length);
      struct {
        ChunkHeader chunk;
        Be64 offset;
      } const reply{chunk(request.cookie, ChunkType::kOffsetData, size, ends), offset};
      sent = co_await outbox_.send({bytes_of(reply), data.first(run.length)});
    }
    if (!sent) co_return sent;
    offset += run.length;
    data = data.subspan(run.length);
  }
  co_return Result<void>{};
}

// The header says whether all went well, and comes first: once it is out, a failure can only be
// told by ending the connection.
task::Task<Result<void>> Session::read_plain(NbdRequest request, MutableBytes room) {
  for (uint64_t at = 0; at < request.length;) {
    const uint64_t offset = request.offset + at;
    const size_t length = export_.piece_of(offset, request.length - at);
    const BlockSpan span = export_.span_of(offset, length);
    const Result<void> got = co_await export_.read(span, room.first(span.bytes));
    if (!got && at > 0) {
      stream_.reset();
      co_return got;
    }
    const NbdError error = got ? NbdError::kNone : nbd_error(got.error().code());
    const SimpleReply reply{.error = static_cast<uint32_t>(error), .cookie = request.cookie};
    if (!got) {
      const Result<void> told = co_await outbox_.send({bytes_of(reply)});
      co_return told;
    }
    const bool is_first = at == 0;
    at += length;
    const bool is_last = at == request.length;
    const Part part = is_first ? (is_last ? Part::kWhole : Part::kFirst)
                               : (is_last ? Part::kLast : Part::kMiddle);
    const Result<void> sent = co_await outbox_.send(
        {is_first ? bytes_of(reply) : Bytes{}, room.subspan(span.head, length)}, part);
    if (!sent) co_return sent;
  }
  co_return Result<void>{};
}

}  // namespace cairn::door::nbd
