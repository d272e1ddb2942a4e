// SPDX-License-Identifier: Apache-2.0
// Reading: items and values, while others write. Nothing here waits for a lock.
//
// Between looking into the table and reading, what the table said may be moved and overwritten. The
// checksum of what is then read is wrong, and the table says something else: it is read again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kv/keyspace.h"
#include "kv/store/core.h"
#include "task/task.h"

namespace cairn::kv::store {

// The item of a key; none: there is no such key, or it has expired. kCorrupt.
task::Task<Result<std::optional<Item>>> find_item(Core& core, KeyHash hash);

// All items of a segment that have not expired.
task::Task<Result<std::vector<Item>>> read_items(Core& core, uint32_t segment);

Meta meta_of(const Item& item);

// The value of an item, and, if `key` is given, whether it is that key's. kCorrupt: a record is
// damaged, or overwritten, or another key's.
task::Task<Result<std::string>> read_value(Core& core, Item item,
                                           std::optional<std::string_view> key);
// The key of an item.
task::Task<Result<std::string>> read_key(Core& core, Item item);
// The key of an item of that segment whose record may be damaged elsewhere: what lies in its place,
// if it is the one that the item stands for (key_hash.h). kCorrupt: it is damaged too.
task::Task<Result<std::string>> read_key_of_damaged(Core& core, Item item, uint32_t segment);

// A key with its value, by two reads of the drive. `key` is lent.
task::Task<Result<std::optional<Entry>>> read_entry(Core& core, std::string_view key);

}  // namespace cairn::kv::store
