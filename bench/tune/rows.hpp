// What was found as JSON rows, which `ropewalk tune` makes a profile of, and as lines of a table.
#pragma once

#include <string>

#include "common/table.hpp"
#include "p2p/tables.hpp"
#include "tune/measure.hpp"

namespace ropewalk::bench {

// The machine that is measured, by the names of a profile.
Json signature_row();
Json to_row(const TuneAnswer& answer);
Json to_row(const TuneCost& cost);
// The cost of each mechanism that was forced.
std::vector<TuneCost> costs_of(const P2pResult& result);
// The choice by what was found, beside the fastest mechanism. `mechanism_us`: the faster one of two
// channels that go by the mechanism that was chosen, of which one was forced to; they differ in
// where their memory lies.
Json choice_row(const P2pResult& result);

// "channel.slot_bytes: 4K, was 8K: saves 12 %".
std::string line(const TuneAnswer& answer);

}  // namespace ropewalk::bench
