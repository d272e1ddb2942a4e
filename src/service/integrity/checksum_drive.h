// SPDX-License-Identifier: Apache-2.0
// ChecksumDrive: the working parts of checksum.h, which has the contract. Internal.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "drive/losses.h"
#include "drive/ranges.h"
#include "service/common/claim.h"
#include "service/common/service_drive.h"
#include "service/common/token_bucket.h"
#include "service/common/write_intent.h"
#include "service/integrity/checksum.h"
#include "service/integrity/checksum_format.h"
#include "service/integrity/checksum_table.h"

namespace cairn::drive {

// What opening found.
struct ChecksumFound {
  Label label;
  ChecksumShape shape;
  RegionSet marked;
  bool is_new = false;
};

struct ChecksumOptions {
  uint64_t cache = 0;  // bytes
  uint64_t rate = 0;   // bytes per second of scrubbing; 0: any
};

// The bitmap of a drive, from whichever copy has it.
task::Task<Result<RegionSet>> read_checksum_bitmap(env::Env& env, Drive& below,
                                                   const ChecksumShape& shape);

class ChecksumDrive final : public ServiceDrive, private WriteIntent::Keeper {
 public:
  ChecksumDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, ChecksumFound found,
                const ChecksumOptions& options);

  // Makes a new drive of a blank one, or begins to settle what a crash left. Once, before any
  // request.
  task::Task<Result<void>> begin();
  task::Task<void> close() override;
  std::vector<Fact> facts() const override;
  std::vector<Concern> concerns() const override;
  std::vector<Job> jobs() const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;

 private:
  using Memory = std::span<const MutableBytes>;
  struct Span {
    uint64_t first = 0;
    uint64_t count = 0;
  };

  // Requests (checksum_drive.cc).
  task::Task<Result<void>> run(DriveOp& op) override;
  task::Task<Result<void>> flush(task::CancelToken token);
  task::Task<Result<void>> flush_for_user(task::CancelToken token);
  // Data or sums that were not flushed may be gone: sums of marked regions are in doubt.
  void lose();
  void notice_losses();
  task::Task<Result<void>> change(DriveOp& op);
  task::Task<Result<void>> change_held(DriveOp& op, Memory memory);
  task::Task<Result<void>> compare(DriveOp& op);
  // The caller holds the blocks.
  task::Task<Result<void>> read_checked(Request request, Memory memory, task::CancelToken token);
  task::Task<Result<void>> mend(uint64_t block, Memory memory, size_t offset,
                                task::CancelToken token);
  uint32_t entry_of(uint64_t block, Bytes bytes) const;
  bool is_right(uint64_t block, Bytes bytes);
  bool is_settled(uint64_t block) const { return !unsettled_.has(block / shape_.region_blocks); }
  Regions regions_of(Span blocks) const {
    const uint64_t first = blocks.first / shape_.region_blocks;
    return {first, (blocks.first + blocks.count - 1) / shape_.region_blocks - first + 1};
  }
  task::Task<Result<void>> save_marks(const RegionSet& marks, bool durable) override;

  // What it does by itself (checksum_scrub.cc).
  void unsettle(Regions regions);
  task::Task<void> settle_all();
  task::Task<bool> settle(uint64_t region);
  void wake_sweeper();
  task::Task<void> sweep();
  task::Task<void> forget_idle();
  task::Task<void> repair(uint64_t block);
  task::Task<bool> find_right(uint64_t block, MutableBytes memory, task::CancelToken token,
                              bool& all_right);
  task::Task<void> scrub();
  task::Task<std::vector<uint64_t>> find_wrong(Span blocks, uint8_t copy, MutableBytes memory);
  uint64_t step_blocks() const;

  env::Env& env_;
  Label label_;
  Claim claim_;
  const ChecksumShape shape_;
  const bool is_new_;
  const uint32_t seed_;  // of every checksum
  ChecksumTable table_;
  WriteIntent intent_;
  Ranges ranges_;  // readers share blocks, changes are alone
  Losses losses_;
  Watch watch_;
  RegionSet unsettled_;             // may hold blocks without their checksums
  std::vector<std::byte> scratch_;  // one block; never across a suspension
  Buffer bitmap_block_;
  TokenBucket scrub_rate_;
  task::CancelSource closing_;
  bool settler_runs_ = false;
  bool sweeper_runs_ = false;
  bool is_scrubbing_ = false;
  uint64_t settling_ = UINT64_MAX;  // the region the settler is at
  bool settle_again_ = false;       // something happened to it meanwhile
  uint64_t scrubbed_ = 0;           // blocks
  uint64_t corrupt_ = 0;            // blocks that no copy had
  uint64_t repaired_ = 0;
  uint64_t trusted_ = 0;
};

}  // namespace cairn::drive
