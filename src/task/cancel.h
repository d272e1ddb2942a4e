// SPDX-License-Identifier: Apache-2.0
// Cancellation: asking operations to stop early, and still waiting until they have.
//
// A CancelSource belongs to whoever may lose interest; its tokens go to the operations. request()
// only asks: each operation then completes in its own time, with the reason as its error if it was
// stopped, or with its result if it was faster. Nothing is ever abandoned in flight.
#pragma once

#include "base/error.h"
#include "base/list.h"

namespace cairn::task {

class CancelSource;

// What an operation registers while it can be cancelled. Unregistered by its destructor.
struct CancelHook : ListHook<> {
  using OnCancel = void (*)(CancelHook&);
  explicit CancelHook(OnCancel function) : on_cancel(function) {}
  OnCancel on_cancel;  // called at most once per registration, after the hook was unregistered
};

// Refers to a source that must outlive it, or to none: the default token is never cancelled.
class CancelToken {
 public:
  CancelToken() = default;
  explicit CancelToken(CancelSource& source) : source_(&source) {}

  bool can_cancel() const { return source_ != nullptr; }
  inline bool requested() const;
  // What a stopped operation reports: kCancelled, or kTimedOut when a deadline did it.
  inline Error error() const;
  // Calls `hook` when cancellation is requested; there must be a source, not yet requested.
  inline void add(CancelHook& hook) const;

 private:
  CancelSource* source_ = nullptr;
};

// Core-local. Hooks run inside request(); they start things and wake waiters, and do not block.
class CancelSource {
 public:
  CancelSource() : from_parent_(&CancelSource::on_parent) {}
  // Also requested when `parent` is.
  explicit CancelSource(CancelToken parent) : CancelSource() {
    parent_ = parent;
    if (parent.requested()) {
      request(parent.error().code());
    } else if (parent.can_cancel()) {
      from_parent_.self = this;
      parent.add(from_parent_);
    }
  }
  CancelSource(const CancelSource&) = delete;
  CancelSource& operator=(const CancelSource&) = delete;

  // The first call counts; later ones change nothing.
  void request(Errc reason = Errc::kCancelled) {
    if (requested_) return;
    requested_ = true;
    reason_ = reason;
    while (CancelHook* hook = hooks_.pop_front()) hook->on_cancel(*hook);
  }
  bool requested() const { return requested_; }
  Errc reason() const { return reason_; }
  CancelToken token() { return CancelToken(*this); }

 private:
  friend class CancelToken;
  struct FromParent : CancelHook {
    using CancelHook::CancelHook;
    CancelSource* self = nullptr;
  };
  static void on_parent(CancelHook& hook) {
    CancelSource& self = *static_cast<FromParent&>(hook).self;
    self.request(self.parent_.error().code());
  }

  List<CancelHook> hooks_;
  FromParent from_parent_;
  CancelToken parent_;
  bool requested_ = false;
  Errc reason_ = Errc::kCancelled;
};

inline bool CancelToken::requested() const { return source_ != nullptr && source_->requested(); }
inline Error CancelToken::error() const {
  const Errc reason = source_ != nullptr ? source_->reason() : Errc::kCancelled;
  return Error(reason, reason == Errc::kTimedOut ? "deadline" : "cancellation");
}
inline void CancelToken::add(CancelHook& hook) const { source_->hooks_.push_back(hook); }

}  // namespace cairn::task
