// SPDX-License-Identifier: BSD-3-Clause
// Migration of virtual functions (SUSPEND_VHCA, RESUME_VHCA, QUERY_VHCA_MIGRATION_STATE, SAVE_VHCA_STATE,
// LOAD_VHCA_STATE): by the function that manages them, which names them by their vhca_id and lends memory of
// its own for their images. While a function runs, its image is a head that says what card it is of: all the
// rest comes when it is at rest.
#include <algorithm>
#include <string>

#include "firmware-stub/firmware.h"
#include "firmware-stub/function_images.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/key_memory.h"
#include "model/state/state.h"
#include "prm/init_seg.h"

namespace hcasim::fw {

namespace {

constexpr Time kPoll = from_ns(1000);        // between two looks whether a function has come to rest
constexpr std::uint32_t kPiece = 4096;       // bytes of an image that are collected, and written, as one ...
constexpr Time kPieceTime = from_ns(20000);  // ... and what that takes the firmware
constexpr std::uint32_t kMaxImage = 1u << 28;  // bytes
// What a function may still grow by between a query and its image.
constexpr std::uint32_t kUnit = 1u << 16;

// A virtual function of this one by its number.
template <class Number>
Syndrome find(Firmware& fw, const Command& cmd, Firmware*& vf) {
  for (std::uint32_t n = 1; (vf = fw.managed(n)) != nullptr; ++n)
    if (vf->options().vhca_id == cmd.get<Number>() && vf->caps().migratable())
      return vf->enabled() ? Syndrome::kOk : Syndrome::kMigrationEnded;
  return Syndrome::kMigrationFunction;
}

const Suspension& held(Firmware& vf) { return vf.device().migration().of(vf.function().id()); }

bool at_rest(Firmware& vf) { return held(vf).responder && vf.migration().at_rest; }

// Behind what its engines have posted.
Syndrome behind_writes(Firmware& fw, Command& cmd) {
  const Time done = fw.device().dma().up_free();
  return done > cmd.now ? cmd.later(done) : Syndrome::kOk;
}

Syndrome suspend_initiator(Firmware& fw, Command& cmd, Firmware& vf) {
  if (cmd.step == 0) {
    if (held(vf).initiator) return Syndrome::kMigrationHeld;
    fw.device().migration().hold_initiator(vf.function().id());
    cmd.step = 1;
  }
  if (!held(vf).initiator) return Syndrome::kMigrationEnded;  // it was reset meanwhile
  if (cmd.step == 1 && vf.cmdq().busy()) return cmd.later(cmd.now + kPoll);
  if (cmd.step == 2) return Syndrome::kOk;
  cmd.step = 2;
  return behind_writes(fw, cmd);
}

Syndrome suspend_responder(Firmware& fw, Command& cmd, Firmware& vf) {
  Migration& migration = fw.device().migration();
  const FunctionId f = vf.function().id();
  if (cmd.step == 0) {
    if (!held(vf).initiator || held(vf).responder) return Syndrome::kMigrationHeld;
    migration.hold_responder(f);
    cmd.step = 1;
    return cmd.later(cmd.now + Migration::kSettling);
  }
  if (!held(vf).responder) return Syndrome::kMigrationEnded;
  if (cmd.step == 2) return Syndrome::kOk;
  migration.bring_to_rest(f);
  vf.migration().at_rest = true;
  cmd.step = 2;
  return behind_writes(fw, cmd);
}

}  // namespace

Syndrome suspend_vhca(Firmware& fw, Command& cmd) {
  Firmware* vf = nullptr;
  if (const Syndrome s = find<prm::suspend_vhca_in::vhca_id>(fw, cmd, vf); s != Syndrome::kOk) return s;
  switch (cmd.op_mod) {
    case prm::k::SUSPEND_VHCA_IN_OP_MOD_SUSPEND_INITIATOR:
      return suspend_initiator(fw, cmd, *vf);
    case prm::k::SUSPEND_VHCA_IN_OP_MOD_SUSPEND_RESPONDER:
      return suspend_responder(fw, cmd, *vf);
    default:
      return Syndrome::kOpMod;
  }
}

// In reverse.
Syndrome resume_vhca(Firmware& fw, Command& cmd) {
  Firmware* vf = nullptr;
  if (const Syndrome s = find<prm::resume_vhca_in::vhca_id>(fw, cmd, vf); s != Syndrome::kOk) return s;
  Migration& migration = fw.device().migration();
  switch (cmd.op_mod) {
    case prm::k::RESUME_VHCA_IN_OP_MOD_RESUME_RESPONDER:
      if (!at_rest(*vf)) return Syndrome::kMigrationHeld;
      vf->migration().at_rest = false;
      migration.free_responder(vf->function().id());
      return Syndrome::kOk;
    case prm::k::RESUME_VHCA_IN_OP_MOD_RESUME_INITIATOR:
      if (!held(*vf).initiator || held(*vf).responder) return Syndrome::kMigrationHeld;
      migration.free_initiator(vf->function().id());
      vf->migration().tracking = false;
      vf->cmdq().go_on();
      return Syndrome::kOk;
    default:
      return Syndrome::kOpMod;
  }
}

Syndrome query_vhca_migration_state(Firmware& fw, Command& cmd) {
  using in = prm::query_vhca_migration_state_in;
  using out = prm::query_vhca_migration_state_out;
  Firmware* vf = nullptr;
  if (const Syndrome s = find<in::vhca_id>(fw, cmd, vf); s != Syndrome::kOk) return s;
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  if (cmd.get<in::chunk>() != 0) return Syndrome::kMigrationChunks;
  const bool incremental = cmd.get<in::incremental>() != 0;
  if (incremental && !vf->migration().tracking) return Syndrome::kMigrationTracking;
  const bool head = incremental && !at_rest(*vf);
  const std::size_t bytes = head ? fw.images()->head(*vf).size() : fw.images()->save(*vf).size();
  const std::size_t unit = head ? kPiece : kUnit;
  const std::size_t size = (bytes + unit - 1) / unit * unit;
  if (size > kMaxImage) return Syndrome::kMigrationSize;
  cmd.put<out::required_umem_size>(static_cast<std::uint32_t>(size));
  return Syndrome::kOk;
}

namespace {

// What is asked for; kOk: in `image`.
Syndrome make_image(Firmware& fw, const Command& cmd, Firmware& vf, std::string& image) {
  using in = prm::save_vhca_state_in;
  const bool track = cmd.get<in::set_track>() != 0;
  if (cmd.get<in::incremental>() != 0 && !vf.migration().tracking) return Syndrome::kMigrationTracking;
  if (at_rest(vf)) {
    if (track) return Syndrome::kMigrationHeld;  // it changes no more
    if (vf.function().health().fatal()) return Syndrome::kMigrationEnded;
    image = fw.images()->save(vf);
  } else {
    // Without track: the end of tracking.
    if (!track && !vf.migration().tracking) return Syndrome::kMigrationHeld;
    image = fw.images()->head(vf);
  }
  return Syndrome::kOk;
}

}  // namespace

Syndrome save_vhca_state(Firmware& fw, Command& cmd) {
  using in = prm::save_vhca_state_in;
  using out = prm::save_vhca_state_out;
  if (cmd.step != 0) {  // the image is written
    cmd.put<out::actual_image_size>(cmd.step);
    return Syndrome::kOk;
  }
  Firmware* vf = nullptr;
  if (const Syndrome s = find<in::vhca_id>(fw, cmd, vf); s != Syndrome::kOk) return s;
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  std::string image;
  if (const Syndrome s = make_image(fw, cmd, *vf, image); s != Syndrome::kOk) return s;
  const std::uint32_t key = cmd.get<in::mkey>(), room = cmd.get<in::size>();
  const std::uint64_t va = cmd.get<in::va>();
  if (image.size() > room || image.size() > kMaxImage) return Syndrome::kMigrationSize;
  // As much as it says it has, all of it.
  if (!key_covers(fw, key, va, room)) return Syndrome::kMigrationKey;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(image.data());
  const WriteOwner owner{WriteOwner::kFirmware, fw.function().id(), cmd.slot};
  Time t = cmd.now, visible = t;
  for (std::size_t done = 0; done < image.size();) {
    const std::size_t len = std::min<std::size_t>(kPiece, image.size() - done);
    t += kPieceTime;
    const auto written = write_by_key(fw, t, key, va + done, bytes + done, len, owner);
    if (!written) return Syndrome::kMigrationKey;
    visible = *written;
    done += len;
  }
  MigrationState& state = vf->migration();
  state.tracking = cmd.get<in::set_track>() != 0;
  ++state.saved;
  cmd.step = static_cast<std::uint32_t>(image.size());
  return cmd.later(visible);
}

Syndrome load_vhca_state(Firmware& fw, Command& cmd) {
  using in = prm::load_vhca_state_in;
  if (cmd.step != 0) return Syndrome::kOk;
  Firmware* vf = nullptr;
  if (const Syndrome s = find<in::vhca_id>(fw, cmd, vf); s != Syndrome::kOk) return s;
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  if (!at_rest(*vf)) return Syndrome::kMigrationHeld;
  const std::uint32_t size = cmd.get<in::size>();
  if (size > kMaxImage) return Syndrome::kMigrationSize;
  std::string image;
  const WriteOwner owner{WriteOwner::kFirmware, fw.function().id(), cmd.slot};
  const auto read = read_by_key(fw, cmd.now, cmd.get<in::mkey>(), cmd.get<in::va>(), size, image, owner);
  if (!read) return Syndrome::kMigrationKey;
  MigrationState& state = vf->migration();
  if (!fw.images()->load(*vf, image)) {
    ++state.refused;
    return Syndrome::kMigrationImage;
  }
  ++state.loaded;
  cmd.step = 1;
  return cmd.later(std::max(*read, cmd.now + static_cast<Time>(size / kPiece + 1) * kPieceTime));
}

// ---- A function that is given an image ----

// Not what no command of its driver's could have made: vectors beyond its own, objects and tables of a
// manager, the GID of a function that is in use.
bool Firmware::image_fits() {
  bool fits = objects_.page_tracks.count() == 0 && function_.flows().of_nic_alone();
  function_.eqs().for_each([&](const Eq& eq) { fits = fits && eq.vector < vectors(); });
  for (FunctionId f = 0; f < device_.functions(); ++f) {
    if (f == function_.id() || device_.migration().of(f).responder) continue;
    for (const Gid& gid : function_.vport().gids)
      fits = fits && (prm::load64(gid.data() + 8) == 0 || !device_.function(f).vport().has_gid(gid));
  }
  return fits;
}

void Firmware::clear_for_image() {
  device_.drop_objects(function_.id());
  function_.q_counters().clear();
  function_.sw_steering().clear();
  function_.vport().clear_roce_addresses();
  StateReset reset;
  list_objects(reset);
  list_session(reset);
}

void Firmware::image_loaded() {
  device_.migration().loaded(function_.id());
  cmdq_.loaded();
  // Its manager has to know what its port takes.
  nic_vport_changed(NicVport::kUc | NicVport::kMc | NicVport::kVlan | NicVport::kPromisc | NicVport::kMtu);
}

}  // namespace hcasim::fw
