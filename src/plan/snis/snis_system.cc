// SPDX-License-Identifier: Apache-2.0
#include "plan/snis/snis_system.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "config/files.h"
#include "plan/flash/flash_profile.h"
#include "plan/flash/mqsim_config.h"
#include "plan/net/net_topology.h"

namespace cairn::plan {

namespace {

constexpr size_t kConfigMax = 1 << 20;
constexpr const char* kProfile = "snis-authors";

// What a file or a name stands for: files by what is in them, so that a changed file is noticed.
std::string meaning(const std::string& name) {
  const Attempt<std::string> text = config::read_file(name, kConfigMax);
  return text ? *text : name;
}

}  // namespace

Attempt<flash::Parameters> load_drive(const SnisSystemOptions& options) {
  if (options.config.empty()) {
    return load_flash_profile(options.profile.empty() ? kProfile : options.profile);
  }
  if (!options.profile.empty()) {
    return refuse("--profile and --config both say what the drives are; give one");
  }
  return load_mqsim_config(options.config);
}

Attempt<net::Parameters> load_transport(const SnisSystemOptions& options) {
  const bool tcp = options.transport == "dctcp" || options.transport == "cubic";
  if (tcp && options.hpcc) return refuse("--hpcc is about RDMA: leave it out with --transport tcp");
  net::Parameters p;
  if (options.hpcc) {
    // Headroom as the lossless runs of the reference have it.
    p = net::hpcc_parameters();
    p.pfc.headroom_extra_bytes = 20'000;
  }
  if (tcp) {
    p = net::tcp_parameters(options.transport == "dctcp" ? net::Control::kDctcp
                                                         : net::Control::kCubic);
  }
  if (options.transport == "pfc") p.control = net::Control::kNone;
  if (options.fluid) p.mode = net::Mode::kFluid;
  return p;
}

Attempt<SnisSystem> load_system(const SnisSystemOptions& options) {
  const Attempt<flash::Parameters> drive = load_drive(options);
  if (!drive) return std::unexpected(drive.error());
  Attempt<net::Topology> topology = load_topology(options.network);
  if (!topology) return refuse(fmt::format("--network: {}", topology.error().text));
  const Attempt<net::Parameters> transport = load_transport(options);
  if (!transport) return std::unexpected(transport.error());
  if (topology->hosts().size() < 2) return refuse("--network: there must be at least two hosts");
  SnisSystem loaded{.system = {.drive = *drive,
                               .occupancy = options.precondition_percent / 100,
                               .topology = std::move(*topology),
                               .network = *transport},
                    .drive = !options.config.empty()   ? options.config
                             : options.profile.empty() ? kProfile
                                                       : options.profile};
  snis::place_apart(loaded.system, static_cast<uint32_t>(options.targets),
                    static_cast<uint32_t>(options.initiators));
  if (const auto problem = snis::check(loaded.system)) return refuse(*problem);
  loaded.description = fmt::format(
      "drive {}\noccupancy {}\nnetwork {}\ntransport {} fluid {} hpcc {}\ntargets {} initiators "
      "{}\n",
      meaning(loaded.drive), loaded.system.occupancy, meaning(options.network), options.transport,
      options.fluid, options.hpcc, options.targets, options.initiators);
  return loaded;
}

}  // namespace cairn::plan
