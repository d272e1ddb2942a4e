// SPDX-License-Identifier: Apache-2.0
#include "trace/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/row.h"

namespace cairn::trace {

namespace {

constexpr size_t kLooked = 16;  // lines that tell the format

std::unexpected<Mistake> at(uint64_t line, Mistake mistake) {
  mistake.line = line;
  return std::unexpected(std::move(mistake));
}

bool begins_with_letter(std::string_view line) {
  return (line[0] >= 'a' && line[0] <= 'z') || (line[0] >= 'A' && line[0] <= 'Z');
}

}  // namespace

Outcome<Reader> Reader::open(std::unique_ptr<ByteSource> source, const ReaderOptions& options) {
  Lines lines(unpacked(std::move(source)));
  std::vector<std::string> first;
  while (first.size() < kLooked) {
    const auto line = lines.next();
    if (!line) return std::unexpected(line.error());
    if (!*line) break;
    first.emplace_back(**line);
  }
  if (first.empty()) return std::unexpected(Mistake{.text = "is empty: a trace has requests"});
  const FormatKind* kind = options.format.empty() ? recognise(first) : format_named(options.format);
  if (kind == nullptr) {
    return std::unexpected(Mistake{
        .text = options.format.empty()
                    ? fmt::format("is in no format that is known ({}); its first line is {}. Say "
                                  "which with --format to see what is wrong with it",
                                  format_names(), shown(first.front()))
                    : fmt::format("--format is one of {}", format_names())});
  }
  Reader reader(std::move(lines), *kind, std::max<size_t>(options.reorder, 1));
  if (!options.from_zero) reader.first_ = 0;
  reader.first_lines_.assign(first.begin(), first.end());
  return reader;
}

Outcome<void> Reader::take_line(std::string_view line, uint64_t number) {
  if (line.empty()) return {};
  Outcome<std::optional<Record>> parsed = format_->parse(line);
  if (!parsed) {
    const bool is_heading = number == 1 && kind_->heading.empty() && begins_with_letter(line);
    if (is_heading) return {};
    return at(number, parsed.error());
  }
  if (!*parsed) return {};
  waiting_.push_back({.record = **parsed, .number = read_++, .line = number});
  std::ranges::push_heap(waiting_, Later{});
  return {};
}

Outcome<void> Reader::fill() {
  while (!ended_ && waiting_.size() < reorder_) {
    if (!first_lines_.empty()) {
      const Outcome<void> taken = take_line(first_lines_.front(), ++first_lines_taken_);
      if (!taken) return taken;
      first_lines_.pop_front();
      continue;
    }
    const auto line = lines_.next();
    if (!line) return std::unexpected(line.error());
    if (!*line) {
      ended_ = true;
      break;
    }
    if (const Outcome<void> taken = take_line(**line, lines_.number()); !taken) return taken;
  }
  return {};
}

Outcome<std::optional<Record>> Reader::next() {
  if (const Outcome<void> filled = fill(); !filled) return std::unexpected(filled.error());
  if (waiting_.empty()) {
    if (read_ == 0) {
      return std::unexpected(
          Mistake{.text = fmt::format("has no request in {} format; another may be given with "
                                      "--format",
                                      kind_->title)});
    }
    return std::nullopt;
  }
  std::ranges::pop_heap(waiting_, Later{});
  Waiting next = waiting_.back();
  waiting_.pop_back();
  if (!first_) first_ = next.record.arrival;
  if (next.record.arrival < *first_ + last_) {
    return at(next.line,
              Mistake{.text = fmt::format("arrives before requests that stand more than {} lines "
                                          "above it; sort the trace by time",
                                          reorder_)});
  }
  last_ = next.record.arrival - *first_;
  next.record.arrival = last_;
  return next.record;
}

}  // namespace cairn::trace
