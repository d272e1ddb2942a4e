// SPDX-License-Identifier: Apache-2.0
// What the subsystem of a box, or of drives, is called that nobody named. Serial number and UUIDs
// of namespaces follow from it, so two boxes must not have the same one: a host with multipath
// would take their drives for one.
#pragma once

#include <string>
#include <vector>

#include "base/problem.h"
#include "nvme/controller/registry.h"

namespace cairn::server {

// With a state folder: the name that is kept there, drawn the first time. A folder that was used
// before names were kept goes on with the name that all boxes had. Without: made from this machine
// and the files and remote drives that are served, so that it stays as long as they do; new each
// time when all is in memory. `kind` is a part of it: "box", or what else serves drives.
Attempt<std::string> make_default_nqn(const std::string& kind, const std::string& state,
                                      const std::vector<nvme::NamespaceOptions>& drives);

}  // namespace cairn::server
