// SPDX-License-Identifier: Apache-2.0
// Names for namespaces that are the same after every restart, and differ from all others.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "drive/source.h"

namespace cairn::nvme {

struct NamespaceIds {
  std::array<uint8_t, 16> nguid{};
  std::array<uint8_t, 16> uuid{};
};

// Made from the subsystem's name, the nsid and which medium it is, not from the medium's size: a
// namespace that was resized is still the same one. Never all zero.
NamespaceIds make_namespace_ids(std::string_view nqn, uint32_t nsid, const drive::Spec& drive);
// The same for a drive that has a name, and keeps it whatever it becomes.
NamespaceIds make_named_ids(std::string_view nqn, std::string_view name);

// 20 hexadecimal digits from the subsystem's name.
std::string make_serial(std::string_view nqn);

}  // namespace cairn::nvme
