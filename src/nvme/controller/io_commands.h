// SPDX-License-Identifier: Apache-2.0
// What IoQueue's files share: statuses and counting.
#pragma once

#include "base/error.h"
#include "drive/drive.h"
#include "nvme/controller/core_namespace.h"
#include "nvme/format/status_format.h"

namespace cairn::nvme {

// The same command would fail again.
inline Status final(StatusCode code) { return Status(code).with_do_not_retry(); }

// The status for an error of a drive.
Status status_of(const Error& error, bool writes);
// The status for an error of moving the command's data.
Status data_status(const Error& error);

// Holds a namespace, if there is one, for the length of a command; the gate is left with the scope.
class Entered {
 public:
  explicit Entered(CoreNamespace* space)
      : space_(space), in_(space != nullptr && space->gate.enter().has_value()) {}
  ~Entered() {
    if (in_) space_->gate.leave();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  explicit operator bool() const { return in_; }

 private:
  CoreNamespace* space_;
  bool in_;
};

// Keeps the namespace's counters after one request.
void count_io(CoreNamespace& space, const drive::Request& request, const Result<void>& done);

}  // namespace cairn::nvme
