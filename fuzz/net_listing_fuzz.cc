// SPDX-License-Identifier: Apache-2.0
// Any bytes as a reference's network, and as a run through one: refused with a reason, or a network
// that has a way between all hosts, and flows between them.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "model/net/network.h"
#include "plan/net/net_listing.h"

namespace {

using namespace cairn;

void try_topology(std::string_view text) {
  const Attempt<net::Topology> topology = plan::parse_hpcc_topology(text);
  if (!topology) {
    CHECK(!topology.error().text.empty());
    return;
  }
  if (topology->nodes().size() > 64) return;
  struct Done final : net::FlowSink {
    void flow_done(const net::FlowDone&) override { ++flows; }
    int flows = 0;
  };
  for (const net::Link& link : topology->links()) {
    if (link.bits_per_s < 1'000'000) return;  // would take a while
  }
  const auto last = static_cast<uint32_t>(topology->hosts().size() - 1);
  net::Network network(*topology, net::hpcc_parameters());
  network.start({.source = 0, .destination = last, .bytes = 5000});
  Done done;
  network.advance(net::kNever, done);
  CHECK(done.flows == 1);
}

void try_listing(std::string_view text) {
  const auto run = nlohmann::json::parse(text, nullptr, false);
  if (run.is_discarded()) return;
  const net::Topology topology = net::star(3);
  const Attempt<plan::NetListing> listing = plan::parse_net_listing(run, topology);
  if (!listing) {
    CHECK(!listing.error().text.empty());
    return;
  }
  CHECK(!listing->flows.empty() && listing->flows.size() == listing->times.size());
  for (const net::Flow& flow : listing->flows) {
    CHECK(flow.source < 3 && flow.destination < 3 && flow.source != flow.destination);
    CHECK(flow.bytes > 0 && flow.priority > 0 && flow.priority < net::kPriorities);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_topology(text);
  try_listing(text);
  return 0;
}
