// SPDX-License-Identifier: Apache-2.0
// Formats with one request to a line and a fixed meaning of each field.
#include <array>
#include <functional>

#include "trace/format.h"
#include "trace/row.h"
#include "trace/volumes.h"

namespace cairn::trace {

namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr uint64_t kVolumeMax = UINT32_MAX;

Outcome<std::optional<Record>> finished(const Row& row, const Record& record) {
  if (row.mistake()) return std::unexpected(*row.mistake());
  return record;
}

class Mqsim final : public Format {
 public:
  Outcome<std::optional<Record>> parse(std::string_view line) override {
    static constexpr std::array kNames = {"arrival_ns", "device", "lba", "sectors", "op"};
    Row row(line, ' ', kNames);
    row.expect_all();
    Record record{.arrival = row.time(0, 1)};
    const uint64_t device = row.whole(1, kVolumeMax);
    row.offset(2, kSectorBytes, record);
    row.bytes(3, kSectorBytes, record);
    row.direction(4, "1", "0", record);
    if (!row.mistake()) record.volume = volumes_.number(device);
    return finished(row, record);
  }

 private:
  Volumes volumes_;
};

class Systor final : public Format {
 public:
  Outcome<std::optional<Record>> parse(std::string_view line) override {
    static constexpr std::array kNames = {"Timestamp", "Response", "IOType",
                                          "LUN",       "Offset",   "Size"};
    Row row(line, ',', kNames);
    row.expect_all();
    Record record{.arrival = row.time(0, kSecond)};
    const uint64_t lun = row.whole(3, kVolumeMax);
    row.offset(4, 1, record);
    row.bytes(5, 1, record);
    // Captures that missed the command have no type.
    if (!row.mistake() && row[2].empty()) return std::nullopt;
    row.direction(2, "R", "W", record);
    if (!row.mistake()) record.volume = volumes_.number(lun);
    return finished(row, record);
  }

 private:
  Volumes volumes_;
};

class Msr final : public Format {
 public:
  Outcome<std::optional<Record>> parse(std::string_view line) override {
    static constexpr std::array kNames = {"Timestamp", "Hostname", "DiskNumber",  "Type",
                                          "Offset",    "Size",     "ResponseTime"};
    // Ticks of 100 ns since 1601 do not fit as nanoseconds; since 2001 they do.
    constexpr uint64_t kTicks2001 = 126'227'808'000'000'000;
    constexpr Nanos kTick = 100;
    Row row(line, ',', kNames);
    row.expect_all();
    const uint64_t ticks = row.whole(0, kTicks2001 + kArrivalMax / kTick);
    if (ticks < kTicks2001) row.refuse(0, "is before 2001: it counts 100 ns since 1601");
    Record record;
    if (!row.mistake()) record.arrival = static_cast<Nanos>(ticks - kTicks2001) * kTick;
    const uint64_t disk = row.whole(2, kVolumeMax);
    row.direction(3, "Read", "Write", record);
    row.offset(4, 1, record);
    row.bytes(5, 1, record);
    if (!row.mistake()) record.volume = volumes_.number(disk, row[1]);
    return finished(row, record);
  }

 private:
  Volumes volumes_;
};

class Alibaba final : public Format {
 public:
  Outcome<std::optional<Record>> parse(std::string_view line) override {
    static constexpr std::array kNames = {"device_id", "opcode", "offset", "length", "timestamp"};
    Row row(line, ',', kNames);
    row.expect_all();
    Record record{.arrival = row.time(4, 1000)};
    const uint64_t device = row.whole(0, kVolumeMax);
    row.direction(1, "R", "W", record);
    row.offset(2, 1, record);
    row.bytes(3, 1, record);
    if (!row.mistake()) record.volume = volumes_.number(device);
    return finished(row, record);
  }

 private:
  Volumes volumes_;
};

class Tencent final : public Format {
 public:
  Outcome<std::optional<Record>> parse(std::string_view line) override {
    static constexpr std::array kNames = {"Timestamp", "Offset", "Size", "IOType", "VolumeID"};
    Row row(line, ',', kNames);
    row.expect_all();
    Record record{.arrival = row.time(0, kSecond)};
    row.offset(1, kSectorBytes, record);
    row.bytes(2, kSectorBytes, record);
    row.direction(3, "0", "1", record);
    const uint64_t volume = row.whole(4, kVolumeMax);
    if (!row.mistake()) record.volume = volumes_.number(volume);
    return finished(row, record);
  }

 private:
  Volumes volumes_;
};

}  // namespace

std::unique_ptr<Format> make_mqsim() { return std::make_unique<Mqsim>(); }
std::unique_ptr<Format> make_systor() { return std::make_unique<Systor>(); }
std::unique_ptr<Format> make_msr() { return std::make_unique<Msr>(); }
std::unique_ptr<Format> make_alibaba() { return std::make_unique<Alibaba>(); }
std::unique_ptr<Format> make_tencent() { return std::make_unique<Tencent>(); }

}  // namespace cairn::trace
