// SPDX-License-Identifier: Apache-2.0
// Scrubbing: whether all rows are words of the code, and mending those that are not.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "service/raid/parity_drive.h"

namespace cairn::drive {

task::Task<std::expected<std::string, std::string>> ParityDrive::tell(
    std::vector<std::string> words) {
  if (words == std::vector<std::string>{"retry"}) co_return reviver_.try_now();
  if (words.size() != 1 || words[0] != "scrub") {
    co_return std::unexpected("parity takes one command: scrub, or retry");
  }
  if (scrub_runs_) co_return std::unexpected("a scrub runs already");
  if (!gate().enter()) co_return std::unexpected("the drive is being closed");
  scrub_runs_ = true;
  Scrubbed found;
  const Result<void> done = co_await scrub(found);
  scrub_runs_ = false;
  gate().leave();
  const std::string counts = fmt::format(
      "{} rows compared; {} did not match their parity ({} with one wrong block, mended; of the "
      "rest the parity was made anew), {} blocks could not be read and were written back",
      found.rows, found.wrong, found.located, found.unreadable);
  if (done) co_return counts;
  co_return std::unexpected(
      fmt::format("scrub ended early: {}; so far {}", done.error().text(), counts));
}

task::Task<Result<void>> ParityDrive::scrub(Scrubbed& found) {
  for (scrub_row_ = 0; scrub_row_ < label().rows;) {
    const RowSpan rows = slice_at(scrub_row_, label().rows);
    const Result<void> may =
        co_await pace_.take(rows.count * geometry_.block_size, closing_.token());
    if (!may) co_return may;
    const Result<void> done = co_await scrub_rows(rows, found);
    if (!done) co_return done;
    found.rows += rows.count;
    scrub_row_ = rows.end();
  }
  co_return Result<void>();
}

task::Task<Result<void>> ParityDrive::scrub_rows(RowSpan rows, Scrubbed& found) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, rows.first, rows.count, closing_.token());
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  const uint64_t wanted = units_of(rows.count);
  const Result<void> got = co_await units_.acquire(wanted, closing_.token());
  if (!got) co_return got;
  const task::Units units(units_, wanted);
  co_return co_await scrub_alone(rows, found);
}

// Whoever calls it has the rows.
task::Task<Result<void>> ParityDrive::scrub_alone(RowSpan rows, Scrubbed& found) {
  if (!is_whole()) co_return fail(Errc::kUnreachable, "a leg is lost or lacks something");
  Buffers word;
  const SymbolSet every = first_symbols(layout_.legs);
  const Outcome outcome = co_await read_symbols(rows, every, word, closing_.token());
  if (!outcome.other) co_return outcome.other;
  if (outcome.failed != 0) co_return co_await scrub_unreadable(rows, outcome, word, found);
  Buffers right;
  for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
    if (Result<void> room = make_room(right[symbol], 1); !room) co_return room;
  }
  for (uint64_t row = 0; row < rows.count; ++row) {
    const SymbolSet wrong = find_wrong(word, row, right);
    if (wrong == 0) continue;
    ++found.wrong;
    if (wrong != code_.parity_set()) ++found.located;
    for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
      if ((wrong >> symbol & 1) == 0) continue;
      const Result<void> mended =
          co_await mend({rows.first + row, 1}, symbol, right[symbol].bytes());
      if (!mended) co_return mended;
    }
  }
  co_return Result<void>();
}

// Symbols that can be read say what the others are.
task::Task<Result<void>> ParityDrive::scrub_unreadable(RowSpan rows, Outcome outcome, Buffers& word,
                                                       Scrubbed& found) {
  SymbolSet sources = outcome.done;
  if (static_cast<size_t>(std::popcount(sources)) < layout_.data) co_return outcome.failure;
  while (static_cast<size_t>(std::popcount(sources)) > layout_.data) {
    sources &= ~std::bit_floor(sources);
  }
  code_.make(sources, outcome.failed, pointers(word), rows.count * geometry_.block_size);
  for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
    if ((outcome.failed >> symbol & 1) == 0) continue;
    const Result<void> mended = co_await mend(rows, symbol, word[symbol].bytes());
    if (!mended) co_return mended;
    found.unreadable += rows.count;
  }
  co_return Result<void>();
}

// Which symbols of a row to write so that it is a word again, and what: the one that all others
// contradict when two or more parity symbols can tell, else the parity. None: it is a word.
SymbolSet ParityDrive::find_wrong(const Buffers& word, uint64_t row, Buffers& right) {
  const uint64_t size = geometry_.block_size;
  const SymbolSet every = first_symbols(layout_.legs);
  // Makes all but `sources` of them, and tells which of the others are different in fact.
  const auto differ = [&](SymbolSet sources) {
    std::array<std::byte*, kSymbolsMax> all = pointers(right);
    for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
      if ((sources >> symbol & 1) != 0) all[symbol] = word[symbol].data() + row * size;
    }
    code_.make(sources, every & ~sources, all, size);
    SymbolSet different = 0;
    for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
      if ((sources >> symbol & 1) != 0) continue;
      if (std::memcmp(right[symbol].data(), word[symbol].data() + row * size, size) != 0) {
        different |= SymbolSet{1} << symbol;
      }
    }
    return different;
  };
  if (differ(code_.data_set()) == 0) return 0;
  for (size_t symbol = 0; symbol < layout_.legs && code_.parity() > 1; ++symbol) {
    SymbolSet sources = every & ~(SymbolSet{1} << symbol);
    while (static_cast<size_t>(std::popcount(sources)) > layout_.data) {
      sources &= ~std::bit_floor(sources);
    }
    if (differ(sources) == SymbolSet{1} << symbol) return SymbolSet{1} << symbol;
  }
  differ(code_.data_set());
  return code_.parity_set();
}

}  // namespace cairn::drive
