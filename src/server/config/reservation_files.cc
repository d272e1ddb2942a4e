// SPDX-License-Identifier: Apache-2.0
#include "server/config/reservation_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "nvme/controller/namespace_ids.h"
#include "server/config/reservation_file_format.h"

namespace cairn::server {

namespace {

constexpr size_t kCovered = offsetof(ReservationSlotHead, version);

struct Slot {
  uint64_t sequence = 0;
  Bytes state;  // of the bytes that were read
};

bool is_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// Nothing when the slot was never written.
Result<std::optional<Slot>> read_slot(Bytes bytes) {
  if (is_zero(bytes)) return std::nullopt;
  const auto head = load<ReservationSlotHead>(bytes);
  if (head.magic != kReservationSlotMagic || head.length > kReservationStateMax) {
    return fail(Errc::kCorrupt, "kept reservations");
  }
  const size_t end = sizeof(head) + head.length;
  if (crc32c(bytes.subspan(kCovered, end - kCovered)) != head.checksum) {
    return fail(Errc::kCorrupt, "kept reservations");
  }
  if (head.version != kReservationSlotVersion) {
    return fail(Errc::kUnsupported, "kept reservations of a newer version");
  }
  return Slot{.sequence = head.sequence, .state = bytes.subspan(sizeof(head), head.length)};
}

// The newest of both. A half that is not whole was being written when everything ended; nobody was
// told that it is there.
Result<Slot> newest_of(Bytes file) {
  Slot newest;
  size_t broken = 0;
  for (size_t i = 0; i < kReservationSlots; ++i) {
    const Result<std::optional<Slot>> slot =
        read_slot(file.subspan(i * kReservationSlotSize, kReservationSlotSize));
    if (!slot && slot.error() == Errc::kUnsupported) return fail(slot.error());
    if (!slot) ++broken;
    if (slot && *slot && (*slot)->sequence > newest.sequence) newest = **slot;
  }
  if (broken == kReservationSlots || (broken > 0 && newest.sequence == 0)) {
    return fail(Errc::kCorrupt, "kept reservations");
  }
  return newest;
}

void write_slot(MutableBytes to, uint64_t sequence, Bytes state) {
  std::ranges::fill(to, std::byte{0});
  ReservationSlotHead head;
  head.magic = kReservationSlotMagic;
  head.version = kReservationSlotVersion;
  head.sequence = sequence;
  head.length = static_cast<uint32_t>(state.size());
  store(to, head);
  std::ranges::copy(state, to.subspan(sizeof(head)).begin());
  head.checksum = crc32c(to.subspan(kCovered, sizeof(head) + state.size() - kCovered));
  store(to, head);
}

// A file that is open, and what is in it.
struct Opened {
  std::unique_ptr<env::Disk> disk;
  Buffer bytes;
};

task::Task<Result<Opened>> open_file(env::Env& env, std::string path, bool create) {
  Result<std::unique_ptr<env::Disk>> disk = env.open_disk({.path = std::move(path),
                                                           .size = kReservationFileSize,
                                                           .create = create,
                                                           .direct = false,
                                                           .block_size = kReservationSlotSize});
  if (!disk) co_return fail(disk.error());
  Result<Buffer> buffer = env.buffers().allocate(kReservationFileSize);
  if (!buffer) co_return fail(buffer.error());
  Result<void> read = co_await (*disk)->read(0, buffer->bytes());
  if (!read) co_return fail(read.error());
  co_return Opened{std::move(*disk), std::move(*buffer)};
}

task::Task<Result<void>> append(Opened& file, Bytes state) {
  Result<Slot> newest = newest_of(file.bytes.bytes());
  if (!newest) co_return fail(newest.error());
  const uint64_t sequence = newest->sequence + 1;
  const uint64_t offset = (sequence % kReservationSlots) * kReservationSlotSize;
  const MutableBytes slot = file.bytes.bytes().subspan(offset, kReservationSlotSize);
  write_slot(slot, sequence, state);
  Result<void> written = co_await file.disk->write(offset, slot, {.durable = true});
  co_return written;
}

}  // namespace

std::string ReservationFiles::path(std::string_view nqn, uint32_t nsid) const {
  return fmt::format("{}/reservations-{}-{}", folder_, nvme::make_serial(nqn), nsid);
}

task::Task<Result<void>> ReservationFiles::save(std::string_view nqn, uint32_t nsid, Bytes state) {
  if (state.size() > kReservationStateMax) co_return fail(Errc::kLimit, "reservations to keep");
  Result<Opened> file = co_await open_file(env_, path(nqn, nsid), true);
  if (!file) co_return fail(file.error());
  Result<void> saved = co_await append(*file, state);
  co_return saved;
}

task::Task<Result<std::vector<std::byte>>> ReservationFiles::load(std::string_view nqn,
                                                                  uint32_t nsid) {
  Result<Opened> file = co_await open_file(env_, path(nqn, nsid), false);
  if (!file && file.error() == Errc::kNotFound) co_return std::vector<std::byte>();
  if (!file) co_return fail(file.error());
  const Result<Slot> newest = newest_of(file->bytes.bytes());
  if (!newest) co_return fail(newest.error());
  co_return std::vector<std::byte>(newest->state.begin(), newest->state.end());
}

task::Task<Result<void>> ReservationFiles::forget(std::string_view nqn, uint32_t nsid) {
  Result<Opened> file = co_await open_file(env_, path(nqn, nsid), false);
  if (!file && file.error() == Errc::kNotFound) co_return Result<void>{};
  if (!file) co_return fail(file.error());
  Result<void> forgotten = co_await append(*file, {});
  co_return forgotten;
}

}  // namespace cairn::server
