// SPDX-License-Identifier: Apache-2.0
// Joint: what stands between two layers of a stack, so that either can be exchanged for another.
//
// A service owns the joints below it and takes them for drives; the layers that they lead to belong
// to the stack (live_stack.h). A request passes as the same operation, counted on its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "drive/drive.h"
#include "env/env.h"
#include "service/common/figures.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

class Joint;

// An open drive, what came to it, and who leads to it. Its figures go with it when it moves.
struct OpenLayer {
  std::unique_ptr<Drive> drive;
  Figures figures;
  Joint* joint = nullptr;  // that leads here; null: none
  size_t views = 0;        // that open_view gave, and that are not closed
  bool has_lent = false;   // its memory may be looked at until the stack is closed
  bool is_counted = true;  // false: nobody asks for its figures, which cost a look at the clock
};

// Leads to one layer, or to none while it is held. close() leaves the layer open: whoever owns it
// closes it, after what stands above.
class Joint : public Drive, private Relay {
 public:
  Joint(env::Env& env, OpenLayer& layer);
  ~Joint() override;
  Joint(const Joint&) = delete;
  Joint& operator=(const Joint&) = delete;

  // The reference stays valid when the layer is replaced. `transfer_blocks` never grows, so that a
  // request that waits also fits the next layer, which is no worse than the first.
  const Geometry& geometry() const override;
  Extent extent_at(Lba lba, uint64_t max) const override;
  std::vector<Fact> facts() const override;
  std::vector<Concern> concerns() const override;
  std::vector<Job> jobs() const override;
  Incarnation incarnation() const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;
  // kLimit while it is held.
  Result<std::unique_ptr<Drive>> open_view(std::string_view name) override;
  task::Task<Result<void>> resize(uint64_t blocks) override;
  task::Task<void> close() override { co_return; }

  // From now on what comes waits; done when nothing is in flight below. When the token ends it, the
  // joint is not held.
  task::Task<Result<void>> hold(task::CancelToken token);
  // While it is held. Null: to nothing; what waits is answered with kClosed once it is released.
  void lead_to(OpenLayer* layer);
  // What has waited goes on, in the order in which it came.
  void release();
  bool is_held() const { return is_held_; }
  // A flush that nobody above asked for has failed: the next one that somebody does fails as well.
  void owe_failed_flush() { owes_failed_flush_ = true; }
  // What is led to now has lent memory, to somebody who came another way.
  void note_lent() { layer_->has_lent = true; }
  bool has_lent() const { return layer_ != nullptr && layer_->has_lent; }
  // What it leads to; null: nothing.
  const Drive* layer() const { return layer_ == nullptr ? nullptr : layer_->drive.get(); }

 protected:
  // Something that is no DriveOp: once inside, a hold waits for it until it leaves.
  task::Task<Result<void>> enter();
  void leave();

 private:
  void start(DriveOp& op) final;
  void cancel(DriveOp& op) final;
  bool run_now(const Request& request, std::span<const MutableBytes> data,
               Result<void>& done) final;
  Bytes lend_now(Lba lba, uint64_t blocks) const final;
  void relayed(DriveOp& op, const Result<void>& done) final;

  void pass(DriveOp& op);
  task::Task<void> run(DriveOp& op);
  // It was done there, handed on or run at `begun`.
  void count(const Request& request, const Result<void>& done, Time begun);

  env::Env& env_;
  OpenLayer* layer_;
  mutable Geometry shape_;  // the layer's, as it was last asked
  List<DriveOp, DriveOp> waiting_;
  size_t in_flight_ = 0;
  bool is_held_ = false;
  bool owes_failed_flush_ = false;
  task::Event idle_;      // nothing is in flight, and it is held
  task::Event released_;  // it is not held
  task::Gate gate_;
};

// The layer itself, for those who ask what kind of drive it is.
const Drive& without_joint(const Drive& drive);

}  // namespace cairn::drive
