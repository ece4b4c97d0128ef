/** A user function, exported by a user module. */
export interface ModuleJob {
  readonly kind: "module";
  /** Absolute once the job is loaded. */
  readonly file: string;
  /** Name of the export. */
  readonly export: string;
  /** Passed to the function unchanged. */
  readonly options: Readonly<Record<string, unknown>>;
  /** SHA-256 of the contents of the file and its imports. Set once the job is loaded. */
  readonly digest?: string | undefined;
}

/** A user object that a program passed to `train()`. */
export interface ProgramJob {
  readonly kind: "program";
  /** SHA-256 of the object; zeros for callbacks, which change no result. */
  readonly digest: string;
}
