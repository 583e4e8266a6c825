// This header makes a KeyValueStore of a Python object, such as the store that the processes of
// torchrun share.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "ropewalk/store_communicator.hpp"

namespace ropewalk::python {

// Returns a store that calls the Python object `store`. The object must have the methods
// set(key, bytes), get(key) and delete_key(key) of torch.distributed.Store. The caller must hold
// the GIL.
std::shared_ptr<KeyValueStore> key_value_store(nanobind::object store);

}  // namespace ropewalk::python
