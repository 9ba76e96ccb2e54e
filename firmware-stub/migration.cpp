// SPDX-License-Identifier: BSD-3-Clause
// Migration of virtual functions (SUSPEND_VHCA, RESUME_VHCA, QUERY_VHCA_MIGRATION_STATE, SAVE_VHCA_STATE,
// LOAD_VHCA_STATE): by the function that manages them, which names them by their vhca_id and lends memory of
// its own for their images. An image that is taken while a function runs goes ahead of the last one, which is
// then an update of it (image_stream.h).
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
constexpr std::uint32_t kPiece = 4096;       // bytes of what a function has that are looked at as one ...
constexpr Time kPieceTime = from_ns(20000);  // ... and what that takes the firmware
// What a function may still grow by between a query and its image.
constexpr std::size_t kUnit = 1u << 16;
constexpr std::size_t kChunk = 1u << 20;  // bytes of a record, where the driver takes an image in several

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
      if (vf->migration().receiver.incomplete()) return Syndrome::kMigrationIncomplete;
      vf->migration().at_rest = false;
      migration.free_responder(vf->function().id());
      return Syndrome::kOk;
    case prm::k::RESUME_VHCA_IN_OP_MOD_RESUME_INITIATOR:
      if (!held(*vf).initiator || held(*vf).responder) return Syndrome::kMigrationHeld;
      migration.free_initiator(vf->function().id());
      vf->migration().tracking = false;
      vf->migration().sender.forget();
      vf->cmdq().go_on();
      return Syndrome::kOk;
    default:
      return Syndrome::kOpMod;
  }
}

namespace {

// As the driver lends memory.
std::uint32_t rounded(std::size_t bytes, std::size_t unit) {
  return static_cast<std::uint32_t>((bytes + unit - 1) / unit * unit);
}

// What differs from the image that was sent last. 0: nothing does.
std::size_t update_size(FunctionImages& images, Firmware& vf) {
  const std::string& base = vf.migration().sender.base();
  const std::string image = images.save(vf);
  if (image == base && !at_rest(vf)) return 0;
  return kRecordHead + images.update(base, image).size();
}

bool last_update_under_way(const MigrationState& state) {
  return state.sender.under_way() && state.sender.at_rest();
}

}  // namespace

Syndrome query_vhca_migration_state(Firmware& fw, Command& cmd) {
  using in = prm::query_vhca_migration_state_in;
  using out = prm::query_vhca_migration_state_out;
  Firmware* vf = nullptr;
  if (const Syndrome s = find<in::vhca_id>(fw, cmd, vf); s != Syndrome::kOk) return s;
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  MigrationState& state = vf->migration();
  state.in_chunks = cmd.get<in::chunk>() != 0;
  std::size_t size = 0;
  if (cmd.get<in::incremental>() == 0)
    size = rounded(kRecordHead + fw.images()->save(*vf).size(), kUnit);
  else if (last_update_under_way(state) || (state.sender.under_way() && !at_rest(*vf)))
    size = rounded(state.sender.left(), kPiece);
  else if (state.tracking)
    size = rounded(update_size(*fw.images(), *vf), kPiece);
  else
    return Syndrome::kMigrationTracking;
  if (size > kMaxImage) return Syndrome::kMigrationSize;
  const std::size_t required = state.in_chunks ? std::min(size, kChunk) : size;
  cmd.put<out::required_umem_size>(static_cast<std::uint32_t>(required));
  cmd.put<out::remaining_total_size>(size);
  return Syndrome::kOk;
}

namespace {

Time collecting(std::size_t bytes) { return static_cast<Time>(bytes / kPiece + 1) * kPieceTime; }

// The update that the next record is of: begun, if none is under way. ready: when the firmware has it.
Syndrome prepare_update(Firmware& fw, const Command& cmd, Firmware& vf, Time& ready) {
  using in = prm::save_vhca_state_in;
  const bool track = cmd.get<in::set_track>() != 0, incremental = cmd.get<in::incremental>() != 0;
  MigrationState& state = vf.migration();
  const bool rests = at_rest(vf);
  if (incremental && !state.tracking && !last_update_under_way(state)) return Syndrome::kMigrationTracking;
  if (rests && track) return Syndrome::kMigrationHeld;  // it changes no more
  if (rests && vf.function().health().fatal()) return Syndrome::kMigrationEnded;
  if (!rests && !track) return state.tracking ? Syndrome::kOk : Syndrome::kMigrationHeld;  // tracking ends
  if (cmd.get<in::size>() <= kRecordHead) return Syndrome::kMigrationSize;
  if (!incremental) state.sender.forget();
  if (!state.sender.under_way() || state.sender.at_rest() != rests) {
    std::string image = fw.images()->save(vf);
    std::string update = fw.images()->update(state.sender.base(), image);
    if (image.size() > kMaxImage || update.size() > kMaxImage) return Syndrome::kMigrationSize;
    ready += collecting(incremental ? update.size() : image.size());
    state.sender.begin(std::move(image), std::move(update), rests);
  }
  const bool fits = state.sender.left() <= cmd.get<in::size>();
  return fits || !rests || state.in_chunks ? Syndrome::kOk : Syndrome::kMigrationSize;
}

// Into the memory of a key; when it is visible. None: the key does not let it be written.
std::optional<Time> write_record(Firmware& fw, const Command& cmd, const std::string& record) {
  using in = prm::save_vhca_state_in;
  const std::uint32_t key = cmd.get<in::mkey>();
  const std::uint64_t va = cmd.get<in::va>();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(record.data());
  const WriteOwner owner{WriteOwner::kFirmware, fw.function().id(), cmd.slot};
  Time visible = cmd.now;
  for (std::size_t done = 0; done < record.size();) {
    const std::size_t len = std::min<std::size_t>(kPiece, record.size() - done);
    const auto written = write_by_key(fw, cmd.now, key, va + done, bytes + done, len, owner);
    if (!written) return std::nullopt;
    visible = *written;
    done += len;
  }
  return visible;
}

// The next record of the update that is under way, or the end of tracking: its size, and when it is visible.
Syndrome send_record(Firmware& fw, const Command& cmd, Firmware& vf, std::size_t& size, Time& visible) {
  using in = prm::save_vhca_state_in;
  MigrationState& state = vf.migration();
  const bool track = cmd.get<in::set_track>() != 0, ends = !track && !at_rest(vf);
  if (!ends && !state.sender.under_way()) return Syndrome::kMigrationEnded;  // it was reset meanwhile
  const std::string record = ends ? ImageSender::given_up() : state.sender.record(cmd.get<in::size>());
  if (record.size() > cmd.get<in::size>()) return Syndrome::kMigrationSize;
  const auto written = write_record(fw, cmd, record);
  if (!written) return Syndrome::kMigrationKey;
  state.tracking = track;
  if (ends)
    state.sender.forget();
  else
    state.sender.sent(record);
  ++state.saved;
  size = record.size();
  visible = *written;
  return Syndrome::kOk;
}

// A driver that gives up before it has read anything has no memory for a record: that nothing has changed, it
// was told, takes none.
bool only_ends_tracking(const Command& cmd, Firmware& vf) {
  using in = prm::save_vhca_state_in;
  return cmd.get<in::set_track>() == 0 && cmd.get<in::incremental>() == 0 && cmd.get<in::size>() == 0 &&
         vf.migration().tracking && !at_rest(vf);
}

}  // namespace

