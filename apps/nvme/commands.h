// SPDX-License-Identifier: Apache-2.0
// The verbs of `cairn nvme`: one make_ function each, like those of apps/common/command.h.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "apps/common/command.h"

namespace cairn::apps {

struct NvmeVerb {
  std::string name;
  std::string what;
  std::unique_ptr<Command> (*make)(CLI::App& app);
};
// In the order of the help.
std::span<const NvmeVerb> nvme_verbs();

std::unique_ptr<Command> make_nvme_discover(CLI::App& app);
std::unique_ptr<Command> make_nvme_list(CLI::App& app);
std::unique_ptr<Command> make_nvme_id_ctrl(CLI::App& app);
std::unique_ptr<Command> make_nvme_id_ns(CLI::App& app);
std::unique_ptr<Command> make_nvme_smart_log(CLI::App& app);
std::unique_ptr<Command> make_nvme_log(CLI::App& app);
std::unique_ptr<Command> make_nvme_features(CLI::App& app);
std::unique_ptr<Command> make_nvme_read(CLI::App& app);
std::unique_ptr<Command> make_nvme_write(CLI::App& app);
std::unique_ptr<Command> make_nvme_copy(CLI::App& app);
std::unique_ptr<Command> make_nvme_flush(CLI::App& app);
std::unique_ptr<Command> make_nvme_write_zeroes(CLI::App& app);
std::unique_ptr<Command> make_nvme_discard(CLI::App& app);
std::unique_ptr<Command> make_nvme_reservations(CLI::App& app);
std::unique_ptr<Command> make_nvme_verify(CLI::App& app);
std::unique_ptr<Command> make_nvme_perf(CLI::App& app);
std::unique_ptr<Command> make_nvme_lanes(CLI::App& app);

}  // namespace cairn::apps
