// SPDX-License-Identifier: Apache-2.0
// RackMember: a server in its rack. Offers what its shelves have to spare, and gives it to hosts
// that ask for it over NVMe/TCP (rack/lender.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/problem.h"
#include "env/env.h"
#include "meta/store.h"
#include "rack/lender.h"
#include "server/config/rack_options.h"
#include "server/config/shelf_files.h"
#include "server/serve/server.h"
#include "task/task.h"

namespace cairn::server {

// What it needs of its surroundings.
struct RackHooks {
  std::function<task::Task<Attempt<std::unique_ptr<meta::Store>>>(env::Env&, StoreUri)> open_store;
  std::function<void(config::LogLevel, std::string_view)> log;
  // Files of shelves: removes one that nobody needs any more, durably; and at the start those that
  // a crash left blank, giving others that nobody knows. May be left out where no shelf has a
  // folder.
  std::function<Attempt<void>(const std::string& path)> remove_file;
  std::function<Attempt<std::vector<StrayFile>>(const std::string& folder,
                                                const std::set<std::string>& needed)>
      sweep;
};

// On the control core. Opened after the server and closed before it.
class RackMember final : private rack::LentSpace {
 public:
  RackMember(env::Env& env, Server& server, RackOptions options, RackHooks hooks);

  // The Problem says what is wrong with a shelf or the store. close() follows in any case.
  task::Task<Attempt<void>> open();
  task::Task<void> close();

  // Null before open() and after close().
  const rack::Lender* lender() const { return lender_.get(); }

 private:
  task::Task<Result<uint32_t>> add(rack::Contract contract) override;
  bool is_used(const rack::Contract& contract) const override;
  task::Task<Result<void>> confirm(rack::Contract contract) override;
  task::Task<Result<void>> remove(rack::Contract contract) override;

  task::Task<nvme::Answer> answer(nvme::VendorCommand command);
  Attempt<std::vector<rack::Shelf>> shelves() const;
  // Removes what a crash, or a folder that could not be written to, has left of ended contracts.
  task::Task<void> finish_ended();
  // Removes the file of one, and forgets it.
  task::Task<Result<void>> finish(rack::Contract contract);
  // What files that nobody knows take, by shelf.
  Attempt<std::map<std::string, uint64_t>> sweep() const;
  void log(config::LogLevel level, std::string_view line) const {
    if (hooks_.log) hooks_.log(level, line);
  }
  std::string file_of(const rack::Contract& contract) const;
  std::string drive_of(const rack::Contract& contract) const;

  env::Env& env_;
  Server& server_;
  RackOptions options_;
  RackHooks hooks_;
  std::unique_ptr<meta::Store> store_;
  std::unique_ptr<rack::Lender> lender_;
};

}  // namespace cairn::server