Syndrome save_vhca_state(Firmware& fw, Command& cmd) {
  using in = prm::save_vhca_state_in;
  using out = prm::save_vhca_state_out;
  Firmware* vf = nullptr;
  if (const Syndrome s = find<in::vhca_id>(fw, cmd, vf); s != Syndrome::kOk) return s;
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  if (cmd.step == 0 && only_ends_tracking(cmd, *vf)) {
    vf->migration().tracking = false;
    vf->migration().sender.forget();
    return Syndrome::kOk;
  }
  if (cmd.step == 0) {
    // As much as it says it has, all of it.
    if (!key_covers(fw, cmd.get<in::mkey>(), cmd.get<in::va>(), cmd.get<in::size>()))
      return Syndrome::kMigrationKey;
    Time ready = cmd.now;
    if (const Syndrome s = prepare_update(fw, cmd, *vf, ready); s != Syndrome::kOk) return s;
    cmd.step = 1;
    if (ready > cmd.now) return cmd.later(ready);
  }
  if (cmd.step == 1) {
    std::size_t size = 0;
    Time visible = 0;
    if (const Syndrome s = send_record(fw, cmd, *vf, size, visible); s != Syndrome::kOk) return s;
    cmd.step = static_cast<std::uint32_t>(size);  // more than its head has
    return cmd.later(visible);
  }
  cmd.put<out::actual_image_size>(cmd.step);
  if (last_update_under_way(vf->migration()))
    cmd.put<out::next_required_umem_size>(rounded(std::min(vf->migration().sender.left(), kChunk), kPiece));
  return Syndrome::kOk;
}

namespace {

// False: refused, and the function is as it was, and may go on so.
bool take_record(FunctionImages& images, Firmware& vf, std::string_view record) {
  ImageReceiver& receiver = vf.migration().receiver;
  switch (receiver.take(record)) {
    case ImageReceiver::Got::kPart:
      return true;
    case ImageReceiver::Got::kWrong:
      receiver.forget();
      return false;
    case ImageReceiver::Got::kUpdate:
      break;
  }
  auto image = images.updated(receiver.base(), receiver.update());
  if (!image || (receiver.at_rest() ? !images.load(vf, *image) : !images.suits(vf, *image))) {
    receiver.forget();
    return false;
  }
  if (receiver.at_rest())
    receiver.forget();
  else
    receiver.have(std::move(*image));
  return true;
}

}  // namespace

Syndrome load_vhca_state(Firmware& fw, Command& cmd) {
  using in = prm::load_vhca_state_in;
  if (cmd.step != 0) return Syndrome::kOk;
  Firmware* vf = nullptr;
  if (const Syndrome s = find<in::vhca_id>(fw, cmd, vf); s != Syndrome::kOk) return s;
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  if (!at_rest(*vf)) return Syndrome::kMigrationHeld;
  const std::uint32_t size = cmd.get<in::size>();
  if (size > kMaxImage) return Syndrome::kMigrationSize;
  std::string record;
  const WriteOwner owner{WriteOwner::kFirmware, fw.function().id(), cmd.slot};
  const auto read = read_by_key(fw, cmd.now, cmd.get<in::mkey>(), cmd.get<in::va>(), size, record, owner);
  if (!read) return Syndrome::kMigrationKey;
  MigrationState& state = vf->migration();
  if (!take_record(*fw.images(), *vf, record)) {
    ++state.refused;
    return Syndrome::kMigrationImage;
  }
  ++state.loaded;
  cmd.step = 1;
  return cmd.later(std::max(*read, cmd.now + collecting(size)));
}

// ---- A function that is given an image ----

// Not what no command of its driver's could have made: vectors beyond its own, objects and tables of a
// manager, the GID of a function that is in use.
bool Firmware::image_fits() {
  bool fits = objects_.page_tracks.count() == 0 && function_.flows().of_nic_alone();
  // What this function's manager does not let it have.
  fits = fits && (objects_.ipsecs.count() == 0 || caps_.get<prm::cmd_hca_cap::ipsec_offload>() != 0);
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
