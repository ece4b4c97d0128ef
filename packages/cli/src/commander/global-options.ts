/** Options that all commands accept. */
export interface GlobalOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly color: boolean;
  /** Whether jobs may name user modules. False: jobs that name modules are rejected. Default: true. */
  readonly modules?: boolean;
}
