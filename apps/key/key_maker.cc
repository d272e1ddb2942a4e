// SPDX-License-Identifier: Apache-2.0
#include "apps/key/key_maker.h"

#include <fmt/format.h>

#include <span>

#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "crypto/secret.h"
#include "server/open/key_file.h"

namespace cairn::apps {

void KeyMaker::add_output(CLI::App& app) {
  add_text(app, "--output FILE", output_,
           "write it to a new file of mode 0600 instead of printing it");
}

Attempt<int> KeyMaker::run() {
  Attempt<std::string> line =
      run_errand<std::string>([this](env::Env& env) { return make_line(*this, env); });
  if (!line) return std::unexpected(line.error());
  Attempt<void> written;
  if (output_.empty()) {
    say(*line);
  } else {
    written = server::write_key_file(output_, *line);
  }
  crypto::wipe(std::as_writable_bytes(std::span(*line)));
  if (!written) return std::unexpected(written.error());
  if (!output_.empty()) say(fmt::format("{}: a new key, for its owner's eyes only\n", output_));
  return kExitOk;
}

task::Task<Attempt<std::string>> KeyMaker::make_line(KeyMaker& maker, env::Env& env) {
  co_return maker.make(env) + "\n";
}

}  // namespace cairn::apps
