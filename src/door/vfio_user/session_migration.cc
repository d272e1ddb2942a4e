// SPDX-License-Identifier: Apache-2.0
// How a client moves its device elsewhere: dirty pages, states, and the state's bytes.
#include <algorithm>
#include <utility>

#include "door/vfio_user/session.h"

namespace cairn::door::vfio_user {

Result<void> Session::dirty_pages(Bytes payload) {
  if (payload.size() < sizeof(DirtyPages)) return fail(Errc::kInvalid, "a short DIRTY_PAGES");
  const auto request = load<DirtyPages>(payload);
  if (request.argsz < sizeof(DirtyPages)) {
    return fail(Errc::kInvalid, "a DIRTY_PAGES of another form");
  }
  if (request.flags == kDirtyStart) {
    dirty_.start();
    return {};
  }
  if (request.flags == kDirtyStop) {
    dirty_.stop();
    return {};
  }
  if (request.flags != kDirtyGetBitmap) return fail(Errc::kInvalid, "flags of DIRTY_PAGES");
  if (!dirty_.is_on()) return fail(Errc::kInvalid, "dirty pages are not logged");
  if (payload.size() < sizeof(DirtyPages) + sizeof(DirtyRange)) {
    return fail(Errc::kInvalid, "a DIRTY_PAGES without a range");
  }
  const auto range = load<DirtyRange>(payload.subspan(sizeof(DirtyPages)));
  const Result<uint64_t> size =
      DirtyLog::bitmap_size(range.address, range.size, range.bitmap.page_size);
  if (!size) return fail(size.error());
  if (range.bitmap.size < *size || range.bitmap.size > kBitmapMax) {
    return fail(Errc::kInvalid, "the bitmap of a DIRTY_PAGES");
  }
  const uint64_t whole = sizeof(DirtyPages) + sizeof(DirtyRange) + range.bitmap.size;
  answer(DirtyPages{.argsz = static_cast<uint32_t>(whole), .flags = request.flags});
  answer(range);
  if (request.argsz < whole) return {};
  std::vector<std::byte> bitmap = dirty_.report(range.address, range.size, range.bitmap.page_size);
  bitmap.resize(range.bitmap.size);
  answer_bytes(bitmap);
  return {};
}

task::Task<Result<void>> Session::feature(Message& message) {
  const Bytes payload = message.payload;
  if (payload.size() < sizeof(Feature)) co_return fail(Errc::kInvalid, "a short DEVICE_FEATURE");
  const auto request = load<Feature>(payload);
  const uint32_t flags = request.flags;
  const uint32_t ways = flags & (kFeatureGet | kFeatureSet | kFeatureProbe);
  if (request.argsz < sizeof(Feature) || ways == 0 || (flags & ~(kFeatureMask | ways)) != 0 ||
      ways == (kFeatureGet | kFeatureSet)) {
    co_return fail(Errc::kInvalid, "flags of DEVICE_FEATURE");
  }
  const auto id = static_cast<FeatureId>(flags & kFeatureMask);
  uint32_t can = 0;
  switch (id) {
    case FeatureId::kMigration:
    case FeatureId::kLoggingReport:
      can = kFeatureGet;
      break;
    case FeatureId::kMigrationState:
      can = kFeatureGet | kFeatureSet;
      break;
    case FeatureId::kLoggingStart:
    case FeatureId::kLoggingStop:
      can = kFeatureSet;
      break;
    default:
      co_return fail(Errc::kUnsupported, "a feature that the device does not have");
  }
  if ((ways & ~kFeatureProbe & ~can) != 0) {
    co_return fail(Errc::kInvalid, "a feature that is not read or set that way");
  }
  if ((ways & kFeatureProbe) != 0) {
    answer_bytes(payload);
    co_return Result<void>{};
  }
  const Bytes data = payload.subspan(sizeof(Feature));
  if (id != FeatureId::kMigration && id != FeatureId::kMigrationState) {
    co_return logging_feature(request, data);
  }
  Result<void> done = co_await migration_feature(request, data);
  co_return done;
}

task::Task<Result<void>> Session::migration_feature(const Feature& request, Bytes data) {
  constexpr uint32_t kSize = sizeof(Feature) + sizeof(FeatureState);
  const Feature header{.argsz = kSize, .flags = request.flags};
  const bool has_room = request.argsz >= kSize;
  if (static_cast<FeatureId>(request.flags & kFeatureMask) == FeatureId::kMigration) {
    answer(header);
    if (has_room) answer(FeatureMigration{.flags = kMigrationStopCopy});
    co_return Result<void>{};
  }
  if ((request.flags & kFeatureSet) != 0) {
    if (data.size() < sizeof(FeatureState)) {
      co_return fail(Errc::kInvalid, "a DEVICE_FEATURE without a state");
    }
    const auto state = load<FeatureState>(data);
    pacer_->rest();
    const Result<void> changed = co_await migration_->change(DeviceState{state.state.value()});
    if (migration_->is_running()) pacer_->ring();
    if (!changed) co_return changed;
  }
  answer(header);
  if (has_room) {
    answer(FeatureState{.state = static_cast<uint32_t>(migration_->state()), .data_fd = {}});
  }
  co_return Result<void>{};
}

Result<void> Session::logging_feature(const Feature& request, Bytes data) {
  const auto id = static_cast<FeatureId>(request.flags & kFeatureMask);
  if (id == FeatureId::kLoggingReport) return report_dirty(request, data);
  if (id == FeatureId::kLoggingStop) {
    dirty_.stop();
    answer(request);
    return {};
  }
  if (data.size() < sizeof(FeatureLoggingStart)) {
    return fail(Errc::kInvalid, "a DEVICE_FEATURE that starts no logging");
  }
  auto start = load<FeatureLoggingStart>(data);
  const Bytes ranges = data.subspan(sizeof(start));
  if (start.ranges > ranges.size() / sizeof(LoggingRange)) {
    return fail(Errc::kInvalid, "fewer ranges to log than it says");
  }
  // Everything is logged, and told for the ranges that are asked for.
  dirty_.start();
  start.page_size = kPageSize;
  answer(request);
  answer(start);
  answer_bytes(ranges.first(start.ranges * sizeof(LoggingRange)));
  return {};
}

Result<void> Session::report_dirty(const Feature& request, Bytes data) {
  if (!dirty_.is_on()) return fail(Errc::kInvalid, "dirty pages are not logged");
  if (data.size() < sizeof(FeatureLoggingReport)) {
    return fail(Errc::kInvalid, "a DEVICE_FEATURE without a range");
  }
  const auto range = load<FeatureLoggingReport>(data);
  const Result<uint64_t> size = DirtyLog::bitmap_size(range.address, range.length, range.page_size);
  if (!size) return fail(size.error());
  const uint64_t whole = sizeof(Feature) + sizeof(range) + *size;
  answer(Feature{.argsz = static_cast<uint32_t>(whole), .flags = request.flags});
  answer(range);
  if (request.argsz < whole) return {};
  answer_bytes(dirty_.report(range.address, range.length, range.page_size));
  return {};
}

Result<void> Session::read_state(Bytes payload) {
  if (payload.size() < sizeof(MigrationData)) return fail(Errc::kInvalid, "a short MIG_DATA_READ");
  const auto request = load<MigrationData>(payload);
  if (request.argsz < sizeof(MigrationData) || request.size > kTransferMax ||
      request.size > request.argsz - sizeof(MigrationData)) {
    return fail(Errc::kInvalid, "a MIG_DATA_READ of more than there is room for");
  }
  const Result<Bytes> bytes = migration_->read(request.size);
  if (!bytes) return fail(bytes.error());
  const auto size = static_cast<uint32_t>(bytes->size());
  answer(MigrationData{.argsz = static_cast<uint32_t>(sizeof(MigrationData)) + size, .size = size});
  answer_bytes(*bytes);
  return {};
}

Result<void> Session::write_state(Bytes payload) {
  if (payload.size() < sizeof(MigrationData)) return fail(Errc::kInvalid, "a short MIG_DATA_WRITE");
  const auto request = load<MigrationData>(payload);
  const Bytes data = payload.subspan(sizeof(MigrationData));
  if (request.size > data.size()) {
    return fail(Errc::kInvalid, "a MIG_DATA_WRITE with less data than it says");
  }
  return migration_->write(data.first(request.size));
}

}  // namespace cairn::door::vfio_user
