// SPDX-License-Identifier: Apache-2.0
// Writing values: a value as one record, or in pieces and a record that says where they are.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "kv/store/core.h"
#include "task/task.h"

namespace cairn::kv::store {

struct NewValue {
  KeyHash hash;
  std::string_view key;
  std::string_view value;
  uint64_t version = 0;
  bool is_durable = false;
};

// The position of a value's record, once all of it is written. Of `room`, which has its units
// (record_units), they are used up; after an error, what was written of them. Key and value are
// lent.
task::Task<Result<uint64_t>> write_value(Core& core, NewValue value, Room& room);

}  // namespace cairn::kv::store
