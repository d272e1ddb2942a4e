// SPDX-License-Identifier: Apache-2.0
// A drive that is served: a namespace of one subsystem, and what all doors know by one name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "nvme/controller/registry.h"
#include "server/open/served_source.h"
#include "server/open/stack_source.h"
#include "server/serve/guest_socket.h"
#include "server/serve/move.h"
#include "task/gate.h"

namespace cairn::server {

struct ServedDrive {
  std::string name;
  std::string text;  // of the drive or stack, as it is from any folder
  std::string nqn;   // of its subsystem
  // The namespace, with its number; its ids may be empty until it is attached.
  nvme::NamespaceOptions space;
  std::unique_ptr<ServedSource> source;  // what doors open; filled when the drive is open
  bool is_open = false;
  std::string problem;               // why it is not served; empty: it is
  CoreId home{};                     // of a stack
  std::unique_ptr<BoxPlace> moved;   // where its layers are; null: here
  std::optional<GuestSocket> vhost;  // where a virtual machine finds it; none: nowhere
  // Who looks at it, or tells it something.
  std::optional<task::Gate> users{std::in_place};

  // Null: a single drive, or not open.
  StackSource* stack() const { return source->stack(); }
};
using ServedDrives = std::vector<std::unique_ptr<ServedDrive>>;

// Holds a drive while somebody uses it: it is not removed, and its stack not closed, meanwhile.
class DriveUse {
 public:
  explicit DriveUse(ServedDrive& drive) : drive_(drive.users->enter() ? &drive : nullptr) {}
  DriveUse(const DriveUse&) = delete;
  DriveUse& operator=(const DriveUse&) = delete;
  ~DriveUse() {
    if (drive_ != nullptr) drive_->users->leave();
  }
  // False: it is just being removed, or becomes a single drive.
  explicit operator bool() const { return drive_ != nullptr; }

 private:
  ServedDrive* drive_;
};

}  // namespace cairn::server
