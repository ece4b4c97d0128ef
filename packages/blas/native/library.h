#pragma once

#include <string>

namespace skein {

/** Signature of cblas_sgemm in a library with 32-bit integers. */
using Sgemm = void (*)(int order, int transposeA, int transposeB, int rows, int columns, int inner, float alpha, const float* a,
                       int aStride, const float* b, int bStride, float beta, float* y, int yStride);

/** A BLAS library that this process has loaded. A library is never unloaded. */
struct Library {
  std::string family;
  std::string version;
  /** Name of the kernels that the library has chosen for this processor. Empty if the library does not report it. */
  std::string core;
  /** Whether several threads can multiply concurrently. A build without threads does not lock its own buffers. */
  bool concurrent = true;
  Sgemm sgemm = nullptr;
};

/**
 * Loads a library by name or path, and configures it to compute only in the calling thread. Call this function in each
 * thread, because some libraries store the number of threads separately for each thread. Throws std::runtime_error with
 * a one-line reason if the library cannot be used.
 */
Library loadLibrary(const std::string& name);

}  // namespace skein
