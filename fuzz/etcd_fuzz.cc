// SPDX-License-Identifier: Apache-2.0
// Any bytes as answers of etcd: refused, or something a store can say.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "meta/etcd/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  using namespace cairn::meta;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto page = etcd::read_page(text)) {
    CHECK(page->revision != Revision());
    for (const Entry& entry : page->entries) CHECK(!entry.key.empty());
  }
  Batch batch;
  batch.if_absent("a").if_value("b", "x");
  if (const auto committed = etcd::read_committed(text, batch)) {
    CHECK(!committed->failed || *committed->failed < 2);
  }
  if (const auto lease = etcd::read_granted(text)) CHECK(lease->ttl.ns > 0);
  if (const auto kept = etcd::read_kept_alive(text)) CHECK(!*kept || (*kept)->ns > 0);
  if (const auto message = etcd::read_watch(text)) {
    Revision last;
    for (const Change& change : message->changes) {
      CHECK(change.revision > last && !change.events.empty());
      last = change.revision;
    }
  }
  CHECK(etcd::read_error(400, text).what() != nullptr);
  return 0;
}
