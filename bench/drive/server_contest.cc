// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/server_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "bench/served_file.h"

namespace cairn::bench {

namespace {

double per_cpu_second(const JobFigures& figures) {
  return figures.requests / std::max(figures.server_cpu.seconds(), 1e-6);
}

}  // namespace

void ServerContest::add(const std::string& name, ServeCommand command, bool direct,
                        CarryJob carry) {
  jobs_.push_back(name);
  for (const FileServer server : kFileServers) {
    contest_.add(name, std::string(name_of(server)), [this, server, command, direct, carry] {
      return measure(server, command, direct, carry);
    });
  }
}

Result<void> ServerContest::run() {
  const Result<void> made = make_served_file(folder_.file("drive"), kServedFileSize);
  if (!made) return made;
  return contest_.run(options_.rounds, options_.progress);
}

Result<JobFigures> ServerContest::measure(FileServer server, ServeCommand command, bool direct,
                                          const CarryJob& carry) const {
  const FileService service{.program = options_.program,
                            .file = folder_.file("drive"),
                            .socket = folder_.file("socket"),
                            .direct = direct,
                            .cpu = options_.server_cpu};
  if (const Result<void> clean = write_back(service.file); !clean) return fail(clean.error());
  std::filesystem::remove(service.socket);
  const auto process =
      ServerProcess::start(command(server, service), service.socket, options_.server_cpu);
  if (!process) return fail(process.error());
  return carry(**process, service.socket);
}

void ServerContest::report_to(Report& report, const std::string& mean) const {
  double product = 1;
  for (const std::string& job : jobs_) {
    std::vector<Measurement> spent;
    for (const FileServer server : kFileServers) {
      const auto& each = *contest_.find(job, name_of(server));
      spent.push_back(each.line("", &per_cpu_second));
      Measurement line = each.line("IO/s", &JobFigures::per_second);
      line.extras = {{"io_per_cpu_second", spent.back().value()},
                     {"p50_us", each.line("", &JobFigures::p50_us).value()},
                     {"p99_us", each.line("", &JobFigures::p99_us).value()}};
      report.add(std::move(line));
    }
    const double ratio =
        std::min(paired_ratio(spent[0], spent[1]), paired_ratio(spent[0], spent[2]));
    report.add_ratio(job + "_per_cpu_vs_qsd", ratio);
    product *= ratio;
  }
  report.add_ratio(mean, std::pow(product, 1 / static_cast<double>(jobs_.size())));
}

}  // namespace cairn::bench
