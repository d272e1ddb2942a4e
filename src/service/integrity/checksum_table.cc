// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/checksum_table.h"
#include "drive/scratch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::drive {

ChecksumTable::ChecksumTable(env::Env& env, Drive& below, task::Gate& gate,
                             const ChecksumShape& shape, size_t pages_max)
    : env_(env), below_(below), gate_(gate), shape_(shape), pages_max_(pages_max) {}

task::Task<Result<void>> ChecksumTable::pin(uint64_t first, uint64_t count,
                                            task::CancelToken token) {
  const uint64_t from = page_of(first);
  const uint64_t to = page_of(first + count - 1);
  for (uint64_t number = from; number <= to; ++number) {
    const Result<Page*> page = co_await pin_page(number, token);
    if (page) continue;
    for (uint64_t pinned = from; pinned < number; ++pinned) unpin(*pages_.at(pinned));
    co_return fail(page.error());
  }
  co_return Result<void>();
}

bool ChecksumTable::try_pin(uint64_t first, uint64_t count) {
  const uint64_t from = page_of(first);
  const uint64_t to = page_of(first + count - 1);
  for (uint64_t number = from; number <= to; ++number) {
    const auto page = pages_.find(number);
    if (page == pages_.end() || page->second->entries.empty()) return false;
  }
  for (uint64_t number = from; number <= to; ++number) {
    Page& page = *pages_.at(number);
    page.unlink();
    ++page.pins;
    ++hits_;
  }
  return true;
}

void ChecksumTable::unpin(uint64_t first, uint64_t count) {
  for (uint64_t number = page_of(first); number <= page_of(first + count - 1); ++number) {
    unpin(*pages_.at(number));
  }
}

void ChecksumTable::unpin(Page& page) {
  if (--page.pins > 0) return;
  if (page.entries.empty()) {  // it could not be read
    if (last_ == &page) last_ = nullptr;
    pages_.erase(page.number);
  } else {
    unused_.push_back(page);
  }
}

ChecksumTable::Page& ChecksumTable::find(uint64_t block) {
  const uint64_t number = page_of(block);
  if (last_ == nullptr || last_->number != number) last_ = pages_.at(number).get();
  return *last_;
}
uint32_t ChecksumTable::entry(uint64_t block) {
  return find(block).entries[block % shape_.page_entries()];
}
void ChecksumTable::set(uint64_t block, uint32_t entry) {
  Page& page = find(block);
  page.entries[block % shape_.page_entries()] = entry;
  page.is_changed = true;
}

task::Task<Result<ChecksumTable::Page*>> ChecksumTable::pin_page(uint64_t number,
                                                                 task::CancelToken token) {
  if (!pages_.contains(number)) {
    const Result<void> room = co_await make_room();
    if (!room) co_return fail(room.error());
  }
  std::unique_ptr<Page>& slot = pages_[number];
  if (slot == nullptr) slot = std::make_unique<Page>(number);
  Page& page = *slot;
  page.unlink();
  ++page.pins;
  if (!page.entries.empty()) {
    ++hits_;
    co_return &page;
  }
  ++misses_;
  Result<void> done = co_await page.turn.acquire(1, token);
  if (done) {
    if (page.entries.empty()) done = co_await read(page, token);
    page.turn.release();
  }
  if (done) co_return &page;
  unpin(page);
  co_return fail(done.error());
}

// From whichever copy has it. One that had to be looked for is written again.
task::Task<Result<void>> ChecksumTable::read(Page& page, task::CancelToken token) {
  Result<Scratch> memory = Scratch::make(env_, shape_.block_size);
  if (!memory) co_return fail(memory.error());
  const MutableBytes piece = memory->bytes();
  std::vector<uint32_t> entries(shape_.page_entries());
  Result<void> first;
  const unsigned copies = below_.geometry().copies;
  for (unsigned copy = 0; copy <= (copies > 1 ? copies : 0); ++copy) {
    const Request request{.kind = Request::Kind::kRead,
                          .metadata = true,
                          .copy = static_cast<uint8_t>(copy),
                          .lba = Lba(kChecksumTableBlock + page.number),
                          .blocks = 1};
    Result<void> done = co_await below_.submit(request, {&piece, 1}, {}, token);
    if (done) done = decode_checksum_page(shape_, page.number, piece, entries);
    if (done) {
      page.entries = std::move(entries);
      page.is_changed = copy > 0;
      co_return done;
    }
    if (copy == 0) first = done;
    if (first.error() != Errc::kCorrupt) break;  // of a drive that fails, all copies were tried
  }
  co_return first;
}

