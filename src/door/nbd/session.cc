// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/session.h"

#include <algorithm>
#include <utility>

#include "door/nbd/reply.h"
#include "task/deadline.h"

namespace cairn::door::nbd {

namespace {

// How long a client may take to end its side when we have ended ours.
constexpr Duration kFarewell = 1_s;

BufferPoolOptions memory_of_session() {
  return {.classes = {{4096, kRequestsMax}, {65536, 16}, {kPieceMax + kBlockMax, 8}}};
}

NbdRequest decode(const RequestHeader& header) {
  return {.flags = header.flags,
          .command = static_cast<Command>(static_cast<uint16_t>(header.command)),
          .cookie = header.cookie,
          .offset = header.offset,
          .length = header.length};
}

bool writes(Command command) {
  return command == Command::kWrite || command == Command::kTrim ||
         command == Command::kWriteZeroes;
}

// The flags that a command may carry; FUA means nothing to those that do not write.
uint16_t flags_of(Command command, bool structured) {
  switch (command) {
    case Command::kRead:
      return structured ? kFlagFua | kFlagDf : kFlagFua;
    case Command::kWriteZeroes:
      return kFlagFua | kFlagNoHole | kFlagFastZero;
    case Command::kBlockStatus:
      return kFlagFua | kFlagReqOne;
    default:
      return kFlagFua;
  }
}

}  // namespace

Session::Session(env::Env& env, env::Stream& stream, stream::Receiver& receiver,
                 const Agreement& agreement, const NbdOptions& options)
    : env_(env),
      stream_(stream),
      receiver_(receiver),
      agreement_(agreement),
      export_(*agreement.served),
      stall_(options.stall_timeout),
      pool_(memory_of_session()),
      buffers_(env, pool_),
      outbox_(env, stream, options.stall_timeout),
      slots_(kRequestsMax),
      last_request_(env.now()) {}

std::optional<Time> Session::idle_since() const {
  if (slots_.available() < kRequestsMax || !receiver_.bytes().empty()) return std::nullopt;
  return last_request_;
}

void Session::stop() {
  reading_.request();
  stream_.reset();
}

task::Task<void> Session::run() {
  task::Task<void> writer = outbox_.run();
  Result<bool> more = true;
  while (more && *more) more = co_await take_request();
  co_await requests_.close();
  outbox_.close();
  co_await writer;
  if (!reading_.requested()) co_return;
  // Requests that were not taken any more would reset the connection, and with it the last replies.
  const Result<void> finished = stream_.finish();
  if (!finished) co_return;
  task::Deadline farewell(env_, env_.now() + kFarewell);
  for (Result<void> left; left;) left = co_await receiver_.skip(1, farewell.token());
}

task::Task<Result<bool>> Session::take_request() {
  if (receiver_.bytes().empty()) {
    const Result<void> came = co_await receiver_.more(reading_.token());
    if (!came) co_return fail(came.error());
  }
  if (receiver_.bytes().size() < sizeof(RequestHeader)) {
    task::Deadline deadline(env_, env_.now() + stall_, reading_.token());
    const Result<void> came = co_await receiver_.wait_for(sizeof(RequestHeader), deadline.token());
    if (!came) co_return fail(came.error());
  }
  if (reading_.requested()) co_return false;
  const auto header = load<RequestHeader>(receiver_.bytes());
  if (header.magic != kRequestMagic) co_return fail(Errc::kInvalid, "not an NBD request");
  receiver_.take(sizeof(header));
  const NbdRequest request = decode(header);
  if (request.command == Command::kDisconnect) co_return false;
  const Result<void> slot = co_await slots_.acquire(1, reading_.token());
  if (!slot) co_return fail(slot.error());
  if (request.command != Command::kWrite) {
    requests_.spawn(serve(request));
    co_return true;
  }
  const Result<void> taken = co_await take_write(request);
  if (!taken) co_return fail(taken.error());
  co_return true;
}

task::Task<Result<void>> Session::take_write(NbdRequest request) {
  task::Deadline deadline(env_, env_.now() + stall_, reading_.token());
  if (request.length > kPayloadMax) {
    release_slot();
    co_return fail(Errc::kInvalid, "a write of more than the protocol's maximum");
  }
  const Outcome refusal = check(request);
  if (refusal.error != NbdError::kNone || request.length == 0) {
    const Result<void> skipped = co_await receiver_.skip(request.length, deadline.token());
    if (!skipped) {
      release_slot();
      co_return skipped;
    }
    requests_.spawn(answer_outcome(request, refusal));
    co_return Result<void>{};
  }
  if (export_.piece_of(request.offset, request.length) < request.length) {
    const Result<void> taken = co_await take_pieces(request);
    co_return taken;
  }
  const BlockSpan span = export_.span_of(request.offset, request.length);
  Result<Buffer> room =
      co_await buffers_.allocate(export_.room_of(span), kBufferTimeout, reading_.token());
  Result<void> came;
  if (room) {
    const MutableBytes payload = room->subspan(span.head, request.length);
    came = co_await receiver_.read_into(payload, deadline.token());
  } else {
    came = fail(room.error());
  }
  if (!came) {
    release_slot();
    co_return came;
  }
  requests_.spawn(serve_write(request, std::move(*room)));
  co_return Result<void>{};
}

// A write larger than a piece is taken and written piece by piece. After an error the rest is still
// taken, for the next request stands behind it.
task::Task<Result<void>> Session::take_pieces(NbdRequest request) {
  Result<void> done;
  Result<void> came;
  {
    Result<Buffer> room =
        co_await buffers_.allocate(kPieceMax + kBlockMax, kBufferTimeout, reading_.token());
    if (!room) came = fail(room.error());
    for (uint32_t at = 0; at < request.length && came;) {
      task::Deadline deadline(env_, env_.now() + stall_, reading_.token());
      const uint64_t offset = request.offset + at;
      const size_t length = export_.piece_of(offset, request.length - at);
      const BlockSpan span = export_.span_of(offset, length);
      came = co_await receiver_.read_into(room->subspan(span.head, length), deadline.token());
      if (came && done) {
        done = co_await export_.write(span, room->bytes(), length, request.has(kFlagFua));
      }
      at += static_cast<uint32_t>(length);
    }
  }
  buffers_.released();
  if (!came) {
    release_slot();
    co_return came;
  }
  requests_.spawn(answer(request, done));
  co_return Result<void>{};
}

Session::Outcome Session::check(const NbdRequest& request) const {
  const bool known = request.command <= Command::kBlockStatus;
  if (!known) return {NbdError::kInvalid, "this server has no such command"};
  if ((request.flags & ~flags_of(request.command, agreement_.structured)) != 0) {
    return {NbdError::kInvalid, "a flag that this command does not have"};
  }
  if (writes(request.command) && export_.options().read_only) {
    return {NbdError::kPerm, "the export is read-only"};
  }
  if (request.command == Command::kFlush) return {};
  if (!export_.has(request.offset, request.length)) {
    const bool grows =
        request.command == Command::kWrite || request.command == Command::kWriteZeroes;
    return {grows ? NbdError::kNoSpace : NbdError::kInvalid, "the range is past the end"};
  }
  if (request.command == Command::kRead) {
    if (request.length > kPayloadMax) return {NbdError::kInvalid, "a read of more than 32 MiB"};
    if (request.has(kFlagDf) && request.length > kPieceMax) {
      return {NbdError::kOverflow, "more than fits into one chunk"};
    }
  }
  if (request.command == Command::kBlockStatus) {
    if (!agreement_.allocation) return {NbdError::kInvalid, "no metadata context was agreed on"};
    if (request.length == 0) return {NbdError::kInvalid, "the status of nothing"};
  }
  return {};
}

task::Task<void> Session::serve(NbdRequest request) {
  const Outcome refusal = check(request);
  if (refusal.error != NbdError::kNone) {
    co_await answer_outcome(request, refusal);
    co_return;
  }
  Result<void> done;
  const bool durable = request.has(kFlagFua);
  switch (request.command) {
    case Command::kRead:
      co_await serve_read(request);
      co_return;
    case Command::kBlockStatus:
      co_await serve_status(request);
      co_return;
    case Command::kFlush:
      done = co_await export_.flush();
      break;
    case Command::kTrim:
      done = co_await export_.trim(request.offset, request.length, durable);
      break;
    case Command::kCache:
      done = co_await warm(request);
      break;
    default: {
      const ZeroOptions options{.durable = durable,
                                .keep_space = request.has(kFlagNoHole),
                                .fast = request.has(kFlagFastZero)};
      done = co_await export_.write_zeroes(request.offset, request.length, options, buffers_);
      break;
    }
  }
  co_await answer(request, done);
}

task::Task<void> Session::serve_write(NbdRequest request, Buffer room) {
  const BlockSpan span = export_.span_of(request.offset, request.length);
  const Result<void> done =
      co_await export_.write(span, room.bytes(), request.length, request.has(kFlagFua));
  room = {};
  buffers_.released();
  co_await answer(request, done);
}

// Reads what the client will want soon, so that whatever caches below has it.
task::Task<Result<void>> Session::warm(NbdRequest request) {
  Result<void> done;
  {
    Result<Buffer> room = co_await buffers_.allocate(kPieceMax, kBufferTimeout, reading_.token());
    if (!room) co_return fail(room.error());
    for (uint64_t at = 0; at < request.length && done;) {
      const uint64_t offset = request.offset + at;
      const size_t length = export_.piece_of(offset, request.length - at);
      const BlockSpan span = export_.span_of(offset, length);
      done = co_await export_.read(span, room->first(span.bytes));
      at += length;
    }
  }
  buffers_.released();
  co_return done;
}

task::Task<void> Session::answer(NbdRequest request, Result<void> done) {
  return answer_outcome(
      request, done ? Outcome{} : Outcome{nbd_error(done.error().code()), done.error().what()});
}

// Commands that carry no data back may be answered in the short form always.
task::Task<void> Session::answer_outcome(NbdRequest request, Outcome outcome) {
  Result<void> sent;
  const bool speaks = agreement_.structured && outcome.error != NbdError::kNone;
  const bool must_be_chunk = agreement_.structured && (request.command == Command::kRead ||
                                                       request.command == Command::kBlockStatus);
  if (speaks || must_be_chunk) {
    const ErrorReply reply(request.cookie, outcome.error, outcome.why);
    sent = co_await outbox_.send({reply.head(), reply.text()});
  } else {
    const SimpleReply reply{.error = static_cast<uint32_t>(outcome.error),
                            .cookie = request.cookie};
    sent = co_await outbox_.send({bytes_of(reply)});
  }
  if (!sent) reading_.request();
  release_slot();
}

void Session::release_slot() {
  slots_.release();
  last_request_ = env_.now();
}

}  // namespace cairn::door::nbd
