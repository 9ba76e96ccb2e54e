// SPDX-License-Identifier: BSD-3-Clause
// A world of a bad day: faults of the plan's kinds amid RC traffic, but for those that end the card's
// service.
#include "tests/device/fixture.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

class Faults : public World {
 public:
  explicit Faults(Device& d) : pair_(d, options()), joined_(pair_.a, pair_.b) {}
  ~Faults() override {
    for (const char* f : {"none", "link=up"}) pair_.dev.function().inject(f);
    pair_.dev.machine().advance(200'000);
    pair_.dev.set_port_up(true);
  }
  void work(Dice& dice) override {
    if (dice.chance(50)) {
      std::string f = some(dice);
      if (dice.chance(spoiling_)) f[dice.below(f.size())] = static_cast<char>(dice.byte());
      good_ += pair_.dev.function().inject(f).empty() ? 1 : 0;
    }
    pair_.b.post_recv({pair_.bsge(0, 8192)});
    post(pair_.a, some_wr(pair_, dice), dice, spoiling_);
    pair_.dev.machine().advance(50'000);
    if (dice.chance(10)) pair_.dev.function().inject("none");
    try {
      joined_.revive(dice);
    } catch (const BareError&) {  // of which a fault is the reason
    }
    pair_.acq.query();
    pair_.bmr.query();
    bare::drain(pair_.acq);
    bare::drain(pair_.bcq);
  }

 private:
  static PairOptions options() {
    PairOptions o;
    o.connect = false;
    return o;
  }
  std::string some(Dice& dice) const {
    const auto one_of = [&dice](const std::vector<const char*>& names) {
      return std::string(names[dice.below(names.size())]);
    };
    const std::string qpn = ",qpn=" + std::to_string(dice.chance(50) ? pair_.a.qpn() : pair_.b.qpn());
    const std::string when =
        one_of({"", ",nth=2", ",every=3,times=0", ",probability=0.3", ",times=2", ",after=10us"});
    switch (dice.below(13)) {
      case 0:
        return "fault=command,opcode=" + one_of({"QUERY_CQ", "QUERY_MKEY", "RST2INIT_QP", "QUERY_QP"}) +
               ",status=" + one_of({"BAD_RES_STATE", "LIM_ERR", "NO_RES", "BAD_PARAM"}) + ",syndrome=7" +
               when;
      case 1:
        return "fault=command,opcode=QUERY_CQ,delay=" + one_of({"3us", "1ms", "50us"}) + when;
      case 2:
        return "fault=dma,owner=" + one_of({"qp", "cq", "rq"}) + ",direction=" +
               one_of({"read", "write", "read,action=poisoned", "write,action=slow,delay=70us"}) + when;
      case 3:
        return "fault=dma,owner=qp,address=0-" + std::to_string(pair_.amem.bus(0) + 8192) + when;
      case 4:
        return "fault=pcie,error=" +
               one_of({"bad-tlp", "receiver-error", "completion-timeout", "malformed-tlp,severity=nonfatal"});
      case 5:
        return "fault=msix,action=" + one_of({"lost", "delayed,delay=50us"}) + when;
      case 6:
        return "fault=cqe,action=" + one_of({"lost", "delayed,delay=50us"}) + qpn + when;
      case 7:
        return "fault=qp" + qpn + one_of({",nth=2", ",at=+20us"}) +
               ",action=" + one_of({"catas", "access", "invalid", "path-mig"});
      case 8:
        return "fault=port,action=down,duration=20us,at=+" + one_of({"1us", "30us,every=50us,times=3"});
      case 9:
        return "fault=cq,at=+10us,action=" + one_of({"overrun", "access"}) +
               ",cqn=" + std::to_string(pair_.acq.cqn());
      case 10:
        return "fault=event,at=0,type=PORT_CHANGE,sub_type=" + one_of({"1", "4", "200"}) +
               ",data=" + one_of({"00", "0102030405"});
      case 11:
        return "fault=wire,direction=" + one_of({"tx", "rx"}) + ",action=" +
               one_of({"drop", "duplicate", "corrupt", "delay,delay=30us", "reorder", "garble",
                       "down,duration=9us"}) +
               when;
      default:
        return "fault=" +
               one_of({"temperature,sensors=1,at=0", "module,error=high-temperature,at=0",
                       "module,action=unplugged,at=0", "module,action=plugged,at=0",
                       "page_request,action=ask,at=0,pages=3", "page_request,action=ask,at=0,pages=-3",
                       "port,action=errors,count=17,at=0"});
    }
  }

  Pair pair_;
  Joined joined_;
};

}  // namespace

std::unique_ptr<World> make_faults(Device& device) { return std::make_unique<Faults>(device); }

}  // namespace hcasim::bare
