// SPDX-License-Identifier: Apache-2.0
// A write that a controller of ours executes on several of its namespaces (Replicated Write).
#include <algorithm>
#include <bit>

#include "fabric/host/remote_drive.h"
#include "nvme/format/replicate_format.h"

namespace cairn::fabric {

using drive::Replica;

namespace {

const RemoteDrive& remote(const Replica& replica) {
  return static_cast<const RemoteDrive&>(*replica.drive);  // can_replicate_to() has said so
}

uint32_t check_of(const NamespaceInfo& info) {
  return nvme::incarnation_check(info.incarnation.medium, info.incarnation.opening);
}

}  // namespace

// Null: no path leads there, or it says too little of the namespace.
const NamespaceInfo* RemoteDrive::known_at(const HostController& controller) const {
  if (continuity_.is_replaced()) return nullptr;
  for (const auto& path : paths_.all()) {
    if (path->rank() == Path::Rank::kUnusable || &path->controller() != &controller) continue;
    const NamespaceInfo& info = *path->info();
    return info.incarnation.opening != 0 && info.nsid <= 0xffff ? &info : nullptr;
  }
  return nullptr;
}

bool RemoteDrive::can_replicate_to(const drive::Drive& other) const {
  const auto* it = dynamic_cast<const RemoteDrive*>(&other);
  if (it == nullptr || it == this) return false;
  if (it->info_.geometry.block_size != info_.geometry.block_size) return false;
  return std::ranges::any_of(paths_.all(), [it](const auto& path) {
    return path->rank() != Path::Rank::kUnusable &&
           path->session().identity().replication_magic == nvme::kReplicationMagic &&
           it->known_at(path->controller()) != nullptr;
  });
}

// Anew whenever the command is sent: it says which incarnations the host means.
Result<void> RemoteDrive::address_replicas(Part& part) const {
  const Error impossible{Errc::kUnsupported, "the path does not lead to all replicas"};
  const std::span<const Replica> replicas = part.op->request.replicas;
  if (replicas.size() > nvme::kReplicasMax ||
      part.path->session().identity().replication_magic != nvme::kReplicationMagic) {
    return fail(impossible);
  }
  nvme::ReplicateFields fields;
  fields.blocks = nvme::BlockFields::decode(part.sqe);
  fields.blocks.dataset_hint = 0;
  const uint64_t start = fields.blocks.start.value();
  const uint64_t offset = start - part.op->request.lba.value();
  fields.unit_shift = nvme::kUnitShiftMax;
  for (const Replica& replica : replicas) {
    const uint64_t differ = start ^ (replica.lba.value() + offset);
    const auto alike = static_cast<uint32_t>(std::countr_zero(differ));
    fields.unit_shift = std::min(fields.unit_shift, alike);
  }
  for (size_t i = 0; i < replicas.size(); ++i) {
    const NamespaceInfo* info = remote(replicas[i]).known_at(part.path->controller());
    const uint64_t unit = (replicas[i].lba.value() + offset) >> fields.unit_shift;
    if (info == nullptr || unit > UINT32_MAX) return fail(impossible);
    fields.replicas[i] = {.nsid = static_cast<uint16_t>(info->nsid),
                          .unit = static_cast<uint32_t>(unit),
                          .check = check_of(*info)};
  }
  if (!fields.is_in_one_unit()) return fail(impossible);
  fields.encode(part.sqe);
  return {};
}

// They have changes at stake that they did not send.
void RemoteDrive::note_replicas(const Part& part) {
  for (const Replica& replica : part.op->request.replicas) {
    auto& drive = static_cast<RemoteDrive&>(*replica.drive);
    // Without a path to it, it has lost touch, and finds out when it is reached again.
    const NamespaceInfo* info = drive.known_at(part.path->controller());
    drive.continuity_.changed(info != nullptr ? info->incarnation.opening : 0);
  }
}

}  // namespace cairn::fabric
