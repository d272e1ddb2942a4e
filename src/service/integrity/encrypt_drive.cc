// SPDX-License-Identifier: Apache-2.0
// How encrypt serves requests.
#include "service/integrity/encrypt_drive.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "crypto/hkdf.h"
#include "drive/scatter.h"
#include "drive/scratch.h"
#include "drive/stable_memory.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kTransferBytes = 1_MiB;

crypto::Digest derive(const DriveKey& key, std::string_view purpose, const Label& label) {
  std::array<std::byte, sizeof label.id> context{};
  store(context, label.id);
  return crypto::hkdf_derive(crypto::Hash::kSha512, key.bytes(), purpose, context);
}

EncryptState::KeyCheck check_of(const DriveKey& key, const Label& label) {
  const crypto::Digest digest = derive(key, "cairn encrypt check", label);
  return load<EncryptState::KeyCheck>(digest.bytes());
}

}  // namespace

EncryptKey::EncryptKey(const DriveKey& key, const Label& label)
    : check(check_of(key, label)), cipher(derive(key, "cairn encrypt xts", label).bytes()) {}

EncryptDrive::EncryptDrive(env::Env& env, Files& files, std::vector<std::unique_ptr<Drive>> drives,
                           EncryptFound found)
    : ServiceDrive(std::move(drives)),
      env_(env),
      files_(files),
      label_(std::move(found.label)),
      claim_(env, below(), label_),
      state_(found.state),
      key_(std::move(found.key)),
      old_key_(std::move(found.old_key)),
      scratch_(below().geometry().block_size),
      rotation_rate_(found.rate, std::max<uint64_t>(found.rate / 10, 1), env.now()),
      closing_(env.stop_token()) {
  geometry_ = below().geometry();
  geometry_.blocks = state_.data_blocks;
  geometry_.atomic_blocks =
      static_cast<uint32_t>(std::gcd(state_.data_offset, uint64_t{geometry_.atomic_blocks}));
  const uint64_t max =
      std::min<uint64_t>(kTransferBytes, env.buffers().size_max()) / geometry_.block_size;
  geometry_.transfer_blocks =
      static_cast<uint32_t>(std::min<uint64_t>(geometry_.transfer_blocks, max));
  geometry_.atomic_blocks = std::min(geometry_.atomic_blocks, geometry_.transfer_blocks);
}

Extent EncryptDrive::extent_at(Lba lba, uint64_t max) const {
  return below().extent_at(Lba(state_.data_offset + lba.value()), max);
}

crypto::Xts& EncryptDrive::cipher_of(uint64_t block) {
  const bool is_old = state_.is_rotating && block >= state_.rotated;
  return is_old ? old_key_->cipher : key_.cipher;
}

task::Task<Result<void>> EncryptDrive::flush(DriveOp& op) {
  const uint64_t told = losses_.told();
  const Result<void> done = co_await below().submit(op.request, {}, {}, op.token());
  if (op.token().requested()) co_return done;
  losses_.flushed(done);
  co_return losses_.tell(told, done);
}

task::Task<Result<void>> EncryptDrive::run(DriveOp& op) {
  if (op.request.kind == Request::Kind::kFlush) co_return co_await flush(op);
  // Nobody else sees a block until it is plain, or changes it while it is decrypted. Writes are
  // encrypted in memory of their own anyway.
  if (op.request.kind == Request::Kind::kRead && op.request.unstable_memory) {
    co_return co_await run_on_copy(env_, *this, op);
  }
  const bool is_alone = op.request.kind == Request::Kind::kCompareAndWrite;
  const uint64_t first = op.request.lba.value();
  Ranges::Hold hold(ranges_, is_alone ? Ranges::Mode::kExclusive : Ranges::Mode::kShared, first,
                    op.request.blocks, op.token());
  Result<void> held = co_await hold;
  // Whoever has the drive now may have given it another key.
  if (held && op.request.writes() && claim_.is_due()) held = co_await claim_.check(op.token());
  if (!held) co_return held;
  const bool overlaps =
      first < state_.rotated + stuck_blocks_ && state_.rotated < first + op.request.blocks;
  if (stuck_blocks_ > 0 && overlaps) {
    const bool is_full = !rotation_ && rotation_.error() == Errc::kNoSpace;
    co_return fail(is_full ? Errc::kNoSpace : Errc::kIo,
                   "new keys cannot be written here; it is tried again");
  }
  co_return co_await run_held(op);
}

task::Task<Result<void>> EncryptDrive::run_held(DriveOp& op) {
  Request request = op.request;
  request.lba = Lba(state_.data_offset + request.lba.value());
  switch (request.kind) {
    case Request::Kind::kRead:
      co_return co_await read(request, op.data(), op.token());
    case Request::Kind::kCompare:
      co_return co_await compare(op);
    case Request::Kind::kWrite:
      co_return co_await write(op, op.data());
    case Request::Kind::kCompareAndWrite: {
      const Result<void> equal = co_await compare(op);
      if (!equal) co_return equal;
      co_return co_await write(op, op.second());
    }
    default:
      co_return co_await below().submit(request, {}, {}, op.token());
  }
}

task::Task<Result<void>> EncryptDrive::read(Request request, Memory memory,
                                            task::CancelToken token) {
  const Result<void> done = co_await below().submit(request, memory, {}, token);
  if (!done) co_return done;
  const uint64_t first = request.lba.value() - state_.data_offset;
  change_blocks(memory, scratch_, [&](size_t index, MutableBytes block) {
    if (!is_zero(block)) cipher_of(first + index).decrypt(first + index, block, block);
  });
  co_return done;
}

task::Task<Result<void>> EncryptDrive::compare(DriveOp& op) {
  Result<Scratch> memory = Scratch::make(env_, op.request.blocks * geometry_.block_size);
  if (!memory) co_return fail(memory.error());
  Request request = op.request;
  request.kind = Request::Kind::kRead;
  request.durable = false;
  request.unstable_memory = false;
  request.lba = Lba(state_.data_offset + request.lba.value());
  const MutableBytes piece = memory->bytes();
  const Result<void> done = co_await read(request, {&piece, 1}, op.token());
  if (!done) co_return done;
  if (!holds(op.data(), 0, piece)) co_return fail(Errc::kMismatch, "the blocks differ");
  co_return done;
}

task::Task<Result<void>> EncryptDrive::write(DriveOp& op, Memory memory) {
  Result<Scratch> buffer = Scratch::make(env_, op.request.blocks * geometry_.block_size);
  if (!buffer) co_return fail(buffer.error());
  const MutableBytes piece = buffer->bytes();
  gather(memory, 0, piece);
  const uint64_t first = op.request.lba.value();
  for (uint64_t i = 0; i < op.request.blocks; ++i) {
    const MutableBytes block = piece.subspan(i * geometry_.block_size, geometry_.block_size);
    cipher_of(first + i).encrypt(first + i, block, block);
  }
  Request request = op.request;
  request.kind = Request::Kind::kWrite;
  request.unstable_memory = false;
  request.lba = Lba(state_.data_offset + first);
  co_return co_await below().submit(request, {&piece, 1}, {}, op.token());
}

}  // namespace cairn::drive
