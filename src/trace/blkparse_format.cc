// SPDX-License-Identifier: Apache-2.0
// What blkparse prints of a blktrace:
//   8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
// One kind of event counts: requests as they were queued, or as they were issued to the device.
#include <array>
#include <charconv>

#include "trace/format.h"
#include "trace/row.h"
#include "trace/volumes.h"

namespace cairn::trace {

namespace {

constexpr Nanos kSecond = 1'000'000'000;

// "8,0" as one number.
std::optional<uint64_t> device_of(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  uint64_t device = 0;
  for (const std::string_view half : {text.substr(0, comma), text.substr(comma + 1)}) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(half.data(), half.data() + half.size(), number);
    if (error != std::errc{} || end != half.data() + half.size()) return std::nullopt;
    device = device << 32 | number;
  }
  return device;
}

class Blkparse final : public Format {
 public:
  explicit Blkparse(std::string_view action) : action_(action) {}

  Outcome<std::optional<Record>> parse(std::string_view line) override {
    static constexpr std::array kNames = {"device", "cpu",  "sequence", "time", "pid",
                                          "action", "RWBS", "sector",   "+",    "sectors"};
    Row row(line, ' ', kNames);
    const std::optional<uint64_t> device = device_of(row[0]);
    if (!device) {
      // After the events comes a summary in words.
      if (begun_) return std::nullopt;
      row.refuse(0, "is not a device: lines begin with major,minor");
      return std::unexpected(*row.mistake());
    }
    Record record{.arrival = row.time(3, kSecond)};
    if (row.mistake()) return std::unexpected(*row.mistake());
    begun_ = true;
    const std::string_view flags = row[6];
    const bool read = flags.contains('R');
    const bool write = flags.contains('W');
    if (row[5] != action_ || read == write || flags.contains('D')) return std::nullopt;
    // A flush has neither sector nor length.
    if (row[8] != "+") return std::nullopt;
    record.write = write;
    row.offset(7, kSectorBytes, record);
    if (row[9] == "0") return std::nullopt;
    row.bytes(9, kSectorBytes, record);
    if (row.mistake()) return std::unexpected(*row.mistake());
    record.volume = volumes_.number(*device);
    return record;
  }

 private:
  std::string_view action_;
  bool begun_ = false;
  Volumes volumes_;
};

}  // namespace

std::unique_ptr<Format> make_blkparse_queued() { return std::make_unique<Blkparse>("Q"); }
std::unique_ptr<Format> make_blkparse_issued() { return std::make_unique<Blkparse>("D"); }

}  // namespace cairn::trace
