import type { Aggregator } from "@skein/compressors";
import type { GradientTransformation, Schedule } from "@skein/tensor-core";

/** A user-defined optimizer, with its declared properties. */
export type OwnOptimizer = GradientTransformation<unknown> & {
  /**
   * Whether the update of an entry depends only on that entry of gradients, parameters and optimizer state, and on the
   * number of dimensions of its parameter. If true, ranks may shard the optimizer's state (`zero: 1`), and the
   * parameters (`mesh`). The state must consist of trees with the structure of the parameters, or of scalars that are
   * equal for all entries. Default: false.
   */
  readonly elementwise?: boolean | undefined;
};

/** User-defined parts of a training step: schedule, optimizer and gradient exchange. */
export interface OwnParts {
  /** Learning-rate schedule after the warm-up. */
  readonly schedule?: Schedule | undefined;
  readonly optimizer?: OwnOptimizer | undefined;
  readonly compression?: Aggregator | undefined;
}
