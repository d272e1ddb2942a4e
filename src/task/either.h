// SPDX-License-Identifier: Apache-2.0
// Either: one token for two reasons to stop.
#pragma once

#include "task/cancel.h"

namespace cairn::task {

// While in scope: token() is requested as soon as one of the two is, with its reason. Both outlive
// it.
class Either {
 public:
  Either(CancelToken one, CancelToken other) : source_(one), hook_(&Either::on_other) {
    hook_.self = this;
    other_ = other;
    if (other.requested()) {
      source_.request(other.error().code());
    } else if (other.can_cancel()) {
      other.add(hook_);
    }
  }
  Either(const Either&) = delete;
  Either& operator=(const Either&) = delete;

  CancelToken token() { return source_.token(); }

 private:
  struct Hook : CancelHook {
    using CancelHook::CancelHook;
    Either* self = nullptr;
  };
  static void on_other(CancelHook& hook) {
    Either& self = *static_cast<Hook&>(hook).self;
    self.source_.request(self.other_.error().code());
  }

  CancelSource source_;
  CancelToken other_;
  Hook hook_;
};

}  // namespace cairn::task
