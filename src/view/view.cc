// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::view {

const ComponentView* View::find(ComponentId id) const {
  const auto found = std::ranges::lower_bound(components, id, {}, &ComponentView::id);
  return found == components.end() || found->id != id ? nullptr : &*found;
}

std::string View::name_of(ComponentId id) const {
  const size_t box = id.box.value();
  if (box >= boxes.size()) return fmt::format("box {}", box);
  const BoxView& of = boxes[box];
  switch (id.kind) {
    case Kind::kPort:
      return fmt::format("{}/port{}", of.name, id.index);
    case Kind::kNetPipe:
      return fmt::format("{}/netpipe{}", of.name, id.index);
    case Kind::kIoPort:
      return fmt::format("{}/ioport{}", of.name, id.index);
    case Kind::kIoPipe:
      return fmt::format("{}/iopipe{}", of.name, id.index);
    case Kind::kDrive:
      if (id.index < of.drives.size()) return fmt::format("{}/{}", of.name, of.drives[id.index]);
  }
  return fmt::format("{}/drive {}", of.name, id.index);
}

}  // namespace cairn::view
