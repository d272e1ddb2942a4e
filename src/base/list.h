// SPDX-License-Identifier: Apache-2.0
// An intrusive doubly linked list: membership without allocation.
#pragma once

#include "base/check.h"

namespace cairn {

// A type joins lists by deriving from ListHook<Tag>, once per list it can be in. A hook that is
// destroyed leaves its list; a list that is destroyed lets its members go. Neither owns the other.
template <class Tag = void>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  bool is_linked() const { return next_ != nullptr; }
  // Leaves the list it is in; nothing happens when it is in none.
  void unlink() {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T, class U>
  friend class List;
  ListHook* next_ = nullptr;
  ListHook* prev_ = nullptr;
};

// FIFO by push_back and pop_front. Any member can leave in constant time by unlink().
template <class T, class Tag = void>
class List {
  using Hook = ListHook<Tag>;

 public:
  List() { head_.next_ = head_.prev_ = &head_; }
  ~List() {
    while (!empty()) pop_front();
    head_.next_ = head_.prev_ = nullptr;
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  bool empty() const { return head_.next_ == &head_; }
  // Null when empty.
  T* front() { return empty() ? nullptr : item(head_.next_); }
  T* back() { return empty() ? nullptr : item(head_.prev_); }

  void push_back(T& member) { insert_before(head_, member); }
  void push_front(T& member) { insert_before(*head_.next_, member); }
  // Null when empty.
  T* pop_front() {
    T* first = front();
    if (first != nullptr) static_cast<Hook*>(first)->unlink();
    return first;
  }

  // Calls `visit(T&)` for each member, first to last; `visit` may unlink the member it is given.
  template <class F>
  void for_each(F&& visit) {
    for (Hook* hook = head_.next_; hook != &head_;) {
      Hook* next = hook->next_;
      visit(*item(hook));
      hook = next;
    }
  }

 private:
  static T* item(Hook* hook) { return static_cast<T*>(hook); }
  void insert_before(Hook& position, T& member) {
    Hook& hook = member;
    CHECK(!hook.is_linked(), "a hook is in one list at a time");
    hook.next_ = &position;
    hook.prev_ = position.prev_;
    position.prev_->next_ = &hook;
    position.prev_ = &hook;
  }

  Hook head_;
};

}  // namespace cairn
