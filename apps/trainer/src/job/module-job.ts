/** Reference to a function that a user module exports. */
export interface ModuleJob {
  readonly kind: "module";
  /** Path of the module; absolute once the job is loaded. */
  readonly file: string;
  /** Name of the exported function. */
  readonly export: string;
  /** Options that are passed to the function unchanged. */
  readonly options: Readonly<Record<string, unknown>>;
  /** SHA-256 of the contents of the module and its imports. Set once the job is loaded. */
  readonly digest?: string | undefined;
}

/** Reference to a user object that a program passed to `train()`. */
export interface ProgramJob {
  readonly kind: "program";
  /** SHA-256 of the object; zeros for callbacks, which do not affect results. */
  readonly digest: string;
}
