// SPDX-License-Identifier: Apache-2.0
// ChecksumTable: the entries of all blocks, on the drive below, with the pages used last in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "drive/drive.h"
#include "drive/join.h"
#include "env/env.h"
#include "service/integrity/checksum_format.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

// Pages that are in use (pinned) or changed stay; others go, the longest unused first, when there
// are more than `pages_max`. A page that was changed is written before it goes.
class ChecksumTable {
 public:
  // The drive and the gate, in which writes run side by side, outlive it.
  ChecksumTable(env::Env& env, Drive& below, task::Gate& gate, const ChecksumShape& shape,
                size_t pages_max);

  // The pages of these blocks stay in memory until unpin(). kCorrupt: one is damaged on all copies;
  // errors of the drive. On failure nothing is pinned.
  task::Task<Result<void>> pin(uint64_t first, uint64_t count, task::CancelToken token);
  // The same when all are in memory, which is usual. False: nothing was done.
  bool try_pin(uint64_t first, uint64_t count);
  void unpin(uint64_t first, uint64_t count);

  // Of blocks that are pinned.
  uint32_t entry(uint64_t block);
  void set(uint64_t block, uint32_t entry);

  // All entries of these blocks become 0. Pages that have no others are discarded, whether they can
  // be read or not. Nobody else uses the blocks meanwhile.
  task::Task<Result<void>> clear(uint64_t first, uint64_t count);

  // Done when every change before the call was written; a flush makes it durable.
  task::Task<Result<void>> write_changes();

  // What was written since the last flush may be lost: all that is in memory is written again.
  void lose();

  size_t pages() const { return pages_.size(); }
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  struct Page : ListHook<Page> {
    explicit Page(uint64_t number) : number(number) {}
    const uint64_t number;
    std::vector<uint32_t> entries;  // none: not read yet
    uint32_t pins = 0;
    bool is_changed = false;
    task::Semaphore turn{1};  // of reading and writing it
  };

  uint64_t page_of(uint64_t block) const { return block / shape_.page_entries(); }
  Page& find(uint64_t block);
  task::Task<Result<Page*>> pin_page(uint64_t number, task::CancelToken token);
  void unpin(Page& page);
  task::Task<Result<void>> read(Page& page, task::CancelToken token);
  task::Task<Result<void>> write(Page& page);
  task::Task<void> write_for(Page& page, Join& join);
  task::Task<Result<void>> make_room();

  env::Env& env_;
  Drive& below_;
  task::Gate& gate_;
  const ChecksumShape shape_;
  const size_t pages_max_;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  List<Page, Page> unused_;  // not pinned, the longest unused first
  Page* last_ = nullptr;     // that was found
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

}  // namespace cairn::drive
