// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace cairn::drive {

task::Task<std::expected<std::string, std::string>> ParityScrub::run() {
  if (runs_) co_return std::unexpected("a scrub runs already");
  if (!context_.gate.enter()) co_return std::unexpected("the drive is being closed");
  runs_ = true;
  Scrubbed found;
  const Result<void> done = co_await scrub(found);
  runs_ = false;
  context_.gate.leave();
  const std::string counts = fmt::format(
      "{} rows compared; {} did not match their parity ({} with one wrong block, mended; of the "
      "rest the parity was made anew), {} blocks could not be read and were written back",
      found.rows, found.wrong, found.located, found.unreadable);
  if (done) co_return counts;
  co_return std::unexpected(
      fmt::format("scrub ended early: {}; so far {}", done.error().text(), counts));
}

task::Task<Result<void>> ParityScrub::scrub(Scrubbed& found) {
  for (row_ = 0; row_ < context_.shape.rows;) {
    const RowSpan rows = context_.shape.slice_at(row_, context_.shape.rows);
    const Result<void> may =
        co_await pace_.take(rows.count * context_.shape.block_size, context_.closing);
    if (!may) co_return may;
    const Result<void> done = co_await scrub_rows(rows, found);
    if (!done) co_return done;
    found.rows += rows.count;
    row_ = rows.end();
  }
  co_return Result<void>();
}

task::Task<Result<void>> ParityScrub::scrub_rows(RowSpan rows, Scrubbed& found) {
  Ranges::Hold hold(rows_.ranges(), Ranges::Mode::kExclusive, rows.first, rows.count,
                    context_.closing);
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  const uint64_t wanted = log_.units_of(rows.count);
  const Result<void> got = co_await log_.memory().acquire(wanted, context_.closing);
  if (!got) co_return got;
  const task::Units units(log_.memory(), wanted);
  co_return co_await scrub_alone(rows, found);
}

// Whoever calls it has the rows.
task::Task<Result<void>> ParityScrub::scrub_alone(RowSpan rows, Scrubbed& found) {
  if (!legs_.are_whole()) co_return fail(Errc::kUnreachable, "a leg is lost or lacks something");
  ParityBuffers word;
  const SymbolSet every = first_symbols(context_.shape.layout.legs);
  const ParityOutcome outcome = co_await rows_.read_symbols(rows, every, word, context_.closing);
  if (!outcome.other) co_return outcome.other;
  if (outcome.failed != 0) co_return co_await scrub_unreadable(rows, outcome, word, found);
  ParityBuffers right;
  for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
    if (Result<void> room = rows_.make_room(right[symbol], 1); !room) co_return room;
  }
  for (uint64_t row = 0; row < rows.count; ++row) {
    const SymbolSet wrong = find_wrong(word, row, right);
    if (wrong == 0) continue;
    ++found.wrong;
    if (wrong != rows_.code().parity_set()) ++found.located;
    for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
      if ((wrong >> symbol & 1) == 0) continue;
      const Result<void> mended =
          co_await rows_.mend({rows.first + row, 1}, symbol, right[symbol].bytes());
      if (!mended) co_return mended;
    }
  }
  co_return Result<void>();
}

// Symbols that can be read say what the others are.
task::Task<Result<void>> ParityScrub::scrub_unreadable(RowSpan rows, ParityOutcome outcome,
                                                       ParityBuffers& word, Scrubbed& found) {
  SymbolSet sources = outcome.done;
  const auto count = static_cast<size_t>(std::popcount(sources));
  if (count < context_.shape.layout.data) co_return outcome.failure;
  while (static_cast<size_t>(std::popcount(sources)) > context_.shape.layout.data) {
    sources &= ~std::bit_floor(sources);
  }
  rows_.compute(sources, outcome.failed, word, rows.count * context_.shape.block_size);
  for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
    if ((outcome.failed >> symbol & 1) == 0) continue;
    const Result<void> mended = co_await rows_.mend(rows, symbol, word[symbol].bytes());
    if (!mended) co_return mended;
    found.unreadable += rows.count;
  }
  co_return Result<void>();
}

// Which symbols of a row to write so that it is a word again, and what: the one that all others
// contradict when two or more parity symbols can tell, else the parity. None: it is a word.
SymbolSet ParityScrub::find_wrong(const ParityBuffers& word, uint64_t row, ParityBuffers& right) {
  const uint64_t size = context_.shape.block_size;
  const SymbolSet every = first_symbols(context_.shape.layout.legs);
  // Makes all but `sources` of them, and tells which of the others are different in fact.
  const auto differ = [&](SymbolSet sources) {
    std::array<std::byte*, kSymbolsMax> all = pointers(right);
    for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
      if ((sources >> symbol & 1) != 0) all[symbol] = word[symbol].data() + row * size;
    }
    rows_.code().make(sources, every & ~sources, all, size);
    SymbolSet different = 0;
    for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
      if ((sources >> symbol & 1) != 0) continue;
      if (std::memcmp(right[symbol].data(), word[symbol].data() + row * size, size) != 0) {
        different |= SymbolSet{1} << symbol;
      }
    }
    return different;
  };
  if (differ(rows_.code().data_set()) == 0) return 0;
  for (size_t symbol = 0; symbol < context_.shape.layout.legs && rows_.code().parity() > 1;
       ++symbol) {
    SymbolSet sources = every & ~(SymbolSet{1} << symbol);
    while (static_cast<size_t>(std::popcount(sources)) > context_.shape.layout.data) {
      sources &= ~std::bit_floor(sources);
    }
    if (differ(sources) == SymbolSet{1} << symbol) return SymbolSet{1} << symbol;
  }
  differ(rows_.code().data_set());
  return rows_.code().parity_set();
}

}  // namespace cairn::drive
