// SPDX-License-Identifier: Apache-2.0
// What a client learns of its device, and how it reads and writes it.
#include <algorithm>
#include <cstring>

#include "door/vfio_user/session.h"
#include "env/shared_word.h"

namespace cairn::door::vfio_user {

namespace {

uint64_t size_of_region(uint32_t index) {
  switch (index) {
    case kBar0:
      return kBar0Size;
    case kBar4:
      return kBar4Size;
    case kConfig:
      return kConfigSize;
    default:
      return 0;
  }
}

// kInvalid: no such bytes.
Result<void> check_access(uint32_t region, uint64_t offset, uint64_t count) {
  if (count > kTransferMax) return fail(Errc::kInvalid, "more data than was agreed on");
  const uint64_t size = size_of_region(region);
  if (region >= kRegions || size == 0) return fail(Errc::kInvalid, "no such region");
  if (offset > size || count > size - offset) {
    return fail(Errc::kInvalid, "bytes beyond the end of a region");
  }
  return {};
}

}  // namespace

Result<void> Session::get_info(Bytes payload) {
  if (payload.size() < sizeof(DeviceInfo) || load<DeviceInfo>(payload).argsz < sizeof(DeviceInfo)) {
    return fail(Errc::kInvalid, "a short DEVICE_GET_INFO");
  }
  answer(DeviceInfo{.argsz = uint32_t{sizeof(DeviceInfo)},
                    .flags = kDeviceReset | kDevicePci,
                    .regions = uint32_t{kRegions},
                    .irqs = uint32_t{kIrqs}});
  return {};
}

Result<void> Session::get_region_info(Bytes payload) {
  if (payload.size() < sizeof(RegionInfo)) {
    return fail(Errc::kInvalid, "a short DEVICE_GET_REGION_INFO");
  }
  const auto request = load<RegionInfo>(payload);
  if (request.argsz < sizeof(RegionInfo)) {
    return fail(Errc::kInvalid, "a DEVICE_GET_REGION_INFO with room for no answer");
  }
  if (request.index >= kRegions) return fail(Errc::kInvalid, "no such region");
  RegionInfo info{.argsz = uint32_t{sizeof(RegionInfo)},
                  .flags = {},
                  .index = request.index,
                  .capability_offset = {},
                  .size = size_of_region(request.index),
                  .offset = {}};
  if (info.size != 0) info.flags = kRegionReadable | kRegionWritable;
  const bool is_mappable = request.index == kBar0 && options_.pace != Pace::kInterrupt;
  if (!is_mappable) {
    answer(info);
    return {};
  }
  constexpr uint32_t kWhole = sizeof(RegionInfo) + sizeof(SparseMap);
  info.argsz = kWhole;
  info.flags = info.flags | kRegionMappable | kRegionHasCapabilities;
  info.capability_offset = uint32_t{sizeof(RegionInfo)};
  answer(info);
  // A client with too little room sees how much it needs, and asks again.
  if (request.argsz < kWhole) return {};
  answer(SparseMap{.next = {}, .reserved = {}, .offset = kDoorbellsAt, .size = kDoorbellsSize});
  reply_.descriptors.push_back(&bar0_);
  return {};
}

Result<void> Session::get_region_io_fds(Bytes payload) {
  if (payload.size() < sizeof(RegionIoFds)) {
    return fail(Errc::kInvalid, "a short DEVICE_GET_REGION_IO_FDS");
  }
  const auto request = load<RegionIoFds>(payload);
  if (request.argsz < sizeof(RegionIoFds) || request.flags != 0 || request.count != 0 ||
      request.index >= kRegions) {
    return fail(Errc::kInvalid, "a DEVICE_GET_REGION_IO_FDS of another form");
  }
  // There are none: doorbells are mapped, or come as messages.
  answer(RegionIoFds{
      .argsz = uint32_t{sizeof(RegionIoFds)}, .flags = {}, .index = request.index, .count = {}});
  return {};
}

Result<void> Session::get_irq_info(Bytes payload) {
  if (payload.size() < sizeof(IrqInfo)) return fail(Errc::kInvalid, "a short DEVICE_GET_IRQ_INFO");
  const auto request = load<IrqInfo>(payload);
  if (request.argsz < sizeof(IrqInfo)) {
    return fail(Errc::kInvalid, "a DEVICE_GET_IRQ_INFO with room for no answer");
  }
  const Result<IrqInfo> info = Interrupts::info(request.index);
  if (!info) return fail(info.error());
  answer(*info);
  return {};
}

Result<void> Session::read_region(Bytes payload) {
  if (payload.size() < sizeof(RegionAccess)) return fail(Errc::kInvalid, "a short REGION_READ");
  const auto request = load<RegionAccess>(payload);
  const Result<void> fine = check_access(request.region, request.offset, request.count);
  if (!fine) return fine;
  answer(request);
  reply_.payload.resize(sizeof(RegionAccess) + request.count);
  const MutableBytes into = MutableBytes(reply_.payload).subspan(sizeof(RegionAccess));
  if (request.region == kBar0) {
    read_bar0(request.offset, into);
  } else if (request.region == kBar4) {
    interrupts_.read_table(request.offset, into);
  } else {
    config_.read(request.offset, into);
  }
  return {};
}

task::Task<Result<void>> Session::write_region(Bytes payload) {
  if (payload.size() < sizeof(RegionAccess)) co_return fail(Errc::kInvalid, "a short REGION_WRITE");
  const auto request = load<RegionAccess>(payload);
  const Bytes data = payload.subspan(sizeof(RegionAccess));
  if (data.size() < request.count) {
    co_return fail(Errc::kInvalid, "a REGION_WRITE with less data than it says");
  }
  const Result<void> done =
      co_await write_to(request.region, request.offset, data.first(request.count));
  if (!done) co_return done;
  answer(request);
  co_return Result<void>{};
}

task::Task<Result<void>> Session::write_regions(Bytes payload) {
  if (payload.size() < sizeof(Le64)) co_return fail(Errc::kInvalid, "a short REGION_WRITE_MULTI");
  const uint64_t count = load<Le64>(payload);
  const Bytes writes = payload.subspan(sizeof(Le64));
  if (count > writes.size() / sizeof(RegionWriteOne)) {
    co_return fail(Errc::kInvalid, "a REGION_WRITE_MULTI with fewer writes than it says");
  }
  for (uint64_t i = 0; i < count; ++i) {
    const auto one = load<RegionWriteOne>(writes.subspan(i * sizeof(RegionWriteOne)));
    if (one.count > one.data.size()) {
      co_return fail(Errc::kInvalid, "a write of more than 8 bytes in a REGION_WRITE_MULTI");
    }
    const Result<void> done =
        co_await write_to(one.region, one.offset, Bytes(one.data).first(one.count));
    if (!done) co_return done;
  }
  answer(Le64(count));
  co_return Result<void>{};
}

task::Task<Result<void>> Session::write_to(uint32_t region, uint64_t offset, Bytes data) {
  const Result<void> fine = check_access(region, offset, data.size());
  if (!fine) co_return fine;
  if (region == kBar0) {
    write_bar0(offset, data);
  } else if (region == kBar4) {
    interrupts_.write_table(offset, data);
  } else if (config_.write(offset, data)) {
    const Result<void> done = co_await reset();
    if (!done) co_return done;
  } else {
    interrupts_.look_again();
  }
  co_return Result<void>{};
}

void Session::read_bar0(uint64_t offset, MutableBytes into) {
  std::ranges::fill(into, std::byte{0});
  if (offset < kDoorbellsAt) {
    const MutableBytes registers = into.first(std::min(into.size(), kDoorbellsAt - offset));
    device_->read(offset, registers);
    wake();  // a driver that has enabled it waits for that by reading
    into = into.subspan(registers.size());
    offset += registers.size();
  }
  constexpr uint64_t kEnd = kDoorbellsAt + kDoorbellsSize;
  if (into.empty() || offset >= kEnd) return;
  const Bytes page = doorbells_->bytes().subspan(offset - kDoorbellsAt);
  std::ranges::copy(page.first(std::min(into.size(), page.size())), into.begin());
}

void Session::write_bar0(uint64_t offset, Bytes from) {
  if (offset < kDoorbellsAt) {
    const Bytes registers = from.first(std::min(from.size(), kDoorbellsAt - offset));
    device_->write(offset, registers);
    from = from.subspan(registers.size());
    offset += registers.size();
  }
  // Doorbells are words; what is not one of them rings nothing.
  const MutableBytes page = doorbells_->bytes();
  for (; from.size() >= 4 && is_aligned(offset, 4); from = from.subspan(4), offset += 4) {
    const uint64_t at = offset - kDoorbellsAt;
    if (at >= page.size()) break;
    env::store_shared(page.subspan(at).data(), load<uint32_t>(from));
  }
  if (migration_->is_running()) pacer_->ring();
}

}  // namespace cairn::door::vfio_user
