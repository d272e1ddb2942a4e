// SPDX-License-Identifier: Apache-2.0
// CompletionQueue: a ring in guest memory where a controller says how commands ended.
//
// Completions that find it full wait, in order, for the driver to take some out; their commands
// stay with their submission queue meanwhile.
#pragma once

#include <cstdint>

#include "base/list.h"
#include "base/units.h"
#include "door/vfio_user/doorbells.h"
#include "door/vfio_user/guest_ring.h"
#include "door/vfio_user/pci_command.h"
#include "nvme/format/command_format.h"
#include "nvme/format/pci_format.h"

namespace cairn::door::vfio_user {

// On one core.
class CompletionQueue : public ListHook<CompletionQueue> {
 public:
  // Where a ring stands, for a successor.
  struct Position {
    uint16_t head = 0;  // as the driver last said
    uint16_t tail = 0;
    bool phase = true;
  };

  CompletionQueue(door::GuestMemory& memory, Doorbells& doorbells,
                  const nvme::CompletionQueueFields& fields)
      : fields_(fields),
        doorbells_(doorbells),
        ring_(memory, fields.address, (fields.size + 1u) * sizeof(nvme::Cqe)) {
    doorbells_.clear(Doorbell::head_of(fields.id));
  }

  const nvme::CompletionQueueFields& fields() const { return fields_; }
  bool is_there() { return ring_.is_there(); }

  enum class Pushed : uint8_t {
    kDone,
    kFull,
    kBroken,  // the ring is gone, or the driver's head is outside of it
  };
  Pushed push(nvme::Cqe cqe);

  List<PciCommand>& waiting() { return waiting_; }
  // The raiser's: completions that no interrupt has told of, and when the first of them came.
  uint32_t news = 0;
  Time since;

  // Asks to be rung when there is room again; see Doorbells::ask_to_ring().
  void ask_for_room() { doorbells_.ask_to_ring(Doorbell::head_of(fields_.id), position_.head); }

  Position position() const { return position_; }
  // False: there is no such place.
  bool set_position(const Position& position);

 private:
  uint16_t next(uint16_t at) const {
    return at == fields_.size ? uint16_t{0} : static_cast<uint16_t>(at + 1);
  }

  nvme::CompletionQueueFields fields_;
  Doorbells& doorbells_;
  GuestRing ring_;
  Position position_;
  List<PciCommand> waiting_;
};

}  // namespace cairn::door::vfio_user
