// SPDX-License-Identifier: Apache-2.0
// What Identify says, made from facts alone (NVMe Base 2.0, 5.17).
#pragma once

#include <cstdint>
#include <string_view>

#include "drive/drive.h"
#include "nvme/controller/controller_kind.h"
#include "nvme/controller/registry.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/identify_namespace_format.h"
#include "nvme/format/limits.h"

namespace cairn::nvme {

// FR, and the only firmware slot.
inline constexpr std::string_view kFirmwareRevision = "0.1.0";

// NN.
constexpr uint32_t nsid_max(ControllerKind kind) {
  return kind == ControllerKind::kPci ? kNamespacesMax : kNsidMax;
}

struct ControllerFacts {
  const SubsystemOptions& subsystem;
  uint16_t id = 0;
  ControllerKind kind = ControllerKind::kIo;
  uint64_t capacity = 0;  // bytes of all namespaces that the host sees
};
IdentifyController identify_controller(const ControllerFacts& facts);

struct NamespaceFacts {
  const NamespaceOptions& options;
  const drive::Geometry& geometry;
  IoLimits limits;
  bool keep_reservations = false;
  bool shared = true;  // by several controllers, as far as the host can see
  drive::Incarnation incarnation;
};
IdentifyNamespace identify_namespace(const NamespaceFacts& facts);
IdentifyNamespaceIndependent identify_independent(const NamespaceFacts& facts);
// Writes CNS 03h into a page of zeroes.
void identify_descriptors(const NamespaceOptions& options, MutableBytes page);

}  // namespace cairn::nvme
