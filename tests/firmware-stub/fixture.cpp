// SPDX-License-Identifier: BSD-3-Clause
#include "fixture.h"

namespace hcasim::bare {

Machine& machine() {
  static Machine* m = [] {
    auto* made = new Machine(std::size_t{1} << 30);  // lives as long as the SystemC kernel
    made->add_hca("link=ib");
    made->add_hca("link=ib,sm=off");
    made->add_hca("link=eth");
    made->add_hca("link=ib,command_limit_ms=3000");
    made->add_hca("link=ib,profile=connectx6-hdr200");
    made->add_hca("link=eth,profile=connectx4-edr");
    made->add_hca("link=eth,profile=connectx6-hdr200");
    made->start();
    return made;
  }();
  return *m;
}

void FirmwareTest::SetUp() {
  fn().reset();
  dev_ = std::make_unique<Device>(fn(), device_options());
  dev_->probe();
  objects_ = test::objects_of(fn().handle());
}

void FirmwareTest::TearDown() {
  if (dev_ && dev_->up()) {
    EXPECT_EQ(test::difference(objects_, test::objects_of(fn().handle())), "");
    EXPECT_NO_THROW(dev_->teardown());
    for (const char* objects :
         {"pds", "uars", "mkeys", "eqs", "cqs", "srqs", "qps", "rqs", "tirs", "tises", "rqts", "flow_tables",
          "flows", "flow_counters", "uctxs", "umems", "general_objects"})
      EXPECT_EQ(fn().counter(objects), 0u) << objects << " left over";
    EXPECT_EQ(fn().counter("fw_pages"), 0u);
  }
  if (dev_) {
    for (const std::string& f : dev_->failed_destroys()) ADD_FAILURE() << f;
  }
  fn().inject("none");
}

std::vector<std::uint8_t> FirmwareTest::caps(unsigned group, bool current) {
  const auto r = dev().query_caps(group, current).must();
  const auto* p = r.out.data() + prm::query_hca_cap_out::capability::bit_off / 8;
  return {p, r.out.data() + r.out.size()};
}

}  // namespace hcasim::bare
