// Which symbols leave the library: RW_EXPORT marks them; all others stay hidden.
#pragma once
#define RW_EXPORT __attribute__((visibility("default")))
