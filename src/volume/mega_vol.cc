// SPDX-License-Identifier: Apache-2.0
#include "volume/mega_vol.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/units.h"
#include "drive/copy_blocks.h"
#include "service/common/label.h"
#include "volume/mega_vol_format.h"

namespace cairn::volume {

namespace {

using drive::Drive;
using drive::Label;
using drive::Request;
using task::CancelToken;
using task::Task;

constexpr uint64_t kClearBytes = 1_GiB;  // at a time

Uuid uuid_of(const Label& label) { return std::bit_cast<Uuid>(label.id); }

// How many extents fit; kInvalid, kNoSpace.
Result<uint32_t> extents_of(const Drive& drive, uint64_t extent_bytes) {
  const drive::Geometry& shape = drive.geometry();
  if (shape.block_size > kBlockBytes) {
    return fail(Errc::kInvalid, "a drive of a pool has blocks of 4096 bytes at most");
  }
  const uint64_t extents = std::min<uint64_t>(shape.bytes() / extent_bytes, kMegaVolExtentsMax);
  if (extents < 2) return fail(Errc::kNoSpace, "the drive is too small for extents");
  return static_cast<uint32_t>(extents);
}

// All blocks but those of the label, durably.
Task<Result<void>> clear(env::Env& env, Drive& drive, CancelToken token) {
  const drive::Geometry& shape = drive.geometry();
  const uint64_t step = kClearBytes / shape.block_size;
  for (uint64_t at = drive::kLabelBlocks; at < shape.blocks; at += step) {
    const Request request{.kind = Request::Kind::kWriteZeroes,
                          .lba = Lba(at),
                          .blocks = std::min(step, shape.blocks - at)};
    const Result<void> done = co_await drive::write_holes(env, drive, request, token);
    if (!done) co_return done;
  }
  co_return co_await drive.flush(token);
}

}  // namespace

Task<Result<void>> may_make_mega_vol(env::Env& env, Drive& drive, MegaVolPool pool,
                                     bool may_format) {
  const Result<uint32_t> extents = extents_of(drive, pool.extent_bytes);
  if (!extents) co_return fail(extents.error());
  const Result<std::optional<Label>> found =
      co_await drive::find_label(env, drive, kMegaVolLabel, {.may_format = may_format});
  if (!found) co_return fail(found.error());
  if (*found) co_return fail(Errc::kExists, "the drive is a member of a pool");
  co_return Result<void>();
}

Task<Result<void>> make_mega_vol(env::Env& env, Drive& drive, MegaVolPool pool, MegaVolInfo& info,
                                 bool may_format, CancelToken token) {
  Result<void> done = co_await may_make_mega_vol(env, drive, pool, may_format);
  if (!done) co_return done;
  const Result<uint32_t> extents = extents_of(drive, pool.extent_bytes);
  if (!extents) co_return fail(extents.error());
  Label label = drive::new_label(env, drive);
  done = co_await drive::begin_label(env, drive, kMegaVolLabel, label);
  if (done) done = co_await clear(env, drive, token);
  if (!done) co_return done;
  label.body = encode_mega_vol(
      {.pool = pool.uuid, .extent_bytes = pool.extent_bytes, .extents = *extents, .id = info.id});
  done = co_await drive::finish_label(env, drive, kMegaVolLabel, label);
  if (!done) co_return done;
  info.uuid = uuid_of(label);
  info.extents = *extents;
  co_return done;
}

namespace {

constexpr Error kShrunk{Errc::kMismatch, "the drive is smaller than when it joined the pool"};

struct FoundLabel {
  Uuid uuid{};
  MegaVolLabel body;
};

Task<Result<FoundLabel>> read_mega_vol(env::Env& env, Drive& drive, CancelToken token) {
  const Result<std::optional<Label>> label =
      co_await drive::read_label(env, drive, kMegaVolLabel, token);
  // Of what lies on the drive that is never said. A box that has no such namespace says it, and may
  // have it again: nothing is lost by that.
  if (!label && label.error() == Errc::kNotFound) {
    co_return fail(Errc::kUnreachable, "the box does not have the drive now");
  }
  // Its label tells how large it was. What lay beyond its end now is lost, though no box says so.
  if (!label && label.error() == Errc::kInvalid) co_return fail(kShrunk);
  if (!label) co_return fail(label.error());
  if (!*label || (*label)->body.empty()) {
    co_return fail(Errc::kNotFound, "the drive was emptied: it has no label of a pool");
  }
  const Result<MegaVolLabel> body = decode_mega_vol((*label)->body);
  if (!body) co_return fail(body.error());
  co_return FoundLabel{.uuid = uuid_of(**label), .body = *body};
}

constexpr Error kOther{Errc::kMismatch, "this is another drive, or one of another pool"};

}  // namespace

Task<Result<Uuid>> read_uuid(env::Env& env, Drive& drive, MegaVolPool pool, CancelToken token) {
  const Result<FoundLabel> found = co_await read_mega_vol(env, drive, token);
  if (!found) co_return fail(found.error());
  if (found->body.pool != pool.uuid) co_return fail(kOther);
  co_return found->uuid;
}

Task<Result<void>> check_mega_vol(env::Env& env, Drive& drive, MegaVolPool pool,
                                  const MegaVolInfo& info, CancelToken token) {
  const MegaVolLabel wanted{
      .pool = pool.uuid, .extent_bytes = pool.extent_bytes, .extents = info.extents, .id = info.id};
  const Uuid uuid = info.uuid;
  const Result<FoundLabel> found = co_await read_mega_vol(env, drive, token);
  if (!found) co_return fail(found.error());
  if (found->uuid != uuid || found->body != wanted) co_return fail(kOther);
  co_return Result<void>();
}

bool is_other_drive(const Error& error) {
  return error == Errc::kNotFound || error == Errc::kMismatch || error == Errc::kInvalid;
}

Task<Result<std::unique_ptr<Drive>>> open_mega_vol(env::Env& env, MegaVolSource& source,
                                                   std::string host, MegaVolPool pool,
                                                   MegaVolInfo info, CancelToken token) {
  Result<std::unique_ptr<Drive>> drive = co_await source.open(info.uri, std::move(host), token);
  if (!drive) co_return drive;
  const Result<void> checked = co_await check_mega_vol(env, **drive, pool, info, token);
  if (checked) co_return drive;
  co_await (*drive)->close();
  co_return fail(checked.error());
}

Task<Result<void>> forget_mega_vol(env::Env& env, Drive& drive, CancelToken token) {
  const Request request{
      .kind = Request::Kind::kWriteZeroes, .durable = true, .blocks = drive::kLabelBlocks};
  co_return co_await drive::write_holes(env, drive, request, token);
}

}  // namespace cairn::volume
