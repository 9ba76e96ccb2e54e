// SPDX-License-Identifier: BSD-3-Clause
#include "model/unit_pool.h"

#include <gtest/gtest.h>

namespace hcasim {
namespace {

TEST(UnitPool, AsManyAtATimeAsThereAreUnits) {
  UnitPool pool(3);
  Time end = 0;
  for (int i = 0; i < 30; ++i) {
    Time& unit = pool.best(0);
    const Time start = std::max<Time>(0, unit);
    EXPECT_EQ(start, i / 3 * 100);
    end = unit = start + 100;
  }
  EXPECT_EQ(end, 1000);
  EXPECT_EQ(pool.free_at(), 1000);
  pool.clear();
  EXPECT_EQ(pool.free_at(), 0);
}

TEST(UnitPool, OfTheIdleOnesTheOneThatBecameSoLast) {
  UnitPool pool(3);
  pool.best(0) = 100;
  pool.best(0) = 250;
  pool.best(0) = 900;
  EXPECT_EQ(pool.best(300), 250);  // leaves the other for work that may begin earlier
  EXPECT_EQ(pool.best(100), 100);
  EXPECT_EQ(pool.best(50), 100);  // none is idle: the first to be
  EXPECT_EQ(pool.best(2000), 900);
}

TEST(UnitPool, OneAtLeast) {
  UnitPool pool(0);
  pool.best(0) = 7;
  EXPECT_EQ(pool.free_at(), 7);
}

}  // namespace
}  // namespace hcasim
