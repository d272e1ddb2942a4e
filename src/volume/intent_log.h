// SPDX-License-Identifier: Apache-2.0
// IntentLog: keeps the marks of write intents in a volume's first extent.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "service/common/write_intent.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/intent_format.h"

namespace cairn::volume {

class IntentLog final : public drive::WriteIntent::Keeper {
 public:
  class Owner {
   public:
    // Writes a record durably to every leg of the first extent; legs that fail are known, durably,
    // to lack it when this succeeds.
    virtual task::Task<Result<void>> save_intents(Bytes record, uint64_t slot) = 0;

   protected:
    ~Owner() = default;
  };

  // Both outlive it.
  IntentLog(env::Env& env, Owner& owner) : env_(env), owner_(owner) {}

  // Of this opening. kLimit: there is no memory.
  Result<void> begin(VolumeId volume, Epoch epoch, uint32_t region_extents, drive::RegionSet marks);
  // Always durable: the record before the last must be one that counts, too.
  task::Task<Result<void>> save_marks(const drive::RegionSet& marks, bool durable) override;
  // The last marks once more, to both places.
  task::Task<Result<void>> rewrite();

 private:
  task::Task<Result<void>> write();

  env::Env& env_;
  Owner& owner_;
  IntentRecord record_;
  drive::Scratch block_;
  task::Semaphore turn_{1};
};

}  // namespace cairn::volume
