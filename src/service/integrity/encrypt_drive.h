// SPDX-License-Identifier: Apache-2.0
// EncryptDrive: the working parts of encrypt.h, which has the contract. Internal.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crypto/xts.h"
#include "drive/losses.h"
#include "drive/ranges.h"
#include "service/common/claim.h"
#include "service/common/service_drive.h"
#include "service/common/token_bucket.h"
#include "service/integrity/encrypt.h"
#include "service/integrity/encrypt_format.h"

namespace cairn::drive {

// What a key file's key is on one drive.
struct EncryptKey {
  EncryptKey(const DriveKey& key, const Label& label);
  EncryptState::KeyCheck check;
  crypto::Xts cipher;
};

// What opening found. `old_key` is there while the state is_rotating.
struct EncryptFound {
  Label label;
  EncryptState state;
  EncryptKey key;
  std::optional<EncryptKey> old_key;
  uint64_t rate = 0;
};

class EncryptDrive final : public ServiceDrive {
 public:
  EncryptDrive(env::Env& env, Files& files, std::vector<std::unique_ptr<Drive>> below,
               EncryptFound found);

  // Writes a label that is new, finishes a window that a crash interrupted, and goes on with a
  // rotation. Once, before any request.
  task::Task<Result<void>> begin();
  task::Task<void> close() override;
  Extent extent_at(Lba lba, uint64_t max) const override;
  std::vector<Fact> facts() const override;
  std::vector<Concern> concerns() const override;
  std::vector<Job> jobs() const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;

 private:
  using Memory = std::span<const MutableBytes>;

  task::Task<Result<void>> run(DriveOp& op) override;
  task::Task<Result<void>> run_held(DriveOp& op);
  task::Task<Result<void>> flush(DriveOp& op);
  task::Task<Result<void>> read(Request request, Memory memory, task::CancelToken token);
  task::Task<Result<void>> compare(DriveOp& op);
  task::Task<Result<void>> write(DriveOp& op, Memory memory);
  crypto::Xts& cipher_of(uint64_t block);

  task::Task<Result<void>> save(EncryptState next);
  task::Task<std::expected<std::string, std::string>> begin_rotation(std::string path);
  task::Task<void> rotate();
  task::Task<Result<void>> rotate_some();
  uint64_t holes_ahead() const;
  task::Task<Result<void>> rotate_holes();
  task::Task<Result<void>> rotate_window(MutableBytes memory);
  task::Task<Result<void>> fill_journal(MutableBytes memory);
  task::Task<Result<void>> write_window(MutableBytes memory);
  task::Task<Result<void>> move(Request::Kind kind, uint64_t block, MutableBytes memory);

  env::Env& env_;
  Files& files_;
  Label label_;
  Claim claim_;
  EncryptState state_;  // as the label has it, unless there are stuck_blocks_
  EncryptKey key_;
  std::optional<EncryptKey> old_key_;
  Ranges ranges_;                   // requests, and windows that change their key
  std::vector<std::byte> scratch_;  // one block; never across a suspension
  Losses losses_;
  TokenBucket rotation_rate_;
  task::CancelSource closing_;
  Result<void> rotation_;      // what the last step of a rotation came to
  uint64_t stuck_blocks_ = 0;  // from state_.rotated on: may have either key, on the medium
  bool is_starting_ = false;   // a rotation, whose label is being written
};

}  // namespace cairn::drive
