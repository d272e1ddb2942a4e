// SPDX-License-Identifier: Apache-2.0
// Interrupts: how a device gets a client's attention.
//
// A client gives a signal per vector. Raising a vector raises its signal, unless the vector is
// masked or has no signal: then it is pending, and its signal is raised as soon as both are over.
// With MSI-X in use every vector goes its own way; without, all share the pin (INTx), which masks
// itself whenever it was raised until the client unmasks it.
//
// A vector is masked by the client's message, by its entry in the table in BAR4, or with all others
// in configuration space. Who virtualizes the table for a guest never writes to ours, where entries
// begin masked as in any device: an entry counts from its first write on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vfio_user/config_format.h"
#include "door/vfio_user/config_space.h"
#include "door/vfio_user/limits.h"
#include "door/vfio_user/wire_format.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

// On one core. `config` outlives it. Closed before it goes.
class Interrupts {
 public:
  Interrupts(env::Sharing& sharing, ConfigSpace& config) : sharing_(sharing), config_(config) {}

  // Which kinds there are: flags and number of vectors. kInvalid: no such index.
  static Result<IrqInfo> info(uint32_t index);

  // A message of the client. `values` are the bytes that follow it. kInvalid: it makes no sense,
  // and nothing has changed; others as Sharing::open_signal, with a part of it done.
  Result<void> set(const IrqSet& request, Bytes values, std::span<env::Descriptor> descriptors);

  // The device has something to say.
  void raise(uint16_t vector);
  // Asks the client to give the device back. False: it does not listen for that.
  bool request_removal();

  // BAR4. Any offset and length inside it.
  void read_table(uint64_t offset, MutableBytes into) const;
  void write_table(uint64_t offset, Bytes from);
  // Configuration space has changed: what was held back may go out.
  void look_again();

  // Everything as after power on, but signals stay.
  void reset();
  task::Task<void> close();

  // For a successor: masks, pending bits and the table.
  static constexpr size_t kStateSize = kVectors * (kMsixEntrySize + 1) + 1;
  void save(MutableBytes into) const;
  void load(Bytes state);

 private:
  struct Vector {
    std::unique_ptr<env::Signal> trigger;
    std::unique_ptr<env::Signal> masked;    // raised when the guest masks it
    std::unique_ptr<env::Signal> unmasked;  // raised when the guest unmasks it
    bool is_masked = false;                 // by message
    bool is_in_table = false;               // its entry was written
    bool is_pending = false;
  };
  // Waits for a client that unmasks the pin by a signal.
  struct PinWatch {
    std::unique_ptr<env::Signal> signal;
    task::CancelSource stop;
  };

  std::span<Vector> vectors_of(uint32_t index);
  Result<void> assign(const IrqSet& request, std::span<env::Descriptor> descriptors);
  Result<void> watch_pin(std::span<env::Descriptor> descriptors);
  task::Task<void> unmask_on_signal(std::unique_ptr<PinWatch> watch);
  void act(uint32_t index, uint32_t vector, uint32_t action);
  void disable(uint32_t index);

  bool is_msix_used() const;
  bool is_held(size_t vector) const;
  bool is_table_masked(size_t vector) const;
  void raise_pin();

  env::Sharing& sharing_;
  ConfigSpace& config_;
  std::array<Vector, kVectors> msix_;
  std::array<Vector, 1> pin_;
  std::array<Vector, 1> error_;
  std::array<Vector, 1> removal_;
  std::array<std::byte, kVectors * kMsixEntrySize> table_ = fresh_table();
  size_t assigned_ = 0;  // vectors of MSI-X that have a signal
  PinWatch* pin_watch_ = nullptr;
  task::Gate gate_;

  static std::array<std::byte, kVectors * kMsixEntrySize> fresh_table();
};

}  // namespace cairn::door::vfio_user
