// SPDX-License-Identifier: Apache-2.0
// ConfigSpace: the PCI configuration space of an NVMe controller.
//
// Reads give bytes, writes change the bits that a real device lets software change and no others.
// Any offset and length inside kConfigSize is fine; whoever calls has checked that it is inside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "door/vfio_user/limits.h"

namespace cairn::door::vfio_user {

class ConfigSpace {
 public:
  ConfigSpace();

  void read(uint64_t offset, MutableBytes into) const;
  // True: the write has asked for a reset of the function, which the caller then does.
  bool write(uint64_t offset, Bytes from);
  // As after power on.
  void reset() { *this = ConfigSpace(); }

  bool is_msix_enabled() const;
  bool is_msix_masked() const;
  bool is_intx_disabled() const;
  void show_interrupt(bool is_pending);

  // The part that is not all zeroes, for a successor.
  static constexpr size_t kStateSize = 256;
  Bytes state() const { return Bytes(bytes_).first(kStateSize); }
  // Takes from `state`, of kStateSize bytes, what software could have written.
  void load(Bytes state);

 private:
  template <class T>
  void set(uint16_t at, T value, T writable = 0);
  template <class T>
  T get(uint16_t at) const {
    return cairn::load<T>(Bytes(bytes_).subspan(at));
  }

  std::array<std::byte, kConfigSize> bytes_{};
  std::array<std::byte, kStateSize> writable_{};
};

}  // namespace cairn::door::vfio_user
