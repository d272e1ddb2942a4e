// SPDX-License-Identifier: Apache-2.0
#include "meta/suite.h"

#include <optional>

namespace cairn::meta_tests {

Task<Revision> put(Store& store, std::string key, std::string value, LeaseId lease) {
  Batch batch;
  batch.put(key, std::move(value), lease);
  const Committed committed = co_await sure(store.commit(std::move(batch)));
  co_return committed.revision;
}

Task<Revision> remove(Store& store, std::string key) {
  Batch batch;
  batch.remove(key);
  const Committed committed = co_await sure(store.commit(std::move(batch)));
  co_return committed.revision;
}

Task<std::string> value_of(Store& store, std::string key) {
  const std::optional<Entry> entry = co_await sure(store.get(std::move(key)));
  co_return entry ? entry->value : "(none)";
}

Task<std::vector<Entry>> entries(Store& store, Range range, size_t limit) {
  std::vector<Entry> all;
  ListOptions options{.range = std::move(range), .limit = limit};
  for (bool more = true; more;) {
    Page page = co_await sure(store.list(options));
    EXPECT_LE(page.entries.size(), limit);
    more = page.more && !page.entries.empty();
    EXPECT_EQ(more, page.more) << "an empty page says that there is more";
    for (Entry& entry : page.entries) all.push_back(std::move(entry));
    if (!more) break;
    options.range = options.range.behind(all.back().key);
    options.at = page.revision;
  }
  co_return all;
}

Task<std::string> keys(Store& store, Range range, size_t limit) {
  const std::vector<Entry> all = co_await entries(store, std::move(range), limit);
  std::string text;
  for (const Entry& entry : all) text += (text.empty() ? "" : " ") + entry.key;
  co_return text;
}

Task<std::unique_ptr<Watch>> watch(Store& store, Range range, Revision from) {
  co_return co_await sure(store.watch(std::move(range), from));
}

Task<std::vector<Change>> take(Watch& watch, size_t count) {
  std::vector<Change> changes;
  while (changes.size() < count) {
    std::vector<Change> more = co_await sure(watch.next());
    EXPECT_FALSE(more.empty());
    for (Change& change : more) changes.push_back(std::move(change));
  }
  EXPECT_EQ(changes.size(), count) << "more changes than there can be";
  co_return changes;
}

std::string text(const Change& change) {
  std::string text;
  for (const meta::Event& event : change.events) {
    if (!text.empty()) text += ", ";
    text += event.removed ? "remove " + event.entry.key
                          : "put " + event.entry.key + "=" + event.entry.value;
    EXPECT_EQ(event.entry.modified, change.revision);
  }
  return text;
}

std::vector<std::string> texts(const std::vector<Change>& changes) {
  std::vector<std::string> all;
  for (const Change& change : changes) all.push_back(text(change));
  return all;
}

}  // namespace cairn::meta_tests
