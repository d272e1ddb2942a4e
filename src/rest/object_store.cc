// SPDX-License-Identifier: Apache-2.0
#include "rest/object_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "rest/condition_trial.h"
#include "rest/status.h"
#include "task/deadline.h"

namespace cairn::rest {

namespace {

// One change meets at most so many others of ours that arrive late.
constexpr int kLateMax = 8;
// How often to see whether a change that was given up has happened; the pause before doubles.
constexpr int kLooksMax = 4;
constexpr Duration kFirstLook = 100_ms;

Result<void> check_body(const HttpAnswer& answer, uint64_t size, const ContentRange& wanted) {
  const uint64_t length = wanted.last - wanted.first + 1;
  if (answer.status() == 200) {
    if (answer.body_size == size && answer.stored == length) return {};
    return fail(Errc::kCorrupt, "an object has another size than those of this drive");
  }
  const std::optional<ContentRange>& range = answer.head.range;
  if (!range || range->first != wanted.first || range->last != wanted.last ||
      answer.body_size != length || answer.stored != length) {
    return fail(Errc::kCorrupt, "the HTTP server sent another range than it was asked for");
  }
  if (range->total && *range->total != size) {
    return fail(Errc::kCorrupt, "an object has another size than those of this drive");
  }
  return {};
}

bool same_bytes(std::span<const Bytes> pieces, Bytes whole) {
  for (const Bytes piece : pieces) {
    if (!std::ranges::equal(piece, whole.first(piece.size()))) return false;
    whole = whole.subspan(piece.size());
  }
  return whole.empty();
}

uint32_t checksum(std::span<const Bytes> pieces) {
  uint32_t sum = 0;
  for (const Bytes piece : pieces) sum = crc32c(piece, sum);
  return sum;
}

}  // namespace

std::string ObjectStore::target(uint64_t object) const {
  return fmt::format("{}/{:08x}", path_, object);
}

Version ObjectStore::recall(uint64_t object) const {
  const auto found = versions_.find(object);
  return found == versions_.end() ? Version() : found->second;
}

void ObjectStore::remember(uint64_t object, Version version) {
  if (!version.is_known()) {
    versions_.erase(object);
    return;
  }
  if (versions_.size() >= kVersionsMax && !versions_.contains(object)) {
    versions_.erase(versions_.begin());
  }
  versions_[object] = std::move(version);
}

Error ObjectStore::lose() {
  lost_ = true;
  return {Errc::kDenied,
          "another writer has this drive now, so nothing is changed here any more: open it again "
          "when the other is closed"};
}

task::Task<Result<std::optional<ObjectLabel>>> ObjectStore::read_label(task::CancelToken token) {
  std::array<std::byte, kLabelSize> bytes;
  const MutableBytes piece(bytes);
  const HttpRequest request{.target = label_target(), .into = {&piece, 1}};
  const Result<HttpAnswer> answer = co_await client_.send(request, token);
  if (!answer) co_return fail(answer.error());
  if (is_gone(answer->status())) {
    label_version_ = {.is_absent = true, .etag = ""};
    co_return std::optional<ObjectLabel>();
  }
  if (answer->status() != 200) co_return fail(error_of_status(answer->status()));
  if (answer->body_size != kLabelSize) {
    co_return fail(Errc::kCorrupt, "what is there is no label of a drive");
  }
  const Result<ObjectLabel> label = ObjectLabel::decode(bytes);
  if (!label) co_return fail(label.error());
  label_version_ = {.is_absent = false, .etag = answer->head.etag};
  co_return *label;
}

task::Task<Result<HttpAnswer>> ObjectStore::put_label(const ObjectLabel& label,
                                                      std::string condition) {
  const std::array<std::byte, kLabelSize> bytes = label.encode();
  const Bytes piece(bytes);
  const HttpRequest request{.method = Method::kPut,
                            .target = label_target(),
                            .fields = std::move(condition),
                            .body = {&piece, 1}};
  Result<HttpAnswer> answer = co_await client_.send(request);
  co_return answer;
}

task::Task<Result<void>> ObjectStore::take(const ObjectLabel& label) {
  id_ = label.id;
  owner_ = label.owner;
  Result<HttpAnswer> answer = co_await put_label(label, kNeverMatches);
  if (!answer) co_return fail(answer.error());
  conditional_ = answer->status() == 412;
  if (conditional_) {
    answer = co_await put_label(label, label_version_.condition());
    if (!answer) co_return fail(answer.error());
  }
  // 412 may be the answer to the second attempt of what the first one did.
  if (!is_success(answer->status()) && answer->status() != 412) {
    co_return fail(error_of_status(answer->status()));
  }
  const Result<std::optional<ObjectLabel>> now = co_await read_label({});
  if (!now) co_return fail(now.error());
  if (!*now || (*now)->owner != owner_) {
    co_return fail(Errc::kExists, "another opened this drive at the same time: try again");
  }
  checked_ = env_.now();
  if (conditional_) {
    const Result<bool> ordered = co_await conditions_order_changes(
        client_, fmt::format("{}/trial-{:016x}", path_, owner_[0]),
        std::as_bytes(std::span(owner_)));
    if (!ordered) co_return fail(ordered.error());
    ordered_ = *ordered;
  }
  co_return Result<void>{};
}

task::Task<Result<void>> ObjectStore::check_label(task::CancelToken token) {
  const uint64_t before = label_looks_;
  const Result<void> acquired = co_await label_turn_.acquire(1, token);
  if (!acquired) co_return acquired;
  const task::Units unit(label_turn_, 1);
  if (label_seen_ > before) co_return Result<void>{};
  const uint64_t look = ++label_looks_;
  const Result<void> seen = co_await see_label(token);
  if (seen) label_seen_ = look;
  co_return seen;
}

task::Task<Result<void>> ObjectStore::see_label(task::CancelToken token) {
  const Result<std::optional<ObjectLabel>> label = co_await read_label(token);
  if (!label) co_return fail(label.error());
  if (!*label) {
    co_return fail(Errc::kIo,
                   "the drive's label is gone from the HTTP server, so what is absent there is not "
                   "zeroes: bring its folder back");
  }
  if ((*label)->id != id_) {
    co_return fail(Errc::kIo,
                   "another drive's label is where this drive's was: bring its folder back, or "
                   "open the other one");
  }
  co_return Result<void>{};
}

task::Task<Result<void>> ObjectStore::check_owner(task::CancelToken token) {
  if (!lost_ && (check_ == 0_s || env_.now() - checked_ >= check_)) {
    const Time begun = env_.now();
    const Result<std::optional<ObjectLabel>> label = co_await read_label(token);
    if (!label) co_return fail(label.error());
    if (!*label || (*label)->owner != owner_) lost_ = true;
    checked_ = begun;
  }
  if (lost_) co_return fail(lose());
  co_return Result<void>{};
}

task::Task<Result<Version>> ObjectStore::read(uint64_t object, uint64_t size, uint64_t offset,
                                              std::span<const MutableBytes> into,
                                              task::CancelToken token) {
  const ContentRange wanted{.first = offset, .last = offset + total_size(into) - 1, .total = {}};
  HttpRequest request{.target = target(object), .into = into, .skip = offset};
  if (total_size(into) < size) {
    request.fields = fmt::format("Range: bytes={}-{}\r\n", wanted.first, wanted.last);
  }
  ++counters_.gets;
  const Result<HttpAnswer> answer = co_await client_.send(request, token);
  if (!answer) co_return fail(answer.error());
  if (is_gone(answer->status())) {
    const Result<void> labelled = co_await check_label(token);
    if (!labelled) co_return fail(labelled.error());
    for (const MutableBytes piece : into) std::ranges::fill(piece, std::byte{0});
    co_return Version{.is_absent = true, .etag = ""};
  }
  if (answer->status() == 416) {
    co_return fail(Errc::kCorrupt, "an object has another size than those of this drive");
  }
  if (answer->status() != 200 && answer->status() != 206) {
    co_return fail(error_of_status(answer->status()));
  }
  const Result<void> checked = check_body(*answer, size, wanted);
  if (!checked) co_return fail(checked.error());
  co_return Version{.is_absent = false, .etag = answer->head.etag};
}

task::Task<Result<Version>> ObjectStore::fetch(uint64_t object, MutableBytes into,
                                               task::CancelToken token) {
  Result<Version> found = co_await read(object, into.size(), 0, {&into, 1}, token);
  if (!found) co_return found;
  const Version known = recall(object);
  if (known.is_known() && found->is_known() && known != *found) co_return fail(lose());
  remember(object, *found);
  co_return found;
}

task::Task<Result<Version>> ObjectStore::look(uint64_t object, task::CancelToken token) {
  const HttpRequest request{.method = Method::kHead, .target = target(object)};
  const Result<HttpAnswer> answer = co_await client_.send(request, token);
  if (!answer) co_return fail(answer.error());
  if (is_gone(answer->status())) co_return Version{.is_absent = true, .etag = ""};
  if (answer->status() != 200) co_return fail(error_of_status(answer->status()));
  co_return Version{.is_absent = false, .etag = answer->head.etag};
}

task::Task<Result<void>> ObjectStore::put(uint64_t object, std::span<const Bytes> body,
                                          task::CancelToken token) {
  return apply({.method = Method::kPut, .object = object, .size = total_size(body), .body = body},
               token);
}

task::Task<Result<void>> ObjectStore::remove(uint64_t object, uint64_t size,
                                             task::CancelToken token) {
  return apply({.method = Method::kDelete, .object = object, .size = size, .body = {}}, token);
}

task::Task<Result<void>> ObjectStore::apply(Change change, task::CancelToken token) {
  for (int late = 0; late < kLateMax; ++late) {
    if (lost_) co_return fail(lose());
    const Result<Version> before = co_await version_before(change, token);
    if (!before) co_return fail(before.error());
    if (change.is_removal() && before->is_absent) co_return Result<void>{};
    const HttpRequest request{.method = change.method,
                              .target = target(change.object),
                              .fields = conditional_ ? before->condition() : "",
                              .body = change.body,
                              .may_repeat = ordered_};
    remember(change.object, {});
    ++(change.is_removal() ? counters_.removes : counters_.puts);
    const Outcome outcome = co_await client_.send_change(request, token);
    const uint16_t status = outcome.answer ? outcome.answer->status() : 0;
    if (is_success(status) || (change.is_removal() && is_gone(status))) {
      complete(change, *before, outcome);
      co_return Result<void>{};
    }
    note_unanswered(change, *before, outcome);
    if (outcome.was_given_up && !request.may_repeat) {
      const Result<void> landed = co_await await_landed(change, token);
      co_return landed;
    }
    if (!outcome.answer) co_return fail(outcome.answer.error());
    if (status != 412) co_return fail(error_of_status(status));
    const Result<Settled> settled = co_await settle(change, outcome.was_unanswered);
    if (!settled) co_return fail(settled.error());
    if (*settled == Settled::kDone) co_return Result<void>{};
  }
  co_return fail(Errc::kIo, "earlier changes arrive at the HTTP server again and again");
}

task::Task<Result<Version>> ObjectStore::version_before(const Change& change,
                                                        task::CancelToken token) {
  if (!ordered_ && unanswered_.has(change.object)) {
    const Result<void> landed = co_await see_landed(change, token);
    if (!landed) co_return fail(landed.error());
  }
  const Version known = recall(change.object);
  if (conditional_ && known.makes_condition()) co_return known;
  const Result<Version> now = co_await look(change.object, token);
  if (!now) co_return fail(now.error());
  if (known.is_known() && known != *now) co_return fail(lose());
  if (ordered_ && !now->makes_condition()) {
    co_return fail(Errc::kUnsupported, "the HTTP server has no strong ETag for an object");
  }
  co_return *now;
}

void ObjectStore::complete(const Change& change, const Version& before, const Outcome& outcome) {
  note_unanswered(change, before, outcome);
  if (ordered_) unanswered_.outdate(change.object);
  Version now{.is_absent = change.is_removal(), .etag = ""};
  if (!now.is_absent) now.etag = outcome.answer->head.etag;
  // A weak ETag may stand for another one when the object is asked for.
  remember(change.object, now.makes_condition() ? std::move(now) : Version());
}

void ObjectStore::note_unanswered(const Change& change, const Version& before,
                                  const Outcome& outcome) {
  // Where there is no order, connections that the server ended count as the end of their requests:
  // else a restart of the server would close objects for good.
  if (!(ordered_ ? outcome.was_unanswered : outcome.was_given_up)) return;
  unanswered_.add(
      change.object,
      {.before = before, .is_removal = change.is_removal(), .checksum = checksum(change.body)});
}

task::Task<Result<ObjectStore::Settled>> ObjectStore::settle(const Change& change,
                                                             bool was_unanswered) {
  Result<Buffer> memory = env_.buffers().allocate(change.size);
  if (!memory) co_return fail(memory.error());
  const MutableBytes piece = memory->bytes();
  const Result<Version> found = co_await read(change.object, change.size, 0, {&piece, 1}, {});
  if (!found) co_return fail(found.error());
  const bool is_ours =
      change.is_removal() ? found->is_absent : !found->is_absent && same_bytes(change.body, piece);
  const bool is_explained = unanswered_.explains(change.object, *found, crc32c(piece));
  if (!(was_unanswered && is_ours) && !is_explained) co_return fail(lose());
  unanswered_.outdate(change.object);
  remember(change.object, *found);
  co_return is_ours ? Settled::kDone : Settled::kAnotherOfOurs;
}

task::Task<Result<void>> ObjectStore::see_landed(const Change& change, task::CancelToken token) {
  Result<Buffer> memory = env_.buffers().allocate(change.size);
  if (!memory) co_return fail(memory.error());
  const MutableBytes piece = memory->bytes();
  const Result<Version> found = co_await read(change.object, change.size, 0, {&piece, 1}, token);
  if (!found) co_return fail(found.error());
  if (!unanswered_.explains(change.object, *found, crc32c(piece))) {
    co_return fail(Errc::kIo,
                   "the HTTP server ignores conditions and may still carry out an earlier change "
                   "of this object: restart the server, then open the drive again");
  }
  unanswered_.forget(change.object);
  co_return Result<void>{};
}

task::Task<Result<void>> ObjectStore::await_landed(const Change& change, task::CancelToken token) {
  Result<void> landed;
  Duration pause = kFirstLook;
  for (int looks = 0; looks < kLooksMax; ++looks, pause = pause * 2) {
    const Result<void> slept = co_await task::sleep_for(env_, pause, token);
    if (!slept) co_return slept;
    landed = co_await see_landed(change, token);
    if (landed || landed.error() != Errc::kIo) co_return landed;
  }
  co_return landed;
}

}  // namespace cairn::rest
