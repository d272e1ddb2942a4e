// SPDX-License-Identifier: Apache-2.0
#include "rest/object_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/buffer.h"
#include "rest/status.h"

namespace cairn::rest {

namespace {

// No server gives an object this ETag.
constexpr const char* kNever = "If-Match: \"cairn-never\"\r\n";

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
  owner_ = label.owner;
  Result<HttpAnswer> answer = co_await put_label(label, kNever);
  if (!answer) co_return fail(answer.error());
  conditional_ = answer->status() == 412;
  if (conditional_) {
    std::string condition;
    if (label_version_.is_absent) condition = "If-None-Match: *\r\n";
    if (label_version_.is_strong()) {
      condition = fmt::format("If-Match: {}\r\n", label_version_.etag);
    }
    answer = co_await put_label(label, std::move(condition));
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

task::Task<Result<std::string>> ObjectStore::guard(uint64_t object, Version version,
                                                   task::CancelToken token) {
  if (!version.is_known()) co_return "";
  if (!conditional_) {
    const Result<Version> now = co_await look(object, token);
    if (!now) co_return fail(now.error());
    if (*now != version) co_return fail(lose());
    co_return "";
  }
  if (version.is_absent) co_return "If-None-Match: *\r\n";
  if (!version.is_strong()) co_return "";
  co_return fmt::format("If-Match: {}\r\n", version.etag);
}

task::Task<Result<void>> ObjectStore::put(uint64_t object, std::span<const Bytes> body,
                                          task::CancelToken token) {
  if (lost_) co_return fail(lose());
  Result<std::string> condition = co_await guard(object, recall(object), token);
  if (!condition) co_return fail(condition.error());
  const HttpRequest request{.method = Method::kPut,
                            .target = target(object),
                            .fields = std::move(*condition),
                            .body = body};
  ++counters_.puts;
  remember(object, {});
  const Result<HttpAnswer> answer = co_await client_.send(request, token);
  if (!answer) co_return fail(answer.error());
  if (answer->status() == 412) {
    if (!answer->was_repeated) co_return fail(lose());
    const Result<void> settled = co_await settle_put(object, body);
    co_return settled;
  }
  if (!is_success(answer->status())) co_return fail(error_of_status(answer->status()));
  remember(object, {.is_absent = false, .etag = answer->head.etag});
  co_return Result<void>{};
}

task::Task<Result<void>> ObjectStore::settle_put(uint64_t object, std::span<const Bytes> body) {
  Result<Buffer> memory = env_.buffers().allocate(total_size(body));
  if (!memory) co_return fail(memory.error());
  const MutableBytes piece = memory->bytes();
  const Result<Version> found = co_await read(object, piece.size(), 0, {&piece, 1}, {});
  if (!found) co_return fail(found.error());
  if (found->is_absent || !same_bytes(body, piece)) co_return fail(lose());
  remember(object, *found);
  co_return Result<void>{};
}

task::Task<Result<void>> ObjectStore::remove(uint64_t object, task::CancelToken token) {
  if (lost_) co_return fail(lose());
  const Version known = recall(object);
  if (known.is_absent) co_return Result<void>{};
  Result<std::string> condition = co_await guard(object, known, token);
  if (!condition) co_return fail(condition.error());
  const HttpRequest request{
      .method = Method::kDelete, .target = target(object), .fields = std::move(*condition)};
  ++counters_.removes;
  remember(object, {});
  const Result<HttpAnswer> answer = co_await client_.send(request, token);
  if (!answer) co_return fail(answer.error());
  if (answer->status() == 412) {
    if (!answer->was_repeated) co_return fail(lose());
    const Result<Version> now = co_await look(object, {});
    if (!now) co_return fail(now.error());
    if (!now->is_absent) co_return fail(lose());
  } else if (!is_success(answer->status()) && !is_gone(answer->status())) {
    co_return fail(error_of_status(answer->status()));
  }
  remember(object, {.is_absent = true, .etag = ""});
  co_return Result<void>{};
}

}  // namespace cairn::rest
