#pragma once

#include "operation.h"

namespace skein {

/**
 * MPI operators for sums, maxima and minima of all element types. They are created after MPI_Init by the thread that
 * calls MPI.
 */
class Reductions {
 public:
  int create();
  void free();
  MPI_Op of(Element element, Reduction reduction) const;

 private:
  MPI_Op made_[2 * 3 + 2] = {};
  bool exist_ = false;
};

/** Returns the MPI type of one element. 16-bit floats are sent as their bit patterns. */
MPI_Datatype typeOf(Element element);
size_t bytesOf(Element element);

}  // namespace skein
