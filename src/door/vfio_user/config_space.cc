// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/config_space.h"

#include <algorithm>

#include "door/vfio_user/config_format.h"

namespace cairn::door::vfio_user {

template <class T>
void ConfigSpace::set(uint16_t at, T value, T writable) {
  store(MutableBytes(bytes_).subspan(at), value);
  store(MutableBytes(writable_).subspan(at), writable);
}

ConfigSpace::ConfigSpace() {
  set<uint16_t>(kVendorIdAt, kVendorId);
  set<uint16_t>(kDeviceIdAt, kDeviceId);
  set<uint16_t>(kCommandAt, 0,
                kCommandMemory | kCommandMaster | kCommandParity | kCommandSerr | kCommandNoIntx);
  set<uint16_t>(kStatusAt, kStatusCapabilities);
  set<uint32_t>(kRevisionAt, kClassCode << 8 | kRevision);
  set<uint8_t>(kCacheLineAt, 0, 0xff);
  // The bits below a BAR's size stay as they are, which tells software the size.
  set<uint32_t>(kBar0At, kBarIs64, ~static_cast<uint32_t>(kBar0Size - 1));
  set<uint32_t>(kBar0At + 4, 0, ~0u);
  set<uint32_t>(kBar4At, 0, ~static_cast<uint32_t>(kBar4Size - 1));
  set<uint16_t>(kSubsystemVendorAt, kSubsystemVendorId);
  set<uint16_t>(kSubsystemAt, kSubsystemId);
  set<uint8_t>(kCapabilitiesAt, kPowerAt);
  set<uint8_t>(kInterruptLineAt, 0, 0xff);
  set<uint8_t>(kInterruptPinAt, 1);

  set<uint8_t>(kPowerAt, kPowerId);
  set<uint8_t>(kPowerAt + 1, kMsixAt);
  set<uint16_t>(kPowerAt + 2, kPowerVersion);
  set<uint16_t>(kPowerControlAt, kPowerKeepsState, kPowerStateMask);

  set<uint8_t>(kMsixAt, kMsixId);
  set<uint8_t>(kMsixAt + 1, kExpressAt);
  set<uint16_t>(kMsixControlAt, kVectors - 1, kMsixEnable | kMsixMaskAll);
  set<uint32_t>(kMsixTableAt, kMsixBar);
  set<uint32_t>(kMsixPendingAt, static_cast<uint32_t>(kPendingAt) | kMsixBar);

  set<uint8_t>(kExpressAt, kExpressId);
  set<uint8_t>(kExpressAt + 1, 0);
  set<uint16_t>(kExpressAt + 2, kExpressVersion);
  set<uint32_t>(kExpressDeviceAt, kExpressRoleErrors | kExpressCanReset);
  set<uint16_t>(kExpressControlAt, 0, static_cast<uint16_t>(~kExpressReset));
  set<uint32_t>(kExpressLinkAt, kExpressLink);
  set<uint16_t>(kExpressLinkControlAt, 0, 0x0fdb);
  set<uint16_t>(kExpressLinkStatusAt, kExpressLink);
}

void ConfigSpace::read(uint64_t offset, MutableBytes into) const {
  std::ranges::copy(Bytes(bytes_).subspan(offset, into.size()), into.begin());
}

bool ConfigSpace::write(uint64_t offset, Bytes from) {
  for (size_t i = 0; i < from.size() && offset + i < kStateSize; ++i) {
    const std::byte mask = writable_[offset + i];
    bytes_[offset + i] = (bytes_[offset + i] & ~mask) | (from[i] & mask);
  }
  // The bit that asks for it is the highest of its register's second byte, and reads as zero.
  constexpr uint64_t kResetByte = kExpressControlAt + 1;
  return offset <= kResetByte && kResetByte - offset < from.size() &&
         (from[kResetByte - offset] & std::byte{kExpressReset >> 8}) != std::byte{0};
}

bool ConfigSpace::is_msix_enabled() const {
  return (get<uint16_t>(kMsixControlAt) & kMsixEnable) != 0;
}
bool ConfigSpace::is_msix_masked() const {
  return is_msix_enabled() && (get<uint16_t>(kMsixControlAt) & kMsixMaskAll) != 0;
}
bool ConfigSpace::is_intx_disabled() const {
  return (get<uint16_t>(kCommandAt) & kCommandNoIntx) != 0;
}

void ConfigSpace::show_interrupt(bool is_pending) {
  const auto status = static_cast<uint16_t>(get<uint16_t>(kStatusAt) & ~kStatusInterrupt);
  store(MutableBytes(bytes_).subspan(kStatusAt),
        static_cast<uint16_t>(status | (is_pending ? kStatusInterrupt : 0)));
}

void ConfigSpace::load(Bytes state) {
  reset();
  write(0, state);
}

}  // namespace cairn::door::vfio_user
