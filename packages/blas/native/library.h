#pragma once

#include <string>

namespace skein {

/** cblas_sgemm of a library whose integers have 32 bits. */
using Sgemm = void (*)(int order, int transposeA, int transposeB, int rows, int columns, int inner, float alpha, const float* a,
                       int aStride, const float* b, int bStride, float beta, float* y, int yStride);

/** A BLAS that this process has loaded. It stays loaded. */
struct Library {
  std::string family;
  std::string version;
  /** Which of its kernels it has chosen for this processor, where it tells. */
  std::string core;
  /** Whether several threads may multiply at once. A build without threads has no locks on its own buffers. */
  bool concurrent = true;
  Sgemm sgemm = nullptr;
};

/**
 * Load a library by name or path, and have it compute in the calling thread alone. Call it in each thread: some libraries keep the
 * number of threads per thread. Throws std::runtime_error with one line that says why it cannot be used.
 */
Library loadLibrary(const std::string& name);

}  // namespace skein
