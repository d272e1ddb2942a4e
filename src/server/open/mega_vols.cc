// SPDX-License-Identifier: Apache-2.0
#include "server/open/mega_vols.h"

#include <fmt/format.h>

#include "base/words.h"
#include "server/open/key_file.h"
#include "server/open/target_uri.h"
#include "volume/boxes/nvme_source.h"
#include "volume/boxes/reservation_fence.h"

namespace cairn::server {

namespace {

Result<void> read_keys(fabric::HostOptions& options) {
  if (load_credentials(options)) return {};
  return fail(Errc::kInvalid, "a key file that the drive's URI names cannot be used");
}

}  // namespace

Attempt<void> check_mega_vol_uri(std::string_view text) {
  if (text.starts_with("nvme-tcp://")) return check_target_uri(text, Needs::kNamespace);
  return refuse(fmt::format(
      "{} is a drive that one process alone reaches, and a pool's are used by arbiters and by all "
      "who have volumes open: serve it with 'cairn serve {}', and add nvme-tcp://HOST:PORT/NQN",
      in_quotes(text), escaped(text)));
}

struct MegaVols::Parts {
  explicit Parts(env::Env& env) : source(env, {.read_keys = read_keys}), fence(env, source) {}
  volume::NvmeSource source;
  volume::ReservationFence fence;
};

MegaVols::MegaVols(env::Env& env) : parts_(std::make_unique<Parts>(env)) {}
MegaVols::~MegaVols() = default;

volume::MegaVolSource& MegaVols::source() const { return parts_->source; }
arbiter::Fence& MegaVols::fence() const { return parts_->fence; }

}  // namespace cairn::server
