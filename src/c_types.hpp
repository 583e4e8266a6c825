// Types and operations of the C interface where only ropewalk's own are possible.
#pragma once

#include <string>

#include "ropewalk/error.hpp"
#include "ropewalk/ropewalk.h"
#include "ropewalk/types.hpp"

namespace ropewalk {

inline ElementType own_type(rw_type type, const std::string& argument) {
  if (type >= RW_FIRST_TYPE && type < RW_FIRST_TYPE + element_type_count) {
    return static_cast<ElementType>(type - RW_FIRST_TYPE);
  }
  throw Error(ErrorCode::argument, argument + ": " + std::to_string(type) +
                                       ", expected one of ropewalk's own, as RW_FLOAT32");
}

inline ReductionOp own_op(rw_op op, const std::string& argument) {
  if (op >= RW_FIRST_OP && op < RW_FIRST_OP + reduction_op_count) {
    return static_cast<ReductionOp>(op - RW_FIRST_OP);
  }
  throw Error(ErrorCode::argument,
              argument + ": " + std::to_string(op) + ", expected one of ropewalk's own, as RW_SUM");
}

}  // namespace ropewalk
