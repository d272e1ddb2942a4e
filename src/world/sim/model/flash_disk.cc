// SPDX-License-Identifier: Apache-2.0
#include "world/sim/model/flash_disk.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::sim {

namespace {

using Kind = env::DiskOp::Kind;

flash::Op op_of(Kind kind) {
  switch (kind) {
    case Kind::kRead:
      return flash::Op::kRead;
    case Kind::kDiscard:
      return flash::Op::kTrim;
    case Kind::kFlush:
      return flash::Op::kFlush;
    case Kind::kWrite:
    case Kind::kWriteZeroes:
    case Kind::kResize:
      break;
  }
  return flash::Op::kWrite;
}

}  // namespace

FlashDisk::FlashDisk(const flash::Parameters& parameters) : drive_(parameters) {
  CHECK(!parameters.mqsim, "a drive that loses requests is no disk");
}

std::optional<Time> FlashDisk::start(Time now, const env::DiskOp::Request& request, uint64_t tag) {
  if (request.kind == Kind::kResize) return now;
  drive_.advance(now.ns, *this);
  drive_.submit({.op = op_of(request.kind),
                 .lba = request.offset / flash::kSectorBytes,
                 .sectors = static_cast<uint32_t>(
                     std::clamp<uint64_t>(request.length / flash::kSectorBytes, 1, UINT32_MAX)),
                 .cookie = tag,
                 .durable = request.durable},
                now.ns);
  return {};
}

Time FlashDisk::next_event() const {
  const flash::Nanos next = drive_.next_event();
  return next == flash::kNever ? Time::never() : Time{next};
}

void FlashDisk::advance(Time now, std::vector<uint64_t>& completed) {
  drive_.advance(now.ns, *this);
  completed.insert(completed.end(), done_.begin(), done_.end());
  done_.clear();
}

std::function<std::unique_ptr<DiskModel>(uint64_t seed)> flash_disks(flash::Parameters parameters) {
  return [parameters = std::move(parameters)](uint64_t seed) {
    flash::Parameters own = parameters;
    own.seed = seed;
    return std::make_unique<FlashDisk>(own);
  };
}

}  // namespace cairn::sim
