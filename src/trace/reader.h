// SPDX-License-Identifier: Apache-2.0
// Reader: the requests of a trace in order of arrival, in bounded memory.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trace/format.h"
#include "trace/lines.h"

namespace cairn::trace {

struct ReaderOptions {
  std::string format;  // of formats(); empty: told by the first lines
  // Traces are nearly in order. A request may stand so many requests behind its place.
  size_t reorder = 65536;
  // The first request arrives at zero; otherwise times are those of the file.
  bool from_zero = true;
};

class Reader {
 public:
  // Plain or gzip. The Mistake names what is wrong with the first lines, or the formats there are.
  static Outcome<Reader> open(std::unique_ptr<ByteSource> source, const ReaderOptions& options);

  // The next request; nothing after the last. None arrives before the one ahead of it.
  // Requests of one time come as they stand in the file.
  Outcome<std::optional<Record>> next();

  const char* format_title() const { return kind_->title; }

 private:
  struct Waiting {
    Record record;
    uint64_t number;  // in the file
    uint64_t line;
  };
  struct Later {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return a.record.arrival != b.record.arrival ? a.record.arrival > b.record.arrival
                                                  : a.number > b.number;
    }
  };

  Reader(Lines lines, const FormatKind& kind, size_t reorder)
      : lines_(std::move(lines)), kind_(&kind), format_(kind.make()), reorder_(reorder) {}
  Outcome<void> fill();
  Outcome<void> take_line(std::string_view line, uint64_t number);

  Lines lines_;
  const FormatKind* kind_;
  std::unique_ptr<Format> format_;
  size_t reorder_;
  std::deque<std::string> first_lines_;  // read to tell the format, not parsed yet
  uint64_t first_lines_taken_ = 0;
  std::vector<Waiting> waiting_;  // a heap, the earliest in front
  bool ended_ = false;
  uint64_t read_ = 0;
  std::optional<Nanos> first_;
  Nanos last_ = 0;
};

}  // namespace cairn::trace
