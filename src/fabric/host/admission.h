// SPDX-License-Identifier: Apache-2.0
// Admission: what a host has to do at a namespace before a drive's requests go there, whenever a
// session begins: for instance to see that nobody has fenced it meanwhile.
#pragma once

#include "base/error.h"
#include "fabric/host/namespace_info.h"
#include "fabric/host/session.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::fabric {

class Admission {
 public:
  virtual ~Admission() = default;
  // Before the first request goes by this session, and when its controller says that the namespace
  // has changed. Calls for several paths overlap. kDenied ends the drive: everything fails with
  // that from then on. After other errors the path is not used, and this is called again.
  virtual task::Task<Result<void>> enter(HostSession& session, NamespaceInfo info,
                                         task::CancelToken token) = 0;
  // The drive is being closed, and sends nothing more. Not called when no path is left.
  virtual task::Task<void> leave(HostSession& session, NamespaceInfo info) = 0;
};

}  // namespace cairn::fabric
