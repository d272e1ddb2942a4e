// SPDX-License-Identifier: Apache-2.0
// SpilloverDrive: the working parts of spillover.h, which has the contract. Internal.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "service/common/pace.h"
#include "service/mapped/chunk_table.h"
#include "service/mapped/mapped_drive.h"
#include "service/mapped/spillover_format.h"
#include "service/mapped/units.h"

namespace cairn::drive {

struct SpilloverOptions {
  uint64_t rate = 0;     // bytes per second of draining; 0: any
  Duration drain_pause;  // before room that appeared is used, and before a failure is tried again
};

class SpilloverDrive final : public MappedDrive, JournalOwner, MapOwner {
 public:
  struct Found {
    Label label;  // of the local drive
    SpilloverBody body;
    bool is_new = false;
    bool is_elsewhere_blank = false;  // it is labelled when nothing is there
  };
  // `below` is the local drive and, unless it is lost, the one elsewhere.
  SpilloverDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> below, Found found,
                 const SpilloverOptions& options);

  // Reads the map of drives that were labelled, or begins a new one.
  task::Task<Result<void>> begin();
  task::Task<void> close() override;
  std::vector<Fact> facts() const override;
  std::vector<Concern> concerns() const override;
  std::vector<Job> jobs() const override;

 private:
  static constexpr size_t kLocal = 0;
  static constexpr size_t kElsewhere = 1;

  Result<void> replay(Bytes bytes) override;
  Result<void> check_replayed() const override;
  std::optional<uint64_t> save(uint64_t from, JournalRecords& records) const override;
  Journal& map_journal() override { return *journal_; }
  task::Task<Result<void>> reload_map() override;
  task::Task<Result<void>> label_drives();

  Claim* claim() override { return &claim_; }
  std::optional<Place> find(uint64_t chunk) const override;
  bool is_own(uint64_t) const override { return true; }
  Spot spot(Place place) override;
  task::Task<Result<Place>> allocate(task::CancelToken token) override;
  void forsake(Place place) override;
  void map(uint64_t chunk, Place place, Journal::Needs needs) override;
  void unmap(uint64_t chunk) override;
  bool is_flushed_apart(Place place) const override { return place.leg == kElsewhere; }
  void wrote(Place place) override { writes_elsewhere_ += place.leg == kElsewhere ? 1 : 0; }
  task::Task<Result<void>> commit(task::CancelToken token) override;
  task::Task<Result<void>> sync(task::CancelToken token) override;
  task::Task<Result<void>> flush_elsewhere(task::CancelToken token);

  bool has_elsewhere() const { return below_count() > 1; }
  void set(uint64_t chunk, uint32_t place, Journal::Needs needs);
  void return_some();

  // Draining.
  bool can_drain() const;
  void wake_drainer();
  task::Task<void> drain();
  task::Task<bool> drain_chunks();
  task::Task<bool> drain_chunk(uint64_t chunk);
  std::optional<uint64_t> next_elsewhere();

  Found found_;
  Claim claim_;
  const uint64_t chunk_bytes_;
  std::array<Units, 2> units_;
  ChunkTable<uint32_t> map_;  // SpilloverRecord::place
  std::unique_ptr<Journal> journal_;
  MapGuard guard_;
  // In place, since it was opened; the first stands for all that a killed process left unflushed.
  uint64_t writes_elsewhere_ = 1;
  uint64_t flushed_elsewhere_ = 0;  // so many of them
  Losses losses_elsewhere_;

  task::CancelSource closing_;
  const Duration drain_pause_;
  Pace drain_pace_;
  uint64_t drain_next_ = 0;  // the chunk to look at next
  uint64_t drained_ = 0;
  bool drainer_runs_ = false;
  bool is_draining_ = false;
};

}  // namespace cairn::drive