task::Task<Result<void>> ChecksumTable::write(Page& page) {
  Result<void> done = co_await page.turn.acquire();
  CHECK(done.has_value());
  if (page.is_changed) {
    Result<Scratch> memory = Scratch::make(env_, shape_.block_size);
    if (memory) {
      page.is_changed = false;
      encode_checksum_page(shape_, page.number, page.entries, memory->bytes());
      const MutableBytes piece = memory->bytes();
      const Request request{.kind = Request::Kind::kWrite,
                            .lba = Lba(kChecksumTableBlock + page.number),
                            .blocks = 1};
      done = co_await below_.submit(request, {&piece, 1});
      if (!done) page.is_changed = true;
    } else {
      done = fail(memory.error());
    }
  }
  page.turn.release();
  co_return done;
}

task::Task<void> ChecksumTable::write_for(Page& page, Join& join) {
  const Result<void> done = co_await write(page);
  unpin(page);
  join.finish(done);
}

task::Task<Result<void>> ChecksumTable::write_changes() {
  std::vector<Page*> changed;
  for (const auto& [number, page] : pages_) {
    // One that is being written was changed before this call, and counts when that is done.
    if (page->is_changed || page->turn.available() == 0) changed.push_back(page.get());
  }
  std::ranges::sort(changed, {}, &Page::number);
  Join join;
  for (Page* page : changed) {
    page->unlink();
    ++page->pins;
  }
  for (Page* page : changed) {
    join.add();
    gate_.spawn(write_for(*page, join));
  }
  co_return co_await join.all();
}

void ChecksumTable::lose() {
  for (const auto& [number, page] : pages_) {
    if (!page->entries.empty()) page->is_changed = true;
  }
}

task::Task<Result<void>> ChecksumTable::make_room() {
  while (pages_.size() >= pages_max_ && !unused_.empty()) {
    Page& oldest = *unused_.front();
    if (!oldest.is_changed) {
      if (last_ == &oldest) last_ = nullptr;
      oldest.unlink();
      pages_.erase(oldest.number);
      continue;
    }
    oldest.unlink();
    ++oldest.pins;
    const Result<void> done = co_await write(oldest);
    unpin(oldest);
    if (!done) co_return done;
  }
  co_return Result<void>();
}

task::Task<Result<void>> ChecksumTable::clear(uint64_t first, uint64_t count) {
  const uint64_t per_page = shape_.page_entries();
  const uint64_t end = first + count;
  const uint64_t whole_first = (first + per_page - 1) / per_page;
  const uint64_t whole_end = end == shape_.data_blocks ? shape_.pages() : end / per_page;
  uint64_t at = first;
  while (at < end) {
    const uint64_t number = page_of(at);
    if (number >= whole_first && number < whole_end) {
      at = std::min(whole_end * per_page, end);
      continue;
    }
    const uint64_t here = std::min(end, (number + 1) * per_page) - at;
    const Result<void> pinned = co_await pin(at, here, {});
    if (!pinned) co_return pinned;
    for (uint64_t i = 0; i < here; ++i) set(at + i, 0);
    unpin(at, here);
    at += here;
  }
  if (whole_first >= whole_end) co_return Result<void>();
  // What is in memory becomes zeroes; being changed, it is written after the discard.
  for (const auto& [number, page] : pages_) {
    if (number < whole_first || number >= whole_end || page->entries.empty()) continue;
    std::ranges::fill(page->entries, 0);
    page->is_changed = true;
  }
  co_return co_await below_.discard(Lba(kChecksumTableBlock + whole_first),
                                    whole_end - whole_first);
}

}  // namespace cairn::drive
