// These functions write what was found as JSON rows, of which `ropewalk tune` makes a profile, and
// as lines of text.
#pragma once

#include <string>

#include "common/table.hpp"
#include "p2p/tables.hpp"
#include "tune/measure.hpp"
#include "tune/wire.hpp"

namespace ropewalk::bench {

// Returns the machine that is measured, under the names that a profile uses.
Json signature_row();
// Returns how many ranks and nodes there are, which is what all figures hold for.
Json situation_row(const TuneMeasurement& measurement);
Json to_row(const TuneAnswer& answer);
// Returns the number of lanes and the size above which messages are split, as thresholds.
std::vector<Json> to_rows(const LanesFound& found);
Json to_row(const TuneCost& cost);
// Returns the cost of each mechanism that was forced, and that of the chosen one where it was not.
std::vector<TuneCost> costs_of(const P2pResult& result);
// Returns the mechanism that is chosen with the values that were found, beside the fastest one. Two
// channels use the chosen mechanism, the one that chose it and one that was forced to it; they
// differ in where their memory lies. `mechanism_us` is the time of the faster of the two.
Json choice_row(const P2pResult& result);

// Returns one line of text, such as "channel.slot_bytes: 4K, was 8K: saves 12 % where it differs".
std::string line(const TuneAnswer& answer);

}  // namespace ropewalk::bench
