// SPDX-License-Identifier: Apache-2.0
#include "raw/raw_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "nvme/format/copy_format.h"
#include "nvme/format/io_format.h"
#include "nvme/format/tcp_format.h"
#include "task/deadline.h"
#include "testing/worlds/verbs.h"

namespace cairn::raw_tests {

using nvme::IoOpcode;
using nvme::PduType;
using nvme::SglDescriptor;
using nvme::Sqe;
using nvme::Status;
using nvme::StatusCode;
using Outcome = History::Outcome;

namespace {

constexpr uint32_t kInCapsuleMax = 8192;
constexpr size_t kDataMax = 1 << 20;  // of a command
constexpr uint32_t kCommandsPerSend = 8;

// What a command may always end with here: others abort, and fence.
bool is_excuse(Status status) {
  return status.code() == StatusCode::kAbortRequested ||
         status.code() == StatusCode::kAbortedPreempt;
}
bool is_conflict(Status status) { return status.code() == StatusCode::kReservationConflict; }

void append(std::vector<std::byte>& to, const std::vector<std::byte>& bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

// --- connection ---------------------------------------------------------------------------------

task::Task<void> RawQueue::connect(env::Address to, const target_tests::RawHost& admin, uint16_t id,
                                   std::string nqn, nvme::IcReqOptions style) {
  co_await host_.dial(std::move(to));
  co_await host_.greet(style);
  const nvme::Cqe cqe =
      co_await host_.connect({.id = id,
                              .size = 63,
                              .controller = admin.controller_id,
                              .nqn = nqn,
                              .host_number = static_cast<uint8_t>(options_.host)});
  CHECK(cqe.get_status().ok(), "the box lets the queue in");
}

task::Task<void> RawQueue::run() {
  task::Task<void> receiver = receive_all();
  for (uint32_t round = 0; round < options_.rounds && !has_ended_; ++round) {
    const auto commands = static_cast<uint32_t>(rng_.between(1, kCommandsPerSend));
    co_await wait_for_room(2 * commands);
    std::vector<std::byte> bytes;
    for (uint32_t i = 0; i < commands; ++i) append(bytes, random_command());
    co_await send(std::move(bytes));
    if (rng_.bernoulli(0.3)) {
      const Duration pause{static_cast<int64_t>(rng_.below((1_ms).ns))};
      const Result<void> slept = co_await task::sleep_for(env_, pause);
      CHECK(slept.has_value());
    }
  }
  while (!pending_.empty() && !has_ended_) {
    changed_.reset();
    const Result<void> changed = co_await changed_.wait();
    CHECK(changed.has_value());
  }
  co_await answering_.close();
  is_ending_ = true;
  host_.stream->reset();
  co_await receiver;
}

task::Task<void> RawQueue::wait_for_room(uint32_t commands) {
  while ((is_held_ || pending_.size() + commands > options_.depth) && !has_ended_) {
    changed_.reset();
    const Result<void> changed = co_await changed_.wait();
    CHECK(changed.has_value());
  }
}

task::Task<void> RawQueue::send(std::vector<std::byte> bytes) {
  const Result<void> turn = co_await sending_.acquire();
  CHECK(turn.has_value());
  const Result<void> sent = co_await host_.send(bytes);
  if (!sent) history_.complain("a send failed: " + sent.error().text());
  sending_.release();
}

task::Task<void> RawQueue::receive_all() {
  for (;;) {
    const std::optional<target_tests::Received> pdu = co_await host_.receive();
    if (!pdu) break;
    take(*pdu);
    changed_.set();
    if (!history_.wrong().empty()) break;
  }
  if (!is_ending_) history_.complain("the target has ended a connection");
  has_ended_ = true;
  changed_.set();
}

std::optional<uint16_t> RawQueue::any_command() {
  if (pending_.empty()) return std::nullopt;
  return std::next(pending_.begin(), static_cast<ptrdiff_t>(rng_.below(pending_.size())))->first;
}

// --- commands -----------------------------------------------------------------------------------

std::vector<std::byte> RawQueue::random_command() {
  if (options_.only_pairs) return pair();
  const uint64_t draw = rng_.below(100);
  if (draw < 42) return read();
  if (draw < 72) return write();
  if (draw < 77) return compare();
  if (draw < 92) return pair();
  if (draw < 94) return lone_first();
  if (draw < 97) return copy();
  return flush();
}

// Mostly a few of a few blocks, so that commands meet.
History::Range RawQueue::random_range(uint32_t max) {
  const uint64_t draw = rng_.below(100);
  const uint64_t wish = draw < 80 ? 8 : draw < 96 ? 64 : 256;
  const auto count = static_cast<uint32_t>(rng_.between(1, std::min<uint64_t>(wish, max)));
  const uint64_t end = wish > 8 ? kWrittenBlocks : 24;
  return {.lba = rng_.below(end - std::min<uint64_t>(count, end - 1)), .count = count};
}

std::vector<std::byte> RawQueue::with_data(Sqe sqe, Pending pending) {
  const auto size = static_cast<uint32_t>(pending.data.size());
  const bool in_capsule = size <= kInCapsuleMax && !options_.only_pairs && rng_.bernoulli(0.5);
  pending.in_capsule = in_capsule;
  // A host may describe more than the command needs.
  if (!in_capsule && rng_.bernoulli(0.05)) {
    pending.data.resize(std::min<size_t>(size + kBlock * rng_.between(1, 256), kDataMax));
  }
  sqe.sgl1 = in_capsule ? SglDescriptor::in_capsule(size)
                        : SglDescriptor::transport(static_cast<uint32_t>(pending.data.size()));
  std::vector<std::byte> bytes = host_.capsule(sqe, in_capsule ? Bytes(pending.data) : Bytes());
  pending_[sqe.cid] = std::move(pending);
  return bytes;
}

std::vector<std::byte> RawQueue::read() {
  const History::Range range = random_range(256);
  const bool of_copy = rng_.bernoulli(0.05);
  Sqe sqe = host_.io(IoOpcode::kRead, range.lba + (of_copy ? kCopyAt : 0), range.count);
  sqe.sgl1 = SglDescriptor::transport(range.count * kBlock);
  pending_[sqe.cid] = {
      .kind = of_copy ? Kind::kReadCopy : Kind::kRead, .range = range, .begun = history_.now()};
  return host_.capsule(sqe);
}

std::vector<std::byte> RawQueue::write() {
  const History::Range range = random_range(256);
  const uint64_t value = history_.begin_write(range, options_.host);
  return with_data(host_.io(IoOpcode::kWrite, range.lba, range.count),
                   {.kind = Kind::kWrite,
                    .range = range,
                    .value = value,
                    .data = History::contents(value, range)});
}

std::vector<std::byte> RawQueue::compare() {
  const History::Range range = random_range(4);
  const uint64_t value = history_.last_value(range.lba);
  return with_data(host_.io(IoOpcode::kCompare, range.lba, range.count),
                   {.kind = Kind::kCompare,
                    .range = range,
                    .begun = history_.now(),
                    .value = value,
                    .data = History::contents(value, range)});
}

std::vector<std::byte> RawQueue::pair() {
  const History::Range range = random_range(options_.pair_blocks);
  const uint64_t expected = history_.last_value(range.lba);
  const uint64_t begun = history_.now();
  const uint64_t value = history_.begin_write(range, options_.host);
  Sqe first = host_.io(IoOpcode::kCompare, range.lba, range.count);
  first.set_fuse(nvme::Fuse::kFirst);
  Sqe second = host_.io(IoOpcode::kWrite, range.lba, range.count);
  second.set_fuse(nvme::Fuse::kSecond);
  std::vector<std::byte> bytes = with_data(first, {.kind = Kind::kFirst,
                                                   .range = range,
                                                   .begun = begun,
                                                   .value = expected,
                                                   .data = History::contents(expected, range),
                                                   .partner = second.cid});
  append(bytes, with_data(second, {.kind = Kind::kSecond,
                                   .range = range,
                                   .value = value,
                                   .data = History::contents(value, range),
                                   .partner = first.cid}));
  return bytes;
}

// The command behind it is not its second.
std::vector<std::byte> RawQueue::lone_first() {
  const History::Range range = random_range(1);
  Sqe sqe = host_.io(IoOpcode::kCompare, range.lba, range.count);
  sqe.set_fuse(nvme::Fuse::kFirst);
  std::vector<std::byte> bytes =
      with_data(sqe, {.kind = Kind::kLone, .range = range, .data = History::contents(0, range)});
  append(bytes, read());
  return bytes;
}

std::vector<std::byte> RawQueue::copy() {
  const History::Range range = random_range(256);
  Sqe sqe = Sqe::make(IoOpcode::kCopy, 1);
  nvme::CopyFields{.destination = Lba(kCopyAt + range.lba)}.encode(sqe);
  sqe.cid = host_.next_cid();
  nvme::CopyRange source;
  source.start = range.lba;
  source.blocks = static_cast<uint16_t>(range.count - 1);
  std::vector<std::byte> ranges(sizeof(source));
  store(ranges, source);
  return with_data(sqe, {.kind = Kind::kCopy, .range = range, .data = std::move(ranges)});
}

std::vector<std::byte> RawQueue::flush() {
  Sqe sqe = Sqe::make(IoOpcode::kFlush, 1);
  sqe.cid = host_.next_cid();
  pending_[sqe.cid] = {.kind = Kind::kFlush};
  return host_.capsule(sqe);
}

// --- answers ------------------------------------------------------------------------------------

void RawQueue::take(const target_tests::Received& pdu) {
  switch (pdu.type()) {
    case PduType::kCapsuleResp: {
      const auto cqe = pdu.as<nvme::CapsuleResp>().cqe;
      return complete(cqe.cid, cqe.get_status());
    }
    case PduType::kC2hData:
      return take_data(pdu);
    case PduType::kR2t:
      return take_r2t(pdu.as<nvme::R2t>());
    default:
      return history_.complain("the target sent a " + std::string(nvme::name(pdu.type())));
  }
}

void RawQueue::take_r2t(const nvme::R2t& r2t) {
  const auto found = pending_.find(r2t.cid);
  if (found == pending_.end() || r2t.offset + r2t.length > found->second.data.size()) {
    return history_.complain("an R2T for no command, or for more than it has");
  }
  Duration delay;
  if (rng_.bernoulli(0.4)) delay = {static_cast<int64_t>(rng_.below((3_ms).ns))};
  const Pending& pending = found->second;
  answering_.spawn(answer_r2t(r2t, pending.data, pending.begun, delay));
}

// In pieces of whole blocks. When the command has ended, its data may still be sent, or not.
task::Task<void> RawQueue::answer_r2t(nvme::R2t r2t, std::vector<std::byte> data, uint64_t begun,
                                      Duration delay) {
  if (delay > 0_s) {
    const Result<void> slept = co_await task::sleep_for(env_, delay);
    CHECK(slept.has_value());
    const auto found = pending_.find(r2t.cid);
    const bool has_gone = found == pending_.end() || found->second.begun != begun;
    if (has_gone && rng_.bernoulli(0.5)) co_return;
  }
  const uint32_t end = r2t.offset + r2t.length;
  for (uint32_t at = r2t.offset; at < end;) {
    uint32_t length = end - at;
    if (length > kBlock && rng_.bernoulli(0.4)) {
      length = kBlock * static_cast<uint32_t>(rng_.between(1, length / kBlock));
    }
    const nvme::DataPiece piece{.cid = r2t.cid, .ttag = r2t.ttag, .offset = at, .length = length};
    co_await send(host_.h2c_data(piece, Bytes(data).subspan(at, length), at + length == end));
    at += length;
  }
}

void RawQueue::take_data(const target_tests::Received& pdu) {
  const auto header = pdu.as<nvme::DataPdu>();
  const auto found = pending_.find(header.cid);
  const bool is_read = found != pending_.end() &&
                       (found->second.kind == Kind::kRead || found->second.kind == Kind::kReadCopy);
  if (!is_read || header.offset != found->second.data.size()) {
    return history_.complain("data for no read, or out of order");
  }
  append(found->second.data, std::vector<std::byte>(pdu.data().begin(), pdu.data().end()));
  if ((pdu.common.flags & nvme::PduFlags::kSuccess) != 0) complete(header.cid, Status());
}

void RawQueue::unexpected(const char* what, Status status) {
  history_.complain(fmt::format("a {} ended with {}", what, nvme::name(status.code())));
}

void RawQueue::complete(uint16_t cid, Status status) {
  const auto found = pending_.find(cid);
  if (found == pending_.end()) return history_.complain("an answer to nobody");
  ++answers_;
  Pending pending = std::move(found->second);
  pending_.erase(found);
  if (pending.kind != Kind::kFirst && pending.kind != Kind::kSecond) {
    return judge(pending, status);
  }
  pending.status = status;
  const auto other = pending_.find(pending.partner);
  const bool is_first = pending.kind == Kind::kFirst;
  if (other != pending_.end() && !other->second.status) {
    // Judged with the other one; it stays under that one's partner's name.
    pending_[cid] = std::move(pending);
    return;
  }
  CHECK(other != pending_.end(), "the other half waits here");
  const Pending half = std::move(other->second);
  pending_.erase(other);
  judge_pair(is_first ? pending : half, is_first ? half : pending);
}

void RawQueue::judge(const Pending& pending, Status status) {
  const bool is_fenced = is_excuse(status) || is_conflict(status);
  switch (pending.kind) {
    case Kind::kRead:
      if (status.ok()) return history_.check_read(pending.range, pending.begun, pending.data);
      return is_excuse(status) ? void() : unexpected("read", status);
    case Kind::kReadCopy:
      if (status.ok()) return history_.check_whole(pending.range, pending.data);
      return is_excuse(status) ? void() : unexpected("read", status);
    case Kind::kWrite:
      if (!status.ok() && !is_fenced) unexpected("write", status);
      return history_.end_write(pending.value, status.ok()           ? Outcome::kDone
                                               : is_conflict(status) ? Outcome::kRefused
                                                                     : Outcome::kInDoubt);
    case Kind::kCompare:
      if (status.ok())
        return history_.check_read(pending.range, pending.begun,
                                   Bytes(pending.data).first(size_t{pending.range.count} * kBlock));
      if (status.code() == StatusCode::kCompareFailure || is_excuse(status)) return;
      return unexpected("compare", status);
    case Kind::kLone:
      if (status.code() == StatusCode::kAbortedMissingFused || is_excuse(status)) return;
      return unexpected("first without a second", status);
    case Kind::kCopy:
      return status.ok() || is_fenced ? void() : unexpected("copy", status);
    default:
      return status.ok() || is_fenced ? void() : unexpected("flush", status);
  }
}

void RawQueue::judge_pair(const Pending& first, const Pending& second) {
  const Status compared = *first.status;
  const Status written = *second.status;
  if (compared.ok() && written.ok()) {
    history_.end_write(second.value, Outcome::kDone);
    return history_.check_swap(first.range, first.begun, first.value);
  }
  // Of a pair in doubt one half says why, the other that it went with it, or that it came when the
  // first was gone. A pair of which one half came in its capsule may find no buffer for the other.
  const bool is_mixed = first.in_capsule != second.in_capsule;
  const auto is_known = [is_mixed](Status status) {
    return is_excuse(status) || is_conflict(status) ||
           status.code() == StatusCode::kAbortedFailedFused ||
           status.code() == StatusCode::kAbortedMissingFused ||
           (is_mixed && status.code() == StatusCode::kCommandInterrupted);
  };
  const bool differs = compared.code() == StatusCode::kCompareFailure;
  if (compared.ok() || written.ok() || (!differs && !is_known(compared))) {
    unexpected("first of a pair", compared);
  }
  if (!is_known(written)) unexpected("second of a pair", written);
  const bool is_refused = differs || is_conflict(compared);
  history_.end_write(second.value, is_refused ? Outcome::kRefused : Outcome::kInDoubt);
}

}  // namespace cairn::raw_tests
