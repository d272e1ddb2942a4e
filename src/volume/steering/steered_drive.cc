// SPDX-License-Identifier: Apache-2.0
#include "volume/steering/steered_drive.h"

#include <array>
#include <optional>

#include "volume/types.h"

namespace cairn::volume {

using drive::DriveOp;
using drive::Request;
using task::Task;

namespace {
constexpr uint32_t kRefusedNowMax = 64;
}  // namespace

bool SteeredDrive::can_replicate_to(const drive::Drive& other) const {
  const auto* steered = dynamic_cast<const SteeredDrive*>(&other);
  return steered != nullptr && below_->can_replicate_to(*steered->below_);
}

Steering::Io SteeredDrive::io_of(const Request& request) const {
  return {
      .type = request.kind == Request::Kind::kWrite ? view::IoType::kWrite : view::IoType::kRead,
      .bytes = static_cast<uint32_t>(request.blocks * geometry().block_size)};
}

void SteeredDrive::start(DriveOp& op) {
  const Time now = env_.now();
  if (!is_steered(op.request)) return send(op, now);
  const Steering::Io io = io_of(op.request);
  if (steering_.may_go(route_, io, now)) return send(op, now);
  steering_.wait(route_, *this, op, io, now);
}

// Only while it waits; one that was sent is its drive's to cancel.
void SteeredDrive::cancel(DriveOp& op) {
  steering_.forget(route_, op, io_of(op.request));
  op.complete(op.cancelled());
}

void SteeredDrive::send(DriveOp& op, Time now) {
  if (op.request.replicas.empty() && hand_on(op, *below_, *this, now)) return;
  gate_.spawn(run(op, now));
}

void SteeredDrive::relayed(DriveOp& op, const Result<void>& done) {
  if (!is_steered(op.request)) return;
  steering_.ended(route_, io_of(op.request), op.handed_on(), done.has_value());
}

Task<void> SteeredDrive::run(DriveOp& op, Time began) {
  Request request = op.request;
  std::array<drive::Replica, kReplicasMax> others{};
  Result<void> done;
  if (request.replicas.size() <= others.size()) {
    // can_replicate_to() has said that they are steered.
    for (size_t i = 0; i < request.replicas.size(); ++i) {
      const drive::Replica& each = request.replicas[i];
      others[i] = {.drive = static_cast<const SteeredDrive&>(*each.drive).below_.get(),
                   .lba = each.lba};
    }
    request.replicas = std::span(others).first(request.replicas.size());
    done = co_await below_->submit(request, op.data(), op.second(), op.token());
  } else {
    done = fail(Errc::kUnsupported, "more replicas than a volume has");
  }
  if (is_steered(request)) steering_.ended(route_, io_of(request), began, done.has_value());
  op.complete(done);
}

bool SteeredDrive::run_now(const Request& request, std::span<const MutableBytes> data,
                           Result<void>& done) {
  if (!is_steered(request) || refused_now_ >= kRefusedNowMax) return false;
  const Time began = env_.now();
  const Steering::Io io = io_of(request);
  if (!steering_.may_go(route_, io, began)) return false;
  const std::optional<Result<void>> ran = below_->try_now(request, data);
  refused_now_ = ran ? 0 : refused_now_ + 1;
  if (!ran) {
    steering_.give_up(route_, io);
    return false;
  }
  steering_.ended(route_, io, began, ran->has_value());
  done = *ran;
  return true;
}

Task<void> SteeredDrive::close() {
  co_await gate_.close();
  co_await below_->close();
}

}  // namespace cairn::volume
