// SPDX-License-Identifier: Apache-2.0
#include "door/resp/view.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::door::resp {

using Kind = kv::Edit::Kind;

void KeySet::seal() {
  std::ranges::sort(keys_);
  const auto rest = std::ranges::unique(keys_);
  keys_.erase(rest.begin(), rest.end());
}

size_t KeySet::index_of(std::string_view key) const {
  const auto at = std::ranges::lower_bound(keys_, key);
  CHECK(at != keys_.end() && *at == key, "a command uses the keys that it names");
  return static_cast<size_t>(at - keys_.begin());
}

View::View(const KeySet& keys, std::span<const std::optional<kv::Entry>> found, WallTime now)
    : keys_(keys), found_(found), now_(now) {
  CHECK(found.size() == keys.keys().size());
}

const kv::Entry* View::find(std::string_view key) const {
  const size_t index = keys_.index_of(key);
  if (!changed_.empty() && changed_[index].kind != Kind::kKeep) {
    return changed_[index].kind == Kind::kPut ? &changed_[index].entry : nullptr;
  }
  return found_[index] ? &*found_[index] : nullptr;
}

View::Changed& View::changed(std::string_view key) {
  changed_.resize(found_.size());
  return changed_[keys_.index_of(key)];
}

void View::put(std::string_view key, std::string value, std::optional<WallTime> expires) {
  if (expires && *expires <= now_) return erase(key);
  Changed& its = changed(key);
  its.kind = Kind::kPut;
  its.entry.meta = {.version = 0, .size = value.size(), .expires = expires};
  its.entry.value = std::move(value);
}

void View::erase(std::string_view key) { changed(key) = {.kind = Kind::kErase, .entry = {}}; }

void View::commit(std::span<kv::Edit> edits) {
  for (size_t i = 0; i < changed_.size(); ++i) {
    Changed& its = changed_[i];
    edits[i] = {
        .kind = its.kind, .value = std::move(its.entry.value), .expires = its.entry.meta.expires};
  }
}

}  // namespace cairn::door::resp
