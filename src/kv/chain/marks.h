// SPDX-License-Identifier: Apache-2.0
// Marks: the keys of a node whose newest record has not arrived everywhere behind it in the chain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "kv/chain/command.h"
#include "task/sync.h"

namespace cairn::kv::chain {

// A dirty key. Shared by those who wait for it; a mark that was taken out says so.
struct Mark {
  uint64_t newest = 0;      // version that was decided or came, perhaps not in the store yet
  uint64_t stored = 0;      // that is in the store
  uint64_t published = 0;   // that everybody behind has
  Record record;            // the stored one
  bool is_passing = false;  // a task passes it on
  bool is_dropped = false;  // this node is in the key's chain no more
  task::Event moved;        // published or is_dropped did; reset by who waits
};

class Marks {
 public:
  // Null: the key is clean.
  std::shared_ptr<Mark> find(const std::string& key) const {
    const auto found = marks_.find(key);
    return found == marks_.end() ? nullptr : found->second;
  }
  std::shared_ptr<Mark> take(const std::string& key) {
    std::shared_ptr<Mark>& mark = marks_[key];
    if (!mark) mark = std::make_shared<Mark>();
    return mark;
  }
  // A newer version comes into the store. A key without a mark is clean: what is `there` is
  // published.
  void begin(const std::string& key, uint64_t there, uint64_t version) {
    std::shared_ptr<Mark>& mark = marks_[key];
    if (!mark) {
      mark = std::make_shared<Mark>();
      mark->published = mark->stored = there;
    }
    mark->newest = std::max(mark->newest, version);
  }
  // It did not come, for certain.
  void give_up(const std::string& key, uint64_t version) {
    const std::shared_ptr<Mark> mark = find(key);
    if (!mark || mark->newest != version) return;
    mark->newest = std::max(mark->stored, mark->published);
    if (!mark->is_passing) settle(key);
  }
  // Whether so much of the key has arrived everywhere.
  bool is_published(const std::string& key, uint64_t version) const {
    const std::shared_ptr<Mark> mark = find(key);
    return !mark || mark->published >= version;
  }
  void publish(const std::string& key, uint64_t version) {
    const std::shared_ptr<Mark> mark = find(key);
    if (!mark || mark->published >= version) return;
    mark->published = version;
    mark->moved.set();
    if (mark->published >= mark->newest && !mark->is_passing) marks_.erase(key);
  }
  void drop(const std::string& key) {
    const std::shared_ptr<Mark> mark = find(key);
    if (!mark) return;
    mark->is_dropped = true;
    mark->moved.set();
    marks_.erase(key);
  }
  // Nobody passes it on any more: it goes if it is clean.
  void settle(const std::string& key) {
    const std::shared_ptr<Mark> mark = find(key);
    if (mark && mark->published >= mark->newest) marks_.erase(key);
  }
  const std::map<std::string, std::shared_ptr<Mark>>& all() const { return marks_; }
  size_t size() const { return marks_.size(); }

 private:
  std::map<std::string, std::shared_ptr<Mark>> marks_;
};

}  // namespace cairn::kv::chain
