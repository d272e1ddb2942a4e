// SPDX-License-Identifier: Apache-2.0
// ParityDrive: parity.h, which has the contract, put together of its parts. Internal.
//
//   ParityLegs    who has what, and is believed; labels        ParityRows    words of the code
//   ParityEpoch   the state on the legs                        ParityReader  reads
//   ParityLog     updates, all or nothing                      ParityWriter  changes
//   ParityCopier  gives legs what they lack                    ParityScrub   compares everything
//
// Each knows only those that it is given. The drive opens and closes them, takes legs back and
// puts spares in their places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "env/env.h"
#include "service/common/pace.h"
#include "service/common/service_drive.h"
#include "service/raid/leg_reviver.h"
#include "service/raid/legs.h"
#include "service/raid/parity.h"
#include "service/raid/parity_copier.h"
#include "service/raid/parity_epoch.h"
#include "service/raid/parity_format.h"
#include "service/raid/parity_legs.h"
#include "service/raid/parity_log.h"
#include "service/raid/parity_rows.h"
#include "service/raid/parity_scrub.h"
#include "service/raid/parity_shape.h"
#include "service/raid/parity_writer.h"

namespace cairn::drive {

struct ParityOptions {
  size_t parity = 1;
  uint64_t chunk_bytes = 0;
  size_t spares = 0;
  bool degraded = false;
  bool moved = false;
  uint64_t rate = 0;  // bytes per second of copying and scrubbing; 0: any
  Duration retry;
};

// What opening found, and the drive starts with.
struct ParityFound {
  ParityLabel label;
  Legs legs;
  ParityState state;
  bool states_differ = false;  // a crash came between two legs
  bool is_new = false;         // all is to be written
};

class ParityDrive final : public ServiceDrive,
                          private LegReviver::Owner,
                          private ParityLegs::Listener {
 public:
  // `slice` is the most rows of one update.
  ParityDrive(env::Env& env, ParityOptions options, ParityFound found, LateDrives* late,
              uint64_t slice, Buffer state_block);

  // Puts what was found onto the legs and carries out what their logs demand. Once, before any
  // request. `newest` is the label as it was found.
  task::Task<Result<void>> begin(ParityLabel newest);
  task::Task<void> close() override;
  ParityStatus status() const;
  std::vector<Fact> facts() const override;
  // Of the whole: legs come and go.
  Incarnation incarnation() const override {
    const ParityLabel& label = legs_.label();
    return {.medium = (label.id[0] ^ label.id[1]) | 1,
            .opening = opening_,
            .local_opening = legs_.all().local_opening()};
  }
  std::vector<Concern> concerns() const override;
  std::vector<Job> jobs() const override;
  task::Task<std::expected<std::string, std::string>> tell(std::vector<std::string> args) override;

 private:
  using State = Leg::State;

  task::Task<Result<void>> run(DriveOp& op) override;
  task::Task<Result<void>> flush();
  void set_geometry();

  task::Task<Result<void>> make_new();
  task::Task<Result<void>> begin_alone(const ParityLabel& newest);

  // ParityLegs::Listener.
  void leg_is_lost(bool was_good) override;
  void leg_is_doubtful() override { log_.recover(); }

  // LegReviver::Owner.
  task::Task<bool> revive(size_t leg) override;
  task::Task<void> replace(size_t leg) override;
  task::Task<Newcomer> meet(std::unique_ptr<Drive>& drive) override;
  // A drive that lacks everything gets it, in a lost leg's place: the one that is there, or a
  // spare.
  task::Task<bool> fill_anew(size_t leg, bool by_spare);
  bool fits(const Geometry& shape) const;

  env::Env& env_;
  const ParityOptions options_;
  const ParityShape shape_;
  const uint64_t opening_;
  const bool is_new_;
  const bool states_differ_;  // as they were found
  task::CancelSource closing_;
  const ParityContext context_;
  ParityLegs legs_;
  ParityEpoch epoch_;
  ParityLog log_;
  ParityRows rows_;
  ParityWriter writer_;
  Pace pace_;
  ParityCopier copier_;
  ParityScrub scrub_;
  LegReviver reviver_;
};

}  // namespace cairn::drive
