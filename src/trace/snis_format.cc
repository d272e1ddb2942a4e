// SPDX-License-Identifier: Apache-2.0
// The format of the SNIS authors: a heading says which field is where, and in which unit.
//
//   RequestID,ArrivalTime,IOType,Size,VolumeID,Offset,InitiatorID,TargetID
//   RequestID,ArrivalTime_ns,IOType(1=write),Size_bytes,InitiatorID,LBA_sector
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "trace/format.h"
#include "trace/row.h"
#include "trace/volumes.h"

namespace cairn::trace {

namespace {

enum class Meaning : uint8_t {
  kArrival,
  kType,
  kSize,
  kVolume,
  kOffset,
  kInitiator,
  kTarget,
  kNothing
};

struct Column {
  const char* name;  // as a heading begins it
  Meaning meaning;
  uint64_t unit;  // without one in the heading
};
constexpr std::array<Column, 9> kColumns = {{{"RequestID", Meaning::kNothing, 1},
                                             {"ArrivalTime", Meaning::kArrival, 1},
                                             {"IOType", Meaning::kType, 1},
                                             {"Size", Meaning::kSize, 1},
                                             {"VolumeID", Meaning::kVolume, 1},
                                             {"Offset", Meaning::kOffset, 1},
                                             {"LBA", Meaning::kOffset, kSectorBytes},
                                             {"InitiatorID", Meaning::kInitiator, 1},
                                             {"TargetID", Meaning::kTarget, 1}}};

struct Unit {
  const char* ending;
  uint64_t size;
};
constexpr std::array<Unit, 8> kUnits = {{{"_ns", 1},
                                         {"_us", 1000},
                                         {"_ms", 1'000'000},
                                         {"_s", 1'000'000'000},
                                         {"_bytes", 1},
                                         {"_sectors", kSectorBytes},
                                         {"_sector", kSectorBytes},
                                         {"_kib", 1024}}};

class Snis final : public Format {
 public:
  Outcome<std::optional<Record>> parse(std::string_view line) override {
    if (heading_.empty()) return read_heading(line);
    Row row(line, ',', names_);
    row.expect_all();
    Record record;
    for (size_t i = 0; i < meanings_.size() && !row.mistake(); ++i) take(row, i, record);
    if (row.mistake()) return std::unexpected(*row.mistake());
    return record;
  }

 private:
  struct Sense {
    Meaning meaning;
    uint64_t unit;
  };

  Outcome<std::optional<Record>> read_heading(std::string_view line) {
    heading_ = std::string(line);
    std::vector<std::string> columns(1);
    for (const char c : heading_) {
      if (c == ',') {
        columns.emplace_back();
      } else {
        columns.back() += c;
      }
    }
    if (columns.size() > Row::kFieldsMax) return wrong("", "has too many columns");
    names_store_ = std::move(columns);
    for (const std::string& word : names_store_) {
      names_.push_back(word.c_str());
      const std::optional<Sense> sense = sense_of(word);
      if (!sense) {
        return wrong(word,
                     "is not a column of this format: RequestID, ArrivalTime, IOType, Size, "
                     "VolumeID, Offset, InitiatorID, TargetID are");
      }
      meanings_.push_back(*sense);
    }
    for (const auto& [meaning, name] : {std::pair{Meaning::kArrival, "ArrivalTime"},
                                        {Meaning::kType, "IOType"},
                                        {Meaning::kSize, "Size"}}) {
      if (!has(meaning)) return wrong(name, "is missing in the heading");
    }
    return std::nullopt;
  }

  static std::unexpected<Mistake> wrong(std::string field, std::string text) {
    return std::unexpected(Mistake{.field = std::move(field), .text = std::move(text)});
  }

  bool has(Meaning meaning) const {
    for (const Sense& sense : meanings_) {
      if (sense.meaning == meaning) return true;
    }
    return false;
  }

  static std::optional<Sense> sense_of(std::string_view word) {
    for (const Column& column : kColumns) {
      if (!word.starts_with(column.name)) continue;
      const std::string_view rest = word.substr(std::string_view(column.name).size());
      if (rest.empty() || rest.starts_with('(')) return Sense{column.meaning, column.unit};
      for (const Unit& unit : kUnits) {
        if (rest == unit.ending) return Sense{column.meaning, unit.size};
      }
    }
    return std::nullopt;
  }

  void take(Row& row, size_t i, Record& into) {
    const auto [meaning, unit] = meanings_[i];
    switch (meaning) {
      case Meaning::kArrival:
        into.arrival = row.time(i, static_cast<Nanos>(unit));
        break;
      case Meaning::kType:
        row.direction(i, "0", "1", into);
        break;
      case Meaning::kSize:
        row.bytes(i, unit, into);
        break;
      case Meaning::kVolume:
        into.volume = volumes_.number(row.whole(i, UINT64_MAX));
        break;
      case Meaning::kOffset:
        row.offset(i, unit, into);
        break;
      case Meaning::kInitiator:
        into.initiator = static_cast<uint32_t>(row.whole(i, kUnknown - 1));
        break;
      case Meaning::kTarget:
        into.target = static_cast<uint32_t>(row.whole(i, kUnknown - 1));
        break;
      case Meaning::kNothing:
        break;
    }
  }

  std::string heading_;
  std::vector<std::string> names_store_;
  std::vector<const char*> names_;
  std::vector<Sense> meanings_;
  Volumes volumes_;
};

}  // namespace

std::unique_ptr<Format> make_snis() { return std::make_unique<Snis>(); }

}  // namespace cairn::trace
