// SPDX-License-Identifier: Apache-2.0
// fio's logs of I/O. Version 2 has "file action offset length" and waits in microseconds between
// requests; version 3 has a time in microseconds before each line and no waits.
#include <fmt/format.h>

#include <array>

#include "trace/format.h"
#include "trace/row.h"
#include "trace/volumes.h"

namespace cairn::trace {

namespace {

constexpr Nanos kMicrosecond = 1000;

class Fio final : public Format {
 public:
  Outcome<std::optional<Record>> parse(std::string_view line) override {
    if (version_ == 0) return read_heading(line);
    return version_ == 2 ? parse2(line) : parse3(line);
  }

 private:
  Outcome<std::optional<Record>> read_heading(std::string_view line) {
    if (line == "fio version 2 iolog") version_ = 2;
    if (line == "fio version 3 iolog") version_ = 3;
    if (version_ != 0) return std::nullopt;
    return std::unexpected(
        Mistake{.field = "heading",
                .text = fmt::format("{} is neither 'fio version 2 iolog' nor 'fio version 3 iolog'",
                                    shown(line))});
  }

  Outcome<std::optional<Record>> parse2(std::string_view line) {
    static constexpr std::array kNames = {"filename", "action", "offset", "length"};
    Row row(line, ' ', kNames);
    if (row[1] == "wait") {
      const Nanos wait = row.time(2, kMicrosecond);
      if (row.mistake()) return std::unexpected(*row.mistake());
      if (now_ > kArrivalMax - wait) {
        return std::unexpected(Mistake{.field = "offset", .text = "waits longer than time goes"});
      }
      now_ += wait;
      return std::nullopt;
    }
    return action(row, 0, now_);
  }

  Outcome<std::optional<Record>> parse3(std::string_view line) {
    static constexpr std::array kNames = {"timestamp", "filename", "action", "offset", "length"};
    Row row(line, ' ', kNames);
    const Nanos time = row.time(0, kMicrosecond);
    if (row.mistake()) return std::unexpected(*row.mistake());
    return action(row, 1, time);
  }

  // What a file is told to do; `file` is the field of its name.
  Outcome<std::optional<Record>> action(Row& row, size_t file, Nanos time) {
    const std::string_view word = row[file + 1];
    if (word == "read" || word == "write") {
      row.expect_all();
      Record record{.arrival = time, .write = word == "write"};
      row.offset(file + 2, 1, record);
      row.bytes(file + 3, 1, record);
      if (row.mistake()) return std::unexpected(*row.mistake());
      record.volume = volumes_.number(0, row[file]);
      return record;
    }
    for (const std::string_view other :
         {"add", "open", "close", "sync", "datasync", "sync_file_range", "trim"}) {
      if (word == other) return std::nullopt;
    }
    return std::unexpected(Mistake{
        .field = "action",
        .text = word.empty()
                    ? "is missing"
                    : fmt::format("{} is not an action of version {}", shown(word), version_)});
  }

  int version_ = 0;
  Nanos now_ = 0;
  Volumes volumes_;
};

}  // namespace

std::unique_ptr<Format> make_fio() { return std::make_unique<Fio>(); }

}  // namespace cairn::trace
