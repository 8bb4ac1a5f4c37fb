// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/world.h"

#include <unistd.h>

#include <utility>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "launch/sockets.h"
#include "parallel/comm/rendezvous.h"

namespace welkin::parallel {
namespace {

// Where the store is and who serves it.
ConnectOptions connect_options(const launch::RankInfo& place, const WorldOptions& options) {
  ConnectOptions connect;
  connect.rank = place.rank;
  connect.world_size = place.world_size;
  connect.deadline = options.timeout;
  connect.on_hang = options.on_hang;
  connect.link = options.link;
  connect.secret = options.secret;
  connect.with_gpu = options.with_gpu;
  connect.shared_memory = options.shared_memory;
  connect.is_one_host = place.num_nodes == 1;
  connect.attempt = place.attempt;
  connect.is_over = options.is_over;
  connect.store_is_launchers = place.store_is_launchers;
  if (!options.interface.empty()) connect.own_address = launch::interface_address(options.interface);
  if (options.store == config::WireupStore::File) {
    if (place.store_file.empty()) {
      throw ConfigError(
          "parallel", "the file of the rendezvous is not named: wireup_store=file, WIREUP_FILE_PATH is not set",
          "Set WIREUP_FILE_PATH to a new file on a file system that all ranks share, or take --set wireup_store=tcp");
    }
    connect.file = place.store_file;
    return connect;
  }
  connect.host = place.master_address;
  connect.port = static_cast<uint16_t>(place.master_port);
  connect.store_is_served = place.store_is_served;
  if (place.rank == 0 && !place.store_is_served && !place.store_is_launchers) {
    connect.listen_fd = static_cast<int>(place.listen_descriptor);
    if (connect.listen_fd < 0) {  // the descriptor stays open for the store
      connect.listen_fd = dup(launch::listen_at(place.master_address, place.master_port).socket.get());
    }
  }
  const std::string own = launch::reach(place.master_address, place.master_port, options.timeout);
  if (options.interface.empty()) connect.own_address = own;
  return connect;
}

// A store that vanishes while it is asked is rank 0's end.
void rendezvous_on(Connection& connection, const launch::RankInfo& place, const WorldOptions& options) {
  try {
    rendezvous(connection.kv_store(),
               {.rank = place.rank,
                .world_size = place.world_size,
                .local_size = place.local_size,
                .num_nodes = place.num_nodes,
                .host = cat(host_name(), ", process ", getpid()),
                .program = options.program,
                .configuration = options.configuration},
               options.timeout);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    throw CommError("parallel", cat("rank 0 ended during the rendezvous: rank=", place.rank), "Look at the output of rank 0");
  }
}

}  // namespace

World World::connect(const launch::RankInfo& place, const WorldOptions& options) {
  World world;
  world.place_ = place;
  world.has_secret_ = !options.secret.empty();
  if (place.world_size == 1) return world;
  world.connection_ = Connection::open(connect_options(place, options));
  rendezvous_on(*world.connection_, place, options);
  GroupMembers all{{}, place.rank};
  for (int64_t rank = 0; rank < place.world_size; ++rank) all.ranks.push_back(rank);
  world.world_group_ = world.connection_->make_group("world", std::move(all));
  return world;
}

Group World::group(const std::string& name, GroupMembers members) const {
  if (!connection_) return Group();
  return connection_->make_group(name, std::move(members));
}

std::vector<CallTotal> World::traffic() const {
  return connection_ ? connection_->recorder().totals() : std::vector<CallTotal>();
}

std::string World::open_to_strangers_text() const {
  const bool is_local =
      place_.num_nodes == 1 && (place_.master_address == "localhost" || place_.master_address.starts_with("127."));
  if (!connection_ || !is_main() || has_secret_ || is_local || !place_.store_file.empty()) return {};
  return cat(
      "The ranks meet at ", place_.master_address, ":", place_.master_port,
      " without a job secret: whoever reaches it can join. In the job script: export WELKIN_JOB_SECRET=$(openssl rand -hex 32)");
}

std::string World::strangers_text() const {
  if (!connection_ || !is_main()) return {};
  if (const int64_t strangers = connection_->strangers(); strangers > 0) {
    return cat(strangers, " connections to the store of the rendezvous were closed: they did not have the job's secret");
  }
  return {};
}

std::string World::traffic_text() const { return connection_ ? connection_->recorder().totals_text() : std::string(); }

std::string World::carrier() const { return connection_ ? connection_->carrier() : std::string(); }

void World::trace(const observe::Tracer* tracer) const {
  if (connection_) connection_->trace(tracer);
}

void World::announce_stop(const std::string& why) const noexcept {
  if (connection_) connection_->announce_stop(why);
}

void World::close() {
  if (connection_) connection_->close();
}

}  // namespace welkin::parallel
