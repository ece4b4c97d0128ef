import { execFileSync } from "node:child_process";

/**
 * Names under which the loader may find a supported library, in order of preference. Debian's libblas.so.3 is a link to
 * any installed BLAS. The addon rejects libraries other than OpenBLAS, MKL and BLIS.
 */
export const libraryNames: readonly string[] =
  process.platform === "darwin"
    ? [
        "libopenblas.dylib",
        "/opt/homebrew/opt/openblas/lib/libopenblas.dylib",
        "/usr/local/opt/openblas/lib/libopenblas.dylib",
        "libblis.dylib",
      ]
    : [
        "libopenblas.so.0",
        "libopenblas.so",
        "libmkl_rt.so.2",
        "libmkl_rt.so",
        "libblis.so.4",
        "libblis.so.3",
        "libblis.so",
        "libblas.so.3",
      ];

/** Returns the names in `libraryNames` that the loader's cache contains. Empty if there is no loader cache. */
export const knownLibraries = (): string[] => {
  let cache: string;
  try {
    cache = execFileSync("ldconfig", ["-p"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/sbin:/usr/sbin` },
    });
  } catch {
    return [];
  }
  const known = new Set(cache.split("\n").map((line) => line.trim().split(" ")[0]));
  return libraryNames.filter((name) => known.has(name));
};
