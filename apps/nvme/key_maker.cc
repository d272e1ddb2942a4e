// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/key_maker.h"

#include <span>

#include "apps/common/key_output.h"
#include "crypto/secret.h"

namespace cairn::apps {

void KeyMaker::add_options(CLI::App& app, std::string_view output_spec) {
  add_value(app, output_spec, "write it to a new file of mode 0600 instead of printing it",
            [this](const std::string& text) -> Attempt<void> {
              output_ = text;
              return {};
            });
  add_settings(app, options_.settings);
}

Attempt<int> KeyMaker::run() {
  std::string text;
  const Attempt<void> ran = run_in_world(options_, [&](env::Env& env) -> task::Task<Attempt<void>> {
    text = make(env) + "\n";
    co_return Attempt<void>{};
  });
  if (!ran) return std::unexpected(ran.error());
  const Attempt<int> kept = hand_over_key(text, output_);
  crypto::wipe(std::as_writable_bytes(std::span(text)));
  return kept;
}

}  // namespace cairn::apps
